//! What a run will take: memory by what holds it, and time as a range.
//!
//! Layer: session. Arithmetic over what [`super::survey`] measured; prepares and simulates nothing.

use std::collections::HashSet;

use serde::Serialize;

use crate::batch::memo_keeper::most_in_memory;
use crate::batch::{LONG_PACKET_HOPS, Prepared};
use crate::budget::Measured;
use crate::spec::Config;

use super::speed_class::SpeedClass;
use super::work_done::work_of;

/// Bytes of a process that has prepared nothing: program, threads, thread-local heaps (measured on the smallest sweeps of experiments/contention).
const PROCESS_BYTES: u64 = 18 << 20;
/// What a run keeps of every experiment beside its files: keys, record, statistics.
const EXPERIMENT_BYTES: u64 = 2 << 10;
/// A flow or message in an outcome, and what is made of it to be written.
const OUTCOME_BYTES: u64 = 96;
/// What folding remembers of a message, as measured on experiments/studies and experiments/suites: 20 to 1,000 bytes, most where nothing repeats.
const MEMO_BYTES: u64 = 300;
/// What grows while an experiment is simulated is about this part of it: pools of packets, what folding holds, results that are read off.
const GROWTH_OF: u64 = 2;
/// Columns that double as they grow take up to so many times their rows.
const COLUMNS_OF: u64 = 2;
/// Outcomes kept for duplicates, at most (`batch::dedup`), and what folding remembers, at most (`engine::fold`).
const MOST_KEPT_BYTES: u64 = 256 << 20;
const MOST_MEMO_BYTES: u64 = 1 << 30;

/// Packet-hops a second that estimates count on, a thread: what the CPU engine does at least.
const PACKET_HOPS_PER_S: f64 = 8e6;
/// Tasks of programs (kernels, collectives, messages) a second that they count on besides, a thread: 1.5 µs each, as measured on studies/parallelism.
const TASKS_PER_S: f64 = 650e3;

/// Packets of an experiment with coarse packets, as a search simulates many of, over those it has.
pub(super) const COARSE_PACKETS: f64 = 1.0 / 8.0;

/// How many times fewer packets folding simulates at best: of programs that repeat themselves, and of those that become steady.
const EXACT_SAVES: f64 = 4.0;
const STEADY_SAVES: f64 = 1000.0;

/// What an experiment takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ExperimentSize {
    pub(crate) exp_id: u64,
    /// Packets over links, if each is simulated once.
    pub(crate) packet_hops: u64,
    /// Tasks of its program.
    pub(crate) tasks: u64,
    /// Flows or messages.
    pub(crate) flows: u64,
    /// It has rates in place of packets.
    pub(crate) flow_level: bool,
    pub(crate) table_bytes: u64,
    /// What it takes in a batch, without what it shares with others.
    pub(crate) own_bytes: u64,
    /// A job that others may share: what tells it apart, and its bytes.
    pub(crate) job: Option<(u64, u64)>,
    /// Of its own bytes, rows that the world keeps.
    pub(crate) row_bytes: u64,
    /// The most that it takes while it is prepared.
    pub(crate) preparing_bytes: u64,
    pub(crate) preparing_s: f64,
    pub(crate) folds: Folding,
    /// What it takes while it waits for the run, if it does since the inputs were checked.
    pub(crate) kept_bytes: u64,
    /// Those with equal ones take about as long for as much work; 0: nothing is known of it.
    pub(crate) class: u64,
}

/// What an experiment leaves out of its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Folding {
    /// Nothing.
    #[default]
    Off,
    /// What it has simulated before.
    Exact,
    /// That, and what is steady.
    Steady,
}

impl Folding {
    /// Of an experiment, which may have a program.
    pub(crate) fn of(config: &Config, has_program: bool) -> Folding {
        match (config.folding(), config.steady()) {
            (Some(_), Some(_)) if has_program => Folding::Steady,
            (Some(_), None) if has_program => Folding::Exact,
            _ => Folding::Off,
        }
    }
}

impl ExperimentSize {
    /// Its work, in packet-hops.
    pub(crate) fn work(&self) -> u64 {
        work_of(self.packet_hops, self.tasks)
    }

    /// Of an experiment that was prepared in so many seconds; `took` is what its thread allocated for it.
    pub(crate) fn of(config: &Config, prepared: &Prepared, took: Measured, preparing_s: f64) -> ExperimentSize {
        let tables = &prepared.built.tables;
        let own_bytes = prepared.host_bytes();
        let times = config.times_simulated();
        let size = ExperimentSize {
            exp_id: 0,
            packet_hops: if config.is_flow_level() { 0 } else { prepared.packet_hops * times },
            tasks: if config.is_flow_level() {
                (tables.tasks.len() + prepared.flows.len()) as u64 * times
            } else {
                tables.tasks.len() as u64
            },
            flows: prepared.flows.len() as u64,
            flow_level: config.is_flow_level(),
            table_bytes: tables.bytes(),
            own_bytes,
            job: prepared.shared_job(),
            row_bytes: prepared.row_bytes(),
            preparing_bytes: took.most.max(own_bytes),
            preparing_s,
            folds: Folding::of(config, prepared.job.is_some()),
            kept_bytes: 0,
            class: 0,
        };
        ExperimentSize { class: SpeedClass::of(config, size.work()).hashed(), ..size }
    }
}

/// Bytes of the host's memory that a run takes at its peak, by what holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryForecast {
    /// The program, its threads, and what it keeps of every experiment.
    pub process: u64,
    /// The experiments of the largest batch, with those that are prepared meanwhile and what grows while it is simulated.
    pub batch: u64,
    /// Programs that several experiments share.
    pub jobs: u64,
    /// What folding remembers.
    pub memo: u64,
    /// Results that are not written yet, or kept for duplicates.
    pub outcomes: u64,
}

impl MemoryForecast {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.process + self.batch + self.jobs + self.memo + self.outcomes
    }
}

/// How a run is cut into batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchShape {
    pub(crate) threads: usize,
    /// Most experiments of a batch.
    pub(crate) most: usize,
    /// Most bytes that they take together.
    pub(crate) room: u64,
    /// The same of more experiments than threads.
    pub(crate) room_of_many: u64,
    /// The same where all are long.
    pub(crate) room_of_long: u64,
}

impl BatchShape {
    /// How many of these, from the first on, make a batch.
    fn len(&self, sizes: &[ExperimentSize]) -> usize {
        let (mut held, mut jobs, mut long) = (0u64, HashSet::new(), true);
        let fits = |&(before, s): &(usize, &ExperimentSize)| {
            held = held.saturating_add(s.own_bytes + new_job(&mut jobs, s));
            long &= s.packet_hops >= LONG_PACKET_HOPS;
            held <= match long {
                true => self.room_of_long,
                false if before < self.threads => self.room,
                false => self.room_of_many,
            }
        };
        sizes.iter().take(self.most).enumerate().take_while(fits).count().max(1)
    }
}

/// Bytes of an experiment's job, if it is not yet among `jobs`.
fn new_job(jobs: &mut HashSet<u64>, of: &ExperimentSize) -> u64 {
    of.job.filter(|(id, _)| jobs.insert(*id)).map_or(0, |(_, bytes)| bytes)
}

/// Sum of the `n` largest.
fn largest(values: impl Iterator<Item = u64>, n: usize) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.iter().take(n).sum()
}

/// Memory of a run of `sizes` in this order, whose jobs take `job_bytes`, of a sweep of `rows` experiments.
pub(crate) fn memory(sizes: &[ExperimentSize], job_bytes: u64, rows: usize, shape: BatchShape) -> MemoryForecast {
    let (mut batch, mut outcomes, mut at) = (0u64, 0u64, 0);
    // Rows of a batch stay where they are until those of the next are written over them.
    let mut rows_before = 0u64;
    let mut wait: u64 = sizes.iter().map(|s| s.kept_bytes).sum();
    while at < sizes.len() {
        let n = shape.len(&sizes[at..]);
        let these = &sizes[at..at + n];
        let mut jobs = HashSet::new();
        let held: u64 = these.iter().map(|s| s.own_bytes + new_job(&mut jobs, s)).sum();
        // While some are prepared the others wait; while some run the others do.
        let preparing = largest(these.iter().map(|s| s.preparing_bytes.saturating_sub(s.own_bytes)), shape.threads);
        let growing = largest(these.iter().map(|s| s.own_bytes), shape.threads) / GROWTH_OF;
        let rows_here = these.iter().map(|s| s.row_bytes).sum();
        // The world's columns double as they grow.
        let columns = COLUMNS_OF * rows_before.max(rows_here);
        wait -= these.iter().map(|s| s.kept_bytes).sum::<u64>();
        let most = (COLUMNS_OF * rows_before + held + preparing).max(columns - rows_here + held + growing);
        batch = batch.max(most + wait);
        rows_before = rows_before.max(rows_here);
        outcomes = outcomes.max(these.iter().map(|s| s.flows * OUTCOME_BYTES).sum());
        at += n;
    }
    let folded = || sizes.iter().filter(|s| s.folds != Folding::Off);
    log::debug!(
        "forecast: {} experiments to simulate, {} packet-hops, {} flows, {} tasks",
        sizes.len(),
        sizes.iter().map(|s| s.packet_hops).sum::<u64>(),
        sizes.iter().map(|s| s.flows).sum::<u64>(),
        sizes.iter().map(|s| s.tasks).sum::<u64>()
    );
    let kept: u64 = folded().map(|s| s.flows * OUTCOME_BYTES).sum();
    MemoryForecast {
        process: PROCESS_BYTES + rows as u64 * EXPERIMENT_BYTES,
        batch,
        jobs: job_bytes,
        memo: folded().map(|s| s.flows * MEMO_BYTES).sum::<u64>().min(MOST_MEMO_BYTES).min(most_in_memory()),
        outcomes: outcomes + kept.min(MOST_KEPT_BYTES),
    }
}

/// Seconds of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeForecast {
    /// If folding saves what it can.
    pub least: f64,
    /// By a probe, which simulated some experiments for a moment; `None` without one.
    pub about: Option<f64>,
    /// If folding saves nothing.
    pub most: f64,
}

impl TimeForecast {
    /// With so many seconds before it.
    pub fn after(self, seconds: f64) -> TimeForecast {
        TimeForecast { least: self.least + seconds, about: self.about.map(|s| s + seconds), most: self.most + seconds }
    }

    /// A multiple of it.
    pub(crate) fn times(self, factor: f64) -> TimeForecast {
        TimeForecast { least: self.least * factor, about: self.about.map(|s| s * factor), most: self.most * factor }
    }
}

/// Seconds of one thread that an experiment takes, at least and at most, where so many of its packets are simulated.
fn thread_seconds(s: &ExperimentSize, packets: f64) -> [f64; 2] {
    let fixed = s.preparing_s + s.tasks as f64 / TASKS_PER_S;
    let packets = packets * s.packet_hops as f64 / PACKET_HOPS_PER_S;
    let least = match s.folds {
        Folding::Off => packets,
        Folding::Exact => packets / EXACT_SAVES,
        Folding::Steady => packets / STEADY_SAVES,
    };
    [fixed + least, fixed + packets]
}

/// Time of all of `sizes` on so many threads.
pub(crate) fn time(sizes: &[ExperimentSize], threads: usize) -> TimeForecast {
    let mut sum = TimeForecast::default();
    for [least, most] in sizes.iter().map(|s| thread_seconds(s, 1.0)) {
        sum.least += least;
        sum.most += most;
    }
    sum.times(1.0 / threads as f64)
}

/// Time of a search that runs so many of `sizes` in full and so many with coarse packets. Nobody knows which: from the quickest to the slowest.
pub(crate) fn search_time(sizes: &[ExperimentSize], full: u64, coarse: u64, threads: usize) -> TimeForecast {
    let of = |n: u64, packets: f64| {
        let [mut least, mut most]: [Vec<f64>; 2] =
            [0, 1].map(|i| sizes.iter().map(|s| thread_seconds(s, packets)[i]).collect());
        least.sort_by(f64::total_cmp);
        most.sort_by(|a, b| b.total_cmp(a));
        [least, most].map(|all| all.iter().take(n as usize).sum::<f64>())
    };
    let (full, coarse) = (of(full, 1.0), of(coarse, COARSE_PACKETS));
    TimeForecast { least: full[0] + coarse[0], about: None, most: full[1] + coarse[1] }.times(1.0 / threads as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const TWO_THREADS: BatchShape =
        BatchShape { threads: 2, most: 32, room: 2048 * MIB, room_of_many: 2048 * MIB, room_of_long: 4096 * MIB };

    fn sized(own_mib: u64, folds: Folding) -> ExperimentSize {
        ExperimentSize {
            packet_hops: 8_000_000,
            tasks: 650_000,
            flows: 1000,
            own_bytes: own_mib * MIB,
            row_bytes: own_mib * MIB / 2,
            preparing_bytes: own_mib * MIB,
            folds,
            ..ExperimentSize::default()
        }
    }

    #[test]
    fn a_batch_is_what_runs_at_a_time_and_not_all_there_is() {
        // Of 300 experiments 32 run at a time, beside the rows of those before.
        let forecast = memory(&[sized(4, Folding::Off); 300], 0, 300, TWO_THREADS);
        assert_eq!(forecast.batch, (32 * 4 + 2 * 32 * 2) * MIB);
        // One large among small ones counts once.
        let mut sizes = vec![sized(1, Folding::Off); 16];
        sizes[7] = sized(1000, Folding::Off);
        let forecast = memory(&sizes, 0, 16, TWO_THREADS);
        assert_eq!(forecast.batch, 1015 * MIB + 1015 * MIB / 2 + 1001 * MIB / 2);
    }

    #[test]
    fn many_take_less_than_few_and_jobs_count_once() {
        let shape = BatchShape { room_of_many: 500 * MIB, ..TWO_THREADS };
        // Two of 400 MiB have a thread each; a third would be one too many. The rows of the two before them are still there.
        let forecast = memory(&[sized(400, Folding::Off); 4], 0, 4, shape);
        assert_eq!(forecast.batch, (800 + 2 * 400) * MIB);
        // Of 100 MiB five fit, or four with a job of 100 MiB that they share, or two with a job each.
        let with = |job: Option<u64>| ExperimentSize { job: job.map(|id| (id, 100 * MIB)), ..sized(100, Folding::Off) };
        let lens = [[None; 6], [Some(1); 6], [1, 2, 3, 4, 5, 6].map(Some)].map(|jobs| shape.len(&jobs.map(with)));
        assert_eq!(lens, [5, 4, 2]);
    }

    /// A thread may have nothing to do for as long as a long experiment takes, so that many of these are together.
    #[test]
    fn long_experiments_make_larger_batches() {
        let shape = BatchShape { room_of_many: 500 * MIB, ..TWO_THREADS };
        let long = ExperimentSize { packet_hops: LONG_PACKET_HOPS, ..sized(300, Folding::Exact) };
        let short = ExperimentSize { packet_hops: LONG_PACKET_HOPS - 1, ..long };
        assert_eq!([shape.len(&[long; 20]), shape.len(&[short; 20])], [13, 2]);
        // The first that is short ends it.
        assert_eq!(shape.len(&[long, long, long, short, long]), 3);
    }

    #[test]
    fn large_experiments_make_small_batches() {
        let forecast = memory(&[sized(1500, Folding::Off); 5], 0, 5, TWO_THREADS);
        assert_eq!(forecast.batch, (1500 + 2 * 750) * MIB);
    }

    #[test]
    fn what_is_shared_and_remembered_counts_beside_batches() {
        let forecast = memory(&[sized(4, Folding::Steady); 8], 100 * MIB, 8, TWO_THREADS);
        let flows = 8 * 1000;
        assert_eq!((forecast.jobs, forecast.memo), (100 * MIB, flows * MEMO_BYTES));
        assert_eq!(forecast.outcomes, 2 * flows * OUTCOME_BYTES, "of the batch, and kept for duplicates");
        let sum = forecast.process + forecast.batch + forecast.jobs + forecast.memo + forecast.outcomes;
        assert_eq!(forecast.total(), sum);
        assert_eq!(memory(&[sized(4, Folding::Off); 8], 0, 8, TWO_THREADS).memo, 0);
    }

    #[test]
    fn time_is_a_range_where_folding_may_save() {
        let off = time(&[sized(1, Folding::Off); 4], 2);
        assert!((off.least - 4.0).abs() < 1e-9 && (off.most - 4.0).abs() < 1e-9, "{off:?}");
        let steady = time(&[sized(1, Folding::Steady); 4], 2);
        assert!((steady.least - 2.002).abs() < 1e-9 && (steady.most - 4.0).abs() < 1e-9, "{steady:?}");
    }

    #[test]
    fn a_search_may_take_its_quickest_or_its_slowest_candidates() {
        let large = ExperimentSize { packet_hops: 80_000_000, ..sized(1, Folding::Off) };
        let sizes = [sized(1, Folding::Off), large, sized(1, Folding::Off), large];
        // Tasks take a second each; packets one second or ten, an eighth of it where they are coarse.
        let time = search_time(&sizes, 1, 2, 1);
        assert!(
            (time.least - (2.0 + 2.0 * 1.125)).abs() < 1e-9 && (time.most - (11.0 + 2.0 * 2.25)).abs() < 1e-9,
            "{time:?}"
        );
    }
}
