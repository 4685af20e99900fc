//! Checks that every importer makes at the end: each send has its receive, and the members of a group have the same collectives.
//!
//! Layer: workload. A workload that passes comes to its end on any network that delivers every message.

use std::collections::{BTreeMap, BTreeSet};

use super::ImportError;
use crate::workload::critical_path::free_makespan;
use crate::workload::program::{OpKind, Program, Workload};

/// One end of a message in a program's slot.
#[derive(Clone, Copy)]
struct Point {
    is_send: bool,
    member: u32,
    tag: u32,
}

/// Checks messages and collectives of a workload; `path` is for messages.
pub(super) fn matching(path: &str, w: &Workload) -> Result<(), ImportError> {
    messages(path, w)?;
    collectives(path, w)
}

/// Checks what [`matching`] checks, and that nothing waits for ever. Use it for graphs written by others. The cost grows with the number of operations of all
/// ranks.
pub(super) fn sound(path: &str, w: &Workload) -> Result<(), ImportError> {
    matching(path, w)?;
    free_makespan(w).map(|_| ()).map_err(|stuck| ImportError::graph(path, stuck.to_string()))
}

/// Checks that each message has both ends. Groups whose members run the same programs in the same order are checked once.
fn messages(path: &str, w: &Workload) -> Result<(), ImportError> {
    let by_program: Vec<BTreeMap<u16, Vec<Point>>> = w.programs.iter().map(points).collect();
    let mut checked: BTreeSet<Vec<(u32, u16)>> = BTreeSet::new();
    for (index, group) in w.groups.iter().enumerate() {
        // Program and slot of each member. A group has only one slot in a rank.
        let slot_of = |&m: &u32| {
            let r = &w.ranks[m as usize];
            r.groups.iter().position(|&g| g == index as u32).map_or((r.program, u16::MAX), |s| (r.program, s as u16))
        };
        let members: Vec<(u32, u16)> = group.members.iter().map(slot_of).collect();
        let points_of = |&(program, slot): &(u32, u16)| by_program[program as usize].get(&slot);
        if members.iter().all(|m| points_of(m).is_none()) || !checked.insert(members.clone()) {
            continue;
        }
        // Number of sends and of receives, by (sender, receiver, tag).
        let mut balance: BTreeMap<(u32, u32, u32), (u64, u64)> = BTreeMap::new();
        for (me, member) in members.iter().enumerate() {
            for point in points_of(member).into_iter().flatten() {
                let key = if point.is_send {
                    (me as u32, point.member, point.tag)
                } else {
                    (point.member, me as u32, point.tag)
                };
                let entry = balance.entry(key).or_default();
                *if point.is_send { &mut entry.0 } else { &mut entry.1 } += 1;
            }
        }
        for ((from, to, tag), (sent, received)) in balance {
            if sent != received {
                let (from, to) = (group.members[from as usize], group.members[to as usize]);
                let problem = format!(
                    "rank {from} sends {sent} message(s) to rank {to} with tag {tag}, but rank {to} receives {received} of them; each send needs its receive"
                );
                return Err(ImportError::graph(path, problem));
            }
        }
    }
    Ok(())
}

/// The sends and receives of a program, by slot.
fn points(p: &Program) -> BTreeMap<u16, Vec<Point>> {
    let mut slots: BTreeMap<u16, Vec<Point>> = BTreeMap::new();
    for op in &p.ops {
        let (peer, tag, is_send) = match op.kind {
            OpKind::Send { peer, tag, .. } => (peer, tag, true),
            OpKind::Recv { peer, tag, .. } => (peer, tag, false),
            _ => continue,
        };
        slots.entry(peer.slot).or_default().push(Point { is_send, member: peer.member, tag });
    }
    slots
}

/// The k-th collective of a group must be the same operation with the same bytes on all members.
fn collectives(path: &str, w: &Workload) -> Result<(), ImportError> {
    let mut by_program: Vec<BTreeMap<u16, Vec<(crate::collective::CollectiveOp, u64)>>> = Vec::new();
    for p in &w.programs {
        let mut slots: BTreeMap<u16, Vec<_>> = BTreeMap::new();
        for op in &p.ops {
            if let OpKind::Collective { op, slot, bytes, .. } = op.kind {
                slots.entry(slot).or_default().push((op, bytes));
            }
        }
        by_program.push(slots);
    }
    // For each group, the first member met: (rank, program, slot). The others are compared with it.
    let mut first: Vec<Option<(u32, u32, u16)>> = vec![None; w.groups.len()];
    let none = Vec::new();
    for (rank, r) in w.ranks.iter().enumerate() {
        for (slot, &group) in r.groups.iter().enumerate() {
            let here = by_program[r.program as usize].get(&(slot as u16)).unwrap_or(&none);
            let Some((other, program, other_slot)) = first[group as usize] else {
                first[group as usize] = Some((rank as u32, r.program, slot as u16));
                continue;
            };
            let there = by_program[program as usize].get(&other_slot).unwrap_or(&none);
            if std::ptr::eq(here, there) || here == there {
                continue;
            }
            let k = here.iter().zip(there).position(|(a, b)| a != b).unwrap_or(here.len().min(there.len()));
            let told = |list: &[(crate::collective::CollectiveOp, u64)]| match list.get(k) {
                Some((op, bytes)) => format!("{op:?} of {bytes} bytes"),
                None => "none".to_string(),
            };
            let problem = format!(
                "collective {k} of a group of {} ranks differs: rank {other} has {}, rank {rank} has {}; all members must agree",
                w.groups[group as usize].members.len(),
                told(there),
                told(here)
            );
            return Err(ImportError::graph(path, problem));
        }
    }
    Ok(())
}
