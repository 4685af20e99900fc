//! Chooses the next turn.
//!
//! Layer: fold/run.

use std::cmp::Reverse;

use crate::rows::index::PartitionIdx;
use crate::run::fold_run::FoldRun;
use crate::run::turn_schedule::TurnRank;
use hyperfold_columns::{NEVER, NONE, NicIdx, Tables, TaskIdx};
use hyperfold_engine::cpu::{analytical, schedule};

/// The earliest scheduled turn: its time in ps, and the NIC that identifies it.
pub(crate) fn peek(run: &mut FoldRun) -> Option<(u64, NicIdx)> {
    while let Some(&Reverse((at_ps, rank, n))) = run.schedule.heap.peek() {
        let valid = match run.index.nic_partition[n.usize()] {
            PartitionIdx::NONE => rank == TurnRank::Idle && run.schedule.idle_at[n.usize()] == at_ps,
            p => run.partitions[p].first == n && run.partitions[p].next == at_ps && turn_rank(run, p) == rank,
        };
        if valid {
            return Some((at_ps, n));
        }
        run.schedule.heap.pop();
    }
    None
}

pub(crate) fn turn_rank(run: &FoldRun, p: PartitionIdx) -> TurnRank {
    if !run.partitions[p].is_simulated() { TurnRank::LookUp } else { TurnRank::Simulate }
}

/// Schedules NIC `n`, which may have something to do earlier than scheduled.
pub(crate) fn schedule_nic(run: &mut FoldRun, t: &Tables, n: NicIdx) {
    let row = &t.nics[n];
    let at_ps = row.next_task.min(row.next_start);
    match run.index.nic_partition[n.usize()] {
        PartitionIdx::NONE => {
            if at_ps != NEVER && run.schedule.idle_at[n.usize()] != at_ps {
                run.schedule.heap.push(Reverse((at_ps, TurnRank::Idle, n)));
            }
            run.schedule.idle_at[n.usize()] = at_ps;
        }
        p => schedule_partition(run, p, at_ps),
    }
}

/// Schedules partition `p`, which has something to do at `at_ps`.
pub(crate) fn schedule_partition(run: &mut FoldRun, p: PartitionIdx, at_ps: u64) {
    let rank = turn_rank(run, p);
    let partition = &mut run.partitions[p];
    partition.next = partition.next.min(at_ps);
    if partition.next != NEVER {
        run.schedule.heap.push(Reverse((partition.next, rank, partition.first)));
    }
}

/// Delivers the signals that NIC `n` gave to their gates.
pub(crate) fn collect(run: &mut FoldRun, t: &mut Tables, n: NicIdx) {
    let fired = &mut run.schedule.fired;
    schedule::collect_into(t, n, &mut |t, g| fired.push(Reverse((t.gates[g as usize].latest, g))));
}

/// Delivers the signals that NICs of `p` gave to their gates.
pub(crate) fn collect_all(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) {
    for k in 0..run.partitions[p].rows.nics.len() {
        let n = run.partitions[p].rows.nics[k];
        if t.nics[n].signals != NONE {
            collect(run, t, n);
        }
    }
}

/// Serves gate `g` and schedules the NICs of the tasks that it starts. `g` is the first gate that fired, and none can fire earlier any more.
pub(crate) fn serve(run: &mut FoldRun, t: &mut Tables, g: u32) {
    analytical::serve(t, g);
    let g = g as usize;
    for k in t.gates[g].first..t.gates[g].first + t.gates[g].n {
        let owner = t.tasks[TaskIdx(t.edges[k as usize])].owner;
        schedule_nic(run, t, owner);
    }
}
