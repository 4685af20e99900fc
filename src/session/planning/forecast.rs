//! Forecasts the resources of a run: memory by what holds it, and time as a range.
//!
//! Layer: session. Arithmetic over what [`crate::planning::survey`] measured; prepares and simulates nothing.

use std::collections::HashSet;

use serde::Serialize;

use hyperfold_base::budget::Measured;
use hyperfold_config::spec::Config;
use hyperfold_host::memo_file::memo_keeper::max_in_memory;
use hyperfold_host::{LONG_PACKET_HOPS, MemorySize, OUTCOME_BYTES, Prepared, unknown_to_folding};

use crate::planning::speed_class::SpeedClass;
use crate::running::work_done::work_of;

/// Bytes of a process that has prepared nothing: program, threads, thread-local heaps. Measured on the smallest sweeps of experiments/contention.
const PROCESS_BYTES: u64 = 18 << 20;
/// Bytes that a run keeps for every experiment besides its files: keys, record, statistics.
const EXPERIMENT_BYTES: u64 = 2 << 10;
/// Bytes that folding remembers per message. Measured on experiments/studies and experiments/suites: 20 to 1,000 bytes, most where nothing repeats.
const MEMO_BYTES: u64 = 300;
/// Most experiments that are prepared in one go (`hyperfold_host::batches::runner`).
const PREPARED_AT_ONCE: usize = 16;
/// Maximum number of bytes of outcomes kept for duplicates (`hyperfold_host::dedup`).
const MAX_KEPT_BYTES: u64 = 256 << 20;
const MAX_MEMO_BYTES: u64 = 1 << 30;

/// Packet-hops per second and thread that estimates assume: the CPU engine's minimum.
const PACKET_HOPS_PER_S: f64 = 8e6;
/// Tasks of programs (kernels, collectives, messages) per second and thread that estimates assume in addition: 1.5 µs each, measured on studies/parallelism.
const TASKS_PER_S: f64 = 650e3;

/// Factor by which pauses slow down an experiment at most. While a switch may pause, one thread steps all of its ports. Runs with many pauses took 3 to 9 times
/// what was estimated without them.
pub const SLOWED_BY_PAUSES: f64 = 9.0;
/// Approximate speed-up of an experiment that has all threads: 1 to 1.5 for two, 2 for four (docs/explanation/performance.md).
pub(super) const GAIN_OF_THREADS: f64 = 1.25;

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
    /// Parts of its memory, without what it shares with others.
    pub(crate) memory: MemorySize,
    /// Bytes of the key by which duplicates are found.
    pub(crate) key_bytes: u64,
    /// A job that others may share, as (number of its key, bytes).
    pub(crate) job: Option<(u64, u64)>,
    /// Peak bytes while it is prepared.
    pub(crate) preparing_bytes: u64,
    pub(crate) preparing_s: f64,
    pub(crate) folds: Folding,
    /// Whether its switches may pause their neighbours (PFC).
    pub(crate) may_pause: bool,
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
    /// Whether simulating it takes seconds, if nothing repeats.
    fn is_long(&self) -> bool {
        !self.flow_level && self.packet_hops >= LONG_PACKET_HOPS
    }

    /// Bytes that it holds besides a job that it shares.
    fn held(&self) -> u64 {
        self.memory.held + self.key_bytes
    }

    /// Returns it on another network, which has `nodes` bytes of nodes. Other traffic holds `flows` times the bytes of queue pairs and paths there, and
    /// `beside_nodes` times the bytes of all but nodes. The larger of both estimates counts.
    pub(crate) fn on_network(self, nodes: u64, flows: f64, beside_nodes: f64) -> ExperimentSize {
        let part = |bytes: f64| bytes.max(0.0) as u64;
        let m = self.memory;
        let own = m.held.saturating_sub(m.nodes) as f64;
        let held = part(nodes as f64 + (own + m.flows as f64 * (flows - 1.0)).max(own * beside_nodes));
        let of_all = |bytes: u64| part(bytes as f64 * held as f64 / m.held.max(1) as f64);
        let memory = MemorySize {
            held,
            world: of_all(m.world),
            rows: of_all(m.rows),
            twice: of_all(m.twice),
            growing: of_all(m.growing),
            nodes,
            flows: part(m.flows as f64 * flows),
        };
        let (key_bytes, preparing_bytes) = (of_all(self.key_bytes), of_all(self.preparing_bytes));
        ExperimentSize { memory, key_bytes, preparing_bytes, ..self }
    }

    /// Work of the experiment, in packet-hops.
    pub(crate) fn work(&self) -> u64 {
        work_of(self.packet_hops, self.tasks)
    }

    /// Returns the size of an experiment that was prepared in `preparing_s` seconds; `allocated` is what its thread allocated for it.
    pub(crate) fn of(config: &Config, prepared: &Prepared, allocated: Measured, preparing_s: f64) -> ExperimentSize {
        let tables = &prepared.built.tables;
        let memory = prepared.memory_size();
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
            memory,
            key_bytes: 0,
            job: prepared.shared_job(),
            preparing_bytes: allocated.peak.max(memory.held),
            preparing_s,
            folds: Folding::of(config, prepared.job.is_some() && tables.exps[0].may_fold()),
            may_pause: prepared.may_pause(),
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
    /// Most bytes of a batch of `n` experiments; `long`: all of them are long.
    fn host_bytes_for(&self, n: usize, long: bool) -> u64 {
        match long {
            true => self.host_bytes_of_long,
            false if n <= self.threads => self.host_bytes,
            false => self.host_bytes_of_many,
        }
    }

    /// Returns how many experiments, from the first on, make a batch.
    fn len(&self, sizes: &[ExperimentSize]) -> usize {
        let (mut held, mut jobs, mut long) = (0u64, HashSet::new(), true);
        let fits = |&(n_before, s): &(usize, &ExperimentSize)| {
            held = held.saturating_add(s.memory.held + new_job(&mut jobs, s));
            long &= s.is_long();
            held <= self.host_bytes_for(n_before + 1, long)
        };
        sizes.iter().take(self.max_len).enumerate().take_while(fits).count().max(1)
    }

    /// Returns how many experiments, from the first on, are prepared before a batch begins, where `waiting` are prepared already: as many are prepared at a
    /// time as would fit if they were like the largest so far. Those that do not fit wait.
    fn prepared(&self, sizes: &[ExperimentSize], waiting: usize) -> usize {
        let mut n = waiting;
        loop {
            let (held, largest) = sizes[..n]
                .iter()
                .fold((0u64, 0u64), |(sum, most), s| (sum.saturating_add(s.memory.held), most.max(s.memory.held)));
            let long = n > 0 && sizes[..n].iter().all(ExperimentSize::is_long);
            let left = self.host_bytes_for(n + 1, long).saturating_sub(held);
            let fit = left.checked_div(largest).unwrap_or(self.threads as u64) as usize;
            let before_many = if n < self.threads { self.threads - n } else { usize::MAX };
            let next = fit.max(usize::from(held == 0)).min(before_many).min(PREPARED_AT_ONCE);
            let more = next.min(self.max_len.saturating_sub(n)).min(sizes.len() - n);
            if more == 0 {
                return n;
            }
            n += more;
        }
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
    let mut prepared_before = 0;
    // Keys of duplicates stay with the outcomes of experiments that have ended, up to a limit.
    let mut keys_before = 0u64;
    while position < sizes.len() {
        let left = &sizes[position..];
        let n_prepared = shape.prepared(left, prepared_before);
        let n = shape.len(&left[..n_prepared.max(1)]);
        let batch_sizes = &left[..n];
        let mut jobs = HashSet::new();
        let own: u64 = left[..n_prepared].iter().map(ExperimentSize::held).sum();
        // Most jobs are among those that are shared; the others belong to experiments.
        let own_jobs: u64 = left[..n_prepared].iter().map(|s| new_job(&mut jobs, s)).sum();
        let held = own + own_jobs.saturating_sub(job_bytes) + keys_before.min(MAX_KEPT_BYTES);
        waiting_bytes -= left[prepared_before..n_prepared].iter().map(|s| s.kept_bytes).sum::<u64>();
        let all_of = |part: fn(&ExperimentSize) -> u64| batch_sizes.iter().map(part);
        // While some experiments are prepared the others wait; while some move into the world or run the others wait too.
        let prepared_now = left[prepared_before..n_prepared].iter();
        let preparing = largest(prepared_now.map(|s| s.preparing_bytes.saturating_sub(s.held())), shape.threads);
        let (world, rows): (u64, u64) = (all_of(|s| s.memory.world).sum(), all_of(|s| s.memory.rows).sum());
        let twice = all_of(|s| s.memory.twice).max().unwrap_or(0);
        let growing = largest(all_of(|s| s.memory.growing), shape.threads);
        let moving = held - world + rows_before.max(world + twice);
        let running = held - rows + rows_before.max(rows) + growing;
        log::debug!(
            "forecast: {n} of {n_prepared} prepared from {position} on: {held} bytes held, {preparing} more while they are prepared, {moving} as rows move, \
             {running} as it runs"
        );
        batch = batch.max((rows_before + held - world + preparing).max(moving).max(running) + waiting_bytes);
        rows_before = rows_before.max(rows);
        keys_before += all_of(|s| s.key_bytes).sum::<u64>();
        outcomes = outcomes.max(all_of(|s| s.flows * OUTCOME_BYTES).sum());
        position += n;
        prepared_before = n_prepared - n.min(n_prepared);
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
    /// Seconds if folding saves nothing, and switches pause as much as they may.
    pub most: f64,
    /// Whether it depends on pauses (PFC), which cannot be known before.
    pub may_pause: bool,
}

impl TimeForecast {
    /// Adds seconds that pass before.
    pub fn after(self, seconds: f64) -> TimeForecast {
        TimeForecast {
            least: self.least + seconds,
            about: self.about.map(|s| s + seconds),
            most: self.most + seconds,
            ..self
        }
    }

    /// Multiplies it by a factor.
    pub(crate) fn times(self, factor: f64) -> TimeForecast {
        TimeForecast {
            least: self.least * factor,
            about: self.about.map(|s| s * factor),
            most: self.most * factor,
            ..self
        }
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
    let slowed = if s.may_pause { SLOWED_BY_PAUSES } else { 1.0 };
    [fixed + folded, fixed + packets * slowed]
}

/// Returns the time of a run that would take `even` seconds if all threads had equal work, and whose longest experiment takes `longest`. The last experiments
/// of a run have the machine to themselves, and share its threads with some gain.
pub(crate) fn with_the_last(even: f64, longest: f64, threads: usize) -> f64 {
    if longest <= even || threads < 2 {
        return even;
    }
    let others = (even * threads as f64 - longest) / (threads - 1) as f64;
    others + (longest - others) / GAIN_OF_THREADS
}

/// Returns the time of all of `sizes` on so many threads.
pub(crate) fn time(sizes: &[ExperimentSize], threads: usize) -> TimeForecast {
    let (mut sum, mut longest) = ([0.0; 2], [0.0f64; 2]);
    for seconds in sizes.iter().map(|s| thread_seconds(s, 1.0)) {
        for end in 0..2 {
            sum[end] += seconds[end];
            longest[end] = longest[end].max(seconds[end]);
        }
    }
    let [shortest, slowest] = [0, 1].map(|end| with_the_last(sum[end] / threads as f64, longest[end], threads));
    TimeForecast { least: shortest, about: None, most: slowest, may_pause: sizes.iter().any(|s| s.may_pause) }
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
    let may_pause = sizes.iter().any(|s| s.may_pause);
    let (shortest, longest) = (full[0] + coarse[0], full[1] + coarse[1]);
    TimeForecast { least: shortest, about: None, most: longest, may_pause }.times(1.0 / threads as f64)
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

    fn sized(held_mib: u64, folds: Folding) -> ExperimentSize {
        let held = held_mib * MIB;
        ExperimentSize {
            packet_hops: 8_000_000,
            tasks: 650_000,
            flows: 1000,
            memory: MemorySize { held, rows: held / 2, twice: held / 4, growing: held / 2, ..MemorySize::default() },
            preparing_bytes: held,
            folds,
            ..ExperimentSize::default()
        }
    }

    #[test]
    fn a_batch_is_what_runs_at_a_time_and_not_all_there_is() {
        // 32 of 300 experiments run at a time, two of them grow.
        let forecast = memory(&[sized(4, Folding::Off); 300], 0, 300, TWO_THREADS);
        assert_eq!(
            forecast.batch,
            (32 * 4 + 32 * 2) * MIB,
            "beside the rows of the earlier ones while they are prepared"
        );
        assert_eq!(memory(&[sized(4, Folding::Off); 32], 0, 32, TWO_THREADS).batch, (32 * 4 + 2 * 2) * MIB);
        // One large experiment among small ones counts once.
        let mut sizes = vec![sized(1, Folding::Off); 16];
        sizes[7] = sized(1000, Folding::Off);
        let forecast = memory(&sizes, 0, 16, TWO_THREADS);
        assert_eq!(forecast.batch, 1015 * MIB + 1001 * MIB / 2);
    }

    #[test]
    fn many_take_less_than_few_and_jobs_count_once() {
        let shape = BatchShape { host_bytes_of_many: 500 * MIB, ..TWO_THREADS };
        // Two of 400 MiB have a thread each; a third would be one too many. The rows of the two before them are still there while the next are prepared.
        let forecast = memory(&[sized(400, Folding::Off); 4], 0, 4, shape);
        assert_eq!(forecast.batch, (800 + 400) * MIB);
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

    /// Both threads prepare an experiment before it is known that only one fits, so the other waits.
    #[test]
    fn what_is_prepared_and_does_not_fit_waits() {
        let large = [sized(1500, Folding::Off); 5];
        assert_eq!((TWO_THREADS.prepared(&large, 0), TWO_THREADS.len(&large)), (2, 1));
        assert_eq!(TWO_THREADS.prepared(&large[1..], 1), 1, "nothing more is prepared while one waits");
        let forecast = memory(&large, 0, 5, TWO_THREADS);
        assert_eq!(forecast.batch, (1500 + 1500 + 750) * MIB);
        assert_eq!(memory(&large[..1], 0, 1, TWO_THREADS).batch, (1500 + 750) * MIB);
        // Keys of duplicates are held by what waits, too, and by what has ended: by two of each when the third and the fourth are prepared.
        let keyed = large.map(|s| ExperimentSize { key_bytes: 100 * MIB, ..s });
        assert_eq!(memory(&keyed, 0, 5, TWO_THREADS).batch, forecast.batch + 400 * MIB);
    }

    #[test]
    fn rows_that_move_exist_twice() {
        let mut one = sized(100, Folding::Off);
        (one.memory.twice, one.memory.growing) = (60 * MIB, 10 * MIB);
        assert_eq!(memory(&[one], 0, 1, TWO_THREADS).batch, 160 * MIB);
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

    /// On a network with twice as many paths, what queue pairs take doubles.
    #[test]
    fn another_network_changes_nodes_and_paths() {
        let mut one = sized(100, Folding::Off);
        (one.memory.nodes, one.memory.flows) = (10 * MIB, 60 * MIB);
        let other = one.on_network(30 * MIB, 2.0, 1.0);
        assert_eq!(other.memory.held, (100 - 10 + 30 + 60) * MIB);
        assert_eq!((other.memory.nodes, other.memory.flows, other.memory.twice), (30 * MIB, 120 * MIB, 45 * MIB));
    }

    #[test]
    fn time_is_a_range_where_folding_may_save() {
        let off = time(&[sized(1, Folding::Off); 4], 2);
        assert!((off.least - 4.0).abs() < 1e-9 && (off.most - 4.0).abs() < 1e-9, "{off:?}");
        let steady = time(&[sized(1, Folding::Steady); 4], 2);
        assert!((steady.least - 2.002).abs() < 1e-9 && (steady.most - 4.0).abs() < 1e-9, "{steady:?}");
    }

    /// A single experiment cannot use threads fully, and nobody knows how often switches will pause.
    #[test]
    fn one_experiment_gains_little_by_threads_and_pauses_widen_the_range() {
        let one = sized(1, Folding::Off);
        let alone = time(&[one], 2);
        assert!((alone.least - 2.0 / 1.25).abs() < 1e-9 && (alone.most - alone.least).abs() < 1e-9, "{alone:?}");
        let pausing = time(&[ExperimentSize { may_pause: true, ..one }], 2);
        assert!((pausing.least - alone.least).abs() < 1e-9 && (pausing.most - 10.0 / 1.25).abs() < 1e-9, "{pausing:?}");
        assert_eq!((alone.may_pause, pausing.may_pause), (false, true));
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
