//! Decides which pieces of a partition are skipped, once a whole window has been sampled.
//!
//! Layer: fold/run. `steady::skip_criterion` says whether a piece is steady and what a skip needs to pay. What follows from the decision is done by
//! `lookups::checkpoint`.

use crate::memo::outcome::PartitionPiece;
use crate::memo::skip_choice::{NeededBytes, is_met};
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::waits_its_turn;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::recording::record_choice;
use crate::run::skips::sampling_turns::works;
use crate::steady::detector::SteadyRates;
use crate::steady::rates::carried;
use crate::steady::skip_criterion::{PartitionView, SteadyPiece, judge_steady};
use hyperfold_columns::Tables;

/// Whether measured rates of `p` are carried on, also where they are not steady.
pub(crate) fn carries_rates(run: &FoldRun, p: PartitionIdx) -> bool {
    run.partitions[p].detector.rule.is_some_and(|rule| rule.patience > 0)
}

/// Decides which of the `pieces` of `p` are skipped from `at_ps` on. Returns the rates of each piece that is; `None`: it goes on being simulated.
pub(crate) fn decide_skips(
    run: &mut FoldRun,
    t: &Tables,
    p: PartitionIdx,
    at_ps: u64,
    pieces: &[PartitionPiece],
) -> Vec<Option<SteadyRates>> {
    // A partition with coupled switches is not skipped: what a pause does to rates does not repeat from window to window.
    if !run.partitions[p].rows.switches.is_empty() {
        return vec![None; pieces.len()];
    }
    if carries_rates(run, p) { carried_pieces(run, t, p, pieces) } else { steady_pieces(run, t, p, at_ps, pieces) }
}

/// Rates of each of the `pieces` of `p`, in which measured rates are carried on. `None`: the sum of its rates is not steady.
fn carried_pieces(run: &FoldRun, t: &Tables, p: PartitionIdx, pieces: &[PartitionPiece]) -> Vec<Option<SteadyRates>> {
    let members = &run.partitions[p].rows.members;
    let all = || (0..members.len() as u32).filter(|&m| members[m as usize].routed).collect();
    let rates = |piece: &PartitionPiece| {
        let queue_pairs = if pieces.len() == 1 { all() } else { piece.working.clone() };
        if run.carries { carried(t, view(run, p), &queue_pairs) } else { None }
    };
    pieces.iter().map(rates).collect()
}

/// Rates of each of the `pieces` of `p`. `None`: its rates are not steady, or a skip is not worth it. If that depends on the messages that wait, the
/// choice is recorded: the memo stores what follows for each outcome.
fn steady_pieces(
    run: &mut FoldRun,
    t: &Tables,
    p: PartitionIdx,
    at_ps: u64,
    pieces: &[PartitionPiece],
) -> Vec<Option<SteadyRates>> {
    let members = &run.partitions[p].rows.members;
    let whole = pieces.len() == 1;
    let all = || (0..members.len() as u32).filter(|&m| works(run, t, p, m)).collect();
    let judged = |piece: &PartitionPiece| {
        let working = if whole { all() } else { piece.working.clone() };
        judge_steady(t, view(run, p), &working, whole)
    };
    let judged: Vec<Option<SteadyPiece>> = pieces.iter().map(judged).collect();
    let waiting = |m: u32| members[m as usize].waiting(t);
    let begins = |piece: &SteadyPiece| is_met(&piece.needs, waiting);
    let rates = judged
        .iter()
        .map(|piece| piece.as_ref().filter(|piece| begins(piece)).map(|piece| piece.rates.clone()))
        .collect();
    let needs: Vec<Vec<NeededBytes>> =
        judged.into_iter().flatten().map(|piece| piece.needs).filter(|needs| !needs.is_empty()).collect();
    if !needs.is_empty() && waits_its_turn(t) {
        record_choice(run, t, p, at_ps, needs);
    }
    rates
}

/// The data of partition `p` that the criterion of steadiness reads.
fn view(run: &FoldRun, p: PartitionIdx) -> PartitionView<'_> {
    let partition = &run.partitions[p];
    PartitionView {
        rows: &partition.rows,
        index: &run.index,
        detector: &partition.detector,
        ended_skip: partition.ended_skip.as_deref(),
        checkpoint_hops: run.checkpoint_hops,
    }
}
