//! Cuts: every few thousand packets a partition's state is looked up itself. Whatever led there, what follows is the same; so a pattern that repeats within a collective
//! is simulated once, and known from its second period on.

use std::sync::Arc;
use std::time::Instant;

use super::canon::{Form, shape};
use super::claims::is_free;
use super::memo::{Cut, Gain, Lead, Node, Piece, PortEnd};
use super::part::{Base, Part, PortBase, Script, Standing};
use super::run::Run;
use super::state::{self, Counts, Names};
use super::watch::Steady;
use super::{Stop, because};
use crate::columns::{NEVER, NONE, SHARED_HEADER, Tables};
use crate::engine::grow::TooManyPackets;

/// Packets between cuts, at least: a state costs as much as simulating a few hundred.
pub const HOPS_A_CUT: u64 = 2048;
/// And as many for every byte of the last state.
const BYTES_A_HOP: u64 = 1;

impl Run {
    /// Partition `p` is about to be simulated from `at`, when it is the earliest of all: where it stands may be known, and it may have fallen apart. Returns whether its turn
    /// is over by that. Not where what is steady is skipped: there cuts are part of what is decided, at instants of their own ([`Run::inspect`]).
    pub(super) fn cut(&mut self, t: &mut Tables, p: u32, at: u64) -> bool {
        let part = &self.parts[p as usize];
        let (Some(script), false, true) =
            (&part.script, Run::is_steadying(t), part.moved && at > part.start && part.reached <= at)
        else {
            return false;
        };
        if !script.pending.is_empty() || script.node.body().cut.is_some() || hops(t, part) < part.due {
            return false;
        }
        let began = Instant::now();
        let pieces = self.pieces(t, p);
        let over = self.divide(t, p, at, pieces, &[]);
        self.stats.cutting += began.elapsed();
        over
    }

    /// It is time to look at live partition `p`: what of it is steady falls asleep, and now and then it is cut.
    /// PRECONDITION: all before `at` has happened, nothing at or after.
    pub(super) fn inspect(&mut self, t: &mut Tables, p: u32, at: u64) {
        self.parts[p as usize].covered = self.parts[p as usize].covered.max(at);
        self.flush_covered(p, at);
        self.hold(p);
        let full = self.look(t, p);
        let due = hops(t, &self.parts[p as usize]) >= self.parts[p as usize].due;
        if !full && !due {
            self.go_on(t, p);
            return;
        }
        let began = Instant::now();
        let pieces = self.pieces(t, p);
        if !full && pieces.len() == 1 {
            self.stats.cutting += began.elapsed();
            self.go_on(t, p);
            return;
        }
        let steady: Vec<Option<Steady>> = pieces
            .iter()
            .map(|piece| {
                if !full {
                    return None;
                }
                let all =
                    || (0..self.parts[p as usize].members.len() as u32).filter(|&m| self.works(t, p, m)).collect();
                let working = if pieces.len() == 1 { all() } else { piece.working.clone() };
                self.steady(t, p, &working, pieces.len() == 1)
            })
            .collect();
        if steady.iter().any(Option::is_some) || due {
            self.divide(t, p, at, pieces, &steady);
        } else {
            self.go_on(t, p);
        }
        self.stats.cutting += began.elapsed();
    }

    /// A look at `p` was without consequences: nothing happens to it before its next event or the next look.
    fn go_on(&mut self, t: &Tables, p: u32) {
        self.arm(t, p);
        let known = self.ahead(t, p).min(self.parts[p as usize].watch.next());
        self.flush_covered(p, known);
    }

    /// Partition `p` becomes `pieces`; those that are `steady` (empty: none) fall asleep, of the others what follows may be known. Returns whether something else than going
    /// on is to be done.
    fn divide(&mut self, t: &mut Tables, p: u32, at: u64, mut pieces: Vec<Piece>, steady: &[Option<Steady>]) -> bool {
        let start = self.parts[p as usize].start;
        // Its claim ends with this: until the cut is there nobody else need find it.
        let before = self.parts[p as usize].script.take();
        let scripted = before.is_some();
        self.parts[p as usize].faith = None;
        self.prune(p);
        let gains = self.gains(t, p);
        self.tell_peaks(t, p, at);
        self.stats.simulated +=
            gains.nics.iter().map(|g| g.1).sum::<u64>() + gains.ports.iter().map(|g| g.hops).sum::<u64>();
        let part = &self.parts[p as usize];
        let numbers: Vec<u32> = part.flow_ids.iter().chain(&part.ancestors).copied().collect();
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
        let mut leads = Vec::new();
        let mut over = !whole;
        for (k, (q, piece)) in self.fall_apart(t, p, &pieces).into_iter().zip(&mut pieces).enumerate() {
            if !whole && piece.working.is_empty() {
                self.parts[q as usize].start = at;
                leads.push(Lead::Rest(self.write_down(t, q, at).into()));
                piece.ancestors = places(&self.parts[q as usize].ancestors);
                self.dissolve(t, q);
                continue;
            }
            if let Some(Some(steady)) = steady.get(k) {
                let steady = if whole { steady.clone() } else { steady.of(piece) };
                // Asleep its ingresses are taken to hold what they held before.
                let peaks = self.parts[q as usize].peaks.clone();
                self.rebase(t, q);
                self.parts[q as usize].peaks = peaks;
                let sleep = Arc::new(self.lull(t, q, at, &steady));
                leads.push(Lead::Sleep(Arc::clone(&sleep)));
                state::clear(t, &self.parts[q as usize]);
                self.fall_asleep(t, q, sleep, at, scripted);
                self.sample(t, q);
                over = true;
            } else {
                leads.extend(self.resume(t, q, at, scripted));
                over |= self.parts[q as usize].replay;
            }
            piece.ancestors = places(&self.parts[q as usize].ancestors);
            if over {
                let part = &self.parts[q as usize];
                let next = if part.nap.is_some() {
                    self.next_told(t, q)
                } else if part.replay {
                    at
                } else {
                    self.ahead(t, q)
                };
                self.call_part(q, next);
            }
        }
        debug_assert!(traced || !scripted, "an event goes back to nobody known");
        if let (Some(script), Some(memo), true) = (&before, &self.memo, traced) {
            let mut body = script.node.body();
            body.known = body.known.max(at - start);
            let cut = Cut { at: at - start, pieces, leads, ..gains };
            if cut.leads.len() == cut.pieces.len() && body.cut.is_none() && memo.room(cut.bytes()) {
                body.cut = Some(Arc::new(cut));
            }
        }
        over
    }

    /// Partition `p`, whose rows stand in the tables as of `at`, goes on from there; where that is known, it is looked up. Gives its node.
    pub(super) fn resume(&mut self, t: &mut Tables, p: u32, at: u64, scripted: bool) -> Option<Lead> {
        self.parts[p as usize].start = at;
        let bytes = if scripted || Run::is_steadying(t) { self.write_down(t, p, at) } else { Vec::new() };
        let due = self.until_next(state::weight(&bytes));
        let found = if scripted { self.find(t, p, at, bytes) } else { None };
        self.rebase(t, p);
        let part = &mut self.parts[p as usize];
        part.moved = false;
        part.due = due;
        part.script = None;
        part.watch.reset(at);
        let mut lead = None;
        if let Some((node, known)) = found {
            lead = Some(Lead::State(Arc::clone(&node)));
            part.script = Some(Script::new(Arc::clone(&node)));
            if known {
                state::clear(t, part);
                self.stand(p, node, at);
            }
        }
        self.forget_rule(p);
        self.arm(t, p);
        if !self.parts[p as usize].replay {
            // Its likes that come to the same at this instant follow it.
            let next = self.ahead(t, p).min(self.parts[p as usize].watch.next());
            let part = &self.parts[p as usize];
            if let (Some(script), true) = (&part.script, next != NEVER) {
                let mut body = script.node.body();
                body.known = body.known.max(next.saturating_sub(at));
            }
            self.ticket.goes_alone();
        }
        self.hold(p);
        lead
    }

    /// The node of what `p` is at `at`, `bytes` its state, and whether something is known of it. `None`: the memo is full.
    fn find(&mut self, t: &mut Tables, p: u32, at: u64, bytes: Vec<u8>) -> Option<(Arc<Node>, bool)> {
        let memo = self.memo.clone()?;
        let mut key = Form(vec![b'S']);
        key.0.extend(Form::head(t, at, &self.calm).0);
        key.0.extend_from_slice(&self.shape(t, p));
        let part = &self.parts[p as usize];
        key.u32(part.ancestors.len() as u32);
        part.ancestors.iter().for_each(|&id| key.id(part, id));
        match &self.parts[p as usize].faith {
            Some(sleep) => sleep.put(&mut key),
            None => key.u32(u32::MAX),
        }
        key.0.extend_from_slice(&bytes);
        let (node, known) = memo.state(key.0, bytes.len(), self.ticket.by(at))?;
        let body = node.body();
        let known = known && (body.known > 0 || body.cut.is_some() || body.end.is_some());
        drop(body);
        let known = known || self.ticket.is_foreign(&node);
        if known {
            self.ticket.meet(&node, at, || is_free(&self.parts, p));
        }
        self.stats.states += 1;
        self.stats.states_known += u64::from(known);
        Some((node, known))
    }

    /// The rows of `p`, which is looked up, come to the end of what its node knows: counters gain, what the state says is read when it is needed.
    /// PRECONDITION: what `cut` leads to was reached.
    pub(super) fn pass(&mut self, t: &mut Tables, p: u32, cut: &Cut) -> Result<(), Stop> {
        self.stats.hits += 1;
        let part = &self.parts[p as usize];
        for (&n, gain) in part.nics.iter().zip(&cut.nics) {
            t.nics[n as usize].tx_bytes += gain.0;
            t.nics[n as usize].hops += gain.1;
        }
        for (&q, gain) in part.ports.iter().zip(&cut.ports) {
            gain.count(&mut t.ports[q as usize]);
        }
        for (m, gain) in part.members.iter().zip(&cut.members) {
            let (tx, rx) = (&mut t.flow_tx[m.flow as usize], &mut t.flow_rx[m.flow as usize]);
            tx.snd_una += gain.una;
            tx.sent_bytes += gain.sent_bytes;
            tx.n_sent = tx.n_sent.wrapping_add(gain.n_sent);
            rx.arrived_bytes += gain.arrived_bytes;
            rx.milestone = rx.milestone.wrapping_add(gain.milestone);
            rx.n_acks = rx.n_acks.wrapping_add(gain.n_acks);
        }
        let at = part.start + cut.at;
        self.parts[p as usize].peaks.clone_from(&cut.peaks);
        self.tell_peaks(t, p, at);
        self.prune(p);
        for (q, lead) in self.fall_apart(t, p, &cut.pieces).into_iter().zip(&cut.leads) {
            self.parts[q as usize].start = at;
            match lead {
                Lead::State(node) => {
                    let part = &mut self.parts[q as usize];
                    part.moved = false;
                    part.script = Some(Script::new(Arc::clone(node)));
                    part.watch.reset(at);
                    part.faith = None;
                    self.forget_rule(q);
                    self.stand(q, Arc::clone(node), at);
                    if cut.pieces.len() > 1 {
                        let next = if self.parts[q as usize].replay { self.next_told(t, q) } else { self.ahead(t, q) };
                        self.call_part(q, next);
                    }
                }
                Lead::Sleep(sleep) => {
                    self.fall_asleep(t, q, Arc::clone(sleep), at, true);
                    self.sample(t, q);
                    let next = self.next_told(t, q);
                    self.call_part(q, next);
                }
                // To start over is all that is left in mid-way.
                Lead::Shelved(_) => return Err(Stop::Abandon(because::SHELF)),
                Lead::Rest(bytes) => {
                    state::read(t, bytes, self.names(q, None), at, self.limit).map_err(full)?;
                    self.dissolve(t, q);
                }
            }
        }
        Ok(())
    }

    /// Packets from a state of this weight to the next cut.
    fn until_next(&self, weight: u64) -> u64 {
        self.cut_hops.max(weight * self.cut_hops / HOPS_A_CUT / BYTES_A_HOP)
    }

    /// All rows of `p` are in the state `node` as of `at`, and not in the tables.
    fn stand(&mut self, p: u32, node: Arc<Node>, at: u64) {
        let part = &mut self.parts[p as usize];
        part.replay = true;
        part.bases = vec![Base { node, at, from: Counts::default(), to: Counts::of(part) }];
    }

    /// The rows of `p`, which is looked up, as they were when its episode began or at the last cut.
    pub(super) fn restore(&mut self, t: &mut Tables, p: u32) -> Result<(), Stop> {
        for member in &mut self.parts[p as usize].members {
            (member.seen, member.passed) = (member.cut.posted, member.cut.sent);
        }
        let bases = std::mem::take(&mut self.parts[p as usize].bases);
        for base in &bases {
            let Some(bytes) = base.node.state() else { return Err(Stop::Abandon(because::SHELF)) };
            self.next_unposted(t, p, base);
            state::read(t, bytes, self.names(p, Some(base)), base.at, self.limit).map_err(full)?;
            // What waits behind unsent bytes was there already.
            for m in &self.parts[p as usize].members[base.from.members..base.to.members] {
                let tx = &mut t.flow_tx[m.flow as usize];
                for &(i, _) in &m.posted[m.cut.given..m.cut.posted] {
                    tx.size += t.tasks[i as usize].bytes;
                    tx.msg_post = t.tasks[i as usize].follow;
                }
            }
            self.rebase_range(t, p, base.from, base.to);
        }
        let sizes = bases.iter().filter_map(|b| b.node.state()).map(state::weight);
        // Where what is steady is skipped, cuts are part of what is decided: they come when they do after partitions merged that were simulated (`Run::move_rows`).
        let due = if Run::is_steadying(t) {
            sizes.map(|n| self.until_next(n)).max().unwrap_or(self.cut_hops)
        } else {
            self.until_next(sizes.sum())
        };
        self.parts[p as usize].due = due;
        Ok(())
    }

    /// The queue pairs of looked-up partition `p`, whose next post is the first that the state of the last cut has not seen, as they were then.
    pub(super) fn restore_members(&mut self, t: &mut Tables, p: u32) {
        let bases = std::mem::take(&mut self.parts[p as usize].bases);
        for base in &bases {
            let Some(bytes) = base.node.state() else { continue };
            let next: Vec<u32> =
                self.parts[p as usize].members.iter().map(|m| t.flow_tx[m.flow as usize].msg_post).collect();
            self.next_unposted(t, p, base);
            state::read_members(t, bytes, self.names(p, Some(base)), base.at);
            for (m, next) in self.parts[p as usize].members.iter().zip(next) {
                t.flow_tx[m.flow as usize].msg_post = next;
            }
        }
    }

    /// Pointers to the next message of each queue pair go back to the first that the state `base` has not seen.
    fn next_unposted(&self, t: &mut Tables, p: u32, base: &Base) {
        for m in &self.parts[p as usize].members[base.from.members..base.to.members] {
            if let Some(&(i, _)) = m.posted.get(m.cut.given) {
                t.flow_tx[m.flow as usize].msg_post = i;
            }
        }
    }

    /// Messages that are over are counted no more.
    pub(super) fn prune(&mut self, p: u32) {
        for m in &mut self.parts[p as usize].members {
            let gone = m.got.min(m.done);
            m.posted.drain(..gone);
            m.got -= gone;
            m.done -= gone;
            m.given -= gone;
            m.sent = m.sent.saturating_sub(gone);
            m.seen = m.seen.saturating_sub(gone);
            m.passed = m.passed.saturating_sub(gone);
            m.known = true;
            m.cut = Standing { posted: m.posted.len(), given: m.given, sent: m.sent };
        }
    }

    /// The state of `p`, whose rows stand in the tables as of `at`.
    pub(super) fn write_down(&mut self, t: &mut Tables, p: u32, at: u64) -> Vec<u8> {
        let (bytes, ancestors) = state::write(t, self.names(p, None), at);
        self.parts[p as usize].ancestors = ancestors;
        bytes
    }

    pub(super) fn names<'a>(&'a self, p: u32, base: Option<&Base>) -> Names<'a> {
        let part = &self.parts[p as usize];
        let (from, to) = base.map_or((Counts::default(), Counts::of(part)), |b| (b.from, b.to));
        Names { part, from, to, member: &self.member, flow: &self.flow, end: &self.end_local }
    }

    /// What does not change about `p`'s rows, while nobody joins.
    fn shape(&mut self, t: &Tables, p: u32) -> Arc<[u8]> {
        let part = &self.parts[p as usize];
        if let Some(shape) = &part.shape {
            return Arc::clone(shape);
        }
        let port = |q: u32| if self.port_part[q as usize] == p { self.port_local[q as usize] } else { NONE };
        let shape: Arc<[u8]> = shape(t, part, &|n| self.local_nic(p, n), &port).into();
        self.parts[p as usize].shape = Some(Arc::clone(&shape));
        shape
    }

    /// What `p`'s counters gained since its episode began or the last cut.
    fn gains(&self, t: &Tables, p: u32) -> Cut {
        let part = &self.parts[p as usize];
        let nic =
            |(&n, base): (&u32, &(u64, u64))| (t.nics[n as usize].tx_bytes - base.0, t.nics[n as usize].hops - base.1);
        let port = |(&q, base): (&u32, &PortBase)| port_gain(t, q, base);
        let member = |m: &super::part::Member| {
            let (tx, rx) = (&t.flow_tx[m.flow as usize], &t.flow_rx[m.flow as usize]);
            Gain {
                una: tx.snd_una - m.tx.snd_una,
                sent_bytes: tx.sent_bytes - m.tx.sent_bytes,
                arrived_bytes: rx.arrived_bytes - m.rx.arrived_bytes,
                milestone: rx.milestone.wrapping_sub(m.rx.milestone),
                n_sent: tx.n_sent.wrapping_sub(m.tx.n_sent),
                n_acks: rx.n_acks.wrapping_sub(m.rx.n_acks),
            }
        };
        Cut {
            at: 0,
            pieces: Vec::new(),
            leads: Vec::new(),
            nics: part.nics.iter().zip(&part.nic_base).map(nic).collect(),
            ports: part.ports.iter().zip(&part.port_base).map(port).collect(),
            peaks: part.peaks.clone(),
            members: part.members.iter().map(member).collect(),
        }
    }

    /// Gains of all rows of `p` count from here.
    fn rebase(&mut self, t: &mut Tables, p: u32) {
        let to = Counts::of(&self.parts[p as usize]);
        self.rebase_range(t, p, Counts::default(), to);
    }

    fn rebase_range(&mut self, t: &mut Tables, p: u32, from: Counts, to: Counts) {
        let part = &mut self.parts[p as usize];
        for k in from.nics..to.nics {
            let row = &t.nics[part.nics[k] as usize];
            part.nic_base[k] = (row.tx_bytes, row.hops);
        }
        for k in from.ports..to.ports {
            let row = &mut t.ports[part.ports[k] as usize];
            let max_q = part.port_base[k].max_q.max(row.max_q);
            row.max_q = row.q_bytes;
            part.port_base[k] =
                PortBase { tx_bytes: row.tx_bytes, hops: row.hops, max_q, q_area: row.q_area, marks: row.marks };
        }
        for k in from.ends..to.ends {
            part.peaks[k] = self.calm.coarse(t.shared[(SHARED_HEADER + part.ends[k]) as usize]);
        }
        for m in &mut part.members[from.members..to.members] {
            (m.tx, m.rx) = (t.flow_tx[m.flow as usize], t.flow_rx[m.flow as usize]);
            // Bytes behind those that the network was given are not there yet, for it.
            let behind: u64 = m.posted[m.cut.given..m.cut.posted].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            m.tx.size -= behind;
        }
    }
}

pub fn full(e: TooManyPackets) -> Stop {
    Stop::Fail(e.to_string())
}

/// What port `q` gained since `base`.
pub fn port_gain(t: &Tables, q: u32, base: &PortBase) -> PortEnd {
    let row = &t.ports[q as usize];
    PortEnd {
        tx_bytes: row.tx_bytes - base.tx_bytes,
        hops: row.hops - base.hops,
        max_q: row.max_q,
        q_area: row.q_area - base.q_area,
        marks: row.marks - base.marks,
    }
}

/// Packets that have left the ports of `part` since its episode began or the last cut.
fn hops(t: &Tables, part: &Part) -> u64 {
    let nics = part.nics.iter().zip(&part.nic_base).map(|(&n, base)| t.nics[n as usize].hops - base.1).sum::<u64>();
    nics + part.ports.iter().zip(&part.port_base).map(|(&q, base)| t.ports[q as usize].hops - base.hops).sum::<u64>()
}
