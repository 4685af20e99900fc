//! Writes programs as SimAI's workload text.
//!
//! Layer: workload. The text is one chain of rows for all ranks. Forward runs in order, backward in reverse, and collectives of weight gradients run beside it.
//! So all ranks must run one program of one iteration without messages between them, and groups must lie as SimAI places them. What was written is read back
//! and compared. A forward compute and its collective are one row. Each backward operation is a row of its own; these rows follow in reverse order. Durations
//! are whole nanoseconds, rounded up.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{ExportError, cannot};
use crate::collective::{Algorithm, CollectiveOp};
use crate::workload::import::{ImportOptions, simai};
use crate::workload::program::{Dim, OpKind, Phase, Program, Stream, Workload};
use hyperfold_base::units::PS_PER_NS;

const FORM: &str = "SimAI's workload text";

/// The workload file's text.
///
/// # Errors
/// Ranks differ, there are messages or several iterations, or there are groups or operations that SimAI does not have.
pub fn text(w: &Workload) -> Result<String, ExportError> {
    let [program] = w.programs.as_slice() else {
        return Err(cannot(FORM, format!("ranks run {} different programs; it holds one for all", w.programs.len())));
    };
    if program.iteration_ends.len() > 1 {
        return Err(cannot(
            FORM,
            format!(
                "there are {} iterations; write one, and let the simulator repeat it",
                program.iteration_ends.len()
            ),
        ));
    }
    let ep = group_size(w, program, Dim::Ep)?;
    let tp = tensor_parallel(w, program)?;
    let rows = rows(w, program, tp)?;
    let mut out = String::new();
    let infallible = "writing to a string cannot fail";
    writeln!(
        out,
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: {ep} pp: 1 vpp: 1 ga: 1 all_gpus: {} checkpoints: 0 checkpoint_initiates: 0",
        w.ranks.len()
    )
    .expect(infallible);
    writeln!(out, "{}", rows.len()).expect(infallible);
    for r in &rows {
        write!(out, "{}\t-1", r.name).expect(infallible);
        for part in [&r.fwd, &r.ig, &r.wg] {
            write!(out, "\t{}\t{}\t{}", part.ns, part.comm, part.bytes).expect(infallible);
        }
        writeln!(out, "\t{}", r.update_ns).expect(infallible);
    }
    check(w, &out)?;
    Ok(out)
}

/// One part of a row: compute, then a collective.
struct Part {
    ns: u64,
    comm: String,
    bytes: u64,
}

impl Default for Part {
    fn default() -> Part {
        Part { ns: 0, comm: "NONE".to_string(), bytes: 0 }
    }
}

#[derive(Default)]
struct Row {
    name: String,
    fwd: Part,
    ig: Part,
    wg: Part,
    update_ns: u64,
}

fn rows(w: &Workload, program: &Program, tp: u32) -> Result<Vec<Row>, ExportError> {
    let (mut forward, mut backward): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
    let waiters = waiters(program);
    let mut phase = Phase::Forward;
    // Name and nanoseconds of a compute that is not written yet; the next collective joins its row.
    let mut pending: Option<(u32, u64)> = None;
    let flush = |pending: &mut Option<(u32, u64)>, phase: Phase, forward: &mut Vec<Row>, backward: &mut Vec<Row>| {
        if let Some((name, ns)) = pending.take() {
            let part = Part { ns, ..Part::default() };
            let name = word(&w.names[name]);
            match phase {
                Phase::Forward => forward.push(Row { name, fwd: part, ..Row::default() }),
                _ => backward.push(Row { name, ig: part, ..Row::default() }),
            }
        }
    };
    for (i, op) in program.ops.iter().enumerate() {
        match op.kind {
            OpKind::Join => {}
            OpKind::Send { .. } | OpKind::Recv { .. } => {
                return Err(cannot(
                    FORM,
                    format!("operation {i} is a message between two ranks; it holds collectives only"),
                ));
            }
            OpKind::Compute { ps, .. } if op.stream == Stream::FREE && follows_collective(program, i as u32) => {
                let row = if phase == Phase::Forward { forward.last_mut() } else { backward.last_mut() };
                if let Some(row) = row {
                    row.update_ns = ps.div_ceil(PS_PER_NS);
                }
            }
            OpKind::Compute { ps, phase: this } => {
                flush(&mut pending, phase, &mut forward, &mut backward);
                if this == Phase::Forward && phase != Phase::Forward {
                    return Err(cannot(FORM, format!("operation {i} is a forward pass after a backward pass")));
                }
                phase = this;
                pending = Some((op.name, ps.div_ceil(PS_PER_NS)));
            }
            OpKind::Collective { op: operation, slot, bytes, dim, algorithm, shares } => {
                if shares.is_some() || algorithm.is_some_and(|a| a != Algorithm::Auto) {
                    return Err(cannot(FORM, format!("operation {i} has uneven shares or an algorithm of its own")));
                }
                let is_asynchronous = !waited_for(program, &waiters, i);
                let comm = comm(w, operation, dim, slot, tp, i)?;
                let (name, ns) = pending.take().unwrap_or((op.name, 0));
                let (name, part) = (word(&w.names[name]), Part { ns, comm, bytes });
                match (phase, dim) {
                    (_, Dim::Dp) if !is_asynchronous => {
                        return Err(cannot(
                            FORM,
                            format!("operation {i} is a data-parallel collective that other operations wait for"),
                        ));
                    }
                    // A collective of weight gradients gets a row of its own. Rows are written in reverse, so the last row is the first in backward.
                    (_, Dim::Dp) => backward.push(Row { name, wg: part, ..Row::default() }),
                    (Phase::Forward, _) => forward.push(Row { name, fwd: part, ..Row::default() }),
                    _ => backward.push(Row { name, ig: part, ..Row::default() }),
                }
            }
        }
    }
    flush(&mut pending, phase, &mut forward, &mut backward);
    forward.extend(backward.into_iter().rev());
    if forward.is_empty() {
        return Err(cannot(FORM, "there is nothing to do in it"));
    }
    Ok(forward)
}

/// A name as a row of SimAI's text can hold it: one word that does not begin with `#`.
fn word(name: &str) -> String {
    let name: String = name.split_whitespace().collect::<Vec<_>>().join("_");
    if name.is_empty() || name.starts_with('#') { format!("_{name}") } else { name }
}

/// Whether an operation waits for collectives alone. Such an operation is the update time after them.
fn follows_collective(program: &Program, i: u32) -> bool {
    let deps = program.deps_of(i);
    !deps.is_empty() && deps.iter().all(|&d| matches!(program.ops[d as usize].kind, OpKind::Collective { .. }))
}

/// For each operation, how many operations name it as a dependency, and the last of those.
fn waiters(program: &Program) -> Vec<(u32, u32)> {
    let mut out = vec![(0, 0); program.ops.len()];
    for i in 0..program.ops.len() as u32 {
        for &d in program.deps_of(i) {
            out[d as usize] = (out[d as usize].0 + 1, i);
        }
    }
    out
}

/// Whether anything waits for a collective, other than the update time right after it.
fn waited_for(program: &Program, waiters: &[(u32, u32)], collective: usize) -> bool {
    match waiters[collective] {
        (0, _) => false,
        (1, one) if program.ops[one as usize].stream == Stream::FREE && follows_collective(program, one) => {
            waiters[one as usize].0 > 0
        }
        _ => true,
    }
}

fn comm(w: &Workload, op: CollectiveOp, dim: Dim, slot: u16, tp: u32, i: usize) -> Result<String, ExportError> {
    let word = match op {
        CollectiveOp::AllReduce => "ALLREDUCE",
        CollectiveOp::AllGather => "ALLGATHER",
        CollectiveOp::ReduceScatter => "REDUCESCATTER",
        CollectiveOp::AllToAll => "ALLTOALL",
        CollectiveOp::Broadcast => "BROADCAST",
        CollectiveOp::Reduce | CollectiveOp::Barrier | CollectiveOp::Experts(_) => {
            return Err(cannot(FORM, format!("operation {i} is a {op:?}")));
        }
    };
    let suffix = match dim {
        Dim::Ep => "_EP",
        Dim::Dp if !is_full_dp(w, slot, tp) => "_DP_EP",
        Dim::Tp | Dim::Dp => "",
        Dim::Pp | Dim::Cp | Dim::Other => {
            return Err(cannot(
                FORM,
                format!("operation {i} is a collective of dimension {dim:?}; it has TP, DP and EP"),
            ));
        }
    };
    Ok(format!("{word}{suffix}"))
}

/// Whether a data-parallel slot spans all replicas, not only those with the same experts.
fn is_full_dp(w: &Workload, slot: u16, tp: u32) -> bool {
    w.groups[w.ranks[0].groups[slot as usize] as usize].members.len() as u64 * u64::from(tp) == w.ranks.len() as u64
}

/// Size of the tensor-parallel groups. If those have no collective, it is the distance between expert-parallel neighbours, else between data-parallel ones.
fn tensor_parallel(w: &Workload, program: &Program) -> Result<u32, ExportError> {
    let size = group_size(w, program, Dim::Tp)?;
    if size > 1 {
        return Ok(size);
    }
    let stride = |dim: Dim| {
        program.ops.iter().find_map(|op| match op.kind {
            OpKind::Collective { slot, dim: d, .. } if d == dim => {
                let members = &w.groups[w.ranks[0].groups[slot as usize] as usize].members;
                members.get(1).map(|second| second.abs_diff(members[0]).max(1))
            }
            _ => None,
        })
    };
    Ok(stride(Dim::Ep).or_else(|| stride(Dim::Dp)).unwrap_or(1))
}

/// Size of the groups of a dimension, or 1 if the dimension has no collective.
fn group_size(w: &Workload, program: &Program, dim: Dim) -> Result<u32, ExportError> {
    let mut sizes = BTreeSet::new();
    for op in &program.ops {
        if let OpKind::Collective { slot, dim: d, .. } = op.kind
            && d == dim
        {
            sizes.extend(w.ranks.iter().map(|r| w.groups[r.groups[slot as usize] as usize].members.len() as u32));
        }
    }
    match sizes.len() {
        0 => Ok(1),
        1 => Ok(*sizes.first().unwrap_or(&1)),
        _ => Err(cannot(FORM, format!("groups of dimension {dim:?} have the sizes {sizes:?}; it knows one"))),
    }
}

/// Checks that the text reads back with the same groups. Otherwise SimAI would place ranks differently.
fn check(w: &Workload, text: &str) -> Result<(), ExportError> {
    let back = simai::parse("the text as written", text, &ImportOptions::default())
        .map_err(|e| cannot(FORM, e.to_string()))?;
    if used_groups(w) != used_groups(&back.workload) {
        return Err(cannot(
            FORM,
            "groups do not lie as SimAI places them: tensor-parallel ranks next to each other, then expert-parallel ones, then the rest",
        ));
    }
    Ok(())
}

/// Member lists of all groups that have a collective.
fn used_groups(w: &Workload) -> BTreeSet<&[u32]> {
    let mut out = BTreeSet::new();
    for r in &w.ranks {
        let mut seen = BTreeSet::new();
        for op in &w.programs[r.program as usize].ops {
            if let OpKind::Collective { slot, .. } = op.kind
                && seen.insert(slot)
            {
                out.insert(w.groups[r.groups[slot as usize] as usize].members.as_slice());
            }
        }
    }
    out
}
