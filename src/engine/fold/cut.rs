//! Cuts: every few thousand packets a partition's state is looked up itself. Whatever led there, what follows is the same; so a pattern that repeats within a collective
//! is simulated once, and known from its second period on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Stop;
use super::canon::Form;
use super::claims::is_free;
use super::memo::{Cut, Gain, Lead, Memo, Node, PortEnd};
use super::part::{Base, Part, PortBase, Script, Standing};
use super::run::Run;
use super::state::{self, Counts, Names};
use crate::columns::{NONE, Tables};
use crate::engine::grow::TooManyPackets;

/// Packets between cuts, at least: a state costs as much as simulating a few hundred.
pub const HOPS_A_CUT: u64 = 2048;
/// And as many for every byte of the last state.
const BYTES_A_HOP: u64 = 2;

impl Run {
    /// Partition `p` is about to be simulated from `at`, when it is the earliest of all: where it stands may be known, and it may have fallen apart. Returns whether its turn
    /// is over by that.
    pub(super) fn cut(&mut self, t: &mut Tables, p: u32, at: u64) -> bool {
        let part = &self.parts[p as usize];
        let (Some(script), Some(memo), true) = (&part.script, &self.memo, part.moved && at > part.start && part.reached <= at) else { return false };
        if !script.pending.is_empty() || script.node.body().cut.is_some() || hops(t, part) < part.due {
            return false;
        }
        let (memo, node, start) = (Arc::clone(memo), Arc::clone(&script.node), part.start);
        // Until the cut is there nobody else need find it.
        let claim = self.parts[p as usize].script.as_mut().and_then(|s| s.claim.take());
        let began = Instant::now();
        self.prune(p);
        let gains = self.gains(t, p);
        self.stats.simulated += gains.nics.iter().map(|g| g.1).sum::<u64>() + gains.ports.iter().map(|g| g.hops).sum::<u64>();
        let pieces = self.pieces(t, p);
        let whole = pieces.len() == 1;
        let mut leads = Vec::new();
        let mut over = !whole;
        for (q, piece) in self.fall_apart(t, p, &pieces).into_iter().zip(&pieces) {
            self.parts[q as usize].start = at;
            if !whole && piece.working.is_empty() {
                leads.push(Lead::Rest(state::write(t, self.names(q, None), at).into()));
                self.dissolve(t, q);
                continue;
            }
            let found = self.find(t, q, at, &memo);
            self.rebase(t, q);
            let due = found.as_ref().map_or(0, |f| self.until_next(f.1));
            let part = &mut self.parts[q as usize];
            part.moved = false;
            part.due = due;
            part.script = None;
            if let Some((node, _, known)) = found {
                leads.push(Lead::State(Arc::clone(&node)));
                if !node.wild.load(Ordering::Relaxed) {
                    part.script = Some(Script::new(Arc::clone(&node)));
                    if known {
                        over = true;
                        state::clear(t, part);
                        self.stand(q, node, at);
                    }
                }
            }
            self.hold(q);
            if over {
                let part = &self.parts[q as usize];
                let next = if part.replay { at } else { part.look(t).next };
                self.call_part(q, next);
            }
        }
        let mut body = node.body();
        body.known = body.known.max(at - start);
        let cut = Cut { at: at - start, pieces, leads, ..gains };
        if cut.leads.len() == cut.pieces.len() && memo.room(cut.bytes()) {
            body.cut = Some(Arc::new(cut));
        }
        drop(body);
        drop(claim);
        self.stats.cutting += began.elapsed();
        over
    }

    /// The node of what `p` is at `at`, the bytes of its state, and whether something is known of it. `None`: the memo is full.
    fn find(&mut self, t: &mut Tables, p: u32, at: u64, memo: &Memo) -> Option<(Arc<Node>, usize, bool)> {
        let mut key = Form(vec![b'S']);
        key.0.extend(Form::head(t, at).0);
        key.0.extend_from_slice(&self.shape(t, p));
        let bytes = state::write(t, self.names(p, None), at);
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
        Some((node, bytes.len(), known))
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
        let calm = part.ends.iter().zip(&cut.peaks).all(|(&port, &peak)| self.calm.saw(t, port, peak));
        if !calm {
            return Err(Stop::Abandon);
        }
        let at = part.start + cut.at;
        self.prune(p);
        for (q, lead) in self.fall_apart(t, p, &cut.pieces).into_iter().zip(&cut.leads) {
            self.parts[q as usize].start = at;
            match lead {
                Lead::State(node) => {
                    let part = &mut self.parts[q as usize];
                    part.moved = false;
                    part.script = Some(Script::new(Arc::clone(node)));
                    self.stand(q, Arc::clone(node), at);
                    if node.wild.load(Ordering::Relaxed) {
                        self.forget(t, q, at)?;
                    }
                    if cut.pieces.len() > 1 {
                        let part = &self.parts[q as usize];
                        let next = if part.replay { self.next_told(t, q) } else { part.look(t).next };
                        self.call_part(q, next);
                    }
                }
                // To start over is all that is left in mid-way.
                Lead::Shelved(_) => return Err(Stop::Abandon),
                Lead::Rest(bytes) => {
                    state::read(t, bytes, self.names(q, None), at, self.limit).map_err(full)?;
                    self.dissolve(t, q);
                }
            }
        }
        Ok(())
    }

    /// Packets from a state of `bytes` to the next cut.
    fn until_next(&self, bytes: usize) -> u64 {
        self.cut_hops.max(bytes as u64 * self.cut_hops / HOPS_A_CUT / BYTES_A_HOP)
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
            let Some(bytes) = &base.node.state else { return Err(Stop::Abandon) };
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
        let due = self.until_next(bases.iter().filter_map(|b| b.node.state.as_ref()).map(|s| s.len()).sum());
        self.parts[p as usize].due = due;
        Ok(())
    }

    /// The queue pairs of looked-up partition `p`, whose next post is the first that the state of the last cut has not seen, as they were then.
    pub(super) fn restore_members(&mut self, t: &mut Tables, p: u32) {
        let bases = std::mem::take(&mut self.parts[p as usize].bases);
        for base in &bases {
            let Some(bytes) = &base.node.state else { continue };
            let next: Vec<u32> = self.parts[p as usize].members.iter().map(|m| t.flow_tx[m.flow as usize].msg_post).collect();
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
    fn prune(&mut self, p: u32) {
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

    fn names<'a>(&'a self, p: u32, base: Option<&Base>) -> Names<'a> {
        let part = &self.parts[p as usize];
        let (from, to) = base.map_or((Counts::default(), Counts::of(part)), |b| (b.from, b.to));
        Names { part, from, to, member: &self.member, end: &self.end_local }
    }

    /// What does not change about `p`'s rows, while nobody joins.
    fn shape(&mut self, t: &Tables, p: u32) -> Arc<[u8]> {
        let part = &self.parts[p as usize];
        if let Some(shape) = &part.shape {
            return Arc::clone(shape);
        }
        let port = |q: u32| if self.port_part[q as usize] == p { self.port_local[q as usize] } else { NONE };
        let shape: Arc<[u8]> = state::shape(t, part, &|n| self.local_nic(p, n), &port).into();
        self.parts[p as usize].shape = Some(Arc::clone(&shape));
        shape
    }

    /// What `p`'s counters gained since its episode began or the last cut.
    fn gains(&self, t: &Tables, p: u32) -> Cut {
        let part = &self.parts[p as usize];
        let nic = |(&n, base): (&u32, &(u64, u64))| (t.nics[n as usize].tx_bytes - base.0, t.nics[n as usize].hops - base.1);
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
            part.port_base[k] = PortBase { tx_bytes: row.tx_bytes, hops: row.hops, max_q, q_area: row.q_area, marks: row.marks };
        }
        for k in from.ends..to.ends {
            part.peaks[k] = 0;
        }
        for m in &mut part.members[from.members..to.members] {
            (m.tx, m.rx) = (t.flow_tx[m.flow as usize], t.flow_rx[m.flow as usize]);
            // Bytes behind those that the network was given are not there yet, for it.
            let behind: u64 = m.posted[m.cut.given..m.cut.posted].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            m.tx.size -= behind;
        }
    }
}

fn full(e: TooManyPackets) -> Stop {
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
