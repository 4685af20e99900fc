//! A cache of jobs that several experiments of a sweep share: experiments that differ only in what the network does with packets.
//!
//! Layer: host. `job` builds a job. The cache changes no result, only the time and memory that a sweep takes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::estimates::steady_pipeline;
use crate::estimates::worked_out::RanksWithTasks;
use crate::programs::job::{self, Job, SharedJob};
use crate::programs::job_key::JobKey;
use crate::setup::error::PrepareError;
use crate::setup::servers::Described;
use crate::tables::task_row_cache::TaskRowCache;
use hyperfold_base::budget;
use hyperfold_config::spec::{Config, ProgramSpec};
use hyperfold_network::topology::Network;

/// Maximum number of tasks of all cached jobs: some 1 GB with their edges.
const MAX_TASKS: usize = 1 << 24;
/// Cached jobs may take at most 1 / `SHARE` of the memory budget; the rest is for experiments (our choice).
const SHARE: u64 = 8;
/// Bytes that cached jobs may take as long as no evicted job was asked for again: most sweeps of layouts have one job per experiment (our choice).
const BYTES_AT_FIRST: u64 = 192 << 20;
/// Jobs that were computed without simulation may take 1 / `SHARE_OF_WORKED_OUT` of the cache. They are a few numbers each, and stay from the survey of a sweep
/// to its run (our choice).
const SHARE_OF_WORKED_OUT: u64 = 4;
/// Maximum number of evicted jobs whose numbers are remembered: some 4 MB.
const MAX_EVICTED: usize = 1 << 18;

struct CachedJob {
    key: Arc<JobKey>,
    job: Arc<Job>,
    /// Size of the job and its key, without its rows.
    bytes: u64,
    notes: Vec<String>,
}

impl CachedJob {
    fn worked_out(&self) -> bool {
        self.job.worked_out.is_some()
    }

    /// Size of the job, its key and its rows.
    fn bytes(&self) -> u64 {
        self.bytes + self.job.shared.as_ref().map_or(0, |shared| shared.rows.bytes())
    }
}

/// The cached jobs, and how many bytes they may take.
#[derive(Default)]
struct JobCache {
    /// Jobs by the time when they were last asked for, the most recent last.
    jobs: BTreeMap<u64, CachedJob>,
    /// For each number of inputs ([`JobKey::number_of_inputs`]), the keys of such jobs in `jobs`.
    places: HashMap<u64, Vec<u64>>,
    /// Number of times that jobs were asked for; the clock of `jobs`.
    now: u64,
    /// Numbers of the jobs that were evicted ([`JobKey::number`]).
    evicted: HashSet<u64>,
    /// Bytes that the cached jobs other than the newest may take.
    budget_bytes: u64,
}

static CACHE: LazyLock<Mutex<JobCache>> =
    LazyLock::new(|| Mutex::new(JobCache { budget_bytes: BYTES_AT_FIRST, ..JobCache::default() }));

fn cache() -> MutexGuard<'static, JobCache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JobCache {
    fn add(&mut self, job: CachedJob) {
        self.now += 1;
        self.places.entry(job.key.number_of_inputs()).or_default().push(self.now);
        self.jobs.insert(self.now, job);
    }

    fn remove(&mut self, place: u64) -> Option<CachedJob> {
        let job = self.jobs.remove(&place)?;
        let number = job.key.number_of_inputs();
        if let Some(places) = self.places.get_mut(&number) {
            places.retain(|&p| p != place);
            if places.is_empty() {
                self.places.remove(&number);
            }
        }
        Some(job)
    }

    /// Returns the job that a key asks for, with its notes.
    fn find(&mut self, key: &JobKey) -> Option<(Arc<Job>, Vec<String>)> {
        let mut places = self.places.get(&key.number_of_inputs())?.iter().copied();
        let place = places.find(|place| self.jobs[place].key.serves(key))?;
        let found = self.remove(place)?;
        let result = (Arc::clone(&found.job), found.notes.clone());
        self.add(found);
        Some(result)
    }

    /// Returns a job that differs from what a key asks for only in the speed of kernels, with its notes.
    fn sibling(&self, key: &JobKey) -> Option<(Arc<Job>, Vec<String>)> {
        let mut places = self.places.get(&key.number_of_inputs())?.iter();
        let place = places.find(|place| self.jobs[*place].key.is_sibling(key))?;
        let sibling = &self.jobs[place];
        Some((Arc::clone(&sibling.job), sibling.notes.clone()))
    }

    /// Records that a job that was asked for is not here. If it was evicted, a larger cache would still have it, so the budget doubles.
    fn missed(&mut self, key: &JobKey) {
        if self.evicted.contains(&key.number()) {
            self.budget_bytes = (2 * self.budget_bytes).min(budget::total() / SHARE);
        }
    }

    /// Keeps a job, and evicts those that were least recently asked for until the others fit. `max_bytes`: limit that holds even for the newest job alone.
    fn keep(&mut self, new: CachedJob, max_bytes: u64) {
        // The job's rows do not exist yet; they are expected to be as large as the job.
        let expected = new.bytes;
        self.add(new);
        let jobs = |worked_out: bool| self.jobs.values().filter(move |k| k.worked_out() == worked_out);
        let mut small: u64 = jobs(true).map(CachedJob::bytes).sum();
        let mut large: u64 = jobs(false).map(CachedJob::bytes).sum::<u64>() + expected;
        let mut tasks: usize = jobs(false).map(|k| k.job.graph.tasks.len()).sum();
        while !self.jobs.is_empty() {
            // The next experiments may share the newest job, however large it is.
            let limit_bytes = if self.jobs.len() == 1 { max_bytes } else { self.budget_bytes.min(max_bytes) };
            let too_many_small = small > limit_bytes / SHARE_OF_WORKED_OUT;
            if !too_many_small && small + large <= limit_bytes && tasks <= MAX_TASKS {
                return;
            }
            // Evict a job of the kind that takes too much.
            let others = self.jobs.len() - 1;
            let oldest = self.jobs.iter().take(others).find(|(_, k)| k.worked_out() == too_many_small);
            let oldest = oldest.or_else(|| self.jobs.iter().next()).map(|(&place, _)| place);
            let Some(removed) = oldest.and_then(|place| self.remove(place)) else { return };
            let sum = if removed.worked_out() { &mut small } else { &mut large };
            *sum = sum.saturating_sub(removed.bytes());
            tasks -= removed.job.graph.tasks.len();
            if self.evicted.len() < MAX_EVICTED {
                self.evicted.insert(removed.key.number());
            }
        }
    }
}

/// Returns the job of an experiment, from the cache if another experiment has the same.
///
/// # Errors
/// Fails as [`steady_pipeline::job`] does.
pub(crate) fn job(
    config: &Config,
    program: &ProgramSpec,
    net: &Network,
    described: Option<&Described>,
    ranks: RanksWithTasks,
    notes: &mut Vec<String>,
) -> Result<Arc<Job>, PrepareError> {
    let ranks = ranks.of(program);
    let Some(key) = JobKey::new(config, program, net, ranks)? else {
        return steady_pipeline::job(config, program, net, described, ranks, notes).map(Arc::new);
    };
    let (found, sibling) = {
        let mut cache = cache();
        let found = cache.find(&key);
        if found.is_none() {
            cache.missed(&key);
        }
        let sibling = if found.is_none() { cache.sibling(&key) } else { None };
        (found, sibling)
    };
    if let Some((job, noted)) = found {
        notes.extend(noted);
        return Ok(job);
    }
    // The lock is not held while a job is built: other threads prepare meanwhile, at worst the same job.
    let mut own_notes = Vec::new();
    let rescaled = sibling.and_then(|(sibling, noted)| Some((job::rescaled(&sibling, config, program)?, noted)));
    let job = match rescaled {
        Some((job, noted)) => {
            own_notes = noted;
            job
        }
        None => steady_pipeline::job(config, program, net, described, ranks, &mut own_notes)?,
    };
    notes.extend(own_notes.iter().cloned());
    if let Some((job, _)) = cache().find(&key) {
        return Ok(job);
    }
    let key = Arc::new(if job.depends_on_payload { key } else { key.of_any_payload() });
    let shared = Some(SharedJob { key: Arc::clone(&key), rows: TaskRowCache::default() });
    let job = Arc::new(Job { shared, ..job });
    let bytes = size_of::<Job>() as u64 + job.bytes() + key.bytes();
    cache().keep(CachedJob { bytes, key, job: Arc::clone(&job), notes: own_notes }, budget::total() / SHARE);
    Ok(job)
}

/// Forgets all jobs, so that measured experiments share nothing.
pub fn forget_jobs() {
    *cache() = JobCache { budget_bytes: BYTES_AT_FIRST, ..JobCache::default() };
}

/// Forgets which jobs were evicted. From here on, experiments that were prepared before may come again, which does not mean that many share a job.
pub fn experiments_begin_anew() {
    cache().evicted.clear();
}

/// Approximate size of the cached jobs with their rows, bytes.
pub fn cached_job_bytes() -> u64 {
    cache().jobs.values().map(CachedJob::bytes).sum()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::prepare;
    use crate::setup::network::network;
    use crate::setup::servers;
    use hyperfold_config::spec::WorkloadSection;
    use hyperfold_config::sweep::{self, SetOverrides};
    use hyperfold_llm::workload::program::Workload;

    /// Builds an all-reduce of 16 GPUs. With a server model, software costs are measured ones, which depend on the packet size.
    fn cached(server: bool, bytes: u32, payload: u32) -> CachedJob {
        let cluster = if server { "server = \"dgx-a100\"" } else { "gpus_per_server = 8" };
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 16, {cluster} }}\nbase.transport = {{ payload_bytes = {payload} }}\n\
             base.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = {bytes} }}\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).expect("it is right");
        let config = sweep.config(&sweep.experiments[0]).expect("it is right");
        let job = prepare(&config, 0).expect("it can be prepared").job.expect("it is a program");
        let key = Arc::clone(&job.shared.as_ref().expect("others may have it").key);
        CachedJob { bytes: job.bytes() + key.bytes(), key, job, notes: Vec::new() }
    }

    #[test]
    fn bytes_decide_how_many_jobs_stay() {
        let jobs: Vec<CachedJob> = (0..100).map(|k| cached(false, 4096 + k, 1000)).collect();
        let keys: Vec<Arc<JobKey>> = jobs.iter().map(|k| Arc::clone(&k.key)).collect();
        let each = jobs[0].bytes();
        let mut cache = JobCache { budget_bytes: 200 * each, ..JobCache::default() };
        jobs.into_iter().for_each(|job| cache.keep(job, u64::MAX));
        assert!(keys.iter().all(|key| cache.find(key).is_some()), "all fit");
        // Two jobs and the newest stay, as the newest one's rows are expected to be as large as it is.
        cache.budget_bytes = 4 * each;
        cache.keep(cached(false, 5000, 1000), u64::MAX);
        assert!((2..4).contains(&cache.jobs.len()), "{} stay", cache.jobs.len());
        assert!(cache.find(&keys[99]).is_some(), "it was asked for last");
        assert!(cache.find(&keys[0]).is_none());
        cache.missed(&keys[0]);
        assert_eq!(cache.budget_bytes, 8 * each, "what comes again shows that there is too little room");
    }

    /// Returns the configuration of a training iteration whose kernels take `scale` times as long, and its job, built anew.
    fn trained(scale: f64, jitter: f64) -> (Config, ProgramSpec, Job) {
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = 16, server = \"dgx-a100\" }}\n\
             base.workload = {{ kind = \"model\", model = \"gpt3-1.7b\", tp = 8, pp = 2, microbatch = 1, global_batch = 4, seq = 512, compute_scale = {scale:?}, compute_jitter = {jitter:?} }}\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).expect("it is right");
        let config = sweep.config(&sweep.experiments[0]).expect("it is right");
        let described = servers::described(&config).expect("a known server");
        let config = servers::applied(&config, described.as_ref()).expect("a known server").into_owned();
        let WorkloadSection::Program(program) = config.workload.clone() else { panic!("it is a program") };
        let net = network(&config, described.as_ref(), &mut Vec::new()).expect("a network for 16 GPUs");
        let ranks = RanksWithTasks::Representatives;
        let job = steady_pipeline::job(&config, &program, &net, described.as_ref(), ranks, &mut Vec::new());
        let job = job.expect("it can be made");
        (config, *program, job)
    }

    #[test]
    fn a_job_with_other_kernel_times_is_what_would_be_made() {
        for jitter in [0.0, 0.1] {
            let (_, _, one) = trained(1.0, jitter);
            let (config, program, other) = trained(1.37, jitter);
            assert_ne!(one.graph, other.graph);
            let rescaled = job::rescaled(&one, &config, &program).expect("nothing else differs");
            assert_eq!(rescaled.graph, other.graph);
            let rest = |job: &Job| {
                let Workload { programs, ranks, groups, .. } = &job.workload;
                format!("{:?}", (programs, ranks, groups, job.warmup, job.longest, job.peak_bytes))
            };
            assert_eq!(rest(&rescaled), rest(&other));
            assert_eq!(rescaled.depends_on_payload, other.depends_on_payload);
        }
    }

    #[test]
    fn the_size_of_packets_is_a_part_of_the_key_only_where_it_decides() {
        for (server, one) in [(false, true), (true, false)] {
            let (a, b) = (cached(server, 7_000_000, 1000), cached(server, 7_000_000, 4000));
            assert_eq!(Arc::ptr_eq(&a.job, &b.job), one, "with a server: {server}");
            assert_eq!(a.key == b.key, one);
        }
        // Inside a server there are no packets.
        let inside = |payload| {
            let text = format!(
                "name = \"t\"\nbase.cluster = {{ gpus = 8, server = \"dgx-a100\" }}\nbase.transport = {{ payload_bytes = {payload} }}\n\
                 base.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 7000000 }}\n"
            );
            let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).expect("it is right");
            prepare(&sweep.config(&sweep.experiments[0]).expect("it is right"), 0).expect("it can be prepared").job
        };
        let (a, b) = (inside(1000).expect("it is a program"), inside(4000).expect("it is a program"));
        assert!(Arc::ptr_eq(&a, &b));
    }
}
