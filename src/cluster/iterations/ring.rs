//! Traffic of a job of no class: rings over its servers, and the links that they cross.
//!
//! Layer: cluster/iterations. Every server sends to the next one. There is one channel for each GPU that all servers have a match for; each channel carries
//! an equal part of the bytes.

use hyperfold_host::QP_DPORT;
use hyperfold_llm::workload::FIRST_SPORT;
use hyperfold_network::routing::{FlowKey, RouteError, Router, path_rtt_window};
use hyperfold_network::topology::{ArcIdx, Network};

use super::fabric::{IterationFabric, WHOLE, capacity};
use super::traffic::{JobTraffic, JobWork, RingWork, crossed_by, fair_bps, hops, parts};

/// Maximum number of steps in which an all-reduce is simulated. Each step waits for the step before on the whole ring. A ring of `n` servers has `2 (n - 1)`
/// steps; the latencies of steps that are left out count as computing (our choice).
const MAX_STEPS: u64 = 8;

/// The ring of a job over `servers`, which are lists of the ranks of its GPUs. `job` is its computing time in ps and its bytes per iteration. `None`: the job
/// is in one server, or has nothing to send.
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
    for (position, sender) in servers.iter().enumerate() {
        let receiver = &servers[(position + 1) % servers.len()];
        for channel in 0..channels {
            for lane in 0..fabric.lanes {
                let key = FlowKey {
                    id: edges.len() as u32,
                    src_rank: sender[channel],
                    dst_rank: receiver[channel],
                    sport: FIRST_SPORT.wrapping_add(lane as u16),
                    dport: QP_DPORT,
                };
                edges.push(router.paths_from(key, &*fabric.policy, Some(lane))?);
            }
        }
    }
    let all_steps = 2 * (steps_of - 1);
    let steps = all_steps.min(MAX_STEPS);
    // Each edge carries 2 (n - 1) / n of the bytes of its channel.
    let divisor = u128::from(steps_of) * channels as u128 * u128::from(fabric.lanes) * u128::from(steps);
    let bytes = (u128::from(comm_bytes) * u128::from(all_steps)).div_ceil(divisor).max(1) as u64;
    let paths = edges.iter().flat_map(|edge| &edge.data);
    let round_ps = paths.map(|path| path_rtt_window(net, path, fabric.packet()).rtt_ps).max().unwrap_or(0);
    let compute_ps = compute_ps + (all_steps - steps) * (round_ps / 2);
    let (crossed, by_arc) = crossed_by(&edges);
    let ack_parts = fabric.ack_parts();
    let fair = |&(arc, data, acks): &(ArcIdx, u32, u32)| fair_bps(capacity(net, arc), parts(data, acks, ack_parts));
    let ring_bps = crossed.iter().map(fair).min().unwrap_or(u64::MAX);
    let tight = crossed.iter().filter(|load| fair(load) == ring_bps).map(|(arc, ..)| *arc).collect();
    let max_hops = edges.iter().map(hops).max().unwrap_or(0);
    let longest = (edges.iter().position(|edge| hops(edge) == max_hops).unwrap_or(0) as u32, max_hops);
    let work = JobWork::Ring(RingWork { compute_ps, steps, bytes });
    // No edge of a ring is faster than its slowest edge.
    let max_on_arc = |&(_, data, acks): &(ArcIdx, u32, u32)| {
        (u128::from(ring_bps) * u128::from(parts(data, acks, ack_parts)) / u128::from(WHOLE)) as u64
    };
    let max_bps = crossed.iter().map(max_on_arc).collect();
    Ok(Some(JobTraffic { work, edges, crossed, max_bps, tight, by_arc, longest, hosts: Vec::new() }))
}
