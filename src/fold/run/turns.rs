//! The main loop of a folded run. The earliest event of all decides whose turn it is. In its turn a partition is simulated for a step of its own
//! time; an idle NIC does its tasks of that instant.
//!
//! Packets and signals that one row sends to another arrive at least a step later. So the earliest partition may go on for a step, whatever the
//! others do.
//!
//! Layer: fold/run.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::audits::compare_copies::{compare_all, note_progress};
use super::audits::copies::ContinuedAudits;
use super::audits::copy_on::go_on_with_copies;
use super::audits::prepare_copy::carries_too_little;
use super::audits::restart::{CoupledSwitches, Restart};
use super::audits::return_point::keep_return_point;
use super::lookups::checkpoint::sample_and_checkpoint;
use super::lookups::lookup_turn::lookup_turn;
use super::partitions::couple::{couple_from_now, go_on_without_skips};
use super::partitions::join::join;
use super::partitions::partition::Partitions;
use super::simulation::simulate_turn::simulate_turn;
use super::simulation::span_threads::SpanThreads;
use super::skips::gain::LeastGain;
use super::skips::sampling_turns::next_sampling;
use super::skips::series_samples::take_samples;
use crate::memo::table::Memo;
use crate::rows::buffer_guard::{BufferGuard, Failure};
use crate::rows::cc_state;
use crate::rows::index::{PartitionIdx, RowIndex};
use crate::run::fold_run::FoldRun;
use crate::run::hand_over::{come_to_one_instant, leave_folding, unfold};
use crate::run::stats::TurnTimer;
use crate::run::stop::{Stop, reason};
use crate::run::turn_order::{collect, peek, schedule_nic, schedule_partition, serve};
use crate::run::turn_schedule::TurnSchedule;
use crate::steady::rate_drift::RateWander;
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{NEVER, NicIdx, SHARED_FLOWS_LEFT, Tables, cc, mode, qp, status, task as bits};
use hyperfold_engine::cpu::key::{EventKey, START, TASK};
use hyperfold_engine::cpu::{nic, task};
use hyperfold_engine::{FoldStats, stops};

/// Maximum error of the makespan that carried rates may cause, in millionths. If it may be larger, they are given up (our choice: such a result
/// decides nothing).
const MAX_ERROR_PPM: u64 = 10_000;

/// Begins to fold the experiment `t`. Returns `None` if that is not possible.
///
/// PRECONDITION: `t` holds one experiment that has not taken a step.
pub(crate) fn begin(t: &mut Tables, memo: &Arc<Memo>, checkpoint_hops: u64) -> Option<FoldRun> {
    if t.tasks.is_empty() || !t.exps[0].may_fold() {
        return None;
    }
    let restart = Arc::new(Restart::of(t));
    Some(begin_coupled(t, memo, checkpoint_hops, restart, CoupledSwitches::default()))
}

/// Begins to fold the experiment `t` with the given coupled switches. `restart` is a copy of `t`.
pub(crate) fn begin_coupled(
    t: &mut Tables,
    memo: &Arc<Memo>,
    checkpoint_hops: u64,
    restart: Arc<Restart>,
    coupled: CoupledSwitches,
) -> FoldRun {
    if carries_too_little(t) {
        t.exps[0].modes &= !mode::RATES;
    }
    stops::suspend_sampling(t);
    t.fold_hints.random_marks = cc_state::marks_by_chance(t);
    let guard = BufferGuard::new(t, &coupled.switches, coupled.near(t));
    t.exps[0].modes |= mode::TRACED;
    t.exps[0].steps = 1;
    let hpcc = t.exps[0].cc == cc::HPCC;
    t.fold_hints.rounding = is_steadying(t) && (t.fold_hints.random_marks || hpcc) && !cc_state::collide(t);
    if t.fold_hints.rounding && hpcc {
        let origins = cc_state::free_phases(t).into_iter().map(|is_free| is_free.then_some((0, 0)));
        t.fold_hints.telemetry_from = Arc::new(origins.collect());
    }
    for tx in &mut t.flow_tx {
        tx.flags |= qp::HELD;
    }
    let stats = FoldStats { coupled: guard.n_coupled(), couplings: coupled.times, ..FoldStats::default() };
    let mut run = FoldRun {
        restart,
        coupled,
        step: t.exps[0].step,
        // The memo knows what a span adds up to, not what it looked like in between.
        memo: (t.exps[0].modes & mode::MEMO != 0 && !t.series.is_on()).then(|| Arc::clone(memo)),
        checkpoint_hops,
        index: RowIndex::new(t),
        partitions: Partitions::default(),
        joined_unrecordable: false,
        turning: PartitionIdx::NONE,
        schedule: TurnSchedule { idle_at: vec![NEVER; t.nics.len()], ..TurnSchedule::default() },
        guard,
        left_out: BTreeSet::new(),
        fails_for_certain: false,
        audited: HashSet::new(),
        gain: LeastGain::of(t),
        first_skip_too_late: None,
        wander: RateWander::default(),
        threads: SpanThreads::default(),
        carries: true,
        continued: ContinuedAudits::default(),
        return_point: None,
        hand_over_after: None,
        limit: 0,
        stats,
        explainer: None,
        ticket: memo.in_flight.enter(),
        timer: TurnTimer::default(),
        prepared_copies: Vec::new(),
    };
    for n in NicIdx::all(t.nics.len() as u32) {
        schedule_nic(&mut run, t, n);
    }
    run
}

/// Runs `n_turns` turns, or to the end. `limit`: maximum number of packet records.
pub(crate) fn turns(run: &mut FoldRun, t: &mut Tables, n_turns: u32, limit: u64) -> Result<(), Stop> {
    run.limit = limit;
    for _ in 0..n_turns {
        if !run.prepared_copies.is_empty() {
            go_on_with_copies(run, t, |copy, c| turns(copy, c, 1, limit));
        }
        let earliest = peek(run);
        let fired = run.schedule.fired.peek().map(|&Reverse((latest, g))| (latest, g));
        if let Some((latest, g)) = fired
            && earliest.is_none_or(|(at_ps, _)| latest < at_ps)
        {
            run.schedule.fired.pop();
            serve(run, t, g);
            continue;
        }
        let Some((at_ps, n)) = earliest else { return finish(run, t) };
        if let Some(at_ps) = run.first_skip_too_late.take() {
            go_on_without_skips(run, t, at_ps, reason::LATE)?;
            continue;
        }
        if run.fails_for_certain {
            return Err(Stop::Exactly(reason::PAUSE));
        }
        if at_ps >= t.exps[0].time_limit {
            return Err(Stop::Abandon(reason::TIME));
        }
        if run.hand_over_after.is_some_and(|reached_ps| reached_ps <= at_ps) {
            return hand_over(run, t, at_ps);
        }
        let sample = next_sampling(run).filter(|&(sample_ps, _)| sample_ps <= at_ps);
        if at_ps > run.continued.next {
            note_progress(run, t, at_ps);
        }
        let now_ps = sample.map_or(at_ps, |(sample_ps, _)| sample_ps);
        if let Some(failure) = run.guard.failure_before(t, now_ps) {
            couple(run, t, failure)?;
        }
        if run.guard.approached() > 0 && !run.fails_for_certain && is_exact_so_far(run, t) {
            keep_return_point(run, t, now_ps);
        }
        if run.gain.is_too_little(t, &run.partitions, &run.stats, now_ps) {
            let at_ps = run.gain.passed_ps() + 1;
            if !may_keep_skips(run, t, at_ps) {
                return Err(Stop::Exactly(reason::GAIN));
            }
            return hand_over(run, t, at_ps);
        }
        if run.guard.warns() && has_left_nothing_out(run, t) {
            go_on_without_skips(run, t, now_ps, reason::FILLS)?;
            continue;
        }
        if let Some(s) = run.guard.take_wanted() {
            couple_from_now(run, t, s, at_ps)?;
            continue;
        }
        take_samples(run, t, now_ps);
        // This comes before the turn does anything, because an experiment that waits here repeats its turn later.
        if run.ticket.turn(now_ps) {
            return Err(Stop::Wait);
        }
        if let Some((sample_ps, p)) = sample {
            let timed_turn = run.timer.begin_turn(&mut run.stats, sample_ps);
            run.ticket.may_wait = false;
            sample_and_checkpoint(run, t, p, sample_ps);
            run.timer.end_turn(&mut run.stats, run.partitions.n_active() as u64, timed_turn, Some(false));
            continue;
        }
        run.schedule.heap.pop();
        let timed_turn = run.timer.begin_turn(&mut run.stats, at_ps);
        let p = run.index.nic_partition[n.usize()];
        let looked_up = p.is_some().then(|| !run.partitions[p].is_simulated());
        run.ticket.may_wait = looked_up != Some(false);
        let done = match looked_up {
            None => idle_turn(run, t, n, at_ps),
            Some(true) => lookup_turn(run, t, p, at_ps),
            Some(false) => simulate_turn(run, t, p, at_ps),
        };
        run.timer.end_turn(&mut run.stats, run.partitions.n_active() as u64, timed_turn, looked_up);
        if let Err(Stop::Wait) = done {
            repeat_turn(run, t, n, at_ps);
        }
        done?;
    }
    Ok(())
}

/// Schedules the turn of NIC `n` at `at_ps` again, or that of its partition.
pub(crate) fn repeat_turn(run: &mut FoldRun, t: &mut Tables, n: NicIdx, at_ps: u64) {
    match run.index.nic_partition[n.usize()] {
        PartitionIdx::NONE => {
            nic::set_clock(t, n);
            schedule_nic(run, t, n);
        }
        p => schedule_partition(run, p, at_ps),
    }
}

/// Does the tasks of idle NIC `n` at `at_ps`, up to the first that needs the network. For that one, rows join a partition.
pub(crate) fn idle_turn(run: &mut FoldRun, t: &mut Tables, n: NicIdx, at_ps: u64) -> Result<(), Stop> {
    run.schedule.idle_at[n.usize()] = NEVER;
    loop {
        let next = next_idle(t, n);
        if next.t > at_ps {
            break;
        }
        let flow = match next.kind {
            START => {
                let row = &t.nics[n];
                Some(row.flow_first + row.flow_next)
            }
            TASK => {
                let row = &t.tasks[t.nics[n].task_head];
                (row.flags & bits::MESSAGE != 0).then_some(row.flow)
            }
            _ => return Err(Stop::Abandon(reason::KIND)),
        };
        match flow {
            Some(f) => {
                let p = join(run, t, n, f, at_ps)?;
                schedule_partition(run, p, at_ps);
                break;
            }
            None => {
                task::due(t, n, &next);
            }
        }
    }
    nic::set_clock(t, n);
    collect(run, t, n);
    if run.index.nic_partition[n.usize()].is_none() {
        schedule_nic(run, t, n);
    }
    t.exps[0].now = t.exps[0].now.max(at_ps);
    Ok(())
}

/// Decides how to go on after a `failure` of the buffer guard: a pause, a resume or a drop was possible. By default the experiment starts over with
/// the switch coupled. If steady phases are skipped and starting over costs more than skips gain, it starts over without skips: then switches are
/// coupled in time. If measured rates are carried on, the failure is counted and nothing is coupled, because everything would be simulated packet by
/// packet then.
fn couple(run: &mut FoldRun, t: &Tables, failure: Failure) -> Result<(), Stop> {
    if !is_steadying(t) {
        // What was skipped earlier may be what brought the switch near a pause.
        let has_skipped = run.stats.skips > 0;
        return Err(if has_skipped { Stop::Exactly(reason::PAUSE) } else { Stop::Couple(failure) });
    }
    // Events after the failure do not count, however far other partitions are.
    judge_gain(run, t, failure.at + 1)?;
    if t.exps[0].modes & mode::RATES == 0 && run.gain.starts_over(t, &run.partitions, &run.stats) {
        return Err(Stop::Couple(failure));
    }
    run.left_out.extend(run.guard.failed());
    if t.exps[0].modes & mode::RATES == 0 {
        return Err(Stop::Exactly(reason::PAUSE));
    }
    run.stats.unpaused += 1;
    Ok(())
}

/// Whether no result depends on skips so far.
fn is_exact_so_far(run: &FoldRun, t: &Tables) -> bool {
    run.gain.is_asked() && t.exps[0].modes & mode::RATES == 0 && run.stats.skips == 0 && run.stats.rounded == 0
}

/// Whether no result depends on skips so far, so that none does if nothing is skipped from now on.
fn has_left_nothing_out(run: &FoldRun, t: &Tables) -> bool {
    is_exact_so_far(run, t) && !t.fold_hints.rounding
}

/// Rates may have wandered by at most 1/`SHARE_OF_WANDER` of the time so far, if what was skipped is kept: 0.25 % (our choice).
const SHARE_OF_WANDER: u64 = 400;

/// Hands the experiment over at `at_ps`, to go on without folding. If something was skipped, results depend on `at_ps`, so it must depend on the experiment
/// alone. Such an experiment is not folded any further because the buffer guard might then fail, or not, by what the memo knows.
///
/// # Errors
/// Always: [`Stop::HandedOver`], or the reason why that is not possible.
fn hand_over(run: &mut FoldRun, t: &mut Tables, at_ps: u64) -> Result<(), Stop> {
    come_to_one_instant(run, t, at_ps)?;
    if let Some(failure) = run.guard.failure_before(t, NEVER) {
        couple(run, t, failure)?;
    }
    leave_folding(run, t, at_ps);
    Err(Stop::HandedOver)
}

/// Whether an experiment may keep what it skipped by `at_ps` and go on without skips. Otherwise it starts over, as it gains too little for such an error:
///
/// - If marks are random, a skip draws other marks for all that follows. Roundings of rates under HPCC may grow. The rest may then differ by several percent,
///   as with another seed.
/// - If rates wandered from skip to skip, shares were not steady.
/// - Measured rates that were carried on need their audits to the end.
fn may_keep_skips(run: &FoldRun, t: &Tables, at_ps: u64) -> bool {
    let wandered = run.stats.wander_ps > at_ps / SHARE_OF_WANDER;
    t.exps[0].modes & mode::RATES == 0 && !t.fold_hints.random_marks && run.stats.rounded == 0 && !wandered
}

/// Stops the run if skips gain too little.
/// PRECONDITION: everything before `now_ps` has happened.
fn judge_gain(run: &mut FoldRun, t: &Tables, now_ps: u64) -> Result<(), Stop> {
    let is_too_little = run.gain.is_too_little(t, &run.partitions, &run.stats, now_ps);
    if is_too_little { Err(Stop::Exactly(reason::GAIN)) } else { Ok(()) }
}

/// Ends the run, which has no events left: makes the last checks and marks the experiment as done.
pub(crate) fn finish(run: &mut FoldRun, t: &mut Tables) -> Result<(), Stop> {
    if let Some(failure) = run.guard.failure_before(t, NEVER) {
        couple(run, t, failure)?;
    }
    if run.gain.is_too_little_in_all(t, &run.partitions, &run.stats) {
        return Err(Stop::Exactly(reason::GAIN));
    }
    if t.shared[SHARED_FLOWS_LEFT as usize] > 0 {
        // Stuck: the unfolded engine stops where the diagnosis expects it.
        return Err(Stop::Abandon(reason::STUCK));
    }
    compare_all(run, t);
    if t.exps[0].audit_ppm > 0 && run.stats.carried_ppm > MAX_ERROR_PPM {
        return Err(Stop::Exactly(reason::OFF));
    }
    unfold(t);
    t.exps[0].status = status::DONE;
    Ok(())
}

/// The next event of NIC `n`, which has no partition. Usually it is a task.
#[inline]
fn next_idle(t: &Tables, n: NicIdx) -> EventKey {
    let row = &t.nics[n];
    let other_ps = row.busy_until.min(t.clocks[n.usize()]).min(row.timer).min(row.rto).min(row.next_start);
    if row.next_task < other_ps { task::key(t, row.task_head) } else { nic::next_event(t, n) }
}
