//! Looked-up partitions, whose future the memo knows: messages are delivered and acknowledged as the memo says. The rows of such a partition do not
//! change until it retires.
//!
//! Layer: fold/run.

use hyperfold_engine::cpu::key::NO_EVENT;
use std::sync::Arc;

use super::checkpoint::{pass_checkpoint, sample_and_checkpoint};
use super::claim::{must_simulate, update_claim};
use super::progress::{ends_by, final_state_by, leaves_at, next_reported};
use super::recording::{drain, flush_covered};
use super::restore::restore;
use crate::memo::keys::{follow_key, post_key};
use crate::memo::node::MessageEvent;
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::{Member, waits_its_turn};
use crate::run::explanations::explain::{because, new_edge};
use crate::run::explanations::explanation::FoldCause;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::partition::PartitionState;
use crate::run::partitions::retire::retire_looked_up;
use crate::run::simulation::simulate::{next_event_at, repeat_span};
use crate::run::skips::sampling_turns::{goes_on_soon, reset_detector, schedule_sampling, take_sample};
use crate::run::skips::skip::{SkipEnd, end_skip, report_skipped, skip_up_to};
use crate::run::stop::Stop;
use crate::run::turn_order::collect_all;
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{NEVER, NicIdx, Tables, TaskIdx, qp, task as bits};
use hyperfold_engine::cpu::key::EventKey;
use hyperfold_engine::cpu::{nic, task};

/// Posts the messages of queue pair `m` of looked-up partition `p` that are due at `at_ps`; the first is the first task under way of NIC `n`. The post
/// leads to a child node in the memo. If the memo has no such child, the partition is simulated.
pub(crate) fn record_post_of_looked_up(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    n: NicIdx,
    m: u32,
    at_ps: u64,
) -> Result<(), Stop> {
    let member = &mut run.partitions[p].rows.members[m as usize];
    let n_posted = member.posted.len();
    task::due_unseen(t, n, at_ps, &mut member.posted);
    let idle_since_ps = member.idle_since;
    if member.posted.len() > n_posted {
        member.idle_since = NEVER;
    }
    let mut sizes: Vec<u64> = member.posted[n_posted..].iter().map(|&(i, _)| t.tasks[i].bytes).collect();
    let waits = waits_its_turn(t);
    if sizes.is_empty() || (waits && member.given != member.sent) {
        return Ok(());
    }
    if waits {
        sizes.truncate(1);
    }
    member.given += sizes.len();
    if !goes_on_soon(run, t, p, idle_since_ps, at_ps) {
        reset_detector(run, t, p, at_ps);
    }
    let since_start_ps = at_ps - run.partitions[p].start;
    follow(run, t, p, post_key(since_start_ps, m, &sizes), at_ps, at_ps)
}

/// Follows the edge `key` from the memo node of looked-up partition `p`. If that leads to a new node, the partition is simulated up to `at_ps`.
/// `known_ps`: time before which a new node has no events.
pub(crate) fn follow(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    key: Vec<u8>,
    at_ps: u64,
    known_ps: u64,
) -> Result<(), Stop> {
    let partition = &mut run.partitions[p];
    let (Some(cursor), Some(memo)) = (&mut partition.cursor, &run.memo) else {
        return leave_memo(run, t, p, at_ps);
    };
    // Only explanations need the key again.
    let tried_key = if run.explainer.is_some() { key.clone() } else { Vec::new() };
    let Some((child, existed)) =
        memo.child(&cursor.node, key, known_ps - partition.start, run.ticket.by(partition.start))
    else {
        return leave_memo(run, t, p, at_ps);
    };
    let old_node = std::mem::replace(&mut cursor.node, child);
    let child = Arc::clone(&cursor.node);
    cursor.at(child);
    if existed {
        return report_events(run, t, p, at_ps);
    }
    new_edge(run, t, p, &old_node, &tried_key);
    start_simulating(run, t, p, at_ps)
}

/// Reports to the tasks of looked-up or skipped partition `p` all message events up to `at_ps`. If a message follows that the memo does not know, the
/// partition is simulated.
pub(crate) fn report_events(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    while !run.partitions[p].is_simulated() {
        if run.partitions[p].skip().is_some() {
            run.gain.take_trace(t);
            return report_skipped(run, t, p, at_ps);
        }
        let partition = &mut run.partitions[p];
        let Some(cursor) = &mut partition.cursor else { return Ok(()) };
        let elapsed_ps = at_ps - partition.start;
        let body = cursor.node.body();
        let leaves_ps = leaves_at(&body);
        let Some(&event) =
            body.events.get(cursor.next_event).filter(|event| event.at <= elapsed_ps && event.at < leaves_ps)
        else {
            let checkpoint = body.checkpoint.as_ref().filter(|checkpoint| checkpoint.at <= elapsed_ps).map(Arc::clone);
            drop(body);
            run.gain.take_trace(t);
            let (Some(checkpoint), Some(memo)) = (checkpoint, &run.memo) else {
                if pass_choice(run, t, p, elapsed_ps) {
                    continue;
                }
                break;
            };
            if run.gain.is_too_late() && checkpoint.skips() {
                // Other experiments skip from here on. This one is simulated up to here, and takes the sample at which they began.
                let checkpoint_ps = run.partitions[p].start + checkpoint.at;
                return start_simulating(run, t, p, checkpoint_ps);
            }
            // The snapshots to which the checkpoint leads may be missing in this memo. Then the node has no checkpoint, and perhaps more events.
            if let Some(checkpoint) = memo.reach(&cursor.node, checkpoint) {
                pass_checkpoint(run, t, p, &checkpoint)?;
            }
            continue;
        };
        drop(body);
        cursor.next_event += 1;
        let event_ps = partition.start + event.at;
        let member: &mut Member = &mut partition.rows.members[event.member as usize];
        let key = EventKey { t: event_ps, ..NO_EVENT };
        let i = member.posted[event.nth as usize].0;
        // Events at the instant of a join may be in both the node before it and the node after it.
        let reported = [member.sent, member.delivered, member.acked][event.event as usize];
        if reported > event.nth as usize {
            continue;
        }
        match event.event {
            MessageEvent::Sent => {
                member.sent = event.nth as usize + 1;
                if let Some(&(next, _)) = member.posted.get(member.given) {
                    member.given += 1;
                    let key = follow_key(event.at, event.member, t.tasks[next].bytes);
                    run.gain.take_trace(t);
                    follow(run, t, p, key, event_ps, event_ps)?;
                }
            }
            MessageEvent::Delivered => {
                member.delivered = event.nth as usize + 1;
                let n = t.flow_rx[member.flow].nic;
                task::delivered(t, n, i, t.tasks[i].follow, &key);
                nic::set_clock(t, n);
            }
            MessageEvent::Acked => {
                member.acked = event.nth as usize + 1;
                member.note_acked(event_ps);
                let (owner, follow) = (t.tasks[i].owner, t.tasks[i].follow);
                task::acknowledged(t, owner, i, follow, &key);
                nic::set_clock(t, owner);
            }
        }
    }
    run.gain.take_trace(t);
    Ok(())
}

/// Passes the choice of looked-up partition `p`, if it has one by `elapsed_ps` after its start: a sample at which the waiting messages decide whether it
/// is skipped. Returns whether the memo knows what follows.
fn pass_choice(run: &mut FoldRun, t: &Tables, p: PartitionIdx, elapsed_ps: u64) -> bool {
    let partition = &mut run.partitions[p];
    let (Some(cursor), Some(memo)) = (&mut partition.cursor, &run.memo) else { return false };
    let choice = cursor.node.body().choice.clone().filter(|choice| choice.at <= elapsed_ps);
    let Some(choice) = choice else { return false };
    let key = choice.key(|m| partition.rows.members[m as usize].waiting(t));
    let Some(child) = memo.known_child(&cursor.node, &key, run.ticket.by(partition.start)) else { return false };
    cursor.at(child);
    true
}

/// Moves looked-up partition `p` on to `at_ps` ahead of its turn, because rows join it then. If tasks of its own are due earlier, they come first: it is
/// simulated from them on.
pub(crate) fn catch_up_with(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    while !run.partitions[p].is_simulated() {
        if run.partitions[p].skip().is_some() {
            return skip_up_to(run, t, p, at_ps);
        }
        let next_ps = next_reported(run, t, p).min(at_ps);
        let task_ps = run.partitions[p]
            .rows
            .nics
            .iter()
            .map(|&n| t.nics[n].next_task.min(t.nics[n].next_start))
            .min()
            .unwrap_or(NEVER);
        if task_ps < at_ps && task_ps <= next_ps {
            because(run, t, p, FoldCause::Merge);
            return start_simulating(run, t, p, task_ps);
        }
        report_events(run, t, p, next_ps)?;
        collect_all(run, t, p);
        if run.partitions[p].is_simulated() || (next_ps == at_ps && !ends_by(run, p, at_ps)) {
            return Ok(());
        }
        if let Some(final_state) = final_state_by(run, p, next_ps) {
            retire_looked_up(run, t, p, &final_state);
            return Ok(());
        }
        if must_simulate(run, p, next_ps)? {
            because(run, t, p, FoldCause::PostAtOtherTime);
            start_simulating(run, t, p, next_ps)?;
            // A sample comes before rows that join at its instant.
            let partition = &run.partitions[p];
            if is_steadying(t) && partition.recordable && partition.detector.next() == next_ps {
                sample_and_checkpoint(run, t, p, next_ps);
            }
        }
    }
    Ok(())
}

/// Removes partition `p` from the memo at `at_ps`: it is neither looked up nor recorded any more.
pub(crate) fn stop_remembering(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    leave_memo(run, t, p, at_ps)?;
    run.partitions[p].turned_away = false;
    Ok(())
}

/// Removes partition `p` from the memo, which does not admit its events: it is neither looked up nor recorded before its next checkpoint.
pub(crate) fn leave_memo(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Result<(), Stop> {
    if !run.partitions[p].is_simulated() {
        start_simulating(run, t, p, at_ps)?;
    }
    run.partitions[p].turn_away();
    Ok(())
}

/// Turns looked-up partition `p` into a simulated one. Its rows are restored as of its start or its last checkpoint. Then they are simulated up to
/// `until_ps` with the messages that were posted.
pub(crate) fn start_simulating(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, until_ps: u64) -> Result<(), Stop> {
    if run.partitions[p].skip().is_some() {
        end_skip(run, t, p, until_ps, SkipEnd::Joined)?;
        if run.partitions[p].is_simulated() {
            return Ok(());
        }
    }
    run.stats.misses += 1;
    run.ticket.goes_alone();
    let may_wait = std::mem::take(&mut run.ticket.may_wait);
    restore(run, t, p)?;
    let nics = run.partitions[p].rows.nics.clone();
    let kept: Vec<(TaskIdx, u64)> = nics.iter().map(|&n| (t.nics[n].task_head, t.nics[n].next_task)).collect();
    for &n in &nics {
        (t.nics[n].task_head, t.nics[n].next_task) = (TaskIdx::NONE, NEVER);
    }
    let mut posts: Vec<TaskIdx> = Vec::new();
    for member in &mut run.partitions[p].rows.members {
        if member.routed {
            t.flow_tx[member.flow].flags &= !qp::HELD;
        }
        if let Some(&(i, _)) = member.posted.get(member.posts_in_rows) {
            t.flow_tx[member.flow].msg_post = i;
        }
        for &(i, _) in member.posted[member.posts_in_rows..].iter().filter(|m| m.1) {
            t.tasks[i].flags &= !bits::READY;
            posts.push(i);
        }
    }
    // The latest comes first, so that each goes to the head of its NIC's list.
    posts.sort_by_key(|&i| std::cmp::Reverse((t.tasks[i].at, t.tasks[i].root, i)));
    for i in posts {
        task::under_way(t, t.tasks[i].owner, i);
    }
    for &n in &nics {
        nic::set_clock(t, n);
    }
    run.partitions[p].state = PartitionState::Simulated;
    run.partitions[p].explained_hops = 0;
    update_claim(run, p);
    run.partitions[p].covered = until_ps;
    run.partitions[p].reached = until_ps;
    run.partitions[p].detector.reset(0);
    schedule_sampling(run, t, p);
    loop {
        let next_ps = run.partitions[p].next_events(t).at;
        let sampling_ps = run.partitions[p].detector.next();
        if sampling_ps <= next_ps && sampling_ps < until_ps {
            take_sample(run, t, p);
            continue;
        }
        if next_ps >= until_ps {
            break;
        }
        let end_ps = run.partitions[p].mark(next_ps + 1, run.step).min(until_ps).min(sampling_ps);
        repeat_span(run, t, p, next_ps, end_ps)?;
        drain(run, t, p);
    }
    schedule_sampling(run, t, p);
    for (&n, kept) in nics.iter().zip(kept) {
        let mut left = t.nics[n].task_head;
        (t.nics[n].task_head, t.nics[n].next_task) = kept;
        while left.is_some() {
            let next = t.tasks[left].next;
            task::under_way(t, n, left);
            left = next;
        }
        nic::set_clock(t, n);
    }
    // Other experiments that follow this one need not simulate the partition as well: this one records it first.
    let known_ps = next_event_at(run, t, p).min(run.partitions[p].detector.next());
    flush_covered(run, p, known_ps);
    run.ticket.may_wait = may_wait;
    Ok(())
}
