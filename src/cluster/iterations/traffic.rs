//! Traffic of a job in an iteration: rings over its servers, or the messages of a program, and the links that they cross.
//!
//! Layer: cluster/iterations. Plain data; `ring` and `program` make it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperfold_host::programs::job::Job;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind};

use super::super::error::ClusterError;
use super::fabric::{IterationFabric, WHOLE};

/// Computation and messages of a ring job in an iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RingWork {
    pub compute_ps: u64,
    pub steps: u64,
    /// Bytes that each edge sends in a step.
    pub bytes: u64,
}

/// Layout of a job's GPUs: the server and the NIC of each GPU, numbered in the order in which they appear.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GpuLayout {
    pub servers: Vec<u32>,
    pub nics: Vec<u32>,
    /// Rate in bps and delay in ps of each NIC's links.
    links: Vec<(u64, u64)>,
}

/// Program of a job of a class, on GPUs with a certain layout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramWork {
    /// Index of its class.
    pub class: u32,
    pub layout: Arc<GpuLayout>,
    /// Time of the kernels on the busiest GPU, per iteration.
    pub compute_ps: u64,
    /// Tasks of an iteration. The next two fields count its messages, and its packets over links if packets are simulated.
    pub tasks: u64,
    pub messages: u64,
    pub packet_hops: u64,
}

impl GpuLayout {
    /// Layout of the GPUs of a network, given by the nodes of their NICs. `links` returns the rate and delay of a NIC's links.
    pub(super) fn of(net: &Network, hosts: &[NodeIdx], links: &dyn Fn(NodeIdx) -> (u64, u64)) -> GpuLayout {
        let (mut servers, mut nics): (BTreeMap<u32, u32>, BTreeMap<NodeIdx, u32>) = Default::default();
        let mut layout = GpuLayout { servers: Vec::new(), nics: Vec::new(), links: Vec::new() };
        for &host in hosts {
            let next = servers.len() as u32;
            layout.servers.push(*servers.entry(net.nodes[host as usize].server).or_insert(next));
            let next = layout.links.len() as u32;
            let nic = *nics.entry(host).or_insert(next);
            if nic == next {
                layout.links.push(links(host));
            }
            layout.nics.push(nic);
        }
        layout
    }

    /// A network with this layout, with all NICs under one switch.
    pub(super) fn network(&self, fabric: &IterationFabric) -> Network {
        let switch = self.links.len() as u32;
        let mut net = Network { nvlink: fabric.net.nvlink, ranks: self.nics.clone(), ..Network::default() };
        net.nodes.extend((0..switch).map(|id| Node { kind: NodeKind::Host, id, server: 0 }));
        for (&nic, &server) in self.nics.iter().zip(&self.servers) {
            net.nodes[nic as usize].server = server;
        }
        net.nodes.push(Node { kind: NodeKind::Switch, id: switch, server: u32::MAX });
        for (nic, &(rate_bps, delay_ps)) in (0..).zip(&self.links) {
            net.links.extend((0..fabric.lanes).map(|_| Link { a: nic, b: switch, rate_bps, delay_ps }));
        }
        net
    }

    /// The layout as numbers. Different layouts have different keys.
    pub(super) fn key(&self) -> impl Iterator<Item = u64> {
        let places = self.servers.iter().chain(&self.nics).map(|&n| u64::from(n));
        std::iter::once(self.nics.len() as u64).chain(places).chain(self.links.iter().flat_map(|&(a, b)| [a, b]))
    }
}

impl ProgramWork {
    /// The program with this many iterations, as a job.
    ///
    /// # Errors
    /// The program cannot be made.
    pub(super) fn lowered(&self, fabric: &IterationFabric, iterations: u64) -> Result<Arc<Job>, ClusterError> {
        Ok(fabric.classes[self.class as usize].lowered(&self.layout.network(fabric), iterations as u32)?)
    }
}

/// Computation and messages of a job in an iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JobWork {
    Ring(RingWork),
    Program(ProgramWork),
}

impl JobWork {
    /// Estimate of the time in which the job does not wait for the network, per iteration.
    pub(super) fn compute_ps(&self) -> u64 {
        match self {
            JobWork::Ring(ring) => ring.compute_ps,
            JobWork::Program(program) => program.compute_ps,
        }
    }

    /// Whether it is a program, each of whose messages has a time of its own.
    pub(super) fn is_program(&self) -> bool {
        matches!(self, JobWork::Program(_))
    }
}

/// Traffic of a job on a network.
#[derive(Clone, Debug)]
pub(super) struct JobTraffic {
    pub work: JobWork,
    pub edges: Vec<FlowPaths>,
    /// Arcs that the job crosses, ascending, with the parts of data flows and of acknowledgement flows on each.
    pub crossed: Vec<(ArcIdx, u32, u32)>,
    /// Arcs that limit a ring even if it is alone.
    pub tight: Vec<ArcIdx>,
    /// Pairs of an arc and an edge that crosses it, ascending.
    pub by_arc: Vec<(ArcIdx, u32)>,
    /// The first of its edges with the most links, and the number of these links.
    pub longest: (u32, usize),
    /// The most that the job can send over each arc of `crossed`, in bps.
    pub max_bps: Vec<u64>,
    /// Node of each GPU's NIC, if the job is a program.
    pub hosts: Vec<NodeIdx>,
}

/// Load of a job on an arc, in parts of [`WHOLE`] of the rate of its flows.
pub(super) fn parts(data: u32, acks: u32, ack_parts: u64) -> u64 {
    u64::from(data) + u64::from(acks) * ack_parts / u64::from(WHOLE)
}

/// Highest rate in bps of a flow over an arc that carries this many parts.
pub(super) fn fair_bps(capacity_bps: u64, parts: u64) -> u64 {
    (u128::from(capacity_bps) * u128::from(WHOLE) / u128::from(parts.max(1))) as u64
}

impl JobTraffic {
    /// Parts of data flows and of acknowledgement flows that the job puts on an arc.
    pub(super) fn parts_on(&self, arc: ArcIdx) -> (u32, u32) {
        let idx = self.crossed.binary_search_by_key(&arc, |(crossed_arc, ..)| *crossed_arc);
        idx.map_or((0, 0), |idx| (self.crossed[idx].1, self.crossed[idx].2))
    }

    /// Edges of the job that cross an arc, ascending.
    pub(super) fn edges_on(&self, arc: ArcIdx) -> impl Iterator<Item = u32> {
        let first_idx = self.by_arc.partition_point(|(crossed_arc, _)| *crossed_arc < arc);
        self.by_arc[first_idx..].iter().take_while(move |(crossed_arc, _)| *crossed_arc == arc).map(|(_, edge)| *edge)
    }
}

/// Number of links of an edge's longest path.
pub(super) fn hops(edge: &FlowPaths) -> usize {
    edge.data.iter().map(Vec::len).max().unwrap_or(0)
}

/// Arcs with the parts of data flows and of acknowledgement flows that cross them.
type CrossedArcs = Vec<(ArcIdx, u32, u32)>;

/// Arcs with their loads, and pairs of an arc and an edge that crosses it. Both are ascending.
pub(super) fn crossed_by(edges: &[FlowPaths]) -> (CrossedArcs, Vec<(ArcIdx, u32)>) {
    let (mut crossed, mut by_arc) = (Vec::new(), Vec::new());
    for (edge_idx, edge) in (0..).zip(edges) {
        let (data, acks) = (WHOLE / edge.data.len() as u32, WHOLE / edge.ack.len() as u32);
        crossed.extend(edge.data.iter().flatten().map(|&arc| (arc, data, 0)));
        crossed.extend(edge.ack.iter().flatten().map(|&arc| (arc, 0, acks)));
        by_arc.extend(edge.data.iter().chain(&edge.ack).flatten().map(|&arc| (arc, edge_idx)));
    }
    crossed.sort_unstable();
    crossed.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        if same {
            (sum.1, sum.2) = (sum.1 + next.1, sum.2 + next.2);
        }
        same
    });
    by_arc.sort_unstable();
    by_arc.dedup();
    (crossed, by_arc)
}
