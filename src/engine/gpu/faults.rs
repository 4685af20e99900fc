//! What goes wrong on a device while it runs, as values: wgpu reports most of it asynchronously.
//!
//! Layer: engine. Opens no device.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::source::SourceError;

/// How long one submission may take before the device counts as hung. The first dispatch compiles its kernel, which takes
/// software Vulkan one to three minutes on a busy machine.
pub const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(600);

/// Why a run on a GPU ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "the device binds {found} storage buffers in a kernel, the engine needs {needed}; use another adapter or `--engine cpu`"
    )]
    TooFewBindings { found: u32, needed: u32 },
    #[error("the device was lost: {0}")]
    Lost(String),
    #[error("the device is out of memory: {0}; run fewer experiments side by side, or use `--engine cpu`")]
    OutOfMemory(String),
    #[error("the device reported an error: {0}")]
    Reported(String),
    #[error("the device did not finish a submission within {seconds} s")]
    Hung { seconds: u64 },
    #[error("reading tables back from the device failed: {0}")]
    ReadBack(String),
}

/// Faults of one device, kept in the order they came; the first one counts.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    kept: Arc<Mutex<Vec<RunError>>>,
}

impl Faults {
    /// Keeps what `device` reports from now on, instead of wgpu's panic. Replaces handlers set before.
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

    /// Whether nothing has gone wrong so far.
    ///
    /// # Errors
    /// The first fault. It stays: a device that has reported one is not used again.
    pub fn check(&self) -> Result<(), RunError> {
        match self.kept.lock().unwrap_or_else(PoisonError::into_inner).first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Why wgpu gives no staging memory. It reports a want of memory, but not that the device is gone.
    pub fn no_staging(&self) -> RunError {
        self.check().err().unwrap_or_else(|| RunError::Lost("it takes no more data".to_string()))
    }

    /// Waits until all that was submitted is done.
    ///
    /// # Errors
    /// A device that hangs, was lost, or reported an error.
    pub fn wait(&self, device: &wgpu::Device) -> Result<(), RunError> {
        let polled = device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(SUBMISSION_TIMEOUT) });
        self.check()?;
        polled.map(|_| ()).map_err(|e| match e {
            wgpu::PollError::Timeout => RunError::Hung { seconds: SUBMISSION_TIMEOUT.as_secs() },
            other => RunError::Reported(one_line(&other.to_string())),
        })
    }

    /// Hands the first `bytes` bytes of a mappable buffer to `take`, after everything submitted so far.
    ///
    /// # Errors
    /// As [`Faults::wait`], or the mapping failed.
    pub fn read(
        &self,
        device: &wgpu::Device,
        staging: &wgpu::Buffer,
        bytes: u64,
        take: impl FnOnce(&[u8]),
    ) -> Result<(), RunError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, ..bytes, move |result| {
            // The receiver is gone only if `wait` below has failed, and then nobody asks for the outcome.
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
