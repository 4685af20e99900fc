//! A cache of jobs that several experiments of a sweep share: those that differ only in what the network does with packets.
//!
//! Layer: batch. `job` builds a job. The cache changes no result, only the time and memory that a sweep takes.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::PrepareError;
use super::job::{self, Job, RanksWithTasks};
use super::servers::Described;
use super::task_row_cache::TaskRowCache;
use crate::budget;
use crate::spec::{Config, Joining, Named, ProgramSpec, RequestSource, SlowdownChoice, Source, TopologyKind};
use crate::topology::{Link, Network, NodeIdx, NvLink};

/// Tasks of all jobs cached: some 1 GB with their edges.
const MOST_TASKS: usize = 1 << 24;
/// Share of the memory that may be used which cached jobs may take: the rest is for experiments (our choice).
const SHARE: u64 = 8;
/// Jobs cached: an axis beside the network's is rarely longer.
const MOST_JOBS: usize = 64;

/// What decides a job.
#[derive(Clone, Debug, PartialEq)]
struct JobKey {
    with_tasks: RanksWithTasks,
    joining: Joining,
    /// Cluster and workload, as text.
    config: String,
    /// Whether the sweep asks for a slowdown: only then is anything said of one that does nothing.
    jitter_seed: u64,
    ranks: Vec<(NodeIdx, u32)>,
    nvlink: Option<NvLink>,
    /// Links of the first server's hosts: what cost models know of the network.
    links: Vec<Link>,
    /// See [`job::payload_share`].
    payload_share: (u64, u64),
}

struct CachedJob {
    key: JobKey,
    job: Arc<Job>,
    notes: Vec<String>,
}

/// The most recently used last.
static CACHE: Mutex<Vec<CachedJob>> = Mutex::new(Vec::new());

/// The job of an experiment, perhaps one that another experiment has as well.
///
/// # Errors
/// As [`job::job`].
pub(super) fn job(
    config: &Config,
    program: &ProgramSpec,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    notes: &mut Vec<String>,
) -> Result<Arc<Job>, PrepareError> {
    if !is_self_contained(program, config) {
        return job::job(config, program, net, described, ranks, notes).map(Arc::new);
    }
    let key = key(config, program, net, ranks)?;
    if let Some(cached) = find(&key) {
        notes.extend(cached.1);
        return Ok(cached.0);
    }
    // Not under the lock: others prepare meanwhile, at worst the same.
    let mut own = Vec::new();
    let job = Arc::new(Job {
        rows: Some(TaskRowCache::default()),
        ..job::job(config, program, net, described, ranks, &mut own)?
    });
    notes.extend(own.iter().cloned());
    keep(CachedJob { key, job: Arc::clone(&job), notes: own });
    Ok(job)
}

/// Nothing but the configuration decides: no file, which might change.
fn is_self_contained(program: &ProgramSpec, config: &Config) -> bool {
    let named = |n: &Named| !matches!(n, Named::File(_));
    let source = match &program.source {
        Source::Model(t) => named(&t.model) && t.kernels.is_none(),
        Source::Inference(t) => {
            named(&t.model) && t.kernels.is_none() && matches!(t.requests, RequestSource::Generated(_))
        }
        Source::Collective { .. } => true,
        Source::File { .. } => false,
    };
    source
        && named(&config.cluster.gpu)
        && config.cluster.server_xml.is_none()
        && !matches!(program.compute.slowdown, SlowdownChoice::Table(_) | SlowdownChoice::Trees(_))
}

fn key(
    config: &Config,
    program: &ProgramSpec,
    net: &Network,
    with_tasks: RanksWithTasks,
) -> Result<JobKey, PrepareError> {
    let server = |host: NodeIdx| net.nodes[host as usize].server;
    let first = net.ranks.first().map(|&h| server(h));
    let of_first = |l: &&Link| Some(server(l.a)) == first || Some(server(l.b)) == first;
    let from_file = matches!(config.topology.kind, TopologyKind::File { .. });
    // Requests are drawn, too.
    let serves = matches!(program.source, Source::Inference(_));
    Ok(JobKey {
        with_tasks,
        joining: config.joining(),
        config: format!("{:?}{program:?}{from_file}{}", config.cluster, config.topology.link_bps),
        jitter_seed: if program.compute.jitter_ppm > 0 || serves { config.jitter_seed() } else { 0 },
        ranks: net.ranks.iter().map(|&h| (h, server(h))).collect(),
        nvlink: net.nvlink,
        links: net.links.iter().filter(of_first).cloned().collect(),
        payload_share: job::payload_share(config, program, config.topology.link_bps)?,
    })
}

fn find(key: &JobKey) -> Option<(Arc<Job>, Vec<String>)> {
    let mut cached = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let at = cached.iter().position(|k| k.key == *key)?;
    let found = cached.remove(at);
    let result = (Arc::clone(&found.job), found.notes.clone());
    cached.push(found);
    Some(result)
}

/// About how many bytes the cached jobs take, with their rows.
pub fn cached_job_bytes() -> u64 {
    bytes_of(&CACHE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn bytes_of(cached: &[CachedJob]) -> u64 {
    cached.iter().map(|k| k.job.bytes() + k.job.rows.as_ref().map_or(0, TaskRowCache::bytes)).sum()
}

fn keep(new: CachedJob) {
    let mut cached = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cached.push(new);
    let tasks = |cached: &[CachedJob]| cached.iter().map(|k| k.job.graph.tasks.len()).sum::<usize>();
    let most_bytes = budget::total() / SHARE;
    // Rows of the newest are yet to come, as large as it is.
    let bytes = |cached: &[CachedJob]| bytes_of(cached) + cached.last().map_or(0, |k| k.job.bytes());
    while cached.len() > MOST_JOBS
        || (!cached.is_empty() && (tasks(&cached) > MOST_TASKS || bytes(&cached) > most_bytes))
    {
        cached.remove(0);
    }
}
