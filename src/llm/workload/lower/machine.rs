//! Facts about the machine that lowering knows: servers, nodes, and paths that carry no packets.
//!
//! Layer: workload. Paths of packets are chosen in `host`.

use super::relays::Relays;
use crate::collective::Overheads;
use crate::workload::classes::Representatives;
use crate::workload::program::Dim;

/// Facts about the machine that lowering needs.
#[derive(Clone)]
pub struct Lowering<'a> {
    /// Server of each rank.
    pub servers: &'a [u32],
    /// Network node of each rank. GPUs that share a NIC have the same node.
    pub hosts: &'a [u32],
    /// Path between GPUs of one server; `None` if they use the network.
    pub intra: Option<IntraServerPath>,
    /// Path between GPUs of one NIC if `intra` is `None`, because a NIC sends no packet to itself.
    pub shared_nic: IntraServerPath,
    /// (Rate in bps, latency in ps) of each dimension whose sends and receives take the time of an idle machine and use no packets.
    pub analytic_p2p: &'a dyn Fn(Dim) -> Option<(u64, u64)>,
    /// Time in ps from the last member's arrival at a collective until all members know of it. `None`: members wait for each other through data only.
    pub rendezvous_ps: Option<u64>,
    /// Latency in ps of what a rank sends to itself.
    pub local_ps: u64,
    /// Time in ps from the last arrival at a switch until it sends the sum.
    pub reduce_ps: u64,
    /// Overheads from the program's post of a send to the post on the queue pair.
    pub p2p_overheads: Overheads,
    /// Number of queue pairs per connection.
    pub qps_per_connection: u32,
    /// Weight of a dimension's queue pairs at flow level: see [`TaskGraph::weights`](crate::workload::tasks::TaskGraph::weights).
    pub weight: &'a dyn Fn(Dim) -> u32,
    /// Whether every message is split over the queue pairs of its connection. Otherwise the queue pairs take turns.
    pub split: bool,
    /// Ranks that stand for others, if any. Only these get tasks. A send of the others is part of the same flow as their representative's send.
    pub representatives: Option<&'a Representatives>,
    /// Ranks that relay messages of pipelines and of rings of context to other rails; `None`: none do.
    pub relays: Option<&'a Relays>,
    /// Factor by which a kernel takes longer than its program says, by rank and op; 2^32 is 1.
    pub factor_q32: &'a dyn Fn(u32, u32) -> u64,
}

/// The path between two GPUs of a server, as times instead of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntraServerPath {
    /// Rate of the link out of a GPU that a transfer takes.
    pub rate_bps: u64,
    /// One-way latency in ps.
    pub latency_ps: u64,
    /// Number of links out of a GPU: 1 if all its transfers share one, else one to each peer of the server.
    pub links: u32,
}

/// A path with one link for everything that a rank sends.
pub(super) fn alone(rate_bps: u64, latency_ps: u64) -> IntraServerPath {
    IntraServerPath { rate_bps, latency_ps, links: 1 }
}
