//! `hyperfold doctor --engine`: the engine's own kernels on every adapter, against the CPU engine.
//!
//! Layer: cli. `hyperfold_host::kernel_check` has the experiments and compares; this file asks and prints.

use serde_json::{Value, json};

use hyperfold_engine::gpu::GpuEngine;
use hyperfold_engine::gpu::adapter::{FoundAdapter, GpuError};
use hyperfold_engine::gpu::device::open_untested;
use hyperfold_engine::gpu::open::AdapterTest;
use hyperfold_host::kernel_check::cases::KernelCase;
use hyperfold_host::kernel_check::whole::{self, DeviceCheck};

use super::table;

/// Result of the check of one adapter.
pub enum EngineCheck {
    /// It ran to its end.
    Ran(DeviceCheck),
    /// It could not run, or broke off; the reason.
    Failed(String),
    /// The adapter cannot be used anyway.
    NotTried,
}

impl EngineCheck {
    /// Checks an adapter that has had the self-test, with these cases.
    pub fn of_adapter(found: &FoundAdapter, test: &Result<AdapterTest, GpuError>, cases: &[KernelCase]) -> EngineCheck {
        if !test.as_ref().is_ok_and(AdapterTest::passed) {
            return EngineCheck::NotTried;
        }
        let engine = open_untested(found)
            .map_err(|error| error.to_string())
            .and_then(|device| GpuEngine::on(&device).map_err(|error| error.to_string()));
        match engine.and_then(|mut engine| whole::check(&mut engine, cases).map_err(|error| error.to_string())) {
            Ok(check) => EngineCheck::Ran(check),
            Err(why) => EngineCheck::Failed(why),
        }
    }

    /// Whether a run may not use the adapter although the self-test passed.
    pub fn is_wrong(&self) -> bool {
        match self {
            EngineCheck::Ran(check) => !check.differences.is_empty(),
            EngineCheck::Failed(_) => true,
            EngineCheck::NotTried => false,
        }
    }

    /// Lines for people.
    pub fn as_text(&self) -> Vec<String> {
        match self {
            EngineCheck::NotTried => vec!["  engine: not tried, as the adapter cannot be used".into()],
            EngineCheck::Failed(why) => vec![format!("  engine: the check BROKE OFF: {why}")],
            EngineCheck::Ran(check) => {
                let DeviceCheck { digests, systems, networks, wall, differences } = check;
                let verdict =
                    if differences.is_empty() { "same bytes as the CPU engine" } else { "DIFFERS from the CPU engine" };
                let head = format!(
                    "  engine: {} cases, {systems} systems, rates of {networks} networks, {}: {verdict}",
                    digests.len(),
                    table::seconds(wall.as_secs_f64())
                );
                let mut lines = vec![head];
                lines.extend(differences.iter().map(|what| format!("    {what}")));
                if !differences.is_empty() {
                    lines.push("    use `--engine cpu`, or another driver, and report these lines".into());
                }
                lines
            }
        }
    }

    /// The value of `engine_check` in the adapter's JSON object.
    pub fn as_json(&self) -> Value {
        match self {
            EngineCheck::NotTried => json!({"outcome": "not tried"}),
            EngineCheck::Failed(why) => json!({"outcome": "error", "error": why}),
            EngineCheck::Ran(check) => {
                let case = |(name, digest): &(String, String)| json!({"name": name, "sha256_16": digest});
                json!({
                    "outcome": if check.differences.is_empty() { "same" } else { "differs" },
                    "cases": check.digests.iter().map(case).collect::<Vec<_>>(),
                    "systems": check.systems,
                    "networks": check.networks,
                    "seconds": check.wall.as_secs_f64(),
                    "differences": check.differences,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn check(differences: &[&str]) -> EngineCheck {
        EngineCheck::Ran(DeviceCheck {
            digests: vec![("dcqcn with marks".into(), "0123456789abcdef".into())],
            systems: 8,
            networks: 6,
            wall: Duration::from_millis(2500),
            differences: differences.iter().map(|what| what.to_string()).collect(),
        })
    }

    #[test]
    fn an_adapter_with_the_same_bytes_passes() {
        let same = check(&[]);
        assert!(!same.is_wrong());
        assert_eq!(
            same.as_text(),
            ["  engine: 1 cases, 8 systems, rates of 6 networks, 2.5 s: same bytes as the CPU engine"]
        );
        let json = same.as_json();
        assert_eq!((&json["outcome"], &json["systems"]), (&"same".into(), &8.into()));
        assert_eq!(json["cases"][0], json!({"name": "dcqcn with marks", "sha256_16": "0123456789abcdef"}));
    }

    #[test]
    fn a_difference_is_printed_and_makes_the_adapter_wrong() {
        let wrong = check(&["the fused kernel, case `x`: table nics, row 0, column rate: 1 (0x1), must be 2 (0x2)"]);
        assert!(wrong.is_wrong());
        let lines = wrong.as_text();
        assert!(lines[0].ends_with("DIFFERS from the CPU engine") && lines[1].contains("must be 2"), "{lines:?}");
        assert_eq!(wrong.as_json()["outcome"], "differs");
        let broken = EngineCheck::Failed("the device was lost: unplugged".into());
        assert!(broken.is_wrong() && broken.as_text()[0].contains("unplugged"));
        assert_eq!(broken.as_json()["error"], "the device was lost: unplugged");
        assert!(!EngineCheck::NotTried.is_wrong());
    }
}
