//! What happens in a partition goes into the memo, in the order of time.

use std::sync::atomic::Ordering;

use crate::columns::{FoldTrace, NONE, Tables, mode};
use crate::engine::fold::Stop;
use crate::engine::fold::memo::table::{MessageEvent, TimedMessageEvent};
use crate::engine::fold::rows::canonical_key::CanonicalKey;
use crate::engine::fold::run::join::edge;
use crate::engine::fold::run::partition::{PendingEvent, PendingKind};
use crate::engine::fold::run::turns::Run;

/// Whether a post behind unsent bytes changes nothing until its turn comes. Not where it renews the queue pair. (Where it would move the timers of others, nothing is remembered.)
pub fn waits_its_turn(t: &Tables) -> bool {
    t.exps[0].modes & mode::FRESH_QP == 0
}

impl Run {
    /// Takes note of what the systems noted about messages of `p`.
    pub(in crate::engine::fold) fn drain(&mut self, t: &mut Tables, p: u32) {
        let waits = waits_its_turn(t);
        let mut noted = std::mem::take(&mut t.fold_trace);
        for what in noted.drain(..) {
            let (FoldTrace::Posted { task: i, .. }
            | FoldTrace::Sent { task: i, .. }
            | FoldTrace::DeliveredAgain { task: i, .. }
            | FoldTrace::Delivered(i)
            | FoldTrace::Acked(i)) = what;
            let m = self.member[t.tasks[i as usize].flow as usize];
            if m == NONE {
                continue;
            }
            match what {
                FoldTrace::Posted { first, .. } => self.record_posted(t, p, m, i, first, waits),
                FoldTrace::Sent { at, .. } if waits => self.record_sent(t, p, m, i, at),
                FoldTrace::Sent { .. } | FoldTrace::DeliveredAgain { .. } => {}
                FoldTrace::Delivered(_) => {
                    let row = &t.tasks[i as usize];
                    self.record_message_event(p, m, row.got, t.flow_rx[row.flow as usize].nic, MessageEvent::Delivered);
                }
                FoldTrace::Acked(_) => {
                    let row = &t.tasks[i as usize];
                    self.record_message_event(p, m, row.done, row.owner, MessageEvent::Acked);
                }
            }
        }
        t.fold_trace = noted;
    }

    /// Message `i` was posted on member `m`.
    fn record_posted(&mut self, t: &Tables, p: u32, m: u32, i: u32, first: bool, waits: bool) {
        let row = &t.tasks[i as usize];
        let partition = &mut self.partitions[p as usize];
        partition.last_post_at[self.nic_local[row.owner as usize] as usize] = row.at;
        let member = &mut partition.members[m as usize];
        member.posts_in_rows += 1;
        if member.posts_in_rows <= member.posted.len() {
            return;
        }
        member.posted.push((i, first));
        if waits && member.given != member.sent {
            return;
        }
        member.given += 1;
        self.reset_detector(t, p, row.at);
        let Some(cursor) = &mut self.partitions[p as usize].cursor else { return };
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

    /// The last byte of message `i` of member `m` was sent at `at`; again, where a timeout has made it go back.
    fn record_sent(&mut self, t: &Tables, p: u32, m: u32, i: u32, at: u64) {
        let partition = &mut self.partitions[p as usize];
        let member = &mut partition.members[m as usize];
        if member.posted.get(member.sent_in_rows).is_none_or(|next| next.0 != i) {
            return;
        }
        member.sent_in_rows += 1;
        if member.sent_in_rows <= member.sent {
            return;
        }
        member.sent += 1;
        let nth = member.sent as u32 - 1;
        let follows = member.posted.get(member.given).map(|&(i, _)| t.tasks[i as usize].bytes);
        member.given += usize::from(follows.is_some());
        let nic = t.flow_tx[member.flow as usize].nic;
        let at_once = partition.last_post_at[self.nic_local[nic as usize] as usize] == at;
        if let Some(cursor) = &mut partition.cursor {
            cursor.pending.push(PendingEvent {
                at,
                nic,
                what: PendingKind::Message { member: m, nth, event: MessageEvent::Sent, follows, at_once },
            });
        }
    }

    /// A message of member `m` arrived or ended at `at`.
    fn record_message_event(&mut self, p: u32, m: u32, at: u64, nic: u32, event: MessageEvent) {
        let partition = &mut self.partitions[p as usize];
        let member = &mut partition.members[m as usize];
        let count = if event == MessageEvent::Delivered { &mut member.delivered } else { &mut member.acked };
        *count += 1;
        let nth = *count as u32 - 1;
        if let Some(cursor) = &mut partition.cursor {
            cursor.pending.push(PendingEvent {
                at,
                nic,
                what: PendingKind::Message { member: m, nth, event, follows: None, at_once: false },
            });
        }
    }

    /// Somebody is about to join `p` at `at`, by NIC `n`: what happened later goes behind it.
    pub(in crate::engine::fold) fn rewind(&mut self, p: u32, at: u64, n: u32) {
        let Some(cursor) = &mut self.partitions[p as usize].cursor else { return };
        if cursor.recent.iter().any(|e| !is_before(e, at, n)) {
            cursor.rewind();
        }
    }

    /// What is pending as far as `p` is covered goes into the memo; nothing else happens before `known`.
    pub(in crate::engine::fold) fn flush_covered(&mut self, p: u32, known: u64) {
        let covered = self.partitions[p as usize].covered;
        if covered > 0 {
            self.flush(p, (covered - 1, u32::MAX), known);
        }
    }

    /// What is pending until a post by NIC `until.1` at `until.0` goes into the memo; nothing else happens before `known` (0: says nothing).
    pub(in crate::engine::fold) fn flush(&mut self, p: u32, until: (u64, u32), known: u64) {
        let Some(memo) = self.memo.clone() else { return };
        let partition = &mut self.partitions[p as usize];
        let start = partition.start;
        let Some(cursor) = &mut partition.cursor else { return };
        cursor.pending.sort_by_key(PendingEvent::order);
        if cursor.pending.first().is_some_and(|first| cursor.recent.iter().any(|e| e.order() > first.order())) {
            cursor.rewind();
            cursor.pending.sort_by_key(PendingEvent::order);
        }
        let n = cursor.pending.iter().take_while(|e| is_before(e, until.0, until.1)).count();
        partition.changed |= n > 0;
        let mut full = false;
        for event in cursor.pending.drain(..n) {
            let at = event.at - start;
            // What is told at this instant whether or not this comes is in the parent; what it causes at once is the child's.
            let (mut known_if_not, mut known) = (at + 1, at);
            let key = match &event.what {
                PendingKind::Message { member, nth, event, follows, .. } => {
                    let mut body = cursor.node.body();
                    let told = TimedMessageEvent { at, member: *member, nth: *nth, event: *event };
                    // Another thread may be adding the same just now.
                    if at >= body.known && !body.events.iter().rev().take_while(|x| x.at >= at).any(|x| *x == told) {
                        debug_assert!(body.events.last().is_none_or(|x| x.at <= at), "message events out of order");
                        full |= !memo.room(size_of::<TimedMessageEvent>());
                        body.events.push(told);
                    }
                    known_if_not = at;
                    follows.map(|bytes| follow_key(at, *member, bytes))
                }
                PendingKind::Post { member, bytes } => Some(post_key(at, *member, bytes)),
                PendingKind::Join(form) => {
                    known = at + 1;
                    Some(edge(b'J', at, CanonicalKey(form.clone())))
                }
            };
            cursor.recent.push(event);
            if let Some(key) = key {
                let child = memo.child(&cursor.node, key, known, self.ticket.by(start));
                // Only now: whoever follows takes what is known to be all that leads on.
                let mut body = cursor.node.body();
                body.known = body.known.max(known_if_not);
                drop(body);
                match child {
                    Some((child, _)) => {
                        cursor.node = child;
                        cursor.claim = self.ticket.adopt(&cursor.node);
                    }
                    None => full = true,
                }
            }
            if full {
                break;
            }
        }
        if full {
            partition.cursor = None;
            return;
        }
        // What is told at an instant comes before what is posted then.
        let known_by = |e: &PendingEvent| if matches!(e.what, PendingKind::Message { .. }) { e.at } else { e.at + 1 };
        let known = cursor.pending.first().map_or(known, |e| known.min(known_by(e)));
        let mut body = cursor.node.body();
        body.known = body.known.max(known.saturating_sub(start));
    }

    /// `p` is neither looked up nor remembered any more.
    pub(in crate::engine::fold) fn stop_remembering(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        if self.partitions[p as usize].looked_up {
            self.start_simulating(t, p, at)?;
        }
        self.partitions[p as usize].cursor = None;
        Ok(())
    }

    /// Something random happened in `p`: what comes after it is not remembered.
    pub(in crate::engine::fold) fn mark_unpredictable(&mut self, p: u32) {
        if let Some(cursor) = self.partitions[p as usize].cursor.take() {
            cursor.node.unpredictable.store(true, Ordering::Relaxed);
        }
    }
}

/// The key of messages posted at once.
pub fn post_key(at: u64, member: u32, bytes: &[u64]) -> Vec<u8> {
    let mut form = CanonicalKey(Vec::with_capacity(4 + 8 * bytes.len()));
    form.u32(member);
    for &b in bytes {
        form.u64(b);
    }
    edge(b'P', at, form)
}

/// The key of a message that follows one that was sent.
pub fn follow_key(at: u64, member: u32, bytes: u64) -> Vec<u8> {
    let mut form = CanonicalKey(Vec::with_capacity(12));
    form.u32(member);
    form.u64(bytes);
    edge(b'F', at, form)
}

/// Whether `event` is before a post by NIC `nic` at `at`.
fn is_before(event: &PendingEvent, at: u64, nic: u32) -> bool {
    event.at < at || (event.at == at && event.turn() <= nic.saturating_add(1))
}
