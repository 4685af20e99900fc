//! GPU adapters: which exist, what they report, which one is chosen, and why none can be used.
//!
//! Layer: engine. Opens no adapter: `device` does. `open` hands out no adapter that fails the self-test.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Reason why there is no usable device, or why a device was given up.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GpuError {
    /// The machine has no adapter.
    #[error("no GPU adapter found; install a Vulkan driver (`hyperfold doctor` says which), or use `--engine cpu`")]
    NoAdapter,
    /// There are only software adapters, which `--engine auto` does not take; their names.
    #[error(
        "only software adapters found ({0}); name one with `--device` or use `--engine gpu` to take it, or use `--engine cpu`"
    )]
    OnlySoftware(String),
    /// No adapter is the one that `--device` names.
    #[error("--device {choice}: no such adapter; there are: {found}")]
    UnknownDevice {
        /// The text that the user wrote.
        choice: String,
        /// Adapters that there are.
        found: String,
    },
    /// Several adapters have the name that `--device` gives.
    #[error("--device {choice}: matches more than one adapter ({found}); use its number")]
    AmbiguousDevice {
        /// The text that the user wrote.
        choice: String,
        /// Adapters that match it.
        found: String,
    },
    /// The adapter of this name lacks `SHADER_INT64`.
    #[error(
        "adapter `{0}` has no 64-bit integers in shaders (SHADER_INT64), which the engine needs; use another adapter or `--engine cpu`"
    )]
    NoInt64(String),
    /// The adapter computes wrongly.
    #[error(
        "adapter `{adapter}` fails the self-test ({failed}); update its driver, use another adapter or `--engine cpu`"
    )]
    SelfTestFailed {
        /// Name of the adapter, as the driver gives it.
        adapter: String,
        /// Sub-tests that failed, each with what was wrong.
        failed: String,
    },
    /// The driver did not open the adapter.
    #[error("adapter `{adapter}` gave no device: {reason}")]
    NoDevice {
        /// Name of the adapter, as the driver gives it.
        adapter: String,
        /// Error of the driver, in words.
        reason: String,
    },
    /// The device went away while it was in use.
    #[error("GPU `{adapter}` was lost: {reason}")]
    Lost {
        /// Name of the adapter, as the driver gives it.
        adapter: String,
        /// Error of the driver, in words.
        reason: String,
    },
    /// The device refused a request.
    #[error("GPU `{adapter}` reported an error: {reason}")]
    Reported {
        /// Name of the adapter, as the driver gives it.
        adapter: String,
        /// Error of the driver, in words.
        reason: String,
    },
    /// A submission took longer than [`super::faults::SUBMISSION_TIMEOUT`].
    #[error("GPU `{adapter}` did not finish a submission within {seconds} s")]
    Hung {
        /// Name of the adapter, as the driver gives it.
        adapter: String,
        /// Time that the host waited, in s.
        seconds: u64,
    },
    /// A buffer could not be mapped for the host.
    #[error("GPU `{adapter}`: reading a buffer back failed: {reason}")]
    ReadBack {
        /// Name of the adapter, as the driver gives it.
        adapter: String,
        /// Error of the driver, in words.
        reason: String,
    },
}

/// Adapter limits that decide what the engine can run, in bytes or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterLimits {
    /// Largest storage buffer one binding can show, bytes.
    pub storage_binding_bytes: u64,
    /// Largest buffer, bytes.
    pub buffer_bytes: u64,
    /// Storage buffers one kernel may bind.
    pub storage_buffers: u32,
    /// Workgroup memory, bytes.
    pub workgroup_bytes: u32,
    /// Invocations in one workgroup.
    pub workgroup_invocations: u32,
    /// Workgroups in one dimension of a dispatch.
    pub workgroups: u32,
}

/// Facts that an adapter reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterReport {
    /// Its number in the listing, which `--device INDEX` names.
    pub index: usize,
    /// Name of the device, as its driver gives it.
    pub name: String,
    /// `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// Name of the driver.
    pub driver: String,
    /// The driver's version as it describes itself.
    pub driver_info: String,
    /// 64-bit integers in shaders, which the engine requires.
    pub int64: bool,
    /// Timestamps on the device, used for profiles where present.
    pub timestamps: bool,
    /// Limits of buffers and kernels.
    pub limits: AdapterLimits,
}

impl AdapterReport {
    /// Whether it runs on the CPU. Such an adapter serves parity tests, not speed.
    pub fn is_software(&self) -> bool {
        self.kind == "software"
    }
}

impl fmt::Display for AdapterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} ({}, {}, {} {})",
            self.index, self.name, self.backend, self.kind, self.driver, self.driver_info
        )
    }
}

/// An adapter as a user names it: its number in `hyperfold doctor`'s listing, or a part of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// Its number in the listing, from 0.
    Index(usize),
    /// Matched without regard to case, anywhere in the adapter's name.
    Name(String),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err("write an adapter's number or a part of its name, as `hyperfold doctor` lists them".into());
        }
        Ok(match text.parse() {
            Ok(index) => DeviceChoice::Index(index),
            Err(_) => DeviceChoice::Name(text.to_string()),
        })
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Index(index) => write!(f, "{index}"),
            DeviceChoice::Name(name) => f.write_str(name),
        }
    }
}

/// Whether a software adapter may be chosen if none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftwarePolicy {
    /// Never (`--engine auto`): software Vulkan is slower than the CPU engine.
    Never,
    /// Only if there is no real GPU (`--engine gpu`).
    IfNothingElse,
}

/// An adapter found on this machine, not yet opened.
pub struct FoundAdapter {
    /// Facts that it reports about itself.
    pub report: AdapterReport,
    pub(super) adapter: wgpu::Adapter,
}

/// All adapters of Vulkan, Metal and DX12, in the order the drivers list them.
pub fn list_adapters() -> Vec<FoundAdapter> {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = backends;
    let instance = wgpu::Instance::new(desc);
    pollster::block_on(instance.enumerate_adapters(backends))
        .into_iter()
        .enumerate()
        .map(|(index, adapter)| FoundAdapter { report: describe(index, &adapter), adapter })
        .collect()
}

fn describe(index: usize, adapter: &wgpu::Adapter) -> AdapterReport {
    let info = adapter.get_info();
    let limits = adapter.limits();
    let features = adapter.features();
    AdapterReport {
        index,
        name: info.name,
        backend: info.backend.to_string(),
        kind: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete",
            wgpu::DeviceType::IntegratedGpu => "integrated",
            wgpu::DeviceType::VirtualGpu => "virtual",
            wgpu::DeviceType::Cpu => "software",
            wgpu::DeviceType::Other => "other",
        },
        driver: info.driver,
        driver_info: info.driver_info,
        int64: features.contains(wgpu::Features::SHADER_INT64),
        timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        limits: AdapterLimits {
            storage_binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            storage_buffers: limits.max_storage_buffers_per_shader_stage,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            workgroup_invocations: limits.max_compute_invocations_per_workgroup,
            workgroups: limits.max_compute_workgroups_per_dimension,
        },
    }
}

/// The position in `found` of the adapter that `choice` names. Without a choice, the best one: discrete before integrated before virtual or other. A
/// software adapter is only chosen where `policy` allows it.
///
/// # Errors
/// No adapter found, none that matches, or only software where that is not allowed.
pub fn choose(
    found: &[AdapterReport],
    choice: Option<&DeviceChoice>,
    policy: SoftwarePolicy,
) -> Result<usize, GpuError> {
    let names = || found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if found.is_empty() {
        return Err(GpuError::NoAdapter);
    }
    match choice {
        Some(DeviceChoice::Index(index)) => found
            .iter()
            .position(|r| r.index == *index)
            .ok_or_else(|| GpuError::UnknownDevice { choice: index.to_string(), found: names() }),
        Some(DeviceChoice::Name(name)) => {
            let wanted = name.to_lowercase();
            let hits: Vec<usize> =
                (0..found.len()).filter(|&i| found[i].name.to_lowercase().contains(&wanted)).collect();
            match hits[..] {
                [one] => Ok(one),
                [] => Err(GpuError::UnknownDevice { choice: name.clone(), found: names() }),
                _ => Err(GpuError::AmbiguousDevice { choice: name.clone(), found: names() }),
            }
        }
        None => {
            // An adapter without 64-bit integers cannot run the engine, so it ranks last in its kind.
            let rank = |r: &AdapterReport| {
                let kind = match r.kind {
                    "discrete" => 0,
                    "integrated" => 1,
                    "software" => 3,
                    _ => 2,
                };
                (r.is_software(), !r.int64, kind, r.index)
            };
            let best = (0..found.len()).min_by_key(|&i| rank(&found[i])).expect("found is not empty");
            if found[best].is_software() && policy == SoftwarePolicy::Never {
                return Err(GpuError::OnlySoftware(names()));
            }
            Ok(best)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(index: usize, name: &str, kind: &'static str, int64: bool) -> AdapterReport {
        let limits = AdapterLimits {
            storage_binding_bytes: 1 << 27,
            buffer_bytes: 1 << 30,
            storage_buffers: 8,
            workgroup_bytes: 32768,
            workgroup_invocations: 1024,
            workgroups: 65535,
        };
        AdapterReport {
            index,
            name: name.into(),
            backend: "vulkan".into(),
            kind,
            driver: "d".into(),
            driver_info: "1".into(),
            int64,
            timestamps: true,
            limits,
        }
    }

    #[test]
    fn real_gpus_come_first_and_software_only_when_allowed() {
        let found = [
            report(0, "llvmpipe", "software", true),
            report(1, "Iris", "integrated", true),
            report(2, "H200", "discrete", true),
        ];
        assert_eq!(choose(&found, None, SoftwarePolicy::Never), Ok(2));
        assert_eq!(choose(&found[..1], None, SoftwarePolicy::IfNothingElse), Ok(0));
        assert!(matches!(choose(&found[..1], None, SoftwarePolicy::Never), Err(GpuError::OnlySoftware(_))));
        assert_eq!(choose(&[], None, SoftwarePolicy::IfNothingElse), Err(GpuError::NoAdapter));
    }

    #[test]
    fn an_adapter_without_wide_integers_is_not_preferred() {
        let found = [report(0, "old", "discrete", false), report(1, "new", "integrated", true)];
        assert_eq!(choose(&found, None, SoftwarePolicy::Never), Ok(1));
    }

    #[test]
    fn devices_are_named_by_number_or_part_of_the_name() {
        let found = [report(0, "NVIDIA H200", "discrete", true), report(1, "NVIDIA H100", "discrete", true)];
        let pick = |text: &str| choose(&found, Some(&text.parse().unwrap()), SoftwarePolicy::Never);
        assert_eq!(pick("1"), Ok(1));
        assert_eq!(pick("h200"), Ok(0));
        assert!(matches!(pick("nvidia"), Err(GpuError::AmbiguousDevice { .. })));
        let unknown = pick("7").unwrap_err().to_string();
        assert!(unknown.contains("--device 7") && unknown.contains("NVIDIA H100"), "{unknown}");
        assert!("  ".parse::<DeviceChoice>().is_err());
    }
}
