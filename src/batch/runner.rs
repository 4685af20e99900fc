//! Runs the experiments of a sweep: prepares them, batches them, hands them to the engine, reports each as it ends.
//!
//! Layer: batch. Order of batches, their size and the engine change no outcome, only the time it takes.

use std::time::Instant;

use rayon::prelude::*;

use crate::engine::{Engine, EngineError};
use crate::spec::Config;

use super::prepare::{PrepareError, Prepared, prepare};
use super::world::{Batch, Ended, Limits};

/// Most experiments in a batch: enough for a GPU, few enough that results appear soon.
const MOST_IN_BATCH: usize = 512;
/// Most bytes of tables in a batch.
const MOST_BYTES: u64 = 4 << 30;

/// Experiments prepared in one go.
const PREPARED_AT_ONCE: usize = 16;

/// One experiment to run.
#[derive(Clone)]
pub struct Task {
    pub exp_id: u64,
    pub config: Config,
}

/// News, in the order it happens.
pub enum News {
    /// The experiments of a batch were prepared and are about to run.
    Started(Vec<u64>),
    Ended(Box<Ended>),
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
}

impl Default for RunOptions {
    fn default() -> Self {
        // Some 100 bytes a record: 10 GiB for one experiment.
        RunOptions { packet_limit: 100 << 20, batch: MOST_IN_BATCH }
    }
}

/// Runs every task. Stops early, without an error, when `stop` says so.
///
/// # Errors
/// The engine cannot go on, or `tell` refuses news. A bad experiment is no error: it ends with a reason.
pub fn run<E: From<EngineError>>(
    tasks: impl Iterator<Item = Task>,
    engine: Box<dyn Engine>,
    options: &RunOptions,
    stop: impl Fn() -> bool + Send + Sync + Clone + 'static,
    tell: &mut dyn FnMut(News) -> Result<(), E>,
) -> Result<(), E> {
    let mut batch = Batch::new(engine, options.packet_limit, Box::new(stop.clone()));
    drive(&mut batch, &mut Alone { tasks: tasks.peekable(), most: options.batch.max(1) }, None, &stop, tell)
}

/// Where an engine's experiments come from.
pub(super) trait Supply {
    /// How many the next batch may take, once there may be some; `None` if there will never be more.
    fn more(&mut self) -> Option<usize>;
    /// Up to `most` of those that are there now.
    fn take(&mut self, most: usize) -> Vec<Task>;
    /// The experiment has ended.
    fn ended(&mut self, exp_id: u64);
}

/// All tasks for one engine.
struct Alone<I: Iterator<Item = Task>> {
    tasks: std::iter::Peekable<I>,
    most: usize,
}

impl<I: Iterator<Item = Task>> Supply for Alone<I> {
    fn more(&mut self) -> Option<usize> {
        self.tasks.peek().map(|_| self.most)
    }

    fn take(&mut self, most: usize) -> Vec<Task> {
        self.tasks.by_ref().take(most).collect()
    }

    fn ended(&mut self, _: u64) {}
}

/// Runs what `supply` has, batch after batch. `pool` takes what can be spread over threads: preparing, and the engine's own work too where the second
/// word says so; without it the caller's pool does.
///
/// # Errors
/// As [`run`].
pub(super) fn drive<E: From<EngineError>>(
    batch: &mut Batch,
    supply: &mut dyn Supply,
    pool: Option<(&rayon::ThreadPool, bool)>,
    stop: &impl Fn() -> bool,
    tell: &mut dyn FnMut(News) -> Result<(), E>,
) -> Result<(), E> {
    let room = batch.room().min(MOST_BYTES);
    // What was prepared but did not fit into the batch before.
    let mut left: Vec<Candidate> = Vec::new();
    let mut most = 0;
    while !stop() {
        if left.is_empty() {
            match supply.more() {
                Some(n) => most = n,
                None => break,
            }
        }
        fill(&mut left, supply, pool.map(|p| p.0), most, room, stop);
        // What comes back from another engine may have smaller ids than what is waiting here.
        left.sort_by_key(|c| c.0);
        let mut bytes = 0;
        let mut admitted = Vec::new();
        let mut rest = Vec::new();
        for (exp_id, prepared, limits) in left {
            match prepared {
                Err(e) => {
                    supply.ended(exp_id);
                    tell(News::Ended(Box::new(Ended { exp_id, result: Err(e.into()), packet_hops: 0, folds: None, seconds: 0.0 })))?;
                }
                Ok(p) if !rest.is_empty() || (bytes > 0 && bytes + p.built.tables.bytes() > room) => rest.push((exp_id, Ok(p), limits)),
                Ok(p) => {
                    bytes += p.built.tables.bytes();
                    for note in &p.notes {
                        tell(News::Note(note.clone()))?;
                    }
                    admitted.push((exp_id, p, limits));
                }
            }
        }
        left = rest;
        let clock = Instant::now();
        log::debug!("batch: {} experiments, {} of {room} bytes of tables; {} prepared wait", admitted.len(), bytes, left.len());
        tell(News::Started(admitted.iter().map(|a| a.0).collect()))?;
        batch.admit(admitted);
        while !batch.is_over() && !stop() {
            let ended = match pool {
                Some((pool, true)) => pool.install(|| batch.round())?,
                _ => batch.round()?,
            };
            for ended in ended {
                supply.ended(ended.exp_id);
                tell(News::Ended(Box::new(ended)))?;
            }
        }
        batch.clear();
        log::debug!("batch: over after {:.3} s", clock.elapsed().as_secs_f64());
    }
    Ok(())
}

/// An experiment that was prepared, or could not be.
type Candidate = (u64, Result<Prepared, PrepareError>, Limits);

/// Prepares tasks until the batch is full or the room is used up, a few at a time, so that large ones do not pile up.
fn fill(left: &mut Vec<Candidate>, supply: &mut dyn Supply, pool: Option<&rayon::ThreadPool>, most: usize, room: u64, stop: &impl Fn() -> bool) {
    let bytes = |c: &Candidate| c.1.as_ref().map_or(0, |p| p.built.tables.bytes());
    let mut used: u64 = left.iter().map(bytes).sum();
    while left.len() < most && used < room && !stop() {
        let few = supply.take((most - left.len()).min(PREPARED_AT_ONCE));
        if few.is_empty() {
            return;
        }
        let (first, clock) = (left.len(), Instant::now());
        let prepare_all = || few.into_par_iter().map(|t| (t.exp_id, prepare(&t.config, t.exp_id as u32), limits(&t.config))).collect::<Vec<_>>();
        left.extend(match pool {
            Some(pool) => pool.install(prepare_all),
            None => prepare_all(),
        });
        used += left[first..].iter().map(bytes).sum::<u64>();
        log::trace!("prepared {} experiments in {:.3} s, {used} bytes of tables wait", left.len() - first, clock.elapsed().as_secs_f64());
    }
}

fn limits(config: &Config) -> Limits {
    Limits { packet_hops: config.limits.packet_hops, wall_ms: config.limits.wall_ms }
}
