//! Records in the memo what happens in a partition, in order of time.
//!
//! Layer: fold/run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::claim::update_claim;
use crate::memo::cursor::{PendingEvent, PendingKind};
use crate::memo::keys::{edge, follow_key, post_key};
use crate::memo::node::{MessageEvent, TimedMessageEvent};
use crate::memo::skip_choice::{NeededBytes, SkipChoice};
use crate::rows::canonical_key::CanonicalKey;
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::waits_its_turn;
use crate::run::explanations::explain::because;
use crate::run::explanations::explanation::FoldCause;
use crate::run::fold_run::FoldRun;
use crate::run::skips::sampling_turns::{goes_on_soon, reset_detector};
use hyperfold_columns::{FoldTrace, NEVER, NONE, NicIdx, Tables, TaskIdx};

/// Takes the traced message events of `p` from the tables.
pub(crate) fn drain(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) {
    let waits = waits_its_turn(t);
    let mut noted = std::mem::take(&mut t.fold_trace);
    run.gain.note_acknowledged(t, &noted);
    for event in noted.drain(..) {
        let (FoldTrace::Posted { task: i, .. }
        | FoldTrace::Sent { task: i, .. }
        | FoldTrace::DeliveredAgain { task: i, .. }
        | FoldTrace::Delivered(i)
        | FoldTrace::Acked(i)) = event;
        let m = run.index.member[t.tasks[i].flow.usize()];
        if m == NONE {
            continue;
        }
        match event {
            FoldTrace::Posted { first, .. } => record_posted(run, t, p, m, i, first, waits),
            FoldTrace::Sent { at: at_ps, .. } if waits => record_sent(run, t, p, m, i, at_ps),
            FoldTrace::Sent { .. } | FoldTrace::DeliveredAgain { .. } => {}
            FoldTrace::Delivered(_) => {
                let row = &t.tasks[i];
                record_message_event(run, p, m, row.got, t.flow_rx[row.flow].nic, MessageEvent::Delivered);
            }
            FoldTrace::Acked(_) => {
                let row = &t.tasks[i];
                record_message_event(run, p, m, row.done, row.owner, MessageEvent::Acked);
            }
        }
    }
    t.fold_trace = noted;
}

/// Records that message `i` was posted on member `m`.
pub(crate) fn record_posted(
    run: &mut FoldRun,
    t: &Tables,
    p: PartitionIdx,
    m: u32,
    i: TaskIdx,
    first: bool,
    waits: bool,
) {
    let row = &t.tasks[i];
    let partition = &mut run.partitions[p];
    partition.rows.last_post_at[run.index.nic_local[row.owner.usize()] as usize] = row.at;
    let member = &mut partition.rows.members[m as usize];
    member.posts_in_rows += 1;
    if member.posts_in_rows <= member.posted.len() {
        return;
    }
    member.posted.push((i, first));
    partition.changed |= partition.turned_away;
    let idle = std::mem::replace(&mut member.idle_since, NEVER);
    if waits && member.given != member.sent {
        return;
    }
    member.given += 1;
    if !goes_on_soon(run, t, p, idle, row.at) {
        reset_detector(run, t, p, row.at);
    }
    let Some(cursor) = &mut run.partitions[p].cursor else { return };
    match cursor.pending.last_mut() {
        Some(PendingEvent { what: PendingKind::Post { member, bytes }, .. }) if !first && *member == m => {
            bytes.push(row.bytes)
        }
        _ => cursor.pending.push(PendingEvent {
            at: row.at,
            nic: row.owner,
            what: PendingKind::Post { member: m, bytes: vec![row.bytes] },
        }),
    }
}

/// Records that the last byte of message `i` of member `m` was sent at `at_ps`; it may have been sent again after a timeout.
pub(crate) fn record_sent(run: &mut FoldRun, t: &Tables, p: PartitionIdx, m: u32, i: TaskIdx, at_ps: u64) {
    let partition = &mut run.partitions[p];
    let member = &mut partition.rows.members[m as usize];
    if member.posted.get(member.sent_in_rows).is_none_or(|next| next.0 != i) {
        return;
    }
    member.sent_in_rows += 1;
    if member.sent_in_rows <= member.sent {
        return;
    }
    member.sent += 1;
    partition.changed |= partition.turned_away;
    let nth = member.sent as u32 - 1;
    let follows = member.posted.get(member.given).map(|&(i, _)| t.tasks[i].bytes);
    member.given += usize::from(follows.is_some());
    let nic = t.flow_tx[member.flow].nic;
    let at_once = partition.rows.last_post_at[run.index.nic_local[nic.usize()] as usize] == at_ps;
    if let Some(cursor) = &mut partition.cursor {
        cursor.pending.push(PendingEvent {
            at: at_ps,
            nic,
            what: PendingKind::Message { member: m, nth, event: MessageEvent::Sent, follows, at_once },
        });
    }
}

/// Records that a message of member `m` was delivered or acknowledged at `at_ps`.
pub(crate) fn record_message_event(
    run: &mut FoldRun,
    p: PartitionIdx,
    m: u32,
    at_ps: u64,
    nic: NicIdx,
    event: MessageEvent,
) {
    let partition = &mut run.partitions[p];
    let member = &mut partition.rows.members[m as usize];
    let count = if event == MessageEvent::Delivered { &mut member.delivered } else { &mut member.acked };
    *count += 1;
    partition.changed |= partition.turned_away;
    let nth = *count as u32 - 1;
    if event == MessageEvent::Acked {
        member.note_acked(at_ps);
    }
    if let Some(cursor) = &mut partition.cursor {
        cursor.pending.push(PendingEvent {
            at: at_ps,
            nic,
            what: PendingKind::Message { member: m, nth, event, follows: None, at_once: false },
        });
    }
}

/// Prepares `p` for rows that join at `at_ps`, by NIC `n`: later events are recorded after that.
pub(crate) fn rewind(run: &mut FoldRun, p: PartitionIdx, at_ps: u64, n: NicIdx) {
    let Some(cursor) = &mut run.partitions[p].cursor else { return };
    if cursor.recent.iter().any(|e| !is_before(e, at_ps, n)) {
        cursor.rewind();
    }
}

/// Records what is pending as far as `p` is covered. Nothing else happens before `known` (ps).
pub(crate) fn flush_covered(run: &mut FoldRun, p: PartitionIdx, known: u64) {
    let covered = run.partitions[p].covered;
    if covered > 0 {
        flush(run, p, (covered - 1, NicIdx::NONE), known);
    }
}

/// Records what is pending up to a post by NIC `until.1` at `until.0` (ps). Nothing else happens before `known` (0: unknown).
pub(crate) fn flush(run: &mut FoldRun, p: PartitionIdx, before_post: (u64, NicIdx), known: u64) {
    let Some(memo) = run.memo.clone() else { return };
    let partition = &mut run.partitions[p];
    let start = partition.start;
    let Some(cursor) = &mut partition.cursor else { return };
    cursor.pending.sort_by_key(PendingEvent::order);
    if cursor.pending.first().is_some_and(|first| cursor.recent.iter().any(|e| e.order() > first.order())) {
        cursor.rewind();
        cursor.pending.sort_by_key(PendingEvent::order);
    }
    let n = cursor.pending.iter().take_while(|e| is_before(e, before_post.0, before_post.1)).count();
    partition.changed |= n > 0;
    let mut full = false;
    for event in cursor.pending.drain(..n) {
        let at_ps = event.at - start;
        // Events of this instant that happen with or without the post belong to the parent; events that the post causes at once belong to the child.
        let (mut known_if_not, mut known) = (at_ps + 1, at_ps);
        let key = match &event.what {
            PendingKind::Message { member, nth, event, follows, .. } => {
                let mut body = cursor.node.body();
                let happened = TimedMessageEvent { at: at_ps, member: *member, nth: *nth, event: *event };
                // Another thread may be adding the same just now.
                if at_ps >= body.known
                    && !body.events.iter().rev().take_while(|x| x.at >= at_ps).any(|x| *x == happened)
                {
                    debug_assert!(body.events.last().is_none_or(|x| x.at <= at_ps), "message events out of order");
                    full |= !memo.reserve(size_of::<TimedMessageEvent>(), run.ticket.by(start));
                    body.events.push(happened);
                }
                known_if_not = at_ps;
                follows.map(|bytes| follow_key(at_ps, *member, bytes))
            }
            PendingKind::Post { member, bytes } => Some(post_key(at_ps, *member, bytes)),
            PendingKind::Join(form) => {
                known = at_ps + 1;
                Some(edge(b'J', at_ps, CanonicalKey(form.clone())))
            }
        };
        cursor.recent.push(event);
        if let Some(key) = key {
            let child = memo.child(&cursor.node, key, known, run.ticket.by(start));
            // This comes only now, because others rely on what is known only after the child exists.
            let mut body = cursor.node.body();
            body.known = body.known.max(known_if_not);
            drop(body);
            match child {
                Some((child, _)) => {
                    cursor.node = child;
                    cursor.claim = run.ticket.adopt(&cursor.node);
                }
                None => full = true,
            }
        }
        if full {
            break;
        }
    }
    if full {
        partition.turn_away();
        return;
    }
    // Message events of an instant come before posts of the same instant.
    let known_by = |e: &PendingEvent| if matches!(e.what, PendingKind::Message { .. }) { e.at } else { e.at + 1 };
    let known = cursor.pending.first().map_or(known, |e| known.min(known_by(e)));
    let mut body = cursor.node.body();
    body.known = body.known.max(known.saturating_sub(start));
}

/// Records a choice at a sample of `p` at `at_ps`: the waiting bytes decided about `pieces`. What follows is known for this decision only.
pub(crate) fn record_choice(run: &mut FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64, pieces: Vec<Vec<NeededBytes>>) {
    let partition = &mut run.partitions[p];
    let (Some(cursor), Some(memo)) = (&mut partition.cursor, &run.memo) else { return };
    if !cursor.pending.is_empty() {
        partition.turn_away();
        return;
    }
    let choice = SkipChoice { at: at_ps - partition.start, pieces };
    let key = choice.key(|m| partition.rows.members[m as usize].waiting(t));
    let recorder = run.ticket.by(partition.start);
    let Some((child, _)) = memo.child(&cursor.node, key, choice.at, recorder) else {
        partition.turn_away();
        return;
    };
    let mut body = cursor.node.body();
    body.known = body.known.max(choice.at);
    if body.choice.is_none() && memo.reserve(choice.bytes(), recorder) {
        body.choice = Some(Arc::new(choice));
    }
    drop(body);
    cursor.at(child);
    update_claim(run, p);
}

/// Notes that something random happened in `p`: what comes after it is not recorded.
pub(crate) fn mark_unpredictable(run: &mut FoldRun, t: &Tables, p: PartitionIdx) {
    if run.partitions[p].cursor.is_some() {
        because(run, t, p, FoldCause::Random);
    }
    if let Some(cursor) = run.partitions[p].cursor.take() {
        cursor.node.unpredictable.store(true, Ordering::Relaxed);
    }
    run.partitions[p].turned_away = false;
}

/// Whether `event` comes before a post by NIC `nic` at `at_ps`.
fn is_before(event: &PendingEvent, at_ps: u64, nic: NicIdx) -> bool {
    event.at < at_ps || (event.at == at_ps && event.turn() <= nic.0.saturating_add(1))
}
