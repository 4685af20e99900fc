//! Makes the tasks of one transfer between two ranks: a message, its parts on several queue pairs, or a gate if no packet is needed.

use super::lowerer::Lowerer;
use super::machine::IntraServerPath;
use crate::workload::program::Dim;
use crate::workload::tasks::{QueuePair, Work};

/// The tasks that show the progress of a transfer. The sender waits for the end of `sent`. The receiver waits for the arrival of `arrived` if `message` is set,
/// else for its end.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub sent: u32,
    pub arrived: u32,
    pub message: bool,
}

impl Lowerer<'_> {
    /// Makes the tasks of one transfer between ranks: a message, or inside a server a gate. Returns the task that posts it and how its arrival is waited for.
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
        let n_lanes = self.machine.qps_per_connection.max(1);
        if self.machine.split && n_lanes > 1 {
            return self.split(comm, src, dst, lane * n_lanes, n_lanes, bytes, overhead_ps);
        }
        let turn = self.turns.entry((comm, src, dst, lane)).or_insert(0);
        let lane = lane * n_lanes + *turn % n_lanes;
        *turn = turn.wrapping_add(1);
        let qp = self.queue_pair(comm, src, dst, lane);
        let post = self.graph.task(src, overhead_ps, Work::Message { qp, bytes });
        (post, Arrival { sent: post, arrived: post, message: true })
    }

    /// The queue pair of a lane of a connection, added if it is new.
    fn queue_pair(&mut self, comm: u32, src: u32, dst: u32, lane: u32) -> u32 {
        let qps = &mut self.graph.qps;
        *self.qps.entry((comm, src, dst, lane)).or_insert_with(|| {
            qps.push(QueuePair { src, dst, lane, dim: Dim::Other });
            qps.len() as u32 - 1
        })
    }

    /// Sends a message in parts, one on each of `n_lanes` queue pairs from `lane` on.
    #[allow(clippy::too_many_arguments, reason = "one message, by what identifies it")]
    fn split(
        &mut self,
        comm: u32,
        src: u32,
        dst: u32,
        lane: u32,
        n_lanes: u32,
        bytes: u64,
        overhead_ps: u64,
    ) -> (u32, Arrival) {
        let post = self.graph.task(src, overhead_ps, Work::Delay);
        let (sent, arrived) = (self.graph.join(src), self.graph.join(dst));
        let parts = u64::from(n_lanes).min(bytes);
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

    /// Makes the tasks of a transfer that goes through a gate instead of the network.
    pub(super) fn through_gate(
        &mut self,
        src: u32,
        dst: u32,
        bytes: u64,
        way: IntraServerPath,
        overhead_ps: u64,
    ) -> (u32, Arrival) {
        self.over_link((src, link_of(&way, dst)), src, dst, bytes, way, overhead_ps)
    }

    /// Makes the tasks of a transfer over a link that carries no packets. `link` tells it apart from all others: whose it is, and which.
    pub(super) fn over_link(
        &mut self,
        link: (u32, u32),
        src: u32,
        dst: u32,
        bytes: u64,
        way: IntraServerPath,
        overhead_ps: u64,
    ) -> (u32, Arrival) {
        let post = self.graph.task(src, overhead_ps, Work::Delay);
        let n = self.links.len() as u32;
        let link = *self.links.entry(link).or_insert(n);
        self.graph.servers = self.links.len() as u32;
        let gate = self.graph.gate(Some(link), serial_ps(bytes, &way), way.latency_ps);
        self.graph.into_gate(post, gate);
        let arrived = self.graph.join(dst);
        self.graph.release(gate, arrived);
        (post, Arrival { sent: post, arrived, message: false })
    }

    /// The path between two ranks without packets, or `None` if packets are needed, as they always are to and from a switch that reduces.
    pub(super) fn inside(&self, a: u32, b: u32) -> Option<IntraServerPath> {
        let (a, b) = (a as usize, b as usize);
        if a.max(b) >= self.machine.hosts.len() {
            return None;
        }
        match self.machine.intra {
            Some(inside) => (self.machine.servers[a] == self.machine.servers[b]).then_some(inside),
            None => (self.machine.hosts[a] == self.machine.hosts[b]).then_some(self.machine.shared_nic),
        }
    }

    /// Lets `waiter`, a task of the receiving rank, wait for an arrival.
    pub(super) fn wait(&mut self, arrival: Arrival, waiter: u32) {
        match arrival.message {
            true => self.graph.after_arrival(arrival.arrived, waiter),
            false => self.graph.after(arrival.arrived, waiter),
        }
    }

    /// Lets a gate wait for an arrival.
    pub(super) fn wait_in_gate(&mut self, arrival: Arrival, gate: u32) {
        match arrival.message {
            true => self.graph.arrival_into_gate(arrival.arrived, gate),
            false => self.graph.into_gate(arrival.arrived, gate),
        }
    }

    /// Lets `waiter`, a task of the sending rank, wait until a transfer has left.
    pub(super) fn wait_sent(&mut self, arrival: Arrival, waiter: u32) {
        self.graph.after(arrival.sent, waiter);
    }
}

/// Time in ps that `bytes` occupy the link of a path.
pub(super) fn serial_ps(bytes: u64, way: &IntraServerPath) -> u64 {
    (bytes as u128 * 8 * hyperfold_base::units::PS_PER_S as u128).div_ceil(way.rate_bps.max(1) as u128) as u64
}

/// Index of the link out of a GPU that a transfer to rank `dst` takes. Ranks of a server have consecutive numbers, so the remainder of `dst` tells the links
/// apart. A path without a link to each peer has one link.
pub(super) fn link_of(way: &IntraServerPath, dst: u32) -> u32 {
    if way.links > 1 { 1 + dst % way.links } else { 0 }
}
