//! Estimates the time of a run by simulating as many experiments of each class as there is time for: short ones to their ends, long ones for a moment, both
//! normally and with coarse packets.
//!
//! The beginning of a long experiment shows how fast packets are simulated. It does not show which packets will be simulated at all: queues are empty, and
//! nothing has repeated. Coarse packets show that, as all phases of a program then fit into a moment.
//!
//! Layer: session. Outcomes of the experiments are discarded.

use hyperfold_base::budget;
use hyperfold_columns::SHARED_FLOWS_LEFT;
use hyperfold_config::spec::{Config, KeyId, Value};
use hyperfold_config::sweep::Sweep;
use hyperfold_engine::{is_final, packet_hops};
use hyperfold_flow::{FlowEngine, advance_beside, is_flow_level};
use hyperfold_fold::{FoldEngine, Memo};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::experiment::config;
use crate::planning::forecast::{ExperimentSize, Folding, SLOWED_BY_PAUSES, TimeForecast, with_the_last};
use crate::planning::short_simulation::{Count, ProbeMoment};
use crate::planning::speed_class::SpeedClass;

/// Time for the experiments of a class, after which no other begins. The next constant: time with coarse packets.
const PATIENCE: Duration = Duration::from_secs(2);
const COARSE_PATIENCE: Duration = Duration::from_secs(2);
/// Seconds left to a class that is simulated alone: enough for one experiment.
const FIRST_ONLY: f64 = 0.5;
/// Time between two counts of an experiment's progress.
const SLICE: Duration = Duration::from_millis(20);
/// Approximate packet-hops with coarse packets; packets are only as long as that needs (our choice).
const COARSE_HOPS: u64 = 10_000_000;
/// Longest payload of a packet, bytes.
const MAX_PAYLOAD: u64 = 65_000;
/// Maximum number of classes that are probed, those with the most work. The others are assumed as fast as these together.
const MAX_CLASSES: usize = 32;
/// Factor by which an estimate may be off, either way: the range that is reported. Our aim, measured in docs/explanation/performance.md.
const FACTOR: f64 = 2.0;

/// The result of probing one experiment.
#[derive(Clone, Copy, Debug)]
struct Shown {
    exp_id: u64,
    /// Its work, as [`ExperimentSize::work`] counts it.
    work: u64,
    /// Seconds of one thread that it takes.
    seconds: f64,
    /// Whether it was simulated to its end, so that its pauses are in its time.
    whole: bool,
}

/// The experiments of a class, and the results of those that were probed.
struct ClassProbe<'s> {
    class: SpeedClass,
    /// In the order in which they are simulated: the middle one by work, then those in the middle of the halves, and so on.
    sizes: Vec<&'s ExperimentSize>,
    next: usize,
    /// Number of experiments that are being simulated.
    running: u32,
    spent: f64,
    shown: Vec<Shown>,
}

impl ClassProbe<'_> {
    /// Whether pauses that were not seen may slow its experiments down.
    fn may_pause(&self) -> bool {
        let seen = !self.shown.is_empty() && self.shown.iter().all(|shown| shown.whole);
        !seen && self.sizes.iter().any(|s| s.may_pause)
    }

    fn work(&self) -> u64 {
        self.sizes.iter().map(|s| s.work()).sum()
    }

    /// Estimates the seconds of all experiments together, on one thread. `None`: nothing could be simulated.
    fn seconds(&self) -> Option<f64> {
        let sum = |shown: &[Shown]| {
            shown.iter().fold((0, 0.0), |(work, seconds), one| (work + one.work, seconds + one.seconds))
        };
        let (work, seconds) = sum(&self.shown);
        // The first experiment fills the memo from which the others profit, so it does not count for them.
        let like_others = sum(&self.shown[usize::from(self.shown.len() > 1)..]);
        let left = self.work().saturating_sub(work) as f64;
        (like_others.0 > 0).then(|| seconds + left * like_others.1 / like_others.0 as f64)
    }

    /// Estimates the seconds of the experiment with the most work.
    fn longest(&self) -> f64 {
        let Some(largest) = self.sizes.iter().max_by_key(|s| (s.work(), s.exp_id)) else { return 0.0 };
        let itself = self.shown.iter().find(|shown| shown.exp_id == largest.exp_id);
        let like_it = itself.or_else(|| self.shown.iter().max_by_key(|shown| shown.work));
        like_it.map_or(0.0, |shown| shown.seconds * largest.work() as f64 / shown.work as f64)
    }
}

/// Estimates the time of a run of `sizes` on `threads` CPU threads; `None` if nothing could be simulated.
pub(crate) fn probe(sweep: &Sweep, sizes: &[ExperimentSize], threads: usize) -> Option<TimeForecast> {
    let mut classes = classes(sweep, sizes);
    simulate(sweep, &mut classes, threads);
    let (mut seconds, mut probed, mut left) = (0.0, 0, 0);
    for class in &classes {
        let Some(class_seconds) = class.seconds() else {
            left += class.work();
            continue;
        };
        log::debug!(
            "probe: {} like {:?} take {class_seconds:.3} s of one thread, by {} of them",
            class.sizes.len(),
            class.class,
            class.shown.len()
        );
        seconds += class_seconds;
        probed += class.work();
    }
    if probed == 0 {
        return None;
    }
    seconds *= 1.0 + left as f64 / probed as f64;
    let longest = classes.iter().map(ClassProbe::longest).fold(0.0, f64::max);
    let about = with_the_last(seconds / threads as f64, longest, threads);
    // What was simulated to its end shows its pauses. The beginning of another experiment does not show those that come later.
    let may_pause = classes.iter().any(ClassProbe::may_pause);
    let factor = if may_pause { SLOWED_BY_PAUSES } else { FACTOR };
    Some(TimeForecast { least: about / FACTOR, about: Some(about), most: about * factor, may_pause })
}

/// Returns the classes of experiments with packets or flows, those with the most work first.
fn classes<'s>(sweep: &Sweep, sizes: &'s [ExperimentSize]) -> Vec<ClassProbe<'s>> {
    let mut classes: HashMap<SpeedClass, Vec<&ExperimentSize>> = HashMap::new();
    for size in sizes {
        // Clusters have no packets; their time is in their estimate.
        if let Some(config) = config_of(sweep, size).filter(|c| c.cluster_run().is_none()) {
            classes.entry(SpeedClass::of(&config, size.work())).or_default().push(size);
        }
    }
    let probe_of =
        |(class, sizes)| ClassProbe { class, sizes: spread(sizes), next: 0, running: 0, spent: 0.0, shown: vec![] };
    let mut classes: Vec<ClassProbe> = classes.into_iter().map(probe_of).collect();
    classes.sort_by_key(|class| (std::cmp::Reverse(class.work()), class.sizes[0].exp_id));
    classes
}

/// Orders experiments: the middle one by work first, then those in the middle of the parts left and right of it, and so on.
fn spread(mut sizes: Vec<&ExperimentSize>) -> Vec<&ExperimentSize> {
    sizes.sort_by_key(|s| (s.work(), s.exp_id));
    let (mut order, mut parts) =
        (Vec::with_capacity(sizes.len()), VecDeque::from_iter(std::iter::once(0..sizes.len())));
    while let Some(part) = parts.pop_front() {
        if part.is_empty() {
            continue;
        }
        let middle = part.start + part.len() / 2;
        order.push(sizes[middle]);
        parts.extend([part.start..middle, middle + 1..part.end]);
    }
    order
}

/// Simulates experiments of all classes on `threads` threads, as long as there is time. Each thread has its own pool, so that no measured experiment gets help
/// from others.
fn simulate(sweep: &Sweep, classes: &mut [ClassProbe], threads: usize) {
    let memo: Arc<Memo> = Arc::default();
    let n = classes.len().min(MAX_CLASSES);
    let allowance = budget::total() / 2 / threads.max(1) as u64;
    let classes = Mutex::new(&mut classes[..n]);
    let locked = || classes.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut classes = locked();
        let open = |class: &ClassProbe| {
            class.next < class.sizes.len() && class.spent + f64::from(class.running) < PATIENCE.as_secs_f64()
        };
        // Each class has its turn before any has its second.
        let (class_idx, class) = classes
            .iter_mut()
            .enumerate()
            .filter(|(_, c)| open(c))
            .min_by_key(|(class_idx, c)| (c.next, *class_idx))?;
        class.next += 1;
        class.running += 1;
        Some((class_idx, class.sizes[class.next - 1]))
    };
    let one = |class_idx: usize, size: &ExperimentSize, allowance: u64| {
        let began = Instant::now();
        let simulated = simulated_for_a_moment(sweep, size, &memo, allowance);
        let class = &mut locked()[class_idx];
        class.running -= 1;
        class.spent += began.elapsed().as_secs_f64();
        let shown = |(seconds, whole)| Shown { exp_id: size.exp_id, work: size.work(), seconds, whole };
        class.shown.extend(simulated.map(shown));
    };
    let work = |allowance: u64| {
        let Ok(alone) = rayon::ThreadPoolBuilder::new().num_threads(1).build() else { return };
        while let Some((class_idx, size)) = next() {
            alone.install(|| one(class_idx, size, allowance));
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(|| work(allowance)))));
    // Classes of which no experiment fits beside others get the memory for themselves.
    for class in locked().iter_mut().filter(|class| class.shown.is_empty()) {
        (class.next, class.spent) = (0, PATIENCE.as_secs_f64() - FIRST_ONLY);
    }
    work(budget::total() / 4 * 3);
}

/// Returns the configuration of a surveyed experiment.
fn config_of(sweep: &Sweep, size: &ExperimentSize) -> Option<Config> {
    let position = sweep.experiments.binary_search_by_key(&size.exp_id, |e| e.exp_id).ok()?;
    Some(config(sweep, &sweep.experiments[position]))
}

/// Estimates the seconds of an experiment by simulating it for a moment, and whether that was to its end. `None`: it cannot be simulated; the run will report
/// why.
fn simulated_for_a_moment(
    sweep: &Sweep,
    size: &ExperimentSize,
    memo: &Arc<Memo>,
    allowance: u64,
) -> Option<(f64, bool)> {
    let config = config_of(sweep, size)?;
    let begin = moment(&config, PATIENCE, memo, allowance)?;
    let coarse = if begin.is_whole() { None } else { with_coarse_packets(sweep, size, &config, allowance) };
    let seconds = begin.forecast(coarse.as_ref());
    log::debug!("probe: experiment {}: {begin}", size.exp_id);
    if let Some(coarse) = &coarse {
        log::debug!("probe: with coarse packets {coarse}");
    }
    log::debug!("probe: {seconds:.3} s");
    Some((config.times_simulated() as f64 * seconds, begin.is_whole()))
}

/// Simulates the experiment for a moment with coarse packets, if it has packets and is folded.
fn with_coarse_packets(sweep: &Sweep, size: &ExperimentSize, config: &Config, allowance: u64) -> Option<ProbeMoment> {
    let payload = config.values.int(KeyId::PayloadBytes).unsigned_abs().max(1);
    let longer = (size.packet_hops / COARSE_HOPS + 1).min(MAX_PAYLOAD / payload);
    if size.flow_level || size.folds == Folding::Off || longer <= 1 {
        return None;
    }
    let position = sweep.experiments.binary_search_by_key(&size.exp_id, |e| e.exp_id).ok()?;
    let payload = Value::Int((payload * longer) as i64);
    let coarse = sweep.config_with(&sweep.experiments[position], &[(KeyId::PayloadBytes, payload)]).ok()?;
    moment(&coarse, COARSE_PATIENCE, &Arc::default(), allowance)
}

/// Simulates an experiment until it ends or `patience` is over; `None`: it cannot be simulated.
fn moment(config: &Config, patience: Duration, memo: &Arc<Memo>, allowance: u64) -> Option<ProbeMoment> {
    let began = Instant::now();
    let mut prepared = hyperfold_host::prepare_within(config, 0, allowance).ok()?;
    let mut tables = prepared.built.tables.view();
    let limit = hyperfold_host::RunOptions::default().packet_limit;
    let (mut engine, mut flows) = (FoldEngine::remembering(Arc::clone(memo)), FlowEngine::default());
    let flow_level = is_flow_level(&tables);
    let left = tables.shared[SHARED_FLOWS_LEFT as usize];
    let mut moment = ProbeMoment::of(if flow_level { 0 } else { prepared.packet_hops }, began.elapsed().as_secs_f64());
    let started = Instant::now();
    let stop = || started.elapsed() > patience;
    while !is_final(&tables) && !stop() {
        let end = Instant::now() + SLICE;
        let stop = || Instant::now() > end || stop();
        let batch = std::slice::from_mut(&mut *tables);
        let slice = advance_beside(&mut flows, &mut engine, batch, limit, &stop).ok()?;
        if !slice.failures.is_empty() {
            return None;
        }
        let seconds = started.elapsed().as_secs_f64();
        let tasks = f64::from(left - tables.shared[SHARED_FLOWS_LEFT as usize]) / f64::from(left.max(1));
        let (simulated, simulating) = engine.simulated(0, &tables);
        let share = |hops: u64| hops as f64 / prepared.packet_hops.max(1) as f64;
        let (done, simulated) = (share(packet_hops(&tables)), share(simulated));
        // Without folding, all time at packet level is simulation.
        let simulating = if flow_level { 0.0 } else { simulating.map_or(seconds, |s| s.as_secs_f64()) };
        let count = Count { done, simulated, tasks, seconds, simulating };
        moment.note(count);
    }
    if is_final(&tables) {
        moment.ends();
    }
    Some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::forecast::GAIN_OF_THREADS;

    fn sized(exp_id: u64, packet_hops: u64) -> ExperimentSize {
        ExperimentSize { exp_id, packet_hops, ..ExperimentSize::default() }
    }

    fn class<'s>(sizes: &'s [ExperimentSize], shown: &[(usize, f64)]) -> ClassProbe<'s> {
        let shown_of = |&(i, seconds): &(usize, f64)| Shown {
            exp_id: sizes[i].exp_id,
            work: sizes[i].work(),
            seconds,
            whole: true,
        };
        let shown = shown.iter().map(shown_of).collect();
        let class = SpeedClass::default();
        ClassProbe { class, sizes: sizes.iter().collect(), next: 0, running: 0, spent: 0.0, shown }
    }

    #[test]
    fn the_middle_one_comes_first_and_all_come() {
        let sizes: Vec<ExperimentSize> = (0..7).map(|i| sized(i, 7_000_000 - i * 1_000_000)).collect();
        let order: Vec<u64> = spread(sizes.iter().collect()).iter().map(|s| s.exp_id).collect();
        assert_eq!(order, [3, 5, 1, 6, 4, 2, 0]);
    }

    #[test]
    fn what_was_simulated_counts_itself_and_the_first_pays_for_the_others() {
        let sizes: Vec<ExperimentSize> = (0..10).map(|i| sized(i, 1_000_000)).collect();
        assert_eq!(class(&sizes, &[]).seconds(), None);
        let near = |shown: &[(usize, f64)], seconds: f64| {
            let said = class(&sizes, shown).seconds().expect("some were simulated");
            assert!((said - seconds).abs() < 1e-9, "{said}");
        };
        near(&[(5, 2.0)], 20.0);
        near(&[(5, 2.0), (2, 0.5), (8, 0.3)], 2.8 + 7.0 * 0.4);
        let all: Vec<(usize, f64)> = (0..10).map(|i| (i, 0.1 * i as f64)).collect();
        near(&all, 4.5);
    }

    #[test]
    fn the_longest_is_scaled_unless_it_was_simulated() {
        let sizes = [sized(0, 1_992_000), sized(1, 992_000)];
        assert!((class(&sizes, &[(1, 3.0)]).longest() - 6.0).abs() < 1e-9);
        assert!((class(&sizes, &[(1, 3.0), (0, 4.0)]).longest() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_ends_long_before_its_longest_experiment() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}");
        near(with_the_last(10.0, 10.0, 2), 10.0);
        // One experiment takes 18 of 20 s: 2 s side by side, the other 16 with two threads.
        near(with_the_last(10.0, 18.0, 2), 2.0 + 16.0 / GAIN_OF_THREADS);
        near(with_the_last(10.0, 10.0, 1), 10.0);
    }
}
