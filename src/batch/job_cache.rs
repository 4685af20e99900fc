//! A cache of jobs that several experiments of a sweep share: those that differ only in what the network does with packets.
//!
//! Layer: batch. `job` builds a job. The cache changes no result, only the time and memory that a sweep takes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::PrepareError;
use super::job::{self, Job};
use super::servers::Described;
use super::steady_pipeline;
use super::task_row_cache::TaskRowCache;
use super::worked_out::RanksWithTasks;
use crate::budget;
use crate::spec::{Config, Joining, Named, ProgramSpec, RequestSource, SlowdownChoice, Source, TopologyKind};
use crate::topology::{Link, Network, NodeIdx, NvLink};

/// Tasks of all jobs cached: some 1 GB with their edges.
const MOST_TASKS: usize = 1 << 24;
/// Share of the memory that may be used which cached jobs may take at most: the rest is for experiments (our choice).
const SHARE: u64 = 8;
/// What they may take as long as none was asked for again after it had to go: most sweeps of layouts have a job an experiment (our choice).
const BYTES_AT_FIRST: u64 = 192 << 20;
/// Evicted jobs that are known by a number.
const MOST_EVICTED: usize = 1 << 12;
/// Jobs with tasks cached: an axis beside the network's is rarely longer.
const MOST_JOBS: usize = 64;
/// Jobs cached that were worked out. They are a few numbers, and stay from the survey of a sweep, which makes up to 256, to its run (our choice).
const MOST_WORKED_OUT: usize = 1024;

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
    /// What it and its key take, without its rows.
    bytes: u64,
    notes: Vec<String>,
}

/// Jobs, and how many of them there may be.
struct JobCache {
    /// The most recently used last.
    jobs: Vec<CachedJob>,
    /// Numbers of those that had to go ([`JobKey::number`]).
    evicted: Vec<u64>,
    /// Bytes that the others may take beside the newest.
    room: u64,
}

static CACHE: Mutex<JobCache> = Mutex::new(JobCache { jobs: Vec::new(), evicted: Vec::new(), room: BYTES_AT_FIRST });

fn cache() -> MutexGuard<'static, JobCache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JobKey {
    /// About how many bytes it takes.
    fn bytes(&self) -> u64 {
        (self.config.len() + size_of_val(&*self.ranks) + size_of_val(&*self.links)) as u64
    }

    /// Tells jobs apart, but for chance.
    fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.config, self.jitter_seed, self.payload_share, self.ranks.len()).hash(&mut hasher);
        hasher.finish()
    }
}

/// The job of an experiment, perhaps one that another experiment has as well.
///
/// # Errors
/// As [`steady_pipeline::job`].
pub(super) fn job(
    config: &Config,
    program: &ProgramSpec,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    notes: &mut Vec<String>,
) -> Result<Arc<Job>, PrepareError> {
    let ranks = ranks.of(program);
    if !is_self_contained(program, config) {
        return steady_pipeline::job(config, program, net, described, ranks, notes).map(Arc::new);
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
        ..steady_pipeline::job(config, program, net, described, ranks, &mut own)?
    });
    notes.extend(own.iter().cloned());
    keep(CachedJob { bytes: job.bytes() + key.bytes(), key, job: Arc::clone(&job), notes: own });
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
    let mut cache = cache();
    let Some(at) = cache.jobs.iter().position(|k| k.key == *key) else {
        // It was here, and would still be if there were more room.
        if cache.evicted.contains(&key.number()) {
            cache.room = (2 * cache.room).min(budget::total() / SHARE);
        }
        return None;
    };
    let found = cache.jobs.remove(at);
    let result = (Arc::clone(&found.job), found.notes.clone());
    cache.jobs.push(found);
    Some(result)
}

/// From here on experiments may come again that were prepared before: that says nothing of how many share a job.
pub fn experiments_begin_anew() {
    cache().evicted.clear();
}

/// About how many bytes the cached jobs take, with their rows.
pub fn cached_job_bytes() -> u64 {
    bytes_of(&cache().jobs)
}

fn bytes_of(cached: &[CachedJob]) -> u64 {
    cached.iter().map(|k| k.bytes + k.job.rows.as_ref().map_or(0, TaskRowCache::bytes)).sum()
}

fn keep(new: CachedJob) {
    let mut cache = cache();
    cache.jobs.push(new);
    let tasks = |cached: &[CachedJob]| cached.iter().map(|k| k.job.graph.tasks.len()).sum::<usize>();
    // Rows of the newest are yet to come, as large as it is.
    let bytes = |cached: &[CachedJob]| bytes_of(cached) + cached.last().map_or(0, |k| k.bytes);
    let most = budget::total() / SHARE;
    loop {
        let jobs = &cache.jobs;
        let newest_alone = jobs.len() <= 1;
        // The next experiments may share the newest, however large it is.
        let room = if newest_alone { most } else { cache.room.min(most) };
        let worked_out = |of: &&CachedJob| of.job.worked_out.is_some();
        let n_worked_out = jobs.iter().filter(worked_out).count();
        let too_many = n_worked_out > MOST_WORKED_OUT;
        let fits = jobs.len() - n_worked_out <= MOST_JOBS && tasks(jobs) <= MOST_TASKS && bytes(jobs) <= room;
        if jobs.is_empty() || (fits && !too_many) {
            return;
        }
        // Of the kind of which there are too many.
        let oldest = jobs.iter().position(|of| worked_out(&of) == too_many).unwrap_or(0);
        let oldest = cache.jobs.remove(oldest);
        if cache.evicted.len() == MOST_EVICTED {
            cache.evicted.remove(0);
        }
        let number = oldest.key.number();
        cache.evicted.push(number);
    }
}
