//! Cuts: every few thousand packets a partition's state is looked up itself. Whatever led there, what follows is the same; so a pattern that repeats within a collective
//! is simulated once, and known from its second period on.

use std::sync::Arc;
use std::time::Instant;

use crate::columns::{NEVER, NONE, SHARED_HEADER, Tables};
use crate::engine::fold::memo::in_flight::is_free;
use crate::engine::fold::memo::table::{Checkpoint, Continuation, CounterDelta, MemoNode, PartitionPiece, PortDelta};
use crate::engine::fold::rows::canonical_key::{CanonicalKey, shape};
use crate::engine::fold::rows::snapshot::{self, RowCounts, RowNames};
use crate::engine::fold::run::partition::{BaseSnapshot, MemoCursor, Partition, PortBase, SendProgress};
use crate::engine::fold::run::turns::Run;
use crate::engine::fold::steady::detector::SteadyRates;
use crate::engine::fold::{Stop, reason};
use crate::engine::grow::TooManyPackets;

/// Packets between cuts, at least: a state costs as much as simulating a few hundred.
pub const HOPS_PER_CHECKPOINT: u64 = 2048;
/// And as many for every byte of the last state.
const BYTES_PER_HOP: u64 = 1;

impl Run {
    /// Partition `p` is about to be simulated from `at`, when it is the earliest of all: where it stands may be known, and it may have fallen apart. Returns whether its turn
    /// is over by that. Not where what is steady is skipped: there cuts are part of what is decided, at instants of their own ([`Run::inspect`]).
    pub(in crate::engine::fold) fn checkpoint_if_due(&mut self, t: &mut Tables, p: u32, at: u64) -> bool {
        let partition = &self.partitions[p as usize];
        let (Some(cursor), false, true) = (
            &partition.cursor,
            Run::is_steadying(t),
            partition.changed && at > partition.start && partition.reached <= at,
        ) else {
            return false;
        };
        if !cursor.pending.is_empty()
            || cursor.node.body().checkpoint.is_some()
            || hops(t, partition) < partition.hops_due
        {
            return false;
        }
        let began = Instant::now();
        let pieces = self.pieces(t, p);
        let over = self.split_at_checkpoint(t, p, at, pieces, &[]);
        self.stats.checkpointing += began.elapsed();
        over
    }

    /// It is time to look at live partition `p`: what of it is steady falls asleep, and now and then it is cut.
    /// PRECONDITION: all before `at` has happened, nothing at or after.
    pub(in crate::engine::fold) fn sample_and_checkpoint(&mut self, t: &mut Tables, p: u32, at: u64) {
        self.partitions[p as usize].covered = self.partitions[p as usize].covered.max(at);
        self.flush_covered(p, at);
        self.update_claim(p);
        let full = self.sample_partition(t, p);
        let due = hops(t, &self.partitions[p as usize]) >= self.partitions[p as usize].hops_due;
        if !full && !due {
            self.continue_after_sample(t, p);
            return;
        }
        let began = Instant::now();
        let pieces = self.pieces(t, p);
        if !full && pieces.len() == 1 {
            self.stats.checkpointing += began.elapsed();
            self.continue_after_sample(t, p);
            return;
        }
        let steady: Vec<Option<SteadyRates>> = pieces
            .iter()
            .map(|piece| {
                if !full {
                    return None;
                }
                let all =
                    || (0..self.partitions[p as usize].members.len() as u32).filter(|&m| self.works(t, p, m)).collect();
                let working = if pieces.len() == 1 { all() } else { piece.working.clone() };
                self.steady(t, p, &working, pieces.len() == 1)
            })
            .collect();
        if steady.iter().any(Option::is_some) || due {
            self.split_at_checkpoint(t, p, at, pieces, &steady);
        } else {
            self.continue_after_sample(t, p);
        }
        self.stats.checkpointing += began.elapsed();
    }

    /// A look at `p` was without consequences: nothing happens to it before its next event or the next look.
    fn continue_after_sample(&mut self, t: &Tables, p: u32) {
        self.schedule_sampling(t, p);
        let known = self.next_event_at(t, p).min(self.partitions[p as usize].detector.next());
        self.flush_covered(p, known);
    }

    /// Partition `p` becomes `pieces`; those that are `steady` (empty: none) fall asleep, of the others what follows may be known. Returns whether something else than going
    /// on is to be done.
    fn split_at_checkpoint(
        &mut self,
        t: &mut Tables,
        p: u32,
        at: u64,
        mut pieces: Vec<PartitionPiece>,
        steady: &[Option<SteadyRates>],
    ) -> bool {
        let start = self.partitions[p as usize].start;
        // Its claim ends with this: until the cut is there nobody else need find it.
        let before = self.partitions[p as usize].cursor.take();
        let may_look_up = before.is_some();
        self.partitions[p as usize].ended_skip = None;
        self.prune(p);
        let deltas = self.deltas(t, p);
        self.report_peaks(t, p, at);
        self.stats.hops_simulated +=
            deltas.nics.iter().map(|g| g.1).sum::<u64>() + deltas.ports.iter().map(|g| g.hops).sum::<u64>();
        let partition = &self.partitions[p as usize];
        let numbers: Vec<u32> = partition.flow_ids.iter().chain(&partition.ancestors).copied().collect();
        let mut traced = true;
        let mut places = |ids: &[u32]| -> Vec<u32> {
            let places = ids
                .iter()
                .filter_map(|id| numbers.iter().position(|n| n == id).map(|k| k as u32))
                .collect::<Vec<u32>>();
            traced &= places.len() == ids.len();
            places
        };
        let whole = pieces.len() == 1;
        let mut continuations = Vec::new();
        let mut over = !whole;
        for (k, (q, piece)) in self.fall_apart(t, p, &pieces).into_iter().zip(&mut pieces).enumerate() {
            if !whole && piece.working.is_empty() {
                self.partitions[q as usize].start = at;
                continuations.push(Continuation::Retire(self.write_down(t, q, at).into()));
                piece.ancestors = places(&self.partitions[q as usize].ancestors);
                self.dissolve(t, q);
                continue;
            }
            if let Some(Some(steady)) = steady.get(k) {
                let steady = if whole { steady.clone() } else { steady.of(piece) };
                // Asleep its ingresses are taken to hold what they held before.
                let peaks = self.partitions[q as usize].peaks.clone();
                self.rebase(t, q);
                self.partitions[q as usize].peaks = peaks;
                let plan = Arc::new(self.plan_skip(t, q, at, &steady));
                continuations.push(Continuation::Skip(Arc::clone(&plan)));
                snapshot::clear(t, &self.partitions[q as usize]);
                self.begin_skip(t, q, plan, at, may_look_up);
                self.select_for_audit(t, q);
                over = true;
            } else {
                continuations.extend(self.resume(t, q, at, may_look_up));
                over |= self.partitions[q as usize].looked_up;
            }
            piece.ancestors = places(&self.partitions[q as usize].ancestors);
            if over {
                let partition = &self.partitions[q as usize];
                let next = if partition.skip.is_some() {
                    self.next_reported(t, q)
                } else if partition.looked_up {
                    at
                } else {
                    self.next_event_at(t, q)
                };
                self.schedule_partition(q, next);
            }
        }
        debug_assert!(traced || !may_look_up, "an event goes back to nobody known");
        if let (Some(cursor), Some(memo), true) = (&before, &self.memo, traced) {
            let mut body = cursor.node.body();
            body.known = body.known.max(at - start);
            let checkpoint = Checkpoint { at: at - start, pieces, continuations, ..deltas };
            if checkpoint.continuations.len() == checkpoint.pieces.len()
                && body.checkpoint.is_none()
                && memo.room(checkpoint.bytes())
            {
                body.checkpoint = Some(Arc::new(checkpoint));
            }
        }
        over
    }

    /// Partition `p`, whose rows stand in the tables as of `at`, goes on from there; where that is known, it is looked up. Gives its node.
    pub(in crate::engine::fold) fn resume(
        &mut self,
        t: &mut Tables,
        p: u32,
        at: u64,
        may_look_up: bool,
    ) -> Option<Continuation> {
        self.partitions[p as usize].start = at;
        let bytes = if may_look_up || Run::is_steadying(t) { self.write_down(t, p, at) } else { Vec::new() };
        let due = self.until_next(snapshot::weight(&bytes));
        let found = if may_look_up { self.find(t, p, at, bytes) } else { None };
        self.rebase(t, p);
        let partition = &mut self.partitions[p as usize];
        partition.changed = false;
        partition.hops_due = due;
        partition.cursor = None;
        partition.detector.reset(at);
        let mut continuation = None;
        if let Some((node, known)) = found {
            continuation = Some(Continuation::Snapshot(Arc::clone(&node)));
            partition.cursor = Some(MemoCursor::new(Arc::clone(&node)));
            if known {
                snapshot::clear(t, partition);
                self.stand_at_snapshot(p, node, at);
            }
        }
        self.forget_rule(p);
        self.schedule_sampling(t, p);
        if !self.partitions[p as usize].looked_up {
            // Its likes that come to the same at this instant follow it.
            let next = self.next_event_at(t, p).min(self.partitions[p as usize].detector.next());
            let partition = &self.partitions[p as usize];
            if let (Some(cursor), true) = (&partition.cursor, next != NEVER) {
                let mut body = cursor.node.body();
                body.known = body.known.max(next.saturating_sub(at));
            }
            self.ticket.goes_alone();
        }
        self.update_claim(p);
        continuation
    }

    /// The node of what `p` is at `at`, `bytes` its state, and whether something is known of it. `None`: the memo is full.
    fn find(&mut self, t: &mut Tables, p: u32, at: u64, bytes: Vec<u8>) -> Option<(Arc<MemoNode>, bool)> {
        let memo = self.memo.clone()?;
        let mut key = CanonicalKey(vec![b'S']);
        key.0.extend(CanonicalKey::head(t, at, &self.guard).0);
        key.0.extend_from_slice(&self.shape(t, p));
        let partition = &self.partitions[p as usize];
        key.u32(partition.ancestors.len() as u32);
        partition.ancestors.iter().for_each(|&id| key.id(partition, id));
        match &self.partitions[p as usize].ended_skip {
            Some(plan) => plan.put(&mut key),
            None => key.u32(u32::MAX),
        }
        key.0.extend_from_slice(&bytes);
        let (node, known) = memo.state(key.0, bytes.len(), self.ticket.by(at))?;
        let body = node.body();
        let known = known && (body.known > 0 || body.checkpoint.is_some() || body.end.is_some());
        drop(body);
        let known = known || self.ticket.is_foreign(&node);
        if known {
            self.ticket.meet(&node, at, || is_free(&self.partitions, p));
        }
        self.stats.snapshots += 1;
        self.stats.snapshots_known += u64::from(known);
        Some((node, known))
    }

    /// The rows of `p`, which is looked up, come to the end of what its node knows: counters gain, what the state says is read when it is needed.
    /// PRECONDITION: what `cut` leads to was reached.
    pub(in crate::engine::fold) fn pass_checkpoint(
        &mut self,
        t: &mut Tables,
        p: u32,
        checkpoint: &Checkpoint,
    ) -> Result<(), Stop> {
        self.stats.hits += 1;
        let partition = &self.partitions[p as usize];
        for (&n, delta) in partition.nics.iter().zip(&checkpoint.nics) {
            t.nics[n as usize].tx_bytes += delta.0;
            t.nics[n as usize].hops += delta.1;
        }
        for (&q, delta) in partition.ports.iter().zip(&checkpoint.ports) {
            delta.count(&mut t.ports[q as usize]);
        }
        for (m, delta) in partition.members.iter().zip(&checkpoint.members) {
            let (tx, rx) = (&mut t.flow_tx[m.flow as usize], &mut t.flow_rx[m.flow as usize]);
            tx.snd_una += delta.una;
            tx.sent_bytes += delta.sent_bytes;
            tx.n_sent = tx.n_sent.wrapping_add(delta.n_sent);
            rx.arrived_bytes += delta.arrived_bytes;
            rx.milestone = rx.milestone.wrapping_add(delta.milestone);
            rx.n_acks = rx.n_acks.wrapping_add(delta.n_acks);
        }
        let at = partition.start + checkpoint.at;
        self.partitions[p as usize].peaks.clone_from(&checkpoint.peaks);
        self.report_peaks(t, p, at);
        self.prune(p);
        for (q, continuation) in self.fall_apart(t, p, &checkpoint.pieces).into_iter().zip(&checkpoint.continuations) {
            self.partitions[q as usize].start = at;
            match continuation {
                Continuation::Snapshot(node) => {
                    let partition = &mut self.partitions[q as usize];
                    partition.changed = false;
                    partition.cursor = Some(MemoCursor::new(Arc::clone(node)));
                    partition.detector.reset(at);
                    partition.ended_skip = None;
                    self.forget_rule(q);
                    self.stand_at_snapshot(q, Arc::clone(node), at);
                    if checkpoint.pieces.len() > 1 {
                        let next = if self.partitions[q as usize].looked_up {
                            self.next_reported(t, q)
                        } else {
                            self.next_event_at(t, q)
                        };
                        self.schedule_partition(q, next);
                    }
                }
                Continuation::Skip(plan) => {
                    self.begin_skip(t, q, Arc::clone(plan), at, true);
                    self.select_for_audit(t, q);
                    let next = self.next_reported(t, q);
                    self.schedule_partition(q, next);
                }
                // To start over is all that is left in mid-way.
                Continuation::Stored(_) => return Err(Stop::Abandon(reason::BACKING_STORE)),
                Continuation::Retire(bytes) => {
                    snapshot::read(t, bytes, self.names(q, None), at, self.limit).map_err(full)?;
                    self.dissolve(t, q);
                }
            }
        }
        Ok(())
    }

    /// Packets from a state of this weight to the next cut.
    fn until_next(&self, weight: u64) -> u64 {
        self.checkpoint_hops.max(weight * self.checkpoint_hops / HOPS_PER_CHECKPOINT / BYTES_PER_HOP)
    }

    /// All rows of `p` are in the state `node` as of `at`, and not in the tables.
    fn stand_at_snapshot(&mut self, p: u32, node: Arc<MemoNode>, at: u64) {
        let partition = &mut self.partitions[p as usize];
        partition.looked_up = true;
        partition.base_snapshots =
            vec![BaseSnapshot { node, at, from: RowCounts::default(), to: RowCounts::of(partition) }];
    }

    /// The rows of `p`, which is looked up, as they were when its episode began or at the last cut.
    pub(in crate::engine::fold) fn restore(&mut self, t: &mut Tables, p: u32) -> Result<(), Stop> {
        for member in &mut self.partitions[p as usize].members {
            (member.posts_in_rows, member.sent_in_rows) = (member.at_checkpoint.posted, member.at_checkpoint.sent);
        }
        let base_snapshots = std::mem::take(&mut self.partitions[p as usize].base_snapshots);
        for base in &base_snapshots {
            let Some(bytes) = base.node.state() else { return Err(Stop::Abandon(reason::BACKING_STORE)) };
            self.next_unposted(t, p, base);
            snapshot::read(t, bytes, self.names(p, Some(base)), base.at, self.limit).map_err(full)?;
            // What waits behind unsent bytes was there already.
            for m in &self.partitions[p as usize].members[base.from.members..base.to.members] {
                let tx = &mut t.flow_tx[m.flow as usize];
                for &(i, _) in &m.posted[m.at_checkpoint.given..m.at_checkpoint.posted] {
                    tx.size += t.tasks[i as usize].bytes;
                    tx.msg_post = t.tasks[i as usize].follow;
                }
            }
            self.rebase_range(t, p, base.from, base.to);
        }
        let sizes = base_snapshots.iter().filter_map(|b| b.node.state()).map(snapshot::weight);
        // Where what is steady is skipped, cuts are part of what is decided: they come when they do after partitions merged that were simulated (`Run::move_rows`).
        let due = if Run::is_steadying(t) {
            sizes.map(|n| self.until_next(n)).max().unwrap_or(self.checkpoint_hops)
        } else {
            self.until_next(sizes.sum())
        };
        self.partitions[p as usize].hops_due = due;
        Ok(())
    }

    /// The queue pairs of looked-up partition `p`, whose next post is the first that the state of the last cut has not seen, as they were then.
    pub(in crate::engine::fold) fn restore_members(&mut self, t: &mut Tables, p: u32) {
        let base_snapshots = std::mem::take(&mut self.partitions[p as usize].base_snapshots);
        for base in &base_snapshots {
            let Some(bytes) = base.node.state() else { continue };
            let next: Vec<u32> =
                self.partitions[p as usize].members.iter().map(|m| t.flow_tx[m.flow as usize].msg_post).collect();
            self.next_unposted(t, p, base);
            snapshot::read_members(t, bytes, self.names(p, Some(base)), base.at);
            for (m, next) in self.partitions[p as usize].members.iter().zip(next) {
                t.flow_tx[m.flow as usize].msg_post = next;
            }
        }
    }

    /// Pointers to the next message of each queue pair go back to the first that the state `base` has not seen.
    fn next_unposted(&self, t: &mut Tables, p: u32, base: &BaseSnapshot) {
        for m in &self.partitions[p as usize].members[base.from.members..base.to.members] {
            if let Some(&(i, _)) = m.posted.get(m.at_checkpoint.given) {
                t.flow_tx[m.flow as usize].msg_post = i;
            }
        }
    }

    /// Messages that are over are counted no more.
    pub(in crate::engine::fold) fn prune(&mut self, p: u32) {
        for m in &mut self.partitions[p as usize].members {
            let over = m.delivered.min(m.acked);
            m.posted.drain(..over);
            m.delivered -= over;
            m.acked -= over;
            m.given -= over;
            m.sent = m.sent.saturating_sub(over);
            m.posts_in_rows = m.posts_in_rows.saturating_sub(over);
            m.sent_in_rows = m.sent_in_rows.saturating_sub(over);
            m.known = true;
            m.at_checkpoint = SendProgress { posted: m.posted.len(), given: m.given, sent: m.sent };
        }
    }

    /// The state of `p`, whose rows stand in the tables as of `at`.
    pub(in crate::engine::fold) fn write_down(&mut self, t: &mut Tables, p: u32, at: u64) -> Vec<u8> {
        let (bytes, ancestors) = snapshot::write(t, self.names(p, None), at);
        self.partitions[p as usize].ancestors = ancestors;
        bytes
    }

    pub(in crate::engine::fold) fn names<'a>(&'a self, p: u32, base: Option<&BaseSnapshot>) -> RowNames<'a> {
        let partition = &self.partitions[p as usize];
        let (from, to) = base.map_or((RowCounts::default(), RowCounts::of(partition)), |b| (b.from, b.to));
        RowNames { partition, from, to, member: &self.member, flow: &self.flow, end: &self.end_local }
    }

    /// What does not change about `p`'s rows, while nobody joins.
    fn shape(&mut self, t: &Tables, p: u32) -> Arc<[u8]> {
        let partition = &self.partitions[p as usize];
        if let Some(shape) = &partition.shape {
            return Arc::clone(shape);
        }
        let port = |q: u32| if self.port_partition[q as usize] == p { self.port_local[q as usize] } else { NONE };
        let shape: Arc<[u8]> = shape(t, partition, &|n| self.local_nic(p, n), &port).into();
        self.partitions[p as usize].shape = Some(Arc::clone(&shape));
        shape
    }

    /// What `p`'s counters gained since its episode began or the last cut.
    fn deltas(&self, t: &Tables, p: u32) -> Checkpoint {
        let partition = &self.partitions[p as usize];
        let nic =
            |(&n, base): (&u32, &(u64, u64))| (t.nics[n as usize].tx_bytes - base.0, t.nics[n as usize].hops - base.1);
        let port = |(&q, base): (&u32, &PortBase)| port_delta(t, q, base);
        let member = |m: &crate::engine::fold::run::partition::Member| {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            CounterDelta {
                una: tx.snd_una - m.tx.snd_una,
                sent_bytes: tx.sent_bytes - m.tx.sent_bytes,
                arrived_bytes: rx.arrived_bytes - m.rx.arrived_bytes,
                milestone: rx.milestone.wrapping_sub(m.rx.milestone),
                n_sent: tx.n_sent.wrapping_sub(m.tx.n_sent),
                n_acks: rx.n_acks.wrapping_sub(m.rx.n_acks),
            }
        };
        Checkpoint {
            at: 0,
            pieces: Vec::new(),
            continuations: Vec::new(),
            nics: partition.nics.iter().zip(&partition.nic_base).map(nic).collect(),
            ports: partition.ports.iter().zip(&partition.port_base).map(port).collect(),
            peaks: partition.peaks.clone(),
            members: partition.members.iter().map(member).collect(),
        }
    }

    /// Gains of all rows of `p` count from here.
    fn rebase(&mut self, t: &mut Tables, p: u32) {
        let to = RowCounts::of(&self.partitions[p as usize]);
        self.rebase_range(t, p, RowCounts::default(), to);
    }

    fn rebase_range(&mut self, t: &mut Tables, p: u32, from: RowCounts, to: RowCounts) {
        let partition = &mut self.partitions[p as usize];
        for k in from.nics..to.nics {
            let row = &t.nics[partition.nics[k] as usize];
            partition.nic_base[k] = (row.tx_bytes, row.hops);
        }
        for k in from.ports..to.ports {
            let row = &mut t.ports[partition.ports[k] as usize];
            let max_q = partition.port_base[k].max_q.max(row.max_q);
            row.max_q = row.q_bytes;
            partition.port_base[k] =
                PortBase { tx_bytes: row.tx_bytes, hops: row.hops, max_q, q_area: row.q_area, marks: row.marks };
        }
        for k in from.ends..to.ends {
            partition.peaks[k] = self.guard.coarse(t.shared[(SHARED_HEADER + partition.ends[k]) as usize]);
        }
        for m in &mut partition.members[from.members..to.members] {
            (m.tx, m.rx) = (t.flow_tx[m.flow as usize], t.flow_rx[m.flow as usize]);
            // Bytes behind those that the network was given are not there yet, for it.
            let behind: u64 = m.posted[m.at_checkpoint.given..m.at_checkpoint.posted]
                .iter()
                .map(|&(i, _)| t.tasks[i as usize].bytes)
                .sum();
            m.tx.size -= behind;
        }
    }
}

pub fn full(e: TooManyPackets) -> Stop {
    Stop::Fail(e.to_string())
}

/// What port `q` gained since `base`.
pub fn port_delta(t: &Tables, q: u32, base: &PortBase) -> PortDelta {
    let row = &t.ports[q as usize];
    PortDelta {
        tx_bytes: row.tx_bytes - base.tx_bytes,
        hops: row.hops - base.hops,
        max_q: row.max_q,
        q_area: row.q_area - base.q_area,
        marks: row.marks - base.marks,
    }
}

/// Packets that have left the ports of `part` since its episode began or the last cut.
fn hops(t: &Tables, partition: &Partition) -> u64 {
    let nics =
        partition.nics.iter().zip(&partition.nic_base).map(|(&n, base)| t.nics[n as usize].hops - base.1).sum::<u64>();
    nics + partition
        .ports
        .iter()
        .zip(&partition.port_base)
        .map(|(&q, base)| t.ports[q as usize].hops - base.hops)
        .sum::<u64>()
}
