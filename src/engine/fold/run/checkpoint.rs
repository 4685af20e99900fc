//! Checkpoints: every few thousand packets the snapshot of a partition is looked up. Whatever led to it, the future is
//! the same. So a pattern that repeats within a collective is simulated once, and known from its second period on.
//!
//! Layer: fold/run.

use crate::engine::fold::run::counters::full;
use crate::engine::fold::steady::criterion::PartitionView;
use std::sync::Arc;
use std::time::Instant;

use crate::columns::Tables;
use crate::engine::fold::memo::cursor::MemoCursor;
use crate::engine::fold::memo::node::{Checkpoint, Continuation};
use crate::engine::fold::memo::outcome::PartitionPiece;
use crate::engine::fold::memo::skip_choice::{NeededBytes, is_met};
use crate::engine::fold::rows::partition_rows::{hops, waits_its_turn};
use crate::engine::fold::rows::snapshot;
use crate::engine::fold::run::claim::update_claim;
use crate::engine::fold::run::counters::{
    deltas, forget_finished_messages, rebase, report_peaks, row_names, write_snapshot,
};
use crate::engine::fold::run::detection::{forget_rule, sample_partition, schedule_sampling, works};
use crate::engine::fold::run::explain::settle;
use crate::engine::fold::run::fold_run::FoldRun;
use crate::engine::fold::run::progress::next_reported;
use crate::engine::fold::run::recording::{flush_covered, record_choice};
use crate::engine::fold::run::restore::stand_at_snapshot;
use crate::engine::fold::run::resume::resume;
use crate::engine::fold::run::retire::dissolve;
use crate::engine::fold::run::simulate::next_event_at;
use crate::engine::fold::run::skip::{begin_skip, plan_skip};
use crate::engine::fold::run::split::{fall_apart, pieces};
use crate::engine::fold::run::stop::{Stop, reason};
use crate::engine::fold::run::turn_order::schedule_partition;
use crate::engine::fold::steady::criterion::{SteadyPiece, steady};
use crate::engine::fold::steady::detector::SteadyRates;
use crate::engine::fold::steady::rates::carried;
use crate::engine::fold::steady::sampling::is_steadying;

/// Takes a checkpoint of partition `p`, which is about to be simulated from `at` and is the earliest of all. It may be
/// known from there, and it may have split. Returns whether its turn is over. Where steady phases are skipped,
/// checkpoints are part of what is decided and happen at fixed instants ([`sample_and_checkpoint`]).
pub(crate) fn checkpoint_if_due(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64) -> bool {
    let partition = &run.partitions[p as usize];
    if is_steadying(t) || !(partition.changed && at > partition.start && partition.reached <= at) {
        return false;
    }
    let may_end = match &partition.cursor {
        Some(cursor) => cursor.pending.is_empty() && cursor.node.body().checkpoint.is_none(),
        None => partition.turned_away && run.memo.is_some() && partition.has_all_posts(),
    };
    if !may_end || hops(t, &partition.rows) < partition.hops_due {
        return false;
    }
    let began = Instant::now();
    let pieces = pieces(run, t, p, at);
    let over = split_at_checkpoint(run, t, p, at, pieces, &[]);
    run.stats.checkpointing += began.elapsed();
    over
}

/// Samples simulated partition `p`: what of it is steady is skipped, and from time to time a checkpoint is taken.
/// PRECONDITION: all before `at` has happened, nothing at or after it.
pub(crate) fn sample_and_checkpoint(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64) {
    run.partitions[p as usize].covered = run.partitions[p as usize].covered.max(at);
    flush_covered(run, p, at);
    update_claim(run, p);
    let full = sample_partition(run, t, p);
    // What a pause does to rates repeats in no window.
    let may_skip = full && run.partitions[p as usize].rows.switches.is_empty();
    let due = hops(t, &run.partitions[p as usize].rows) >= run.partitions[p as usize].hops_due;
    if !full && !due {
        continue_after_sample(run, t, p);
        return;
    }
    let carries = run.partitions[p as usize].detector.rule.is_some_and(|rule| rule.patience > 0);
    let (began, audited) = (Instant::now(), run.stats.auditing);
    let pieces = pieces(run, t, p, at);
    if !full && pieces.len() == 1 {
        run.stats.checkpointing += began.elapsed();
        continue_after_sample(run, t, p);
        return;
    }
    let steady: Vec<Option<SteadyRates>> = match may_skip {
        false => vec![None; pieces.len()],
        true if carries => carried_pieces(run, t, p, &pieces),
        true => steady_pieces(run, t, p, at, &pieces),
    };
    if carries {
        (run.copy_if_due)(run, t, p, at, &steady);
    }
    // A checkpoint starts the window anew: where rates are carried on, it is taken for a skip or a split only.
    if steady.iter().any(Option::is_some) || (due && !(carries && pieces.len() == 1)) {
        split_at_checkpoint(run, t, p, at, pieces, &steady);
    } else {
        continue_after_sample(run, t, p);
    }
    // Copies are counted as audits.
    run.stats.checkpointing += began.elapsed().saturating_sub(run.stats.auditing - audited);
}

/// Of each of `pieces` of `p`, in which measured rates are carried on: its rates, if their sum is steady.
fn carried_pieces(run: &FoldRun, t: &Tables, p: u32, pieces: &[PartitionPiece]) -> Vec<Option<SteadyRates>> {
    let members = &run.partitions[p as usize].rows.members;
    let all = || (0..members.len() as u32).filter(|&m| members[m as usize].routed).collect();
    let rates = |piece: &PartitionPiece| {
        let queue_pairs = if pieces.len() == 1 { all() } else { piece.working.clone() };
        if run.carries { carried(t, view(run, p), &queue_pairs) } else { None }
    };
    pieces.iter().map(rates).collect()
}

/// Of each of `pieces` of `p`: its rates, if they are steady and a skip is worth it. Where that depends on the messages
/// that wait, the memo has what follows for each decision.
fn steady_pieces(
    run: &mut FoldRun,
    t: &Tables,
    p: u32,
    at: u64,
    pieces: &[PartitionPiece],
) -> Vec<Option<SteadyRates>> {
    let members = &run.partitions[p as usize].rows.members;
    let whole = pieces.len() == 1;
    let all = || (0..members.len() as u32).filter(|&m| works(run, t, p, m)).collect();
    let judged = |piece: &PartitionPiece| {
        let working = if whole { all() } else { piece.working.clone() };
        steady(t, view(run, p), &working, whole)
    };
    let judged: Vec<Option<SteadyPiece>> = pieces.iter().map(judged).collect();
    let waiting = |m: u32| members[m as usize].waiting(t);
    let begins = |piece: &SteadyPiece| is_met(&piece.needs, waiting);
    let rates = judged.iter().map(|piece| piece.as_ref().filter(|x| begins(x)).map(|x| x.rates.clone())).collect();
    let needs: Vec<Vec<NeededBytes>> =
        judged.into_iter().flatten().map(|piece| piece.needs).filter(|needs| !needs.is_empty()).collect();
    if !needs.is_empty() && waits_its_turn(t) {
        record_choice(run, t, p, at, needs);
    }
    rates
}

/// Partition `p` as the criterion of steadiness sees it.
fn view(run: &FoldRun, p: u32) -> PartitionView<'_> {
    let partition = &run.partitions[p as usize];
    PartitionView {
        rows: &partition.rows,
        index: &run.index,
        detector: &partition.detector,
        ended_skip: partition.ended_skip.as_deref(),
        checkpoint_hops: run.checkpoint_hops,
    }
}

/// The sample of `p` had no consequence: nothing happens before its next event or sample.
pub(crate) fn continue_after_sample(run: &mut FoldRun, t: &Tables, p: u32) {
    schedule_sampling(run, t, p);
    let known = next_event_at(run, t, p).min(run.partitions[p as usize].detector.next());
    flush_covered(run, p, known);
}

/// Splits partition `p` into `pieces`. Those that are `steady` (empty: none) are skipped; the others may be known.
/// Returns whether anything but going on is to be done.
pub(crate) fn split_at_checkpoint(
    run: &mut FoldRun,
    t: &mut Tables,
    p: u32,
    at: u64,
    mut pieces: Vec<PartitionPiece>,
    steady: &[Option<SteadyRates>],
) -> bool {
    let start = run.partitions[p as usize].start;
    // Its claim ends here: no other experiment needs to record it before the checkpoint is there.
    let before = run.partitions[p as usize].cursor.take();
    let partition = &run.partitions[p as usize];
    let may_look_up = before.is_some() || (partition.turned_away && partition.has_all_posts());
    run.partitions[p as usize].ended_skip = None;
    forget_finished_messages(run, t, p);
    settle(run, t, p);
    run.partitions[p as usize].explained_hops = 0;
    let deltas = deltas(run, t, p);
    report_peaks(run, t, p, at);
    run.stats.hops_simulated += deltas.hops();
    run.gain.count(at, deltas.hops());
    let partition = &run.partitions[p as usize];
    let numbers: Vec<u32> = partition.rows.flow_ids.iter().chain(&partition.rows.ancestors).copied().collect();
    let mut traced = true;
    let mut places = |ids: &[u32]| -> Vec<u32> {
        let places =
            ids.iter().filter_map(|id| numbers.iter().position(|n| n == id).map(|k| k as u32)).collect::<Vec<u32>>();
        traced &= places.len() == ids.len();
        places
    };
    let whole = pieces.len() == 1;
    let mut continuations = Vec::new();
    let mut over = !whole;
    let mut kept = true;
    for (k, (q, piece)) in fall_apart(run, t, p, &pieces).into_iter().zip(&mut pieces).enumerate() {
        if !whole && piece.working.is_empty() {
            run.partitions[q as usize].start = at;
            continuations.push(Continuation::Retire(write_snapshot(run, t, q, at).into()));
            piece.ancestors = places(&run.partitions[q as usize].rows.ancestors);
            dissolve(run, t, q);
            continue;
        }
        if let Some(Some(steady)) = steady.get(k) {
            let steady = if whole { steady.clone() } else { steady.of(piece) };
            // During a skip its ingresses are assumed to hold what they held before.
            let peaks = run.partitions[q as usize].rows.peaks.clone();
            rebase(run, t, q);
            run.partitions[q as usize].rows.peaks = peaks;
            let plan = Arc::new(plan_skip(run, t, q, at, &steady));
            // What it goes on as depends on what is reported, which is in no key.
            kept &= plan.carried.is_none();
            run.stats.carried += u64::from(plan.carried.is_some());
            if let Some((drift, during)) = steady.drift {
                run.stats.drift_ps += u128::from(drift) * u128::from(during) / 2;
                run.stats.drift_over_ps += u128::from(during);
            }
            let may_look_up = may_look_up && plan.carried.is_none();
            continuations.push(Continuation::Skip(Arc::clone(&plan)));
            snapshot::clear(t, &run.partitions[q as usize].rows);
            begin_skip(run, t, q, plan, at, may_look_up);
            over = true;
        } else {
            continuations.extend(resume(run, t, q, at, may_look_up));
            over |= run.partitions[q as usize].looked_up;
        }
        piece.ancestors = places(&run.partitions[q as usize].rows.ancestors);
        if over {
            let partition = &run.partitions[q as usize];
            let next = if partition.skip.is_some() {
                next_reported(run, t, q)
            } else if partition.looked_up {
                at
            } else {
                next_event_at(run, t, q)
            };
            schedule_partition(run, q, next);
        }
    }
    debug_assert!(traced || !may_look_up, "the root of an event is unknown");
    if let (Some(cursor), Some(memo), true) = (&before, &run.memo, traced && kept) {
        let mut body = cursor.node.body();
        body.known = body.known.max(at - start);
        let checkpoint = Checkpoint { at: at - start, pieces, continuations, ..deltas };
        if checkpoint.continuations.len() == checkpoint.pieces.len()
            && body.checkpoint.is_none()
            && memo.room(checkpoint.bytes(), run.ticket.by(start))
        {
            body.checkpoint = Some(Arc::new(checkpoint));
        }
    }
    over
}

/// Looked-up partition `p` reaches a checkpoint: counters are increased, snapshots are read when they are needed.
/// PRECONDITION: [`Memo::reach`] returned `checkpoint`.
pub(crate) fn pass_checkpoint(run: &mut FoldRun, t: &mut Tables, p: u32, checkpoint: &Checkpoint) -> Result<(), Stop> {
    run.stats.hits += 1;
    let partition = &run.partitions[p as usize];
    run.gain.count(partition.start + checkpoint.at, checkpoint.hops());
    for (&n, delta) in partition.rows.nics.iter().zip(&checkpoint.nics) {
        delta.count(&mut t.nics[n]);
    }
    for (&q, delta) in partition.rows.ports.iter().zip(&checkpoint.ports) {
        delta.count(&mut t.ports[q]);
    }
    for (m, delta) in partition.rows.members.iter().zip(&checkpoint.members) {
        let (tx, rx) = (&mut t.flow_tx[m.flow], &mut t.flow_rx[m.flow]);
        tx.snd_una += delta.una;
        tx.sent_bytes += delta.sent_bytes;
        tx.n_sent = tx.n_sent.wrapping_add(delta.n_sent);
        rx.arrived_bytes += delta.arrived_bytes;
        rx.milestone = rx.milestone.wrapping_add(delta.milestone);
        rx.n_acks = rx.n_acks.wrapping_add(delta.n_acks);
    }
    let at = partition.start + checkpoint.at;
    run.partitions[p as usize].rows.peaks.clone_from(&checkpoint.peaks);
    report_peaks(run, t, p, at);
    forget_finished_messages(run, t, p);
    for (q, continuation) in fall_apart(run, t, p, &checkpoint.pieces).into_iter().zip(&checkpoint.continuations) {
        run.partitions[q as usize].start = at;
        match continuation {
            Continuation::Snapshot(node) => {
                let partition = &mut run.partitions[q as usize];
                partition.changed = false;
                partition.cursor = Some(MemoCursor::new(Arc::clone(node)));
                partition.detector.reset(at);
                partition.ended_skip = None;
                forget_rule(run, q);
                stand_at_snapshot(run, q, Arc::clone(node), at);
                if checkpoint.pieces.len() > 1 {
                    let next = if run.partitions[q as usize].looked_up {
                        next_reported(run, t, q)
                    } else {
                        next_event_at(run, t, q)
                    };
                    schedule_partition(run, q, next);
                }
            }
            Continuation::Skip(plan) => {
                begin_skip(run, t, q, Arc::clone(plan), at, true);
                let next = next_reported(run, t, q);
                schedule_partition(run, q, next);
            }
            // The only way out in the middle of this is to start over.
            Continuation::Stored(_) => return Err(Stop::Abandon(reason::BACKING_STORE)),
            Continuation::Retire(bytes) => {
                snapshot::read(t, bytes, row_names(run, q, None), at, run.limit).map_err(full)?;
                dissolve(run, t, q);
            }
        }
    }
    Ok(())
}
