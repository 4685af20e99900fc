//! What a job sends in an iteration: rings over its servers, and the links that they cross.
//!
//! Layer: cluster/iterations. Every server sends to the next; each of its GPUs that all servers have a match for is a channel with a part of the bytes.

use crate::batch::QP_DPORT;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router, path_rtt_window};
use crate::topology::ArcIdx;
use crate::workload::FIRST_SPORT;

use super::fabric::{IterationFabric, WHOLE, capacity};

/// An all-reduce is sent in so many steps at most, each of which waits for the one before on all of the ring. A ring of `n` servers has `2 (n - 1)`; the latencies of
/// those that are left out count as computing (our choice).
const MOST_STEPS: u64 = 8;

/// What a job computes and sends in an iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RingWork {
    pub compute_ps: u64,
    pub steps: u64,
    /// Bytes of each edge and step.
    pub bytes: u64,
}

/// A job's traffic on a network.
#[derive(Clone, Debug)]
pub(super) struct JobRing {
    pub work: RingWork,
    pub edges: Vec<FlowPaths>,
    /// Links that it crosses, ascending: data and acknowledgements, in parts of flows.
    pub crossed: Vec<(ArcIdx, u32, u32)>,
    /// Those that hold it up even alone.
    pub tight: Vec<ArcIdx>,
    /// Edges by the links that they cross, ascending.
    pub by_arc: Vec<(ArcIdx, u32)>,
    /// The first of its edges with the most links, and how many these are.
    pub longest: (u32, usize),
    /// Most that one of its flows can have, bps: the ring is as fast as its slowest edge.
    pub most_bps: u64,
}

/// What a link carries of a job, in parts of [`WHOLE`] of its flows' rate.
pub(super) fn parts(data: u32, acks: u32, ack_parts: u64) -> u64 {
    u64::from(data) + u64::from(acks) * ack_parts / u64::from(WHOLE)
}

/// The fastest rate of a flow over a link that carries so many parts.
pub(super) fn fair_bps(capacity_bps: u64, parts: u64) -> u64 {
    (u128::from(capacity_bps) * u128::from(WHOLE) / u128::from(parts.max(1))) as u64
}

impl JobRing {
    /// The ring of a job over `servers`, given as the ranks of its GPUs there; `None`: it is in one server, or has nothing to send.
    ///
    /// # Errors
    /// Two servers do not reach each other.
    pub(super) fn new(
        fabric: &IterationFabric,
        router: &Router,
        net: &crate::topology::Network,
        servers: &[Vec<u32>],
        job: (u64, u64),
        steps_of: u64,
    ) -> Result<Option<JobRing>, RouteError> {
        let (compute_ps, comm_bytes) = job;
        let channels = servers.iter().map(Vec::len).min().unwrap_or(0);
        if servers.len() < 2 || channels == 0 || comm_bytes == 0 {
            return Ok(None);
        }
        let mut edges = Vec::new();
        for (at, from) in servers.iter().enumerate() {
            let to = &servers[(at + 1) % servers.len()];
            for channel in 0..channels {
                for lane in 0..fabric.lanes {
                    let key = FlowKey {
                        id: edges.len() as u32,
                        src_rank: from[channel],
                        dst_rank: to[channel],
                        sport: FIRST_SPORT.wrapping_add(lane as u16),
                        dport: QP_DPORT,
                    };
                    edges.push(router.paths_from(key, &*fabric.policy, Some(lane))?);
                }
            }
        }
        let all_steps = 2 * (steps_of - 1);
        let steps = all_steps.min(MOST_STEPS);
        // Each edge carries 2 (n - 1) / n of its channel's part.
        let over = u128::from(steps_of) * channels as u128 * u128::from(fabric.lanes) * u128::from(steps);
        let bytes = (u128::from(comm_bytes) * u128::from(all_steps)).div_ceil(over).max(1) as u64;
        let paths = edges.iter().flat_map(|edge| &edge.data);
        let round_ps = paths.map(|path| path_rtt_window(net, path, fabric.packet()).rtt_ps).max().unwrap_or(0);
        let compute_ps = compute_ps + (all_steps - steps) * (round_ps / 2);
        let (crossed, by_arc) = crossed(&edges);
        let ack_parts = fabric.ack_parts();
        let fair = |&(arc, data, acks): &(ArcIdx, u32, u32)| fair_bps(capacity(net, arc), parts(data, acks, ack_parts));
        let most_bps = crossed.iter().map(fair).min().unwrap_or(u64::MAX);
        let tight = crossed.iter().filter(|of| fair(of) == most_bps).map(|(arc, ..)| *arc).collect();
        let most_hops = edges.iter().map(hops).max().unwrap_or(0);
        let longest = (edges.iter().position(|edge| hops(edge) == most_hops).unwrap_or(0) as u32, most_hops);
        let work = RingWork { compute_ps, steps, bytes };
        Ok(Some(JobRing { work, edges, crossed, tight, by_arc, longest, most_bps }))
    }

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
fn crossed(edges: &[FlowPaths]) -> (CrossedArcs, Vec<(ArcIdx, u32)>) {
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
