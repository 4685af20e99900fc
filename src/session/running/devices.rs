//! Chooses the engine and opens the devices of a run from the options.
//!
//! Layer: session. Opens and self-tests adapters. The caller decides whether a batch is large enough for a GPU.

use hyperfold_engine::gpu::adapter::{self, AdapterReport};
use hyperfold_engine::gpu::{DeviceChoice, GpuDevice, SoftwarePolicy, open};
use hyperfold_results::manifest::AdapterUsed;

use crate::error::SessionError;
use crate::running::update::EngineUsed;
use crate::settings::{EngineChoice, RunSettings};

/// Chooses an engine and its devices; no devices mean the CPU engine. `pays` returns whether the batch is large enough for a real GPU, and is called only under
/// `auto`.
///
/// No adapter for `--engine gpu`, a `--device` that does not exist or fails its self-test, or options that contradict each other.
pub(crate) fn choose(
    settings: &RunSettings,
    pays: impl FnOnce() -> bool,
) -> Result<(EngineUsed, Vec<GpuDevice>), SessionError> {
    let cpu = |reason: String| Ok((EngineUsed { engine: "cpu", reason, adapters: Vec::new() }, Vec::new()));
    match settings.engine {
        EngineChoice::Cpu if !settings.devices.is_empty() => {
            refuse("--device: there is nothing to choose with --engine cpu; leave one of them out".into())
        }
        EngineChoice::Cpu => cpu("as asked by --engine cpu".into()),
        EngineChoice::Gpu => {
            gpu("as asked by --engine gpu", open_all(&settings.devices, SoftwarePolicy::IfNothingElse)?)
        }
        EngineChoice::Auto if !pays() => cpu("the batch is too small to pay for a GPU".into()),
        EngineChoice::Auto => match open_all(&settings.devices, SoftwarePolicy::Never) {
            Ok(opened) => match opened.0.iter().find(|d| d.report.is_software()) {
                Some(soft) => refuse(format!(
                    "--device {}: a software adapter is slower than the CPU engine and never chosen by --engine auto; add --engine gpu to use it",
                    soft.report.name
                )),
                None => gpu("a real GPU is there and the batch is large enough", opened),
            },
            // A device that the user named must exist; otherwise the CPU is a fine answer.
            Err(error) if !settings.devices.is_empty() => Err(error),
            Err(error) => cpu(format!("no usable GPU: {error}")),
        },
    }
}

/// Open devices, and the reasons why others were left out.
type Opened = (Vec<GpuDevice>, Vec<String>);

fn refuse<T>(why: String) -> Result<T, SessionError> {
    Err(SessionError::Input(why))
}

/// Opens the named devices. An adapter that is named several times is opened as often, because each has batches of its own. Also returns the devices that were
/// left out, with reasons.
fn open_all(choices: &[DeviceChoice], policy: SoftwarePolicy) -> Result<Opened, SessionError> {
    match choices {
        [] => Ok((vec![open::open(None, policy)?], Vec::new())),
        [DeviceChoice::Name(name)] if name.eq_ignore_ascii_case(ALL) => open_every(policy),
        _ => {
            if choices.iter().any(|c| matches!(c, DeviceChoice::Name(name) if name.eq_ignore_ascii_case(ALL))) {
                return refuse(format!("--device {ALL}: this means every GPU already; leave the other --device out"));
            }
            let devices = choices.iter().map(|choice| open::open(Some(choice), policy)).collect::<Result<_, _>>()?;
            Ok((devices, Vec::new()))
        }
    }
}

/// The value of `--device` that means every GPU.
const ALL: &str = "all";

/// Opens every real GPU that passes its self-test; if there is none, software adapters, if `policy` allows them.
fn open_every(policy: SoftwarePolicy) -> Result<Opened, SessionError> {
    let found: Vec<AdapterReport> = adapter::list_adapters().into_iter().map(|a| a.report).collect();
    // Returns the error if there is no adapter to take.
    adapter::choose(&found, None, policy)?;
    let real = found.iter().any(|r| !r.is_software());
    let (mut devices, mut left_out) = (Vec::new(), Vec::new());
    for report in found.iter().filter(|r| r.is_software() != real) {
        match open::open(Some(&DeviceChoice::Index(report.index)), policy) {
            Ok(device) => devices.push(device),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    match devices.is_empty() {
        true => refuse(format!("--device {ALL}: {}", left_out.join("; "))),
        false => Ok((devices, left_out)),
    }
}

fn gpu(reason: &str, (devices, left_out): Opened) -> Result<(EngineUsed, Vec<GpuDevice>), SessionError> {
    let adapters = devices.iter().map(|d| used(&d.report)).collect();
    let exclusions = left_out.iter().map(|why| format!("; left out: {why}"));
    Ok((
        EngineUsed { engine: "gpu", reason: std::iter::once(reason.to_string()).chain(exclusions).collect(), adapters },
        devices,
    ))
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

    fn settings(engine: EngineChoice, devices: &[&str]) -> RunSettings {
        let devices = devices.iter().map(|d| d.parse().unwrap()).collect();
        RunSettings { engine, devices, threads: 1, ..RunSettings::default() }
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
    fn all_is_every_gpu_and_nothing_beside_it() {
        let error = choose(&settings(EngineChoice::Gpu, &["all", "0"]), || true).unwrap_err().to_string();
        assert!(error.contains("--device all"), "{error}");
    }

    #[test]
    fn contradictions_are_refused() {
        let error = choose(&settings(EngineChoice::Cpu, &["0"]), || true).unwrap_err().to_string();
        assert!(error.contains("--device") && error.contains("--engine cpu"), "{error}");
    }
}
