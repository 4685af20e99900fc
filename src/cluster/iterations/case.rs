//! Reduces a set of jobs to the links that decide how fast they are, and renumbers jobs, nodes and links.
//!
//! Layer: cluster/iterations. All edges of a ring advance together, so only the slowest edges decide. The reduced case leaves out: edges that cross no link
//! which could hold a ring up; links that carry, for every job, no more than another link that is as narrow; and all but one of the links that carry the
//! same. Nothing of a program is left out, because each of its messages has a time of its own.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind};

use super::fabric::capacity;
use super::traffic::{JobTraffic, JobWork, fair_bps, hops, parts};

/// Above this number of different link loads, loads are not compared with each other.
const MAX_COMPARED: usize = 4096;

/// Input of one simulation of iterations. Equal cases take equal times.
#[derive(Clone, Debug)]
pub(super) struct IterationCase {
    pub works: Vec<JobWork>,
    /// Job and paths of each edge. The edges of a program are its queue pairs, in its order.
    pub edges: Vec<(u32, FlowPaths)>,
    /// Ranks of the NICs of each job's GPUs. Empty for a job that is no program.
    pub gpus: Vec<Vec<u32>>,
    /// Reduced network. Its hosts are the ranks, in the same order.
    pub net: Network,
    /// Content of the case as numbers. Equal cases have equal keys.
    pub key: Vec<u64>,
}

/// A reduced set of jobs, and where each of them is crowded.
#[derive(Clone, Debug)]
pub(super) struct ReducedSet {
    pub case: IterationCase,
    /// Job numbers, in the order of the case.
    pub jobs: Vec<u32>,
    /// For each job, the most crowded arc of the full network among those that several jobs share and could fill.
    pub crowded: Vec<Option<ArcIdx>>,
}

/// Load of an arc: its capacity in bps, and for each job its place, and its parts of data and of acknowledgements.
type Load = (u64, Vec<(u32, u32, u32)>);

/// Reduces a set of jobs on `net`. `is_narrow` says whether several jobs together could fill an arc.
pub(super) fn reduced(
    net: &Network,
    set: &[(u32, &JobTraffic)],
    ack_parts: u64,
    is_narrow: &dyn Fn(ArcIdx) -> bool,
) -> ReducedSet {
    let mut set = set.to_vec();
    set.sort_by(|a, b| (&a.1.work, a.1.edges.len(), a.0).cmp(&(&b.1.work, b.1.edges.len(), b.0)));
    let mut narrow: Vec<ArcIdx> = Vec::new();
    let mut arcs: Vec<ArcIdx> = Vec::new();
    for (_, ring) in &set {
        arcs.extend(&ring.tight);
        if set.len() > 1 {
            narrow.extend(ring.crossed.iter().map(|(arc, ..)| *arc).filter(|&arc| is_narrow(arc)));
        }
    }
    narrow.sort_unstable();
    narrow.dedup();
    arcs.extend(&narrow);
    arcs.sort_unstable();
    arcs.dedup();
    let mut crowded: Vec<Option<(u64, ArcIdx)>> = vec![None; set.len()];
    let mut loads: BTreeMap<Load, ArcIdx> = BTreeMap::new();
    let mut beside_programs: Vec<ArcIdx> = Vec::new();
    for arc in arcs {
        let load_of = |(place, (_, ring)): (u32, &(u32, &JobTraffic))| {
            let (data, acks) = ring.parts_on(arc);
            (data + acks > 0).then_some((place, data, acks))
        };
        let jobs: Vec<(u32, u32, u32)> = (0..).zip(&set).filter_map(load_of).collect();
        let full = capacity(net, arc);
        if narrow.binary_search(&arc).is_ok() {
            let all: u64 = jobs.iter().map(|&(_, data, acks)| parts(data, acks, ack_parts)).sum();
            let each = fair_bps(full, all);
            for &(place, data, _) in &jobs {
                let worst = &mut crowded[place as usize];
                if data > 0 && worst.is_none_or(|(worst_each, _)| each < worst_each) {
                    *worst = Some((each, arc));
                }
            }
        }
        if jobs.iter().any(|&(place, ..)| set[place as usize].1.work.is_program()) {
            beside_programs.push(arc);
        } else {
            loads.entry((full, jobs)).or_insert(arc);
        }
    }
    let mut kept = undominated(loads);
    kept.append(&mut beside_programs);
    let edges = edges(&set, &kept);
    let works: Vec<JobWork> = set.iter().map(|(_, job)| job.work.clone()).collect();
    let hosts: Vec<&[NodeIdx]> = set.iter().map(|(_, job)| &job.hosts[..]).collect();
    ReducedSet {
        case: renamed(net, works, edges, &hosts),
        jobs: set.iter().map(|(job, _)| *job).collect(),
        crowded: crowded.into_iter().map(|worst| worst.map(|(_, arc)| arc)).collect(),
    }
}

/// Arcs whose loads are not exceeded by the load of another arc.
fn undominated(loads: BTreeMap<Load, ArcIdx>) -> Vec<ArcIdx> {
    let all: Vec<(Load, ArcIdx)> = loads.into_iter().collect();
    if all.len() > MAX_COMPARED {
        return all.into_iter().map(|(_, arc)| arc).collect();
    }
    let covers = |(a, b): (&Load, &Load)| {
        let in_a = |place: u32| {
            a.1.iter().find(|job_load| job_load.0 == place).map_or((0, 0), |job_load| (job_load.1, job_load.2))
        };
        let fits = |&(place, data, acks): &(u32, u32, u32)| data <= in_a(place).0 && acks <= in_a(place).1;
        a.0 <= b.0 && b.1.iter().all(fits)
    };
    // No two loads are equal, so none covers the one that covers it.
    let is_covered = |b: &Load| all.iter().any(|(a, _)| a != b && covers((a, b)));
    all.iter().filter(|(load, _)| !is_covered(load)).map(|(_, arc)| *arc).collect()
}

/// Edges that stay in the case: edges of rings that cross one of the arcs, in the order of the arcs; one of the longest edges of each ring; and all edges of
/// programs.
fn edges<'a>(set: &[(u32, &'a JobTraffic)], kept: &[ArcIdx]) -> Vec<(u32, &'a FlowPaths)> {
    let mut found: Vec<(u32, &FlowPaths)> = Vec::new();
    let mut seen: BTreeSet<(u32, u32)> = BTreeSet::new();
    let placed = || (0..).zip(set).map(|(place, (_, job))| (place, *job));
    let rings: Vec<(u32, &JobTraffic)> = placed().filter(|(_, job)| !job.work.is_program()).collect();
    for &arc in kept {
        for &(place, ring) in &rings {
            let new = ring.edges_on(arc).filter(|&edge_idx| seen.insert((place, edge_idx)));
            found.extend(new.map(|edge_idx| (place, &ring.edges[edge_idx as usize])));
        }
    }
    for (place, ring) in rings {
        let (longest, max_hops) = ring.longest;
        if !found.iter().any(|(owner, edge)| *owner == place && hops(edge) == max_hops) {
            found.push((place, &ring.edges[longest as usize]));
        }
    }
    for (place, program) in placed().filter(|(_, job)| job.work.is_program()) {
        found.extend(program.edges.iter().map(|edge| (place, edge)));
    }
    found
}

/// Numbers nodes and links by their first appearance, and builds the case. `hosts` are, for each job that is a program, the nodes of the NICs of its GPUs.
fn renamed(net: &Network, works: Vec<JobWork>, edges: Vec<(u32, &FlowPaths)>, hosts: &[&[NodeIdx]]) -> IterationCase {
    let mut nodes: BTreeMap<u32, u32> = BTreeMap::new();
    let mut links: BTreeMap<u32, u32> = BTreeMap::new();
    let mut own = Network::default();
    let mut key: Vec<u64> = vec![works.len() as u64];
    for work in &works {
        match work {
            JobWork::Ring(ring) => key.extend([ring.compute_ps, ring.steps, ring.bytes]),
            // `u64::MAX` marks a program: no ring computes for so long.
            JobWork::Program(program) => {
                key.extend([u64::MAX, u64::from(program.class)]);
                key.extend(program.layout.key());
            }
        }
    }
    let name_of = |node: u32, nodes: &mut BTreeMap<u32, u32>, own: &mut Network| {
        let next = own.nodes.len() as u32;
        let name = *nodes.entry(node).or_insert(next);
        if name == next {
            let kind = net.nodes[node as usize].kind;
            let server = if kind == NodeKind::Host { next } else { u32::MAX };
            own.nodes.push(Node { kind, id: next, server });
            if kind == NodeKind::Host {
                own.ranks.push(next);
            }
        }
        name
    };
    let mut renamed_edges = Vec::new();
    for (job, edge) in edges {
        let mut arc_of = |arc: ArcIdx, key: &mut Vec<u64>| {
            let link = net.arc_link(arc);
            let mut node_of = |node: u32| name_of(node, &mut nodes, &mut own);
            // A link's direction is the one in which it is crossed first.
            let (from_node, to_node) = (node_of(net.arc_from(arc)), node_of(net.arc_to(arc)));
            let next = own.links.len() as u32;
            let name = *links.entry(arc / 2).or_insert(next);
            if name == next {
                own.links.push(Link { a: from_node, b: to_node, rate_bps: link.rate_bps, delay_ps: link.delay_ps });
                key.extend([link.rate_bps, link.delay_ps]);
            }
            let own_arc = 2 * name + u32::from(own.links[name as usize].a != from_node);
            key.extend([u64::from(own_arc), u64::from(from_node), u64::from(to_node)]);
            own_arc
        };
        key.extend([u64::from(job), edge.data.len() as u64, edge.ack.len() as u64]);
        let mut way = |paths: &[Vec<ArcIdx>]| -> Vec<Vec<ArcIdx>> {
            let path = |path: &Vec<ArcIdx>| {
                key.push(path.len() as u64);
                path.iter().map(|&arc| arc_of(arc, &mut key)).collect()
            };
            paths.iter().map(path).collect()
        };
        let paths = FlowPaths { data: way(&edge.data), ack: way(&edge.ack) };
        renamed_edges.push((job, paths));
    }
    // NICs of GPUs that neither send nor receive.
    let idle = hosts.iter().flat_map(|job_hosts| job_hosts.iter().copied()).filter(|host| !nodes.contains_key(host));
    let mut idle: BTreeSet<u32> = idle.collect();
    for link in net.links.iter().filter(|link| net.is_packet_link(link)) {
        if idle.is_empty() {
            break;
        }
        let (at_a, at_b) = (idle.remove(&link.a), idle.remove(&link.b));
        if at_a || at_b {
            let (a, b) = (name_of(link.a, &mut nodes, &mut own), name_of(link.b, &mut nodes, &mut own));
            own.links.push(Link { a, b, rate_bps: link.rate_bps, delay_ps: link.delay_ps });
            key.extend([link.rate_bps, link.delay_ps, u64::from(a), u64::from(b)]);
        }
    }
    let rank_of = |host: &NodeIdx| own.ranks.partition_point(|node| *node < nodes[host]) as u32;
    let gpus = hosts.iter().map(|job_hosts| job_hosts.iter().map(rank_of).collect()).collect();
    IterationCase { works, edges: renamed_edges, gpus, net: own, key }
}
