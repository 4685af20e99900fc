//! Runs the experiments of a sweep: prepares them, batches them, hands them to the engine, reports each as it ends.
//!
//! Layer: host. The order and size of batches and the engine change no outcome, only the run time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use hyperfold_base::budget;
use hyperfold_engine::{Engine, EngineError};

use crate::batches::dedup::{Dedup, Duplicate, DuplicateState, Preparation};
use crate::batches::world::{Batch, Ended, Limits};
use crate::setup::error::PrepareError;
use crate::setup::experiment::QueuedExperiment;
use crate::setup::prepare::{Prepared, can_run, guarded, prepare};
use crate::setup::prepared_before::KeptExperiments;

/// Maximum number of experiments in a batch: enough for a GPU, few enough that results appear soon.
const MAX_IN_BATCH: usize = 512;
/// Approximate limit on the host memory that the experiments of a batch take, bytes.
const MAX_BYTES: u64 = 2 << 30;

/// Batch size, in bytes, from which freed memory is given back to the system.
const LARGE_BATCH_BYTES: u64 = 512 << 20;

/// Time between reports of a batch's progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub use hyperfold_fold::BATCH_PER_THREAD as MAX_FOLDED_PER_THREAD;

/// Experiments prepared in one go.
const PREPARED_AT_ONCE: usize = 16;

/// An event of a run, reported in the order in which it happens.
pub enum RunEvent {
    /// The experiments of a batch were prepared and are about to run.
    Started(Vec<u64>),
    /// An experiment has ended, with an outcome or without.
    Ended(Box<Ended>),
    /// Progress of the unfinished experiments of a batch, as (experiment id, packets that have left a port).
    Progress(Vec<(u64, u64)>),
    /// A note for the user about inputs.
    Note(String),
    /// A message about a device that was lost, and where its experiments go.
    Lost(String),
}

/// Options of a run.
pub struct RunOptions {
    /// Most packet records of one experiment.
    pub packet_limit: u64,
    /// Most experiments in a batch (tests vary it; results must not).
    pub batch: usize,
    /// Most host memory that the experiments of a batch take, in bytes as [`Prepared::host_bytes`] estimates; a single experiment may take more.
    pub bytes: u64,
    /// Like `bytes`, for a batch with more experiments than threads, unless all of them are [long](Prepared::is_long): each thread has work already.
    pub bytes_of_many: u64,
    /// Whether experiments with equal keys are simulated once, if they may be remembered.
    pub once: bool,
    /// Experiments that were prepared before the run.
    pub kept: Arc<KeptExperiments>,
}

impl Default for RunOptions {
    fn default() -> Self {
        // Some 100 bytes per record: 10 GiB for one experiment.
        RunOptions {
            packet_limit: 100 << 20,
            batch: MAX_IN_BATCH,
            bytes: MAX_BYTES,
            bytes_of_many: MAX_BYTES,
            once: true,
            kept: Arc::default(),
        }
    }
}

/// Runs every task. Stops early, without an error, when `stop` returns true.
///
/// # Errors
/// The engine cannot go on, or `tell` refuses news. A bad experiment is no error: it ends with a reason.
pub fn run<E: From<EngineError>>(
    tasks: impl Iterator<Item = QueuedExperiment>,
    engine: Box<dyn Engine>,
    options: &RunOptions,
    stop: impl Fn() -> bool + Send + Sync + Clone + 'static,
    tell: &mut dyn FnMut(RunEvent) -> Result<(), E>,
) -> Result<(), E> {
    let mut batch = Batch::new(engine, options.packet_limit, Box::new(stop.clone()));
    drive(
        &mut batch,
        &mut SingleEngineSource { tasks: tasks.peekable(), max_batch: options.batch.max(1) },
        None,
        options,
        &stop,
        tell,
    )
}

/// A source of experiments for one engine.
pub(crate) trait ExperimentSource {
    /// Waits until there are experiments, and returns how many the next batch may take. `None` if there will never be more.
    fn more(&mut self) -> Option<usize>;
    /// Takes up to `max_experiments` of those that are there now.
    fn take(&mut self, max_experiments: usize) -> Vec<QueuedExperiment>;
    /// Records that an experiment has ended.
    fn ended(&mut self, exp_id: u64);
}

/// A source that gives all tasks to one engine.
struct SingleEngineSource<I: Iterator<Item = QueuedExperiment>> {
    tasks: std::iter::Peekable<I>,
    max_batch: usize,
}

impl<I: Iterator<Item = QueuedExperiment>> ExperimentSource for SingleEngineSource<I> {
    fn more(&mut self) -> Option<usize> {
        self.tasks.peek().map(|_| self.max_batch)
    }

    fn take(&mut self, max_experiments: usize) -> Vec<QueuedExperiment> {
        self.tasks.by_ref().take(max_experiments).collect()
    }

    fn ended(&mut self, _: u64) {}
}

/// Runs the experiments of `source`, batch after batch. `pool`: threads that prepare experiments, and whether the engine's own work runs on them too. Without
/// it the caller's pool does the work.
///
/// # Errors
/// Fails as [`run`] does.
pub(crate) fn drive<E: From<EngineError>>(
    batch: &mut Batch,
    source: &mut dyn ExperimentSource,
    pool: Option<(&rayon::ThreadPool, bool)>,
    options: &RunOptions,
    stop: &impl Fn() -> bool,
    tell: &mut dyn FnMut(RunEvent) -> Result<(), E>,
) -> Result<(), E> {
    // A quarter of the memory is for experiments that run, a quarter for what grows meanwhile, the rest for prepared experiments.
    let memory = budget::total();
    let threads = pool.map_or_else(rayon::current_num_threads, |(pool, _)| pool.current_num_threads());
    let few = MemoryBytes { tables: batch.max_batch_bytes(), host: options.bytes.min(memory / 4) };
    let many = MemoryBytes { host: few.host.min(options.bytes_of_many), ..few };
    let long = MemoryBytes { host: memory / 4, ..few };
    let limits_of_batch = BatchLimits { threads, few, many, long };
    let dedup = options.once.then(Dedup::default);
    // Experiments that were prepared but did not fit into the batch before.
    let mut left: Vec<Candidate> = Vec::new();
    // Duplicates of experiments that have not ended.
    let mut waiting: Vec<Duplicate> = Vec::new();
    let mut to_simulate: Vec<QueuedExperiment> = Vec::new();
    // Experiments that needed more than their share of memory while others were prepared, and may fit alone.
    let mut large: Vec<QueuedExperiment> = Vec::new();
    let mut max_experiments = 0;
    while !stop() {
        if left.is_empty() && to_simulate.is_empty() && large.is_empty() {
            match source.more() {
                Some(n) => max_experiments = n.min(batch.max_batch(threads)),
                None => break,
            }
        }
        let mut duplicates = Vec::new();
        let rayon_pool = pool.map(|p| p.0);
        if left.is_empty() && !large.is_empty() {
            // Such an experiment needs the memory of the kept ones.
            options.kept.retain(|_| false);
            let allowance = memory - limits_of_batch.few.host;
            let makers = Makers { dedup: dedup.as_ref(), kept: &options.kept, pool: rayon_pool, allowance };
            for (task, made, limits) in makers.make(vec![large.swap_remove(0)], false) {
                match made {
                    Ok(Preparation::Duplicate(duplicate)) => duplicates.push(*duplicate),
                    Ok(Preparation::Prepared(p)) => left.push((task.exp_id, Ok(p), limits)),
                    Err(e) => left.push((task.exp_id, Err(e), limits)),
                }
            }
        } else {
            let allowance = (memory / 2).saturating_sub(options.kept.bytes()) / threads.max(1) as u64;
            let makers = Makers { dedup: dedup.as_ref(), kept: &options.kept, pool: rayon_pool, allowance };
            fill(
                &mut left,
                &mut duplicates,
                &mut to_simulate,
                &mut large,
                source,
                &makers,
                max_experiments,
                limits_of_batch,
                stop,
            );
        }
        if stop() || left.iter().any(|c| matches!(c.1, Err(PrepareError::Interrupted))) {
            break;
        }
        for duplicate in duplicates {
            tell(RunEvent::Started(vec![duplicate.exp_id()]))?;
            for note in &duplicate.notes {
                tell(RunEvent::Note(note.clone()))?;
            }
            waiting.push(duplicate);
        }
        report_duplicates(&mut waiting, &mut to_simulate, source, tell)?;
        // Experiments that come back from another engine may have smaller ids than those that wait here.
        left.sort_by_key(|c| c.0);
        let mut used = MemoryBytes::default();
        let mut all_long = true;
        let mut admitted = Vec::new();
        let mut rest = Vec::new();
        for (exp_id, prepared, limits) in left {
            match prepared {
                Err(e) => {
                    source.ended(exp_id);
                    tell(RunEvent::Ended(Box::new(Ended {
                        exp_id,
                        result: Err(e.into()),
                        packet_hops: 0,
                        folds: None,
                        seconds: 0.0,
                    })))?;
                }
                Ok(p)
                    if !rest.is_empty()
                        || (!admitted.is_empty()
                            && !limits_of_batch
                                .beside(admitted.len(), all_long && p.is_long())
                                .allows(used.plus(&p))) =>
                {
                    rest.push((exp_id, Ok(p), limits))
                }
                Ok(p) => {
                    used = used.plus(&p);
                    all_long &= p.is_long();
                    for note in &p.notes {
                        tell(RunEvent::Note(note.clone()))?;
                    }
                    admitted.push((exp_id, *p, limits));
                }
            }
        }
        left = rest;
        if admitted.is_empty() {
            // Duplicates may wait for those that could not be prepared.
            report_duplicates(&mut waiting, &mut to_simulate, source, tell)?;
            continue;
        }
        let clock = Instant::now();
        log::debug!(
            "batch: {} experiments, {} bytes of tables, some {} of {} bytes in all; {} prepared wait",
            admitted.len(),
            used.tables,
            used.host,
            limits_of_batch.few.host,
            left.len()
        );
        tell(RunEvent::Started(admitted.iter().map(|a| a.0).collect()))?;
        if used.host >= LARGE_BATCH_BYTES {
            // Paths and keys, of which there are millions, were allocated between what stays.
            budget::give_back();
        }
        batch.admit(admitted);
        let mut last_progress = Instant::now();
        while !batch.is_over() && !stop() {
            let ended = match pool {
                Some((pool, true)) => pool.install(|| batch.run_slice())?,
                _ => batch.run_slice()?,
            };
            for ended in ended {
                if let Some(dedup) = &dedup {
                    dedup.ended(&ended);
                }
                source.ended(ended.exp_id);
                tell(RunEvent::Ended(Box::new(ended)))?;
            }
            report_duplicates(&mut waiting, &mut to_simulate, source, tell)?;
            if last_progress.elapsed() >= PROGRESS_EVERY {
                tell(RunEvent::Progress(batch.running()))?;
                last_progress = Instant::now();
            }
        }
        batch.clear();
        if used.host >= LARGE_BATCH_BYTES {
            budget::give_back();
        }
        log::debug!("batch: over after {:.3} s", clock.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Reports duplicates whose originals have ended, and moves those whose originals have failed to `to_simulate`.
///
/// # Errors
/// `tell` refuses news.
fn report_duplicates<E>(
    waiting: &mut Vec<Duplicate>,
    to_simulate: &mut Vec<QueuedExperiment>,
    source: &mut dyn ExperimentSource,
    tell: &mut dyn FnMut(RunEvent) -> Result<(), E>,
) -> Result<(), E> {
    for duplicate in std::mem::take(waiting) {
        match duplicate.state() {
            DuplicateState::Waiting(duplicate) => waiting.push(*duplicate),
            DuplicateState::Simulate(task) => to_simulate.push(*task),
            DuplicateState::Ended(ended) => {
                source.ended(ended.exp_id);
                tell(RunEvent::Ended(ended))?;
            }
        }
    }
    Ok(())
}

/// Prepares experiments. `dedup` knows the experiments before them; without it each is simulated.
struct Makers<'a> {
    dedup: Option<&'a Dedup>,
    /// Experiments that were prepared before the run.
    kept: &'a KeptExperiments,
    pool: Option<&'a rayon::ThreadPool>,
    /// Bytes that each experiment may take while several are prepared.
    allowance: u64,
}

impl Makers<'_> {
    /// Prepares tasks in parallel. `without_dedup`: duplicates are prepared for simulation too.
    fn make(
        &self,
        tasks: Vec<QueuedExperiment>,
        without_dedup: bool,
    ) -> Vec<(QueuedExperiment, Result<Preparation, PrepareError>, Limits)> {
        let one = |t: QueuedExperiment| {
            let (exp_id, limits) = (t.exp_id, Limits::of(&t.config));
            let known = self.kept.take(exp_id);
            let made = guarded(&t.config, self.allowance, || match (self.dedup, known) {
                (Some(dedup), known) if !without_dedup => dedup.prepare(&t, limits, known),
                (_, Some(known)) => Ok(Preparation::Prepared(known.prepared)),
                _ => prepare(&t.config, exp_id as u32).map(|p| Preparation::Prepared(Box::new(p))),
            });
            let made = made.and_then(|made| match &made {
                Preparation::Prepared(p) => can_run(&t.config, p).map(|()| made),
                Preparation::Duplicate(_) => Ok(made),
            });
            if let (Err(_), Some(dedup)) = (&made, self.dedup) {
                // Whatever stopped it, its duplicates need not wait.
                dedup.failed(exp_id);
            }
            (t, made, limits)
        };
        let all = || tasks.into_par_iter().map(one).collect();
        match self.pool {
            Some(pool) => pool.install(all),
            None => all(),
        }
    }
}

/// An experiment that is prepared, or could not be: its id, the preparation, its limits.
type Candidate = (u64, Result<Box<Prepared>, PrepareError>, Limits);

/// Memory in bytes: of tables, for which an engine may have little space, and of the host.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryBytes {
    tables: u64,
    host: u64,
}

impl MemoryBytes {
    fn allows(&self, used: MemoryBytes) -> bool {
        used.tables <= self.tables && used.host <= self.host
    }

    /// Adds the memory of another experiment.
    fn plus(self, p: &Prepared) -> MemoryBytes {
        MemoryBytes {
            tables: self.tables.saturating_add(p.built.tables.bytes()),
            host: self.host.saturating_add(p.batch_bytes()),
        }
    }
}

/// Limits on the memory of a batch.
#[derive(Clone, Copy, Debug)]
struct BatchLimits {
    threads: usize,
    /// For a batch of at most as many experiments as threads.
    few: MemoryBytes,
    /// For a batch of more experiments.
    many: MemoryBytes,
    /// For a batch of only long experiments: at its end, threads would idle for as long as one experiment takes, so it may be large.
    long: MemoryBytes,
}

impl BatchLimits {
    /// Returns the limit for another experiment beside `n`. `long`: all of them are long.
    fn beside(&self, n: usize, long: bool) -> MemoryBytes {
        match long {
            true => self.long,
            false if n < self.threads => self.few,
            false => self.many,
        }
    }

    /// Returns how many more experiments, beside `n`, have the same limit.
    fn same_for(&self, n: usize) -> usize {
        if n < self.threads && self.many.host < self.few.host { self.threads - n } else { usize::MAX }
    }
}

/// Prepares tasks until the batch is full or its memory is used up. Each time it prepares as many as will fit if they are like the largest so far, so that
/// large ones do not pile up. Duplicates go to `duplicates`; experiments of `to_simulate` go first.
#[expect(clippy::too_many_arguments, reason = "what the one caller has")]
fn fill(
    left: &mut Vec<Candidate>,
    duplicates: &mut Vec<Duplicate>,
    to_simulate: &mut Vec<QueuedExperiment>,
    large: &mut Vec<QueuedExperiment>,
    source: &mut dyn ExperimentSource,
    makers: &Makers,
    max_experiments: usize,
    limits_of_batch: BatchLimits,
    stop: &impl Fn() -> bool,
) {
    let threads = makers.pool.map_or_else(rayon::current_num_threads, rayon::ThreadPool::current_num_threads);
    let one = |c: &Candidate| c.1.as_ref().map_or(MemoryBytes::default(), |p| MemoryBytes::default().plus(p));
    let (mut used, mut largest) = (MemoryBytes::default(), MemoryBytes::default());
    let count = |c: &Candidate, used: &mut MemoryBytes, largest: &mut MemoryBytes| {
        let bytes = one(c);
        *used = MemoryBytes { tables: used.tables + bytes.tables, host: used.host + bytes.host };
        *largest = MemoryBytes { tables: largest.tables.max(bytes.tables), host: largest.host.max(bytes.host) };
    };
    left.iter().for_each(|c| count(c, &mut used, &mut largest));
    // Limit the number of duplicates, so that they do not wait long to be reported.
    while large.is_empty() && left.len() < max_experiments && duplicates.len() < MAX_IN_BATCH && !stop() {
        let fit = |limit: u64, used: u64, largest: u64| {
            limit.saturating_sub(used).checked_div(largest).unwrap_or(threads as u64)
        };
        let long = !left.is_empty() && left.iter().all(|c| c.1.as_ref().map_or(true, |p| p.is_long()));
        let limit = limits_of_batch.beside(left.len(), long);
        let fit = fit(limit.tables, used.tables, largest.tables).min(fit(limit.host, used.host, largest.host));
        // One experiment must be there, however large it is. Those that could not be prepared take no memory.
        if fit == 0 && used.host > 0 {
            return;
        }
        let n_next = (max_experiments - left.len())
            .min(PREPARED_AT_ONCE)
            .min(fit.max(1) as usize)
            .min(limits_of_batch.same_for(left.len()));
        let again = !to_simulate.is_empty();
        let next =
            if again { to_simulate.drain(..n_next.min(to_simulate.len())).collect() } else { source.take(n_next) };
        if next.is_empty() {
            return;
        }
        let (first, clock) = (left.len(), Instant::now());
        for (task, made, limits) in makers.make(next, again) {
            match made {
                Ok(Preparation::Duplicate(duplicate)) => duplicates.push(*duplicate),
                Ok(Preparation::Prepared(p)) => left.push((task.exp_id, Ok(p), limits)),
                // If the experiment's own limit was in force, more memory does not help.
                Err(PrepareError::Memory(refusal)) if refusal.allowance == makers.allowance => large.push(task),
                Err(e) => left.push((task.exp_id, Err(e), limits)),
            }
        }
        left[first..].iter().for_each(|c| count(c, &mut used, &mut largest));
        log::trace!(
            "prepared {} experiments in {:.3} s, some {} bytes wait",
            left.len() - first,
            clock.elapsed().as_secs_f64(),
            used.host
        );
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
