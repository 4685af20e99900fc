//! A partition whose like has been simulated: its messages arrive and end as the memo says, its rows stand still until it is at rest.

use std::sync::Arc;

use super::Stop;
use super::memo::Tidings;
use super::part::Member;
use super::record::{follow_key, post_key, waits_its_turn};
use super::run::Run;
use crate::columns::{NEVER, NONE, Tables, qp, task as bits};
use crate::engine::cpu::key::{Key, NO_EVENT};
use crate::engine::cpu::{nic, task};

impl Run {
    /// One instant of partition `p`.
    pub(super) fn replay_turn(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        self.parts[p as usize].next = NEVER;
        let mut p = p;
        'turn: loop {
            self.tell(t, p, at)?;
            if !self.parts[p as usize].replay {
                break;
            }
            if let Some(leaf) = self.rested(p, at) {
                t.exps[0].now = t.exps[0].now.max(at);
                self.rest(t, p, &leaf);
                return Ok(());
            }
            let starts = self.parts[p as usize].nics.iter().any(|&n| t.nics[n as usize].next_start <= at);
            if self.parts[p as usize].nap.is_some() {
                if starts {
                    self.wake(t, p, at)?;
                    continue;
                }
            } else if starts || self.lacks(p, at)? {
                self.go_live(t, p, at)?;
                break;
            } else if self.has_more(p, at) {
                // Another thread told it just now.
                continue;
            }
            let mut due: Vec<u32> =
                self.parts[p as usize].nics.iter().copied().filter(|&n| t.nics[n as usize].next_task <= at).collect();
            due.sort_unstable();
            for n in due {
                while t.nics[n as usize].next_task <= at && self.parts[p as usize].replay {
                    if self.parts[p as usize].nap.is_some() && self.stirs(t, p, n, at) {
                        continue;
                    }
                    let i = t.nics[n as usize].task_head as usize;
                    let f = t.tasks[i].flow;
                    if t.tasks[i].flags & bits::MESSAGE == 0 {
                        let key = task::key(t, i as u32);
                        task::due(t, n, &key);
                        continue;
                    }
                    let m = self.member[f as usize];
                    if m == NONE || !self.parts[p as usize].members[m as usize].routed {
                        p = self.join(t, n, f, at)?;
                        continue;
                    }
                    if self.parts[p as usize].nap.is_some() {
                        self.wake(t, p, at)?;
                        // It may be looked up from here: then it hears first what is told at this instant.
                        nic::set_clock(t, n);
                        self.collect(t, n);
                        continue 'turn;
                    }
                    self.post_unseen(t, p, n, m, at)?;
                }
                nic::set_clock(t, n);
                self.collect(t, n);
            }
            break;
        }
        self.collect_all(t, p);
        t.exps[0].now = t.exps[0].now.max(at);
        let next = if self.parts[p as usize].replay { self.next_told(t, p) } else { self.ahead(t, p) };
        self.call_part(p, next);
        Ok(())
    }

    /// The first task under way of NIC `n`, a message on member `m`, is due: what it posts leads on in the memo, or the partition goes live.
    fn post_unseen(&mut self, t: &mut Tables, p: u32, n: u32, m: u32, at: u64) -> Result<(), Stop> {
        let member = &mut self.parts[p as usize].members[m as usize];
        let before = member.posted.len();
        task::due_unseen(t, n, at, &mut member.posted);
        let mut sizes: Vec<u64> = member.posted[before..].iter().map(|&(i, _)| t.tasks[i as usize].bytes).collect();
        let waits = waits_its_turn(t);
        if sizes.is_empty() || (waits && member.given != member.sent) {
            return Ok(());
        }
        if waits {
            sizes.truncate(1);
        }
        member.given += sizes.len();
        self.disturb(t, p, at);
        let rel = at - self.parts[p as usize].start;
        self.follow(t, p, post_key(rel, m, &sizes), at, at)
    }

    /// Takes the edge `key` of `p`'s node; where it leads nobody has been, all before `known` is known and the partition goes live.
    pub(super) fn follow(&mut self, t: &mut Tables, p: u32, key: Vec<u8>, at: u64, known: u64) -> Result<(), Stop> {
        let part = &mut self.parts[p as usize];
        let (Some(script), Some(memo)) = (&mut part.script, &self.memo) else { return self.forget(t, p, at) };
        let Some((child, was_there)) = memo.child(&script.node, key, known - part.start, self.ticket.by(part.start))
        else {
            return self.forget(t, p, at);
        };
        script.at(child);
        if was_there { self.tell(t, p, at) } else { self.go_live(t, p, at) }
    }

    /// Tells the tasks of `p` all that has happened by `at`. Where a message follows that never followed before, the partition goes live.
    pub(super) fn tell(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        while self.parts[p as usize].replay {
            if self.parts[p as usize].nap.is_some() {
                t.noted.clear();
                return self.doze(t, p, at);
            }
            let part = &mut self.parts[p as usize];
            let Some(script) = &mut part.script else { return Ok(()) };
            let now = at - part.start;
            let body = script.node.body();
            let until = body.cut.as_ref().map_or(NEVER, |cut| cut.at);
            let Some(&told) = body.told.get(script.cursor).filter(|x| x.at <= now && x.at < until) else {
                let cut = body.cut.as_ref().filter(|cut| cut.at <= now).map(Arc::clone);
                drop(body);
                t.noted.clear();
                let (Some(cut), Some(memo)) = (cut, &self.memo) else { break };
                // Where it leads may be unknown here: then there is no cut, and perhaps more to tell.
                if let Some(cut) = memo.reach(&script.node, cut) {
                    self.pass(t, p, &cut)?;
                }
                continue;
            };
            drop(body);
            script.cursor += 1;
            let when = part.start + told.at;
            let member: &mut Member = &mut part.members[told.member as usize];
            let key = Key { t: when, ..NO_EVENT };
            let i = member.posted[told.nth as usize].0;
            // Where somebody joins at an instant, what is told then may be told by who was alone and by both.
            let heard = [member.sent, member.got, member.done][told.tidings as usize];
            if heard > told.nth as usize {
                continue;
            }
            match told.tidings {
                Tidings::Sent => {
                    member.sent = told.nth as usize + 1;
                    if let Some(&(next, _)) = member.posted.get(member.given) {
                        member.given += 1;
                        let key = follow_key(told.at, told.member, t.tasks[next as usize].bytes);
                        t.noted.clear();
                        self.follow(t, p, key, when, when)?;
                    }
                }
                Tidings::Got => {
                    member.got = told.nth as usize + 1;
                    let n = t.flow_rx[member.flow as usize].nic;
                    task::delivered(t, n, i, &key);
                    nic::set_clock(t, n);
                }
                Tidings::Done => {
                    member.done = told.nth as usize + 1;
                    let (owner, follow) = (t.tasks[i as usize].owner, t.tasks[i as usize].follow);
                    task::acknowledged(t, owner, i, follow, &key);
                    nic::set_clock(t, owner);
                }
            }
        }
        t.noted.clear();
        Ok(())
    }

    /// When a partition that is looked up goes on.
    pub(super) fn next_told(&self, t: &Tables, p: u32) -> u64 {
        let part = &self.parts[p as usize];
        let tasks = part
            .nics
            .iter()
            .map(|&n| t.nics[n as usize].next_task.min(t.nics[n as usize].next_start))
            .min()
            .unwrap_or(NEVER);
        if part.nap.is_some() {
            return tasks.min(self.nap_ends(p));
        }
        let Some(script) = &part.script else { return tasks };
        let body = script.node.body();
        let told = body.told.get(script.cursor).map_or(NEVER, |x| x.at);
        let end = match (&body.cut, &body.end) {
            (Some(cut), _) => cut.at,
            (None, Some(leaf)) => leaf.at,
            (None, None) => body.known,
        };
        tasks.min(part.start.saturating_add(told.min(end)))
    }

    /// Looked-up partition `p` goes on to `at`, at which somebody joins it, ahead of its turn. Its own tasks that are due before go first: it goes live for them.
    pub(super) fn catch_up_with(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        while self.parts[p as usize].replay {
            if self.parts[p as usize].nap.is_some() {
                return self.rouse(t, p, at);
            }
            let next = self.next_told(t, p).min(at);
            let tasks = self.parts[p as usize]
                .nics
                .iter()
                .map(|&n| t.nics[n as usize].next_task.min(t.nics[n as usize].next_start))
                .min()
                .unwrap_or(NEVER);
            if tasks < at && tasks <= next {
                return self.go_live(t, p, tasks);
            }
            self.tell(t, p, next)?;
            self.collect_all(t, p);
            if !self.parts[p as usize].replay || (next == at && !self.turns_over(p, at)) {
                return Ok(());
            }
            if let Some(leaf) = self.rested(p, next) {
                self.rest(t, p, &leaf);
                return Ok(());
            }
            if self.lacks(p, next)? {
                return self.go_live(t, p, next);
            }
        }
        Ok(())
    }

    /// The signals that NICs of `p` gave reach their gates.
    pub(super) fn collect_all(&mut self, t: &mut Tables, p: u32) {
        for k in 0..self.parts[p as usize].nics.len() {
            let n = self.parts[p as usize].nics[k];
            if t.nics[n as usize].signals != NONE {
                self.collect(t, n);
            }
        }
    }

    /// Whether looked-up partition `p` is cut or comes to rest by `at`, or nobody knows: that goes before whoever joins at `at`. If somebody did then, it was not so.
    pub(super) fn turns_over(&self, p: u32, at: u64) -> bool {
        let part = &self.parts[p as usize];
        let Some(script) = &part.script else { return part.nap.is_none() };
        let body = script.node.body();
        let over = match (&body.cut, &body.end) {
            (Some(cut), _) => cut.at,
            (None, Some(leaf)) => leaf.at,
            (None, None) => body.known,
        };
        let now = at - part.start;
        over <= now
            && (body.cut.is_some()
                || body.end.is_some()
                || (now > 0 && ![b'J', b'M'].iter().any(|&tag| body.has_edge(tag, now))))
    }

    /// Whether the memo does not say what happens to `p` at `at`. Who sleeps need not be told.
    pub(super) fn ignorant(&self, p: u32, at: u64) -> bool {
        let part = &self.parts[p as usize];
        let Some(script) = &part.script else { return part.nap.is_none() };
        let body = script.node.body();
        body.end.is_none() && body.cut.is_none() && part.start.saturating_add(body.known) <= at
    }

    /// Whether the memo says more of `p` by `at` than was told.
    pub(super) fn has_more(&self, p: u32, at: u64) -> bool {
        let part = &self.parts[p as usize];
        let Some(script) = &part.script else { return false };
        let body = script.node.body();
        let told = body.told.get(script.cursor).map_or(NEVER, |x| x.at);
        told.min(body.cut.as_ref().map_or(NEVER, |cut| cut.at)) <= at - part.start
    }

    /// The rows of `p` go back to what they were when its episode began, or at the last cut; they are simulated up to `until` with what was posted, and go on from there.
    pub(super) fn go_live(&mut self, t: &mut Tables, p: u32, until: u64) -> Result<(), Stop> {
        if self.parts[p as usize].nap.is_some() {
            self.wake(t, p, until)?;
            if !self.parts[p as usize].replay {
                return Ok(());
            }
        }
        self.stats.misses += 1;
        self.ticket.goes_alone();
        let may_wait = std::mem::take(&mut self.ticket.may_wait);
        self.restore(t, p)?;
        let nics = self.parts[p as usize].nics.clone();
        let kept: Vec<(u32, u64)> =
            nics.iter().map(|&n| (t.nics[n as usize].task_head, t.nics[n as usize].next_task)).collect();
        for &n in &nics {
            (t.nics[n as usize].task_head, t.nics[n as usize].next_task) = (NONE, NEVER);
        }
        let mut posts: Vec<u32> = Vec::new();
        for member in &mut self.parts[p as usize].members {
            if member.routed {
                t.flow_tx[member.flow as usize].flags &= !qp::HELD;
            }
            if let Some(&(i, _)) = member.posted.get(member.seen) {
                t.flow_tx[member.flow as usize].msg_post = i;
            }
            for &(i, _) in member.posted[member.seen..].iter().filter(|m| m.1) {
                t.tasks[i as usize].flags &= !bits::READY;
                posts.push(i);
            }
        }
        // Latest first, so that each goes to the head of its NIC's list.
        posts.sort_by_key(|&i| std::cmp::Reverse((t.tasks[i as usize].at, t.tasks[i as usize].root, i)));
        for i in posts {
            task::under_way(t, t.tasks[i as usize].owner, i);
        }
        for &n in &nics {
            nic::set_clock(t, n);
        }
        self.parts[p as usize].replay = false;
        self.hold(p);
        self.parts[p as usize].covered = until;
        self.parts[p as usize].reached = until;
        self.parts[p as usize].watch.reset(0);
        self.arm(t, p);
        loop {
            let from = self.parts[p as usize].look(t).next;
            let look = self.parts[p as usize].watch.next();
            if look <= from && look < until {
                self.look_again(t, p);
                continue;
            }
            if from >= until {
                break;
            }
            let end = self.parts[p as usize].mark(from + 1, self.step).min(until).min(look);
            self.window(t, p, from, end)?;
            self.drain(t, p);
        }
        self.arm(t, p);
        for (&n, kept) in nics.iter().zip(kept) {
            let mut left = t.nics[n as usize].task_head;
            (t.nics[n as usize].task_head, t.nics[n as usize].next_task) = kept;
            while left != NONE {
                let next = t.tasks[left as usize].next;
                task::under_way(t, n, left);
                left = next;
            }
            nic::set_clock(t, n);
        }
        // Whoever follows need not go live as well: this one goes first.
        let known = self.ahead(t, p).min(self.parts[p as usize].watch.next());
        self.flush_covered(p, known);
        self.ticket.may_wait = may_wait;
        Ok(())
    }
}
