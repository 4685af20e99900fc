//! Generates the WGSL of the entry points from the list of systems.
//!
//! Layer: engine. Writes text; `source` joins it with the files under `shaders/`.

use std::fmt::Write;

use crate::systems::{RunCondition, SYSTEMS, System, SystemRows, Then};

/// The line of `shaders/fused.wgsl` that is replaced by the systems of a step.
const MARKER: &str = "        // SYSTEMS\n";

/// One kernel per system. One dispatch covers all running experiments: `x` counts rows, `y` experiments.
pub(super) fn per_system() -> String {
    SYSTEMS.iter().map(entry_point).collect()
}

/// The fused kernel: the text of `shaders/fused.wgsl` with the systems of a step inserted.
pub(super) fn fused(template: &str) -> String {
    template.replace(MARKER, &step())
}

/// WGSL expression that is true where `system` runs. PRECONDITION: the experiment was entered before.
fn condition(system: &System) -> &'static str {
    match system.when {
        RunCondition::NewStep => " && exps[exp_row].phase == 0u",
        RunCondition::Always => "",
        RunCondition::Frames => " && frames_suffice()",
        RunCondition::Gates => " && HAS_TASKS && frames_suffice() && exps[exp_row].gate_len > 0u",
    }
}

fn entry_point(system: &System) -> String {
    let System { name, entry, .. } = system;
    let when = condition(system);
    let head = format!("\n@compute @workgroup_size(WORKGROUP)\nfn {entry}(");
    let by_row = "@builtin(global_invocation_id) id: vec3<u32>";
    let by_group = "@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32";
    match rows(system.rows) {
        Some((len, _)) => format!(
            "{head}{by_row}) {{
    if enter_slot(id.y){when} && id.x < exps[exp_row].{len} {{
        {name}_row(id.x, step_end());
    }}
}}
"
        ),
        None if system.rows == SystemRows::Clocks => format!(
            "{head}{by_group}) {{
    let running = enter_slot(group.x);
{}    if lane == 0u && running {{
        {name}(step_end(), earliest_of_all());
    }}
}}
",
            earliest_clock("    ")
        ),
        None => format!(
            "{head}{by_group}) {{
    if enter_slot(group.x){when} && lane == 0u {{
        {name}();
    }}
}}
"
        ),
    }
}

/// Names of a system's row count: the column of `Exp`, and the variable of the fused kernel. `None`: there is one row per experiment.
fn rows(rows: SystemRows) -> Option<(&'static str, &'static str)> {
    match rows {
        SystemRows::Port => Some(("port_len", "n_port")),
        SystemRows::Switch => Some(("switch_len", "n_switch")),
        SystemRows::Nic => Some(("nic_len", "n_nic")),
        SystemRows::Experiment | SystemRows::Clocks => None,
    }
}

/// WGSL by which a workgroup finds the minimum of all clocks together.
fn earliest_clock(indent: &str) -> String {
    [
        "lane_clocks[lane] = next_clock(lane);",
        "workgroupBarrier();",
        "if lane < LANE_GROUPS {",
        "    earliest_clocks[lane] = earliest_of_sixteen(lane);",
        "}",
        "workgroupBarrier();",
    ]
    .map(|line| format!("{indent}{line}\n"))
    .concat()
}

/// The systems of a step in the fused kernel. Systems that need pause frames stand in one block, and systems that need gates in another. All
/// invocations enter a block, or none does.
fn step() -> String {
    let mut out = String::new();
    let mut blocks: Vec<RunCondition> = Vec::new();
    for system in SYSTEMS {
        let wanted: &[RunCondition] = match system.when {
            RunCondition::NewStep | RunCondition::Always => &[],
            RunCondition::Frames => &[RunCondition::Frames],
            RunCondition::Gates => &[RunCondition::Frames, RunCondition::Gates],
        };
        while !wanted.starts_with(&blocks) {
            blocks.pop();
            let _ = writeln!(out, "{}}}", indent(blocks.len()));
        }
        for &block in &wanted[blocks.len()..] {
            let i = indent(blocks.len());
            let _ = match block {
                RunCondition::Gates => writeln!(out, "{i}if HAS_TASKS && (changes & GO_GATES) != 0u {{"),
                _ => writeln!(
                    out,
                    "{i}if lane == 0u {{\n{i}    decision = forward_decision();\n{i}}}
{i}let changes = workgroupUniformLoad(&decision);\n{i}if changes != 0u {{"
                ),
            };
            blocks.push(block);
        }
        statements(system, &indent(blocks.len()), &mut out);
    }
    out
}

fn indent(blocks: usize) -> String {
    "    ".repeat(2 + blocks)
}

/// WGSL for one system in the fused kernel; each line is indented by `i`.
fn statements(system: &System, i: &str, out: &mut String) {
    let name = system.name;
    let _ = match rows(system.rows) {
        Some((_, n)) => {
            let all = format!("for (var row = lane; row < {n}; row += WORKGROUP)");
            match system.when {
                RunCondition::NewStep => writeln!(
                    out,
                    "{i}if (go & GO_NEW_STEP) != 0u {{\n{i}    {all} {{\n{i}        {name}_row(row, end);\n{i}    }}\n{i}}}"
                ),
                _ => writeln!(out, "{i}{all} {{\n{i}    {name}_row(row, end);\n{i}}}"),
            }
        }
        None if system.rows == SystemRows::Clocks => {
            writeln!(out, "{}{i}if lane == 0u {{\n{i}    {name}(end, earliest_of_all());\n{i}}}", earliest_clock(i))
        }
        None => writeln!(out, "{i}if lane == 0u {{\n{i}    {name}();\n{i}}}"),
    };
    if system.then == Then::Barrier {
        let _ = writeln!(out, "{i}storageBarrier();");
    }
}
