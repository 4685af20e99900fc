//! One transfer between two ranks as tasks: a message, parts of one on several queue pairs, or where no packet goes a gate.

use super::{IntraServerPath, Lowerer};
use crate::workload::tasks::{QueuePair, Work};

/// How a transfer is waited for: at the sender for the end of `sent`, at the receiver for the end, or of a message the arrival, of `arrived`.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub sent: u32,
    pub arrived: u32,
    pub message: bool,
}

impl Lowerer<'_> {
    /// One transfer between ranks: a message, or inside a server a gate. Gives the task that posts it and how its arrival is waited for.
    pub(super) fn transfer(
        &mut self,
        comm: u32,
        src: u32,
        dst: u32,
        lane: u32,
        bytes: u64,
        overhead_ps: u64,
    ) -> (u32, Arrival) {
        let bytes = bytes.max(1);
        if let Some(inside) = self.inside(src, dst) {
            return self.through_gate(src, dst, bytes, inside, overhead_ps);
        }
        let each = self.on.qps_per_connection.max(1);
        if self.on.split && each > 1 {
            return self.split(comm, src, dst, lane * each, each, bytes, overhead_ps);
        }
        let turn = self.turns.entry((comm, src, dst, lane)).or_insert(0);
        let lane = lane * each + *turn % each;
        *turn = turn.wrapping_add(1);
        let qp = self.queue_pair(comm, src, dst, lane);
        let post = self.graph.task(src, overhead_ps, Work::Message { qp, bytes });
        (post, Arrival { sent: post, arrived: post, message: true })
    }

    fn queue_pair(&mut self, comm: u32, src: u32, dst: u32, lane: u32) -> u32 {
        let qps = &mut self.graph.qps;
        *self.qps.entry((comm, src, dst, lane)).or_insert_with(|| {
            qps.push(QueuePair { src, dst, lane });
            qps.len() as u32 - 1
        })
    }

    /// A message in parts, one on each of `each` queue pairs from `lane` on.
    #[allow(clippy::too_many_arguments, reason = "one message, by what identifies it")]
    fn split(
        &mut self,
        comm: u32,
        src: u32,
        dst: u32,
        lane: u32,
        each: u32,
        bytes: u64,
        overhead_ps: u64,
    ) -> (u32, Arrival) {
        let post = self.graph.task(src, overhead_ps, Work::Delay);
        let (sent, arrived) = (self.graph.join(src), self.graph.join(dst));
        let parts = u64::from(each).min(bytes);
        for part in 0..parts {
            let share = bytes * (part + 1) / parts - bytes * part / parts;
            let qp = self.queue_pair(comm, src, dst, lane + part as u32);
            let message = self.graph.task(src, 0, Work::Message { qp, bytes: share });
            self.graph.after(post, message);
            self.graph.after(message, sent);
            self.graph.after_arrival(message, arrived);
        }
        (post, Arrival { sent, arrived, message: false })
    }

    pub(super) fn through_gate(
        &mut self,
        src: u32,
        dst: u32,
        bytes: u64,
        way: IntraServerPath,
        overhead_ps: u64,
    ) -> (u32, Arrival) {
        let post = self.graph.task(src, overhead_ps, Work::Delay);
        let n = self.links.len() as u32;
        let link = *self.links.entry((src, link_of(&way, dst))).or_insert(n);
        self.graph.servers = self.links.len() as u32;
        let gate = self.graph.gate(Some(link), serial_ps(bytes, &way), way.latency_ps);
        self.graph.into_gate(post, gate);
        let arrived = self.graph.join(dst);
        self.graph.release(gate, arrived);
        (post, Arrival { sent: post, arrived, message: false })
    }

    /// How two ranks reach each other without packets, if they do.
    pub(super) fn inside(&self, a: u32, b: u32) -> Option<IntraServerPath> {
        let (a, b) = (a as usize, b as usize);
        match self.on.intra {
            Some(inside) => (self.on.servers[a] == self.on.servers[b]).then_some(inside),
            None => (self.on.hosts[a] == self.on.hosts[b]).then_some(self.on.shared_nic),
        }
    }

    /// `to`, a task of the receiving rank, waits for an arrival.
    pub(super) fn wait(&mut self, arrival: Arrival, to: u32) {
        match arrival.message {
            true => self.graph.after_arrival(arrival.arrived, to),
            false => self.graph.after(arrival.arrived, to),
        }
    }

    /// `to`, a task of the sending rank, waits until a transfer has left.
    pub(super) fn wait_sent(&mut self, arrival: Arrival, to: u32) {
        self.graph.after(arrival.sent, to);
    }
}

/// How long so many bytes take the link of a way.
pub(super) fn serial_ps(bytes: u64, way: &IntraServerPath) -> u64 {
    (bytes as u128 * 8 * crate::units::PS_PER_S as u128).div_ceil(way.rate_bps.max(1) as u128) as u64
}

/// Which of the links out of a GPU a transfer to rank `dst` takes. Ranks of a server are neighbours, so that the rest of their number tells its links apart; a way without
/// links of its own to each peer is one.
pub(super) fn link_of(way: &IntraServerPath, dst: u32) -> u32 {
    if way.links > 1 { 1 + dst % way.links } else { 0 }
}
