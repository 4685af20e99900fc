//! Surveys a sweep before anything runs: the resources that it takes, and errors in its inputs.
//!
//! Layer: session. Prepares one experiment of every shape. Simulates nothing except clusters over days: for a moment, where
//! the time of a run is asked for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use hyperfold_base::budget::{self, Unfinished};
use hyperfold_cluster::{BYTES_A_JOB, ClusterError, PreparedCluster};
use hyperfold_config::spec::{self, Config, SpecError};
use hyperfold_config::sweep::{Experiment, Hash128, Sweep};
use hyperfold_host::{KeptExperiments, MemoryRefusal, MemorySize, PrepareError};

use crate::error::SessionError;
use crate::experiment::config;
use crate::planning::forecast::{ExperimentSize, Folding};
use crate::planning::known_sizes::{KnownSizes, network_text};
use crate::planning::planned::PlanProgress;

/// Most distinct shapes of experiments (network, routes, traffic) whose inputs are checked before anything runs. Others are checked when their turn comes, and
/// then end as failed.
const CHECKED_SHAPES: usize = 256;
/// Bytes of tables after which no more shapes are checked: preparing is most of the work of a plan.
const CHECKED_BYTES: u64 = 2 << 30;
/// Bytes of tables after which freed memory is given back to the system.
const GIVEN_BACK_BYTES: u64 = 128 << 20;
/// Bytes of tables from which an experiment is kept for the run (our choice): smaller ones are quickly prepared again.
const KEPT_BYTES: u64 = 16 << 20;
/// Kept experiments may take 1 / `SHARE_OF_KEPT` of the memory budget (our choice).
const SHARE_OF_KEPT: u64 = 8;
/// Shapes per thread that are prepared ahead of their turn.
const AHEAD_A_THREAD: usize = 4;
const AHEAD_OF: usize = 8;
/// Time for which a cluster over days is simulated to estimate its time. Most end sooner. The next constant: time for all clusters.
const CLUSTER_PATIENCE: Duration = Duration::from_millis(250);
const CLUSTERS_PATIENCE: Duration = Duration::from_secs(1);
/// Like `CLUSTER_PATIENCE`, for a cluster whose jobs' iterations are simulated.
const ITERATIONS_PATIENCE: Duration = Duration::from_millis(1500);

/// The findings from the inputs of the selected experiments.
#[derive(Default)]
pub(crate) struct Survey {
    /// Sizes of the experiments that will be simulated, in their order: each configuration once.
    pub(crate) sizes: Vec<ExperimentSize>,
    /// Bytes of their jobs, which several experiments share.
    pub(crate) job_bytes: u64,
    pub(crate) warnings: Vec<String>,
    /// Experiments that need more memory than their GPUs or this machine have, with reasons.
    pub(crate) cannot_fit: Vec<(u64, Arc<str>)>,
    /// Experiments that may need more memory than their GPUs have, with reasons.
    pub(crate) tight: BTreeMap<u64, String>,
    /// Experiments whose keys or inputs contradict each other, with reasons.
    pub(crate) cannot_run: Vec<(u64, Arc<str>)>,
    /// Large experiments that are kept prepared for the run.
    pub(crate) kept: Arc<KeptExperiments>,
    /// Bytes that the preparation of kept experiments allocated and still holds.
    kept_held: u64,
}

/// The reason why an experiment will not be simulated.
#[derive(Clone)]
struct Exclusion {
    /// Whether it needs more memory than there is.
    too_large: bool,
    why: Arc<str>,
}

impl Exclusion {
    fn of(error: &PrepareError) -> Exclusion {
        let too_large =
            matches!(error, PrepareError::Oom { .. } | PrepareError::Memory(_) | PrepareError::TooManyFlows { .. });
        Exclusion { too_large, why: error.to_string().into() }
    }
}

/// Experiments whose estimated memory exceeds their GPUs' slightly, so that they run with a warning.
#[derive(Default)]
struct Tight {
    warnings: BTreeMap<u64, String>,
}

impl Tight {
    fn add(&mut self, exp_id: u64, above: Option<String>) {
        if let Some(text) = above {
            self.warnings.insert(exp_id, text);
        }
    }

    /// Returns one warning for all of them: the first one's, and their number.
    fn warning(&self) -> Option<String> {
        let (exp_id, text) = self.warnings.first_key_value()?;
        let more = match self.warnings.len() - 1 {
            0 => String::new(),
            1 => " (the same holds for 1 more experiment)".into(),
            n => format!(" (the same holds for {n} more experiments)"),
        };
        Some(format!("experiment {exp_id} may not fit: {text}{more}"))
    }
}

impl Survey {
    /// Prepares an experiment. Returns its notes and size, and keeps it if it is large and there is memory. `alone`: the sweep has no other experiment.
    fn prepared(&mut self, config: &Config, exp_id: u64, alone: bool) -> Made {
        let start = Instant::now();
        let prepare =
            |allowance| budget::measured(|| hyperfold_host::prepare_to_keep(config, exp_id as u32, allowance, alone));
        let allowance = budget::total() / 4 * 3;
        let kept_bytes = self.kept.bytes();
        let (mut made, mut allocated) = prepare(allowance.saturating_sub(kept_bytes));
        if kept_bytes > 0 && matches!(made, Err(PrepareError::Memory(_))) {
            // Such an experiment needs the memory of the kept ones.
            self.kept.retain(|_| false);
            self.sizes.iter_mut().for_each(|size| size.kept_bytes = 0);
            self.kept_held = 0;
            (made, allocated) = prepare(allowance);
        }
        let seconds = start.elapsed().as_secs_f64();
        let made = match made {
            Ok(made) => made,
            Err(e) => return (Err(e), ExperimentSize::default()),
        };
        let (prepared, bytes) = (made.prepared(), made.bytes());
        let notes = prepared.notes.iter().cloned().chain(hyperfold_validated::notes(config)).collect();
        let key_bytes = bytes.saturating_sub(prepared.host_bytes());
        let size = ExperimentSize { key_bytes, ..ExperimentSize::of(config, prepared, allocated, seconds) };
        log::debug!("survey: experiment {exp_id}: {size:?}");
        let fits = self.kept.bytes().saturating_add(bytes) <= budget::total() / SHARE_OF_KEPT;
        // An experiment of several jobs may be queued with further runs, which change the ids in the queue.
        if size.table_bytes < KEPT_BYTES || !fits || config.jobs.is_some() {
            return (Ok(notes), size);
        }
        self.kept_held += allocated.held.saturating_sub(size.job.map_or(0, |(_, bytes)| bytes));
        self.kept.put(exp_id, made);
        (Ok(notes), ExperimentSize { kept_bytes: bytes, ..size })
    }

    fn exclude(&mut self, experiment: &Experiment, exclusion: &Exclusion) {
        let list = if exclusion.too_large { &mut self.cannot_fit } else { &mut self.cannot_run };
        list.push((experiment.exp_id, Arc::clone(&exclusion.why)));
    }
}

/// Prepares one experiment of every shape, so that bad input is found before anything runs. Large experiments are kept as long as there is memory, the others
/// are dropped. `estimates`: clusters over days are simulated for a moment, to estimate their time.
///
/// # Errors
/// The whole sweep has nothing to run because of bad input.
pub(crate) fn survey(sweep: &Sweep, estimates: bool, progress: &PlanProgress) -> Result<Survey, SessionError> {
    let (surveyed, allocated) = budget::measured(|| surveyed(sweep, estimates, progress));
    hyperfold_host::experiments_begin_anew();
    budget::give_back();
    // The bytes still held, besides kept experiments, are cached jobs, which the run uses.
    let left =
        |survey: &Survey| allocated.held.saturating_sub(survey.kept_held).max(hyperfold_host::cached_job_bytes());
    surveyed.map(|survey| Survey { job_bytes: left(&survey), ..survey })
}

fn surveyed(sweep: &Sweep, estimates: bool, progress: &PlanProgress) -> Result<Survey, SessionError> {
    // For each shape its size, where known, or why its experiments are excluded.
    let mut shapes: HashMap<String, Result<Option<ExperimentSize>, Exclusion>> = HashMap::new();
    let mut survey = Survey::default();
    let mut noted = HashSet::new();
    let mut tight = Tight::default();
    let mut known_sizes = KnownSizes::default();
    let (mut unprepared, mut estimated) = (0, 0u64);
    // Configurations that were seen: each is simulated once. What excludes the first experiment of a configuration excludes all.
    let mut seen: HashMap<Hash128, Option<Exclusion>> = HashMap::new();
    // If there are fewer clusters than threads, several sets of jobs are simulated at a time.
    let at_a_time = rayon::current_num_threads().div_ceil(sweep.experiments.len().max(1));
    let clock = |patience| {
        let left = if estimates { patience } else { Duration::ZERO };
        ClusterClock { left, at_a_time, jobs: 0, seconds: 0.0, bytes: 0 }
    };
    let mut clocks = [clock(CLUSTERS_PATIENCE), clock(2 * ITERATIONS_PATIENCE)];
    let alone = sweep.experiments.len() == 1;
    let mut bytes = 0u64;
    let mut ahead = PreparedAhead::default();
    // Number of experiments that bad input stops.
    let mut stopped = 0;
    let mut first: Option<SessionError> = None;
    for (position, experiment) in sweep.experiments.iter().enumerate() {
        progress.set(position, sweep.experiments.len());
        if let Some(why) = sweep.cannot_run(experiment) {
            survey.cannot_run.push((experiment.exp_id, why.into()));
            stopped += 1;
            continue;
        }
        if let Some(known) = seen.get(&experiment.exp_key) {
            if let Some(exclusion) = known {
                survey.exclude(experiment, exclusion);
            }
            continue;
        }
        let config = config(sweep, experiment);
        if config.cluster_run().is_some() {
            // The jobs themselves do not depend on how they are scheduled, but preparing them again for another shape is cheap.
            let shape = format!("{:?}{:?}", (&config.cluster, &config.topology), (&config.workload, &config.jobs));
            let known = shapes.get(&shape).cloned();
            if known.is_none() {
                let notes = hyperfold_validated::notes(&config);
                survey.warnings.extend(notes.into_iter().filter(|n| noted.insert(n.clone())));
            }
            let work = known.unwrap_or_else(|| match cluster_size(&config, &mut clocks) {
                Ok(size) => Ok(Some(size)),
                Err(error) => {
                    let exclusion = match &error {
                        ClusterError::Network(error) => Exclusion::of(error),
                        error => Exclusion { too_large: false, why: error.to_string().into() },
                    };
                    if !exclusion.too_large {
                        stopped += 1;
                        first.get_or_insert_with(|| named(sweep, experiment, error));
                    }
                    Err(exclusion)
                }
            });
            match &work {
                Ok(Some(size)) => survey.sizes.push(ExperimentSize { exp_id: experiment.exp_id, ..*size }),
                Ok(None) => {}
                Err(exclusion) => survey.exclude(experiment, exclusion),
            }
            if sweep.duplicates > 0 {
                seen.insert(experiment.exp_key, work.as_ref().err().cloned());
            }
            if shapes.len() < CHECKED_SHAPES {
                shapes.insert(shape, work);
            }
            continue;
        }
        let mut excluded = |error: PrepareError, survey: &mut Survey| {
            let exclusion = Exclusion::of(&error);
            survey.exclude(experiment, &exclusion);
            if error.is_input() {
                stopped += 1;
                first.get_or_insert_with(|| named(sweep, experiment, ClusterError::Network(error)));
            }
            exclusion
        };
        let work: Result<Option<ExperimentSize>, Exclusion> = match hyperfold_host::fits(&config) {
            Err(e) => Err(excluded(e, &mut survey)),
            Ok(above) => {
                tight.add(experiment.exp_id, above);
                let network = network_text(&config);
                let shape = shape_of(&config, &network);
                match shapes.get(&shape) {
                    Some(Ok(work)) => Ok(*work),
                    Some(Err(exclusion)) => {
                        survey.exclude(experiment, exclusion);
                        Err(exclusion.clone())
                    }
                    None if shapes.len() >= CHECKED_SHAPES
                        || (bytes >= CHECKED_BYTES && known_sizes.has_kind(&config)) =>
                    {
                        estimated += 1;
                        Ok(known_sizes.on_another_network(&config, network))
                    }
                    None => {
                        let (prepared, size) = match ahead.take(&shape) {
                            Some(made) => made,
                            None if hyperfold_host::is_worked_out(&config) => {
                                ahead.prepare(sweep, position, |experiment, shape| {
                                    !seen.contains_key(&experiment.exp_key) && !shapes.contains_key(shape)
                                });
                                ahead.take(&shape).unwrap_or_else(|| prepared(&config))
                            }
                            None => survey.prepared(&config, experiment.exp_id, alone),
                        };
                        let given_back = bytes / GIVEN_BACK_BYTES;
                        if (bytes + size.table_bytes) / GIVEN_BACK_BYTES > given_back {
                            budget::give_back();
                        }
                        let work = match prepared {
                            Ok(notes) => {
                                bytes += size.table_bytes;
                                known_sizes.add(&config, network, size);
                                survey.warnings.extend(notes.into_iter().filter(|n| noted.insert(n.clone())));
                                Ok(Some(size))
                            }
                            Err(e) => Err(excluded(e, &mut survey)),
                        };
                        shapes.insert(shape, work.clone());
                        work
                    }
                }
            }
        };
        let foreseen = match &work {
            // Traffic that was not prepared is assumed to be like the prepared ones, in turn.
            Ok(None) => known_sizes.in_turn(unprepared),
            Ok(known) => *known,
            Err(_) => None,
        };
        unprepared += usize::from(matches!(work, Ok(None)));
        if let Some(known) = foreseen {
            let (exp_id, folds) = (experiment.exp_id, Folding::of(&config, known.tasks > 0));
            // Other experiments of its shape are prepared when their turn comes.
            let kept_bytes = if survey.kept.has(exp_id) { known.kept_bytes } else { 0 };
            survey.sizes.push(ExperimentSize { exp_id, folds, kept_bytes, ..known });
        }
        if sweep.duplicates > 0 {
            seen.insert(experiment.exp_key, work.err());
        }
    }
    if estimates && estimated > 0 {
        let n = sweep.experiments.len();
        survey.warnings.push(format!(
            "memory and time of {estimated} of {n} experiments are estimated from others like them, as preparing all would take long"
        ));
    }
    survey.warnings.extend(tight.warning());
    survey.tight = tight.warnings;
    // A shard or the first few experiments of a sweep may have nothing that can run; their rows say so.
    let whole = sweep.experiments.len() as u64 == sweep.n_experiments;
    match first {
        Some(error) if whole && stopped == sweep.experiments.len() => Err(error),
        _ => Ok(survey),
    }
}

/// Returns the keys that decide the size of an experiment and the notes on it, as text. `network` is its [`network_text`].
fn shape_of(config: &Config, network: &str) -> String {
    let traffic = (&config.workload, &config.jobs);
    let v = &config.values;
    // Without PFC a note says which thresholds no queue can reach.
    let marks =
        (!v.bool(spec::KeyId::Pfc)).then(|| [spec::KeyId::EcnKminKb, spec::KeyId::EcnByRate].map(|key| v.get(key)));
    // Classes have headrooms of their own.
    let of_jobs = config.jobs.iter().flat_map(|jobs| jobs.jobs.iter().map(|job| &job.classes));
    let classes: Vec<_> = of_jobs.chain([&config.classes]).collect();
    let pauses = (v.bool(spec::KeyId::Pfc), classes);
    format!("{network}{traffic:?}{pauses:?}{:?}{}{marks:?}", v.text(spec::KeyId::Cc), config.is_flow_level())
}

/// The notes on an experiment, or its error, and its size.
type Made = (Result<Vec<String>, PrepareError>, ExperimentSize);

/// Shapes that were prepared ahead of their turn, in parallel. For experiments that are computed without simulation, preparing is all the work.
#[derive(Default)]
struct PreparedAhead {
    made: HashMap<String, Made>,
}

impl PreparedAhead {
    fn take(&mut self, shape: &str) -> Option<Made> {
        self.made.remove(shape)
    }

    /// Prepares the next shapes, from the experiment at `position` on, whose experiments are computed without simulation and for which `open` is true. Takes as
    /// many as keep all threads busy.
    fn prepare(&mut self, sweep: &Sweep, position: usize, open: impl Fn(&Experiment, &str) -> bool) {
        let threads = rayon::current_num_threads();
        let mut next: Vec<(String, Config)> = Vec::new();
        for experiment in sweep.experiments[position..].iter().take(AHEAD_OF * AHEAD_A_THREAD * threads) {
            if next.len() == AHEAD_A_THREAD * threads {
                break;
            }
            if sweep.cannot_run(experiment).is_some() {
                continue;
            }
            let config = config(sweep, experiment);
            let shape = shape_of(&config, &network_text(&config));
            let known = next.iter().any(|(next_shape, _)| *next_shape == shape) || self.made.contains_key(&shape);
            if hyperfold_host::is_worked_out(&config)
                && !known
                && open(experiment, &shape)
                && hyperfold_host::fits(&config).is_ok()
            {
                next.push((shape, config));
            }
        }
        let share = budget::total() / 4 * 3 / threads.max(1) as u64;
        let made: Vec<(String, Made)> = next
            .into_par_iter()
            .with_max_len(1)
            .map(|(shape, config)| (shape, prepared_within(&config, share)))
            .collect();
        // An experiment that needs more than its share is prepared alone, later.
        let alone = |made: &Made| matches!(&made.0, Err(PrepareError::Memory(_) | PrepareError::Interrupted));
        self.made.extend(made.into_iter().filter(|(_, made)| !alone(made)));
    }
}

/// Prepares an experiment and drops it. Returns its notes and size.
fn prepared(config: &Config) -> Made {
    prepared_within(config, budget::total() / 4 * 3)
}

fn prepared_within(config: &Config, allowance: u64) -> Made {
    let start = Instant::now();
    let (prepared, allocated) = budget::measured(|| hyperfold_host::prepare_within(config, 0, allowance));
    let seconds = start.elapsed().as_secs_f64();
    match prepared {
        Ok(prepared) => {
            let size = ExperimentSize::of(config, &prepared, allocated, seconds);
            (Ok(prepared.notes.into_iter().chain(hyperfold_validated::notes(config)).collect()), size)
        }
        Err(e) => (Err(e), ExperimentSize::default()),
    }
}

/// Estimates the time of clusters over days by simulating the first of them for a moment.
struct ClusterClock {
    /// Time that is left for simulating clusters.
    left: Duration,
    /// Sets of jobs whose iterations are simulated at a time.
    at_a_time: usize,
    jobs: u64,
    seconds: f64,
    /// Most bytes that one of these took, as far as known.
    bytes: u64,
}

impl ClusterClock {
    /// Estimates the seconds of one thread that a cluster takes, and its bytes besides those of its jobs.
    fn takes(&mut self, cluster: &PreparedCluster) -> (f64, u64) {
        let jobs = cluster.n_jobs() as u64;
        if self.left.is_zero() {
            return (jobs as f64 * self.seconds / self.jobs.max(1) as f64, self.bytes);
        }
        let start = Instant::now();
        let patience = self.left.min(CLUSTER_PATIENCE);
        let (half, all) = match cluster.measures() {
            true => (ITERATIONS_PATIENCE / 2, ITERATIONS_PATIENCE),
            false => (patience, patience),
        };
        let foreseen = cluster.foreseen(self.at_a_time, &|| start.elapsed() > half, &|| start.elapsed() > all);
        self.left = self.left.saturating_sub(start.elapsed());
        // If it fails, its row will say why.
        let (seconds, bytes) =
            foreseen.map_or((start.elapsed().as_secs_f64(), self.bytes), |forecast| (forecast.seconds, forecast.bytes));
        self.jobs += jobs;
        self.seconds += seconds;
        self.bytes = self.bytes.max(bytes);
        (seconds, bytes)
    }
}

/// Prepares a cluster and drops it. Returns its size; its jobs count as tasks. `clocks`: one for assumed speeds, one for simulated iterations.
fn cluster_size(config: &Config, clocks: &mut [ClusterClock; 2]) -> Result<ExperimentSize, ClusterError> {
    let start = Instant::now();
    let allowance = config.limits.memory_bytes.unwrap_or(u64::MAX).min(budget::total() / 4 * 3);
    let (prepared, allocated) = budget::measured(|| budget::within(allowance, || PreparedCluster::new(config)));
    let prepared = match prepared {
        Ok((prepared, _)) => prepared?,
        Err(Unfinished::OverBudget(excess)) => {
            return Err(PrepareError::Memory(MemoryRefusal::of(config, &excess)).into());
        }
        Err(Unfinished::Interrupted) => return Err(PrepareError::Interrupted.into()),
    };
    let preparing_s = start.elapsed().as_secs_f64();
    let n_jobs = prepared.n_jobs() as u64;
    let held = allocated.peak.max(n_jobs * BYTES_A_JOB);
    let (seconds, iteration_bytes) = clocks[usize::from(prepared.measures())].takes(&prepared);
    Ok(ExperimentSize {
        tasks: n_jobs,
        memory: MemorySize { held, ..MemorySize::default() },
        // One experiment per thread runs at a time.
        preparing_bytes: held.saturating_add(iteration_bytes),
        preparing_s: preparing_s + seconds,
        folds: Folding::Off,
        ..ExperimentSize::default()
    })
}

/// Adds the experiment to an input error.
fn named(sweep: &Sweep, experiment: &Experiment, error: ClusterError) -> SessionError {
    if let ClusterError::Network(prepare) = &error
        && let Some((key, value, why)) = prepare.unknown_name()
        && let Some(place) = sweep.place(key)
    {
        let value = format!("\"{value}\"");
        return SpecError::BadValue { place: place.clone(), key: spec::key(key).name.to_string(), value, why }.into();
    }
    if let ClusterError::Network(prepare) = &error
        && let Some((key, why)) = prepare.wrong_table()
        && let Some(place) = sweep.place(key)
    {
        let why = format!("`{}`: {why}", spec::key(key).name);
        return SpecError::Sweep { place: place.clone(), why }.into();
    }
    let axes = sweep.axes_text(experiment);
    let described = if axes.is_empty() { String::new() } else { format!(" (experiment with {axes})") };
    SessionError::Prepare { path: sweep.path.clone(), experiment: described, source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    fn surveyed(k: u32, ccs: &str) -> Survey {
        let hosts = k * k * k / 4;
        let text = format!(
            "name = \"t\"\nbase.cluster = {{ gpus = {hosts}, gpus_per_server = 1, nics_per_server = 1 }}\nbase.topology = {{ kind = \"fat-tree\", k = {k} }}\n\
             base.workload = {{ kind = \"traffic\", pattern = \"permutation\", bytes = 1000 }}\naxes.\"transport.cc\" = {ccs}\n"
        );
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).expect("it is right");
        survey(&sweep, true, &PlanProgress::default()).expect("it can be prepared")
    }

    #[test]
    fn clusters_are_simulated_only_where_their_time_is_asked_for() {
        let text = "name = \"t\"\n[base]\nfidelity.mode = \"job\"\ncluster.gpus = 64\njobs.count = 2000\n";
        let sweep = sweep::parse(text, Path::new("sweep.toml"), &SetOverrides::default()).expect("it is right");
        let sized = |estimates| survey(&sweep, estimates, &PlanProgress::default()).expect("it is right").sizes[0];
        let (asked, unasked) = (sized(true), sized(false));
        assert_eq!((asked.tasks, unasked.tasks), (2000, 2000));
        assert!(asked.preparing_s > unasked.preparing_s, "{} s, {} s", asked.preparing_s, unasked.preparing_s);
    }

    fn sizes_of(base: &str, axes: &str) -> (Sweep, Vec<ExperimentSize>) {
        let text = format!("name = \"t\"\n[base]\n{base}\n[axes]\n{axes}\n");
        let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).expect("it is right");
        let sizes = survey(&sweep, true, &PlanProgress::default()).expect("it can be prepared").sizes;
        (sweep, sizes)
    }

    /// Each pair of hosts has several paths and links there, so a size is not that of another kind of network.
    #[test]
    fn sizes_on_another_network_are_scaled() {
        let (sweep, sizes) = sizes_of(
            "cluster = { gpus = 128, server = \"dgx-h100\" }\nfidelity.mode = \"flow\"\nworkload = { kind = \"collective\", bytes = 1_000_000, algorithm = \"ring\" }",
            "\"workload.op\" = [\"all-reduce\", \"all-gather\"]\n\"topology.kind\" = [\"clos\", \"multi-plane\"]",
        );
        let configs: Vec<Config> = sweep.experiments.iter().map(|e| config(&sweep, e)).collect();
        let mut known = KnownSizes::default();
        (0..3).for_each(|i| known.add(&configs[i], network_text(&configs[i]), sizes[i]));
        let estimated = known.on_another_network(&configs[3], network_text(&configs[3])).expect("its traffic is known");
        let ratio = estimated.memory.held as f64 / sizes[3].memory.held as f64;
        assert!((0.8..1.25).contains(&ratio), "{ratio}: {estimated:?} instead of {:?}", sizes[3]);
        assert!(sizes[3].memory.held as f64 > 1.25 * sizes[2].memory.held as f64, "{:?}", &sizes[2..]);
        assert!(known.has_kind(&configs[3]));
    }

    #[test]
    fn pauses_are_in_reach_of_an_incast_and_not_of_a_ring() {
        let pauses = |more: &str| {
            let base = format!(
                "cluster = {{ gpus = 64, gpus_per_server = 1, nics_per_server = 1 }}\ntopology.kind = \"clos\"\nworkload = {{ kind = \"traffic\", bytes = 10_000_000, {more} }}"
            );
            sizes_of(&base, "\"transport.pfc\" = [true, false]").1.iter().map(|s| s.may_pause).collect::<Vec<_>>()
        };
        assert_eq!(pauses("pattern = \"incast\", fan_in = 60"), [true, false]);
        assert_eq!(pauses("pattern = \"ring\""), [false, false]);
    }

    #[test]
    fn large_experiments_wait_for_the_run() {
        let large = surveyed(36, "[\"dcqcn\"]");
        assert!(large.kept.has(0) && large.kept.bytes() >= KEPT_BYTES);
        assert_eq!(large.sizes[0].kept_bytes, large.kept.bytes());
        let small = surveyed(4, "[\"dcqcn\", \"none\"]");
        assert_eq!((small.sizes.len(), small.kept.bytes()), (2, 0));
        assert!(small.sizes.iter().all(|size| size.kept_bytes == 0));
    }
}
