//! How long a run takes, by simulating one experiment of each class for a moment.
//!
//! Layer: session. What the experiments come to is thrown away.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::batch::{self, QueuedExperiment, RunEvent, RunOptions};
use crate::engine::EngineError;
use crate::engine::fold::FoldEngine;
use crate::spec::{Config, KeyId};
use crate::sweep::Sweep;

use super::experiment::config;
use super::forecast::{ExperimentSize, Folding, TimeForecast};
use super::work_done::work_of;

/// How long one experiment is simulated, at most.
const PATIENCE: Duration = Duration::from_secs(2);
/// Classes that are probed, those with the most work; others take as long by their work as these together.
const MOST_CLASSES: usize = 32;
/// Packet-hops a second, at least, whatever is folded: fewer are a probe that ended before folding could tell what it had skipped.
const LEAST_PACKET_HOPS_PER_S: f64 = 2e6;
/// What an estimate may be off by, either way: the range that is told. Our aim, measured in docs/explanation/performance.md.
const FACTOR: f64 = 2.0;

/// What decides how fast packets are, beside their number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ProbeClass {
    topology: String,
    control: String,
    workload: String,
    folds: Folding,
    /// The binary logarithm of the work: large experiments are no larger small ones, least of all where folding saves most of them.
    magnitude: u32,
}

/// What one experiment showed.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// Work that was done, as [`work_of`] counts it.
    work: u64,
    seconds: f64,
}

impl Shown {
    /// PRECONDITION: work was done.
    fn seconds_per_work(&self) -> f64 {
        (self.seconds / self.work as f64).min(1.0 / LEAST_PACKET_HOPS_PER_S)
    }
}

/// Time of a run of `sizes` on so many threads of the CPU; `None` where nothing could be simulated.
pub(crate) fn probe(sweep: &Sweep, sizes: &[ExperimentSize], threads: usize) -> Option<TimeForecast> {
    let mut classes: HashMap<ProbeClass, Vec<&ExperimentSize>> = HashMap::new();
    for size in sizes {
        // Clusters are no packets; what they take is in their estimate.
        let of_packets = config_of(sweep, size).is_some_and(|c| c.cluster_run().is_none());
        if let Some(class) = class_of(sweep, size).filter(|_| of_packets) {
            classes.entry(class).or_default().push(size);
        }
    }
    let work = |sizes: &[&ExperimentSize]| sizes.iter().map(|s| work_of(s.packet_hops, s.tasks)).sum::<u64>();
    let mut classes: Vec<(ProbeClass, Vec<&ExperimentSize>)> = classes.into_iter().collect();
    classes.sort_by_key(|(_, sizes)| (std::cmp::Reverse(work(sizes)), sizes[0].exp_id));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
    let shown: Vec<Shown> = pool.install(|| {
        classes.par_iter().take(MOST_CLASSES).map(|(_, sizes)| simulated_for_a_moment(sweep, median(sizes))).collect()
    });
    let (mut seconds, mut probed, mut left) = (0.0, Shown::default(), 0);
    for (i, (class, sizes)) in classes.iter().enumerate() {
        let all = work(sizes);
        match shown.get(i).filter(|s| s.work > 0) {
            Some(shown) => {
                let these = all as f64 * shown.seconds_per_work();
                log::debug!("probe: {} like {class:?} take {these:.2} s of one thread", sizes.len());
                seconds += these;
                probed.work += all;
                probed.seconds += these;
            }
            None => left += all,
        }
    }
    if probed.work == 0 {
        return None;
    }
    seconds += left as f64 * probed.seconds / probed.work as f64;
    seconds += sizes.iter().map(|s| s.preparing_s).sum::<f64>();
    // The last experiments of a run have the machine to themselves: nothing ends before its longest one.
    let longest = classes.iter().zip(&shown).filter(|(_, shown)| shown.work > 0).map(|((_, sizes), shown)| {
        let most = sizes.iter().map(|s| work_of(s.packet_hops, s.tasks)).max().unwrap_or(0);
        most as f64 * shown.seconds_per_work()
    });
    let about = (seconds / threads as f64).max(longest.fold(0.0, f64::max));
    Some(TimeForecast { least: about / FACTOR, about: Some(about), most: about * FACTOR })
}

/// The configuration of a surveyed experiment.
fn config_of(sweep: &Sweep, size: &ExperimentSize) -> Option<Config> {
    let at = sweep.experiments.binary_search_by_key(&size.exp_id, |e| e.exp_id).ok()?;
    Some(config(sweep, &sweep.experiments[at]))
}

fn class_of(sweep: &Sweep, size: &ExperimentSize) -> Option<ProbeClass> {
    let config = config_of(sweep, size)?;
    let text = |key| config.values.text(key).to_string();
    Some(ProbeClass {
        topology: text(KeyId::TopologyKind),
        control: text(KeyId::Cc),
        workload: text(KeyId::WorkloadKind),
        folds: size.folds,
        magnitude: work_of(size.packet_hops, size.tasks).ilog2(),
    })
}

/// The one in the middle by work.
fn median<'s>(sizes: &[&'s ExperimentSize]) -> &'s ExperimentSize {
    let mut sorted = sizes.to_vec();
    sorted.sort_by_key(|s| (work_of(s.packet_hops, s.tasks), s.exp_id));
    sorted[sorted.len() / 2]
}

/// Simulates one experiment until it ends or [`PATIENCE`] does.
fn simulated_for_a_moment(sweep: &Sweep, size: &ExperimentSize) -> Shown {
    let Some(config) = config_of(sweep, size) else { return Shown::default() };
    let task = QueuedExperiment { exp_id: size.exp_id, config };
    let started: Arc<OnceLock<Instant>> = Arc::default();
    let since = Arc::clone(&started);
    let stop = move || since.get().is_some_and(|at| at.elapsed() > PATIENCE);
    let mut shown = Shown::default();
    let all = work_of(size.packet_hops, size.tasks);
    let mut tell = |event: RunEvent| {
        match event {
            RunEvent::Started(_) => {
                let _ = started.set(Instant::now());
            }
            RunEvent::Progress(hops) => {
                let hops = hops.first().map_or(0, |(_, hops)| *hops).min(size.packet_hops);
                // Tasks are done as packets are.
                let share = hops as f64 / size.packet_hops.max(1) as f64;
                let seconds = started.get().map_or(0.0, |at| at.elapsed().as_secs_f64());
                shown = Shown { work: (share * all as f64) as u64, seconds };
            }
            RunEvent::Ended(ended) if ended.result.is_ok() => {
                shown = Shown { work: all, seconds: started.get().map_or(0.0, |at| at.elapsed().as_secs_f64()) };
            }
            RunEvent::Ended(_) | RunEvent::Note(_) | RunEvent::Lost(_) => {}
        }
        Ok::<(), EngineError>(())
    };
    let options = RunOptions { once: false, ..RunOptions::default() };
    // One that cannot be simulated shows nothing; the run will say why.
    let _ = batch::run(std::iter::once(task), Box::new(FoldEngine::default()), &options, stop, &mut tell);
    shown
}
