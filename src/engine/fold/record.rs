//! What happens in a partition goes into the memo, in the order of time.

use std::sync::atomic::Ordering;

use super::Stop;
use super::canon::Form;
use super::join::edge;
use super::memo::Told;
use super::part::{Event, What};
use super::run::Run;
use crate::columns::{NONE, Noted, Tables};

impl Run {
    /// Takes note of what the systems noted about messages of `p`.
    pub(super) fn drain(&mut self, t: &mut Tables, p: u32) {
        for noted in std::mem::take(&mut t.noted) {
            let (Noted::Posted { task: i, .. } | Noted::Got(i) | Noted::Done(i)) = noted;
            let row = &t.tasks[i as usize];
            let m = self.member[row.flow as usize];
            if m == NONE {
                continue;
            }
            let part = &mut self.parts[p as usize];
            let member = &mut part.members[m as usize];
            let event = match noted {
                Noted::Posted { first, .. } => {
                    member.seen += 1;
                    if member.seen <= member.posted.len() {
                        continue;
                    }
                    member.posted.push((i, first));
                    let Some(script) = &mut part.script else { continue };
                    match script.pending.last_mut() {
                        Some(Event { what: What::Post { member, bytes }, .. }) if !first && *member == m => {
                            bytes.push(row.bytes);
                            continue;
                        }
                        _ => Event { at: row.at, nic: row.owner, what: What::Post { member: m, bytes: vec![row.bytes] } },
                    }
                }
                Noted::Got(_) => {
                    member.got += 1;
                    let nic = t.flow_rx[row.flow as usize].nic;
                    Event { at: row.got, nic, what: What::Told { member: m, nth: member.got - 1, got: true } }
                }
                Noted::Done(_) => {
                    member.done += 1;
                    Event { at: row.done, nic: row.owner, what: What::Told { member: m, nth: member.done - 1, got: false } }
                }
            };
            if let Some(script) = &mut part.script {
                script.pending.push(event);
            }
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
        let mut full = false;
        for event in script.pending.drain(..n) {
            let at = event.at - start;
            let key = match &event.what {
                What::Told { member, nth, got } => {
                    let mut body = script.node.body();
                    let told = Told { at, member: *member, nth: *nth, got: *got };
                    // Another thread may be adding the same just now.
                    if at >= body.known && !body.told.iter().rev().take_while(|x| x.at >= at).any(|x| *x == told) {
                        debug_assert!(body.told.last().is_none_or(|x| x.at <= at), "tidings out of order");
                        full |= !memo.room(size_of::<Told>());
                        body.told.push(told);
                    }
                    None
                }
                What::Post { member, bytes } => Some(post_key(at, *member, bytes)),
                What::Join(form) => Some(edge(b'J', at, Form(form.clone()))),
            };
            script.recent.push(event);
            if let Some(key) = key {
                let mut body = script.node.body();
                body.known = body.known.max(at + 1);
                drop(body);
                match memo.child(&script.node, key, at + 1) {
                    Some((child, _)) => script.node = child,
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
        let known = script.pending.first().map_or(known, |e| known.min(e.at));
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

    /// Something random happened in `p`: it is not remembered, nor is its like.
    pub(super) fn wild(&mut self, p: u32) {
        if let Some(script) = self.parts[p as usize].script.take() {
            script.root.wild.store(true, Ordering::Relaxed);
        }
    }
}

/// The key of messages posted at once.
pub fn post_key(at: u64, member: u32, bytes: &[u64]) -> Vec<u8> {
    let mut form = Form::default();
    form.u32(member);
    for &b in bytes {
        form.u64(b);
    }
    edge(b'P', at, form)
}

/// Whether `event` is before a post by NIC `nic` at `at`.
fn is_before(event: &Event, at: u64, nic: u32) -> bool {
    match event.what {
        What::Told { .. } => event.at <= at,
        _ => (event.at, event.nic) <= (at, nic),
    }
}
