//! The receiving end of a flow: what it expects, and when it answers.

use hyperfold_network::transport::{LossRecovery, Transport};

use super::any_order::Placed;
use super::credit::Debt;
use super::port::{Kind, Packet};
use super::uec::Held;

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub(super) expected: u64,
    pub(super) milestone: u64,
    pub(super) nack_t: u64,
    pub(super) nack_seq: u64,
    /// The latest packet beyond what is expected, since one that was not.
    pub(super) beyond: Option<u64>,
    /// Where packets may arrive in any order.
    pub(super) placed: Placed,
    /// Under Ultra Ethernet.
    pub(super) held: Held,
    pub(super) debt: Debt,
    pub(super) cnp_t: u64,
    pub(super) sent: u32,
}

impl Receiver {
    pub fn new(t: &Transport) -> Self {
        Receiver {
            expected: 0,
            milestone: t.ack_interval,
            nack_t: 0,
            nack_seq: u64::MAX,
            beyond: None,
            placed: Placed::default(),
            held: Held::default(),
            debt: Debt::default(),
            cnp_t: 0,
            sent: 0,
        }
    }

    /// What is due in answer to a data packet.
    pub(super) fn answer(&mut self, t: &Transport, ends: &[u64], data: &Packet, now: u64) -> Option<Kind> {
        if t.loss_recovery == LossRecovery::Uec {
            return self.held.take(t, ends, &mut self.expected, data);
        }
        let (seq, payload) = (data.seq, data.payload);
        if t.loss_recovery == LossRecovery::Selective {
            return self.answer_in_any_order(t, ends, seq);
        }
        let adapter = t.loss_recovery == LossRecovery::Adapter;
        if seq > self.expected && adapter {
            let again = self.beyond.is_some_and(|last| seq > last);
            self.beyond = Some(seq);
            return (!again).then_some(Kind::Nack);
        }
        if seq > self.expected {
            if now >= self.nack_t || self.nack_seq != self.expected {
                self.nack_t = now + t.nack_interval_ps;
                self.nack_seq = self.expected;
                return Some(Kind::Nack);
            }
            return None;
        }
        self.beyond = None;
        if seq < self.expected {
            return Some(Kind::Ack);
        }
        self.expected += payload as u64;
        let at_end = ends.binary_search(&self.expected).is_ok();
        self.ack_due(t, at_end).then_some(Kind::Ack)
    }

    /// What is due in answer to data at position `s` where packets may arrive in any order.
    pub(super) fn answer_in_any_order(&mut self, t: &Transport, ends: &[u64], s: u64) -> Option<Kind> {
        let payload = t.payload as u64;
        let (expected, in_any_case) = self.placed.place(self.expected, s, payload);
        let grew = expected > self.expected;
        self.expected = expected;
        let at_end = ends.iter().any(|end| end.next_multiple_of(payload) == expected);
        let due = grew && self.ack_due(t, at_end);
        (in_any_case || due).then_some(Kind::Ack)
    }

    /// Whether an ACK is due after data in order; `at_end` says that a message ends there. A milestone that was reached moves on.
    pub(super) fn ack_due(&mut self, t: &Transport, at_end: bool) -> bool {
        if self.expected >= self.milestone {
            self.milestone += t.ack_interval;
            return true;
        }
        self.expected.is_multiple_of(t.chunk) || at_end
    }
}
