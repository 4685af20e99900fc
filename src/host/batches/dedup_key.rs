//! The key of an experiment: everything that decides its outcome. Experiments with equal keys have equal outcomes.
//!
//! Layer: host. Built from a routed experiment, before its tables are. Compared value by value; jobs are compared by their own keys.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::batches::world::Limits;
use crate::programs::job::Job;
use crate::programs::job_key::JobKey;
use crate::programs::jobs::PlacedJob;
use crate::setup::route::Routed;
use hyperfold_columns::NEVER;
use hyperfold_config::spec::{KeyId, SeriesKeys, Steady};
use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::TimedChange;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node};
use hyperfold_network::transport::{RttWindow, Transport};

/// Everything that decides the outcome of an experiment, except for what its cluster costs.
#[derive(Debug)]
pub(crate) struct DedupKey {
    /// Hash of jobs, transport and paths. It tells most different experiments apart.
    pub(crate) number: u64,
    /// Keys of the jobs. For a single workload one key; for several jobs the keys of those that are programs, in order.
    programs: Vec<Arc<JobKey>>,
    /// For several jobs, the rest of what describes each.
    placed: Vec<PlacedKey>,
    /// For several jobs, the flows of traffic.
    flows: Vec<Flow>,
    /// Traffic class of each flow and queue pair; empty where there is one class.
    classes: Vec<u8>,
    transport: Transport,
    limits: Limits,
    time_limit_ps: Option<u64>,
    flow_level: bool,
    links: bool,
    shared_links: bool,
    rtt_samples: bool,
    rtt_means: bool,
    series: Option<SeriesKeys>,
    series_links: Box<str>,
    fresh_qp: bool,
    steady: Option<Steady>,
    rtt: Vec<RttWindow>,
    paths: Vec<FlowPaths>,
    changes: Vec<TimedChange>,
    network: Network,
}

/// A job among several: name, kind and placement (as words in its result row), GPUs by rank, start (ps), whether it is a background job, its first flow.
type PlacedKey = (Arc<str>, [String; 2], Vec<u32>, u64, bool, u32);

impl PartialEq for DedupKey {
    fn eq(&self, other: &DedupKey) -> bool {
        let DedupKey {
            number,
            programs,
            placed,
            flows,
            classes,
            transport,
            limits,
            time_limit_ps,
            flow_level,
            links,
            shared_links,
            rtt_samples,
            rtt_means,
            series,
            series_links,
            fresh_qp,
            steady,
            rtt,
            paths,
            changes,
            network,
        } = self;
        let same_job = |(a, b): (&Arc<JobKey>, &Arc<JobKey>)| Arc::ptr_eq(a, b) || a == b;
        *number == other.number
            && programs.len() == other.programs.len()
            && programs.iter().zip(&other.programs).all(same_job)
            && (placed, flows, classes) == (&other.placed, &other.flows, &other.classes)
            && *transport == other.transport
            && *limits == other.limits
            && *time_limit_ps == other.time_limit_ps
            && *flow_level == other.flow_level
            && (*links, *shared_links) == (other.links, other.shared_links)
            && *series_links == other.series_links
            && (*rtt_samples, *rtt_means) == (other.rtt_samples, other.rtt_means)
            && (*series, *fresh_qp) == (other.series, other.fresh_qp)
            && *steady == other.steady
            && *rtt == other.rtt
            && *paths == other.paths
            && *changes == other.changes
            && *network == other.network
    }
}

impl DedupKey {
    /// Returns the key of an experiment, or `None` if it may not be remembered or its job cannot be shared.
    pub(crate) fn of(r: &Routed, limits: Limits) -> Option<DedupKey> {
        let config = &*r.config;
        if !config.shares_outcomes() {
            return None;
        }
        // Equal jobs have equal keys, even if they are distinct objects.
        let key = |job: &Arc<Job>| Some(Arc::clone(&job.shared.as_ref()?.key));
        let programs: Vec<Arc<JobKey>> = match &config.jobs {
            None => vec![key(r.job.as_ref()?)?],
            Some(_) => r.placed.iter().filter_map(|job| job.program.as_ref()).map(key).collect::<Option<_>>()?,
        };
        let n_plain = if config.jobs.is_some() { r.flows.iter().filter(|f| f.start_ps != NEVER).count() } else { 0 };
        let mut transport = r.transport.clone();
        if r.paths.iter().all(|p| p.data.len() <= 1 && p.ack.len() <= 1) {
            // There is one path per flow, so the seed is never used.
            transport.routing_seed = 0;
        }
        let mut hasher = DefaultHasher::new();
        programs.iter().for_each(|job| job.number().hash(&mut hasher));
        (&transport, &r.paths).hash(&mut hasher);
        Some(DedupKey {
            number: hasher.finish(),
            programs,
            placed: r.placed.iter().map(placed_key).collect(),
            flows: r.flows[..n_plain].to_vec(),
            classes: if config.classes.is_empty() { Vec::new() } else { r.flows.iter().map(|f| f.class).collect() },
            transport,
            limits,
            time_limit_ps: config.limits.sim_ps,
            flow_level: config.is_flow_level(),
            links: config.output.links,
            shared_links: config.output.shared_links,
            rtt_samples: config.output.rtt,
            rtt_means: config.output.rtt_means,
            series: config.output.series,
            series_links: config.values.text(KeyId::SeriesLinks).into(),
            fresh_qp: config.fresh_qp(),
            steady: config.steady(),
            rtt: r.rtt.clone(),
            paths: r.paths.clone(),
            changes: r.changes.clone(),
            network: r.network.clone(),
        })
    }

    /// Approximate size of the key, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_path = |path: &Vec<ArcIdx>| size_of::<Vec<ArcIdx>>() + allocated(size_of_val(&**path));
        let arcs: usize = self.paths.iter().flat_map(|p| p.data.iter().chain(&p.ack)).map(of_path).sum();
        let arcs = arcs + 2 * self.paths.len() * ALLOCATOR_BYTES;
        let jobs: u64 = self.programs.iter().map(|job| job.bytes()).sum();
        let placed: usize = self.placed.iter().map(|job| size_of::<PlacedKey>() + size_of_val(&*job.2)).sum();
        size_of::<DedupKey>()
            + jobs as usize
            + placed
            + arcs
            + size_of_val(&*self.paths)
            + size_of_val(&*self.rtt)
            + size_of_val(&*self.flows)
            + self.network.nodes.len() * size_of::<Node>()
            + self.network.links.len() * size_of::<Link>()
            + size_of_val(&*self.network.slow_arcs)
    }
}

/// Bytes that the system's allocator keeps for each allocation, and in multiples of which it allocates.
const ALLOCATOR_BYTES: usize = 8;
const ALLOCATED_MULTIPLE: usize = 16;

/// Returns what the system's allocator takes for so many bytes.
fn allocated(bytes: usize) -> usize {
    (bytes + ALLOCATOR_BYTES).next_multiple_of(ALLOCATED_MULTIPLE).max(2 * ALLOCATED_MULTIPLE)
}

fn placed_key(job: &PlacedJob) -> PlacedKey {
    let words = [job.kind.clone(), job.placement.clone()];
    (Arc::clone(&job.name), words, job.gpus.clone(), job.start_ps, job.background, job.first_flow)
}
