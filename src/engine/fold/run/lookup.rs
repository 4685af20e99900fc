//! A partition that the memo knows: its messages are delivered and acknowledged as the memo says. Its rows do not
//! change until it retires.
//!
//! Layer: fold/run.

use crate::engine::cpu::key::NO_EVENT;
use std::sync::Arc;

use crate::columns::{NEVER, NicIdx, Tables, TaskIdx, qp, task as bits};
use crate::engine::cpu::key::EventKey;
use crate::engine::cpu::{nic, task};
use crate::engine::fold::memo::keys::{follow_key, post_key};
use crate::engine::fold::memo::node::MessageEvent;
use crate::engine::fold::rows::partition_rows::{Member, waits_its_turn};
use crate::engine::fold::run::checkpoint::{pass_checkpoint, sample_and_checkpoint};
use crate::engine::fold::run::claim::{must_simulate, update_claim};
use crate::engine::fold::run::detection::{goes_on_soon, reset_detector, schedule_sampling, take_sample};
use crate::engine::fold::run::explain::{because, new_edge};
use crate::engine::fold::run::explanation::FoldCause;
use crate::engine::fold::run::fold_run::FoldRun;
use crate::engine::fold::run::progress::{ends_by, final_state_by, leaves_at, next_reported};
use crate::engine::fold::run::recording::{drain, flush_covered};
use crate::engine::fold::run::restore::restore;
use crate::engine::fold::run::retire::retire_looked_up;
use crate::engine::fold::run::simulate::{next_event_at, window};
use crate::engine::fold::run::skip::{SkipEnd, end_skip, report_skipped, skip_up_to};
use crate::engine::fold::run::stop::Stop;
use crate::engine::fold::run::turn_order::collect_all;
use crate::engine::fold::steady::sampling::is_steadying;

/// The first task under way of NIC `n`, a message on member `m`, is due. Its posts lead to a child in the memo, or the
/// partition is simulated.
pub(crate) fn record_post_of_looked_up(
    run: &mut FoldRun,
    t: &mut Tables,
    p: u32,
    n: NicIdx,
    m: u32,
    at: u64,
) -> Result<(), Stop> {
    let member = &mut run.partitions[p as usize].rows.members[m as usize];
    let before = member.posted.len();
    task::due_unseen(t, n, at, &mut member.posted);
    let idle = member.idle_since;
    if member.posted.len() > before {
        member.idle_since = NEVER;
    }
    let mut sizes: Vec<u64> = member.posted[before..].iter().map(|&(i, _)| t.tasks[i].bytes).collect();
    let waits = waits_its_turn(t);
    if sizes.is_empty() || (waits && member.given != member.sent) {
        return Ok(());
    }
    if waits {
        sizes.truncate(1);
    }
    member.given += sizes.len();
    if !goes_on_soon(run, t, p, idle, at) {
        reset_detector(run, t, p, at);
    }
    let rel = at - run.partitions[p as usize].start;
    follow(run, t, p, post_key(rel, m, &sizes), at, at)
}

/// Takes the edge `key` of `p`'s node. If that leads to a new node, of which nothing is known before `known`, the
/// partition is simulated.
pub(crate) fn follow(run: &mut FoldRun, t: &mut Tables, p: u32, key: Vec<u8>, at: u64, known: u64) -> Result<(), Stop> {
    let partition = &mut run.partitions[p as usize];
    let (Some(cursor), Some(memo)) = (&mut partition.cursor, &run.memo) else {
        return leave_memo(run, t, p, at);
    };
    // Only explanations need the key again.
    let tried = if run.explainer.is_some() { key.clone() } else { Vec::new() };
    let Some((child, was_there)) =
        memo.child(&cursor.node, key, known - partition.start, run.ticket.by(partition.start))
    else {
        return leave_memo(run, t, p, at);
    };
    let before = std::mem::replace(&mut cursor.node, child);
    let child = Arc::clone(&cursor.node);
    cursor.at(child);
    if was_there {
        return report_events(run, t, p, at);
    }
    new_edge(run, t, p, &before, &tried);
    start_simulating(run, t, p, at)
}

/// Reports to the tasks of `p` all that happened by `at`. Where a message follows that never followed before, the
/// partition is simulated.
pub(crate) fn report_events(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
    while run.partitions[p as usize].looked_up {
        if run.partitions[p as usize].skip.is_some() {
            run.gain.take_trace(t);
            return report_skipped(run, t, p, at);
        }
        let partition = &mut run.partitions[p as usize];
        let Some(cursor) = &mut partition.cursor else { return Ok(()) };
        let now = at - partition.start;
        let body = cursor.node.body();
        let until = leaves_at(&body);
        let Some(&event) = body.events.get(cursor.next_event).filter(|x| x.at <= now && x.at < until) else {
            let checkpoint = body.checkpoint.as_ref().filter(|checkpoint| checkpoint.at <= now).map(Arc::clone);
            drop(body);
            run.gain.take_trace(t);
            let (Some(checkpoint), Some(memo)) = (checkpoint, &run.memo) else {
                if pass_choice(run, t, p, now) {
                    continue;
                }
                break;
            };
            // What it leads to may be missing here: then there is no checkpoint, and perhaps more events.
            if let Some(checkpoint) = memo.reach(&cursor.node, checkpoint) {
                pass_checkpoint(run, t, p, &checkpoint)?;
            }
            continue;
        };
        drop(body);
        cursor.next_event += 1;
        let when = partition.start + event.at;
        let member: &mut Member = &mut partition.rows.members[event.member as usize];
        let key = EventKey { t: when, ..NO_EVENT };
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
                    follow(run, t, p, key, when, when)?;
                }
            }
            MessageEvent::Delivered => {
                member.delivered = event.nth as usize + 1;
                let n = t.flow_rx[member.flow].nic;
                task::delivered(t, n, i, &key);
                nic::set_clock(t, n);
            }
            MessageEvent::Acked => {
                member.acked = event.nth as usize + 1;
                member.note_acked(when);
                let (owner, follow) = (t.tasks[i].owner, t.tasks[i].follow);
                task::acknowledged(t, owner, i, follow, &key);
                nic::set_clock(t, owner);
            }
        }
    }
    run.gain.take_trace(t);
    Ok(())
}

/// Looked-up partition `p` passes a sample by `now`, from the start of its episode, at which what waits decides. Returns
/// whether it is known what follows.
fn pass_choice(run: &mut FoldRun, t: &Tables, p: u32, now: u64) -> bool {
    let partition = &mut run.partitions[p as usize];
    let (Some(cursor), Some(memo)) = (&mut partition.cursor, &run.memo) else { return false };
    let choice = cursor.node.body().choice.clone().filter(|choice| choice.at <= now);
    let Some(choice) = choice else { return false };
    let key = choice.key(|m| partition.rows.members[m as usize].waiting(t));
    let Some(child) = memo.known_child(&cursor.node, &key, run.ticket.by(partition.start)) else { return false };
    cursor.at(child);
    true
}

/// Looked-up partition `p` goes on to `at`, at which rows join it, ahead of its turn. Its own tasks that are due
/// earlier come first: it is simulated for them.
pub(crate) fn catch_up_with(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
    while run.partitions[p as usize].looked_up {
        if run.partitions[p as usize].skip.is_some() {
            return skip_up_to(run, t, p, at);
        }
        let next = next_reported(run, t, p).min(at);
        let tasks = run.partitions[p as usize]
            .rows
            .nics
            .iter()
            .map(|&n| t.nics[n].next_task.min(t.nics[n].next_start))
            .min()
            .unwrap_or(NEVER);
        if tasks < at && tasks <= next {
            because(run, t, p, FoldCause::Merge);
            return start_simulating(run, t, p, tasks);
        }
        report_events(run, t, p, next)?;
        collect_all(run, t, p);
        if !run.partitions[p as usize].looked_up || (next == at && !ends_by(run, p, at)) {
            return Ok(());
        }
        if let Some(final_state) = final_state_by(run, p, next) {
            retire_looked_up(run, t, p, &final_state);
            return Ok(());
        }
        if must_simulate(run, p, next)? {
            because(run, t, p, FoldCause::PostAtOtherTime);
            start_simulating(run, t, p, next)?;
            // A sample comes before whoever joins at its instant.
            let partition = &run.partitions[p as usize];
            if is_steadying(t) && partition.recordable && partition.detector.next() == next {
                sample_and_checkpoint(run, t, p, next);
            }
        }
    }
    Ok(())
}

/// `p` is neither looked up nor recorded any more.
pub(crate) fn stop_remembering(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
    leave_memo(run, t, p, at)?;
    run.partitions[p as usize].turned_away = false;
    Ok(())
}

/// The memo has no room for what `p` does: it is neither looked up nor recorded before its next checkpoint.
pub(crate) fn leave_memo(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
    if run.partitions[p as usize].looked_up {
        start_simulating(run, t, p, at)?;
    }
    run.partitions[p as usize].turn_away();
    Ok(())
}

/// Puts the rows of `p` back to where its episode began, or to the last checkpoint. They are simulated up to `until`
/// with what was posted, and go on from there.
pub(crate) fn start_simulating(run: &mut FoldRun, t: &mut Tables, p: u32, until: u64) -> Result<(), Stop> {
    if run.partitions[p as usize].skip.is_some() {
        end_skip(run, t, p, until, SkipEnd::Joined)?;
        if !run.partitions[p as usize].looked_up {
            return Ok(());
        }
    }
    run.stats.misses += 1;
    run.ticket.goes_alone();
    let may_wait = std::mem::take(&mut run.ticket.may_wait);
    restore(run, t, p)?;
    let nics = run.partitions[p as usize].rows.nics.clone();
    let kept: Vec<(TaskIdx, u64)> = nics.iter().map(|&n| (t.nics[n].task_head, t.nics[n].next_task)).collect();
    for &n in &nics {
        (t.nics[n].task_head, t.nics[n].next_task) = (TaskIdx::NONE, NEVER);
    }
    let mut posts: Vec<TaskIdx> = Vec::new();
    for member in &mut run.partitions[p as usize].rows.members {
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
    // Latest first, so that each goes to the head of its NIC's list.
    posts.sort_by_key(|&i| std::cmp::Reverse((t.tasks[i].at, t.tasks[i].root, i)));
    for i in posts {
        task::under_way(t, t.tasks[i].owner, i);
    }
    for &n in &nics {
        nic::set_clock(t, n);
    }
    run.partitions[p as usize].looked_up = false;
    run.partitions[p as usize].explained_hops = 0;
    update_claim(run, p);
    run.partitions[p as usize].covered = until;
    run.partitions[p as usize].reached = until;
    run.partitions[p as usize].detector.reset(0);
    schedule_sampling(run, t, p);
    loop {
        let from = run.partitions[p as usize].next_events(t).at;
        let sampling_at = run.partitions[p as usize].detector.next();
        if sampling_at <= from && sampling_at < until {
            take_sample(run, t, p);
            continue;
        }
        if from >= until {
            break;
        }
        let end = run.partitions[p as usize].mark(from + 1, run.step).min(until).min(sampling_at);
        window(run, t, p, from, end)?;
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
    // Others that follow need not be simulated as well: this one goes first.
    let known = next_event_at(run, t, p).min(run.partitions[p as usize].detector.next());
    flush_covered(run, p, known);
    run.ticket.may_wait = may_wait;
    Ok(())
}
