//! What is one flow at flow level: collectives whose steps are alike, and what ranks of a class send to their peers.
//!
//! Layer: workload. Every edge is a queue pair, with the path that its messages would take; queue pairs of one flow follow each other.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Instance, Lowerer};
use crate::collective::{EdgeRing, EqualSteps, Overheads};
use crate::workload::classes::Representatives;
use crate::workload::program::{OpKind, Workload};
use crate::workload::tasks::{EdgePairs, JoinedCollective, JoinedQueuePairs, QueuePair, Work};

/// What ranks and groups stand for, and the collectives that have queue pairs.
pub(super) struct JoinedLowering {
    /// Ranks that each rank stands for, itself the first; empty where nobody stands for another.
    ranks: Vec<Vec<u32>>,
    /// The same for groups.
    groups: Vec<Vec<u32>>,
    /// First queue pair of a group's collectives over these edges, and the queue pair of each edge.
    edges: HashMap<(u32, Vec<EdgeRing>), (u32, EdgePairs)>,
}

/// For each number those that have it as their representative.
fn stood_for(by: &[u32]) -> Vec<Vec<u32>> {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); by.len()];
    (0..).zip(by).for_each(|(own, &by)| of[by as usize].push(own));
    of
}

impl JoinedLowering {
    pub(super) fn new(workload: &Workload, representatives: Option<&Representatives>) -> JoinedLowering {
        let (ranks, groups) = match representatives {
            Some(r) => (stood_for(&r.rank), stood_for(&r.group)),
            None => (Vec::new(), (0..workload.groups.len() as u32).map(|g| vec![g]).collect()),
        };
        JoinedLowering { ranks, groups, edges: HashMap::new() }
    }
}

/// No packet goes here.
const INSIDE: u32 = u32::MAX;

/// A collective as one message. PRECONDITION: packets cross one of its edges.
pub(super) fn one_flow(
    l: &mut Lowerer,
    group: u32,
    instance: &Instance,
    steps: &EqualSteps,
    overheads: &Overheads,
    least_ps: u64,
) {
    let (qp, edges) = joined_queue_pairs(l, group, steps);
    let each = u64::from(l.on.qps_per_connection.max(1));
    let bytes = steps.edge_bytes().div_ceil(each);
    let src = l.graph.qps[qp as usize].src;
    let task = l.graph.task(src, 0, Work::Message { qp, bytes });
    let (begin, end) = (l.graph.gate(None, 0, 1), l.graph.gate(None, 0, 1));
    l.graph.release(begin, task);
    l.graph.arrival_into_gate(task, end);
    for m in &instance.members {
        l.graph.into_gate(m.go, begin);
        l.graph.release(end, m.end);
    }
    let way = l.on.intra.unwrap_or(l.on.shared_nic);
    let inside_each = if steps.steps > 1 { 1 } else { most_inside(l, group, steps, way.links) };
    l.graph.one_flow.push(JoinedCollective {
        task,
        edges,
        lanes: l.on.qps_per_connection.max(1),
        overheads: *overheads,
        steps: steps.steps,
        pieces: steps.pieces,
        piece_bytes: steps.piece_bytes,
        inside_each,
        inside: (way.rate_bps, way.latency_ps),
        least_ps,
    });
}

/// Edges, at most, that leave a member by one link of its server.
fn most_inside(l: &Lowerer, group: u32, steps: &EqualSteps, links: u32) -> u64 {
    let members = &l.workload.groups[group as usize].members;
    let mut of_link: HashMap<(u32, u32), u64> = HashMap::new();
    for &(from, to) in steps.rings.iter().flat_map(|r| &r.edges) {
        let (src, dst) = (members[from as usize], members[to as usize]);
        if l.inside(src, dst).is_some() {
            *of_link.entry((src, if links > 1 { dst } else { 0 })).or_default() += 1;
        }
    }
    of_link.into_values().max().unwrap_or(1)
}

/// The first queue pair of a group's collectives over these edges, and the queue pair of each of its own edges.
fn joined_queue_pairs(l: &mut Lowerer, group: u32, steps: &EqualSteps) -> (u32, EdgePairs) {
    let key = (group, steps.rings.clone());
    if let Some((first, edges)) = l.joined.edges.get(&key) {
        return (*first, Arc::clone(edges));
    }
    let first = l.graph.qps.len() as u32;
    let each = l.on.qps_per_connection.max(1);
    let mut own: Vec<Vec<u32>> = Vec::with_capacity(steps.rings.len());
    for g in l.joined.groups[group as usize].clone() {
        let members = &l.workload.groups[g as usize].members;
        for EdgeRing { channel, edges } in &steps.rings {
            let channel = u32::from(*channel);
            let mut of_channel = Vec::with_capacity(edges.len());
            for &(from, to) in edges {
                let (src, dst) = (members[from as usize], members[to as usize]);
                if l.inside(src, dst).is_some() {
                    of_channel.push(INSIDE);
                    continue;
                }
                of_channel.push(l.graph.qps.len() as u32);
                let lanes = channel * each..(channel + 1) * each;
                l.graph.qps.extend(lanes.map(|lane| QueuePair { src, dst, lane }));
            }
            if g == group {
                own.push(of_channel);
            }
        }
    }
    let own = Arc::new(own);
    l.graph.joined.push(JoinedQueuePairs { first, n: l.graph.qps.len() as u32 - first });
    l.joined.edges.insert(key, (first, Arc::clone(&own)));
    (first, own)
}

/// Queue pairs for what `src` and all that it stands for send to their peers by one op; those of `src` lead.
pub(super) fn join_sends(l: &mut Lowerer, comm: u32, src: u32, dst: u32, op: u32) {
    let each = l.on.qps_per_connection.max(1);
    if l.joined.ranks.is_empty() || src == dst || l.inside(src, dst).is_some() {
        return;
    }
    let program = &l.workload.programs[l.workload.ranks[src as usize].program as usize];
    let OpKind::Send { peer, .. } = program.ops[op as usize].kind else { return };
    for lane in 0..each {
        if l.qps.contains_key(&(comm, src, dst, lane)) {
            continue;
        }
        let first = l.graph.qps.len() as u32;
        for &rank in &l.joined.ranks[src as usize] {
            let group = l.workload.ranks[rank as usize].groups[peer.slot as usize];
            let to = l.workload.groups[group as usize].members[peer.member as usize];
            l.graph.qps.push(QueuePair { src: rank, dst: to, lane });
        }
        l.graph.joined.push(JoinedQueuePairs { first, n: l.graph.qps.len() as u32 - first });
        l.qps.insert((comm, src, dst, lane), first);
    }
}
