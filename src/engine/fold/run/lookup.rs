//! A partition whose like has been simulated: its messages arrive and end as the memo says, its rows stand still until it is at rest.

use std::sync::Arc;

use crate::columns::{NEVER, NONE, Tables, qp, task as bits};
use crate::engine::cpu::key::{EventKey, NO_EVENT};
use crate::engine::cpu::{nic, task};
use crate::engine::fold::Stop;
use crate::engine::fold::memo::table::MessageEvent;
use crate::engine::fold::run::partition::Member;
use crate::engine::fold::run::recording::{follow_key, post_key, waits_its_turn};
use crate::engine::fold::run::turns::Run;

impl Run {
    /// One instant of partition `p`.
    pub(in crate::engine::fold) fn lookup_turn(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        self.partitions[p as usize].next = NEVER;
        let mut p = p;
        'turn: loop {
            self.report_events(t, p, at)?;
            if !self.partitions[p as usize].looked_up {
                break;
            }
            if let Some(final_state) = self.final_state_by(p, at) {
                t.exps[0].now = t.exps[0].now.max(at);
                self.retire_looked_up(t, p, &final_state);
                return Ok(());
            }
            let starts = self.partitions[p as usize].nics.iter().any(|&n| t.nics[n as usize].next_start <= at);
            if self.partitions[p as usize].skip.is_some() {
                if starts {
                    self.end_skip(t, p, at)?;
                    continue;
                }
            } else if starts || self.must_simulate(p, at)? {
                self.start_simulating(t, p, at)?;
                break;
            } else if self.has_more(p, at) {
                // Another thread told it just now.
                continue;
            }
            let mut due: Vec<u32> = self.partitions[p as usize]
                .nics
                .iter()
                .copied()
                .filter(|&n| t.nics[n as usize].next_task <= at)
                .collect();
            due.sort_unstable();
            for n in due {
                while t.nics[n as usize].next_task <= at && self.partitions[p as usize].looked_up {
                    if self.partitions[p as usize].skip.is_some() && self.post_while_skipped(t, p, n, at) {
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
                    if m == NONE || !self.partitions[p as usize].members[m as usize].routed {
                        p = self.join(t, n, f, at)?;
                        continue;
                    }
                    if self.partitions[p as usize].skip.is_some() {
                        self.end_skip(t, p, at)?;
                        // It may be looked up from here: then it hears first what is told at this instant.
                        nic::set_clock(t, n);
                        self.collect(t, n);
                        continue 'turn;
                    }
                    self.record_post_of_looked_up(t, p, n, m, at)?;
                }
                nic::set_clock(t, n);
                self.collect(t, n);
            }
            break;
        }
        self.collect_all(t, p);
        t.exps[0].now = t.exps[0].now.max(at);
        let next =
            if self.partitions[p as usize].looked_up { self.next_reported(t, p) } else { self.next_event_at(t, p) };
        self.schedule_partition(p, next);
        Ok(())
    }

    /// The first task under way of NIC `n`, a message on member `m`, is due: what it posts leads on in the memo, or the partition goes live.
    fn record_post_of_looked_up(&mut self, t: &mut Tables, p: u32, n: u32, m: u32, at: u64) -> Result<(), Stop> {
        let member = &mut self.partitions[p as usize].members[m as usize];
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
        self.reset_detector(t, p, at);
        let rel = at - self.partitions[p as usize].start;
        self.follow(t, p, post_key(rel, m, &sizes), at, at)
    }

    /// Takes the edge `key` of `p`'s node; where it leads nobody has been, all before `known` is known and the partition goes live.
    pub(in crate::engine::fold) fn follow(
        &mut self,
        t: &mut Tables,
        p: u32,
        key: Vec<u8>,
        at: u64,
        known: u64,
    ) -> Result<(), Stop> {
        let partition = &mut self.partitions[p as usize];
        let (Some(cursor), Some(memo)) = (&mut partition.cursor, &self.memo) else {
            return self.stop_remembering(t, p, at);
        };
        let Some((child, was_there)) =
            memo.child(&cursor.node, key, known - partition.start, self.ticket.by(partition.start))
        else {
            return self.stop_remembering(t, p, at);
        };
        cursor.at(child);
        if was_there { self.report_events(t, p, at) } else { self.start_simulating(t, p, at) }
    }

    /// Tells the tasks of `p` all that has happened by `at`. Where a message follows that never followed before, the partition goes live.
    pub(in crate::engine::fold) fn report_events(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        while self.partitions[p as usize].looked_up {
            if self.partitions[p as usize].skip.is_some() {
                t.fold_trace.clear();
                return self.report_skipped(t, p, at);
            }
            let partition = &mut self.partitions[p as usize];
            let Some(cursor) = &mut partition.cursor else { return Ok(()) };
            let now = at - partition.start;
            let body = cursor.node.body();
            let until = body.checkpoint.as_ref().map_or(NEVER, |checkpoint| checkpoint.at);
            let Some(&event) = body.events.get(cursor.next_event).filter(|x| x.at <= now && x.at < until) else {
                let checkpoint = body.checkpoint.as_ref().filter(|checkpoint| checkpoint.at <= now).map(Arc::clone);
                drop(body);
                t.fold_trace.clear();
                let (Some(checkpoint), Some(memo)) = (checkpoint, &self.memo) else { break };
                // Where it leads may be unknown here: then there is no cut, and perhaps more to tell.
                if let Some(checkpoint) = memo.reach(&cursor.node, checkpoint) {
                    self.pass_checkpoint(t, p, &checkpoint)?;
                }
                continue;
            };
            drop(body);
            cursor.next_event += 1;
            let when = partition.start + event.at;
            let member: &mut Member = &mut partition.members[event.member as usize];
            let key = EventKey { t: when, ..NO_EVENT };
            let i = member.posted[event.nth as usize].0;
            // Where somebody joins at an instant, what is told then may be told by who was alone and by both.
            let reported = [member.sent, member.delivered, member.acked][event.event as usize];
            if reported > event.nth as usize {
                continue;
            }
            match event.event {
                MessageEvent::Sent => {
                    member.sent = event.nth as usize + 1;
                    if let Some(&(next, _)) = member.posted.get(member.given) {
                        member.given += 1;
                        let key = follow_key(event.at, event.member, t.tasks[next as usize].bytes);
                        t.fold_trace.clear();
                        self.follow(t, p, key, when, when)?;
                    }
                }
                MessageEvent::Delivered => {
                    member.delivered = event.nth as usize + 1;
                    let n = t.flow_rx[member.flow as usize].nic;
                    task::delivered(t, n, i, &key);
                    nic::set_clock(t, n);
                }
                MessageEvent::Acked => {
                    member.acked = event.nth as usize + 1;
                    let (owner, follow) = (t.tasks[i as usize].owner, t.tasks[i as usize].follow);
                    task::acknowledged(t, owner, i, follow, &key);
                    nic::set_clock(t, owner);
                }
            }
        }
        t.fold_trace.clear();
        Ok(())
    }

    /// When a partition that is looked up goes on.
    pub(in crate::engine::fold) fn next_reported(&self, t: &Tables, p: u32) -> u64 {
        let partition = &self.partitions[p as usize];
        let tasks = partition
            .nics
            .iter()
            .map(|&n| t.nics[n as usize].next_task.min(t.nics[n as usize].next_start))
            .min()
            .unwrap_or(NEVER);
        if partition.skip.is_some() {
            return tasks.min(self.next_of_skip(p));
        }
        let Some(cursor) = &partition.cursor else { return tasks };
        let body = cursor.node.body();
        let event = body.events.get(cursor.next_event).map_or(NEVER, |x| x.at);
        let end = match (&body.checkpoint, &body.end) {
            (Some(checkpoint), _) => checkpoint.at,
            (None, Some(final_state)) => final_state.at,
            (None, None) => body.known,
        };
        tasks.min(partition.start.saturating_add(event.min(end)))
    }

    /// Looked-up partition `p` goes on to `at`, at which somebody joins it, ahead of its turn. Its own tasks that are due before go first: it goes live for them.
    pub(in crate::engine::fold) fn catch_up_with(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        while self.partitions[p as usize].looked_up {
            if self.partitions[p as usize].skip.is_some() {
                return self.skip_up_to(t, p, at);
            }
            let next = self.next_reported(t, p).min(at);
            let tasks = self.partitions[p as usize]
                .nics
                .iter()
                .map(|&n| t.nics[n as usize].next_task.min(t.nics[n as usize].next_start))
                .min()
                .unwrap_or(NEVER);
            if tasks < at && tasks <= next {
                return self.start_simulating(t, p, tasks);
            }
            self.report_events(t, p, next)?;
            self.collect_all(t, p);
            if !self.partitions[p as usize].looked_up || (next == at && !self.ends_by(p, at)) {
                return Ok(());
            }
            if let Some(final_state) = self.final_state_by(p, next) {
                self.retire_looked_up(t, p, &final_state);
                return Ok(());
            }
            if self.must_simulate(p, next)? {
                return self.start_simulating(t, p, next);
            }
        }
        Ok(())
    }

    /// The signals that NICs of `p` gave reach their gates.
    pub(in crate::engine::fold) fn collect_all(&mut self, t: &mut Tables, p: u32) {
        for k in 0..self.partitions[p as usize].nics.len() {
            let n = self.partitions[p as usize].nics[k];
            if t.nics[n as usize].signals != NONE {
                self.collect(t, n);
            }
        }
    }

    /// Whether looked-up partition `p` is cut or comes to rest by `at`, or nobody knows: that goes before whoever joins at `at`. If somebody did then, it was not so.
    pub(in crate::engine::fold) fn ends_by(&self, p: u32, at: u64) -> bool {
        let partition = &self.partitions[p as usize];
        let Some(cursor) = &partition.cursor else { return partition.skip.is_none() };
        let body = cursor.node.body();
        let over = match (&body.checkpoint, &body.end) {
            (Some(checkpoint), _) => checkpoint.at,
            (None, Some(final_state)) => final_state.at,
            (None, None) => body.known,
        };
        let now = at - partition.start;
        over <= now
            && (body.checkpoint.is_some()
                || body.end.is_some()
                || (now > 0 && ![b'J', b'M'].iter().any(|&tag| body.has_edge(tag, now))))
    }

    /// Whether the memo does not say what happens to `p` at `at`. Who sleeps need not be told.
    pub(in crate::engine::fold) fn is_unknown_at(&self, p: u32, at: u64) -> bool {
        let partition = &self.partitions[p as usize];
        let Some(cursor) = &partition.cursor else { return partition.skip.is_none() };
        let body = cursor.node.body();
        body.end.is_none() && body.checkpoint.is_none() && partition.start.saturating_add(body.known) <= at
    }

    /// Whether the memo says more of `p` by `at` than was told.
    pub(in crate::engine::fold) fn has_more(&self, p: u32, at: u64) -> bool {
        let partition = &self.partitions[p as usize];
        let Some(cursor) = &partition.cursor else { return false };
        let body = cursor.node.body();
        let event = body.events.get(cursor.next_event).map_or(NEVER, |x| x.at);
        event.min(body.checkpoint.as_ref().map_or(NEVER, |checkpoint| checkpoint.at)) <= at - partition.start
    }

    /// The rows of `p` go back to what they were when its episode began, or at the last cut; they are simulated up to `until` with what was posted, and go on from there.
    pub(in crate::engine::fold) fn start_simulating(&mut self, t: &mut Tables, p: u32, until: u64) -> Result<(), Stop> {
        if self.partitions[p as usize].skip.is_some() {
            self.end_skip(t, p, until)?;
            if !self.partitions[p as usize].looked_up {
                return Ok(());
            }
        }
        self.stats.misses += 1;
        self.ticket.goes_alone();
        let may_wait = std::mem::take(&mut self.ticket.may_wait);
        self.restore(t, p)?;
        let nics = self.partitions[p as usize].nics.clone();
        let kept: Vec<(u32, u64)> =
            nics.iter().map(|&n| (t.nics[n as usize].task_head, t.nics[n as usize].next_task)).collect();
        for &n in &nics {
            (t.nics[n as usize].task_head, t.nics[n as usize].next_task) = (NONE, NEVER);
        }
        let mut posts: Vec<u32> = Vec::new();
        for member in &mut self.partitions[p as usize].members {
            if member.routed {
                t.flow_tx[member.flow as usize].flags &= !qp::HELD;
            }
            if let Some(&(i, _)) = member.posted.get(member.posts_in_rows) {
                t.flow_tx[member.flow as usize].msg_post = i;
            }
            for &(i, _) in member.posted[member.posts_in_rows..].iter().filter(|m| m.1) {
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
        self.partitions[p as usize].looked_up = false;
        self.update_claim(p);
        self.partitions[p as usize].covered = until;
        self.partitions[p as usize].reached = until;
        self.partitions[p as usize].detector.reset(0);
        self.schedule_sampling(t, p);
        loop {
            let from = self.partitions[p as usize].next_events(t).at;
            let sampling_at = self.partitions[p as usize].detector.next();
            if sampling_at <= from && sampling_at < until {
                self.take_sample(t, p);
                continue;
            }
            if from >= until {
                break;
            }
            let end = self.partitions[p as usize].mark(from + 1, self.step).min(until).min(sampling_at);
            self.window(t, p, from, end)?;
            self.drain(t, p);
        }
        self.schedule_sampling(t, p);
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
        let known = self.next_event_at(t, p).min(self.partitions[p as usize].detector.next());
        self.flush_covered(p, known);
        self.ticket.may_wait = may_wait;
        Ok(())
    }
}
