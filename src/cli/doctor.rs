//! `hyperfold doctor`: adapters, their self-test, and what to install.
//!
//! Layer: cli. Judges the machine, changes nothing on it.

use std::fs;

use serde_json::json;

use crate::engine::gpu::adapter::{self, AdapterReport, GpuError};
use crate::engine::gpu::{SelfTest, SubTest};

use super::args::DoctorArgs;
use super::exit::{CliError, Exit};
use super::{say, table};

/// Reports every adapter; succeeds if at least one passes.
///
/// # Errors
/// None of its own; a machine without a passing adapter is exit code 2.
pub fn execute(args: &DoctorArgs) -> Result<Exit, CliError> {
    if !args.json {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        say(&format!("hyperfold {}", env!("CARGO_PKG_VERSION")));
        say(&format!("CPU engine: ready, {threads} threads"));
    }
    let mut passing = 0;
    let found = adapter::list_adapters();
    for adapter in &found {
        let test = adapter.self_test();
        passing += usize::from(matches!(&test, Ok(t) if t.passed()));
        if args.json {
            say(&as_json(&adapter.report, &test));
        } else {
            as_text(&adapter.report, &test).iter().for_each(|line| say(line));
        }
    }
    let advice = advice(passing, found.len(), &fs::read_to_string("/etc/os-release").unwrap_or_default());
    match args.json {
        true => advice.iter().for_each(|line| eprintln!("{line}")),
        false => advice.iter().for_each(|line| say(line)),
    }
    Ok(if passing > 0 { Exit::Ok } else { Exit::BadInput })
}

fn as_text(report: &AdapterReport, test: &Result<SelfTest, GpuError>) -> Vec<String> {
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
        Ok(test) if test.passed() => {
            lines.push(format!("  self-test: passed ({} kernels, {})", test.sub_tests.len(), table::seconds(test.wall.as_secs_f64())));
        }
        Ok(test) => {
            lines.push("  self-test: FAILED, this adapter will not be used".into());
            let told = |t: &SubTest| t.failure.as_ref().map(|why| format!("    {}: {why}", t.name));
            lines.extend(test.sub_tests.iter().filter_map(told));
        }
        Err(error) => lines.push(format!("  self-test: could not run: {error}")),
    }
    lines
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn as_json(report: &AdapterReport, test: &Result<SelfTest, GpuError>) -> String {
    let (outcome, failures, seconds) = match test {
        Ok(test) => {
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
    })
    .to_string()
}

/// What to do about it, given the text of `/etc/os-release` (empty where there is none).
fn advice(passing: usize, found: usize, os_release: &str) -> Vec<String> {
    if passing > 0 {
        return Vec::new();
    }
    let value = |key: &str| {
        let line = os_release.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_string()
    };
    let mut lines = vec![match found {
        0 => "no GPU adapter found; the CPU engine works without one".to_string(),
        _ => "no adapter passes the self-test; the CPU engine works without one".to_string(),
    }];
    let family = format!("{} {}", value("ID"), value("ID_LIKE"));
    lines.push(match (value("ID").as_str(), value("VERSION_ID").as_str()) {
        ("debian", "12") => "to install: run scripts/setup-vulkan.sh (Debian 12's own Mesa 22.3 fails the self-test; the script takes \
                             mesa-vulkan-drivers from bookworm-backports)"
            .into(),
        _ if family.contains("debian") || family.contains("ubuntu") => {
            "to install: run scripts/setup-vulkan.sh, or: apt-get install mesa-vulkan-drivers".into()
        }
        _ if cfg!(target_os = "linux") => "to install: your system's Mesa Vulkan drivers, version 23 or later".into(),
        _ => "to install: your graphics vendor's current driver".into(),
    });
    lines.push(
        "an NVIDIA GPU needs the Vulkan part of its driver (in a container: NVIDIA_DRIVER_CAPABILITIES=all and libvulkan1)".into(),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::gpu::adapter::AdapterLimits;
    use std::time::Duration;

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
        let sub_tests = vec![SubTest { name: "long_loops", failure: stopped }, SubTest { name: "atomics", failure: None }];
        let test = Ok(SelfTest { sub_tests, wall: Duration::from_millis(1500) });
        insta::assert_snapshot!("doctor_text", as_text(&report(), &test).join("\n"));
        insta::assert_snapshot!("doctor_json", as_json(&report(), &test));
        let lost = Err(GpuError::NoInt64("llvmpipe".into()));
        assert!(as_json(&report(), &lost).contains("\"self_test\":\"error\""));
        assert!(as_text(&report(), &lost).last().unwrap().contains("SHADER_INT64"));
    }

    #[test]
    fn advice_fits_the_system() {
        let bookworm = "ID=debian\nVERSION_ID=\"12\"\n";
        assert!(advice(0, 1, bookworm)[1].contains("bookworm-backports"));
        assert!(advice(0, 0, "ID=ubuntu\nVERSION_ID=\"24.04\"\nID_LIKE=debian\n")[1].contains("apt-get install mesa-vulkan-drivers"));
        assert!(advice(0, 0, "")[1].starts_with("to install: "));
        assert!(advice(1, 1, bookworm).is_empty());
    }
}
