//! The main loop of a folded run. The earliest event of all decides whose turn it is: a partition goes on for a step of
//! its own time, an idle NIC does its tasks of that instant.
//!
//! Everything that one row sends to another, packets and signals alike, arrives at least a step later. So the earliest
//! may go on for a step, whatever the others do.
//!
//! Layer: fold/run.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::columns::{
    FoldHints, NEVER, NONE, NicIdx, SHARED_FLAGS, SHARED_FLOWS_LEFT, Tables, TaskIdx, cc, flag, mode, qp, status,
    task as bits,
};
use crate::engine::cpu::key::{EventKey, START, TASK};
use crate::engine::cpu::{analytical, nic, task};
use crate::engine::fold::memo::table::Memo;
use crate::engine::fold::rows::buffer_guard::{BufferGuard, Failure};
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::rows::index::RowIndex;
use crate::engine::fold::run::checkpoint::sample_and_checkpoint;
use crate::engine::fold::run::compare_copies::{compare_all, note_progress};
use crate::engine::fold::run::copies::ContinuedAudits;
use crate::engine::fold::run::copy_on::{carries_too_little, copy_if_due};
use crate::engine::fold::run::couple::{couple_from_now, go_on_without_skips};
use crate::engine::fold::run::detection::next_sampling;
use crate::engine::fold::run::fold_run::FoldRun;
use crate::engine::fold::run::gain::LeastGain;
use crate::engine::fold::run::join::join;
use crate::engine::fold::run::lookup_turn::lookup_turn;
use crate::engine::fold::run::restart::{CoupledSwitches, Restart};
use crate::engine::fold::run::schedule::TurnSchedule;
use crate::engine::fold::run::simulate_turn::simulate_turn;
use crate::engine::fold::run::stats::{FoldStats, TurnTimer};
use crate::engine::fold::run::stop::{Stop, reason};
use crate::engine::fold::run::turn_order::{collect, peek, schedule_nic, schedule_partition};
use crate::engine::fold::run::window_threads::WindowThreads;
use crate::engine::fold::steady::sampling::is_steadying;
use crate::engine::fold::steady::wander::RateWander;

/// Where carried rates may have the makespan off by more than this, in millionths, they are given up (our choice: such a
/// result decides nothing).
const MOST_OFF_PPM: u64 = 10_000;

/// Begins to fold `t`, if that is possible at all.
///
/// PRECONDITION: `t` holds one experiment that has not taken a step.
pub(crate) fn begin(t: &mut Tables, memo: &Arc<Memo>, checkpoint_hops: u64) -> Option<FoldRun> {
    if t.tasks.is_empty() || t.exps[0].rtt_cap > 0 {
        return None;
    }
    let restart = Arc::new(Restart::of(t));
    Some(begin_coupled(t, memo, checkpoint_hops, restart, CoupledSwitches::default()))
}

/// Begins to fold `t` with these coupled switches. `restart` is a copy of it.
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
    t.fold_hints.random_marks = cc_state::marks_by_chance(t);
    let guard = BufferGuard::new(t, &coupled.switches, coupled.near(t));
    t.exps[0].modes |= mode::TRACED;
    t.exps[0].steps = 1;
    let hpcc = t.exps[0].cc == cc::HPCC;
    t.fold_hints.rounding = is_steadying(t) && (t.fold_hints.random_marks || hpcc) && !cc_state::collide(t);
    if t.fold_hints.rounding && hpcc {
        let free = cc_state::free_phases(t).into_iter().map(|free| free.then_some((0, 0)));
        t.fold_hints.telemetry_from = Arc::new(free.collect());
    }
    for tx in &mut t.flow_tx {
        tx.flags |= qp::HELD;
    }
    let stats = FoldStats { coupled: guard.n_coupled(), couplings: coupled.times, ..FoldStats::default() };
    let mut run = FoldRun {
        restart,
        coupled,
        step: t.exps[0].step,
        memo: (t.exps[0].modes & mode::MEMO != 0).then(|| Arc::clone(memo)),
        checkpoint_hops,
        index: RowIndex::new(t),
        partitions: Vec::new(),
        spare: Vec::new(),
        joined_unrecordable: false,
        turning: NONE,
        schedule: TurnSchedule { idle_at: vec![NEVER; t.nics.len()], ..TurnSchedule::default() },
        guard,
        left_out: BTreeSet::new(),
        fails_for_certain: false,
        audited: HashSet::new(),
        gain: LeastGain::of(t),
        wander: RateWander::default(),
        threads: WindowThreads::default(),
        carries: true,
        continued: ContinuedAudits::default(),
        limit: 0,
        stats,
        explainer: None,
        ticket: memo.in_flight.enter(),
        timer: TurnTimer::default(),
        join,
        turns,
        copy_if_due,
    };
    for n in NicIdx::all(t.nics.len() as u32) {
        schedule_nic(&mut run, t, n);
    }
    run
}

/// Runs `turns` turns, or to the end.
pub(crate) fn turns(run: &mut FoldRun, t: &mut Tables, turns: u32, limit: u64) -> Result<(), Stop> {
    run.limit = limit;
    for _ in 0..turns {
        let top = peek(run);
        let fired = run.schedule.fired.peek().map(|&Reverse((latest, g))| (latest, g));
        if let Some((latest, g)) = fired
            && top.is_none_or(|(at, _)| latest < at)
        {
            run.schedule.fired.pop();
            serve(run, t, g);
            continue;
        }
        let Some((at, n)) = top else { return finish(run, t) };
        if run.fails_for_certain {
            return Err(Stop::Exactly(reason::PAUSE));
        }
        if at >= t.exps[0].time_limit {
            return Err(Stop::Abandon(reason::TIME));
        }
        let sample_at = next_sampling(run).filter(|sample_at| sample_at.0 <= at);
        if at > run.continued.next {
            note_progress(run, t, at);
        }
        let now = sample_at.map_or(at, |sample_at| sample_at.0);
        if let Some(failure) = run.guard.failure_before(t, now) {
            couple(run, t, failure)?;
        }
        judge_gain(run, t, now)?;
        if run.guard.warns() && has_left_nothing_out(run, t) {
            go_on_without_skips(run, t, now)?;
            continue;
        }
        if let Some(s) = run.guard.take_wanted() {
            couple_from_now(run, t, s, at)?;
            continue;
        }
        // Before anything is done: who waits here does nothing else.
        if run.ticket.turn(now) {
            return Err(Stop::Wait);
        }
        if let Some((sample_at, p)) = sample_at {
            let timed_turn = run.timer.begin_turn(&mut run.stats, sample_at);
            run.ticket.may_wait = false;
            sample_and_checkpoint(run, t, p, sample_at);
            run.timer.end_turn(
                &mut run.stats,
                (run.partitions.len() - run.spare.len()) as u64,
                timed_turn,
                Some(false),
            );
            continue;
        }
        run.schedule.heap.pop();
        let timed_turn = run.timer.begin_turn(&mut run.stats, at);
        let p = run.index.nic_partition[n.usize()];
        let looked_up = (p != NONE).then(|| run.partitions[p as usize].looked_up);
        run.ticket.may_wait = looked_up != Some(false);
        let done = match looked_up {
            None => idle_turn(run, t, n, at),
            Some(true) => lookup_turn(run, t, p, at),
            Some(false) => simulate_turn(run, t, p, at),
        };
        run.timer.end_turn(&mut run.stats, (run.partitions.len() - run.spare.len()) as u64, timed_turn, looked_up);
        if let Err(Stop::Wait) = done {
            repeat_turn(run, t, n, at);
        }
        done?;
    }
    Ok(())
}

/// Schedules the turn of NIC `n`, or of its partition, at `at` again.
pub(crate) fn repeat_turn(run: &mut FoldRun, t: &mut Tables, n: NicIdx, at: u64) {
    match run.index.nic_partition[n.usize()] {
        NONE => {
            nic::set_clock(t, n);
            schedule_nic(run, t, n);
        }
        p => schedule_partition(run, p, at),
    }
}

/// Serves gate `g`, the first that fired: none can fire earlier any more.
pub(crate) fn serve(run: &mut FoldRun, t: &mut Tables, g: u32) {
    analytical::serve(t, g);
    let g = g as usize;
    for k in t.gates[g].first..t.gates[g].first + t.gates[g].n {
        let owner = t.tasks[TaskIdx(t.edges[k as usize])].owner;
        schedule_nic(run, t, owner);
    }
}

/// Does the tasks of an idle NIC at one instant, up to the first that needs the network.
pub(crate) fn idle_turn(run: &mut FoldRun, t: &mut Tables, n: NicIdx, at: u64) -> Result<(), Stop> {
    run.schedule.idle_at[n.usize()] = NEVER;
    loop {
        let next = next_idle(t, n);
        if next.t > at {
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
                let p = join(run, t, n, f, at)?;
                schedule_partition(run, p, at);
                break;
            }
            None => {
                task::due(t, n, &next);
            }
        }
    }
    nic::set_clock(t, n);
    collect(run, t, n);
    if run.index.nic_partition[n.usize()] == NONE {
        schedule_nic(run, t, n);
    }
    t.exps[0].now = t.exps[0].now.max(at);
    Ok(())
}

/// A pause, a resume or a drop was within reach: the switch is coupled. Where measured rates are carried on, it is not,
/// because all would be simulated packet by packet then; that is counted. Where steady phases are skipped and starting over
/// costs more than skips gain, the experiment starts over without them: then switches are coupled in time.
fn couple(run: &mut FoldRun, t: &Tables, failure: Failure) -> Result<(), Stop> {
    if !is_steadying(t) {
        return Err(Stop::Couple(failure));
    }
    // What happened later has no say, however far others are.
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

/// Whether results owe nothing to skips so far, and would not if there were none from now on.
fn has_left_nothing_out(run: &FoldRun, t: &Tables) -> bool {
    run.gain.is_asked()
        && t.exps[0].modes & mode::RATES == 0
        && !t.fold_hints.rounding
        && run.stats.skips == 0
        && run.stats.rounded == 0
}

/// Everything before `now` has happened: do skips gain enough?
fn judge_gain(run: &mut FoldRun, t: &Tables, now: u64) -> Result<(), Stop> {
    let is_too_little = run.gain.is_too_little(t, &run.partitions, &run.stats, now);
    if is_too_little { Err(Stop::Exactly(reason::GAIN)) } else { Ok(()) }
}

/// Nothing is left to happen.
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
    if t.exps[0].audit_ppm > 0 && run.stats.carried_ppm > MOST_OFF_PPM {
        return Err(Stop::Exactly(reason::OFF));
    }
    for tx in &mut t.flow_tx {
        tx.flags &= !qp::HELD;
    }
    t.shared[SHARED_FLAGS as usize] &= !flag::SIGNALS;
    t.exps[0].modes &= !mode::TRACED;
    t.fold_hints = FoldHints::default();
    t.exps[0].status = status::DONE;
    Ok(())
}

/// The next event of NIC `n`, which is mostly a task.
#[inline]
fn next_idle(t: &Tables, n: NicIdx) -> EventKey {
    let row = &t.nics[n];
    let others = row.busy_until.min(t.clocks[n.usize()]).min(row.timer).min(row.rto).min(row.next_start);
    if row.next_task < others { task::key(t, row.task_head) } else { nic::next_event(t, n) }
}
