//! Skips of steady partitions: how they begin, what they report, and how they end.
//!
//! Layer: fold/run.

use crate::rows::index::PartitionIdx;
use crate::run::partitions::counters::full;
use crate::run::partitions::partition::PartitionState;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::memo::node::MessageEvent;
use crate::memo::skip_plan::{SkipPlan, draw};
use crate::rows::partition_rows::waits_its_turn;
use crate::rows::snapshots::snapshot;
use crate::run::audits::audit::audit_if_due;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::progress::next_reported;
use crate::run::lookups::resume::resume;
use crate::run::partitions::counters::{forget_finished_messages, report_peaks, row_names, write_snapshot};
use crate::run::simulation::simulate::next_event_at;
use crate::run::stop::Stop;
use crate::run::turn_order::{collect, collect_all, schedule_partition};
use crate::steady::detector::SteadyRates;
use crate::steady::skip::Skip;
use crate::steady::skip_planning::plan;
use hyperfold_base::units::PS_PER_NS;
use hyperfold_columns::{FlowIdx, NEVER, NONE, NicIdx, Tables, cc, qp, task as bits};
use hyperfold_engine::cpu::key::periodic;
use hyperfold_engine::cpu::transport::queue_pair;
use hyperfold_engine::cpu::{nic, task};

/// Why a skip ended, as the log says it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SkipEnd {
    OutOfBytes,
    PlanOver,
    Posted,
    Started,
    Joined,
}

impl Display for SkipEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SkipEnd::OutOfBytes => "a queue pair has sent all its bytes",
            SkipEnd::PlanOver => "the planned length is over",
            SkipEnd::Posted => "a message was posted on a queue pair that had nothing to send",
            SkipEnd::Started => "a flow starts",
            SkipEnd::Joined => "rows join: a post needs them, or partitions merge",
        })
    }
}

/// The plan for skipping simulated partition `p` from `at_ps` on. All its working queue pairs are steady, at the given rates.
pub(crate) fn plan_skip(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    rates: &SteadyRates,
) -> SkipPlan {
    let plan = plan(t, &run.partitions[p].rows, &run.index, rates);
    let state: Arc<[u8]> = write_snapshot(run, t, p, at_ps).into();
    SkipPlan { draw: draw(&state), state, ..plan }
}

/// Begins to skip partition `p` by `plan` from `since_ps` on. Its rows are not in the tables. `may_look_up`: whether it may be looked up after the skip.
pub(crate) fn begin_skip(
    run: &mut FoldRun,
    t: &Tables,
    p: PartitionIdx,
    plan: Arc<SkipPlan>,
    since_ps: u64,
    may_look_up: bool,
) {
    run.stats.skips += 1;
    let partition = &mut run.partitions[p];
    let skip = Skip::new(t, &partition.rows, &run.index, plan, since_ps, may_look_up);
    (partition.cursor, partition.turned_away) = (None, false);
    partition.base_snapshots.clear();
    partition.start = since_ps;
    partition.ended_skip = None;
    partition.state = PartitionState::Skipped(Box::new(skip));
}

/// Reports to the tasks of skipped partition `p` all message events up to `at_ps`. The skip may end by then.
pub(crate) fn report_skipped(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    // The skip ends once all events of that instant have been reported.
    let mut end_ps = None;
    while run.partitions[p].skip().is_some() {
        let Some(skip) = run.partitions[p].skip() else { return Ok(()) };
        let (event_ps, next_event) = skip.next_event();
        if let Some(end_ps) = end_ps.filter(|&end_ps| end_ps < event_ps) {
            if skip.plan.carried.is_some() {
                note_ended_skip(run, p);
            }
            return end_skip(run, t, p, end_ps, SkipEnd::OutOfBytes);
        }
        if event_ps > at_ps {
            break;
        }
        let Some((event, m)) = next_event else {
            note_ended_skip(run, p);
            return end_skip(run, t, p, event_ps, SkipEnd::PlanOver);
        };
        let partition = &mut run.partitions[p];
        let PartitionState::Skipped(skip) = &mut partition.state else { return Ok(()) };
        let member = &mut partition.rows.members[m];
        match event {
            MessageEvent::Sent if skip.plan.carried.is_some() => {
                if skip.is_over(m) {
                    end_ps = Some(event_ps);
                }
            }
            MessageEvent::Sent => {
                skip.report_sent(m, member, event_ps);
                // More messages may have been posted behind this one.
                if member.sent == member.posted.len() {
                    end_ps = Some(event_ps);
                }
            }
            MessageEvent::Delivered => {
                skip.report_delivered(t, m, member, event_ps);
                skip.report_acked(t, m, member, event_ps);
            }
            MessageEvent::Acked => skip.report_acked(t, m, member, event_ps),
        }
        run.gain.take_trace(t);
        let had_data = skip.sends(m);
        skip.drain_if_done(t, m, member, event_ps);
        let drained = had_data && !skip.sends(m);
        skip.foresee_after(m, member, event_ps);
        if drained {
            share_anew(run, t, p, m, false, event_ps);
        }
    }
    Ok(())
}

/// Notes that the skip of `p` ends by itself: the rates that follow are compared with those of its plan.
fn note_ended_skip(run: &mut FoldRun, p: PartitionIdx) {
    let partition = &mut run.partitions[p];
    partition.ended_skip = partition.skip().map(|skip| Arc::clone(&skip.plan));
}

/// Shares the transmitters anew from `at_ps` on, because queue pair `m` of skipped partition `p` has something to send now, or (`sends` is false) nothing
/// any more.
fn share_anew(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, m: usize, sends: bool, at_ps: u64) {
    let partition = &mut run.partitions[p];
    let PartitionState::Skipped(skip) = &mut partition.state else { return };
    for k in skip.switch(m, sends) {
        if !skip.sends(k) {
            continue;
        }
        let member = &mut partition.rows.members[k];
        if k != m {
            // Events at this instant itself are reported in their own turn.
            skip.report_sent(k, member, at_ps.saturating_sub(1));
            skip.report_delivered(t, k, member, at_ps.saturating_sub(1));
            skip.report_acked(t, k, member, at_ps.saturating_sub(1));
        }
        skip.share(k, at_ps);
        skip.foresee_all(k, member);
    }
    run.gain.take_trace(t);
}

/// Moves skipped partition `p` on to `at_ps`, at which rows join it. The skip ends then or earlier.
pub(crate) fn skip_up_to(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    loop {
        let next_ps = next_reported(run, t, p);
        if run.partitions[p].skip().is_none() {
            return Ok(());
        }
        if next_ps >= at_ps {
            report_skipped(run, t, p, at_ps)?;
            collect_all(run, t, p);
            return end_skip(run, t, p, at_ps, SkipEnd::Joined);
        }
        report_skipped(run, t, p, next_ps)?;
        collect_all(run, t, p);
        let mut due_nics: Vec<NicIdx> =
            run.partitions[p].rows.nics.iter().copied().filter(|&n| t.nics[n].next_task <= next_ps).collect();
        due_nics.sort_unstable();
        for n in due_nics {
            while run.partitions[p].skip().is_some() && t.nics[n].next_task <= next_ps {
                // A post that joins rows needs a turn of its own, after the skip.
                if !post_while_skipped(run, t, p, n, next_ps) {
                    end_skip(run, t, p, next_ps, SkipEnd::Posted)?;
                }
            }
            nic::set_clock(t, n);
            collect(run, t, n);
        }
        if run.partitions[p].rows.nics.iter().any(|&n| t.nics[n].next_start <= next_ps) {
            return end_skip(run, t, p, next_ps, SkipEnd::Started);
        }
    }
}

/// Does the first task under way of NIC `n` of skipped partition `p`, which is due at `at_ps`. Returns whether it is done; if not, the skip must end
/// first.
pub(crate) fn post_while_skipped(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, n: NicIdx, at_ps: u64) -> bool {
    let i = t.nics[n].task_head;
    let row = &t.tasks[i];
    if row.flags & bits::MESSAGE == 0 {
        let key = task::key(t, i);
        task::due(t, n, &key);
        return true;
    }
    let m = run.index.member[row.flow.usize()];
    let partition = &mut run.partitions[p];
    let PartitionState::Skipped(skip) = &mut partition.state else { return false };
    let may_extend = m != NONE && partition.rows.members[m as usize].routed && waits_its_turn(t);
    if !may_extend || !skip.goes_on(m as usize) {
        return false;
    }
    let member = &mut partition.rows.members[m as usize];
    let n_posted = member.posted.len();
    task::due_unseen(t, n, at_ps, &mut member.posted);
    if member.posted.len() > n_posted {
        member.idle_since = NEVER;
        let had_data = skip.sends(m as usize);
        skip.extend(t, m as usize, member, at_ps);
        if !had_data && skip.plan.carried.is_some() {
            share_anew(run, t, p, m as usize, true, at_ps);
        }
    }
    true
}

/// Ends the skip of partition `p` at `at_ps`: its rows are in the tables again, moved ahead to that time.
pub(crate) fn end_skip(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    why: SkipEnd,
) -> Result<(), Stop> {
    let Some(skip) = run.partitions[p].take_skip() else { return Ok(()) };
    log::debug!(
        "folding: experiment {}: partition {} was skipped from {} to {} ns; it ends because {why}",
        t.exps[0].exp_id,
        p.usize(),
        skip.since / PS_PER_NS,
        at_ps / PS_PER_NS
    );
    for (m, member) in run.partitions[p].rows.members.iter_mut().enumerate().filter(|(m, _)| skip.goes_on(*m)) {
        skip.report_sent(m, member, at_ps);
        skip.report_delivered(t, m, member, at_ps);
        skip.report_acked(t, m, member, at_ps);
        skip.settle_sent(m, member);
    }
    run.gain.take_trace(t);
    let moved = skip.moved_by(at_ps);
    audit_if_due(run, t, p, &skip, &moved, at_ps)?;
    if let Some(carried) = &skip.plan.carried {
        run.continued.carried(skip.since, at_ps, carried.unsettled_ppm);
    } else {
        let wander_ps = run.wander.add(t, &run.partitions[p].rows, &skip.plan, skip.since, at_ps);
        run.stats.wander_ps = run.stats.wander_ps.max(wander_ps);
    }
    let hops = skip.count(t, &run.partitions[p].rows, &moved, at_ps);
    run.stats.hops_skipped += hops;
    run.gain.count(at_ps, 0);
    run.stats.hops_carried += if skip.plan.carried.is_some() { hops } else { 0 };
    run.stats.skipped_ps += u128::from(at_ps - skip.since);
    report_peaks(run, t, p, at_ps);
    let advanced = skip.advanced(&moved);
    snapshot::read_advanced(t, &skip.plan.state, row_names(run, p, None), at_ps, run.limit, &advanced).map_err(full)?;
    let partition = &mut run.partitions[p];
    partition.state = PartitionState::Simulated;
    (partition.covered, partition.reached) = (at_ps, at_ps);
    for (k, m) in partition.rows.members.iter_mut().enumerate() {
        (m.posts_in_rows, m.sent_in_rows) = (m.posted.len(), m.sent);
        if skip.plan.carried.is_some() && skip.goes_on(k) {
            let next = t.flow_tx[m.flow].msg_send;
            m.sent_in_rows = m.posted.iter().position(|&(i, _)| i == next).unwrap_or(m.posted.len());
            m.sent = m.sent.max(m.sent_in_rows);
            m.given = m.posted.len().min(m.sent + 1);
        }
        if m.routed {
            t.flow_tx[m.flow].flags &= !qp::HELD;
        }
    }
    if skip.plan.carried.is_some() {
        for (k, m) in run.partitions[p].rows.members.iter_mut().enumerate().filter(|(_, m)| m.routed) {
            if skip.goes_on(k) {
                skip.report_as_rows(t, m, at_ps);
            }
            rejoin_order(t, m.flow, at_ps);
        }
        run.gain.take_trace(t);
        collect_all(run, t, p);
    }
    forget_finished_messages(run, t, p);
    resume(run, t, p, at_ps, skip.may_look_up);
    let next = if !run.partitions[p].is_simulated() { next_reported(run, t, p) } else { next_event_at(run, t, p) };
    schedule_partition(run, p, next);
    Ok(())
}

/// Adds queue pair `f`, whose rates were carried on, to the order of its NIC again, as a post does, if it has something to send at `at_ps` and nothing in
/// flight. The NIC chooses its next packet at once.
fn rejoin_order(t: &mut Tables, f: FlowIdx, at_ps: u64) {
    let remembers = matches!(t.exps[0].cc, cc::HPCC | cc::TIMELY);
    let tx = &mut t.flow_tx[f];
    let n = tx.nic;
    if tx.snd_nxt > tx.snd_una || tx.snd_una >= tx.size {
        return;
    }
    if remembers {
        tx.last_seq = 0;
    }
    tx.flags &= !qp::FINISHED;
    if tx.flags & qp::QUEUED == 0 {
        tx.next_avail = tx.next_avail.max(at_ps);
        queue_pair::join_order(t, n, f);
    }
    let row = &mut t.nics[n];
    if row.busy_until == NEVER && row.timer > at_ps {
        (row.timer, row.timer_d) = (at_ps, periodic(0, 0, 0));
    }
    nic::set_clock(t, n);
}
