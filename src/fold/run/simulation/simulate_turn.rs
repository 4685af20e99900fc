//! The turn of a partition that is simulated.
//!
//! Layer: fold/run.

use super::simulate::{end_span, next_event_at, step_span};
use crate::rows::index::PartitionIdx;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::checkpoint::checkpoint_if_due;
use crate::run::lookups::claim::update_claim;
use crate::run::lookups::recording::{drain, flush_covered};
use crate::run::partitions::couple::process_jointly_if_due;
use crate::run::partitions::join::join;
use crate::run::partitions::retire::retire_idle;
use crate::run::skips::sampling_turns::next_sampling;
use crate::run::skips::series_samples::next_sample_at;
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use hyperfold_columns::{NEVER, NicIdx, Tables};
use hyperfold_engine::cpu::key::START;
use hyperfold_engine::cpu::nic;

/// Runs the turn of simulated partition `p` from `at_ps`, which is the earliest time of all.
pub(crate) fn simulate_turn(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    if run.partitions[p].retires_at <= at_ps {
        retire_idle(run, t, p);
        return Ok(());
    }
    if process_jointly_if_due(run, t, p, at_ps) || checkpoint_if_due(run, t, p, at_ps) {
        return Ok(());
    }
    // Everything before a sample must have happened and nothing after it, including effects on other partitions.
    let sampling_at = next_sampling(run).map_or(NEVER, |sampling_at| sampling_at.0);
    let end = run.partitions[p].mark(at_ps + 1, run.step).min(t.exps[0].time_limit).min(sampling_at);
    let end = end.min(run.hand_over_after.unwrap_or(NEVER)).min(next_sample_at(t));
    run.partitions[p].next = NEVER;
    run.partitions[p].covered = end;
    run.partitions[p].reached = run.partitions[p].reached.max(end);
    if let Some(cursor) = &mut run.partitions[p].cursor {
        cursor.turn(at_ps);
    }
    run.turning = p;
    let stalled = step_span(run, t, p, at_ps, end)?;
    let p = join_stalled(run, t, p, stalled, at_ps, end)?;
    end_span(run, t, p)?;
    run.turning = PartitionIdx::NONE;
    drain(run, t, p);
    t.exps[0].now = t.exps[0].now.max(end);
    let next = next_event_at(run, t, p);
    // A NIC stops where rows must join.
    run.partitions[p].covered = end.min(next);
    // A sample may lead to a skip or a checkpoint.
    let known = next.min(run.partitions[p].detector.next());
    flush_covered(run, p, known);
    update_claim(run, p);
    schedule_partition(run, p, next);
    Ok(())
}

/// For each of the `stalled` NICs, which stopped because a queue pair needs rows outside `p`: if it needs them at `at_ps`, they join, and the NIC goes
/// on up to `end_ps`. Returns the partition that the rows belong to then.
fn join_stalled(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    mut stalled: Vec<NicIdx>,
    at_ps: u64,
    end_ps: u64,
) -> Result<PartitionIdx, Stop> {
    let own = t.exps[0].end_len;
    let mut p = p;
    while let Some(k) = (0..stalled.len()).find(|&k| t.clocks[stalled[k].end().own_clock(own)] <= at_ps) {
        let n = stalled[k];
        let next = nic::next_event(t, n);
        let flow = if next.kind == START {
            let row = &t.nics[n];
            row.flow_first + row.flow_next
        } else {
            t.tasks[t.nics[n].task_head].flow
        };
        drain(run, t, p);
        p = join(run, t, n, flow, next.t)?;
        nic::nic(t, n, end_ps);
        if t.clocks[n.end().own_clock(own)] > at_ps {
            stalled.remove(k);
        }
    }
    Ok(p)
}
