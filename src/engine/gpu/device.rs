//! An open GPU device whose failures are values: nothing panics.
//!
//! Layer: engine. A device is opened with all limits of its adapter and 64-bit integers. It does not know what runs on it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyperfold_base::printable::one_line;

use super::adapter::{AdapterReport, FoundAdapter, GpuError};
use super::faults::SUBMISSION_TIMEOUT;

/// An open device with its queue. Errors that wgpu reports asynchronously are kept and returned by
/// [`GpuDevice::check`]; nothing panics.
pub struct GpuDevice {
    /// The device, from which buffers and kernels are made.
    pub device: wgpu::Device,
    /// Its queue, which takes submissions.
    pub queue: wgpu::Queue,
    /// Facts that its adapter reports.
    pub report: AdapterReport,
    faults: Arc<Mutex<Vec<GpuError>>>,
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuDevice({})", self.report)
    }
}

/// Opens the adapter without a test. Only the self-test may use the result.
///
/// # Errors
/// No 64-bit integers, or the driver gives no device.
pub fn open_untested(found: &FoundAdapter) -> Result<GpuDevice, GpuError> {
    let report = found.report.clone();
    if !report.int64 {
        return Err(GpuError::NoInt64(report.name));
    }
    let optional = wgpu::Features::TIMESTAMP_QUERY & found.adapter.features();
    let (device, queue) = pollster::block_on(found.adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("hyperfold"),
        required_features: wgpu::Features::SHADER_INT64 | optional,
        // All limits of the adapter: wgpu's defaults would cap a storage binding at 128 MiB on every machine.
        required_limits: found.adapter.limits(),
        experimental_features: wgpu::ExperimentalFeatures::disabled(),
        memory_hints: wgpu::MemoryHints::Performance,
        trace: wgpu::Trace::Off,
    }))
    .map_err(|e| GpuError::NoDevice { adapter: report.name.clone(), reason: e.to_string() })?;

    let faults = Arc::new(Mutex::new(Vec::new()));
    let (sink, adapter) = (Arc::clone(&faults), report.name.clone());
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        keep(&sink, GpuError::Reported { adapter: adapter.clone(), reason: one_line(&error.to_string()) });
    }));
    let (sink, adapter) = (Arc::clone(&faults), report.name.clone());
    device.set_device_lost_callback(move |reason, message| {
        // Dropping the device also ends here; that is no fault.
        if reason != wgpu::DeviceLostReason::Destroyed {
            keep(&sink, GpuError::Lost { adapter: adapter.clone(), reason: one_line(&message) });
        }
    });
    Ok(GpuDevice { device, queue, report, faults })
}

impl GpuDevice {
    /// Fails if anything went wrong since the device was opened. Faults stay: a device that has reported one is not used again.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), GpuError> {
        match self.lock().first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// All faults so far, for the log.
    pub fn faults(&self) -> Vec<GpuError> {
        self.lock().clone()
    }

    /// Waits until everything submitted so far is done, for `patience` at most.
    ///
    /// # Errors
    /// A device that hangs, was lost, or reported an error.
    pub(super) fn wait(&self, patience: Duration) -> Result<(), GpuError> {
        let polled = self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(patience) });
        self.check()?;
        polled.map(|_| ()).map_err(|e| match e {
            wgpu::PollError::Timeout => {
                // Dropping a device that is still at work would wait for it.
                std::mem::forget((self.device.clone(), self.queue.clone()));
                GpuError::Hung { adapter: self.report.name.clone(), seconds: patience.as_secs() }
            }
            other => GpuError::Reported { adapter: self.report.name.clone(), reason: one_line(&other.to_string()) },
        })
    }

    /// Reads a mappable buffer (`MAP_READ`) after everything submitted so far. Returns its words.
    ///
    /// # Errors
    /// It fails as [`GpuDevice::wait`] does, or the mapping itself failed.
    pub fn read_words(&self, staging: &wgpu::Buffer) -> Result<Vec<u32>, GpuError> {
        let failed = |reason: String| GpuError::ReadBack { adapter: self.report.name.clone(), reason };
        let (sender, receiver) = std::sync::mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, .., move |result| {
            // The receiver is gone only if `wait` below has failed. Then nobody asks for the outcome.
            let _ = sender.send(result);
        });
        self.wait(SUBMISSION_TIMEOUT)?;
        receiver.try_recv().map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
        let words = {
            let view = staging.get_mapped_range(..).map_err(|e| failed(e.to_string()))?;
            bytemuck::pod_collect_to_vec::<u8, u32>(&view)
        };
        staging.unmap();
        self.check()?;
        Ok(words)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<GpuError>> {
        // A panic elsewhere while it holds the lock cannot leave the Vec in a state that matters here.
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(sink: &Mutex<Vec<GpuError>>, fault: GpuError) {
    sink.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
}
