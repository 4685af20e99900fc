//! Rings over the servers of a job of no class, and the links that they cross.
//!
//! Layer: cluster/iterations. Every server sends to the next; each of its GPUs that all servers have a match for is a channel with a part of the bytes.

use crate::batch::QP_DPORT;
use crate::routing::{FlowKey, RouteError, Router, path_rtt_window};
use crate::topology::{ArcIdx, Network};
use crate::workload::FIRST_SPORT;

use super::fabric::{IterationFabric, WHOLE, capacity};
use super::traffic::{JobTraffic, JobWork, RingWork, crossed_by, fair_bps, hops, parts};

/// An all-reduce is sent in so many steps at most, each of which waits for the one before on all of the ring. A ring of `n` servers has `2 (n - 1)`; the latencies of
/// those that are left out count as computing (our choice).
const MOST_STEPS: u64 = 8;

/// The ring of a job over `servers`, given as the ranks of its GPUs there; `None`: it is in one server, or has nothing to send.
///
/// # Errors
/// Two servers do not reach each other.
pub(super) fn ring(
    fabric: &IterationFabric,
    router: &Router,
    net: &Network,
    servers: &[Vec<u32>],
    job: (u64, u64),
    steps_of: u64,
) -> Result<Option<JobTraffic>, RouteError> {
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
    let (crossed, by_arc) = crossed_by(&edges);
    let ack_parts = fabric.ack_parts();
    let fair = |&(arc, data, acks): &(ArcIdx, u32, u32)| fair_bps(capacity(net, arc), parts(data, acks, ack_parts));
    let most_bps = crossed.iter().map(fair).min().unwrap_or(u64::MAX);
    let tight = crossed.iter().filter(|of| fair(of) == most_bps).map(|(arc, ..)| *arc).collect();
    let most_hops = edges.iter().map(hops).max().unwrap_or(0);
    let longest = (edges.iter().position(|edge| hops(edge) == most_hops).unwrap_or(0) as u32, most_hops);
    let work = JobWork::Ring(RingWork { compute_ps, steps, bytes });
    // The ring is as fast as its slowest edge.
    let most = |&(_, data, acks): &(ArcIdx, u32, u32)| {
        (u128::from(most_bps) * u128::from(parts(data, acks, ack_parts)) / u128::from(WHOLE)) as u64
    };
    let most = crossed.iter().map(most).collect();
    Ok(Some(JobTraffic { work, edges, crossed, most, tight, by_arc, longest, hosts: Vec::new() }))
}
