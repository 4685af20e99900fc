//! Opens the requested adapter, only if it passes [`super::selftest`].
//!
//! Layer: engine.

use std::time::{Duration, Instant};

use super::adapter::{AdapterReport, DeviceChoice, FoundAdapter, GpuError, SoftwarePolicy, choose, list_adapters};
use super::batch_runner::GpuEngine;
use super::device::{GpuDevice, open_untested};
use super::faults::RunError;
use super::selftest::{self, SelfTest};

/// Finds, opens and self-tests an adapter.
///
/// # Errors
/// See [`GpuError`]: none found, none that fits, or one that fails the self-test.
pub fn open(choice: Option<&DeviceChoice>, policy: SoftwarePolicy) -> Result<GpuDevice, GpuError> {
    let found = list_adapters();
    let reports: Vec<AdapterReport> = found.iter().map(|f| f.report.clone()).collect();
    reports.iter().for_each(|r| log::debug!("adapter {r}; 64-bit integers: {}", r.int64));
    let chosen = &found[choose(&reports, choice, policy)?];
    log::info!("adapter chosen: {}", chosen.report);
    let device = open_untested(chosen)?;
    let test = selftest::run(&device);
    log::info!(
        "self-test of {}: {} in {:.3} s",
        device.report.name,
        if test.passed() { "passed" } else { "failed" },
        test.wall.as_secs_f64()
    );
    if !test.passed() {
        return Err(GpuError::SelfTestFailed { adapter: device.report.name.clone(), failed: test.failures() });
    }
    Ok(device)
}

/// Result of compiling the engine's own kernels on an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineKernels {
    /// Compiled; the time that it took.
    Compiled(Duration),
    /// Not compiled within this time; the test did not wait any longer.
    NotWithin(Duration),
    /// Refused by the driver; the reason.
    Refused(String),
}

/// Results of the tests of one adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterTest {
    /// Findings of the small kernels: loops, barriers, atomics, 64-bit arithmetic.
    pub self_test: SelfTest,
    /// `None`: not compiled, because the self-test failed.
    pub kernels: Option<EngineKernels>,
}

impl AdapterTest {
    /// Whether a run can use the adapter, as far as is known.
    pub fn passed(&self) -> bool {
        self.self_test.passed() && !matches!(self.kernels, Some(EngineKernels::Refused(_)))
    }
}

/// Opens an adapter, runs the self-test on it, and compiles the kernel that most runs need, for at most `patience`.
///
/// # Errors
/// It fails as [`open_untested`] does. A failed sub-test is in the returned value.
pub fn test(found: &FoundAdapter, patience: Duration) -> Result<AdapterTest, GpuError> {
    let device = open_untested(found)?;
    let self_test = selftest::run(&device);
    let kernels = self_test.passed().then(|| compile(&device, patience));
    Ok(AdapterTest { self_test, kernels })
}

fn compile(device: &GpuDevice, patience: Duration) -> EngineKernels {
    let begin = Instant::now();
    let compiled = GpuEngine::on(device).and_then(|mut engine| {
        engine.stop_on(move || begin.elapsed() >= patience);
        engine.compile().inspect_err(|error| engine.abandon_after(error))
    });
    match compiled {
        Ok(()) => EngineKernels::Compiled(begin.elapsed()),
        Err(RunError::Stopped) => EngineKernels::NotWithin(patience),
        Err(refused) => EngineKernels::Refused(refused.to_string()),
    }
}
