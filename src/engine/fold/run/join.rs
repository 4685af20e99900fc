//! Partitions grow and merge.

use std::sync::Arc;

use crate::columns::{NEVER, NONE, Tables, qp};
use crate::engine::fold::Stop;
use crate::engine::fold::memo::in_flight::is_free;
use crate::engine::fold::memo::table::NodeId;
use crate::engine::fold::rows::canonical_key::{CanonicalKey, rank, timers_run};
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::rows::snapshot::RowCounts;
use crate::engine::fold::run::partition::{
    BaseSnapshot, Member, MemoCursor, Partition, PendingEvent, PendingKind, PortBase, SendProgress,
};
use crate::engine::fold::run::turns::Run;

/// Room for the form of a queue pair that begins a partition, with its rows.
const FORM_BYTES: usize = 1024;

impl Run {
    /// Queue pair `f` of NIC `n` is about to send at `at`: what it crosses becomes part of one partition, whose number is returned.
    pub(in crate::engine::fold) fn join(&mut self, t: &mut Tables, n: u32, f: u32, at: u64) -> Result<u32, Stop> {
        let (nics, ports) = rows_of(t, f);
        self.catch_up_rows(t, &nics, &ports, at)?;
        let mut touched: Vec<u32> = Vec::new();
        let places = nics
            .iter()
            .map(|&n| self.nic_partition[n as usize])
            .chain(ports.iter().map(|&p| self.port_partition[p as usize]));
        for p in places {
            if p != NONE && !touched.contains(&p) {
                touched.push(p);
            }
        }
        touched.sort_by_key(|&p| (self.partitions[p as usize].start, self.partitions[p as usize].first));
        let born = touched.is_empty();
        let p = touched.first().copied().unwrap_or_else(|| self.new_partition(at));
        // In its own turn a partition's events are put in order when it is over.
        let inside = touched.len() == 1 && self.turning == p;
        for &other in touched.iter().skip(1) {
            self.merge(t, p, other, n, at)?;
        }
        let complete = self.complete(p, at);
        let mut form = CanonicalKey(Vec::with_capacity(FORM_BYTES));
        form.first_locals(&self.partitions[p as usize]);
        for n in nics {
            self.add_nic(t, p, n, at, &mut form);
        }
        // Not whether the partition comes to life: at one instant it may be this or another, by who goes first.
        let activates = self.nic_active_since[t.flow_tx[f as usize].nic as usize] == at;
        for &port in &ports {
            self.add_port(t, p, port, at, activates, &mut form);
        }
        self.add_member(t, p, f, at, &mut form);
        self.route(t, p, f, at, activates, &mut form);
        let (tx, rx) = (&t.flow_tx[f as usize], &t.flow_rx[f as usize]);
        let plain = tx.start != NEVER;
        let joined_unrecordable = std::mem::take(&mut self.joined_unrecordable);
        self.partitions[p as usize].shape = None;
        self.partitions[p as usize].retires_at = NEVER;
        self.partitions[p as usize].recordable &= !(plain || joined_unrecordable || tx.n_paths > 1 || rx.n_paths > 1);
        self.widen_rule(p, f);
        self.reset_detector(t, p, at);
        if !self.partitions[p as usize].recordable || self.memo.is_none() {
            self.stop_remembering(t, p, at)?;
        } else if born {
            self.record_start(t, p, form, at);
        } else if self.partitions[p as usize].looked_up {
            self.follow(t, p, edge(b'J', at - self.partitions[p as usize].start, form), at, at + 1)?;
        } else if inside {
            if let Some(cursor) = &mut self.partitions[p as usize].cursor {
                cursor.pending.push(PendingEvent { at, nic: n, what: PendingKind::Join(form.0) });
            }
        } else {
            self.record_join(p, form, n, at, complete);
        }
        if !self.partitions[p as usize].looked_up {
            t.flow_tx[f as usize].flags &= !qp::HELD;
        }
        Ok(p)
    }

    /// Partitions of these rows that are looked up hear all until `at`; they may fall apart by that, as those may that are at rest.
    fn catch_up_rows(&mut self, t: &mut Tables, nics: &[u32], ports: &[u32], at: u64) -> Result<(), Stop> {
        loop {
            let of = nics
                .iter()
                .map(|&n| self.nic_partition[n as usize])
                .chain(ports.iter().map(|&q| self.port_partition[q as usize]));
            let lags = |p: &u32| *p != NONE && self.lags(t, *p, at);
            let Some(p) = of.into_iter().find(lags) else { break };
            if self.partitions[p as usize].looked_up {
                self.catch_up_with(t, p, at)?;
            } else {
                self.retire_idle(t, p);
            }
        }
        Ok(())
    }

    /// Whether something happens to `p` that whoever joins at `at` must find done: tidings, cuts and rests go first.
    fn lags(&self, t: &Tables, p: u32, at: u64) -> bool {
        let partition = &self.partitions[p as usize];
        if partition.looked_up {
            partition.skip.is_some() || self.next_reported(t, p) < at || self.has_more(p, at) || self.ends_by(p, at)
        } else {
            partition.retires_at <= at
        }
    }

    /// Up to when, exclusive, all that `p` has to tell is known if somebody joins at `at`.
    fn complete(&self, p: u32, at: u64) -> u64 {
        let partition = &self.partitions[p as usize];
        if partition.next > at { at + 1 } else { partition.next }
    }

    pub(in crate::engine::fold) fn new_partition(&mut self, start: u64) -> u32 {
        self.stats.partitions += 1;
        match self.spare.pop() {
            Some(p) => {
                self.partitions[p as usize] = Partition { hops_due: self.checkpoint_hops, ..Partition::new(start) };
                p
            }
            None => {
                self.partitions.push(Partition { hops_due: self.checkpoint_hops, ..Partition::new(start) });
                self.partitions.len() as u32 - 1
            }
        }
    }

    /// A partition comes to life: has its like been seen?
    fn record_start(&mut self, t: &Tables, p: u32, form: CanonicalKey, at: u64) {
        let Some(memo) = &self.memo else { return };
        let mut key = CanonicalKey::head(t, at, &self.guard).0;
        key.extend_from_slice(&form.0);
        let Some((root, known)) = memo.root(key, self.ticket.by(at)) else { return };
        self.stats.episodes += 1;
        self.stats.episodes_known += u64::from(known);
        if known {
            self.ticket.meet(&root, at, || is_free(&self.partitions, p));
        } else {
            self.ticket.goes_alone();
        }
        let partition = &mut self.partitions[p as usize];
        partition.looked_up = known;
        partition.cursor = Some(MemoCursor::new(root));
        if !partition.looked_up {
            self.stats.misses += 1;
        }
        self.update_claim(p);
    }

    /// Somebody joined `p`, which is not in its turn, at `at`.
    fn record_join(&mut self, p: u32, form: CanonicalKey, n: u32, at: u64, complete: u64) {
        self.rewind(p, at, n);
        self.flush(p, (at, n), complete);
        let partition = &mut self.partitions[p as usize];
        let (Some(cursor), Some(memo)) = (&mut partition.cursor, &self.memo) else { return };
        match memo.child(
            &cursor.node,
            edge(b'J', at - partition.start, form),
            complete - partition.start,
            self.ticket.by(partition.start),
        ) {
            Some((child, _)) => cursor.at(child),
            None => partition.cursor = None,
        }
        self.update_claim(p);
        self.catch_up(p);
    }

    /// The rows of `other` become rows of `p`.
    fn merge(&mut self, t: &mut Tables, p: u32, other: u32, n: u32, at: u64) -> Result<(), Stop> {
        let complete = self.complete(p, at).min(self.complete(other, at));
        for q in [p, other] {
            self.report_events(t, q, at)?;
            // What it came to at this very instant may be sleep.
            self.end_skip(t, q, at)?;
        }
        let may_look_up = [p, other].iter().all(|&q| self.partitions[q as usize].cursor.is_some());
        for q in [p, other] {
            if !may_look_up {
                self.stop_remembering(t, q, at)?;
            } else if !self.partitions[q as usize].looked_up {
                self.rewind(q, at, n);
                self.flush(q, (at, n), self.complete(q, at));
            }
        }
        let replays = [p, other].map(|q| self.partitions[q as usize].looked_up);
        let mut child = None;
        let key = self.merge_key(p, other, at);
        if let (Some(memo), Some(cursor)) = (&self.memo, &self.partitions[p as usize].cursor) {
            let start = self.partitions[p as usize].start;
            child = memo.child(&cursor.node, key, complete - start, self.ticket.by(start));
        }
        if let (Some(memo), Some(cursor), Some(_)) = (&self.memo, &self.partitions[other as usize].cursor, &child) {
            // Of the other nothing tells but this that it got as far as here (`Run::turns_over`).
            let start = self.partitions[other as usize].start;
            memo.child(
                &cursor.node,
                edge(b'M', at - start, CanonicalKey::default()),
                complete - start,
                self.ticket.by(start),
            );
        }
        let both = replays == [true, true] && child.as_ref().is_some_and(|c| c.1);
        if !both {
            for q in [p, other] {
                if self.partitions[q as usize].looked_up {
                    self.start_simulating(t, q, at)?;
                }
            }
        }
        let cursor = child.and_then(|(node, _)| self.merged_cursor(p, other, node));
        self.move_rows(p, other);
        self.partitions[p as usize].cursor = cursor;
        if self.partitions[p as usize].cursor.is_none() {
            self.stop_remembering(t, p, at)?;
        } else if both {
            self.update_claim(p);
            self.report_events(t, p, at)?;
        } else {
            self.update_claim(p);
            self.catch_up(p);
        }
        Ok(())
    }

    /// What happened later than the newcomer goes behind it; in `p`'s turn that has time until it is over.
    fn catch_up(&mut self, p: u32) {
        if self.turning != p {
            self.flush_covered(p, self.partitions[p as usize].covered);
        }
    }

    /// What tells how `other` and `p` come together.
    fn merge_key(&self, p: u32, other: u32, at: u64) -> Vec<u8> {
        let (a, b) = (&self.partitions[p as usize], &self.partitions[other as usize]);
        let mut form = CanonicalKey::default();
        form.first_locals(a);
        form.0.extend(b.cursor.as_ref().map_or(NodeId::default(), |s| s.node.id()));
        form.u64(b.start.wrapping_sub(a.start));
        for (a, b) in [(&a.nics, &b.nics), (&a.ends, &b.ends)] {
            form.numbers(b.iter().map(|&n| rank(a, n)));
        }
        b.flow_ids.iter().chain(&b.ancestors).for_each(|&id| form.id(a, id));
        edge(b'M', at - a.start, form)
    }

    /// The script of `p` after `other` joined it at `node`.
    fn merged_cursor(
        &mut self,
        p: u32,
        other: u32,
        node: Arc<crate::engine::fold::memo::table::MemoNode>,
    ) -> Option<MemoCursor> {
        let shift = self.partitions[p as usize].members.len() as u32;
        let mut cursor = self.partitions[p as usize].cursor.take()?;
        let mut theirs = self.partitions[other as usize].cursor.take()?;
        // Local numbers of those who joined later than this are void now.
        if cursor.pending.iter().chain(&theirs.pending).any(|e| matches!(e.what, PendingKind::Join(_))) {
            return None;
        }
        for event in &mut theirs.pending {
            if let PendingKind::Message { member, .. } | PendingKind::Post { member, .. } = &mut event.what {
                *member += shift;
            }
        }
        cursor.pending.extend(theirs.pending);
        cursor.at(node);
        Some(cursor)
    }

    fn move_rows(&mut self, p: u32, other: u32) {
        let from = std::mem::replace(&mut self.partitions[other as usize], Partition::new(0));
        self.spare.push(other);
        if self.turning == other {
            self.turning = p;
        }
        let partition = &mut self.partitions[p as usize];
        let before = RowCounts::of(partition);
        partition.base_snapshots.extend(from.base_snapshots.into_iter().map(|b| BaseSnapshot {
            from: before + b.from,
            to: before + b.to,
            ..b
        }));
        partition.changed |= from.changed;
        partition.hops_due = partition.hops_due.max(from.hops_due);
        partition.shape = None;
        partition.last_post_at.extend(from.last_post_at);
        for &n in &from.nics {
            self.nic_partition[n as usize] = p;
            self.nic_local[n as usize] += partition.nics.len() as u32;
        }
        for &port in &from.ports {
            self.port_partition[port as usize] = p;
            self.port_local[port as usize] += partition.ports.len() as u32;
        }
        for &end in &from.ends {
            self.end_local[end as usize] += partition.ends.len() as u32;
        }
        for m in from.members {
            self.member[m.flow as usize] = partition.members.len() as u32;
            partition.members.push(m);
        }
        partition.flow_ids.extend(from.flow_ids);
        partition.ancestors.extend(from.ancestors);
        partition.nics.extend(from.nics);
        partition.nic_base.extend(from.nic_base);
        partition.ports.extend(from.ports);
        partition.port_base.extend(from.port_base);
        partition.ends.extend(from.ends);
        partition.peaks.extend(from.peaks);
        partition.detector.reset(from.detector.from);
        partition.recordable &= from.recordable;
        partition.first = partition.first.min(from.first);
        partition.covered = partition.covered.min(from.covered);
        partition.reached = partition.reached.max(from.reached);
        self.schedule_partition(p, from.next);
    }

    fn add_nic(&mut self, t: &Tables, p: u32, n: u32, at: u64, form: &mut CanonicalKey) {
        if self.nic_partition[n as usize] != NONE {
            return;
        }
        let row = &t.nics[n as usize];
        form.nic(t, &self.partitions[p as usize], n, &|m| self.local_nic(p, m));
        self.nic_partition[n as usize] = p;
        self.nic_active_since[n as usize] = at;
        self.idle_at[n as usize] = NEVER;
        let partition = &mut self.partitions[p as usize];
        self.nic_local[n as usize] = partition.nics.len() as u32;
        partition.nics.push(n);
        partition.nic_base.push((row.tx_bytes, row.hops));
        partition.last_post_at.push(NEVER);
        partition.first = partition.first.min(n);
        self.add_end(t, p, row.peer);
        let turn = row.flow_first as usize..(row.flow_first + row.qp_n) as usize;
        for k in turn.clone() {
            self.add_member(t, p, t.order[k], at, form);
        }
        form.numbers(t.order[turn].iter().map(|&f| self.member[f as usize]));
        self.schedule_partition(p, row.next_task.min(row.next_start));
    }

    pub(in crate::engine::fold) fn local_nic(&self, p: u32, n: u32) -> u32 {
        if self.nic_partition[n as usize] == p { self.nic_local[n as usize] } else { NONE }
    }

    fn add_end(&mut self, t: &Tables, p: u32, peer: u32) {
        if peer >= t.exps[0].nic_len {
            let partition = &mut self.partitions[p as usize];
            self.end_local[(peer - t.exps[0].nic_len) as usize] = partition.ends.len() as u32;
            partition.ends.push(peer - t.exps[0].nic_len);
            partition.peaks.push(self.guard.least());
        }
    }

    fn add_port(&mut self, t: &mut Tables, p: u32, port: u32, at: u64, activates: bool, form: &mut CanonicalKey) {
        if self.port_partition[port as usize] != NONE {
            // Somebody who went first may have brought it.
            if activates && self.port_active_since[port as usize] == at && self.count_from_here(t, port, at) {
                form.numbers([u32::from(b'C'), self.port_local[port as usize]].into_iter());
            }
            return;
        }
        self.port_active_since[port as usize] = at;
        if activates {
            self.count_from_here(t, port, at);
        }
        form.port(t, &self.partitions[p as usize], port, at, &|m| self.local_nic(p, m));
        self.port_partition[port as usize] = p;
        let row = &mut t.ports[port as usize];
        let partition = &mut self.partitions[p as usize];
        self.port_local[port as usize] = partition.ports.len() as u32;
        partition.ports.push(port);
        let max_q = std::mem::take(&mut row.max_q);
        partition.port_base.push(PortBase {
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
        let (free, moved) = cc_state::count_from_here(t, port, at);
        self.stats.rounded += u64::from(moved);
        free
    }

    fn add_member(&mut self, t: &Tables, p: u32, f: u32, at: u64, form: &mut CanonicalKey) {
        if self.member[f as usize] != NONE {
            return;
        }
        form.flow(t, &self.partitions[p as usize], f, at);
        let partition = &mut self.partitions[p as usize];
        self.member[f as usize] = partition.members.len() as u32;
        let (tx, rx) = (t.flow_tx[f as usize], t.flow_rx[f as usize]);
        partition.flow_ids.push(tx.flow_id);
        self.joined_unrecordable |= timers_run(t) && tx.flags & qp::STARTED != 0;
        partition.members.push(Member {
            flow: f,
            routed: false,
            posted: Vec::new(),
            posts_in_rows: 0,
            given: 0,
            sent: 0,
            delivered: 0,
            acked: 0,
            sent_in_rows: 0,
            at_checkpoint: SendProgress::default(),
            known: false,
            tx,
            rx,
        });
    }

    /// The path of queue pair `f` is part of `p` now; its NIC may have come to life with this.
    fn route(&mut self, t: &mut Tables, p: u32, f: u32, at: u64, activates: bool, form: &mut CanonicalKey) {
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
        let member = &mut self.partitions[p as usize].members[m as usize];
        if !std::mem::replace(&mut member.known, true) {
            cc_state::catch_up(t, f, at);
            if activates {
                self.stats.rounded += u64::from(cc_state::round(t, f));
            }
            form.state(t, f, at, self.partitions[p as usize].start);
        }
        for (first, len) in [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)] {
            let path = &t.paths[first as usize..(first + len) as usize];
            form.numbers(path.iter().map(|&port| self.port_local[port as usize]));
        }
        self.partitions[p as usize].members[m as usize].routed = true;
    }
}

/// The key of an edge: what it is, when, the rest.
pub fn edge(tag: u8, at: u64, form: CanonicalKey) -> Vec<u8> {
    let mut key = CanonicalKey(Vec::with_capacity(9 + form.0.len()));
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
