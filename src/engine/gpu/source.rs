//! The text of the kernels: generated declarations and the files under `shaders/`, joined into one WGSL module.
//!
//! Layer: engine. Composes and validates; compiles nothing.

use crate::columns::wgsl;
use crate::engine::cpu::cc::{dcqcn, timely};
use crate::engine::cpu::key;

/// Tables that kernels bind: numbers and order are those of `shaders/bindings.wgsl`.
pub const BINDINGS: [&str; 22] = [
    "exps",
    "nics",
    "ports",
    "switches",
    "flow_tx",
    "flow_rx",
    "packets",
    "ints",
    "stamps",
    "wires",
    "clocks",
    "shared_words",
    "plans",
    "order",
    "paths",
    "rtts",
    "tasks",
    "edges",
    "signals",
    "gates",
    "servers",
    "control",
];

/// Words of the control buffer before the rows of the experiments that run.
pub const CONTROL_ROWS: u32 = 1;

/// Shader files in the order in which they are joined: leaves first.
const FILES: [(&str, &str); 23] = [
    ("bindings", include_str!("../../../shaders/bindings.wgsl")),
    ("math", include_str!("../../../shaders/math.wgsl")),
    ("key", include_str!("../../../shaders/key.wgsl")),
    ("lists", include_str!("../../../shaders/lists.wgsl")),
    ("plan", include_str!("../../../shaders/plan.wgsl")),
    ("classify", include_str!("../../../shaders/classify.wgsl")),
    ("mmu", include_str!("../../../shaders/mmu.wgsl")),
    ("egress", include_str!("../../../shaders/egress.wgsl")),
    ("forward", include_str!("../../../shaders/forward.wgsl")),
    ("forward_joint", include_str!("../../../shaders/forward_joint.wgsl")),
    ("rate", include_str!("../../../shaders/rate.wgsl")),
    ("queue_pair", include_str!("../../../shaders/queue_pair.wgsl")),
    ("dcqcn", include_str!("../../../shaders/cc/dcqcn.wgsl")),
    ("dctcp", include_str!("../../../shaders/cc/dctcp.wgsl")),
    ("hpcc", include_str!("../../../shaders/cc/hpcc.wgsl")),
    ("timely", include_str!("../../../shaders/cc/timely.wgsl")),
    ("sender", include_str!("../../../shaders/sender.wgsl")),
    ("receiver", include_str!("../../../shaders/receiver.wgsl")),
    ("task", include_str!("../../../shaders/task.wgsl")),
    ("nic", include_str!("../../../shaders/nic.wgsl")),
    ("schedule", include_str!("../../../shaders/schedule.wgsl")),
    ("analytical", include_str!("../../../shaders/analytical.wgsl")),
    ("advance", include_str!("../../../shaders/advance.wgsl")),
];
const SYSTEMS: &str = include_str!("../../../shaders/systems.wgsl");
const FUSED: &str = include_str!("../../../shaders/fused.wgsl");

/// The integer helpers alone, for tests of their results.
pub const MATH: &str = include_str!("../../../shaders/math.wgsl");

/// Why the composed text is no valid module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("the kernels do not parse: {0}")]
    Parse(String),
    #[error("the kernels are not valid: {0}")]
    Validate(String),
    #[error("a workgroup of {0} invocations: it must be a multiple of 16, from 64 to 256")]
    Workgroup(u32),
}

/// The constants that kernels share with the engine in Rust.
fn constants(workgroup: u32) -> String {
    let mut out = String::new();
    let u32s = [
        ("WORKGROUP", workgroup),
        ("CONTROL_STEPS", 0),
        ("CONTROL_ROWS", CONTROL_ROWS),
        ("EVENT_COMPLETION", key::COMPLETION),
        ("EVENT_ARRIVAL", key::ARRIVAL),
        ("EVENT_TIMER", key::TIMER),
        ("EVENT_CC_TIMER", key::CC_TIMER),
        ("EVENT_RTO", key::RTO),
        ("EVENT_START", key::START),
        ("EVENT_TASK", key::TASK),
        ("EVENT_NONE", key::NO_EVENT.kind),
        ("TIMELY_DIFF_BITS", timely::DIFF_BITS),
        ("TIMELY_HYPER_AFTER", timely::HYPER_AFTER),
    ];
    for (name, value) in u32s {
        wgsl::constant(&mut out, name, value);
    }
    wgsl::constant(&mut out, "DCQCN_FIRST_DECREASE_LAG", dcqcn::FIRST_DECREASE_LAG);
    out
}

/// The module with all entry points: `fused`, and `plan_all`, `classify_all`, `forward_all`, `forward_joint_all`, `nic_all`, `schedule_all`,
/// `analytical_all`, `advance_all`.
///
/// # Errors
/// `workgroup`, the invocations of a workgroup, is not usable.
pub fn compose(workgroup: u32) -> Result<String, SourceError> {
    if !workgroup.is_multiple_of(16) || !(64..=256).contains(&workgroup) {
        return Err(SourceError::Workgroup(workgroup));
    }
    let mut text = String::with_capacity(64 << 10);
    text.push_str(&wgsl::constants());
    text.push_str(&constants(workgroup));
    text.push_str(&wgsl::declarations());
    for (_, file) in FILES {
        text.push_str(file);
        text.push('\n');
    }
    text.push_str(SYSTEMS);
    text.push_str(FUSED);
    Ok(text)
}

/// Parses and validates `text`; the module and what naga found out about it.
///
/// # Errors
/// The first error, with line and source.
pub fn validate(text: &str) -> Result<(naga::Module, naga::valid::ModuleInfo), SourceError> {
    let module = naga::front::wgsl::parse_str(text).map_err(|e| SourceError::Parse(e.emit_to_string(text)))?;
    let info =
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::SHADER_INT64)
            .validate(&module)
            .map_err(|e| SourceError::Validate(e.emit_to_string(text)))?;
    Ok((module, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_valid() {
        for workgroup in [64, 128, 256] {
            let text = compose(workgroup).expect("a usable size");
            if let Err(e) = validate(&text) {
                panic!("{e}");
            }
        }
        assert_eq!(compose(8), Err(SourceError::Workgroup(8)));
    }
}
