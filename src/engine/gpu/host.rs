//! The host side of the GPU engine: runs experiments to their end, in batches that fit the device, in dispatches of measured length.
//!
//! Layer: engine. Takes and gives experiments' own tables, exactly as the CPU engine leaves them. Results do not depend on its decisions: which
//! experiments share a batch, how many steps a dispatch takes, and when pools grow.

use std::time::{Duration, Instant};

use hyperfold_base::printable::one_line;

use super::device_tables::Resident;
use super::faults::{Faults, RunError};
use super::kernels::{EntryPoint, Kernels};
use super::pack::{self, DeviceLimits};
use super::rates::DeviceRates;
use super::source;
use crate::grow::{TooManyPackets, grow};
use crate::is_final;
use crate::systems::{RunCondition, SYSTEMS, SystemRows};
use hyperfold_columns::{Exp, N_TABLES, TABLES, Tables, status};

/// How steps are dispatched to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A device with the engine's kernels.
#[derive(Debug)]
pub struct GpuEngine {
    device: wgpu::Device,
    queue: wgpu::Queue,
    faults: Faults,
    kernels: Kernels,
    /// Batch sizes that the device allows, and those that the caller allows.
    device_limits: DeviceLimits,
    batch_limits: DeviceLimits,
    /// Row-steps that a dispatch of each mode may take, adapted to the time of the last ones.
    work: [u64; 2],
    /// How to dispatch; `None`: chosen per batch.
    pub(super) mode: Option<Mode>,
    /// Solver for rates of experiments at flow level.
    pub(super) rates: DeviceRates,
    /// What is on the device.
    slabs: Vec<Slab>,
    /// Bytes of tables that the device was found to hold at once.
    found_room: u64,
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
        let kernels = Kernels::new(&device, &faults, workgroup.min(limits.max_compute_invocations_per_workgroup))?;
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
    /// `packet_limit` is the maximum number of packet records per experiment. All tables are back on the host when it returns.
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
        self.forget();
        let ran = self.go_on(experiments, mode, packet_limit, go_on);
        let home = ran.and_then(|report| self.bring_home(experiments, |_| true).map(|()| report));
        self.forget();
        home
    }

    /// Drops what is on the device: the next batch has other experiments.
    pub fn forget(&mut self) {
        self.slabs.clear();
    }

    /// Goes on with every experiment of a batch until all have ended, or `go_on` returns false after a dispatch. Tables stay on the device from the first
    /// call to the end of their experiment. So those of an experiment that runs are out of date on the host.
    ///
    /// # Errors
    /// The device failed. The tables of the experiments that were on it are then useless.
    pub(super) fn go_on(
        &mut self,
        experiments: &mut [Tables],
        mode: Mode,
        packet_limit: u64,
        go_on: &mut dyn FnMut(&DispatchProgress) -> bool,
    ) -> Result<Report, RunError> {
        let mut report = Report::default();
        loop {
            self.drop_ended(experiments);
            self.admit(experiments, packet_limit, &mut report)?;
            if self.slabs.is_empty() {
                return Ok(report);
            }
            let (dispatch_steps, dispatch_wall) = self.dispatch_slabs(mode)?;
            report.dispatches += 1;
            report.device_wall += dispatch_wall;
            self.bring_home_those_that_wait(experiments)?;
            let progress = self.progress(experiments, dispatch_steps, dispatch_wall);
            if !go_on(&progress) {
                report.stopped = true;
                return Ok(report);
            }
        }
    }

    /// Takes no further step with experiments that the host has ended.
    fn drop_ended(&mut self, experiments: &[Tables]) {
        for slab in &mut self.slabs {
            for place in &mut slab.places {
                if place.is_some_and(|p| is_final(&experiments[p])) {
                    *place = None;
                }
            }
        }
        self.slabs.retain(|slab| slab.places.iter().any(Option::is_some));
    }

    /// Copies experiments to the device that are not there, as many as there is room for. Those that wait for packets get them first.
    fn admit(&mut self, experiments: &mut [Tables], packet_limit: u64, report: &mut Report) -> Result<(), RunError> {
        let mut is_there = vec![false; experiments.len()];
        self.slabs.iter().flat_map(|slab| slab.places.iter().flatten()).for_each(|&p| is_there[p] = true);
        report.failures.iter().for_each(|&(p, _)| is_there[p] = true);
        let limits = self.batch_limits;
        let mut used: u64 = self.slabs.iter().map(|slab| slab.resident.memory()).sum();
        let mut grown = 0;
        let mut next: Vec<usize> = Vec::new();
        for (p, t) in experiments.iter_mut().enumerate().filter(|(p, t)| !is_there[*p] && !is_final(t)) {
            if used + t.bytes() > self.room() && !(next.is_empty() && self.slabs.is_empty()) {
                break;
            }
            if t.exps[0].status == status::NEEDS_PACKETS {
                grown = 1;
                if let Err(error) = grow(t, packet_limit) {
                    report.failures.push((p, error.into()));
                    continue;
                }
            }
            if let Some((table, bytes, limit)) = pack::too_large(t, &limits) {
                report.failures.push((p, ExperimentError::TooLarge { table, bytes, limit }));
                continue;
            }
            if used + t.bytes() > self.room() && !(next.is_empty() && self.slabs.is_empty()) {
                break;
            }
            used += t.bytes();
            next.push(p);
        }
        report.growths += grown;
        let mut first = 0;
        while first < next.len() {
            let n = fitting(experiments, &next[first..], &limits);
            let places = &next[first..first + n];
            first += n;
            let on_device: Vec<&Tables> = places.iter().map(|&p| &experiments[p]).collect();
            match self.upload(&on_device) {
                Ok(resident) => {
                    let exps = resident.exps().to_vec();
                    self.slabs.push(Slab { resident, places: places.iter().copied().map(Some).collect(), exps });
                    report.batches += 1;
                }
                // What is there is as much as the device holds; the others follow when it has room.
                Err(RunError::OutOfMemory(why)) if !self.slabs.is_empty() => {
                    let held = self.slabs.iter().map(|slab| slab.resident.memory()).sum();
                    log::debug!("device: no more than {held} bytes of tables at once: {why}");
                    self.found_room = held;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        if !next.is_empty() {
            log::debug!("device: {} experiments in {} sets of buffers, {used} bytes", next.len(), self.slabs.len());
        }
        Ok(())
    }

    /// Bytes of tables that may be on the device at once.
    fn room(&self) -> u64 {
        self.batch_limits.total_bytes.min(self.found_room)
    }

    /// Dispatches steps of all experiments that run, in one submission. Returns the number of steps and the wall time until the headers are back.
    fn dispatch_slabs(&mut self, mode: Mode) -> Result<(u32, Duration), RunError> {
        let running: Vec<Vec<u32>> = self.slabs.iter().map(Slab::running).collect();
        let rows_of =
            |slab: &Slab, rows: &[u32]| -> u64 { rows.iter().map(|&r| u64::from(slab.exps[r as usize].end_len)).sum() };
        let rows = self.slabs.iter().zip(&running).map(|(slab, rows)| rows_of(slab, rows)).sum();
        let steps = self.steps_for(mode, rows);
        // Without gates the gate systems have nothing to do.
        let gates = self.slabs.iter().flat_map(|slab| &slab.exps).any(|e| e.gate_len > 0);
        let kernels = kernels_of(mode, gates);
        for &kernel in &kernels {
            self.prepare(kernel)?;
        }
        for (slab, rows) in self.slabs.iter().zip(&running) {
            slab.resident.set_control(&self.queue, steps, rows);
        }
        let mut encoder = self.encoder("steps");
        {
            let mut pass =
                encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
            let repeats = if mode == Mode::Fused { 1 } else { steps };
            for _ in 0..repeats {
                for &kernel in &kernels {
                    for (slab, rows) in self.slabs.iter().zip(&running).filter(|(_, rows)| !rows.is_empty()) {
                        pass.set_bind_group(0, slab.resident.group(), &[]);
                        self.dispatch_system(&mut pass, kernel, slab.resident.exps(), rows);
                    }
                }
            }
        }
        self.slabs.iter().for_each(|slab| slab.resident.copy_exps(&mut encoder));
        let clock = Instant::now();
        self.faults.expect_compilation(self.kernels.are_cold(kernels.iter().copied()));
        self.queue.submit([encoder.finish()]);
        let mut taken = 0;
        for slab in &mut self.slabs {
            let exps = slab.resident.read_exps(&self.device, &self.faults)?;
            taken += slab.exps.iter().zip(&exps).map(|(b, e)| (e.steps - b.steps) * u64::from(e.end_len)).sum::<u64>();
            slab.exps = exps;
        }
        self.faults.expect_compilation(false);
        self.kernels.have_run(kernels.iter().copied());
        let wall = clock.elapsed();
        log::trace!(
            "dispatch: up to {steps} steps of {} experiments in {:.6} s",
            running.iter().map(Vec::len).sum::<usize>(),
            wall.as_secs_f64()
        );
        self.adapt(mode, wall, taken);
        Ok((steps, wall))
    }

    /// Brings home the experiments that have ended. Growing moves tables twice, so a small number of experiments that wait for packets is left to wait.
    fn bring_home_those_that_wait(&mut self, experiments: &mut [Tables]) -> Result<(), RunError> {
        let count = |which: u32| -> usize {
            let there = self.slabs.iter().flat_map(|slab| slab.places.iter().zip(&slab.exps));
            there.filter(|(place, exp)| place.is_some() && exp.status == which).count()
        };
        let (running, waiting) = (count(status::RUNNING), count(status::NEEDS_PACKETS));
        let with_waiting = waiting > 0 && 4 * waiting >= running;
        self.bring_home(experiments, |exp| match exp.status {
            status::RUNNING => false,
            status::NEEDS_PACKETS => with_waiting,
            _ => true,
        })
    }

    /// Brings home the experiments that `which` chooses by their headers.
    fn bring_home(&mut self, experiments: &mut [Tables], which: impl Fn(&Exp) -> bool) -> Result<(), RunError> {
        for slab in &mut self.slabs {
            let mut chosen: Vec<(usize, usize)> = Vec::new();
            for (row, (place, exp)) in slab.places.iter_mut().zip(&slab.exps).enumerate() {
                if let Some(p) = *place
                    && which(exp)
                {
                    chosen.push((p, row));
                    *place = None;
                }
            }
            if chosen.is_empty() {
                continue;
            }
            let mut home = pick(experiments, &chosen);
            slab.resident.download_some(&self.device, &self.queue, &self.faults, 0..N_TABLES, &mut home)?;
        }
        self.slabs.retain(|slab| slab.places.iter().any(Option::is_some));
        Ok(())
    }

    /// Copies what the host looks at while experiments run: headers, and the counters of NICs and ports.
    ///
    /// # Errors
    /// The device failed.
    pub(super) fn refresh_counters(&mut self, experiments: &mut [Tables]) -> Result<(), RunError> {
        for slab in &self.slabs {
            let chosen: Vec<(usize, usize)> =
                slab.places.iter().enumerate().filter_map(|(row, place)| place.map(|p| (p, row))).collect();
            let looked_at = (0..N_TABLES).filter(|&i| matches!(TABLES[i].name, "exps" | "nics" | "ports"));
            let mut there = pick(experiments, &chosen);
            slab.resident.download_some(&self.device, &self.queue, &self.faults, looked_at, &mut there)?;
        }
        Ok(())
    }

    fn progress(&self, experiments: &[Tables], dispatch_steps: u32, dispatch_wall: Duration) -> DispatchProgress {
        let mut steps: Vec<u64> = experiments.iter().map(|t| t.exps[0].steps).collect();
        for slab in &self.slabs {
            for (place, exp) in slab.places.iter().zip(&slab.exps) {
                place.iter().for_each(|&p| steps[p] = exp.steps);
            }
        }
        DispatchProgress {
            finished: experiments.iter().filter(|t| is_final(t)).count(),
            experiments: experiments.len(),
            steps: steps.iter().sum(),
            dispatch_steps,
            dispatch_wall,
        }
    }

    /// Number of steps in the next dispatch, over experiments that have `rows` link ends together.
    fn steps_for(&self, mode: Mode, rows: u64) -> u32 {
        (self.work[mode as usize] / rows.max(1)).clamp(1, u64::from(MAX_STEPS[mode as usize])) as u32
    }

    /// Sets the work of the next dispatch from the wall time that the last one took for `taken` row-steps.
    fn adapt(&mut self, mode: Mode, wall: Duration, taken: u64) {
        let work = &mut self.work[mode as usize];
        let fair = u128::from(taken) * DISPATCH_TARGET.as_micros() / wall.as_micros().max(1);
        // If a dispatch did little because its experiments ended, its time says little.
        *work = fair.clamp(u128::from(*work / 4), u128::from(*work * 4)).clamp(1, MAX_WORK.into()) as u64;
    }

    /// Appends one system over all rows of the running experiments.
    fn dispatch_system(&self, pass: &mut wgpu::ComputePass, kernel: EntryPoint, exps: &[Exp], running: &[u32]) {
        let rows = match kernel {
            EntryPoint::Fused => SystemRows::Experiment,
            EntryPoint::System(k) => SYSTEMS[k].rows,
        };
        if matches!(rows, SystemRows::Experiment | SystemRows::Clocks) {
            self.kernels.dispatch(pass, kernel, running.len() as u32, 1);
            return;
        }
        let max_rows = running.iter().map(|&r| rows.count(&exps[r as usize])).max().unwrap_or(0);
        self.kernels.dispatch(pass, kernel, max_rows.div_ceil(self.kernels.workgroup), running.len() as u32);
    }

    /// Uploads `experiments`. Tests also use it to run single systems and compare after each of them.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::run`] does.
    pub fn upload(&self, experiments: &[&Tables]) -> Result<Resident, RunError> {
        // A lack of memory is an answer here: the device goes on with what it holds.
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let made = Resident::upload(&self.device, &self.queue, &self.faults, self.kernels.group_layout(), experiments);
        match pollster::block_on(scope.pop()) {
            Some(error) => Err(RunError::OutOfMemory(one_line(&error.to_string()))),
            None => made,
        }
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
        self.kernels.prepare(&self.device, &self.faults, kernel)?;
        let exps = resident.exps();
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
        self.kernels.prepare(&self.device, &self.faults, EntryPoint::Fused)?;
        // An empty experiment: a header without rows.
        let exps = vec![<Exp as bytemuck::Zeroable>::zeroed()];
        let resident = self.upload(&[&Tables { exps: exps.into(), ..Tables::default() }])?;
        resident.set_control(&self.queue, 0, &[0]);
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("compile") });
        {
            let mut pass = begin(&mut encoder, &resident);
            self.kernels.dispatch(&mut pass, EntryPoint::Fused, 1, 1);
        }
        self.faults.expect_compilation(self.kernels.are_cold(std::iter::once(EntryPoint::Fused)));
        resident.submit_and_read_exps(&self.device, &self.queue, &self.faults, encoder)?;
        self.faults.expect_compilation(false);
        self.kernels.have_run(std::iter::once(EntryPoint::Fused));
        Ok(())
    }

    /// From now on a run ends soon after `stop` returns true, also while a kernel compiles.
    pub fn stop_on(&self, stop: impl Fn() -> bool + Send + Sync + 'static) {
        self.faults.stop_on(stop);
    }

    /// Replaces the kernels by those of a changed text. Tests show with it that wrong kernels are found.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::new`] does.
    pub fn change_kernels(&mut self, change: impl FnOnce(String) -> String) -> Result<(), RunError> {
        let workgroup = self.kernels.workgroup;
        let text = change(source::compose(workgroup)?);
        self.kernels = Kernels::of_text(&self.device, &self.faults, workgroup, text)?;
        Ok(())
    }

    /// Leaks a device that is still at work after `error`: dropping it would wait for it.
    pub fn abandon_after(&self, error: &RunError) {
        if error.leaves_work_behind() {
            std::mem::forget((self.device.clone(), self.queue.clone()));
        }
    }
}

impl GpuEngine {
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
        self.kernels.prepare(&self.device, &self.faults, kernel)
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

    /// Submits `encoder`, waits for its end, and reads the first `count` of `queries`.
    pub(super) fn submit_and_read_timestamps(
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

fn begin<'a>(encoder: &'a mut wgpu::CommandEncoder, resident: &Resident) -> wgpu::ComputePass<'a> {
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
    pass.set_bind_group(0, resident.group(), &[]);
    pass
}

/// Experiments that are on the device side by side, in one set of buffers.
#[derive(Debug)]
struct Slab {
    resident: Resident,
    /// Place in the batch of each of its experiments, in ascending order; `None`: it has come home.
    places: Vec<Option<usize>>,
    /// Headers after the last dispatch.
    exps: Vec<Exp>,
}

impl Slab {
    /// Rows of its experiments that run.
    fn running(&self) -> Vec<u32> {
        let rows = (0u32..).zip(self.places.iter().zip(&self.exps));
        rows.filter(|(_, (place, exp))| place.is_some() && exp.status == status::RUNNING).map(|(row, _)| row).collect()
    }
}

/// The tables of some experiments: `chosen` has pairs of a place in the batch, ascending, and a row on the device.
fn pick<'a, 'b>(experiments: &'a mut [Tables<'b>], chosen: &[(usize, usize)]) -> Vec<(usize, &'a mut Tables<'b>)> {
    let mut next = chosen.iter().peekable();
    experiments
        .iter_mut()
        .enumerate()
        .filter_map(|(p, t)| next.next_if(|(place, _)| *place == p).map(|&(_, row)| (row, t)))
        .collect()
}

/// Number of `places` from the first on whose experiments fit in one set of buffers; at least one.
fn fitting(experiments: &[Tables], places: &[usize], limits: &DeviceLimits) -> usize {
    pack::first_that_fit(places.iter().map(|&p| &experiments[p]), limits).max(1)
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
