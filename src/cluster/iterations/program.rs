//! Traffic of a job of a class: the messages of its program in an iteration, and the links that they cross.
//!
//! Layer: cluster/iterations. The ranks of a job are its GPUs in the order of their numbers, as launchers number them. Two jobs whose GPUs have the same
//! layout on servers and NICs run the same program, wherever these servers are.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperfold_host::{ClassProgram, queue_pairs};
use hyperfold_llm::workload::inspect::summary;
use hyperfold_network::routing::{FlowPaths, Router};
use hyperfold_network::topology::{ArcIdx, Network, NodeIdx};

use super::super::error::ClusterError;
use super::fabric::{IterationFabric, WHOLE, capacity};
use super::traffic::{GpuLayout, JobTraffic, JobWork, ProgramWork, crossed_by, hops};

/// Iterations after which a program has used all of its queue pairs. The queue pairs of a connection take turns.
fn until_all_pairs(class: &ClassProgram) -> u32 {
    1 + class.queue_pairs_of_a_connection()
}

/// Traffic of a job of a class whose GPUs are `ranks` of `net`.
///
/// # Errors
/// The program cannot be made, or two of its GPUs do not reach each other.
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
    let max_bps = max_bps_by_arc(net, &edges, &crossed, fabric.ack_parts());
    let max_hops = edges.iter().map(hops).max().unwrap_or(0);
    let longest = (edges.iter().position(|edge| hops(edge) == max_hops).unwrap_or(0) as u32, max_hops);
    Ok(JobTraffic {
        work: JobWork::Program(work),
        edges,
        crossed,
        max_bps,
        tight: Vec::new(),
        by_arc,
        longest,
        hosts: gpu_hosts,
    })
}

/// Rate in bps and delay in ps of the first link of each of these NICs.
fn links_of(net: &Network, hosts: &[NodeIdx]) -> impl Fn(NodeIdx) -> (u64, u64) {
    let mut link_of_nic: BTreeMap<NodeIdx, (u64, u64)> = hosts.iter().map(|&host| (host, (0, 0))).collect();
    for link in net.links.iter().rev().filter(|l| net.is_packet_link(l)) {
        for end in [link.a, link.b] {
            if let Some(known) = link_of_nic.get_mut(&end) {
                *known = (link.rate_bps, link.delay_ps);
            }
        }
    }
    move |host| link_of_nic.get(&host).copied().unwrap_or((0, 0))
}

/// Upper bound in bps of what a program can put on each of its arcs. It is limited by the NICs that send over the arc, by the NICs that receive over it, and
/// by the arc itself.
fn max_bps_by_arc(net: &Network, edges: &[FlowPaths], crossed: &[(ArcIdx, u32, u32)], ack_parts: u64) -> Vec<u64> {
    // Keys are an arc and the first or last arc of the paths over it. Values are the largest part of a flow that crosses the arc, for data and for
    // acknowledgements.
    let (mut sends, mut receives): (NicParts, NicParts) = Default::default();
    for edge in edges {
        for (kind, paths, whole) in [(0, &edge.data, u64::from(WHOLE)), (1, &edge.ack, ack_parts)] {
            // A sprayed flow may have several paths over the same arc.
            let mut of_flow: BTreeMap<[ArcIdx; 3], u64> = BTreeMap::new();
            for path in paths {
                let (Some(&first), Some(&last)) = (path.first(), path.last()) else { continue };
                for &arc in path {
                    *of_flow.entry([arc, first, last]).or_default() += whole / paths.len() as u64;
                }
            }
            for ([arc, first, last], parts) in of_flow {
                for max_parts in [sends.entry((arc, first)).or_default(), receives.entry((arc, last)).or_default()] {
                    max_parts[kind] = parts.max(max_parts[kind]);
                }
            }
        }
    }
    let sum = |nic_parts: &NicParts, arc: ArcIdx| -> u128 {
        let each = nic_parts.range((arc, 0)..=(arc, ArcIdx::MAX)).map(|(&(_, nic), parts)| {
            let parts = (parts[0] + parts[1]).min(u64::from(WHOLE));
            u128::from(capacity(net, nic)) * u128::from(parts) / u128::from(WHOLE)
        });
        each.sum()
    };
    let max_on_arc = |&(arc, ..): &(ArcIdx, u32, u32)| {
        sum(&sends, arc).min(sum(&receives, arc)).min(u128::from(capacity(net, arc))) as u64
    };
    crossed.iter().map(max_on_arc).collect()
}

/// For an arc and the arc of a NIC: parts of data and of acknowledgements.
type NicParts = BTreeMap<(ArcIdx, ArcIdx), [u64; 2]>;
