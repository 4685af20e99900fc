//! Lets prepared copies of an experiment go on. They begin no skips.
//!
//! Layer: fold/run. Changes nothing but counts.

use std::time::Instant;

use super::compare_copies::sent;
use super::copies::ExperimentCopy;
use crate::run::fold_run::{FoldRun, PreparedCopy};
use crate::run::lookups::lookup::start_simulating;
use crate::run::simulation::simulate::next_event_at;
use crate::run::skips::gain::message_hops;
use crate::run::skips::sampling_turns::schedule_sampling;
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use hyperfold_columns::{NEVER, Tables, TaskIdx, status};

/// Lets the copies that `run` has prepared go on to their ends. `take_turn` takes a turn of one.
pub(crate) fn go_on_with_copies(
    run: &mut FoldRun,
    t: &Tables,
    mut take_turn: impl FnMut(&mut FoldRun, &mut Tables) -> Result<(), Stop>,
) {
    for prepared in std::mem::take(&mut run.prepared_copies) {
        finish(run, t, prepared, &mut take_turn);
    }
}

/// Lets one copy go on to its end, and keeps what it did for the comparison.
fn finish(
    run: &mut FoldRun,
    t: &Tables,
    mut prepared: PreparedCopy,
    take_turn: &mut impl FnMut(&mut FoldRun, &mut Tables) -> Result<(), Stop>,
) {
    let began = Instant::now();
    let copied = go_on(&mut prepared, take_turn);
    run.continued.tables = prepared.tables;
    match copied {
        Ok(copied) => {
            // Other partitions go on in the copy as well, and others join. The messages that ended show that.
            let took: u64 = copied.tasks.iter().map(|&(i, ..)| message_hops(t, &t.tasks[i])).sum();
            run.continued.hops += took.saturating_sub(prepared.expected_hops);
            run.continued.next = prepared.to_ps;
            run.continued.copies.push(copied);
        }
        Err(why) => log::debug!("folding: a copy could not go on: {why:?}"),
    }
    run.stats.auditing += began.elapsed();
}

/// Runs a copy to its end.
fn go_on(
    prepared: &mut PreparedCopy,
    take_turn: &mut impl FnMut(&mut FoldRun, &mut Tables) -> Result<(), Stop>,
) -> Result<ExperimentCopy, Stop> {
    let PreparedCopy { run: copy, tables, p, from_ps, to_ps, sent_before, .. } = prepared;
    let (at_ps, end_ps) = (*from_ps, *to_ps);
    let mut c = tables.view();
    schedule_sampling(copy, &c, *p);
    simulate_all(copy, &mut c, at_ps)?;
    while c.exps[0].status != status::DONE && copy.stats.span_ps <= end_ps {
        take_turn(copy, &mut c)?;
    }
    let flows = sent_before.iter().map(|&(f, before)| (f, before, sent(copy, &c, f, end_ps))).collect();
    let done = c.tasks.iter().enumerate().filter(|(_, row)| row.done > at_ps && row.done <= end_ps);
    let tasks = done.map(|(i, row)| (TaskIdx(i as u32), row.done - row.at.min(row.done), row.done)).collect();
    Ok(ExperimentCopy { from: at_ps, to: end_ps, flows, experiment_sent: None, tasks })
}

/// Turns every looked-up partition of a copy into a simulated one, as of `at_ps`: a copy has no place in the memo. Skipped partitions stay skipped.
pub(crate) fn simulate_all(copy: &mut FoldRun, c: &mut Tables, at_ps: u64) -> Result<(), Stop> {
    for q in copy.partitions.numbers() {
        let partition = &copy.partitions[q];
        if !partition.is_simulated() && partition.skip().is_none() && !partition.rows.nics.is_empty() {
            start_simulating(copy, c, q, at_ps)?;
            copy.partitions[q].next = NEVER;
            let next = next_event_at(copy, c, q);
            schedule_partition(copy, q, next);
        }
    }
    Ok(())
}
