//! The ops of one rank become tasks, and the order of its streams becomes edges.
//!
//! Layer: workload.

use std::collections::{BTreeMap, HashMap};

use super::calls::{Call, CollectiveCalls};
use super::error::LowerError;
use super::lowerer::Lowerer;
use super::messages::{End, MessageEnds};
use super::rescale;
use crate::workload::program::{OpKind, Stream};
use crate::workload::tasks::{OpTasks, Work};

/// Makes the tasks of one rank's ops, and the edges within the rank. Adds its collectives to `calls` and its messages to `matches`.
pub(super) fn rank(
    l: &mut Lowerer,
    rank: u32,
    calls: &mut CollectiveCalls,
    matches: &mut BTreeMap<(u32, u32, u32), MessageEnds>,
) -> Result<(), LowerError> {
    let info = &l.workload.ranks[rank as usize];
    let program = &l.workload.programs[info.program as usize];
    let mut ops: Vec<OpTasks> = Vec::with_capacity(program.ops.len());
    let mut last: [u32; 256] = [u32::MAX; 256];
    let mut called: HashMap<u32, u32> = HashMap::new();
    for (i, op) in program.ops.iter().enumerate() {
        let i = i as u32;
        l.check_task_limit(3, rank, i)?;
        let tasks = match op.kind {
            OpKind::Compute { ps, .. } => {
                let ps = rescale::scaled(ps, (l.machine.factor_q32)(rank, i));
                let task = l.graph.task(rank, ps, Work::Delay);
                OpTasks { begin: task, go: u32::MAX, end: task }
            }
            OpKind::Join => {
                let task = l.graph.join(rank);
                OpTasks { begin: task, go: u32::MAX, end: task }
            }
            OpKind::Collective { op: operation, slot, bytes, dim, algorithm, shares } => {
                let group = info.groups[slot as usize];
                let group =
                    l.machine.representatives.map_or(group, |representatives| representatives.group[group as usize]);
                let call = Call { op: operation, bytes, dim, algorithm, shares };
                let nth = called.entry(group).or_insert(0);
                let tasks = calls.record(l, rank, i, group, *nth, call)?;
                *nth += 1;
                tasks
            }
            OpKind::Send { peer, bytes, tag, dim } | OpKind::Recv { peer, bytes, tag, dim } => {
                let other = l.workload.groups[info.groups[peer.slot as usize] as usize].members[peer.member as usize];
                let begin = l.graph.join(rank);
                let end = l.graph.join(rank);
                let free = op.stream == Stream::FREE;
                // The begin of a send posts the message. The end of a receive waits for its arrival. `messages` adds the tasks between them.
                if matches!(op.kind, OpKind::Send { .. }) {
                    matches.entry((rank, other, tag)).or_default().sends.push(End { op: i, bytes, tag, dim, free });
                } else {
                    matches.entry((other, rank, tag)).or_default().recvs.push(End { op: i, bytes, tag, dim, free });
                    l.graph.after(begin, end);
                }
                OpTasks { begin, go: u32::MAX, end }
            }
        };
        let stream = op.stream.0 as usize;
        if op.stream != Stream::FREE {
            if last[stream] != u32::MAX {
                l.graph.after(last[stream], tasks.begin);
            }
            last[stream] = tasks.end;
        }
        for &dep in program.deps_of(i) {
            l.graph.after(ops[dep as usize].end, tasks.begin);
        }
        ops.push(tasks);
    }
    l.graph.ops.push(ops);
    Ok(())
}
