//! What happens in a partition goes into the memo, in the order of time.

use std::sync::atomic::Ordering;

use super::Stop;
use super::canon::Form;
use super::join::edge;
use super::memo::{Tidings, Told};
use super::part::{Event, What};
use super::run::Run;
use crate::columns::{NONE, Noted, Tables, mode};

/// Whether a post behind unsent bytes changes nothing until its turn comes. Not where it renews the queue pair. (Where it would move the timers of others, nothing is remembered.)
pub fn waits_its_turn(t: &Tables) -> bool {
    t.exps[0].modes & mode::FRESH_QP == 0
}

impl Run {
    /// Takes note of what the systems noted about messages of `p`.
    pub(super) fn drain(&mut self, t: &mut Tables, p: u32) {
        let waits = waits_its_turn(t);
        let mut noted = std::mem::take(&mut t.noted);
        for what in noted.drain(..) {
            let (Noted::Posted { task: i, .. }
            | Noted::Sent { task: i, .. }
            | Noted::Heard { task: i, .. }
            | Noted::Got(i)
            | Noted::Done(i)) = what;
            let m = self.member[t.tasks[i as usize].flow as usize];
            if m == NONE {
                continue;
            }
            match what {
                Noted::Posted { first, .. } => self.posted(t, p, m, i, first, waits),
                Noted::Sent { at, .. } if waits => self.sent(t, p, m, i, at),
                Noted::Sent { .. } | Noted::Heard { .. } => {}
                Noted::Got(_) => {
                    let row = &t.tasks[i as usize];
                    self.told(p, m, row.got, t.flow_rx[row.flow as usize].nic, Tidings::Got);
                }
                Noted::Done(_) => {
                    let row = &t.tasks[i as usize];
                    self.told(p, m, row.done, row.owner, Tidings::Done);
                }
            }
        }
        t.noted = noted;
    }

    /// Message `i` was posted on member `m`.
    fn posted(&mut self, t: &Tables, p: u32, m: u32, i: u32, first: bool, waits: bool) {
        let row = &t.tasks[i as usize];
        let part = &mut self.parts[p as usize];
        part.posted_at[self.nic_local[row.owner as usize] as usize] = row.at;
        let member = &mut part.members[m as usize];
        member.seen += 1;
        if member.seen <= member.posted.len() {
            return;
        }
        member.posted.push((i, first));
        if waits && member.given != member.sent {
            return;
        }
        member.given += 1;
        self.disturb(t, p, row.at);
        let Some(script) = &mut self.parts[p as usize].script else { return };
        match script.pending.last_mut() {
            Some(Event { what: What::Post { member, bytes }, .. }) if !first && *member == m => bytes.push(row.bytes),
            _ => script.pending.push(Event {
                at: row.at,
                nic: row.owner,
                what: What::Post { member: m, bytes: vec![row.bytes] },
            }),
        }
    }

    /// The last byte of message `i` of member `m` was sent at `at`; again, where a timeout has made it go back.
    fn sent(&mut self, t: &Tables, p: u32, m: u32, i: u32, at: u64) {
        let part = &mut self.parts[p as usize];
        let member = &mut part.members[m as usize];
        if member.posted.get(member.passed).is_none_or(|next| next.0 != i) {
            return;
        }
        member.passed += 1;
        if member.passed <= member.sent {
            return;
        }
        member.sent += 1;
        let nth = member.sent as u32 - 1;
        let follows = member.posted.get(member.given).map(|&(i, _)| t.tasks[i as usize].bytes);
        member.given += usize::from(follows.is_some());
        let nic = t.flow_tx[member.flow as usize].nic;
        let at_once = part.posted_at[self.nic_local[nic as usize] as usize] == at;
        if let Some(script) = &mut part.script {
            script.pending.push(Event {
                at,
                nic,
                what: What::Told { member: m, nth, tidings: Tidings::Sent, follows, at_once },
            });
        }
    }

    /// A message of member `m` arrived or ended at `at`.
    fn told(&mut self, p: u32, m: u32, at: u64, nic: u32, tidings: Tidings) {
        let part = &mut self.parts[p as usize];
        let member = &mut part.members[m as usize];
        let count = if tidings == Tidings::Got { &mut member.got } else { &mut member.done };
        *count += 1;
        let nth = *count as u32 - 1;
        if let Some(script) = &mut part.script {
            script.pending.push(Event {
                at,
                nic,
                what: What::Told { member: m, nth, tidings, follows: None, at_once: false },
            });
        }
    }

    /// Somebody is about to join `p` at `at`, by NIC `n`: what happened later goes behind it.
    pub(super) fn rewind(&mut self, p: u32, at: u64, n: u32) {
        let Some(script) = &mut self.parts[p as usize].script else { return };
        if script.recent.iter().any(|e| !is_before(e, at, n)) {
            script.rewind();
        }
    }

    /// What is pending as far as `p` is covered goes into the memo; nothing else happens before `known`.
    pub(super) fn flush_covered(&mut self, p: u32, known: u64) {
        let covered = self.parts[p as usize].covered;
        if covered > 0 {
            self.flush(p, (covered - 1, u32::MAX), known);
        }
    }

    /// What is pending until a post by NIC `until.1` at `until.0` goes into the memo; nothing else happens before `known` (0: says nothing).
    pub(super) fn flush(&mut self, p: u32, until: (u64, u32), known: u64) {
        let Some(memo) = self.memo.clone() else { return };
        let part = &mut self.parts[p as usize];
        let start = part.start;
        let Some(script) = &mut part.script else { return };
        script.pending.sort_by_key(Event::order);
        if script.pending.first().is_some_and(|first| script.recent.iter().any(|e| e.order() > first.order())) {
            script.rewind();
            script.pending.sort_by_key(Event::order);
        }
        let n = script.pending.iter().take_while(|e| is_before(e, until.0, until.1)).count();
        part.moved |= n > 0;
        let mut full = false;
        for event in script.pending.drain(..n) {
            let at = event.at - start;
            // What is told at this instant whether or not this comes is in the parent; what it causes at once is the child's.
            let (mut known_if_not, mut known) = (at + 1, at);
            let key = match &event.what {
                What::Told { member, nth, tidings, follows, .. } => {
                    let mut body = script.node.body();
                    let told = Told { at, member: *member, nth: *nth, tidings: *tidings };
                    // Another thread may be adding the same just now.
                    if at >= body.known && !body.told.iter().rev().take_while(|x| x.at >= at).any(|x| *x == told) {
                        debug_assert!(body.told.last().is_none_or(|x| x.at <= at), "tidings out of order");
                        full |= !memo.room(size_of::<Told>());
                        body.told.push(told);
                    }
                    known_if_not = at;
                    follows.map(|bytes| follow_key(at, *member, bytes))
                }
                What::Post { member, bytes } => Some(post_key(at, *member, bytes)),
                What::Join(form) => {
                    known = at + 1;
                    Some(edge(b'J', at, Form(form.clone())))
                }
            };
            script.recent.push(event);
            if let Some(key) = key {
                let child = memo.child(&script.node, key, known, self.ticket.by(start));
                // Only now: whoever follows takes what is known to be all that leads on.
                let mut body = script.node.body();
                body.known = body.known.max(known_if_not);
                drop(body);
                match child {
                    Some((child, _)) => {
                        script.node = child;
                        script.claim = self.ticket.adopt(&script.node);
                    }
                    None => full = true,
                }
            }
            if full {
                break;
            }
        }
        if full {
            part.script = None;
            return;
        }
        // What is told at an instant comes before what is posted then.
        let told_by = |e: &Event| if matches!(e.what, What::Told { .. }) { e.at } else { e.at + 1 };
        let known = script.pending.first().map_or(known, |e| known.min(told_by(e)));
        let mut body = script.node.body();
        body.known = body.known.max(known.saturating_sub(start));
    }

    /// `p` is neither looked up nor remembered any more.
    pub(super) fn forget(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        if self.parts[p as usize].replay {
            self.go_live(t, p, at)?;
        }
        self.parts[p as usize].script = None;
        Ok(())
    }

    /// Something random happened in `p`: what comes after it is not remembered.
    pub(super) fn wild(&mut self, p: u32) {
        if let Some(script) = self.parts[p as usize].script.take() {
            script.node.wild.store(true, Ordering::Relaxed);
        }
    }
}

/// The key of messages posted at once.
pub fn post_key(at: u64, member: u32, bytes: &[u64]) -> Vec<u8> {
    let mut form = Form(Vec::with_capacity(4 + 8 * bytes.len()));
    form.u32(member);
    for &b in bytes {
        form.u64(b);
    }
    edge(b'P', at, form)
}

/// The key of a message that follows one that was sent.
pub fn follow_key(at: u64, member: u32, bytes: u64) -> Vec<u8> {
    let mut form = Form(Vec::with_capacity(12));
    form.u32(member);
    form.u64(bytes);
    edge(b'F', at, form)
}

/// Whether `event` is before a post by NIC `nic` at `at`.
fn is_before(event: &Event, at: u64, nic: u32) -> bool {
    event.at < at || (event.at == at && event.turn() <= nic.saturating_add(1))
}
