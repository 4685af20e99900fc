//! `hyperfold doctor`: lists adapters with their self-test, and says what to install.
//!
//! Layer: cli. It examines the machine and changes nothing.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use hyperfold_engine::gpu::SubTest;
use hyperfold_engine::gpu::adapter::{self, AdapterReport, GpuError};
use hyperfold_engine::gpu::open::{self, AdapterTest, EngineKernels};
use hyperfold_host::kernel_check::cases;

use super::args::DoctorArgs;
use super::doctor_engine::EngineCheck;
use super::exit::{CliError, Exit};
use super::machine::{MachineInfo, value_of};
use super::{say, say_json, table};

/// Longest time for compiling the engine's kernels. Drivers of GPUs need seconds.
const COMPILE_PATIENCE: Duration = Duration::from_secs(120);
/// Longest time for compiling with software drivers. They may need minutes; a run waits for that, but this command does not.
const SOFTWARE_PATIENCE: Duration = Duration::from_secs(20);

/// Reports the machine and every adapter. Succeeds if at least one adapter passes and, with `--engine`, none differs from the CPU engine.
///
/// # Errors
/// No case has a word of `--cases` in its name. Without a passing adapter, the exit code is 2; if one differs, 3.
pub fn execute(args: &DoctorArgs) -> Result<Exit, CliError> {
    let cases = cases::named(&args.cases).map_err(CliError::bad_input)?;
    let machine = MachineInfo::look();
    if !args.json {
        machine_as_text(&machine).iter().for_each(|line| say(line));
    }
    let mut passing = 0;
    let mut nvidia = false;
    let mut wrong = false;
    let found = adapter::list_adapters();
    for adapter in &found {
        let patience = if adapter.report.is_software() { SOFTWARE_PATIENCE } else { COMPILE_PATIENCE };
        let test = open::test(adapter, patience);
        let passed = matches!(&test, Ok(t) if t.passed());
        passing += usize::from(passed);
        nvidia |= passed && adapter.report.name.to_lowercase().contains("nvidia");
        let check = args.engine.then(|| EngineCheck::of_adapter(adapter, &test, &cases));
        wrong |= check.as_ref().is_some_and(EngineCheck::is_wrong);
        if args.json {
            let mut object = as_json(&adapter.report, &test);
            if let Some(check) = &check {
                object["engine_check"] = check.as_json();
            }
            say_json(&object.to_string());
        } else {
            let check = check.iter().flat_map(EngineCheck::as_text);
            as_text(&adapter.report, &test).into_iter().chain(check).for_each(|line| say(&line));
        }
    }
    let mut install = advice(passing, found.len(), &fs::read_to_string("/etc/os-release").unwrap_or_default());
    install.extend(nvidia_advice(&machine, nvidia));
    match args.json {
        // The machine comes last, so that the number of a line is that of its adapter.
        true => say_json(&machine_as_json(&machine, &install)),
        false => install.iter().for_each(|line| say(line)),
    }
    Ok(match passing {
        0 => Exit::BadInput,
        _ if wrong => Exit::Condition,
        _ => Exit::Ok,
    })
}

fn machine_as_text(machine: &MachineInfo) -> Vec<String> {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_string(), table::bytes);
    let loader = match &machine.vulkan_loader {
        Some(path) => path.display().to_string(),
        None if cfg!(target_os = "linux") => "not found where libraries usually are".into(),
        None => "the system's own".into(),
    };
    let drivers: Vec<String> = machine.vulkan_drivers.iter().map(|p| p.display().to_string()).collect();
    vec![
        format!("hyperfold {}", env!("CARGO_PKG_VERSION")),
        format!(
            "system: {}, {}{}",
            machine.system,
            machine.arch,
            machine.kernel.as_ref().map_or(String::new(), |k| format!(", kernel {k}"))
        ),
        format!("CPU engine: ready, {} threads", machine.threads),
        format!(
            "memory: {}, {} free; disk here: {} free",
            size(machine.memory_bytes),
            size(machine.memory_free_bytes),
            size(machine.disk_free_bytes)
        ),
        format!(
            "Vulkan loader: {loader}; drivers: {}",
            if drivers.is_empty() { "none registered".into() } else { drivers.join(", ") }
        ),
        format!(
            "SLURM: {}",
            if machine.sbatch { "sbatch found" } else { "no sbatch here (only submit --slurm needs it)" }
        ),
    ]
}

fn machine_as_json(machine: &MachineInfo, install: &[String]) -> String {
    json!({"hyperfold": env!("CARGO_PKG_VERSION"), "machine": machine, "install": install}).to_string()
}

/// Why an NVIDIA GPU of this machine is no adapter. Usually a container has no access to the Vulkan part of the driver.
fn nvidia_advice(machine: &MachineInfo, usable: bool) -> Option<String> {
    if !machine.nvidia || usable {
        return None;
    }
    let registered = machine.vulkan_drivers.iter().any(|p| p.to_string_lossy().contains("nvidia"));
    Some(match (&machine.vulkan_loader, registered) {
        (None, _) => "an NVIDIA GPU is here, but no Vulkan loader; install libvulkan1".into(),
        (_, false) => "an NVIDIA GPU is here, but its Vulkan driver is not registered: in a container, start it with --gpus all and \
                       NVIDIA_DRIVER_CAPABILITIES=all; elsewhere install the driver's Vulkan part (docs/how-to/containers.md)"
            .into(),
        (_, true) => "an NVIDIA GPU is here and its Vulkan driver is registered, but gives no adapter that passes: driver and kernel module may differ in \
                      version, or the driver's libraries are incomplete (libGLX_nvidia.so.0 also needs libx11 and libxext)"
            .into(),
    })
}

fn as_text(report: &AdapterReport, test: &Result<AdapterTest, GpuError>) -> Vec<String> {
    let limits = &report.limits;
    let mut lines = vec![
        format!("adapter {report}"),
        format!(
            "  limits: {} a storage binding, {} a buffer, {} storage buffers, {} workgroup memory, {} invocations a workgroup",
            table::bytes(limits.storage_binding_bytes),
            table::bytes(limits.buffer_bytes),
            limits.storage_buffers,
            table::bytes(limits.workgroup_bytes.into()),
            limits.workgroup_invocations
        ),
        format!("  features: 64-bit integers {}, timestamps {}", yes(report.int64), yes(report.timestamps)),
    ];
    match test {
        Ok(AdapterTest { self_test, kernels }) if self_test.passed() => {
            lines.push(format!(
                "  self-test: passed ({} kernels, {})",
                self_test.sub_tests.len(),
                table::seconds(self_test.wall.as_secs_f64())
            ));
            lines.extend(kernels.as_ref().map(|kernels| format!("  engine kernel: {}", in_words(kernels))));
        }
        Ok(AdapterTest { self_test, .. }) => {
            lines.push("  self-test: FAILED, this adapter will not be used".into());
            let told = |t: &SubTest| t.failure.as_ref().map(|why| format!("    {}: {why}", t.name));
            lines.extend(self_test.sub_tests.iter().filter_map(told));
        }
        Err(error) => lines.push(format!("  self-test: could not run: {error}")),
    }
    lines
}

fn in_words(kernels: &EngineKernels) -> String {
    match kernels {
        EngineKernels::Compiled(wall) => format!("compiled in {}", table::seconds(wall.as_secs_f64())),
        EngineKernels::NotWithin(patience) => {
            format!("NOT compiled within {}; a run waits for it", table::seconds(patience.as_secs_f64()))
        }
        EngineKernels::Refused(why) => format!("REFUSED, this adapter cannot be used: {why}"),
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn as_json(report: &AdapterReport, test: &Result<AdapterTest, GpuError>) -> Value {
    let (kernels, kernels_seconds) = match test.as_ref().ok().and_then(|test| test.kernels.as_ref()) {
        Some(EngineKernels::Compiled(wall)) => ("compiled".to_string(), Some(wall.as_secs_f64())),
        Some(EngineKernels::NotWithin(patience)) => ("not compiled".to_string(), Some(patience.as_secs_f64())),
        Some(EngineKernels::Refused(why)) => (format!("refused: {why}"), None),
        None => ("not tried".to_string(), None),
    };
    let (outcome, failures, seconds) = match test {
        Ok(AdapterTest { self_test: test, .. }) => {
            let failed = test.sub_tests.iter().filter(|t| t.failure.is_some());
            let failures: Vec<_> = failed.map(|t| json!({"name": t.name, "failure": t.failure})).collect();
            (if test.passed() { "pass" } else { "fail" }, failures, Some(test.wall.as_secs_f64()))
        }
        Err(error) => ("error", vec![json!({"name": "device", "failure": error.to_string()})], None),
    };
    let limits = &report.limits;
    json!({
        "hyperfold": env!("CARGO_PKG_VERSION"),
        "index": report.index,
        "name": report.name,
        "backend": report.backend,
        "kind": report.kind,
        "driver": report.driver,
        "driver_info": report.driver_info,
        "int64": report.int64,
        "timestamps": report.timestamps,
        "storage_binding_bytes": limits.storage_binding_bytes,
        "buffer_bytes": limits.buffer_bytes,
        "storage_buffers": limits.storage_buffers,
        "workgroup_bytes": limits.workgroup_bytes,
        "workgroup_invocations": limits.workgroup_invocations,
        "self_test": outcome,
        "failures": failures,
        "seconds": seconds,
        "engine_kernel": kernels,
        "engine_kernel_seconds": kernels_seconds,
    })
}

/// The packages to install, from the text of `/etc/os-release` (empty if there is none).
fn advice(passing: usize, found: usize, os_release: &str) -> Vec<String> {
    if passing > 0 {
        return Vec::new();
    }
    let value = |key: &str| value_of(os_release, key).unwrap_or_default();
    let mut lines = vec![match found {
        0 => "no GPU adapter found; the CPU engine works without one".to_string(),
        _ => "no adapter passes the self-test; the CPU engine works without one".to_string(),
    }];
    let family = format!("{} {}", value("ID"), value("ID_LIKE"));
    lines.push(match (value("ID").as_str(), value("VERSION_ID").as_str()) {
        ("debian", "12") => {
            "to install: run scripts/setup-vulkan.sh (Debian 12's own Mesa 22.3 fails the self-test; the script takes \
                             mesa-vulkan-drivers from bookworm-backports)"
                .into()
        }
        _ if family.contains("debian") || family.contains("ubuntu") => {
            "to install: run scripts/setup-vulkan.sh, or: apt-get install mesa-vulkan-drivers".into()
        }
        _ if cfg!(target_os = "linux") => "to install: your system's Mesa Vulkan drivers, version 23 or later".into(),
        _ => "to install: your graphics vendor's current driver".into(),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_engine::gpu::SelfTest;
    use hyperfold_engine::gpu::adapter::AdapterLimits;

    fn report() -> AdapterReport {
        AdapterReport {
            index: 0,
            name: "llvmpipe".into(),
            backend: "vulkan".into(),
            kind: "software",
            driver: "llvmpipe".into(),
            driver_info: "Mesa 22.3.6".into(),
            int64: true,
            timestamps: false,
            limits: AdapterLimits {
                storage_binding_bytes: 1 << 27,
                buffer_bytes: 1 << 31,
                storage_buffers: 8,
                workgroup_bytes: 32768,
                workgroup_invocations: 1024,
                workgroups: 65535,
            },
        }
    }

    #[test]
    fn a_failed_self_test_is_told_sub_test_by_sub_test() {
        let stopped = Some("output 0 is 65535, must be 200000 (256 of 256 words differ)".to_string());
        let sub_tests =
            vec![SubTest { name: "long_loops", failure: stopped }, SubTest { name: "atomics", failure: None }];
        let self_test = SelfTest { sub_tests, wall: Duration::from_millis(1500) };
        let test = Ok(AdapterTest { self_test, kernels: None });
        insta::assert_snapshot!("doctor_text", as_text(&report(), &test).join("\n"));
        insta::assert_snapshot!("doctor_json", as_json(&report(), &test).to_string());
        let lost = Err(GpuError::NoInt64("llvmpipe".into()));
        assert!(as_json(&report(), &lost).to_string().contains("\"self_test\":\"error\""));
        assert!(as_text(&report(), &lost).last().unwrap().contains("SHADER_INT64"));
    }

    #[test]
    fn what_passes_says_whether_its_kernels_are_compiled() {
        let test = |kernels| {
            let sub_tests = vec![SubTest { name: "atomics", failure: None }];
            let self_test = SelfTest { sub_tests, wall: Duration::from_millis(1500) };
            Ok(AdapterTest { self_test, kernels: Some(kernels) })
        };
        for (kernels, passes, text, json) in [
            (
                EngineKernels::Compiled(Duration::from_millis(2500)),
                true,
                "compiled in 2.5 s",
                "\"engine_kernel\":\"compiled\"",
            ),
            (
                EngineKernels::NotWithin(COMPILE_PATIENCE),
                true,
                "NOT compiled within 2 min 00 s; a run waits",
                "\"not compiled\"",
            ),
            (EngineKernels::Refused("no room".into()), false, "cannot be used: no room", "\"refused: no room\""),
        ] {
            let test = test(kernels);
            assert_eq!(test.as_ref().is_ok_and(AdapterTest::passed), passes);
            let lines = as_text(&report(), &test);
            assert!(lines.last().is_some_and(|line| line.contains(text)), "{lines:?}");
            assert!(as_json(&report(), &test).to_string().contains(json), "{}", as_json(&report(), &test).to_string());
        }
    }

    #[test]
    fn the_machine_is_told_and_an_nvidia_gpu_that_cannot_be_used_is_explained() {
        let machine = MachineInfo {
            system: "Debian GNU/Linux 12 (bookworm)".into(),
            kernel: Some("6.1.0".into()),
            arch: "x86_64",
            threads: 16,
            memory_bytes: Some(128 << 30),
            memory_free_bytes: Some(100 << 30),
            disk_free_bytes: Some(64 << 30),
            vulkan_loader: Some("/usr/lib/x86_64-linux-gnu/libvulkan.so.1".into()),
            vulkan_drivers: vec!["/usr/share/vulkan/icd.d/lvp_icd.x86_64.json".into()],
            nvidia: true,
            sbatch: false,
        };
        insta::assert_snapshot!("doctor_machine", machine_as_text(&machine).join("\n"));
        let told = |machine: &MachineInfo, usable| nvidia_advice(machine, usable).unwrap_or_default();
        assert!(told(&machine, false).contains("NVIDIA_DRIVER_CAPABILITIES=all"));
        assert_eq!(told(&machine, true), "");
        assert!(told(&MachineInfo { vulkan_loader: None, ..machine.clone() }, false).contains("libvulkan1"));
        let registered =
            MachineInfo { vulkan_drivers: vec!["/etc/vulkan/icd.d/nvidia_icd.json".into()], ..machine.clone() };
        assert!(told(&registered, false).contains("is registered"));
        assert_eq!(told(&MachineInfo { nvidia: false, ..machine.clone() }, false), "");
        let line: serde_json::Value = serde_json::from_str(&machine_as_json(&machine, &["x".into()])).unwrap();
        assert_eq!((&line["machine"]["threads"], &line["install"][0]), (&16.into(), &"x".into()));
    }

    #[test]
    fn advice_fits_the_system() {
        let bookworm = "ID=debian\nVERSION_ID=\"12\"\n";
        assert!(advice(0, 1, bookworm)[1].contains("bookworm-backports"));
        assert!(
            advice(0, 0, "ID=ubuntu\nVERSION_ID=\"24.04\"\nID_LIKE=debian\n")[1]
                .contains("apt-get install mesa-vulkan-drivers")
        );
        assert!(advice(0, 0, "")[1].starts_with("to install: "));
        assert!(advice(1, 1, bookworm).is_empty());
    }
}
