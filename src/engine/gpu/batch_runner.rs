//! The host side of the GPU engine: runs experiments to their end, in batches that fit the device, in dispatches of measured length.
//!
//! Layer: engine. Takes and gives experiments' own tables, exactly as the CPU engine leaves them. Results do not depend on its decisions: which
//! experiments share a batch, how many steps a dispatch takes, and when pools grow.

use std::time::Duration;

use super::device::GpuDevice;
use super::device_tables::Resident;
use super::faults::{Faults, RunError};
use super::kernels::{EntryPoint, KernelParts, KernelSets, Kernels, source};
use super::pack::DeviceLimits;
use super::rates::DeviceRates;
use super::slab::Slab;
use crate::grow::TooManyPackets;
use crate::is_final;
use crate::systems::{RunCondition, SYSTEMS, SystemRows};
use hyperfold_columns::{Exp, Tables};

/// How steps are dispatched to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One workgroup per experiment, many steps per dispatch: for many experiments.
    Fused,
    /// One dispatch per system over the rows of all experiments: for experiments too large for one workgroup.
    PerSystem,
}

/// State of a run after a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchProgress {
    /// Experiments of the run that have ended.
    pub finished: usize,
    /// All experiments of the run.
    pub experiments: usize,
    /// Steps taken by all experiments together.
    pub steps: u64,
    /// Maximum number of steps of the last dispatch.
    pub dispatch_steps: u32,
    /// Wall time of the last dispatch, including the read-back of headers.
    pub dispatch_wall: Duration,
}

/// Reason why one experiment did not end; the others did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// Its packets in flight exceed the limit.
    #[error(transparent)]
    TooManyPackets(#[from] TooManyPackets),
    /// One of its tables is too large for a binding of the device.
    #[error("its {table} take {bytes} bytes, more than the {limit} that this device binds at once; use `--engine cpu`")]
    TooLarge {
        /// Name of the table that is too large.
        table: &'static str,
        /// Its size, in bytes.
        bytes: u64,
        /// Size of the largest binding, in bytes.
        limit: u64,
    },
}

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Experiments that could not run to their end: place in the slice, and reason.
    pub failures: Vec<(usize, ExperimentError)>,
    /// Whether the caller stopped the run; then some experiments may still be running.
    pub stopped: bool,
    /// Number of batches that the experiments were divided into.
    pub batches: u32,
    /// Number of dispatches, over all batches.
    pub dispatches: u32,
    /// Number of times that a batch was read back to grow its pools.
    pub growths: u32,
    /// Wall time of all dispatches.
    pub device_wall: Duration,
}

/// Target wall time of a dispatch: long enough that the host's work does not count, short enough to stop soon.
const DISPATCH_TARGET: Duration = Duration::from_millis(50);
/// Row-steps (link ends times steps) of an engine's first dispatch, which also compiles a kernel.
const FIRST_WORK: u64 = 1 << 14;
/// Maximum number of steps of a fused dispatch, and of a per-system one, which the host encodes step by step.
const MAX_STEPS: [u32; 2] = [1 << 20, 1 << 10];
/// Maximum row-steps of a dispatch: far more than any device does in the time of one.
const MAX_WORK: u64 = 1 << 40;
/// Invocations per workgroup.
pub const WORKGROUP: u32 = 128;

/// Batches of fewer than [`FEW`] experiments, one of them with more ports than this, are dispatched system by system: in the fused kernel one
/// workgroup per experiment would walk over all its rows in each step, while most of the device is idle. Our choice, not yet measured on a real GPU.
const LARGE_PORTS: u32 = 8192;
const FEW: usize = 16;

/// A device with the engine's kernels.
#[derive(Debug)]
pub struct GpuEngine {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) faults: Faults,
    pub(super) kernels: KernelSets,
    /// Batch sizes that the device allows, and those that the caller allows.
    device_limits: DeviceLimits,
    pub(super) batch_limits: DeviceLimits,
    /// Row-steps that a dispatch of each mode may take, adapted to the time of the last ones.
    work: [u64; 2],
    /// How to dispatch; `None`: chosen per batch.
    pub(super) mode: Option<Mode>,
    /// Solver for rates of experiments at flow level.
    pub(super) rates: DeviceRates,
    /// Sets of buffers that are on the device, with their experiments.
    pub(super) slabs: Vec<Slab>,
    /// Bytes of tables that the device was found to hold at once.
    pub(super) found_room: u64,
    /// Whether all tables of an experiment that has ended come home, and not only those that the host reads.
    pub(super) whole_tables: bool,
    /// Bytes of tables that were copied to the device, and back.
    pub(super) copied: [u64; 2],
}

impl GpuEngine {
    /// Makes an engine on an open device. `limits` are those the device was opened with. Takes over the device's error handlers.
    ///
    /// # Errors
    /// The device lacks what the kernels need, or refuses them.
    pub fn new(device: wgpu::Device, queue: wgpu::Queue, limits: &wgpu::Limits) -> Result<Self, RunError> {
        Self::with_workgroup(device, queue, limits, WORKGROUP)
    }

    /// [`GpuEngine::new`], with workgroups of `workgroup` invocations: a multiple of 16 from 64 to 256.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::new`] does.
    pub fn with_workgroup(
        device: wgpu::Device,
        queue: wgpu::Queue,
        limits: &wgpu::Limits,
        workgroup: u32,
    ) -> Result<Self, RunError> {
        let needed = source::N_BINDINGS as u32;
        let found = limits.max_storage_buffers_per_shader_stage;
        if found < needed {
            return Err(RunError::TooFewBindings { found, needed });
        }
        let faults = Faults::watch(&device);
        let workgroup = workgroup.min(limits.max_compute_invocations_per_workgroup);
        let kernels = KernelSets::new(&device, &faults, workgroup);
        faults.check()?;
        let batch_limits = DeviceLimits {
            table_bytes: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
            total_bytes: u64::MAX,
            experiments: limits.max_compute_workgroups_per_dimension as usize,
        };
        let lanes = limits.max_compute_invocations_per_workgroup;
        let rates = DeviceRates::new(device.clone(), queue.clone(), faults.clone(), batch_limits, lanes);
        let work = [FIRST_WORK; 2];
        Ok(GpuEngine {
            device,
            queue,
            faults,
            kernels,
            device_limits: batch_limits,
            batch_limits,
            work,
            mode: None,
            rates,
            slabs: Vec::new(),
            found_room: u64::MAX,
            whole_tables: false,
            copied: [0; 2],
        })
    }

    /// Limits of one batch. A run splits what does not fit.
    pub fn batch_limits(&self) -> DeviceLimits {
        self.batch_limits
    }

    /// Limits the size of batches: bytes of one table, and bytes of all tables. A limit never exceeds what the device allows.
    pub fn limit_batches(&mut self, table_bytes: u64, total_bytes: u64) {
        self.batch_limits.table_bytes = self.device_limits.table_bytes.min(table_bytes);
        self.batch_limits.total_bytes = self.device_limits.total_bytes.min(total_bytes);
        self.rates.limit_batches(self.batch_limits);
    }

    /// Runs every experiment to its final status (done, time limit, gave up, violation), unless `go_on` returns false after a dispatch.
    /// `packet_limit` is the maximum number of packet records per experiment. All tables are back on the host when it returns. A batch that goes on from slice
    /// to slice may stay on the device meanwhile.
    ///
    /// # Errors
    /// The device failed. The tables of the experiments that were on it are then useless.
    pub fn run(
        &mut self,
        experiments: &mut [Tables],
        mode: Mode,
        packet_limit: u64,
        go_on: &mut dyn FnMut(&DispatchProgress) -> bool,
    ) -> Result<Report, RunError> {
        self.kernels.expect_new_batch();
        let slabs = std::mem::take(&mut self.slabs);
        let whole = std::mem::replace(&mut self.whole_tables, true);
        let ran = self.go_on(experiments, mode, packet_limit, go_on);
        let home = ran.and_then(|report| self.bring_home(experiments, |_| true).map(|()| report));
        self.whole_tables = whole;
        self.slabs = slabs;
        self.kernels.expect_new_batch();
        home
    }

    /// Number of steps in the next dispatch, over experiments that have `rows` link ends together.
    pub(super) fn steps_for(&self, mode: Mode, rows: u64) -> u32 {
        (self.work[mode as usize] / rows.max(1)).clamp(1, u64::from(MAX_STEPS[mode as usize])) as u32
    }

    /// Sets the work of the next dispatch from the wall time that the last one took for `taken` row-steps.
    pub(super) fn adapt(&mut self, mode: Mode, wall: Duration, taken: u64) {
        let work = &mut self.work[mode as usize];
        let fair = u128::from(taken) * DISPATCH_TARGET.as_micros() / wall.as_micros().max(1);
        // If a dispatch did little because its experiments ended, its time says little.
        *work = fair.clamp(u128::from(*work / 4), u128::from(*work * 4)).clamp(1, MAX_WORK.into()) as u64;
    }

    /// Appends one system over all rows of the running experiments.
    pub(super) fn dispatch_system(
        &self,
        pass: &mut wgpu::ComputePass,
        kernel: EntryPoint,
        exps: &[Exp],
        running: &[u32],
    ) {
        let rows = match kernel {
            EntryPoint::Fused => SystemRows::Experiment,
            EntryPoint::System(k) => SYSTEMS[k].rows,
        };
        if matches!(rows, SystemRows::Experiment | SystemRows::Clocks) {
            self.kernels.in_use().dispatch(pass, kernel, running.len() as u32, 1);
            return;
        }
        let max_rows = running.iter().map(|&r| rows.count(&exps[r as usize])).max().unwrap_or(0);
        let groups = max_rows.div_ceil(self.kernels.workgroup());
        self.kernels.in_use().dispatch(pass, kernel, groups, running.len() as u32);
    }

    /// Uploads `experiments`. Tests also use it to run single systems and compare after each of them.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::run`] does.
    pub fn upload(&self, experiments: &[&Tables]) -> Result<Resident, RunError> {
        Resident::upload(&self.device, &self.queue, &self.faults, self.kernels.group_layout(), experiments)
    }

    /// Runs one system of one step over all running experiments of `resident`. Reads them back into `experiments`, if given.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::run`] does.
    pub fn run_system(
        &mut self,
        resident: &Resident,
        kernel: EntryPoint,
        experiments: Option<&mut [&mut Tables]>,
    ) -> Result<(), RunError> {
        let exps = resident.exps();
        self.kernels.choose(KernelParts::needed_by(exps), exps.len())?;
        self.prepare(kernel)?;
        let rows: Vec<u32> = (0..exps.len() as u32).collect();
        resident.set_control(&self.queue, 1, &rows);
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(kernel.entry()) });
        {
            let mut pass = begin(&mut encoder, resident);
            self.dispatch_system(&mut pass, kernel, exps, &rows);
        }
        self.queue.submit([encoder.finish()]);
        match experiments {
            Some(experiments) => resident.download(&self.device, &self.queue, &self.faults, experiments),
            None => Ok(()),
        }
    }

    /// Compiles the fused kernel, which most runs need. Drivers compile part of a kernel only at its first dispatch, so it is dispatched for zero
    /// steps.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::run`] does.
    pub fn compile(&mut self) -> Result<(), RunError> {
        self.kernels.choose(KernelParts::USUAL, 1)?;
        self.prepare(EntryPoint::Fused)?;
        // An empty experiment: a header without rows.
        let exps = vec![<Exp as bytemuck::Zeroable>::zeroed()];
        let resident = self.upload(&[&Tables { exps: exps.into(), ..Tables::default() }])?;
        resident.set_control(&self.queue, 0, &[0]);
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("compile") });
        {
            let mut pass = begin(&mut encoder, &resident);
            self.kernels.in_use().dispatch(&mut pass, EntryPoint::Fused, 1, 1);
        }
        self.faults.expect_compilation(self.kernels.in_use().are_cold(std::iter::once(EntryPoint::Fused)));
        resident.submit_and_read_exps(&self.device, &self.queue, &self.faults, encoder)?;
        self.faults.expect_compilation(false);
        self.kernels.in_use_mut().have_run(std::iter::once(EntryPoint::Fused));
        Ok(())
    }

    /// From now on a run ends soon after `stop` returns true, also while a kernel compiles.
    pub fn stop_on(&self, stop: impl Fn() -> bool + Send + Sync + 'static) {
        self.faults.stop_on(stop);
    }

    /// Changes the text of all kernels from now on. Tests show with it that wrong kernels are found.
    pub fn change_kernels(&mut self, change: impl Fn(String) -> String + Send + Sync + 'static) {
        self.kernels.change_text(change);
    }

    /// Parts of the kernels that go on with `batch`.
    pub fn parts_for(&self, batch: &[Tables]) -> KernelParts {
        let (needed, n) = needs_of(batch);
        self.kernels.parts_for(needed, n)
    }

    /// From now on all batches for which `parts` suffice run on kernels with these; `None`: the engine chooses again. Changes no result.
    pub fn fix_parts(&mut self, parts: Option<KernelParts>) {
        self.kernels.fix(parts);
    }

    /// Takes up the kernels that have the parts that `batch` needs.
    ///
    /// # Errors
    /// The device refuses them.
    pub(super) fn choose_kernels(&mut self, batch: &[Tables]) -> Result<(), RunError> {
        let (needed, n) = needs_of(batch);
        self.kernels.choose(needed, n)
    }

    /// Leaks a device that is still at work after `error`: dropping it would wait for it.
    pub fn abandon_after(&self, error: &RunError) {
        if error.leaves_work_behind() {
            std::mem::forget((self.device.clone(), self.queue.clone()));
        }
    }
}

impl GpuEngine {
    /// Makes an engine on an adapter that has passed its self-test. Takes over the device's error handlers.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::new`] does.
    pub fn on(gpu: &GpuDevice) -> Result<Self, RunError> {
        Self::new(gpu.device.clone(), gpu.queue.clone(), &gpu.device.limits())
    }

    /// Sets how every batch is dispatched from now on; `None`: the engine chooses per batch. Changes no result.
    pub fn dispatch_as(&mut self, mode: Option<Mode>) {
        self.mode = mode;
    }

    /// How `batch` is dispatched.
    pub fn mode_of(&self, batch: &[Tables]) -> Mode {
        self.mode.unwrap_or_else(|| Self::mode_for(batch))
    }

    /// Replaces the text of the kernel that solves rates. Tests show with it that a wrong kernel is found.
    ///
    /// # Errors
    /// The device allows no workgroup that the kernel can have.
    pub fn change_rates_kernel(&mut self, change: impl FnOnce(String) -> String) -> Result<(), RunError> {
        self.rates.change_kernel(change)
    }

    /// Solves rates on the device only for batches with at least `fewest` experiments at flow level. Changes no result.
    pub fn solve_rates_from(&mut self, fewest: usize) {
        self.rates.set_fewest(fewest);
    }

    /// The best way to dispatch a batch.
    fn mode_for(batch: &[Tables]) -> Mode {
        let mut running = 0;
        let mut max_ports = 0;
        for t in batch.iter().filter(|t| !is_final(t)) {
            running += 1;
            max_ports = max_ports.max(t.exps[0].port_len);
        }
        if running < FEW && max_ports > LARGE_PORTS { Mode::PerSystem } else { Mode::Fused }
    }

    /// Whether the device's own clock can time passes.
    pub(super) fn has_timestamps(&self) -> bool {
        self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY)
    }

    /// Length of a tick of the device's clock, in ns.
    pub(super) fn timestamp_period(&self) -> f32 {
        self.queue.get_timestamp_period()
    }

    pub(super) fn timestamps(&self, count: u32) -> wgpu::QuerySet {
        self.device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count })
    }

    pub(super) fn encoder(&self, label: &'static str) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(label) })
    }

    pub(super) fn prepare(&mut self, kernel: EntryPoint) -> Result<(), RunError> {
        let kernels: &mut Kernels = self.kernels.in_use_mut();
        kernels.prepare(&self.device, &self.faults, kernel)
    }

    pub(super) fn set_steps(&self, resident: &Resident, steps: u32, rows: &[u32]) {
        resident.set_control(&self.queue, steps, rows);
    }

    /// Appends a dispatch of `kernel` over the experiments in `rows`.
    pub(super) fn dispatch(&self, pass: &mut wgpu::ComputePass, kernel: EntryPoint, exps: &[Exp], rows: &[u32]) {
        self.dispatch_system(pass, kernel, exps, rows);
    }

    /// Waits until everything submitted so far is done.
    pub(super) fn finish_transfers(&self) -> Result<(), RunError> {
        self.queue.submit([]);
        self.faults.wait(&self.device)
    }

    pub(super) fn download(&self, resident: &Resident, experiments: &mut [&mut Tables]) -> Result<(), RunError> {
        resident.download(&self.device, &self.queue, &self.faults, experiments)
    }

    /// Submits `encoder`, which dispatches `kernels`, waits for its end, and reads the first `count` of `queries`.
    pub(super) fn submit_and_read_timestamps(
        &mut self,
        encoder: wgpu::CommandEncoder,
        kernels: &[EntryPoint],
        queries: Option<&wgpu::QuerySet>,
        count: u32,
    ) -> Result<Vec<u64>, RunError> {
        self.faults.expect_compilation(self.kernels.in_use().are_cold(kernels.iter().copied()));
        let ticks = self.submitted(encoder, queries, count)?;
        self.faults.expect_compilation(false);
        self.kernels.in_use_mut().have_run(kernels.iter().copied());
        Ok(ticks)
    }

    fn submitted(
        &self,
        mut encoder: wgpu::CommandEncoder,
        queries: Option<&wgpu::QuerySet>,
        count: u32,
    ) -> Result<Vec<u64>, RunError> {
        let Some(queries) = queries else {
            self.queue.submit([encoder.finish()]);
            return self.faults.wait(&self.device).map(|()| Vec::new());
        };
        let bytes = 8 * u64::from(count);
        let buffer = |usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("timestamps"),
                size: bytes,
                usage,
                mapped_at_creation: false,
            })
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        encoder.resolve_query_set(queries, 0..count, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, bytes);
        self.queue.submit([encoder.finish()]);
        let mut ticks = Vec::new();
        self.faults.read(&self.device, &staging, bytes, |bytes| ticks = bytemuck::pod_collect_to_vec(bytes))?;
        Ok(ticks)
    }
}

/// Parts that the experiments of `batch` need which have not ended, and the number of these.
fn needs_of(batch: &[Tables]) -> (KernelParts, usize) {
    let running: Vec<&Exp> = batch.iter().filter(|t| !is_final(t)).map(|t| &t.exps[0]).collect();
    (KernelParts::needed_by(running.iter().copied()), running.len())
}

fn begin<'a>(encoder: &'a mut wgpu::CommandEncoder, resident: &Resident) -> wgpu::ComputePass<'a> {
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
    pass.set_bind_group(0, resident.group(), &[]);
    pass
}

/// The kernels of a step. `gates`: whether any experiment has gates.
pub(super) fn kernels_of(mode: Mode, gates: bool) -> Vec<EntryPoint> {
    match mode {
        Mode::Fused => vec![EntryPoint::Fused],
        Mode::PerSystem => (0..SYSTEMS.len())
            .filter(|&k| gates || SYSTEMS[k].when != RunCondition::Gates)
            .map(EntryPoint::System)
            .collect(),
    }
}
