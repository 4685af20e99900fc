//! Writes programs as Chakra execution traces, one per rank.
//!
//! Layer: workload. Each operation becomes a node with the operation's index as its id. Dependencies become data dependencies. The order of a stream becomes a
//! control dependency on the operation before. `comm_size` counts what a rank begins with, as `import::chakra` reads it. Chakra has durations in whole
//! microseconds; they are rounded up. Exact durations, and what Chakra has no field for, go into attributes of this project (`hyperfold_*`), so that reading
//! back gives an equal graph. The ends of iterations are not kept.

use std::collections::BTreeMap;

use super::{ExportError, cannot};
use crate::collective::{Algorithm, CollectiveOp};
use crate::workload::import::chakra::{DIMS, PHASES};
use crate::workload::import::et::{self, ExecutionTraceNode};
use crate::workload::program::{Dim, OpKind, Phase, Stream, Workload};
use hyperfold_base::protobuf::ProtoMessage;
use hyperfold_base::units::PS_PER_US;

const FORM: &str = "a Chakra trace";

/// The trace of one rank, as the content of its `.et` file.
///
/// # Errors
/// A collective has an algorithm of its own or uneven shares, or does not use NCCL.
pub fn trace(w: &Workload, rank: u32) -> Result<Vec<u8>, ExportError> {
    let r = &w.ranks[rank as usize];
    let program = &w.programs[r.program as usize];
    let mut out = ProtoMessage::default();
    et::write_metadata(&mut out);
    let mut last_on: [Option<u32>; 256] = [None; 256];
    for (i, op) in program.ops.iter().enumerate() {
        let deps = program.deps_of(i as u32);
        let before = match op.stream {
            Stream::FREE => None,
            Stream(s) => last_on[s as usize].replace(i as u32),
        };
        let mut n = ExecutionTraceNode {
            id: i as u64,
            name: &w.names[op.name],
            ctrl_deps: before.filter(|b| !deps.contains(b)).map(u64::from).into_iter().collect(),
            data_deps: deps.iter().map(|&d| u64::from(d)).collect(),
            ..ExecutionTraceNode::default()
        };
        let group;
        match op.kind {
            OpKind::Join => n.kind = et::METADATA,
            OpKind::Compute { ps, phase } => {
                n.kind = et::COMPUTE;
                n.duration_micros = ps.div_ceil(PS_PER_US);
                n.duration_ps = (!ps.is_multiple_of(PS_PER_US)).then_some(ps as i64);
                n.phase = phase_name(phase);
            }
            OpKind::Send { peer, bytes, tag, dim } | OpKind::Recv { peer, bytes, tag, dim } => {
                let other = i64::from(w.groups[r.groups[peer.slot as usize] as usize].members[peer.member as usize]);
                let send = matches!(op.kind, OpKind::Send { .. });
                n.kind = if send { et::SEND } else { et::RECV };
                *if send { &mut n.comm_dst } else { &mut n.comm_src } = Some(other);
                (n.comm_size, n.comm_tag, n.dim) = (Some(bytes as i64), Some(i64::from(tag)), dim_name(dim));
            }
            OpKind::Collective { op: operation, slot, bytes, dim, algorithm, shares } => {
                if shares.is_some() {
                    return Err(cannot(
                        FORM,
                        format!("operation {i} of rank {rank} is an all-to-all with uneven shares"),
                    ));
                }
                if let Some(a) = algorithm.filter(|a| *a != Algorithm::Auto) {
                    return Err(cannot(FORM, format!("operation {i} of rank {rank} asks for the algorithm {a:?}")));
                }
                if matches!(operation, CollectiveOp::Experts(_)) {
                    let what = "an exchange with experts without NCCL (workload.ep_dispatcher)";
                    return Err(cannot(FORM, format!("operation {i} of rank {rank} is {what}")));
                }
                let index = r.groups[slot as usize];
                let members = w.groups[index as usize].members.len() as u64;
                n.kind = et::COLLECTIVE;
                n.comm_type = Some(comm_type(operation));
                n.comm_size =
                    Some(if operation == CollectiveOp::AllGather { bytes.div_ceil(members) } else { bytes } as i64);
                n.collective_bytes =
                    (operation == CollectiveOp::AllGather && !bytes.is_multiple_of(members)).then_some(bytes as i64);
                n.dim = dim_name(dim);
                group = group_name(index);
                n.pg_name = (!is_world(w, index)).then_some(group.as_str());
            }
        }
        et::write_node(&mut out, &n);
    }
    Ok(out.into_bytes())
}

/// Content of the file that lists the members of process groups (`import::chakra::GROUPS_FILE`). The result is `None` if every collective spans all ranks.
pub fn groups_file(w: &Workload) -> Option<String> {
    let mut used = vec![false; w.groups.len()];
    let mut slots: Vec<Vec<u16>> = Vec::with_capacity(w.programs.len());
    for p in &w.programs {
        let mut program_slots: Vec<u16> = p
            .ops
            .iter()
            .filter_map(|op| if let OpKind::Collective { slot, .. } = op.kind { Some(slot) } else { None })
            .collect();
        program_slots.sort_unstable();
        program_slots.dedup();
        slots.push(program_slots);
    }
    for r in &w.ranks {
        for &slot in &slots[r.program as usize] {
            used[r.groups[slot as usize] as usize] = true;
        }
    }
    let named = (0..w.groups.len() as u32).filter(|&g| used[g as usize] && !is_world(w, g));
    let map: BTreeMap<String, &[u32]> =
        named.map(|g| (group_name(g), w.groups[g as usize].members.as_slice())).collect();
    (!map.is_empty()).then(|| serde_json::to_string(&map).expect("text and numbers are always JSON"))
}

/// A group's name. The number is padded with zeros, so that names sort in the order of the groups.
fn group_name(index: u32) -> String {
    format!("{index:08}")
}

/// Whether the group needs no name. A collective without a group name spans all ranks.
fn is_world(w: &Workload, index: u32) -> bool {
    let members = &w.groups[index as usize].members;
    index == 0 && members.len() == w.ranks.len() && members.iter().enumerate().all(|(i, &m)| m == i as u32)
}

fn comm_type(op: CollectiveOp) -> i64 {
    match op {
        CollectiveOp::AllReduce => 0,
        CollectiveOp::Reduce => 1,
        CollectiveOp::AllGather => 2,
        CollectiveOp::Broadcast => 5,
        // Exchanges with experts without NCCL are refused before.
        CollectiveOp::AllToAll | CollectiveOp::Experts(_) => 6,
        CollectiveOp::ReduceScatter => 7,
        CollectiveOp::Barrier => 9,
    }
}

/// A dimension as the text of an attribute. `other` has none, because a trace without the attribute is read as `other`.
fn dim_name(dim: Dim) -> Option<&'static str> {
    DIMS.iter().find(|(_, d)| *d == dim && dim != Dim::Other).map(|(t, _)| *t)
}

fn phase_name(phase: Phase) -> Option<&'static str> {
    PHASES.iter().find(|(_, p)| *p == phase && phase != Phase::Other).map(|(t, _)| *t)
}
