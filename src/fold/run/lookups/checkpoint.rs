//! Checkpoints: every few thousand packets the snapshot of a partition is looked up. What follows depends on the snapshot only, not on what led to
//! it. So a pattern that repeats within a collective is simulated once, and known from its second period on.
//!
//! Layer: fold/run.

use crate::rows::index::PartitionIdx;
use crate::run::partitions::counters::full;
use std::sync::Arc;
use std::time::Instant;

use super::claim::update_claim;
use super::progress::next_reported;
use super::recording::flush_covered;
use super::restore::stand_at_snapshot;
use super::resume::resume;
use crate::memo::cursor::MemoCursor;
use crate::memo::node::{Checkpoint, Continuation};
use crate::memo::outcome::PartitionPiece;
use crate::rows::partition_rows::hops;
use crate::rows::snapshots::snapshot;
use crate::run::audits::prepare_copy::prepare_copy_if_due;
use crate::run::explanations::explain::settle;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::counters::{
    deltas, forget_finished_messages, rebase, report_peaks, row_names, write_snapshot,
};
use crate::run::partitions::retire::dissolve;
use crate::run::partitions::split::{fall_apart, pieces};
use crate::run::simulation::simulate::next_event_at;
use crate::run::skips::decision::{carries_rates, decide_skips};
use crate::run::skips::sampling_turns::{forget_rule, sample_partition, schedule_sampling};
use crate::run::skips::skip::{begin_skip, plan_skip};
use crate::run::stop::{Stop, reason};
use crate::run::turn_order::schedule_partition;
use crate::steady::detector::SteadyRates;
use crate::steady::sampling::is_steadying;
use hyperfold_columns::Tables;

/// Takes a checkpoint of partition `p` if one is due. `p` is about to be simulated from `at_ps` and is the earliest of all. From there the memo may
/// know it, and it may have split. Returns whether its turn is over. If steady phases are skipped, results depend on checkpoints, so they are taken
/// at fixed instants instead ([`sample_and_checkpoint`]).
pub(crate) fn checkpoint_if_due(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> bool {
    let partition = &run.partitions[p];
    if is_steadying(t) || !(partition.changed && at_ps > partition.start && partition.reached <= at_ps) {
        return false;
    }
    let may_end = match &partition.cursor {
        Some(cursor) => cursor.pending.is_empty() && cursor.node.body().checkpoint.is_none(),
        None => partition.turned_away && run.memo.is_some(),
    };
    // A looked-up partition that is simulated again may have reported a post of this very instant, which its rows do not contain yet.
    if !may_end || !partition.has_all_posts() || hops(t, &partition.rows) < partition.hops_due {
        return false;
    }
    let began = Instant::now();
    let pieces = pieces(run, t, p, at_ps);
    let is_turn_over = split_at_checkpoint(run, t, p, at_ps, pieces, &[]);
    run.stats.checkpointing += began.elapsed();
    is_turn_over
}

/// Samples simulated partition `p`. Its steady pieces are skipped, and from time to time a checkpoint is taken.
/// PRECONDITION: everything before `at_ps` has happened, nothing at or after it.
pub(crate) fn sample_and_checkpoint(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) {
    run.partitions[p].covered = run.partitions[p].covered.max(at_ps);
    flush_covered(run, p, at_ps);
    update_claim(run, p);
    let full = sample_partition(run, t, p);
    let is_due = hops(t, &run.partitions[p].rows) >= run.partitions[p].hops_due;
    if !full && !is_due {
        continue_after_sample(run, t, p);
        return;
    }
    let carries = carries_rates(run, p);
    let (began, audited) = (Instant::now(), run.stats.auditing);
    let pieces = pieces(run, t, p, at_ps);
    if !full && pieces.len() == 1 {
        run.stats.checkpointing += began.elapsed();
        continue_after_sample(run, t, p);
        return;
    }
    let steady = if full { decide_skips(run, t, p, at_ps, &pieces) } else { vec![None; pieces.len()] };
    if carries {
        prepare_copy_if_due(run, t, p, at_ps, &steady);
    }
    if run.gain.is_too_late() && steady.iter().any(Option::is_some) {
        run.first_skip_too_late = Some(at_ps);
        run.stats.checkpointing += began.elapsed();
        continue_after_sample(run, t, p);
        return;
    }
    // A checkpoint starts the window anew. So if rates are carried on, it is taken for a skip or a split only.
    if steady.iter().any(Option::is_some) || (is_due && !(carries && pieces.len() == 1)) {
        split_at_checkpoint(run, t, p, at_ps, pieces, &steady);
    } else {
        continue_after_sample(run, t, p);
    }
    // Copies are counted as audits.
    run.stats.checkpointing += began.elapsed().saturating_sub(run.stats.auditing - audited);
}

/// Continues simulated partition `p` after a sample that led to nothing. It is known that nothing happens before its next event or sample.
pub(crate) fn continue_after_sample(run: &mut FoldRun, t: &Tables, p: PartitionIdx) {
    schedule_sampling(run, t, p);
    let known_ps = next_event_at(run, t, p).min(run.partitions[p].detector.next());
    flush_covered(run, p, known_ps);
}

/// Splits partition `p` into `pieces` at a checkpoint at `at_ps`. `steady` has the rates of each piece that is skipped; if it is empty, none is. The
/// other pieces are looked up. Returns whether the turn of `p` is over: it has split, or is skipped or looked up now.
pub(crate) fn split_at_checkpoint(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    mut pieces: Vec<PartitionPiece>,
    steady: &[Option<SteadyRates>],
) -> bool {
    let start = run.partitions[p].start;
    // The claim to record the node is kept until the checkpoint is recorded: no other experiment needs to record the node before.
    let old_cursor = run.partitions[p].cursor.take();
    let partition = &run.partitions[p];
    let may_look_up = old_cursor.is_some() || (partition.turned_away && partition.has_all_posts());
    run.partitions[p].ended_skip = None;
    forget_finished_messages(run, t, p);
    settle(run, t, p);
    run.partitions[p].explained_hops = 0;
    let deltas = deltas(run, t, p, at_ps);
    report_peaks(run, t, p, at_ps);
    run.stats.hops_simulated += deltas.hops();
    run.gain.count(at_ps, deltas.hops());
    let partition = &run.partitions[p];
    let flow_ids: Vec<u32> = partition.rows.flow_ids.iter().chain(&partition.rows.ancestors).copied().collect();
    let mut roots_known = true;
    let mut places = |ids: &[u32]| -> Vec<u32> {
        let places = ids
            .iter()
            .filter_map(|id| flow_ids.iter().position(|flow_id| flow_id == id).map(|k| k as u32))
            .collect::<Vec<u32>>();
        roots_known &= places.len() == ids.len();
        places
    };
    let whole = pieces.len() == 1;
    let mut continuations = Vec::new();
    let mut is_turn_over = !whole;
    let mut is_recordable = true;
    for (k, (q, piece)) in fall_apart(run, t, p, &pieces).into_iter().zip(&mut pieces).enumerate() {
        if !whole && piece.working.is_empty() {
            run.partitions[q].start = at_ps;
            continuations.push(Continuation::Retire(write_snapshot(run, t, q, at_ps).into()));
            piece.ancestors = places(&run.partitions[q].rows.ancestors);
            dissolve(run, t, q);
            continue;
        }
        if let Some(Some(rates)) = steady.get(k) {
            let rates = if whole { rates.clone() } else { rates.of(piece) };
            // During the skip, the piece's ingresses are assumed to hold what they held before.
            let peaks = run.partitions[q].rows.peaks.clone();
            rebase(run, t, q, at_ps);
            run.partitions[q].rows.peaks = peaks;
            let plan = Arc::new(plan_skip(run, t, q, at_ps, &rates));
            // If rates are carried on, what follows depends on the messages that are reported, and no key has these.
            is_recordable &= plan.carried.is_none();
            run.stats.carried += u64::from(plan.carried.is_some());
            if let Some((drift_ppm, skipped_ps)) = rates.drift {
                run.stats.drift_ps += u128::from(drift_ppm) * u128::from(skipped_ps) / 2;
                run.stats.drift_over_ps += u128::from(skipped_ps);
            }
            let may_look_up = may_look_up && plan.carried.is_none();
            continuations.push(Continuation::Skip(Arc::clone(&plan)));
            snapshot::clear(t, &run.partitions[q].rows, at_ps);
            begin_skip(run, t, q, plan, at_ps, may_look_up);
            is_turn_over = true;
        } else {
            continuations.extend(resume(run, t, q, at_ps, may_look_up));
            is_turn_over |= !run.partitions[q].is_simulated();
        }
        piece.ancestors = places(&run.partitions[q].rows.ancestors);
        if is_turn_over {
            let partition = &run.partitions[q];
            let next = if partition.skip().is_some() {
                next_reported(run, t, q)
            } else if !partition.is_simulated() {
                at_ps
            } else {
                next_event_at(run, t, q)
            };
            schedule_partition(run, q, next);
        }
    }
    debug_assert!(roots_known || !may_look_up, "the root of an event is unknown");
    if let (Some(cursor), Some(memo), true) = (&old_cursor, &run.memo, roots_known && is_recordable) {
        let mut body = cursor.node.body();
        body.known = body.known.max(at_ps - start);
        let checkpoint = Checkpoint { at: at_ps - start, pieces, continuations, ..deltas };
        if checkpoint.continuations.len() == checkpoint.pieces.len()
            && body.checkpoint.is_none()
            && memo.reserve(checkpoint.bytes(), run.ticket.by(start))
        {
            body.checkpoint = Some(Arc::new(checkpoint));
        }
    }
    is_turn_over
}

/// Moves looked-up partition `p` on to `checkpoint`, which it reaches: counters are increased. Snapshots are not read before they are needed.
/// PRECONDITION: [`Memo::reach`] returned `checkpoint`.
pub(crate) fn pass_checkpoint(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    checkpoint: &Checkpoint,
) -> Result<(), Stop> {
    run.stats.hits += 1;
    let partition = &run.partitions[p];
    run.gain.count(partition.start + checkpoint.at, checkpoint.hops());
    for (&n, delta) in partition.rows.nics.iter().zip(&checkpoint.nics) {
        delta.count(t, n);
    }
    for (&q, delta) in partition.rows.ports.iter().zip(&checkpoint.ports) {
        delta.count(t, q);
    }
    for (m, delta) in partition.rows.members.iter().zip(&checkpoint.members) {
        let (tx, rx) = (&mut t.flow_tx[m.flow], &mut t.flow_rx[m.flow]);
        tx.snd_una += delta.una;
        tx.sent_bytes += delta.sent_bytes;
        tx.n_sent = tx.n_sent.wrapping_add(delta.n_sent);
        tx.rtt_sum += delta.rtt_sum;
        tx.rtt_seen = tx.rtt_seen.wrapping_add(delta.rtt_seen);
        rx.arrived_bytes += delta.arrived_bytes;
        rx.milestone = rx.milestone.wrapping_add(delta.milestone);
        rx.n_acks = rx.n_acks.wrapping_add(delta.n_acks);
    }
    let at_ps = partition.start + checkpoint.at;
    run.partitions[p].rows.peaks.clone_from(&checkpoint.peaks);
    report_peaks(run, t, p, at_ps);
    forget_finished_messages(run, t, p);
    for (q, continuation) in fall_apart(run, t, p, &checkpoint.pieces).into_iter().zip(&checkpoint.continuations) {
        run.partitions[q].start = at_ps;
        match continuation {
            Continuation::Snapshot(node) => {
                let partition = &mut run.partitions[q];
                partition.changed = false;
                partition.cursor = Some(MemoCursor::new(Arc::clone(node)));
                partition.detector.reset(at_ps);
                partition.ended_skip = None;
                forget_rule(run, q);
                stand_at_snapshot(run, q, Arc::clone(node), at_ps);
                if checkpoint.pieces.len() > 1 {
                    let next = if !run.partitions[q].is_simulated() {
                        next_reported(run, t, q)
                    } else {
                        next_event_at(run, t, q)
                    };
                    schedule_partition(run, q, next);
                }
            }
            Continuation::Skip(plan) => {
                begin_skip(run, t, q, Arc::clone(plan), at_ps, true);
                let next = next_reported(run, t, q);
                schedule_partition(run, q, next);
            }
            // A checkpoint cannot be passed halfway, so the experiment starts over.
            Continuation::Stored(_) => return Err(Stop::Abandon(reason::BACKING_STORE)),
            Continuation::Retire(bytes) => {
                snapshot::read(t, bytes, row_names(run, q, None), at_ps, run.limit).map_err(full)?;
                dissolve(run, t, q);
            }
        }
    }
    Ok(())
}
