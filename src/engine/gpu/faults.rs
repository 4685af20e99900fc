//! Faults of a device while it runs, as values: wgpu reports most of them asynchronously.
//!
//! Layer: engine. Opens no device. All waits for a device happen here, in short pieces, so that a request to stop is noticed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyperfold_base::printable::one_line;

use super::kernels::source::SourceError;

/// Time that one submission of compiled kernels may take before the device counts as hung. A dispatch is sized to take 50 ms; the first one of a
/// large network may take seconds in software, and a minute where other programs use the device or the cores. A longer wait finds a hung device later, a
/// shorter one gives up a device that works.
pub const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(120);
/// Time that a kernel may take to compile before the device counts as hung. Software Vulkan takes minutes on a busy machine, some of them within the
/// first dispatch.
pub const COMPILE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Time between two checks for a request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// After a request to stop, work that ends within this time still ends normally.
const GRACE: Duration = Duration::from_secs(1);

/// Why a run on a GPU ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The kernels are no valid module.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A kernel needs more storage buffers than the device binds.
    #[error(
        "the device binds {found} storage buffers in a kernel, the engine needs {needed}; use another adapter or `--engine cpu`"
    )]
    TooFewBindings {
        /// Storage buffers that the device binds in a kernel.
        found: u32,
        /// Storage buffers that the kernel needs.
        needed: u32,
    },
    /// The device went away while it was in use; the driver's message.
    #[error("the device was lost: {0}")]
    Lost(String),
    /// The device has no memory left; the driver's message.
    #[error("the device is out of memory: {0}; run fewer experiments side by side, or use `--engine cpu`")]
    OutOfMemory(String),
    /// The device refused a request; the driver's message.
    #[error("the device reported an error: {0}")]
    Reported(String),
    /// A submission took longer than [`SUBMISSION_TIMEOUT`].
    #[error("the device did not finish a submission within {seconds} s")]
    Hung {
        /// Time that the host waited, in s.
        seconds: u64,
    },
    /// A kernel took longer to compile than [`COMPILE_TIMEOUT`].
    #[error("the device did not compile a kernel within {seconds} s")]
    NotCompiled {
        /// Time that the host waited, in s.
        seconds: u64,
    },
    /// The run was asked to stop, and the device was not done in time.
    #[error("the run was asked to stop while the device was at work")]
    Stopped,
    /// A buffer could not be mapped for the host; the driver's message.
    #[error("reading tables back from the device failed: {0}")]
    ReadBack(String),
}

impl RunError {
    /// Whether the device is still at work, so that none of its objects can be dropped.
    pub(super) fn leaves_work_behind(&self) -> bool {
        matches!(self, RunError::Hung { .. } | RunError::NotCompiled { .. } | RunError::Stopped)
    }
}

/// A function that returns whether to stop.
type StopSign = Box<dyn Fn() -> bool + Send + Sync>;

/// Faults of one device, in the order in which they came; the first one counts.
#[derive(Clone, Default)]
pub struct Faults {
    kept: Arc<Mutex<Vec<RunError>>>,
    stop: Arc<Mutex<Option<StopSign>>>,
    /// Whether a kernel that has not run yet is among the submitted work.
    is_cold: Arc<AtomicBool>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Faults").field(&self.kept).finish()
    }
}

impl Faults {
    /// Records what `device` reports from now on, instead of wgpu's panic. Replaces handlers set before.
    pub fn watch(device: &wgpu::Device) -> Self {
        let faults = Faults::default();
        let sink = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let text = one_line(&error.to_string());
            sink.keep(match error {
                wgpu::Error::OutOfMemory { .. } => RunError::OutOfMemory(text),
                _ => RunError::Reported(text),
            });
        }));
        let sink = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            // Dropping the device also ends here; that is no fault.
            if reason != wgpu::DeviceLostReason::Destroyed {
                sink.keep(RunError::Lost(one_line(&message)));
            }
        });
        faults
    }

    fn keep(&self, fault: RunError) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }

    /// Checks that nothing has gone wrong so far.
    ///
    /// # Errors
    /// The first fault. It stays: a device that has reported one is not used again.
    pub fn check(&self) -> Result<(), RunError> {
        match self.kept.lock().unwrap_or_else(PoisonError::into_inner).first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// The error for staging memory that wgpu did not give. wgpu reports a lack of memory by itself, but not that the device is gone.
    pub fn no_staging(&self) -> RunError {
        self.check().err().unwrap_or_else(|| RunError::Lost("it takes no more data".to_string()))
    }

    /// From now on, every wait for the device ends soon after `stop` returns true.
    pub fn stop_on(&self, stop: impl Fn() -> bool + Send + Sync + 'static) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
    }

    /// Sets whether the next submission has a kernel that has not run yet. Drivers compile part of a kernel only at its first run, which takes time.
    pub(super) fn expect_compilation(&self, is_cold: bool) {
        self.is_cold.store(is_cold, Ordering::Relaxed);
    }

    /// Waits until all submitted work is done.
    ///
    /// # Errors
    /// The device hangs, was lost, or reported an error; or the run is to stop and the device goes on.
    pub fn wait(&self, device: &wgpu::Device) -> Result<(), RunError> {
        let limit = match self.is_cold.load(Ordering::Relaxed) {
            true => (COMPILE_TIMEOUT, RunError::NotCompiled { seconds: COMPILE_TIMEOUT.as_secs() }),
            false => (SUBMISSION_TIMEOUT, RunError::Hung { seconds: SUBMISSION_TIMEOUT.as_secs() }),
        };
        self.wait_for(limit, &mut |piece| {
            let polled = device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(piece) });
            self.check()?;
            match polled {
                Ok(_) => Ok(Some(())),
                Err(wgpu::PollError::Timeout) => Ok(None),
                Err(other) => Err(RunError::Reported(one_line(&other.to_string()))),
            }
        })
    }

    /// Runs `compile` on its own thread and waits for the result, so that a request to stop is noticed meanwhile.
    ///
    /// # Errors
    /// It takes longer than [`COMPILE_TIMEOUT`], or the run is to stop. The thread then goes on alone.
    pub(super) fn compiled<T: Send + 'static>(
        &self,
        compile: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("kernels".into());
        // The waiting thread may have left by then.
        let spawned = thread.spawn(move || drop(sender.send(compile())));
        spawned.map_err(|e| RunError::Reported(format!("there is no thread to compile on: {e}")))?;
        let limit = (COMPILE_TIMEOUT, RunError::NotCompiled { seconds: COMPILE_TIMEOUT.as_secs() });
        self.wait_for(limit, &mut |piece| match receiver.recv_timeout(piece) {
            Ok(made) => Ok(Some(made)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(RunError::Reported("the driver's compiler ended without a kernel".into()))
            }
        })
    }

    /// Calls `look`, which waits for a short time, until it returns something. Gives up with the error in `limit` after the time in `limit`, or when
    /// the run is to stop.
    fn wait_for<T>(
        &self,
        limit: (Duration, RunError),
        look: &mut dyn FnMut(Duration) -> Result<Option<T>, RunError>,
    ) -> Result<T, RunError> {
        let begin = Instant::now();
        let mut asked: Option<Instant> = None;
        loop {
            if let Some(found) = look(LOOK_EVERY)? {
                return Ok(found);
            }
            let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
            if asked.is_none() && stop.as_ref().is_some_and(|stop| stop()) {
                asked = Some(Instant::now());
            }
            drop(stop);
            if asked.is_some_and(|since| since.elapsed() >= GRACE) {
                return Err(RunError::Stopped);
            }
            if begin.elapsed() >= limit.0 {
                return Err(limit.1);
            }
        }
    }

    /// Passes the first `bytes` bytes of a mappable buffer to `take`, after everything submitted so far.
    ///
    /// # Errors
    /// It fails as [`Faults::wait`] does, or the mapping failed.
    pub fn read(
        &self,
        device: &wgpu::Device,
        staging: &wgpu::Buffer,
        bytes: u64,
        take: impl FnOnce(&[u8]),
    ) -> Result<(), RunError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, ..bytes, move |result| {
            // The receiver is gone only if `wait` below has failed. Then nobody asks for the outcome.
            let _ = sender.send(result);
        });
        self.wait(device)?;
        let failed = |e: String| RunError::ReadBack(one_line(&e));
        receiver.try_recv().map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
        {
            let view = staging.get_mapped_range(..bytes).map_err(|e| failed(e.to_string()))?;
            take(&view);
        }
        staging.unmap();
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_takes_its_time_and_a_request_to_stop_is_heard() {
        let faults = Faults::default();
        assert_eq!(faults.compiled(|| 7), Ok(7));
        assert!(matches!(faults.compiled(|| -> u32 { panic!("the driver fails") }), Err(RunError::Reported(_))));
        let asked = Arc::new(AtomicBool::new(false));
        let sign = Arc::clone(&asked);
        faults.stop_on(move || sign.load(Ordering::Relaxed));
        let slow = || {
            std::thread::sleep(Duration::from_millis(300));
            8
        };
        assert_eq!(faults.compiled(slow), Ok(8));
        asked.store(true, Ordering::Relaxed);
        assert_eq!(faults.compiled(slow), Ok(8), "what ends soon ends in order");
        let clock = Instant::now();
        let never = || std::thread::sleep(Duration::from_secs(600));
        assert_eq!(faults.compiled(never), Err(RunError::Stopped));
        assert!(clock.elapsed() < Duration::from_secs(10), "{:?}", clock.elapsed());
    }

    #[test]
    fn what_takes_too_long_is_told() {
        let faults = Faults::default();
        let over = (Duration::from_millis(20), RunError::Hung { seconds: 0 });
        let look = &mut |piece| {
            std::thread::sleep(piece);
            Ok(None::<()>)
        };
        assert_eq!(faults.wait_for(over, look), Err(RunError::Hung { seconds: 0 }));
    }
}
