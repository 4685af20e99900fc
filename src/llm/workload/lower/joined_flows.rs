//! Lowers what is one flow at flow level: collectives with equal steps, and the sends of a class of ranks to their peers.
//!
//! Layer: workload. Every edge is a queue pair, with the path that its messages would take. The queue pairs of one flow have consecutive numbers.

use std::collections::HashMap;
use std::sync::Arc;

use super::calls::CallInstance;
use super::lowerer::Lowerer;
use crate::collective::{EdgeRing, EqualSteps, Overheads};
use crate::workload::program::{Dim, OpKind};
use crate::workload::tasks::{EdgePairs, JoinedCollective, JoinedQueuePairs, QueuePair, Work};

/// Stands for the queue pair of an edge inside a server, which no packet crosses.
const INSIDE: u32 = u32::MAX;

/// Makes one message of a collective. PRECONDITION: packets cross at least one of its edges.
pub(super) fn one_flow(
    l: &mut Lowerer,
    group: u32,
    instance: &CallInstance,
    steps: &EqualSteps,
    overheads: &Overheads,
    min_ps: u64,
) {
    let (qp, edges) = joined_queue_pairs(l, group, steps);
    let n_lanes = u64::from(l.machine.qps_per_connection.max(1));
    let bytes = steps.edge_bytes().div_ceil(n_lanes);
    let src = l.graph.qps[qp as usize].src;
    let task = l.graph.task(src, 0, Work::Message { qp, bytes });
    let (begin, end) = (l.graph.gate(None, 0, 1), l.graph.gate(None, 0, 1));
    l.graph.release(begin, task);
    l.graph.arrival_into_gate(task, end);
    for m in &instance.members {
        l.graph.into_gate(m.go, begin);
        l.graph.release(end, m.end);
    }
    let way = l.machine.intra.unwrap_or(l.machine.shared_nic);
    let inside_each = if steps.steps > 1 { 1 } else { max_inside(l, group, steps, way.links) };
    l.graph.one_flow.push(JoinedCollective {
        task,
        edges,
        lanes: l.machine.qps_per_connection.max(1),
        overheads: *overheads,
        steps: steps.steps,
        pieces: steps.pieces,
        piece_bytes: steps.piece_bytes,
        inside_each,
        inside: (way.rate_bps, way.latency_ps),
        min_ps,
    });
}

/// The most edges that leave a member by one link of its server.
fn max_inside(l: &Lowerer, group: u32, steps: &EqualSteps, links: u32) -> u64 {
    let members = &l.workload.groups[group as usize].members;
    let mut edges_on_link: HashMap<(u32, u32), u64> = HashMap::new();
    for &(from, to) in steps.rings.iter().flat_map(|r| &r.edges) {
        let (src, dst) = (members[from as usize], members[to as usize]);
        if l.inside(src, dst).is_some() {
            *edges_on_link.entry((src, if links > 1 { dst } else { 0 })).or_default() += 1;
        }
    }
    edges_on_link.into_values().max().unwrap_or(1)
}

/// The first queue pair of a group's collectives over these edges, and the queue pair of each of the group's own edges. Adds them if they are new.
fn joined_queue_pairs(l: &mut Lowerer, group: u32, steps: &EqualSteps) -> (u32, EdgePairs) {
    let key = (group, steps.rings.clone());
    if let Some((first, edges)) = l.joined.edges.get(&key) {
        return (*first, Arc::clone(edges));
    }
    let first = l.graph.qps.len() as u32;
    let n_lanes = l.machine.qps_per_connection.max(1);
    let mut own: Vec<Vec<u32>> = Vec::with_capacity(steps.rings.len());
    for g in l.joined.groups[group as usize].clone() {
        let members = &l.workload.groups[g as usize].members;
        for EdgeRing { channel, edges } in &steps.rings {
            let channel = u32::from(*channel);
            let mut channel_qps = Vec::with_capacity(edges.len());
            for &(from, to) in edges {
                let (src, dst) = (members[from as usize], members[to as usize]);
                if l.inside(src, dst).is_some() {
                    channel_qps.push(INSIDE);
                    continue;
                }
                channel_qps.push(l.graph.qps.len() as u32);
                let lanes = channel * n_lanes..(channel + 1) * n_lanes;
                l.graph.qps.extend(lanes.map(|lane| QueuePair { src, dst, lane, dim: Dim::Other }));
            }
            if g == group {
                own.push(channel_qps);
            }
        }
    }
    let own = Arc::new(own);
    l.graph.joined.push(JoinedQueuePairs { first, n: l.graph.qps.len() as u32 - first });
    l.joined.edges.insert(key, (first, Arc::clone(&own)));
    (first, own)
}

/// Adds the queue pairs of the sends that `src` and all ranks it stands for post by one op. The queue pair of `src` comes first.
pub(super) fn join_sends(l: &mut Lowerer, comm: u32, src: u32, dst: u32, op: u32) {
    let n_lanes = l.machine.qps_per_connection.max(1);
    if l.joined.ranks.is_empty() || src == dst || l.inside(src, dst).is_some() {
        return;
    }
    let program = &l.workload.programs[l.workload.ranks[src as usize].program as usize];
    let OpKind::Send { peer, .. } = program.ops[op as usize].kind else { return };
    for lane in 0..n_lanes {
        if l.qps.contains_key(&(comm, src, dst, lane)) {
            continue;
        }
        let first = l.graph.qps.len() as u32;
        for &rank in &l.joined.ranks[src as usize] {
            let group = l.workload.ranks[rank as usize].groups[peer.slot as usize];
            let to = l.workload.groups[group as usize].members[peer.member as usize];
            l.graph.qps.push(QueuePair { src: rank, dst: to, lane, dim: Dim::Other });
        }
        l.graph.joined.push(JoinedQueuePairs { first, n: l.graph.qps.len() as u32 - first });
        l.qps.insert((comm, src, dst, lane), first);
    }
}
