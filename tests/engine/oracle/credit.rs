//! Receiver credit: what senders may spend, what receivers owe them, and the PULLs of a NIC that hands it out.

use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::Transport;

use super::Sim;
use super::arith::{mul_shr, tx};
use super::nic::path_of;
use super::port::{Kind, Packet};
use super::sender::Sender;
use super::uec::mtu;

/// A sender's `want` counts modulo this.
const RING: u64 = 1 << 20;

/// What a sender has of credit, in packets.
#[derive(Clone, Copy, Debug)]
pub struct Purse {
    /// What a burst begins with.
    burst: u64,
    /// The largest amount that is kept and asked for.
    window: u64,
    credit: u64,
    /// What the receiver has given in all, as far as PULLs told.
    pulled: u64,
    /// NACKs that came.
    nacked: u64,
    /// When the last packet was sent that left no credit, until it or a later one is answered.
    asked: Option<u64>,
}

/// What a receiver has given a sender in all, and what that one wants besides; in packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Debt {
    given: u64,
    nacks: u64,
    wanted: u64,
}

impl Purse {
    /// Returns `None` where senders need no credit.
    pub fn new(t: &Transport) -> Option<Self> {
        t.credit.map(|credit| Purse {
            burst: credit.burst_packets as u64,
            window: credit.window_packets as u64,
            credit: 0,
            pulled: 0,
            nacked: 0,
            asked: None,
        })
    }

    /// A PULL says how much its receiver has given in all.
    fn take(&mut self, given: u64) {
        if given > self.pulled {
            self.credit = (self.credit + given - self.pulled).min(self.window);
            self.pulled = given;
        }
    }

    /// The `want` of a packet after which `need` packets are left, where `m` queue pairs share the NIC.
    fn want(&self, need: u64, m: u64) -> u64 {
        let demand = if need <= self.credit { 0 } else { ((need - self.credit) / m).max(1) };
        (self.pulled + RING - self.nacked % RING + demand) % RING
    }
}

impl Debt {
    /// A data packet came that carries `want`.
    fn note(&mut self, want: u64, nacked: bool) {
        // It took credit and brought nothing.
        self.wanted += u64::from(nacked);
        self.nacks += u64::from(nacked);
        let d = (want + self.nacks + RING - self.given % RING) % RING;
        if d < RING / 2 {
            self.wanted = self.wanted.max(d);
        }
    }

    fn grant(&mut self, packets: u64) {
        self.given += packets;
        self.wanted = self.wanted.saturating_sub(packets);
    }
}

impl Sender {
    /// Bytes are about to be posted. If nothing is left to send, they begin a burst, which needs no grant at first.
    pub fn before_post(&mut self) {
        let nothing_lost = self.uec.as_ref().is_none_or(|books| books.first_lost().is_none());
        if nothing_lost && self.snd_nxt >= self.size {
            self.begin_burst();
        }
    }

    pub fn begin_burst(&mut self) {
        if let Some(purse) = &mut self.purse {
            purse.credit = purse.credit.max(purse.burst);
        }
    }

    pub fn lacks_credit(&self) -> bool {
        self.purse.is_some_and(|purse| purse.credit == 0)
    }

    /// The next packet takes all credit that is left.
    pub fn spends_last_credit(&self) -> bool {
        self.purse.is_some_and(|purse| purse.credit == 1)
    }

    /// Pays for a packet, which is in the books already. Returns its `want`, where `m` queue pairs share the NIC.
    pub fn pay(&mut self, m: usize, now: u64) -> u64 {
        let (Some(purse), Some(books)) = (&mut self.purse, &self.uec) else { return 0 };
        purse.credit -= 1;
        if purse.credit == 0 {
            purse.asked = Some(now);
        }
        let mut need = books.packets_left(self.snd_nxt, self.size).min(purse.window);
        if let Some(cwnd) = self.cc.cwnd() {
            need = need.min(cwnd / books.mtu + 1);
        }
        purse.want(need, m as u64)
    }

    /// An answer came to data that was sent at `ts`.
    pub fn note_answer(&mut self, ts: u64, is_nack: bool) {
        if let Some(purse) = &mut self.purse {
            purse.nacked += u64::from(is_nack);
            purse.asked = purse.asked.filter(|&asked| asked > ts);
        }
    }

    /// When credit was asked for, if the receiver may not know of it.
    pub fn asked(&self) -> Option<u64> {
        self.purse.and_then(|purse| purse.asked)
    }

    /// Everything is acknowledged: nothing is asked for any more.
    pub fn forget_asking(&mut self) {
        if let Some(purse) = &mut self.purse {
            purse.asked = None;
        }
    }

    /// A deadline came: one packet may be sent in any case.
    pub fn spare_one(&mut self) {
        if let Some(purse) = &mut self.purse {
            purse.credit = purse.credit.max(1);
            purse.asked = None;
        }
    }
}

impl Sim<'_> {
    /// The receiver at `nic` takes note of what a data packet's sender wants. Returns whether it grants at once.
    pub(super) fn note_want(&mut self, nic: ArcIdx, data: &Packet, nacked: bool) -> bool {
        if self.case.transport.credit.is_none() {
            return false;
        }
        let debt = &mut self.receivers[data.flow as usize].debt;
        debt.note(data.credit, nacked);
        let waiting = &mut self.nics[nic as usize].waiting;
        if debt.wanted > 0 && !waiting.contains(&data.flow) {
            waiting.push_back(data.flow);
        }
        let grants = !waiting.is_empty() && !self.nics[nic as usize].is_armed();
        if grants {
            self.grant(nic);
        }
        grants
    }

    /// The queue pair that waits longest gets its next packets. Nothing is done if none waits.
    pub(super) fn grant(&mut self, nic: ArcIdx) {
        let t = &self.case.transport;
        let Some(rules) = t.credit else { return };
        let state = &mut self.nics[nic as usize];
        let Some(flow) = state.waiting.pop_front() else { return };
        let packets = rules.grant_packets as u64;
        let debt = &mut self.receivers[flow as usize].debt;
        debt.grant(packets);
        let given = debt.given;
        if debt.wanted > 0 {
            state.waiting.push_back(flow);
        }
        let pull = self.pull(nic, flow, given);
        let class = self.class_of(flow);
        self.nics[nic as usize].acks[class].push_back(pull);
        self.pulls += 1;
        let full = tx(mtu(t) as u32, self.ports[nic as usize].rate_bps, t.clock_ps);
        self.arm(nic, self.now + mul_shr(packets * full, rules.stretch_q16.into(), 16));
    }

    /// A PULL takes a path as answers do.
    fn pull(&mut self, nic: ArcIdx, flow: u32, given: u64) -> Packet {
        let t = &self.case.transport;
        let routes = &self.routes[flow as usize];
        let receiver = &mut self.receivers[flow as usize];
        let choice = path_of(t, flow, receiver.sent, 1, routes.count(Kind::Pull));
        receiver.sent = receiver.sent.wrapping_add(1);
        let path = routes.number(Kind::Pull, choice);
        assert_eq!(routes.path(Kind::Pull, path)[0], nic, "the PULL path's NIC");
        Packet { wire: t.ack_bytes, path, hop: 1, credit: given, ..Packet::blank(Kind::Pull, flow, nic, self.now) }
    }

    /// A PULL arrived at its sender's NIC.
    pub(super) fn pulled(&mut self, nic: ArcIdx, pull: &Packet) {
        if let Some(purse) = &mut self.senders[pull.flow as usize].purse {
            purse.take(pull.credit);
        }
        self.kick(nic);
    }

    /// Switches mark nothing that leaves by this port: receivers limit what comes to their hosts.
    pub(super) fn never_marks(&self, arc: ArcIdx) -> bool {
        self.case.transport.credit.is_some() && self.leads_to_host(arc)
    }
}
