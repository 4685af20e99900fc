//! The turn of a partition that is simulated.
//!
//! Layer: fold/run.

use super::simulate::{next_event_at, step_span};
use crate::run::fold_run::FoldRun;
use crate::run::lookups::checkpoint::checkpoint_if_due;
use crate::run::lookups::claim::update_claim;
use crate::run::lookups::recording::{drain, flush_covered};
use crate::run::partitions::couple::process_jointly_if_due;
use crate::run::partitions::retire::retire_idle;
use crate::run::skips::detection::next_sampling;
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use hyperfold_columns::{NEVER, NONE, Tables};

/// Runs the turn of simulated partition `p` from `at_ps`, which is the earliest time of all.
pub(crate) fn simulate_turn(run: &mut FoldRun, t: &mut Tables, p: u32, at_ps: u64) -> Result<(), Stop> {
    if run.partitions[p as usize].retires_at <= at_ps {
        retire_idle(run, t, p);
        return Ok(());
    }
    if process_jointly_if_due(run, t, p, at_ps) || checkpoint_if_due(run, t, p, at_ps) {
        return Ok(());
    }
    // Everything before a sample must have happened and nothing after it, including effects on other partitions.
    let sampling_at = next_sampling(run).map_or(NEVER, |sampling_at| sampling_at.0);
    let end = run.partitions[p as usize].mark(at_ps + 1, run.step).min(t.exps[0].time_limit).min(sampling_at);
    let end = end.min(run.hand_over_after.unwrap_or(NEVER));
    run.partitions[p as usize].next = NEVER;
    run.partitions[p as usize].covered = end;
    run.partitions[p as usize].reached = run.partitions[p as usize].reached.max(end);
    if let Some(cursor) = &mut run.partitions[p as usize].cursor {
        cursor.turn(at_ps);
    }
    run.turning = p;
    let p = step_span(run, t, p, at_ps, end)?;
    run.turning = NONE;
    drain(run, t, p);
    t.exps[0].now = t.exps[0].now.max(end);
    let next = next_event_at(run, t, p);
    // A NIC stops where rows must join.
    run.partitions[p as usize].covered = end.min(next);
    // A sample may lead to a skip or a checkpoint.
    let known = next.min(run.partitions[p as usize].detector.next());
    flush_covered(run, p, known);
    update_claim(run, p);
    schedule_partition(run, p, next);
    Ok(())
}
