//! What a job of a class sends in an iteration: the messages of its program, on the links that they cross.
//!
//! Layer: cluster/iterations. A job's ranks are its GPUs in the order of their numbers, as launchers have them. Programs on GPUs that lie alike on servers and NICs
//! are the same, wherever these servers are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::{ClassProgram, queue_pairs};
use crate::routing::{FlowPaths, Router};
use crate::topology::{ArcIdx, Network, NodeIdx};
use crate::workload::inspect::summary;

use super::super::error::ClusterError;
use super::fabric::{IterationFabric, WHOLE, capacity};
use super::traffic::{GpuLayout, JobTraffic, JobWork, ProgramWork, crossed_by, hops};

/// Iterations in which a program has used all of its queue pairs: those of a connection take turns.
fn until_all_pairs(class: &ClassProgram) -> u32 {
    1 + class.queue_pairs_of_a_connection()
}

/// A job of a class whose GPUs have NICs `hosts` of `net`.
///
/// # Errors
/// Its program cannot be had, or two of its GPUs do not reach each other.
pub(super) fn of_class(
    fabric: &IterationFabric,
    router: &Router,
    net: &Network,
    (class, ranks): (u32, &[u32]),
) -> Result<JobTraffic, ClusterError> {
    let gpu_hosts: Vec<NodeIdx> = ranks.iter().map(|&rank| net.ranks[rank as usize]).collect();
    let layout = GpuLayout::of(net, &gpu_hosts, &links_of(net, &gpu_hosts));
    let program = &fabric.classes[class as usize];
    let iterations = until_all_pairs(program);
    let job = program.lowered(&layout.network(fabric), iterations)?;
    let mut edges = Vec::with_capacity(job.graph.qps.len());
    for (mut qp, pair) in queue_pairs(&job).into_iter().zip(&job.graph.qps) {
        (qp.src_rank, qp.dst_rank) = (ranks[qp.src_rank as usize], ranks[qp.dst_rank as usize]);
        edges.push(router.paths_from(&qp, &*fabric.policy, Some(pair.lane))?);
    }
    let each = |all: u64| all.div_ceil(u64::from(iterations));
    let payload = u64::from(fabric.transport.payload.max(1));
    let carried = |(_, qp, bytes): (u32, u32, u64)| {
        let paths: &FlowPaths = &edges[qp as usize];
        bytes.div_ceil(payload) * (paths.data[0].len() + paths.ack[0].len()) as u64
    };
    let work = ProgramWork {
        class,
        layout: Arc::new(layout),
        compute_ps: each(summary(&job.workload).compute_ps),
        tasks: each(job.graph.tasks.len() as u64),
        messages: each(job.graph.messages().count() as u64),
        packet_hops: each(job.graph.messages().map(carried).sum()),
    };
    let (crossed, by_arc) = crossed_by(&edges);
    let most = most_of(net, &edges, &crossed, fabric.ack_parts());
    let most_hops = edges.iter().map(hops).max().unwrap_or(0);
    let longest = (edges.iter().position(|edge| hops(edge) == most_hops).unwrap_or(0) as u32, most_hops);
    Ok(JobTraffic {
        work: JobWork::Program(work),
        edges,
        crossed,
        most,
        tight: Vec::new(),
        by_arc,
        longest,
        hosts: gpu_hosts,
    })
}

/// Rate and delay of the first link of each of these NICs.
fn links_of(net: &Network, hosts: &[NodeIdx]) -> impl Fn(NodeIdx) -> (u64, u64) {
    let mut of: BTreeMap<NodeIdx, (u64, u64)> = hosts.iter().map(|&host| (host, (0, 0))).collect();
    for link in net.links.iter().rev().filter(|l| net.is_packet_link(l)) {
        for end in [link.a, link.b] {
            if let Some(known) = of.get_mut(&end) {
                *known = (link.rate_bps, link.delay_ps);
            }
        }
    }
    move |host| of.get(&host).copied().unwrap_or((0, 0))
}

/// The most that a program could put on each of its arcs, bps: what the NICs that send over it carry, and no more than the NICs that receive, or than the arc.
fn most_of(net: &Network, edges: &[FlowPaths], crossed: &[(ArcIdx, u32, u32)], ack_parts: u64) -> Vec<u64> {
    // Of each arc and the first or last arc of paths over it: the largest part of a flow that crosses it, and of acknowledgements by what they take.
    let (mut sends, mut receives): (NicParts, NicParts) = Default::default();
    for edge in edges {
        for (of, paths, whole) in [(0, &edge.data, u64::from(WHOLE)), (1, &edge.ack, ack_parts)] {
            // A sprayed flow may have several paths over an arc.
            let mut of_flow: BTreeMap<[ArcIdx; 3], u64> = BTreeMap::new();
            for path in paths {
                let (Some(&first), Some(&last)) = (path.first(), path.last()) else { continue };
                for &arc in path {
                    *of_flow.entry([arc, first, last]).or_default() += whole / paths.len() as u64;
                }
            }
            for ([arc, first, last], parts) in of_flow {
                for most in [sends.entry((arc, first)).or_default(), receives.entry((arc, last)).or_default()] {
                    most[of] = parts.max(most[of]);
                }
            }
        }
    }
    let sum = |of: &NicParts, arc: ArcIdx| -> u128 {
        let each = of.range((arc, 0)..=(arc, ArcIdx::MAX)).map(|(&(_, nic), parts)| {
            let parts = (parts[0] + parts[1]).min(u64::from(WHOLE));
            u128::from(capacity(net, nic)) * u128::from(parts) / u128::from(WHOLE)
        });
        each.sum()
    };
    let most = |&(arc, ..): &(ArcIdx, u32, u32)| {
        sum(&sends, arc).min(sum(&receives, arc)).min(u128::from(capacity(net, arc))) as u64
    };
    crossed.iter().map(most).collect()
}

/// Of an arc and a NIC's: parts of data and of acknowledgements.
type NicParts = BTreeMap<(ArcIdx, ArcIdx), [u64; 2]>;
