//! Opens the adapter that is wanted, and only if it passes [`super::selftest`].
//!
//! Layer: engine.

use super::adapter::{AdapterReport, DeviceChoice, FoundAdapter, GpuError, SoftwarePolicy, choose, list_adapters};
use super::device::{GpuDevice, open_untested};
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

/// Opens an adapter and runs the self-test on it.
///
/// # Errors
/// As [`open_untested`]; a failed sub-test is in the returned value.
pub fn self_test(found: &FoundAdapter) -> Result<SelfTest, GpuError> {
    Ok(selftest::run(&open_untested(found)?))
}
