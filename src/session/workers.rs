//! Devices become engines, and experiments are handed to them.
//!
//! Layer: session. Which devices is decided in [`super::devices`].

use crate::batch::{self, QueuedExperiment, RunEvent, RunOptions, Worker};
use crate::engine::EngineError;
use crate::engine::beside::Beside;
use crate::engine::gpu::rates::FEWEST_THAT_PAY;
use crate::engine::gpu::{GpuDevice, GpuEngine, Mode};

use super::error::SessionError;
use super::memo::RunMemo;
use super::settings::{EngineChoice, GpuDispatch, MemoChoice, RunSettings};

/// Bytes of the host's memory that a batch may take for each thread. Our choice: several large training jobs (some 400 MB each at 128 GPUs) a thread.
const BYTES_A_THREAD: u64 = 1 << 30;
/// The same of a batch with more experiments than threads. Our choice: such a batch only saves a few waits for its last experiments.
const BYTES_OF_MANY_A_THREAD: u64 = 192 << 20;
/// The same for a device, which has thousands of threads.
const BYTES_A_DEVICE: u64 = 12 << 30;

/// About how many bytes of the host's memory the experiments of a batch may take.
pub(crate) fn host_bytes(threads: usize, on_device: bool) -> u64 {
    if on_device { BYTES_A_DEVICE } else { BYTES_A_THREAD * threads.max(2) as u64 }
}

/// The same where there are more of them than threads.
pub(crate) fn host_bytes_of_many(threads: usize, on_device: bool) -> u64 {
    if on_device { BYTES_A_DEVICE } else { BYTES_OF_MANY_A_THREAD * threads.max(2) as u64 }
}

/// An engine a device.
///
/// # Errors
/// A device that lacks what the kernels need, or refuses them.
pub(crate) fn workers(
    devices: &[GpuDevice],
    settings: &RunSettings,
    memo: &RunMemo,
) -> Result<Vec<Worker>, SessionError> {
    let worker = |(place, device): (usize, &GpuDevice)| {
        let name =
            format!("device {} of this run, adapter {} ({})", place + 1, device.report.index, device.report.name);
        let mut engine =
            GpuEngine::on(device).map_err(|e| SessionError::Device { name: name.clone(), source: e.into() })?;
        engine.dispatch_as(match settings.gpu_dispatch {
            GpuDispatch::Auto => None,
            GpuDispatch::Fused => Some(Mode::Fused),
            GpuDispatch::PerSystem => Some(Mode::PerSystem),
        });
        engine.solve_rates_from(if settings.engine == EngineChoice::Auto { FEWEST_THAT_PAY } else { 1 });
        Ok(Worker { name, engine: Box::new(Beside::new(Box::new(engine), memo.engine())), on_pool: false })
    };
    devices.iter().enumerate().map(worker).collect()
}

/// Simulates every task, on the workers or, where there are none, on the CPU engine. Workers that are lost are taken out. Stops early, without an error, when interrupted.
///
/// # Errors
/// No engine is left to go on, or `tell` refuses news.
pub(crate) fn simulate<E: From<EngineError> + Send>(
    tasks: impl ExactSizeIterator<Item = QueuedExperiment> + Send,
    workers: &mut Vec<Worker>,
    settings: &RunSettings,
    memo: &RunMemo,
    pool: &rayon::ThreadPool,
    tell: &mut (dyn FnMut(RunEvent) -> Result<(), E> + Send),
) -> Result<(), E> {
    let once = settings.memo != MemoChoice::Off;
    let on_device = !workers.is_empty();
    let options = RunOptions {
        bytes: host_bytes(settings.jobs, on_device),
        bytes_of_many: host_bytes_of_many(settings.jobs, on_device),
        once,
        ..RunOptions::default()
    };
    let interrupt = settings.interrupt.clone();
    let stop = move || interrupt.requested();
    if workers.is_empty() {
        return pool.install(|| batch::run(tasks, Box::new(memo.engine()), &options, stop, tell));
    }
    // Only `auto` has left the choice of the engine to us.
    let cpu = || Worker { name: "CPU engine".into(), engine: Box::new(memo.engine()), on_pool: true };
    let fallback = (settings.engine == EngineChoice::Auto).then_some(&cpu as &dyn Fn() -> Worker);
    batch::run_on_devices(tasks, workers, fallback, pool, &options, stop, tell)
}
