//! The text of the kernels: generated declarations and the files under `shaders/`, joined into one WGSL module; and the module made of it.
//!
//! Layer: engine. Composes and validates; compiles nothing.

use std::fmt::Write;

use super::entry_points;
use super::parts::KernelParts;
use super::pruned::prune;
use crate::cpu::cc::{dcqcn, timely};
use crate::cpu::key;
use crate::systems::SYSTEMS;
use hyperfold_columns::{N_TABLES, wgsl};

/// Number of storage buffers that kernels bind: the tables, then [`CONTROL`].
pub const N_BINDINGS: usize = N_TABLES + 1;
/// Binding of the control buffer: the number of steps to take, then the rows in `exps` of the experiments that run.
pub const CONTROL: usize = N_TABLES;

/// Number of words in the control buffer before the rows of the running experiments.
pub const CONTROL_ROWS: u32 = 1;

/// Shader files that several systems use. A system's own file is in the list of systems.
const FILES: [&str; 38] = [
    include_str!("../../../../shaders/bindings.wgsl"),
    include_str!("../../../../shaders/math.wgsl"),
    include_str!("../../../../shaders/key.wgsl"),
    include_str!("../../../../shaders/lists.wgsl"),
    include_str!("../../../../shaders/mmu.wgsl"),
    include_str!("../../../../shaders/loss.wgsl"),
    include_str!("../../../../shaders/moved_pairs.wgsl"),
    include_str!("../../../../shaders/adaptive.wgsl"),
    include_str!("../../../../shaders/classes.wgsl"),
    include_str!("../../../../shaders/class_port.wgsl"),
    include_str!("../../../../shaders/class_turns.wgsl"),
    include_str!("../../../../shaders/sending.wgsl"),
    include_str!("../../../../shaders/held_port.wgsl"),
    include_str!("../../../../shaders/held_nic.wgsl"),
    include_str!("../../../../shaders/watchdog.wgsl"),
    include_str!("../../../../shaders/averages.wgsl"),
    include_str!("../../../../shaders/cut_through.wgsl"),
    include_str!("../../../../shaders/egress.wgsl"),
    include_str!("../../../../shaders/port_queue.wgsl"),
    include_str!("../../../../shaders/rate.wgsl"),
    include_str!("../../../../shaders/queue_pair.wgsl"),
    include_str!("../../../../shaders/spraying.wgsl"),
    include_str!("../../../../shaders/stream.wgsl"),
    include_str!("../../../../shaders/mixed_entropies.wgsl"),
    include_str!("../../../../shaders/any_order.wgsl"),
    include_str!("../../../../shaders/selective.wgsl"),
    include_str!("../../../../shaders/answers.wgsl"),
    include_str!("../../../../shaders/uec.wgsl"),
    include_str!("../../../../shaders/credit.wgsl"),
    include_str!("../../../../shaders/cc/dcqcn.wgsl"),
    include_str!("../../../../shaders/cc/dctcp.wgsl"),
    include_str!("../../../../shaders/cc/hpcc.wgsl"),
    include_str!("../../../../shaders/cc/nscc.wgsl"),
    include_str!("../../../../shaders/cc/swift.wgsl"),
    include_str!("../../../../shaders/cc/timely.wgsl"),
    include_str!("../../../../shaders/sender.wgsl"),
    include_str!("../../../../shaders/receiver.wgsl"),
    include_str!("../../../../shaders/task.wgsl"),
];
const SHARED: &str = include_str!("../../../../shaders/systems.wgsl");
const FUSED: &str = include_str!("../../../../shaders/fused.wgsl");

/// The integer helpers alone, to test their results.
pub const MATH: &str = include_str!("../../../../shaders/math.wgsl");

/// Reason why the composed text is no valid module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The text is no WGSL; the parser's message.
    #[error("the kernels do not parse: {0}")]
    Parse(String),
    /// The module breaks a rule of WGSL; the validator's message.
    #[error("the kernels are not valid: {0}")]
    Validate(String),
    /// The kernels cannot have so many invocations per workgroup.
    #[error("a workgroup of {0} invocations: it must be a multiple of 16, from 64 to 256")]
    Workgroup(u32),
}

/// Constants that kernels share with the Rust engine, as WGSL.
fn constants(workgroup: u32, parts: KernelParts) -> String {
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
    let _ = writeln!(out, "const HAS_TASKS: bool = {};", parts.has_tasks());
    let _ = writeln!(out, "const HAS_AVERAGES: bool = {};", parts.has_averages());
    let _ = writeln!(out, "const HAS_CUT_THROUGH: bool = {};", parts.has_cut_through());
    out
}

/// The text with all entry points: `fused`, and one per system. [`module`] takes out of it what kernels with `parts` do not need.
///
/// # Errors
/// `workgroup`, the number of invocations per workgroup, is not usable.
pub fn compose(workgroup: u32, parts: KernelParts) -> Result<String, SourceError> {
    if !workgroup.is_multiple_of(16) || !(64..=256).contains(&workgroup) {
        return Err(SourceError::Workgroup(workgroup));
    }
    let mut text = String::with_capacity(64 << 10);
    text.push_str(&wgsl::constants());
    text.push_str(&constants(workgroup, parts));
    text.push_str(&wgsl::declarations());
    text.push_str(&wgsl::bindings());
    let _ = writeln!(text, "@group(0) @binding({CONTROL}) var<storage, read> control: array<u32>;\n");
    for file in FILES.into_iter().chain(SYSTEMS.iter().map(|system| system.wgsl)) {
        text.push_str(file);
        text.push('\n');
    }
    text.push_str(SHARED);
    text.push_str(&entry_points::per_system());
    text.push_str(&entry_points::fused(FUSED));
    Ok(text)
}

/// Parses and validates `text`. Returns the module and naga's information about it.
///
/// # Errors
/// The first error, with its line in the source.
pub fn validate(text: &str) -> Result<(naga::Module, naga::valid::ModuleInfo), SourceError> {
    let module = naga::front::wgsl::parse_str(text).map_err(|e| SourceError::Parse(e.emit_to_string(text)))?;
    let info = validator().validate(&module).map_err(|e| SourceError::Validate(e.emit_to_string(text)))?;
    Ok((module, info))
}

/// The module of `text`, which [`compose`] has made for `parts`, without the code of other parts; and naga's information about it.
///
/// # Errors
/// It fails as [`validate`] does.
pub fn module(text: &str, parts: KernelParts) -> Result<(naga::Module, naga::valid::ModuleInfo), SourceError> {
    let (mut module, _) = validate(text)?;
    prune(&mut module, &parts.facts());
    let info = validator().validate(&module).map_err(|e| SourceError::Validate(e.into_inner().to_string()))?;
    Ok((module, info))
}

fn validator() -> naga::valid::Validator {
    naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::SHADER_INT64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_valid() {
        for workgroup in [64, 128, 256] {
            let singles = KernelParts::singles().into_iter().map(|(_, part)| part);
            for parts in singles.chain([KernelParts::ALL, KernelParts::NONE]) {
                let text = compose(workgroup, parts).expect("a usable size");
                if let Err(e) = module(&text, parts) {
                    panic!("{parts}: {e}");
                }
            }
        }
        assert_eq!(compose(8, KernelParts::ALL), Err(SourceError::Workgroup(8)));
    }
}
