//! Audits of the total error of carried rates: a copy of the whole experiment is made before a skip. It goes on beside it without carried rates, for several
//! times as long (`copy_on`), and both are compared later (`compare_copies`).
//!
//! Layer: fold/run. Changes nothing but counts. Copies are made at times that depend on model time and on what was skipped only, so neither on the
//! memo nor on turns.

use std::sync::Arc;
use std::time::Instant;

use super::copies::ContinuedAudits;
use crate::memo::in_flight::InFlight;
use crate::rows::index::PartitionIdx;
use crate::run::fold_run::{FoldRun, PreparedCopy};
use crate::run::skips::gain::{LeastGain, hops_needed};
use crate::steady::detector::SteadyRates;
use crate::steady::rates_plan;
use crate::steady::sampling::hops_there_and_back;
use hyperfold_columns::{FlowIdx, NEVER, Tables, TimeSeries, mode};
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

/// Prepares a copy that begins no skip if one is due, before partition `p` is skipped at `at_ps` with rates `steady`.
pub(crate) fn prepare_copy_if_due(
    run: &mut FoldRun,
    t: &Tables,
    p: PartitionIdx,
    at_ps: u64,
    steady: &[Option<SteadyRates>],
) {
    let ended_ps = run.prepared_copies.last().map_or(run.continued.ended(), |copy| copy.to_ps);
    if t.exps[0].audit_ppm == 0 || at_ps < ended_ps {
        return;
    }
    let rows = &run.partitions[p].rows;
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
    let expected_hops = (u128::from(hops) * u128::from(span) / u128::from(rates.window)) as u64;
    run.continued.hops += expected_hops;
    let mut tables = std::mem::take(&mut run.continued.tables);
    t.copy_to(&mut tables);
    tables.exps[0].audit_ppm = 0;
    tables.series = TimeSeries::default();
    tables.exps[0].modes &= !mode::MEMO;
    let flows = run.partitions[p].rows.members.iter().map(|m| m.flow);
    let sent_before: Vec<(FlowIdx, u64)> = flows.map(|f| (f, t.flow_tx[f].sent_bytes)).collect();
    let copy = copy_of(run);
    let (from_ps, to_ps) = (at_ps, at_ps + span);
    run.prepared_copies.push(PreparedCopy { run: copy, tables, p, from_ps, to_ps, sent_before, expected_hops });
    run.stats.auditing += began.elapsed();
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
        prepared_copies: Vec::new(),
    }
}
