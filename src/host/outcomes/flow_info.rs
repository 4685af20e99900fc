//! Flows as results name them, with their completion times on an idle network.
//!
//! Layer: host. Reads networks and paths; simulates nothing.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::{FlowIdx, TaskIdx};
use hyperfold_flow::{Hop, PacketSizes};
use hyperfold_network::changes::TimedChange;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Network, NvLink};
use hyperfold_network::transport::Transport;

use crate::programs::job::Job;
use crate::tables::network_changes::slowest_rates;

/// Message sizes remembered per queue pair. Few, as they are searched one by one.
const SIZES_KNOWN: usize = 8;

/// A flow as results name it.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// Number of the flow.
    pub id: u32,
    /// Source: the host id of the file, or a GPU rank.
    pub src: u32,
    /// Destination, numbered as the source.
    pub dst: u32,
    /// Payload, bytes.
    pub bytes: u64,
    /// Time of its start, ps.
    pub start_ps: u64,
    /// Completion time on an idle network, ps.
    pub ideal_ps: u64,
    /// Row in which it is simulated.
    pub carried: FlowCarrier,
}

/// The row that carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowCarrier {
    /// No row: the flow stays inside a server and takes `ideal_ps`.
    Inside,
    /// A queue pair of its own, by its row.
    Alone(FlowIdx),
    /// A message, by its task's row. It starts when it is posted.
    Message(TaskIdx),
}

/// Returns the messages of a job as flows, in the order of tasks.
pub(crate) fn messages(job: &Job, paths: &[FlowPaths], idle: &IdleNetwork) -> Vec<FlowInfo> {
    // For each queue pair its (message size, ideal time in ps); a queue pair has few sizes.
    let mut ideal: Vec<Vec<(u64, u64)>> = vec![Vec::new(); job.graph.qps.len()];
    let mut ideal_ps_of = |qp: u32, bytes: u64| {
        let known = &mut ideal[qp as usize];
        if let Some(&(_, ps)) = known.iter().find(|k| k.0 == bytes) {
            return ps;
        }
        let ps = idle.flow_ps(bytes, &paths[qp as usize]);
        if known.len() < SIZES_KNOWN {
            known.push((bytes, ps));
        }
        ps
    };
    let info = |(id, (task, qp, bytes)): (usize, (u32, u32, u64))| {
        let ends = job.graph.qps[qp as usize];
        FlowInfo {
            id: id as u32,
            src: ends.src,
            dst: ends.dst,
            bytes,
            start_ps: 0,
            ideal_ps: ideal_ps_of(qp, bytes),
            carried: FlowCarrier::Message(TaskIdx(task)),
        }
    };
    job.graph.messages().enumerate().map(info).collect()
}

/// A network without other traffic, for completion times with which those of flows are compared.
pub(crate) struct IdleNetwork<'a> {
    net: &'a Network,
    transport: &'a Transport,
    /// Lowest rate in bps of each direction of a link whose rate changes.
    slowest: BTreeMap<ArcIdx, u64>,
}

impl<'a> IdleNetwork<'a> {
    /// The network `net`, whose rates change as `changes` say.
    pub(crate) fn new(net: &'a Network, transport: &'a Transport, changes: &[TimedChange]) -> IdleNetwork<'a> {
        IdleNetwork { net, transport, slowest: slowest_rates(changes) }
    }

    /// Returns the completion time of a flow of `bytes` at line rate, ps. All packets go one behind the other over every link of the path, until the last is
    /// whole at the receiver, and its acknowledgement is back. The slowest link decides. Where a flow has several paths, their links count as one of the sum of
    /// their rates, up to the rate of the sender's port. No flow is faster. Links have their own rates, also those that run at a reduced one: so the slowdown of
    /// a flow shows what the reduction costs it, and a sprayed flow that avoids a slow path is not below 1.
    pub(crate) fn flow_ps(&self, bytes: u64, paths: &FlowPaths) -> u64 {
        let tr = self.transport;
        let sizes = PacketSizes {
            payload: tr.payload,
            data_overhead: tr.data_overhead,
            ack_bytes: tr.ack_bytes,
            ack_interval: tr.ack_interval,
            cut_through: tr.cut_through_bytes,
            clock_ps: tr.clock_ps,
        };
        sizes.alone(&self.hops(&paths.data), &self.hops(&paths.ack), bytes).acked_ps
    }

    /// The links of the first of `paths`. A switch counts as cutting through if it ever does for packets of one of the paths: a port that becomes as slow as
    /// the link before it makes a flow faster.
    fn hops(&self, paths: &[Vec<ArcIdx>]) -> Vec<Hop> {
        let first = &paths[0];
        let own_bps = |arc: ArcIdx| self.net.arc_link(arc).rate_bps;
        let lowest_bps = |arc: ArcIdx| self.net.arc_rate(arc).min(self.slowest.get(&arc).copied().unwrap_or(u64::MAX));
        let may_cut = |path: &[ArcIdx], m: usize| {
            path.len() == first.len() && path.get(m + 1).is_some_and(|&next| lowest_bps(next) <= own_bps(path[m]))
        };
        let joined_bps = |m: usize| -> u64 {
            let arcs = paths.iter().filter_map(|path| path.get(m).copied());
            arcs.collect::<BTreeSet<ArcIdx>>().into_iter().map(own_bps).sum()
        };
        let port_bps = joined_bps(0);
        let of_one_length = paths.iter().all(|path| path.len() == first.len());
        let rate_bps = |m: usize, arc: ArcIdx| match own_bps(arc) {
            own if own >= port_bps || paths.len() == 1 => own,
            own if of_one_length => joined_bps(m).min(port_bps).max(own),
            // Paths of several lengths may join anywhere.
            _ => port_bps,
        };
        let hop = |(m, &arc): (usize, &ArcIdx)| Hop {
            rate_bps: rate_bps(m, arc),
            delay_ps: self.net.arc_link(arc).delay_ps,
            cuts_through: self.transport.cut_through_bytes > 0 && paths.iter().any(|path| may_cut(path, m)),
        };
        first.iter().enumerate().map(hop).collect()
    }
}

/// Returns the completion time inside a server, ps: the bytes at NVLink's rate, and its latency there and back.
pub(crate) fn nvlink_ps(bytes: u64, net: &Network) -> u64 {
    let Some(NvLink { rate_bps, latency_ps }) = net.nvlink else { return 0 };
    2 * latency_ps + (bytes as u128 * 8 * PS_PER_S as u128 / rate_bps.max(1) as u128) as u64
}
