//! Partitions grow and merge.

use std::sync::Arc;

use super::Stop;
use super::canon::{Form, rank, timers_run};
use super::carry;
use super::claims::is_free;
use super::memo::Id;
use super::part::{Base, Event, Member, Part, PortBase, Script, Standing, What};
use super::run::Run;
use super::state::Counts;
use crate::columns::{NEVER, NONE, Tables, qp};

/// Room for the form of a queue pair that begins a partition, with its rows.
const FORM_BYTES: usize = 1024;

impl Run {
    /// Queue pair `f` of NIC `n` is about to send at `at`: what it crosses becomes part of one partition, whose number is returned.
    pub(super) fn join(&mut self, t: &mut Tables, n: u32, f: u32, at: u64) -> Result<u32, Stop> {
        let (nics, ports) = rows_of(t, f);
        self.hear(t, &nics, &ports, at)?;
        let mut touched: Vec<u32> = Vec::new();
        let places =
            nics.iter().map(|&n| self.nic_part[n as usize]).chain(ports.iter().map(|&p| self.port_part[p as usize]));
        for p in places {
            if p != NONE && !touched.contains(&p) {
                touched.push(p);
            }
        }
        touched.sort_by_key(|&p| (self.parts[p as usize].start, self.parts[p as usize].first));
        let born = touched.is_empty();
        let p = touched.first().copied().unwrap_or_else(|| self.new_part(at));
        // In its own turn a partition's events are put in order when it is over.
        let inside = touched.len() == 1 && self.turning == p;
        for &other in touched.iter().skip(1) {
            self.merge(t, p, other, n, at)?;
        }
        let complete = self.complete(p, at);
        let mut form = Form(Vec::with_capacity(FORM_BYTES));
        form.bases(&self.parts[p as usize]);
        for n in nics {
            self.add_nic(t, p, n, at, &mut form);
        }
        // Not whether the partition comes to life: at one instant it may be this or another, by who goes first.
        let wakes = self.nic_woke[t.flow_tx[f as usize].nic as usize] == at;
        for &port in &ports {
            self.add_port(t, p, port, at, wakes, &mut form);
        }
        self.add_member(t, p, f, at, &mut form);
        self.route(t, p, f, at, wakes, &mut form);
        let (tx, rx) = (&t.flow_tx[f as usize], &t.flow_rx[f as usize]);
        let plain = tx.start != NEVER;
        let unfit = std::mem::take(&mut self.unfit);
        self.parts[p as usize].shape = None;
        self.parts[p as usize].rests_at = NEVER;
        self.parts[p as usize].fit &= !(plain || unfit || tx.n_paths > 1 || rx.n_paths > 1);
        self.widen_rule(p, f);
        self.disturb(t, p, at);
        if !self.parts[p as usize].fit || self.memo.is_none() {
            self.forget(t, p, at)?;
        } else if born {
            self.begin(t, p, form, at);
        } else if self.parts[p as usize].replay {
            self.follow(t, p, edge(b'J', at - self.parts[p as usize].start, form), at, at + 1)?;
        } else if inside {
            if let Some(script) = &mut self.parts[p as usize].script {
                script.pending.push(Event { at, nic: n, what: What::Join(form.0) });
            }
        } else {
            self.newcomer(p, form, n, at, complete);
        }
        if !self.parts[p as usize].replay {
            t.flow_tx[f as usize].flags &= !qp::HELD;
        }
        Ok(p)
    }

    /// Partitions of these rows that are looked up hear all until `at`; they may fall apart by that, as those may that are at rest.
    fn hear(&mut self, t: &mut Tables, nics: &[u32], ports: &[u32], at: u64) -> Result<(), Stop> {
        loop {
            let of = nics
                .iter()
                .map(|&n| self.nic_part[n as usize])
                .chain(ports.iter().map(|&q| self.port_part[q as usize]));
            let lags = |p: &u32| *p != NONE && self.lags(t, *p, at);
            let Some(p) = of.into_iter().find(lags) else { break };
            if self.parts[p as usize].replay {
                self.catch_up_with(t, p, at)?;
            } else {
                self.lay_down(t, p);
            }
        }
        Ok(())
    }

    /// Whether something happens to `p` that whoever joins at `at` must find done: tidings, cuts and rests go first.
    fn lags(&self, t: &Tables, p: u32, at: u64) -> bool {
        let part = &self.parts[p as usize];
        if part.replay {
            part.nap.is_some() || self.next_told(t, p) < at || self.has_more(p, at) || self.turns_over(p, at)
        } else {
            part.rests_at <= at
        }
    }

    /// Up to when, exclusive, all that `p` has to tell is known if somebody joins at `at`.
    fn complete(&self, p: u32, at: u64) -> u64 {
        let part = &self.parts[p as usize];
        if part.next > at { at + 1 } else { part.next }
    }

    pub(super) fn new_part(&mut self, start: u64) -> u32 {
        self.stats.partitions += 1;
        match self.spare.pop() {
            Some(p) => {
                self.parts[p as usize] = Part { due: self.cut_hops, ..Part::new(start) };
                p
            }
            None => {
                self.parts.push(Part { due: self.cut_hops, ..Part::new(start) });
                self.parts.len() as u32 - 1
            }
        }
    }

    /// A partition comes to life: has its like been seen?
    fn begin(&mut self, t: &Tables, p: u32, form: Form, at: u64) {
        let Some(memo) = &self.memo else { return };
        let mut key = Form::head(t, at, &self.calm).0;
        key.extend_from_slice(&form.0);
        let Some((root, known)) = memo.root(key, self.ticket.by(at)) else { return };
        self.stats.episodes += 1;
        self.stats.episodes_known += u64::from(known);
        if known {
            self.ticket.meet(&root, at, || is_free(&self.parts, p));
        } else {
            self.ticket.goes_alone();
        }
        let part = &mut self.parts[p as usize];
        part.replay = known;
        part.script = Some(Script::new(root));
        if !part.replay {
            self.stats.misses += 1;
        }
        self.hold(p);
    }

    /// Somebody joined `p`, which is not in its turn, at `at`.
    fn newcomer(&mut self, p: u32, form: Form, n: u32, at: u64, complete: u64) {
        self.rewind(p, at, n);
        self.flush(p, (at, n), complete);
        let part = &mut self.parts[p as usize];
        let (Some(script), Some(memo)) = (&mut part.script, &self.memo) else { return };
        match memo.child(
            &script.node,
            edge(b'J', at - part.start, form),
            complete - part.start,
            self.ticket.by(part.start),
        ) {
            Some((child, _)) => script.at(child),
            None => part.script = None,
        }
        self.hold(p);
        self.catch_up(p);
    }

    /// The rows of `other` become rows of `p`.
    fn merge(&mut self, t: &mut Tables, p: u32, other: u32, n: u32, at: u64) -> Result<(), Stop> {
        let complete = self.complete(p, at).min(self.complete(other, at));
        for q in [p, other] {
            self.tell(t, q, at)?;
            // What it came to at this very instant may be sleep.
            self.wake(t, q, at)?;
        }
        let scripted = [p, other].iter().all(|&q| self.parts[q as usize].script.is_some());
        for q in [p, other] {
            if !scripted {
                self.forget(t, q, at)?;
            } else if !self.parts[q as usize].replay {
                self.rewind(q, at, n);
                self.flush(q, (at, n), self.complete(q, at));
            }
        }
        let replays = [p, other].map(|q| self.parts[q as usize].replay);
        let mut child = None;
        let key = self.merger(p, other, at);
        if let (Some(memo), Some(script)) = (&self.memo, &self.parts[p as usize].script) {
            let start = self.parts[p as usize].start;
            child = memo.child(&script.node, key, complete - start, self.ticket.by(start));
        }
        if let (Some(memo), Some(script), Some(_)) = (&self.memo, &self.parts[other as usize].script, &child) {
            // Of the other nothing tells but this that it got as far as here (`Run::turns_over`).
            let start = self.parts[other as usize].start;
            memo.child(&script.node, edge(b'M', at - start, Form::default()), complete - start, self.ticket.by(start));
        }
        let both = replays == [true, true] && child.as_ref().is_some_and(|c| c.1);
        if !both {
            for q in [p, other] {
                if self.parts[q as usize].replay {
                    self.go_live(t, q, at)?;
                }
            }
        }
        let script = child.and_then(|(node, _)| self.joined_script(p, other, node));
        self.move_rows(p, other);
        self.parts[p as usize].script = script;
        if self.parts[p as usize].script.is_none() {
            self.forget(t, p, at)?;
        } else if both {
            self.hold(p);
            self.tell(t, p, at)?;
        } else {
            self.hold(p);
            self.catch_up(p);
        }
        Ok(())
    }

    /// What happened later than the newcomer goes behind it; in `p`'s turn that has time until it is over.
    fn catch_up(&mut self, p: u32) {
        if self.turning != p {
            self.flush_covered(p, self.parts[p as usize].covered);
        }
    }

    /// What tells how `other` and `p` come together.
    fn merger(&self, p: u32, other: u32, at: u64) -> Vec<u8> {
        let (a, b) = (&self.parts[p as usize], &self.parts[other as usize]);
        let mut form = Form::default();
        form.bases(a);
        form.0.extend(b.script.as_ref().map_or(Id::default(), |s| s.node.id()));
        form.u64(b.start.wrapping_sub(a.start));
        for (a, b) in [(&a.nics, &b.nics), (&a.ends, &b.ends)] {
            form.numbers(b.iter().map(|&n| rank(a, n)));
        }
        b.flow_ids.iter().chain(&b.ancestors).for_each(|&id| form.id(a, id));
        edge(b'M', at - a.start, form)
    }

    /// The script of `p` after `other` joined it at `node`.
    fn joined_script(&mut self, p: u32, other: u32, node: Arc<super::memo::Node>) -> Option<Script> {
        let shift = self.parts[p as usize].members.len() as u32;
        let mut script = self.parts[p as usize].script.take()?;
        let mut theirs = self.parts[other as usize].script.take()?;
        // Local numbers of those who joined later than this are void now.
        if script.pending.iter().chain(&theirs.pending).any(|e| matches!(e.what, What::Join(_))) {
            return None;
        }
        for event in &mut theirs.pending {
            if let What::Told { member, .. } | What::Post { member, .. } = &mut event.what {
                *member += shift;
            }
        }
        script.pending.extend(theirs.pending);
        script.at(node);
        Some(script)
    }

    fn move_rows(&mut self, p: u32, other: u32) {
        let from = std::mem::replace(&mut self.parts[other as usize], Part::new(0));
        self.spare.push(other);
        if self.turning == other {
            self.turning = p;
        }
        let part = &mut self.parts[p as usize];
        let before = Counts::of(part);
        part.bases.extend(from.bases.into_iter().map(|b| Base { from: before + b.from, to: before + b.to, ..b }));
        part.moved |= from.moved;
        part.due = part.due.max(from.due);
        part.shape = None;
        part.posted_at.extend(from.posted_at);
        for &n in &from.nics {
            self.nic_part[n as usize] = p;
            self.nic_local[n as usize] += part.nics.len() as u32;
        }
        for &port in &from.ports {
            self.port_part[port as usize] = p;
            self.port_local[port as usize] += part.ports.len() as u32;
        }
        for &end in &from.ends {
            self.end_local[end as usize] += part.ends.len() as u32;
        }
        for m in from.members {
            self.member[m.flow as usize] = part.members.len() as u32;
            part.members.push(m);
        }
        part.flow_ids.extend(from.flow_ids);
        part.ancestors.extend(from.ancestors);
        part.nics.extend(from.nics);
        part.nic_base.extend(from.nic_base);
        part.ports.extend(from.ports);
        part.port_base.extend(from.port_base);
        part.ends.extend(from.ends);
        part.peaks.extend(from.peaks);
        part.watch.reset(from.watch.from);
        part.fit &= from.fit;
        part.first = part.first.min(from.first);
        part.covered = part.covered.min(from.covered);
        part.reached = part.reached.max(from.reached);
        self.call_part(p, from.next);
    }

    fn add_nic(&mut self, t: &Tables, p: u32, n: u32, at: u64, form: &mut Form) {
        if self.nic_part[n as usize] != NONE {
            return;
        }
        let row = &t.nics[n as usize];
        form.nic(t, &self.parts[p as usize], n, &|m| self.local_nic(p, m));
        self.nic_part[n as usize] = p;
        self.nic_woke[n as usize] = at;
        self.idle_at[n as usize] = NEVER;
        let part = &mut self.parts[p as usize];
        self.nic_local[n as usize] = part.nics.len() as u32;
        part.nics.push(n);
        part.nic_base.push((row.tx_bytes, row.hops));
        part.posted_at.push(NEVER);
        part.first = part.first.min(n);
        self.add_end(t, p, row.peer);
        let turn = row.flow_first as usize..(row.flow_first + row.qp_n) as usize;
        for k in turn.clone() {
            self.add_member(t, p, t.order[k], at, form);
        }
        form.numbers(t.order[turn].iter().map(|&f| self.member[f as usize]));
        self.call_part(p, row.next_task.min(row.next_start));
    }

    pub(super) fn local_nic(&self, p: u32, n: u32) -> u32 {
        if self.nic_part[n as usize] == p { self.nic_local[n as usize] } else { NONE }
    }

    fn add_end(&mut self, t: &Tables, p: u32, peer: u32) {
        if peer >= t.exps[0].nic_len {
            let part = &mut self.parts[p as usize];
            self.end_local[(peer - t.exps[0].nic_len) as usize] = part.ends.len() as u32;
            part.ends.push(peer - t.exps[0].nic_len);
            part.peaks.push(self.calm.least());
        }
    }

    fn add_port(&mut self, t: &mut Tables, p: u32, port: u32, at: u64, wakes: bool, form: &mut Form) {
        if self.port_part[port as usize] != NONE {
            // Somebody who went first may have brought it.
            if wakes && self.port_woke[port as usize] == at && self.count_from_here(t, port, at) {
                form.numbers([u32::from(b'C'), self.port_local[port as usize]].into_iter());
            }
            return;
        }
        self.port_woke[port as usize] = at;
        if wakes {
            self.count_from_here(t, port, at);
        }
        form.port(t, &self.parts[p as usize], port, at, &|m| self.local_nic(p, m));
        self.port_part[port as usize] = p;
        let row = &mut t.ports[port as usize];
        let part = &mut self.parts[p as usize];
        self.port_local[port as usize] = part.ports.len() as u32;
        part.ports.push(port);
        let max_q = std::mem::take(&mut row.max_q);
        part.port_base.push(PortBase {
            tx_bytes: row.tx_bytes,
            hops: row.hops,
            max_q,
            q_area: row.q_area,
            marks: row.marks,
        });
        let peer = row.peer;
        self.add_end(t, p, peer);
    }

    /// Telemetry of `port`, which came to life at `at`, counts from there. Returns whether it may.
    fn count_from_here(&mut self, t: &mut Tables, port: u32, at: u64) -> bool {
        let (free, moved) = carry::count_from_here(t, port, at);
        self.stats.rounded += u64::from(moved);
        free
    }

    fn add_member(&mut self, t: &Tables, p: u32, f: u32, at: u64, form: &mut Form) {
        if self.member[f as usize] != NONE {
            return;
        }
        form.flow(t, &self.parts[p as usize], f, at);
        let part = &mut self.parts[p as usize];
        self.member[f as usize] = part.members.len() as u32;
        let (tx, rx) = (t.flow_tx[f as usize], t.flow_rx[f as usize]);
        part.flow_ids.push(tx.flow_id);
        self.unfit |= timers_run(t) && tx.flags & qp::STARTED != 0;
        part.members.push(Member {
            flow: f,
            routed: false,
            posted: Vec::new(),
            seen: 0,
            given: 0,
            sent: 0,
            got: 0,
            done: 0,
            passed: 0,
            cut: Standing::default(),
            known: false,
            tx,
            rx,
        });
    }

    /// The path of queue pair `f` is part of `p` now; its NIC may have come to life with this.
    fn route(&mut self, t: &mut Tables, p: u32, f: u32, at: u64, wakes: bool, form: &mut Form) {
        let (tx, rx) = (t.flow_tx[f as usize], t.flow_rx[f as usize]);
        let m = self.member[f as usize];
        form.numbers(
            [
                u32::from(b'R'),
                m,
                self.nic_local[tx.nic as usize],
                self.nic_local[rx.nic as usize],
                tx.path_len,
                rx.path_len,
            ]
            .into_iter(),
        );
        let member = &mut self.parts[p as usize].members[m as usize];
        if !std::mem::replace(&mut member.known, true) {
            carry::catch_up(t, f, at);
            if wakes {
                self.stats.rounded += u64::from(carry::round(t, f));
            }
            form.state(t, f, at, self.parts[p as usize].start);
        }
        for (first, len) in [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)] {
            let path = &t.paths[first as usize..(first + len) as usize];
            form.numbers(path.iter().map(|&port| self.port_local[port as usize]));
        }
        self.parts[p as usize].members[m as usize].routed = true;
    }
}

/// The key of an edge: what it is, when, the rest.
pub fn edge(tag: u8, at: u64, form: Form) -> Vec<u8> {
    let mut key = Form(Vec::with_capacity(9 + form.0.len()));
    key.0.push(tag);
    key.u64(at);
    key.0.extend_from_slice(&form.0);
    key.0
}

/// NICs and switch ports that queue pair `f` needs: both ends, data and ACK paths.
fn rows_of(t: &Tables, f: u32) -> (Vec<u32>, Vec<u32>) {
    let (tx, rx) = (&t.flow_tx[f as usize], &t.flow_rx[f as usize]);
    let mut ports: Vec<u32> = Vec::new();
    for (first, len) in [(tx.path_first, tx.path_len * tx.n_paths), (rx.path_first, rx.path_len * rx.n_paths)] {
        for &port in &t.paths[first as usize..(first + len) as usize] {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    let mut nics = vec![tx.nic];
    if rx.nic != tx.nic {
        nics.push(rx.nic);
    }
    (nics, ports)
}
