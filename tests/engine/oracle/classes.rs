//! Traffic classes: whose turn it is at a port or NIC, and the scan of a NIC that serves several of them.
//!
//! Without classes in the transport all packets are of class 0, and nobody has to choose.

use hyperfold_network::topology::ArcIdx;

use super::port::Item;
use super::{Case, Sim};

/// Number of classes, at least 1.
pub fn n_classes(case: &Case) -> usize {
    case.transport.classes.len().max(1)
}

/// Whether switches pause the class before a buffer overflows.
pub fn is_lossless(case: &Case, class: usize) -> bool {
    case.transport.pfc && case.transport.classes.get(class).is_none_or(|c| c.lossless)
}

/// Whose turn it is at a port or NIC.
#[derive(Clone, Debug)]
pub struct Turns {
    /// By class: bytes that it may send in its turn.
    allowance: Vec<i64>,
    /// By level: the class that was served last.
    last: Vec<usize>,
}

impl Turns {
    pub fn new(case: &Case) -> Self {
        let n = n_classes(case);
        Turns { allowance: vec![0; n], last: vec![0; n] }
    }

    /// A packet of the class is sent.
    pub fn pay(&mut self, class: usize, wire: u32) {
        self.allowance[class] -= i64::from(wire);
    }
}

/// What happened that only classes make happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Choices at which a class of a lower level had to wait.
    pub passed_over: u64,
    /// Choices at which a class had more to send, but no allowance, and another one came.
    pub turns_ended: u64,
    /// Choices at which a class went on within its turn while another one of its level waited.
    pub turns_kept: u64,
    /// Packets that a port sent while another class of it was paused and had something to send.
    pub sent_beside_paused: u64,
    /// Choices of a NIC at which a pause of their class held ACKs back.
    pub acks_held: u64,
    /// ACKs that a NIC sent although their class was paused.
    pub acks_despite_pause: u64,
    /// Times that a NIC sent data while an ACK of another class could have gone.
    pub data_before_acks: u64,
    /// Drops of switches that had no space, by class.
    pub drops: Vec<u64>,
    /// Those of data of lossless classes.
    pub lossless_data_drops: u64,
}

impl ClassCounts {
    pub fn new(case: &Case) -> Self {
        ClassCounts { drops: vec![0; n_classes(case)], ..ClassCounts::default() }
    }
}

impl Sim<'_> {
    pub(super) fn class_of(&self, flow: u32) -> usize {
        if self.case.transport.classes.is_empty() { 0 } else { self.case.flows[flow as usize].class as usize }
    }

    /// Chooses among the classes that have something to send now: `candidates`, by class.
    pub(super) fn choose(&mut self, arc: ArcIdx, candidates: Vec<bool>) -> Option<usize> {
        let classes = &self.case.transport.classes;
        if classes.is_empty() {
            return candidates[0].then_some(0);
        }
        let n = classes.len();
        let all = (0..n).filter(|&c| candidates[c]);
        let level = all.clone().map(|c| classes[c].level).min()?;
        let of_level = |c: usize| candidates[c] && classes[c].level == level;
        let turns = &mut self.ports[arc as usize].turns;
        let last = turns.last[level as usize];
        let counts = &mut self.class_counts;
        counts.passed_over += u64::from(all.clone().any(|c| !of_level(c)));
        let others_wait = all.clone().any(|c| of_level(c) && c != last);
        if of_level(last) && turns.allowance[last] > 0 {
            counts.turns_kept += u64::from(others_wait);
            return Some(last);
        }
        counts.turns_ended += u64::from(of_level(last) && others_wait);
        let next = (1..=n).map(|k| (last + k) % n).find(|&c| of_level(c)).expect("the level has a candidate");
        turns.allowance[next] = turns.allowance[next].min(0) + i64::from(classes[next].quantum_bytes);
        turns.last[level as usize] = next;
        Some(next)
    }

    /// The transmitter is idle, its link is up, and there are classes.
    pub(super) fn kick_nic_by_class(&mut self, nic: ArcIdx) {
        let eligible = self.scan_by_class(nic);
        let may_answer: Vec<bool> = (0..eligible.len()).map(|class| self.may_answer(nic, class)).collect();
        let candidates = (0..eligible.len()).map(|class| may_answer[class] || eligible[class].is_some()).collect();
        self.note_held_acks(nic, &may_answer);
        let Some(class) = self.choose(nic, candidates) else {
            self.sleep(nic);
            return;
        };
        if may_answer[class] {
            let ack = self.nics[nic as usize].acks[class].pop_front().expect("the class has an ACK");
            self.ports[nic as usize].turns.pay(class, ack.wire);
            self.class_counts.acks_despite_pause += u64::from(self.ports[nic as usize].queues[class].paused);
            self.transmit(nic, Item::Packet(ack));
        } else {
            let flow = eligible[class].expect("a candidate without ACKs has data");
            self.class_counts.data_before_acks += u64::from(may_answer.contains(&true));
            self.serve(nic, flow);
            let wire = self.senders[flow as usize].last_wire;
            self.ports[nic as usize].turns.pay(class, wire);
        }
    }

    /// The class has an ACK that may be sent now.
    fn may_answer(&self, nic: ArcIdx, class: usize) -> bool {
        let paused = self.ports[nic as usize].queues[class].paused;
        !self.nics[nic as usize].acks[class].is_empty() && (self.case.transport.ack_high_prio || !paused)
    }

    fn note_held_acks(&mut self, nic: ArcIdx, may_answer: &[bool]) {
        let acks = &self.nics[nic as usize].acks;
        let held = may_answer.iter().zip(acks).any(|(&may, acks)| !may && !acks.is_empty());
        self.class_counts.acks_held += u64::from(held);
    }

    /// The queue pair (flow) to serve of each class, after finished ones are removed.
    fn scan_by_class(&mut self, nic: ArcIdx) -> Vec<Option<u32>> {
        let state = &self.nics[nic as usize];
        let n = state.order.len();
        let first_of = |class: usize| {
            let round = (1..=n).map(|k| state.order[(state.rr[class] + k) % n]);
            round.filter(|&flow| self.class_of(flow) == class).find(|&flow| self.is_eligible(nic, flow))
        };
        let eligible = (0..n_classes(self.case)).map(first_of).collect();
        let is_over = |flow: u32| !self.is_sendable(nic, flow) && self.senders[flow as usize].is_finished();
        let first_finished = state.order.iter().position(|&flow| is_over(flow));
        self.remove_finished(nic, first_finished);
        eligible
    }
}
