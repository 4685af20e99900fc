//! Audits of the total error of carried rates: a copy of the whole experiment runs beside a skip without carried rates, for several times as long
//! (`compare_copies` compares the two later).
//!
//! Layer: fold/run. Changes nothing but counts. Copies are made at times that depend on model time and on what was skipped only, so neither on the
//! memo nor on turns.

use std::sync::Arc;
use std::time::Instant;

use super::compare_copies::sent;
use super::copies::{ContinuedAudits, ExperimentCopy};
use crate::memo::in_flight::InFlight;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::lookup::start_simulating;
use crate::run::simulation::simulate::next_event_at;
use crate::run::skips::detection::schedule_sampling;
use crate::run::skips::gain::{LeastGain, hops_needed, message_hops};
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use crate::steady::detector::SteadyRates;
use crate::steady::rates_plan;
use crate::steady::sampling::hops_there_and_back;
use hyperfold_columns::{FlowIdx, NEVER, OwnedTables, Tables, TaskIdx, mode, status};
use hyperfold_engine::FoldStats;

/// Packet-hops that copies may take in any case (our choice: about a second of wall time); beyond that, 1/`SHARE` of the skipped packet-hops. A copy
/// may take more than is left, because partitions other than the skipped one may send; then the next copy is made later. An experiment that needs no
/// more packet-hops than `FREE_HOPS` has nothing to gain from carried rates.
const FREE_HOPS: u64 = 1 << 23;
const SHARE: u64 = 10;

/// Length of a copy as a multiple of the length of the skip, and its minimum (our choice: a skip, the window after it, and most of the next skip).
const SPAN: u64 = 3;
const MIN_SPAN: u64 = 2;

/// Whether rates are not carried on in `t`, because audits would simulate all of it as well.
pub(crate) fn carries_too_little(t: &Tables) -> bool {
    let e = &t.exps[0];
    e.modes & mode::RATES != 0 && e.audit_ppm > 0 && hops_needed(t) <= FREE_HOPS
}

/// Runs a copy without skips if one is due, before partition `p` is skipped at `at_ps` with rates `steady`.
pub(crate) fn copy_if_due(run: &mut FoldRun, t: &mut Tables, p: u32, at_ps: u64, steady: &[Option<SteadyRates>]) {
    if t.exps[0].audit_ppm == 0 || at_ps < run.continued.ended() {
        return;
    }
    let rows = &run.partitions[p as usize].rows;
    let Some(rates) = steady.iter().flatten().next() else { return };
    let hops: u64 =
        rows.members.iter().zip(&rates.packets).map(|(m, &n)| n * hops_there_and_back(t, m.flow)).sum::<u64>().max(1);
    let skip_ps = rates_plan::length(rates);
    let left = (FREE_HOPS + run.stats.hops_skipped / SHARE).saturating_sub(run.continued.hops);
    let affordable = (u128::from(left) * u128::from(rates.window) / u128::from(hops)) as u64;
    if affordable < MIN_SPAN * skip_ps {
        return;
    }
    let span = affordable.min(SPAN * skip_ps);
    let began = Instant::now();
    let expected = (u128::from(hops) * u128::from(span) / u128::from(rates.window)) as u64;
    run.continued.hops += expected;
    let mut tables = std::mem::take(&mut run.continued.tables);
    let copied = go_on(run, t, &mut tables, p, at_ps, at_ps + span);
    run.continued.tables = tables;
    match copied {
        Ok(copied) => {
            // Other partitions go on in the copy as well, and others join. The messages that ended show that.
            let took: u64 = copied.tasks.iter().map(|&(i, ..)| message_hops(t, &t.tasks[i])).sum();
            run.continued.hops += took.saturating_sub(expected);
            run.continued.next = at_ps + span;
            run.continued.copies.push(copied);
        }
        Err(why) => log::debug!("folding: a copy could not go on: {why:?}"),
    }
    run.stats.auditing += began.elapsed();
}

/// Runs a copy, in the memory of `tables`, from `at_ps` to `end_ps`.
fn go_on(
    run: &FoldRun,
    t: &Tables,
    tables: &mut OwnedTables,
    p: u32,
    at_ps: u64,
    end_ps: u64,
) -> Result<ExperimentCopy, Stop> {
    let mut copy = copy_of(run);
    t.copy_to(tables);
    let mut c = tables.view();
    c.exps[0].audit_ppm = 0;
    c.exps[0].modes &= !mode::MEMO;
    let flows: Vec<FlowIdx> = run.partitions[p as usize].rows.members.iter().map(|m| m.flow).collect();
    let sent_before: Vec<u64> = flows.iter().map(|&f| c.flow_tx[f].sent_bytes).collect();
    schedule_sampling(&mut copy, &c, p);
    simulate_all(&mut copy, &mut c, at_ps)?;
    while c.exps[0].status != status::DONE && copy.stats.span_ps <= end_ps {
        (run.turns)(&mut copy, &mut c, 1, run.limit)?;
    }
    let flows =
        flows.iter().zip(sent_before).map(|(&f, sent_before)| (f, sent_before, sent(&copy, &c, f, end_ps))).collect();
    let done = c.tasks.iter().enumerate().filter(|(_, row)| row.done > at_ps && row.done <= end_ps);
    let tasks = done.map(|(i, row)| (TaskIdx(i as u32), row.done - row.at.min(row.done), row.done)).collect();
    Ok(ExperimentCopy { from: at_ps, to: end_ps, flows, experiment_sent: None, tasks })
}

/// Turns every looked-up partition of a copy into a simulated one, as of `at_ps`: a copy has no place in the memo. Skipped partitions stay skipped.
pub(crate) fn simulate_all(copy: &mut FoldRun, c: &mut Tables, at_ps: u64) -> Result<(), Stop> {
    for q in 0..copy.partitions.len() as u32 {
        let partition = &copy.partitions[q as usize];
        if partition.looked_up && partition.skip.is_none() && !partition.rows.nics.is_empty() {
            start_simulating(copy, c, q, at_ps)?;
            copy.partitions[q as usize].next = NEVER;
            let next = next_event_at(copy, c, q);
            schedule_partition(copy, q, next);
        }
    }
    Ok(())
}

/// A copy of `run` that remembers nothing and carries no rates on.
pub(crate) fn copy_of(run: &FoldRun) -> FoldRun {
    let mut partitions = run.partitions.clone();
    partitions.iter_mut().for_each(|partition| (partition.cursor, partition.turned_away) = (None, false));
    FoldRun {
        restart: Arc::clone(&run.restart),
        coupled: run.coupled.clone(),
        step: run.step,
        memo: None,
        checkpoint_hops: run.checkpoint_hops,
        index: run.index.clone(),
        partitions,
        spare: run.spare.clone(),
        joined_unrecordable: run.joined_unrecordable,
        turning: run.turning,
        schedule: run.schedule.clone(),
        guard: run.guard.clone(),
        left_out: Default::default(),
        fails_for_certain: false,
        audited: Default::default(),
        gain: LeastGain::unasked(),
        first_skip_too_late: None,
        wander: Default::default(),
        carries: false,
        continued: ContinuedAudits { next: NEVER, ..ContinuedAudits::default() },
        return_point: None,
        hand_over_after: None,
        threads: Default::default(),
        limit: run.limit,
        stats: FoldStats::default(),
        explainer: None,
        ticket: Arc::<InFlight>::default().enter(),
        timer: Default::default(),
        join: run.join,
        turns: run.turns,
        copy_if_due: run.copy_if_due,
    }
}
