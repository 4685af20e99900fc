//! The rows of each of several jobs in one experiment: its flows, its bytes, and the links that it shares with others.
//!
//! Layer: host. Counts what was prepared; `read_outcome` reads the results.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::outcomes::flow_info::FlowInfo;
use crate::programs::jobs::PlacedJob;
use hyperfold_llm::workload::tasks::{TaskGraph, Work};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::ArcIdx;

/// A job of a prepared experiment.
#[derive(Clone, Debug)]
pub struct JobRows {
    /// The job on its GPUs.
    pub job: PlacedJob,
    /// Range of its flows among those of the experiment.
    pub flows: Range<usize>,
    /// Payload of its flows and messages, bytes.
    pub bytes: u64,
    /// Packet-hops if each of its packets is carried once.
    pub packet_hops: u64,
    /// Links that it shares with other jobs.
    pub shared: SharedLinks,
}

/// Link directions that data of a job and of other jobs cross, at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLinks {
    /// Indices of the other jobs, and how many links are shared with each.
    pub other_jobs: Vec<(usize, u32)>,
    /// Number of links that are shared with any other job.
    pub links: u32,
    /// Payload of the job on these links, bytes, counted once per link.
    pub bytes: u64,
    /// The link end that sends most bytes of all jobs together on a shared link.
    pub busiest: Option<usize>,
}

/// A shared link: the link end that sends on it, and the jobs whose data cross it as (index, payload bytes), ascending.
pub(crate) type LinkShares = (usize, Vec<(usize, u64)>);

/// How the flows of an experiment cross the network.
pub(crate) struct Crossing<'a> {
    /// Paths of each flow of traffic; `None`: the flow stays inside a server.
    pub plain: &'a dyn Fn(usize) -> Option<&'a FlowPaths>,
    /// Number of flows of traffic.
    pub n_plain: usize,
    pub qps: &'a [FlowPaths],
    pub graph: Option<&'a TaskGraph>,
    /// Packet-hops of a message or flow of so many bytes.
    pub hops: &'a dyn Fn(u64, &FlowPaths) -> u64,
    /// The arc that each link end transmits on.
    pub end_arcs: &'a [ArcIdx],
}

/// Counts flows, bytes and shared links of each job, and numbers the jobs' flows. `infos`: flows of traffic job by job, then messages job by job. With
/// `by_link`, also returns the bytes of each job on each shared link.
pub(crate) fn of_jobs(
    placed: Vec<PlacedJob>,
    infos: &mut [FlowInfo],
    crossing: &Crossing,
    by_link: bool,
) -> (Vec<JobRows>, Vec<LinkShares>) {
    let (mut next_plain, mut next_message) = (0, crossing.n_plain);
    let mut loads: Vec<BTreeMap<ArcIdx, u64>> = Vec::with_capacity(placed.len());
    let mut rows = Vec::with_capacity(placed.len());
    for job in placed {
        let next = if job.program.is_some() { &mut next_message } else { &mut next_plain };
        let flows = *next..*next + job.n_flows as usize;
        *next = flows.end;
        for (info, id) in infos[flows.clone()].iter_mut().zip(job.first_flow..) {
            info.id = id;
        }
        let mut load: BTreeMap<ArcIdx, u64> = BTreeMap::new();
        let mut packet_hops = 0;
        let mut add = |bytes: u64, paths: &FlowPaths| {
            packet_hops += (crossing.hops)(bytes, paths);
            for &arc in paths.data.iter().flatten() {
                *load.entry(arc).or_insert(0) += bytes / paths.data.len() as u64;
            }
        };
        match crossing.graph.filter(|_| job.program.is_some()) {
            Some(graph) => {
                for task in &graph.tasks[job.tasks.start as usize..job.tasks.end as usize] {
                    if let Work::Message { qp, bytes } = task.work {
                        add(bytes, &crossing.qps[qp as usize]);
                    }
                }
            }
            None => flows.clone().for_each(|i| {
                if let Some(paths) = (crossing.plain)(i) {
                    add(infos[i].bytes, paths);
                }
            }),
        }
        loads.push(load);
        let bytes = infos[flows.clone()].iter().map(|f| f.bytes).sum();
        rows.push(JobRows { job, flows, bytes, packet_hops, shared: SharedLinks::default() });
    }
    for (own, row) in rows.iter_mut().enumerate() {
        row.shared = shared(&loads, own, crossing.end_arcs);
    }
    (rows, if by_link { link_shares(&loads, crossing.end_arcs) } else { Vec::new() })
}

/// Returns the links that several jobs load, in the order of link ends.
fn link_shares(loads: &[BTreeMap<ArcIdx, u64>], end_arcs: &[ArcIdx]) -> Vec<LinkShares> {
    let jobs_on = |arc: &ArcIdx| -> Vec<(usize, u64)> {
        loads.iter().enumerate().filter_map(|(job, load)| Some((job, *load.get(arc)?))).collect()
    };
    let ends = end_arcs.iter().enumerate().map(|(end, arc)| (end, jobs_on(arc)));
    ends.filter(|(_, jobs)| jobs.len() > 1).collect()
}

/// Returns the links that job `own` shares, from the bytes of each job on each arc.
fn shared(loads: &[BTreeMap<ArcIdx, u64>], own: usize, end_arcs: &[ArcIdx]) -> SharedLinks {
    let mut arcs: BTreeSet<ArcIdx> = BTreeSet::new();
    let mut other_jobs = Vec::new();
    for (other, load) in loads.iter().enumerate().filter(|(other, _)| *other != own) {
        let both: Vec<ArcIdx> = loads[own].keys().copied().filter(|arc| load.contains_key(arc)).collect();
        arcs.extend(&both);
        if !both.is_empty() {
            other_jobs.push((other, both.len() as u32));
        }
    }
    let all = |arc: &ArcIdx| loads.iter().filter_map(|load| load.get(arc)).sum::<u64>();
    // The first of several links with equal loads is taken.
    let busiest = arcs.iter().rev().max_by_key(|arc| all(arc));
    SharedLinks {
        other_jobs,
        links: arcs.len() as u32,
        bytes: arcs.iter().map(|arc| loads[own][arc]).sum(),
        busiest: busiest.and_then(|arc| end_arcs.iter().position(|end_arc| end_arc == arc)),
    }
}
