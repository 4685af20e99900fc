//! What a job sends in an iteration, and over which links: rings over its servers, or the messages of a program.
//!
//! Layer: cluster/iterations. Plain data; `ring` and `program` make it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::job::Job;
use crate::routing::FlowPaths;
use crate::topology::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind};

use super::super::error::ClusterError;
use super::fabric::{IterationFabric, WHOLE};

/// What a job by rings computes and sends in an iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RingWork {
    pub compute_ps: u64,
    pub steps: u64,
    /// Bytes of each edge and step.
    pub bytes: u64,
}

/// How a job's GPUs lie: the server and the NIC of each, numbered as they come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GpuLayout {
    pub servers: Vec<u32>,
    pub nics: Vec<u32>,
    /// Rate and delay of each NIC's links.
    links: Vec<(u64, u64)>,
}

/// A job of a class on GPUs that lie in some way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramWork {
    /// By its place among the classes.
    pub class: u32,
    pub layout: Arc<GpuLayout>,
    /// What kernels take on the busiest GPU.
    pub compute_ps: u64,
    /// Of an iteration: tasks, messages, and packets over links where packets are simulated.
    pub tasks: u64,
    pub messages: u64,
    pub packet_hops: u64,
}

impl GpuLayout {
    /// Of GPUs of a network, by their NICs' nodes. `links`: rate and delay of a NIC's links.
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

    /// A network of such GPUs, with their NICs under one switch.
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

    /// What tells it from others.
    pub(super) fn key(&self) -> impl Iterator<Item = u64> {
        let places = self.servers.iter().chain(&self.nics).map(|&n| u64::from(n));
        std::iter::once(self.nics.len() as u64).chain(places).chain(self.links.iter().flat_map(|&(a, b)| [a, b]))
    }
}

impl ProgramWork {
    /// So many iterations of it.
    ///
    /// # Errors
    /// The program cannot be had.
    pub(super) fn lowered(&self, fabric: &IterationFabric, iterations: u64) -> Result<Arc<Job>, ClusterError> {
        Ok(fabric.classes[self.class as usize].lowered(&self.layout.network(fabric), iterations as u32)?)
    }
}

/// What a job does in an iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JobWork {
    Ring(RingWork),
    Program(ProgramWork),
}

impl JobWork {
    /// Time in which it waits for no network, about.
    pub(super) fn compute_ps(&self) -> u64 {
        match self {
            JobWork::Ring(ring) => ring.compute_ps,
            JobWork::Program(program) => program.compute_ps,
        }
    }

    /// Whether it is that of a program, each of whose messages has a time of its own.
    pub(super) fn is_program(&self) -> bool {
        matches!(self, JobWork::Program(_))
    }
}

/// A job's traffic on a network.
#[derive(Clone, Debug)]
pub(super) struct JobTraffic {
    pub work: JobWork,
    pub edges: Vec<FlowPaths>,
    /// Links that it crosses, ascending: data and acknowledgements, in parts of flows.
    pub crossed: Vec<(ArcIdx, u32, u32)>,
    /// Those that hold a ring up even alone.
    pub tight: Vec<ArcIdx>,
    /// Edges by the links that they cross, ascending.
    pub by_arc: Vec<(ArcIdx, u32)>,
    /// The first of its edges with the most links, and how many these are.
    pub longest: (u32, usize),
    /// Of each link that it crosses, the most that it can send there, bps.
    pub most: Vec<u64>,
    /// Of a program: the node of each GPU's NIC.
    pub hosts: Vec<NodeIdx>,
}

/// What a link carries of a job, in parts of [`WHOLE`] of its flows' rate.
pub(super) fn parts(data: u32, acks: u32, ack_parts: u64) -> u64 {
    u64::from(data) + u64::from(acks) * ack_parts / u64::from(WHOLE)
}

/// The fastest rate of a flow over a link that carries so many parts.
pub(super) fn fair_bps(capacity_bps: u64, parts: u64) -> u64 {
    (u128::from(capacity_bps) * u128::from(WHOLE) / u128::from(parts.max(1))) as u64
}

impl JobTraffic {
    /// What it puts on an arc: data and acknowledgements, in parts of flows.
    pub(super) fn on(&self, arc: ArcIdx) -> (u32, u32) {
        let at = self.crossed.binary_search_by_key(&arc, |(of, ..)| *of);
        at.map_or((0, 0), |at| (self.crossed[at].1, self.crossed[at].2))
    }

    /// Its edges that cross an arc, ascending.
    pub(super) fn edges_on(&self, arc: ArcIdx) -> impl Iterator<Item = u32> {
        let from = self.by_arc.partition_point(|(of, _)| *of < arc);
        self.by_arc[from..].iter().take_while(move |(of, _)| *of == arc).map(|(_, edge)| *edge)
    }
}

/// Links of an edge's longest path.
pub(super) fn hops(edge: &FlowPaths) -> usize {
    edge.data.iter().map(Vec::len).max().unwrap_or(0)
}

/// Arcs with what crosses them: data and acknowledgements, in parts of flows.
type CrossedArcs = Vec<(ArcIdx, u32, u32)>;

/// Arcs with what crosses them, and arcs with the edges that do; both ascending.
pub(super) fn crossed_by(edges: &[FlowPaths]) -> (CrossedArcs, Vec<(ArcIdx, u32)>) {
    let (mut of, mut by_arc) = (Vec::new(), Vec::new());
    for (at, edge) in (0..).zip(edges) {
        let (data, acks) = (WHOLE / edge.data.len() as u32, WHOLE / edge.ack.len() as u32);
        of.extend(edge.data.iter().flatten().map(|&arc| (arc, data, 0)));
        of.extend(edge.ack.iter().flatten().map(|&arc| (arc, 0, acks)));
        by_arc.extend(edge.data.iter().chain(&edge.ack).flatten().map(|&arc| (arc, at)));
    }
    of.sort_unstable();
    of.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        if same {
            (sum.1, sum.2) = (sum.1 + next.1, sum.2 + next.2);
        }
        same
    });
    by_arc.sort_unstable();
    by_arc.dedup();
    (of, by_arc)
}
