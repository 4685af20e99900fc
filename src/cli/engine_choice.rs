//! `--engine` and `--device` become an engine.
//!
//! Layer: cli. Opens and self-tests adapters; whether a batch pays for a GPU is the caller's to say.

use anyhow::bail;

use crate::engine::gpu::adapter::{self, AdapterReport};
use crate::engine::gpu::{DeviceChoice, GpuDevice, SoftwarePolicy};
use crate::results::manifest::AdapterUsed;

use super::args::EngineChoice;
use super::simulator::{EngineUsed, RunSettings};

/// What was decided, with the devices to run on; none of them means the CPU engine. `pays` says whether the batch is
/// large enough for a real GPU to be worth it, and is asked only under `auto`.
///
/// # Errors
/// No adapter for `--engine gpu`, a `--device` that is not there or fails its self-test, options that contradict each other.
pub fn choose(settings: &RunSettings, pays: impl FnOnce() -> bool) -> anyhow::Result<(EngineUsed, Vec<GpuDevice>)> {
    let cpu = |reason: String| Ok((EngineUsed { engine: "cpu", reason, adapters: Vec::new() }, Vec::new()));
    match settings.engine {
        EngineChoice::Cpu if !settings.devices.is_empty() => {
            bail!("--device: there is nothing to choose with --engine cpu; leave one of them out")
        }
        EngineChoice::Cpu => cpu("as asked by --engine cpu".into()),
        EngineChoice::Gpu => gpu("as asked by --engine gpu".into(), open_all(&settings.devices, SoftwarePolicy::IfNothingElse)?),
        EngineChoice::Auto if !pays() => cpu("the batch is too small to pay for a GPU".into()),
        EngineChoice::Auto => match open_all(&settings.devices, SoftwarePolicy::Never) {
            Ok(devices) => match devices.iter().find(|d| d.report.is_software()) {
                Some(soft) => bail!(
                    "--device {}: a software adapter is slower than the CPU engine and never chosen by --engine auto; add --engine gpu to use it",
                    soft.report.name
                ),
                None => gpu("a real GPU is there and the batch is large enough".into(), devices),
            },
            // A device that the user named must be there; otherwise the CPU is a fine answer.
            Err(error) if !settings.devices.is_empty() => Err(error),
            Err(error) => cpu(format!("no usable GPU: {error}")),
        },
    }
}

fn open_all(choices: &[DeviceChoice], policy: SoftwarePolicy) -> anyhow::Result<Vec<GpuDevice>> {
    if choices.is_empty() {
        return Ok(vec![adapter::open(None, policy)?]);
    }
    let mut devices: Vec<GpuDevice> = Vec::new();
    for choice in choices {
        let device = adapter::open(Some(choice), policy)?;
        if devices.iter().any(|d| d.report.index == device.report.index) {
            bail!("--device {choice}: this is {}, which was named before; name each adapter once", device.report.name);
        }
        devices.push(device);
    }
    Ok(devices)
}

fn gpu(reason: String, devices: Vec<GpuDevice>) -> anyhow::Result<(EngineUsed, Vec<GpuDevice>)> {
    let adapters = devices.iter().map(|d| used(&d.report)).collect();
    Ok((EngineUsed { engine: "gpu", reason, adapters }, devices))
}

fn used(report: &AdapterReport) -> AdapterUsed {
    AdapterUsed {
        name: report.name.clone(),
        backend: report.backend.clone(),
        driver: report.driver.clone(),
        driver_info: report.driver_info.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::GpuDispatch;
    use crate::cli::interrupt::Interrupt;

    fn settings(engine: EngineChoice, devices: &[&str]) -> RunSettings {
        let devices = devices.iter().map(|d| d.parse().unwrap()).collect();
        RunSettings { engine, devices, gpu_dispatch: GpuDispatch::Auto, jobs: 1, memo: Default::default(), interrupt: Interrupt::default() }
    }

    #[test]
    fn the_cpu_needs_no_adapter() {
        let (used, devices) = choose(&settings(EngineChoice::Cpu, &[]), || panic!("only auto asks")).unwrap();
        assert_eq!((used.engine, devices.len()), ("cpu", 0));
        let (used, _) = choose(&settings(EngineChoice::Auto, &[]), || false).unwrap();
        assert_eq!(used.engine, "cpu");
        assert!(used.reason.contains("too small"), "{}", used.reason);
    }

    #[test]
    fn contradictions_are_refused() {
        let error = choose(&settings(EngineChoice::Cpu, &["0"]), || true).unwrap_err().to_string();
        assert!(error.contains("--device") && error.contains("--engine cpu"), "{error}");
    }
}
