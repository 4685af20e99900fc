//! Ultra Ethernet: the two ends of a flow whose ACKs name several packets, and whose NACKs name one that a switch has trimmed.
//!
//! Positions are sequence numbers of packets: multiples of the payload.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::Transport;

use super::any_order::range;
use super::cc::News;
use super::nic::path_of;
use super::port::{Kind, Packet, Trim};
use super::sender::Sender;
use super::{Case, Sim};

/// Most entropies that a queue pair remembers, with REPS and where they are mixed.
const ENTROPIES: usize = 8;
const MIXED_ENTROPIES: usize = 64;

/// The largest penalty of an entropy.
const LARGEST_PENALTY: u32 = 15;

/// What an answer tells of the packet that it answers, and of others.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    /// Positions that have arrived.
    pub names: Vec<u64>,
    /// Position of the packet that it answers.
    pub position: u64,
    pub marked: bool,
    /// The path of that packet, by its number among those that it chose from.
    pub entropy: u32,
    /// That packet was trimmed at its last hop.
    pub last_hop: bool,
}

/// What a sender knows of the packets between `snd_una` and `snd_nxt`.
#[derive(Clone, Debug)]
pub struct Books {
    payload: u64,
    /// Bytes of a full data packet on the wire.
    pub mtu: u64,
    /// Most packets between `snd_una` and `snd_nxt`.
    range: u64,
    /// Positions above `snd_una` that have arrived.
    sacked: BTreeSet<u64>,
    /// Positions to send again.
    lost: BTreeSet<u64>,
}

impl Books {
    pub fn new(case: &Case) -> Self {
        let t = &case.transport;
        Books {
            payload: t.payload as u64,
            mtu: mtu(t),
            range: range(case),
            sacked: BTreeSet::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Returns the next multiple of the payload at or above `x`.
    pub fn up(&self, x: u64) -> u64 {
        x.next_multiple_of(self.payload)
    }

    /// New packets may be sent with this much between `snd_una` and `snd_nxt`.
    pub fn in_range(&self, between: u64) -> bool {
        between < self.range * self.payload
    }

    /// Returns the packet to send again next, if there is one.
    pub fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// Packets in flight.
    pub fn flight(&self, snd_una: u64, snd_nxt: u64) -> u64 {
        (snd_nxt - snd_una) / self.payload - self.sacked.len() as u64 - self.lost.len() as u64
    }

    /// Packets to send again and those that were never sent, where `size` bytes are posted.
    pub fn packets_left(&self, snd_nxt: u64, size: u64) -> u64 {
        self.lost.len() as u64 + size.saturating_sub(snd_nxt).div_ceil(self.payload)
    }

    fn knows(&self, s: u64) -> bool {
        self.sacked.contains(&s) || self.lost.contains(&s)
    }

    /// Takes in an ACK that moves `snd_una` on to `una` and names some positions. Returns the number of packets that it is the first to tell of.
    fn take_ack(&mut self, snd_una: u64, una: u64, names: &[u64]) -> u64 {
        let passed = (snd_una..una).step_by(self.payload as usize);
        let mut n = passed.filter(|s| !self.sacked.contains(s)).count() as u64;
        self.sacked = self.sacked.split_off(&una);
        self.lost = self.lost.split_off(&una);
        for &s in names {
            if s >= una && self.sacked.insert(s) {
                self.lost.remove(&s);
                n += 1;
            }
        }
        n
    }

    /// The packet at `s` was trimmed. Returns whether that is news.
    fn take_nack(&mut self, snd_una: u64, s: u64) -> bool {
        s >= snd_una && !self.knows(s) && self.lost.insert(s)
    }

    /// Everything that has not arrived is lost. Returns the positions that were not lost before.
    fn lose_all(&mut self, snd_una: u64, snd_nxt: u64) -> Vec<u64> {
        let missing: Vec<u64> = (snd_una..snd_nxt).step_by(self.payload as usize).filter(|&s| !self.knows(s)).collect();
        self.lost.extend(&missing);
        missing
    }
}

/// Bytes of a full data packet on the wire.
pub fn mtu(t: &Transport) -> u64 {
    t.payload as u64 + t.data_overhead as u64
}

/// What a sender knows of its entropies.
#[derive(Clone, Debug, Default)]
pub struct Entropies {
    /// Those whose packets arrived without a mark, oldest first.
    list: VecDeque<u32>,
    /// Penalties above 0, by entropy.
    penalties: BTreeMap<u32, u32>,
    /// Number of the walk's next step.
    step: u32,
    /// Entropy of the last packet that was sent for each position.
    of_position: BTreeMap<u64, u32>,
}

impl Entropies {
    /// An answer came, and its queue pair is not finished.
    fn note(&mut self, t: &Transport, answer: &Packet) {
        let mixed = is_mixed(t);
        let (entropy, marked) = (answer.echo.entropy, answer.echo.marked);
        let arrived = answer.kind == Kind::Ack || answer.echo.last_hop;
        if mixed && (marked || !arrived) {
            self.penalise(entropy, if arrived { 1 } else { 4 });
        }
        if marked || !arrived {
            return;
        }
        if self.list.len() == if mixed { MIXED_ENTROPIES } else { ENTROPIES } {
            self.list.pop_front();
        }
        self.list.push_back(entropy);
    }

    fn penalise(&mut self, entropy: u32, more: u32) {
        let penalty = self.penalties.entry(entropy).or_default();
        *penalty = (*penalty + more).min(LARGEST_PENALTY);
    }

    /// The entropy that a walk comes to, of `paths`.
    fn walk(&mut self, t: &Transport, flow: u32, paths: u32) -> u32 {
        let mut with_penalty = 0;
        loop {
            let entropy = path_of(t, flow, self.step, 0, paths);
            self.step = self.step.wrapping_add(1);
            let Some(penalty) = self.penalties.get_mut(&entropy).filter(|penalty| **penalty > 0) else {
                return entropy;
            };
            if with_penalty == paths {
                return entropy;
            }
            *penalty -= 1;
            with_penalty += 1;
        }
    }

    /// A message starts fresh.
    pub fn forget_good_ones(&mut self) {
        self.list.clear();
    }

    /// Packets to these positions have become lost at a deadline.
    pub fn time_out(&mut self, positions: &[u64]) {
        for position in positions {
            self.penalise(self.of_position[position], LARGEST_PENALTY);
        }
    }
}

/// Entropies are mixed: kept and walked over.
fn is_mixed(t: &Transport) -> bool {
    t.recycles_paths && t.spray_in_turn
}

impl Sender {
    /// The path that the next data packet takes, of `paths`. The packet is that at position `seq`.
    pub fn choose_path(&mut self, t: &Transport, flow: u32, paths: u32, seq: u64) -> u32 {
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        let kept = if paths == 1 { None } else { self.entropies.list.pop_front() };
        let path = match kept {
            // With other paths than it had, an entropy may be larger than their number.
            Some(entropy) => entropy % paths,
            None if paths == 1 => 0,
            None if is_mixed(t) => self.entropies.walk(t, flow, paths),
            None => path_of(t, flow, number, 0, paths),
        };
        if is_mixed(t) {
            self.entropies.of_position.insert(seq, path);
        }
        path
    }

    /// Whether the packet that is sent next, at position `seq`, asks for an ACK.
    pub fn asks(&self, seq: u64, payload: u32) -> bool {
        let Some(books) = &self.uec else { return false };
        let flight = books.flight(self.snd_una, self.snd_nxt);
        let again = seq < self.snd_nxt;
        let last = books.lost.is_empty() && seq + payload as u64 >= self.size;
        again || last || self.spends_last_credit() || !self.has_space(books, flight + 2)
    }

    /// The congestion window has space for `packets`.
    fn has_space(&self, books: &Books, packets: u64) -> bool {
        self.cc.cwnd().is_none_or(|cwnd| packets * books.mtu <= cwnd)
    }

    /// There is no space for another packet.
    pub fn is_full(&self, books: &Books) -> bool {
        !self.has_space(books, books.flight(self.snd_una, self.snd_nxt) + 1)
    }

    /// The packet at position `seq` is sent.
    pub fn note_sent_by_books(&mut self, seq: u64, payload: u32) {
        let books = self.uec.as_mut().expect("there are books");
        if !books.lost.remove(&seq) {
            self.snd_nxt = books.up(seq + payload as u64);
        }
    }
}

/// What a receiver has not acknowledged, and what it has placed beyond the position that it expects.
#[derive(Clone, Debug, Default)]
pub struct Held {
    beyond: BTreeSet<u64>,
    /// Payload bytes since the last ACK.
    since: u64,
    /// Packets that no ACK has named yet.
    names: Vec<u64>,
    has_answered: bool,
}

impl Held {
    /// Takes in data while `expected` is expected, which moves on. Returns what is due.
    pub fn take(&mut self, t: &Transport, ends: &[u64], expected: &mut u64, data: &Packet) -> Option<Kind> {
        let s = data.seq;
        let arrived = s < *expected || self.beyond.contains(&s);
        if data.trim != Trim::Not {
            if !arrived {
                self.has_answered = true;
                return Some(Kind::Nack);
            }
            self.names.push(s);
            return self.due(true);
        }
        self.since += data.payload as u64;
        self.names.push(s);
        let payload = t.payload as u64;
        let mut at_end = false;
        if s > *expected {
            self.beyond.insert(s);
        } else if s == *expected {
            let old = *expected;
            *expected += payload;
            while self.beyond.remove(expected) {
                *expected += payload;
            }
            // An end is also reached when what was placed beyond it makes the position jump over it.
            let reached = old + 1..=*expected;
            at_end = ends.iter().any(|end| reached.contains(&end.next_multiple_of(payload)));
        }
        let urgent = arrived || data.marked || data.asks;
        self.due(urgent || !self.has_answered || self.since >= t.ack_interval || at_end)
    }

    fn due(&mut self, is_due: bool) -> Option<Kind> {
        self.has_answered |= is_due;
        is_due.then_some(Kind::Ack)
    }

    /// What the answer to `data` carries. An ACK names all that is held.
    pub fn echo(&mut self, kind: Kind, data: &Packet) -> Echo {
        let mut names = Vec::new();
        if kind == Kind::Ack {
            names = std::mem::take(&mut self.names);
            self.since = 0;
        }
        Echo {
            names,
            position: data.seq,
            marked: data.marked,
            entropy: data.entropy,
            last_hop: data.trim == Trim::LastHop,
        }
    }
}

impl Sim<'_> {
    /// The sender notes what has arrived and what was trimmed. Returns `None` if the answer is an old NACK.
    pub(super) fn take_by_books(&mut self, answer: &Packet) -> Option<News> {
        let t = &self.case.transport;
        let now = self.now;
        let sender = &mut self.senders[answer.flow as usize];
        if t.recycles_paths && self.routes[answer.flow as usize].count(Kind::Data) > 1 {
            sender.entropies.note(t, answer);
        }
        let books = sender.uec.as_mut().expect("there are books");
        let old = sender.snd_una;
        let mut n = 0;
        if answer.kind == Kind::Nack {
            if !books.take_nack(old, answer.echo.position) {
                if old >= sender.snd_nxt {
                    self.set_deadline_for_request(answer.flow);
                }
                return None;
            }
        } else {
            sender.snd_una = old.max(answer.seq);
            n = books.take_ack(old, sender.snd_una, &answer.echo.names);
        }
        if sender.snd_una > old {
            sender.retries = 0;
        }
        if sender.snd_una >= sender.size {
            sender.finish_ps = Some(now);
            sender.forget_asking();
        }
        if sender.snd_una >= sender.snd_nxt {
            self.set_deadline_for_request(answer.flow);
        } else if n > 0 || answer.kind == Kind::Nack {
            self.set_deadline_by_books(answer.flow, now.max(answer.ts + t.rto_ps));
        }
        Some(News { acked: n * t.payload as u64, loss: answer.kind == Kind::Nack })
    }

    /// Nothing is in flight, so there is a deadline only if credit was asked for and the receiver may not know of it.
    fn set_deadline_for_request(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        sender.deadline = None;
        if let Some(asked) = sender.asked() {
            self.set_deadline_by_books(flow, self.now.max(asked + self.case.transport.rto_ps));
        }
    }

    /// The deadline is `t`, which may be earlier than the one in force. Events of others find no deadline at their time.
    pub(super) fn set_deadline_by_books(&mut self, flow: u32, t: u64) {
        self.senders[flow as usize].deadline = Some(t);
        self.push_deadline(flow, t);
    }

    /// An event for a deadline: that in force, or one of before.
    pub(super) fn rto_by_books(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        if sender.deadline != Some(self.now) {
            return;
        }
        let books = sender.uec.as_mut().expect("there are books");
        let late = books.lose_all(sender.snd_una, sender.snd_nxt);
        if is_mixed(&self.case.transport) && self.routes[flow as usize].count(Kind::Data) > 1 {
            sender.entropies.time_out(&late);
        }
        let k = late.len() as u64;
        sender.deadline = None;
        let nic: ArcIdx = sender.nic;
        let next = sender.asked().map(|asked| asked + self.case.transport.rto_ps);
        if k > 0 {
            sender.cc.timed_out(k);
            sender.spare_one();
            if self.gives_up(flow) {
                return;
            }
        } else if let Some(next) = next {
            if next > self.now {
                self.set_deadline_by_books(flow, next);
            } else {
                sender.spare_one();
            }
        }
        self.kick(nic);
    }
}
