//! Writes programs as an ns-3 flow file, in which each message is a flow with a fixed start time.
//!
//! Layer: workload. A flow file says when a flow starts, not what it waits for. So the workload must have no collectives, and its sends may wait for compute
//! only. Hosts are named by rank, in the order of sends by rank. Priority group and port are those of the ns-3 examples.

use std::fmt::Write;

use super::{ExportError, cannot};
use crate::workload::program::{OpKind, Stream, Workload};
use hyperfold_base::units::PS_PER_S;

const FORM: &str = "a flow file";
const PRIORITY: u8 = 3;
const DPORT: u16 = 100;

/// The text of the flow file, with start times in seconds.
///
/// # Errors
/// There is a collective or a send that waits for a message, or there is nothing to send.
pub fn text(w: &Workload) -> Result<String, ExportError> {
    let mut lines = Vec::new();
    for (rank, r) in w.ranks.iter().enumerate() {
        let program = &w.programs[r.program as usize];
        // End of each operation in ps; `None` if it depends on a message.
        let mut ends: Vec<Option<u64>> = Vec::with_capacity(program.ops.len());
        let mut last_on: [Option<u32>; 256] = [None; 256];
        for (i, op) in program.ops.iter().enumerate() {
            let before = if op.stream == Stream::FREE { None } else { last_on[op.stream.0 as usize].replace(i as u32) };
            let waits = program.deps_of(i as u32).iter().copied().chain(before).map(|d| ends[d as usize]);
            let start = waits.reduce(|a, b| Some(a?.max(b?))).unwrap_or(Some(0));
            let end = match op.kind {
                OpKind::Compute { ps, .. } => start.map(|s| s.saturating_add(ps)),
                OpKind::Join => start,
                OpKind::Recv { .. } => None,
                OpKind::Send { peer, bytes, .. } => {
                    let start = start.ok_or_else(|| {
                        cannot(FORM, format!("operation {i} of rank {rank} is a send that waits for a message"))
                    })?;
                    let dst = w.groups[r.groups[peer.slot as usize] as usize].members[peer.member as usize];
                    lines.push(format!(
                        "{rank} {dst} {PRIORITY} {DPORT} {bytes} {}.{:012}",
                        start / PS_PER_S,
                        start % PS_PER_S
                    ));
                    None
                }
                OpKind::Collective { op, .. } => {
                    return Err(cannot(
                        FORM,
                        format!(
                            "operation {i} of rank {rank} is a collective ({op:?}); its transfers wait for each other"
                        ),
                    ));
                }
            };
            ends.push(end);
        }
    }
    if lines.is_empty() {
        return Err(cannot(FORM, "no rank sends anything"));
    }
    let mut out = String::new();
    writeln!(out, "{}", lines.len()).expect("writing to a string cannot fail");
    for line in lines {
        writeln!(out, "{line}").expect("writing to a string cannot fail");
    }
    Ok(out)
}
