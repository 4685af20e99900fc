//! Creates engines for devices, and hands experiments to them.
//!
//! Layer: session. [`crate::running::devices`] chooses the devices.

use std::sync::Arc;

use hyperfold_engine::EngineError;
use hyperfold_engine::gpu::adapter::{self, AdapterReport};
use hyperfold_engine::gpu::rates::FEWEST_THAT_PAY;
use hyperfold_engine::gpu::{DeviceChoice, GpuDevice, GpuEngine, Mode, SoftwarePolicy, open};
use hyperfold_fold::HandOver;
use hyperfold_fold::beside_device::Beside;
use hyperfold_host::kernel_check::CheckedEngine;
use hyperfold_host::{KeptExperiments, QueuedExperiment, RunEvent, RunOptions, Worker};

use crate::error::SessionError;
use crate::memo::RunMemo;
use crate::settings::{EngineChoice, GpuDispatch, MemoChoice, RunSettings};

/// Host memory per thread that a batch may take, bytes. Our choice: several large training jobs (some 400 MB each at 128 GPUs) per thread.
const BYTES_A_THREAD: u64 = 1 << 30;
/// Like `BYTES_A_THREAD`, for a batch with more experiments than threads. Our choice: such a batch saves only a few waits for its last experiments.
const BYTES_OF_MANY_A_THREAD: u64 = 192 << 20;
/// Host memory that a batch may take on a device, bytes, if a quarter of the machine's memory is not less. What the device has no room for waits there.
const BYTES_A_DEVICE: u64 = 64 << 30;
/// Most experiments in a batch on a device: some for each of its thousands of threads.
const EXPERIMENTS_A_DEVICE: usize = 4096;

/// Approximate limit on the host memory of a batch's experiments, bytes.
pub(crate) fn host_bytes(threads: usize, on_device: bool) -> u64 {
    if on_device { BYTES_A_DEVICE } else { BYTES_A_THREAD * threads.max(2) as u64 }
}

/// Like [`host_bytes`], for a batch with more experiments than threads.
pub(crate) fn host_bytes_of_many(threads: usize, on_device: bool) -> u64 {
    if on_device { BYTES_A_DEVICE } else { BYTES_OF_MANY_A_THREAD * threads.max(2) as u64 }
}

/// The engines of a run's devices.
pub(crate) struct DeviceWorkers {
    /// Engines that were not lost.
    list: Vec<Worker>,
    /// Indices of all adapters that the run has opened, or tried to open.
    tried: Vec<usize>,
}

impl DeviceWorkers {
    /// Whether the run has no devices, and simulates on the CPU.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Creates an engine for each device.
///
/// # Errors
/// A device lacks what the kernels need, or refuses them.
pub(crate) fn workers(
    devices: &[GpuDevice],
    settings: &RunSettings,
    memo: &RunMemo,
    pool: &Arc<rayon::ThreadPool>,
) -> Result<DeviceWorkers, SessionError> {
    let list = devices.iter().enumerate().map(|(position, device)| worker(position + 1, device, settings, memo, pool));
    Ok(DeviceWorkers {
        list: list.collect::<Result<_, _>>()?,
        tried: devices.iter().map(|device| device.report.index).collect(),
    })
}

/// Creates the engine of one device, the run's `number`-th.
fn worker(
    number: usize,
    device: &GpuDevice,
    settings: &RunSettings,
    memo: &RunMemo,
    pool: &Arc<rayon::ThreadPool>,
) -> Result<Worker, SessionError> {
    let name = format!("device {number} of this run, adapter {} ({})", device.report.index, device.report.name);
    let mut engine =
        GpuEngine::on(device).map_err(|e| SessionError::Device { name: name.clone(), source: e.into() })?;
    engine.dispatch_as(match settings.gpu_dispatch {
        GpuDispatch::Auto => None,
        GpuDispatch::Fused => Some(Mode::Fused),
        GpuDispatch::PerSystem => Some(Mode::PerSystem),
    });
    engine.solve_rates_from(if settings.engine == EngineChoice::Auto { FEWEST_THAT_PAY } else { 1 });
    let interrupt = settings.interrupt.clone();
    engine.stop_on(move || interrupt.requested());
    let engine = CheckedEngine::new(engine, &device.report);
    let fold = memo.engine().handing_over(HandOver::FindsLittle);
    // Whoever asks for the GPU gets it.
    let is_auto = settings.engine == EngineChoice::Auto;
    let engine = Beside::new(Box::new(engine), fold, Arc::clone(pool)).sharing_with_cores(is_auto);
    Ok(Worker { name, engine: Box::new(engine), on_pool: false })
}

/// Opens a device that the run has not tried yet, real ones first; for runs whose user has named no device.
fn another_device(
    settings: &RunSettings,
    memo: &RunMemo,
    pool: &Arc<rayon::ThreadPool>,
    tried: &mut Vec<usize>,
) -> Option<Worker> {
    let mut found: Vec<AdapterReport> = adapter::list_adapters().into_iter().map(|a| a.report).collect();
    loop {
        found.retain(|report| !tried.contains(&report.index));
        let next = found[adapter::choose(&found, None, SoftwarePolicy::IfNothingElse).ok()?].index;
        tried.push(next);
        let opened = open::open(Some(&DeviceChoice::Index(next)), SoftwarePolicy::IfNothingElse);
        let made =
            opened.map_err(SessionError::from).and_then(|device| worker(tried.len(), &device, settings, memo, pool));
        match made {
            Ok(worker) => return Some(worker),
            Err(why) => log::warn!("adapter {next}: {why}"),
        }
    }
}

/// Simulates every task on the workers or, if there are none, on the CPU engine. Lost workers are removed. `kept`: experiments that are prepared already, by
/// their ids in `tasks`. Stops early, without an error, when interrupted.
///
/// # Errors
/// No engine is left, or `tell` refuses news.
pub(crate) fn simulate<E: From<EngineError> + Send>(
    tasks: impl ExactSizeIterator<Item = QueuedExperiment> + Send,
    workers: &mut DeviceWorkers,
    settings: &RunSettings,
    memo: &RunMemo,
    pool: &Arc<rayon::ThreadPool>,
    kept: Arc<KeptExperiments>,
    tell: &mut (dyn FnMut(RunEvent) -> Result<(), E> + Send),
) -> Result<(), E> {
    let once = settings.memo != MemoChoice::Off;
    let on_device = !workers.is_empty();
    let options = RunOptions {
        batch: if on_device { EXPERIMENTS_A_DEVICE } else { RunOptions::default().batch },
        bytes: host_bytes(settings.threads, on_device),
        bytes_of_many: host_bytes_of_many(settings.threads, on_device),
        once,
        kept,
        ..RunOptions::default()
    };
    let interrupt = settings.interrupt.clone();
    let stop = move || interrupt.requested();
    if workers.is_empty() {
        return pool.install(|| hyperfold_host::run(tasks, Box::new(memo.engine()), &options, stop, tell));
    }
    let DeviceWorkers { list, tried } = workers;
    let mut another = |why: &EngineError| match settings.engine {
        // Only `auto` has left the choice of the engine to the program.
        EngineChoice::Auto => {
            Some(Worker { name: "CPU engine".into(), engine: Box::new(memo.engine()), on_pool: true })
        }
        // A driver that computes wrongly is for the user to know, not to pass over.
        EngineChoice::Gpu if settings.devices.is_empty() && !matches!(why, EngineError::Differs(_)) => {
            another_device(settings, memo, pool, tried)
        }
        EngineChoice::Gpu | EngineChoice::Cpu => None,
    };
    hyperfold_host::run_on_devices(tasks, list, &mut another, pool, &options, stop, tell)
}
