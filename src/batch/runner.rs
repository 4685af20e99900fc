//! Runs the experiments of a sweep: prepares them, batches them, hands them to the engine, reports each as it ends.
//!
//! Layer: batch. Order of batches, their size and the engine change no outcome, only the time it takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::budget;
use crate::engine::{Engine, EngineError};

use super::dedup::{Dedup, Duplicate, DuplicateState, Preparation};
use super::error::PrepareError;
use super::experiment::QueuedExperiment;
use super::kept::KeptExperiments;
use super::prepare::{Prepared, can_run, guarded, prepare};
use super::world::{Batch, Ended, Limits};

/// Most experiments in a batch: enough for a GPU, few enough that results appear soon.
const MOST_IN_BATCH: usize = 512;
/// Most bytes of the host's memory that the experiments of a batch take, about.
const MOST_BYTES: u64 = 2 << 30;

/// A batch of so many bytes leaves enough behind to be worth giving back.
const LARGE_BATCH_BYTES: u64 = 512 << 20;

/// Time between reports of how far a batch is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub use crate::engine::fold::MOST_A_THREAD as MOST_FOLDED_A_THREAD;

/// Experiments prepared in one go.
const PREPARED_AT_ONCE: usize = 16;

/// What happens in a run, reported in the order in which it happens.
pub enum RunEvent {
    /// The experiments of a batch were prepared and are about to run.
    Started(Vec<u64>),
    Ended(Box<Ended>),
    /// How far the experiments of a batch are that have not ended: packets that have left a port of each.
    Progress(Vec<(u64, u64)>),
    /// Something about inputs that the user should know.
    Note(String),
    /// A device that was lost, and where its experiments go.
    Lost(String),
}

/// How to run.
pub struct RunOptions {
    /// Records of packets that one experiment may have.
    pub packet_limit: u64,
    /// Most experiments in a batch (tests vary it; results must not).
    pub batch: usize,
    /// Most bytes of the host's memory that the experiments of a batch take, as [`Prepared::host_bytes`] estimates it; one alone may take more.
    pub bytes: u64,
    /// The same of a batch that has more experiments than threads, unless all of them are [long](Prepared::is_long): each thread has work already.
    pub bytes_of_many: u64,
    /// Experiments that are equal in all that decides their results are simulated once, where they may be remembered.
    pub once: bool,
    /// Experiments that were prepared before the run.
    pub kept: Arc<KeptExperiments>,
}

impl Default for RunOptions {
    fn default() -> Self {
        // Some 100 bytes a record: 10 GiB for one experiment.
        RunOptions {
            packet_limit: 100 << 20,
            batch: MOST_IN_BATCH,
            bytes: MOST_BYTES,
            bytes_of_many: MOST_BYTES,
            once: true,
            kept: Arc::default(),
        }
    }
}

/// Runs every task. Stops early, without an error, when `stop` says so.
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
        &mut SingleEngineSource { tasks: tasks.peekable(), most: options.batch.max(1) },
        None,
        options,
        &stop,
        tell,
    )
}

/// Where an engine's experiments come from.
pub(super) trait ExperimentSource {
    /// How many the next batch may take, once there may be some; `None` if there will never be more.
    fn more(&mut self) -> Option<usize>;
    /// Up to `most` of those that are there now.
    fn take(&mut self, most: usize) -> Vec<QueuedExperiment>;
    /// The experiment has ended.
    fn ended(&mut self, exp_id: u64);
}

/// All tasks for one engine.
struct SingleEngineSource<I: Iterator<Item = QueuedExperiment>> {
    tasks: std::iter::Peekable<I>,
    most: usize,
}

impl<I: Iterator<Item = QueuedExperiment>> ExperimentSource for SingleEngineSource<I> {
    fn more(&mut self) -> Option<usize> {
        self.tasks.peek().map(|_| self.most)
    }

    fn take(&mut self, most: usize) -> Vec<QueuedExperiment> {
        self.tasks.by_ref().take(most).collect()
    }

    fn ended(&mut self, _: u64) {}
}

/// Runs what `source` has, batch after batch. `pool` takes what can be spread over threads: preparing, and the engine's own work too where the second
/// word says so; without it the caller's pool does.
///
/// # Errors
/// As [`run`].
pub(super) fn drive<E: From<EngineError>>(
    batch: &mut Batch,
    source: &mut dyn ExperimentSource,
    pool: Option<(&rayon::ThreadPool, bool)>,
    options: &RunOptions,
    stop: &impl Fn() -> bool,
    tell: &mut dyn FnMut(RunEvent) -> Result<(), E>,
) -> Result<(), E> {
    // A quarter of the memory is for those that run, a quarter for what grows meanwhile, the rest for those that are prepared.
    let memory = budget::total();
    let threads = pool.map_or_else(rayon::current_num_threads, |(pool, _)| pool.current_num_threads());
    let few = Room { tables: batch.room(), host: options.bytes.min(memory / 4) };
    let many = Room { host: few.host.min(options.bytes_of_many), ..few };
    let long = Room { host: memory / 4, ..few };
    let room = BatchRoom { threads, few, many, long };
    let dedup = options.once.then(Dedup::default);
    // What was prepared but did not fit into the batch before.
    let mut left: Vec<Candidate> = Vec::new();
    // Duplicates of what has not ended; what is to be simulated after all.
    let mut waiting: Vec<Duplicate> = Vec::new();
    let mut to_simulate: Vec<QueuedExperiment> = Vec::new();
    // What took more than its share of memory while others were prepared, and may fit when nothing else is there.
    let mut large: Vec<QueuedExperiment> = Vec::new();
    let mut most = 0;
    while !stop() {
        if left.is_empty() && to_simulate.is_empty() && large.is_empty() {
            match source.more() {
                Some(n) => most = n.min(batch.most(threads)),
                None => break,
            }
        }
        let mut duplicates = Vec::new();
        let pool_of = pool.map(|p| p.0);
        if left.is_empty() && !large.is_empty() {
            // What needs so much finds nothing that waits.
            options.kept.retain(|_| false);
            let allowance = memory - room.few.host;
            let makers = Makers { dedup: dedup.as_ref(), kept: &options.kept, pool: pool_of, allowance };
            for (task, made, limits) in makers.make(vec![large.swap_remove(0)], false) {
                match made {
                    Ok(Preparation::Duplicate(duplicate)) => duplicates.push(*duplicate),
                    Ok(Preparation::Prepared(p)) => left.push((task.exp_id, Ok(p), limits)),
                    Err(e) => left.push((task.exp_id, Err(e), limits)),
                }
            }
        } else {
            let allowance = (memory / 2).saturating_sub(options.kept.bytes()) / threads.max(1) as u64;
            let makers = Makers { dedup: dedup.as_ref(), kept: &options.kept, pool: pool_of, allowance };
            fill(&mut left, &mut duplicates, &mut to_simulate, &mut large, source, &makers, most, room, stop);
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
        // What comes back from another engine may have smaller ids than what is waiting here.
        left.sort_by_key(|c| c.0);
        let mut used = Room::default();
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
                            && !room.beside(admitted.len(), all_long && p.is_long()).has(used.and(&p))) =>
                {
                    rest.push((exp_id, Ok(p), limits))
                }
                Ok(p) => {
                    used = used.and(&p);
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
            // Those that could not be prepared may have been waited for.
            report_duplicates(&mut waiting, &mut to_simulate, source, tell)?;
            continue;
        }
        let clock = Instant::now();
        log::debug!(
            "batch: {} experiments, {} bytes of tables, some {} of {} bytes in all; {} prepared wait",
            admitted.len(),
            used.tables,
            used.host,
            room.few.host,
            left.len()
        );
        tell(RunEvent::Started(admitted.iter().map(|a| a.0).collect()))?;
        batch.admit(admitted);
        let mut told = Instant::now();
        while !batch.is_over() && !stop() {
            let ended = match pool {
                Some((pool, true)) => pool.install(|| batch.round())?,
                _ => batch.round()?,
            };
            for ended in ended {
                if let Some(dedup) = &dedup {
                    dedup.ended(&ended);
                }
                source.ended(ended.exp_id);
                tell(RunEvent::Ended(Box::new(ended)))?;
            }
            report_duplicates(&mut waiting, &mut to_simulate, source, tell)?;
            if told.elapsed() >= PROGRESS_EVERY {
                tell(RunEvent::Progress(batch.running()))?;
                told = Instant::now();
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

/// A duplicate ends when its original has ended; it goes to `to_simulate` when its original has failed.
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

/// What prepares experiments. `dedup` knows those before them; without it each is simulated.
struct Makers<'a> {
    dedup: Option<&'a Dedup>,
    /// What was prepared before the run.
    kept: &'a KeptExperiments,
    pool: Option<&'a rayon::ThreadPool>,
    /// Bytes that each experiment may take while several are prepared.
    allowance: u64,
}

impl Makers<'_> {
    /// Prepares tasks side by side. `without_dedup`: duplicates are prepared to be simulated as well.
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

/// An experiment that was prepared, or could not be.
type Candidate = (u64, Result<Box<Prepared>, PrepareError>, Limits);

/// Bytes: of tables, which an engine may have little room for, and of the host's memory.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    tables: u64,
    host: u64,
}

impl Room {
    fn has(&self, used: Room) -> bool {
        used.tables <= self.tables && used.host <= self.host
    }

    /// With another experiment.
    fn and(self, p: &Prepared) -> Room {
        Room {
            tables: self.tables.saturating_add(p.built.tables.bytes()),
            host: self.host.saturating_add(p.batch_bytes()),
        }
    }
}

/// What a batch may take.
#[derive(Clone, Copy, Debug)]
struct BatchRoom {
    threads: usize,
    /// Of no more experiments than threads.
    few: Room,
    /// Of more.
    many: Room,
    /// Of experiments that are all long: at the end of a batch threads have nothing of their own to do for up to as long as one takes.
    long: Room,
}

impl BatchRoom {
    /// For another experiment beside `n`. `long`: all of them are.
    fn beside(&self, n: usize, long: bool) -> Room {
        match long {
            true => self.long,
            false if n < self.threads => self.few,
            false => self.many,
        }
    }

    /// How many beside `n` have the same room.
    fn same_for(&self, n: usize) -> usize {
        if n < self.threads && self.many.host < self.few.host { self.threads - n } else { usize::MAX }
    }
}

/// Prepares tasks until the batch is full or the room is used up: as many at once as will fit if they are like the largest so far, so that large ones do
/// not pile up. Those that need no simulation go to `duplicates`; `to_simulate` go first.
#[expect(clippy::too_many_arguments, reason = "what the one caller has")]
fn fill(
    left: &mut Vec<Candidate>,
    duplicates: &mut Vec<Duplicate>,
    to_simulate: &mut Vec<QueuedExperiment>,
    large: &mut Vec<QueuedExperiment>,
    source: &mut dyn ExperimentSource,
    makers: &Makers,
    most: usize,
    room: BatchRoom,
    stop: &impl Fn() -> bool,
) {
    let threads = makers.pool.map_or_else(rayon::current_num_threads, rayon::ThreadPool::current_num_threads);
    let one = |c: &Candidate| c.1.as_ref().map_or(Room::default(), |p| Room::default().and(p));
    let (mut used, mut largest) = (Room::default(), Room::default());
    let count = |c: &Candidate, used: &mut Room, largest: &mut Room| {
        let of = one(c);
        *used = Room { tables: used.tables + of.tables, host: used.host + of.host };
        *largest = Room { tables: largest.tables.max(of.tables), host: largest.host.max(of.host) };
    };
    left.iter().for_each(|c| count(c, &mut used, &mut largest));
    // What is duplicate another may hear of it soon: not too many wait to be told.
    while large.is_empty() && left.len() < most && duplicates.len() < MOST_IN_BATCH && !stop() {
        let fit = |room: u64, used: u64, largest: u64| {
            room.saturating_sub(used).checked_div(largest).unwrap_or(threads as u64)
        };
        let long = !left.is_empty() && left.iter().all(|c| c.1.as_ref().map_or(true, |p| p.is_long()));
        let here = room.beside(left.len(), long);
        let fit = fit(here.tables, used.tables, largest.tables).min(fit(here.host, used.host, largest.host));
        // One must be there, however large it is; what could not be prepared takes no room.
        if fit == 0 && used.host > 0 {
            return;
        }
        let few = (most - left.len()).min(PREPARED_AT_ONCE).min(fit.max(1) as usize).min(room.same_for(left.len()));
        let again = !to_simulate.is_empty();
        let few = if again { to_simulate.drain(..few.min(to_simulate.len())).collect() } else { source.take(few) };
        if few.is_empty() {
            return;
        }
        let (first, clock) = (left.len(), Instant::now());
        for (task, made, limits) in makers.make(few, again) {
            match made {
                Ok(Preparation::Duplicate(duplicate)) => duplicates.push(*duplicate),
                Ok(Preparation::Prepared(p)) => left.push((task.exp_id, Ok(p), limits)),
                // Where its own limit was in force, more room does not help.
                Err(PrepareError::Memory(over)) if over.allowance == makers.allowance => large.push(task),
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
