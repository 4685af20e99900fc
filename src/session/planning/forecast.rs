//! Forecasts the resources of a run: memory by what holds it, and time as a range.
//!
//! Layer: session. Arithmetic over what [`crate::planning::survey`] measured; prepares and simulates nothing.

use std::collections::HashSet;

use serde::Serialize;

use hyperfold_base::budget::Measured;
use hyperfold_config::spec::Config;
use hyperfold_host::memo_file::memo_keeper::max_in_memory;
use hyperfold_host::{LONG_PACKET_HOPS, Prepared, unknown_to_folding};

use crate::planning::speed_class::SpeedClass;
use crate::running::work_done::work_of;

/// Bytes of a process that has prepared nothing: program, threads, thread-local heaps. Measured on the smallest sweeps of experiments/contention.
const PROCESS_BYTES: u64 = 18 << 20;
/// Bytes that a run keeps for every experiment besides its files: keys, record, statistics.
const EXPERIMENT_BYTES: u64 = 2 << 10;
/// Bytes of a flow or message in an outcome, and of its form for writing.
const OUTCOME_BYTES: u64 = 96;
/// Bytes that folding remembers per message. Measured on experiments/studies and experiments/suites: 20 to 1,000 bytes, most where nothing repeats.
const MEMO_BYTES: u64 = 300;
/// Memory that grows during simulation is about 1 / `GROWTH_OF` of an experiment's own: pools of packets, state of folding, results being read.
const GROWTH_OF: u64 = 2;
/// Columns that double as they grow take up to `COLUMNS_OF` times their rows.
const COLUMNS_OF: u64 = 2;
/// Maximum number of bytes of outcomes kept for duplicates (`hyperfold_host::dedup`).
const MAX_KEPT_BYTES: u64 = 256 << 20;
const MAX_MEMO_BYTES: u64 = 1 << 30;

/// Packet-hops per second and thread that estimates assume: the CPU engine's minimum.
const PACKET_HOPS_PER_S: f64 = 8e6;
/// Tasks of programs (kernels, collectives, messages) per second and thread that estimates assume in addition: 1.5 µs each, measured on studies/parallelism.
const TASKS_PER_S: f64 = 650e3;

/// Packets of an experiment with coarse packets, over its normal number. A search simulates many such experiments.
pub(crate) const COARSE_PACKETS: f64 = 1.0 / 8.0;

/// Factor by which folding reduces simulated packets at best, for programs that repeat themselves; the next one, for those that become steady.
const EXACT_SAVES: f64 = 4.0;
const STEADY_SAVES: f64 = 1000.0;

/// The resources of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ExperimentSize {
    pub(crate) exp_id: u64,
    /// Packets over links, if each is simulated once.
    pub(crate) packet_hops: u64,
    /// Tasks of its program.
    pub(crate) tasks: u64,
    /// Flows or messages.
    pub(crate) flows: u64,
    /// Whether flows have rates instead of packets.
    pub(crate) flow_level: bool,
    pub(crate) table_bytes: u64,
    /// Bytes in a batch, without what it shares with others.
    pub(crate) own_bytes: u64,
    /// A job that others may share, as (number of its key, bytes).
    pub(crate) job: Option<(u64, u64)>,
    /// Bytes of `own_bytes` that are rows in the world.
    pub(crate) row_bytes: u64,
    /// Peak bytes while it is prepared.
    pub(crate) preparing_bytes: u64,
    pub(crate) preparing_s: f64,
    pub(crate) folds: Folding,
    /// Bytes while it waits for the run; 0 unless it was prepared when inputs were checked.
    pub(crate) kept_bytes: u64,
    /// Experiments of one class take about as long for as much work; 0: unknown.
    pub(crate) class: u64,
}

/// Which packets of an experiment are not simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Folding {
    /// All packets are simulated.
    #[default]
    Off,
    /// Repeated episodes are not simulated again.
    Exact,
    /// Repeated episodes and steady phases are not simulated.
    Steady,
}

impl Folding {
    /// Returns the folding of an experiment.
    pub(crate) fn of(config: &Config, has_program: bool) -> Folding {
        if unknown_to_folding(config).is_some() {
            return Folding::Off;
        }
        match (config.folding(), config.steady()) {
            (Some(_), Some(_)) if has_program => Folding::Steady,
            (Some(_), None) if has_program => Folding::Exact,
            _ => Folding::Off,
        }
    }
}

impl ExperimentSize {
    /// Work of the experiment, in packet-hops.
    pub(crate) fn work(&self) -> u64 {
        work_of(self.packet_hops, self.tasks)
    }

    /// Returns the size of an experiment that was prepared in `preparing_s` seconds; `allocated` is what its thread allocated for it.
    pub(crate) fn of(config: &Config, prepared: &Prepared, allocated: Measured, preparing_s: f64) -> ExperimentSize {
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
            preparing_bytes: allocated.peak.max(own_bytes),
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
    /// Bytes of the program, its threads, and what it keeps of every experiment.
    pub process: u64,
    /// Bytes of the experiments of the largest batch, with those that are prepared meanwhile and the growth during simulation.
    pub batch: u64,
    /// Bytes of programs that several experiments share.
    pub jobs: u64,
    /// Bytes that folding remembers.
    pub memo: u64,
    /// Bytes of results that are not written yet, or kept for duplicates.
    pub outcomes: u64,
}

impl MemoryForecast {
    /// Sum of all parts, bytes.
    pub fn total(&self) -> u64 {
        self.process + self.batch + self.jobs + self.memo + self.outcomes
    }
}

/// The limits by which a run is cut into batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchShape {
    pub(crate) threads: usize,
    /// Most experiments in a batch.
    pub(crate) max_len: usize,
    /// Most bytes of a batch with at most as many experiments as threads.
    pub(crate) host_bytes: u64,
    /// Most bytes of a batch with more experiments than threads.
    pub(crate) host_bytes_of_many: u64,
    /// Most bytes of a batch of only long experiments.
    pub(crate) host_bytes_of_long: u64,
}

impl BatchShape {
    /// Returns how many experiments, from the first on, make a batch.
    fn len(&self, sizes: &[ExperimentSize]) -> usize {
        let (mut held, mut jobs, mut long) = (0u64, HashSet::new(), true);
        let fits = |&(n_before, s): &(usize, &ExperimentSize)| {
            held = held.saturating_add(s.own_bytes + new_job(&mut jobs, s));
            long &= s.packet_hops >= LONG_PACKET_HOPS;
            held <= match long {
                true => self.host_bytes_of_long,
                false if n_before < self.threads => self.host_bytes,
                false => self.host_bytes_of_many,
            }
        };
        sizes.iter().take(self.max_len).enumerate().take_while(fits).count().max(1)
    }
}

/// Returns the bytes of an experiment's job, or 0 if it is already in `jobs`, and adds it.
fn new_job(jobs: &mut HashSet<u64>, experiment: &ExperimentSize) -> u64 {
    experiment.job.filter(|(id, _)| jobs.insert(*id)).map_or(0, |(_, bytes)| bytes)
}

/// Sum of the `n` largest values.
fn largest(values: impl Iterator<Item = u64>, n: usize) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.iter().take(n).sum()
}

/// Forecasts the memory of a run of `sizes` in this order, for a sweep of `rows` experiments. `job_bytes`: bytes of shared jobs.
pub(crate) fn memory(sizes: &[ExperimentSize], job_bytes: u64, rows: usize, shape: BatchShape) -> MemoryForecast {
    let (mut batch, mut outcomes, mut position) = (0u64, 0u64, 0);
    // Rows of a batch stay in memory until those of the next overwrite them.
    let mut rows_before = 0u64;
    let mut waiting_bytes: u64 = sizes.iter().map(|s| s.kept_bytes).sum();
    while position < sizes.len() {
        let n = shape.len(&sizes[position..]);
        let batch_sizes = &sizes[position..position + n];
        let mut jobs = HashSet::new();
        let held: u64 = batch_sizes.iter().map(|s| s.own_bytes + new_job(&mut jobs, s)).sum();
        // While some experiments of the batch are prepared the others wait; while some run the others wait too.
        let preparing =
            largest(batch_sizes.iter().map(|s| s.preparing_bytes.saturating_sub(s.own_bytes)), shape.threads);
        let growing = largest(batch_sizes.iter().map(|s| s.own_bytes), shape.threads) / GROWTH_OF;
        let rows_here = batch_sizes.iter().map(|s| s.row_bytes).sum();
        // The world's columns double as they grow.
        let columns = COLUMNS_OF * rows_before.max(rows_here);
        waiting_bytes -= batch_sizes.iter().map(|s| s.kept_bytes).sum::<u64>();
        let peak = (COLUMNS_OF * rows_before + held + preparing).max(columns - rows_here + held + growing);
        batch = batch.max(peak + waiting_bytes);
        rows_before = rows_before.max(rows_here);
        outcomes = outcomes.max(batch_sizes.iter().map(|s| s.flows * OUTCOME_BYTES).sum());
        position += n;
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
        memo: folded().map(|s| s.flows * MEMO_BYTES).sum::<u64>().min(MAX_MEMO_BYTES).min(max_in_memory()),
        outcomes: outcomes + kept.min(MAX_KEPT_BYTES),
    }
}

/// Forecast of a run's time, s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeForecast {
    /// Seconds if folding saves as much as it can.
    pub least: f64,
    /// Seconds according to a probe, which simulated some experiments for a moment; `None` without a probe.
    pub about: Option<f64>,
    /// Seconds if folding saves nothing.
    pub most: f64,
}

impl TimeForecast {
    /// Adds seconds that pass before.
    pub fn after(self, seconds: f64) -> TimeForecast {
        TimeForecast { least: self.least + seconds, about: self.about.map(|s| s + seconds), most: self.most + seconds }
    }

    /// Multiplies it by a factor.
    pub(crate) fn times(self, factor: f64) -> TimeForecast {
        TimeForecast { least: self.least * factor, about: self.about.map(|s| s * factor), most: self.most * factor }
    }
}

/// Returns the seconds of one thread that an experiment takes, at least and at most. `packets`: number of its packets over the normal number.
fn thread_seconds(s: &ExperimentSize, packets: f64) -> [f64; 2] {
    let fixed = s.preparing_s + s.tasks as f64 / TASKS_PER_S;
    let packets = packets * s.packet_hops as f64 / PACKET_HOPS_PER_S;
    let folded = match s.folds {
        Folding::Off => packets,
        Folding::Exact => packets / EXACT_SAVES,
        Folding::Steady => packets / STEADY_SAVES,
    };
    [fixed + folded, fixed + packets]
}

/// Returns the time of all of `sizes` on so many threads.
pub(crate) fn time(sizes: &[ExperimentSize], threads: usize) -> TimeForecast {
    let mut sum = TimeForecast::default();
    for [least, most] in sizes.iter().map(|s| thread_seconds(s, 1.0)) {
        sum.least += least;
        sum.most += most;
    }
    sum.times(1.0 / threads as f64)
}

/// Returns the time of a search that runs `full` of `sizes` in full and `coarse` with coarse packets. It is unknown which ones, so the range is from the
/// quickest to the slowest.
pub(crate) fn search_time(sizes: &[ExperimentSize], full: u64, coarse: u64, threads: usize) -> TimeForecast {
    let range_of = |n: u64, packets: f64| {
        let [mut quickest, mut slowest]: [Vec<f64>; 2] =
            [0, 1].map(|i| sizes.iter().map(|s| thread_seconds(s, packets)[i]).collect());
        quickest.sort_by(f64::total_cmp);
        slowest.sort_by(|a, b| b.total_cmp(a));
        [quickest, slowest].map(|all| all.iter().take(n as usize).sum::<f64>())
    };
    let (full, coarse) = (range_of(full, 1.0), range_of(coarse, COARSE_PACKETS));
    TimeForecast { least: full[0] + coarse[0], about: None, most: full[1] + coarse[1] }.times(1.0 / threads as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const TWO_THREADS: BatchShape = BatchShape {
        threads: 2,
        max_len: 32,
        host_bytes: 2048 * MIB,
        host_bytes_of_many: 2048 * MIB,
        host_bytes_of_long: 4096 * MIB,
    };

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
        // 32 of 300 experiments run at a time, beside the rows of the earlier ones.
        let forecast = memory(&[sized(4, Folding::Off); 300], 0, 300, TWO_THREADS);
        assert_eq!(forecast.batch, (32 * 4 + 2 * 32 * 2) * MIB);
        // One large experiment among small ones counts once.
        let mut sizes = vec![sized(1, Folding::Off); 16];
        sizes[7] = sized(1000, Folding::Off);
        let forecast = memory(&sizes, 0, 16, TWO_THREADS);
        assert_eq!(forecast.batch, 1015 * MIB + 1015 * MIB / 2 + 1001 * MIB / 2);
    }

    #[test]
    fn many_take_less_than_few_and_jobs_count_once() {
        let shape = BatchShape { host_bytes_of_many: 500 * MIB, ..TWO_THREADS };
        // Two of 400 MiB have a thread each; a third would be one too many. The rows of the two before them are still there.
        let forecast = memory(&[sized(400, Folding::Off); 4], 0, 4, shape);
        assert_eq!(forecast.batch, (800 + 2 * 400) * MIB);
        // Five of 100 MiB fit, or four that share a job of 100 MiB, or two with a job each.
        let sized_job =
            |job: Option<u64>| ExperimentSize { job: job.map(|id| (id, 100 * MIB)), ..sized(100, Folding::Off) };
        let lens = [[None; 6], [Some(1); 6], [1, 2, 3, 4, 5, 6].map(Some)].map(|jobs| shape.len(&jobs.map(sized_job)));
        assert_eq!(lens, [5, 4, 2]);
    }

    /// A thread may idle for as long as a long experiment takes, so batches of long ones are larger.
    #[test]
    fn long_experiments_make_larger_batches() {
        let shape = BatchShape { host_bytes_of_many: 500 * MIB, ..TWO_THREADS };
        let long = ExperimentSize { packet_hops: LONG_PACKET_HOPS, ..sized(300, Folding::Exact) };
        let short = ExperimentSize { packet_hops: LONG_PACKET_HOPS - 1, ..long };
        assert_eq!([shape.len(&[long; 20]), shape.len(&[short; 20])], [13, 2]);
        // The first short experiment ends the batch.
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
        // Tasks take a second each; packets one second or ten, an eighth of it if they are coarse.
        let time = search_time(&sizes, 1, 2, 1);
        assert!(
            (time.least - (2.0 + 2.0 * 1.125)).abs() < 1e-9 && (time.most - (11.0 + 2.0 * 2.25)).abs() < 1e-9,
            "{time:?}"
        );
    }
}
