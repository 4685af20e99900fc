//! The record of an experiment, and the columns of `results.csv`.
//!
//! Layer: results. Plain data. Other layers fill it; [`super::csv_rows`] and [`super::parquet_file`] write it.

use super::bytes::{ByteInput, Code};
use super::cluster_record::{ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterSampleRecord};
use super::job_record::{JobRecord, SharedLinkRecord};
use super::network_record::{FlowRecord, LinkRecord, MeanRttRecord, RttRecord};
use super::outputs::{ClusterColumns, ColumnSets};
use super::record_macro::{FileColumn, Shown, record};
use super::series_record::{FlowSampleRecord, LinkSampleRecord};
use super::serving_record::{RequestRecord, TimeStats};
use super::stats_record::StatsRecord;
use super::value::{Cell, ColumnKind, Micro, Ms, Ps};

/// How an experiment ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was simulated to its end.
    #[default]
    Ok,
    /// The configuration does not fit the GPU's memory: a result, not a failure.
    Oom,
    /// It ended early; its row says why.
    Failed,
}

/// Every status, at its number in the journal.
const STATUSES: [Status; 3] = [Status::Ok, Status::Oom, Status::Failed];

impl Status {
    /// Returns the text in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Oom => "oom",
            Status::Failed => "failed",
        }
    }
}

impl Shown for Status {
    const KIND: ColumnKind = ColumnKind::Text;
    const VALUES: &'static str = "text";
    fn cell(&self) -> Cell {
        self.as_str().into()
    }
    fn read(text: &str) -> Result<Self, &'static str> {
        STATUSES.into_iter().find(|status| status.as_str() == text).ok_or("ok, oom or failed")
    }
}

impl Code for Status {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }
    fn get(input: &mut ByteInput) -> Option<Self> {
        STATUSES.get(usize::from(u8::get(input)?)).copied()
    }
}

record! {
    /// One row of `results.csv`. Fields that do not apply are `None` and shown empty.
    pub struct ExperimentRecord {
        /// Index of the experiment in the sweep after constraints, before `--limit` and `--shard`.
        pub exp_id: u64 => exp_id,
        /// Identity of the configuration, which its replicas share.
        pub config_key: String => config_key,
        /// Identity of the experiment, seed included.
        pub exp_key: String => exp_key,
        /// Which repeat of the configuration it is, from 0.
        pub replica: u32 => replica,
        /// Seed of the repeat.
        pub seed: u64 => seed,
        /// One value per axis, in the order of the writer's axes.
        pub axis_values: Vec<Cell>,
        /// How the experiment ended: `ok`, `oom` if the configuration does not fit a GPU's memory, or `failed`.
        pub status: Status => status,
        /// Text of the column of that name; without a text its cells are empty.
        pub error: String [
            /// Why it failed, or what does not fit a GPU's memory; else empty.
            error: Option<String> = |record| Some(record.error.clone()).filter(|error| !error.is_empty()),
        ],
        /// Whether the machine ended it, not the model: `limits.wall_s` was reached, or memory was too small. A resumed run tries it again.
        pub machine_limit: bool,
        /// Time from 0 to the last completion.
        pub makespan: Option<Ps> => makespan_ns,
        /// Mean time of an iteration, on the rank that ends last. The parts from `compute_ns` to `other_ns` add up to it.
        pub iteration_time: Option<Ps> => iteration_time_ns,
        /// Part of an iteration in kernels, without those of the optimizer.
        pub compute: Option<Ps> => compute_ns,
        /// Part of an iteration in communication of tensor parallelism that nothing hides.
        pub comm_exposed_tp: Option<Ps> => comm_exposed_tp_ns,
        /// Part of an iteration in communication of pipeline parallelism that nothing hides.
        pub comm_exposed_pp: Option<Ps> => comm_exposed_pp_ns,
        /// Part of an iteration in communication of data parallelism that nothing hides.
        pub comm_exposed_dp: Option<Ps> => comm_exposed_dp_ns,
        /// Part of an iteration in communication of expert parallelism that nothing hides.
        pub comm_exposed_ep: Option<Ps> => comm_exposed_ep_ns,
        /// Part of an iteration in communication of context parallelism that nothing hides.
        pub comm_exposed_cp: Option<Ps> => comm_exposed_cp_ns,
        /// Part of an iteration spent waiting for kernels of absent peers, of a pipeline or of other replicas.
        pub bubble: Option<Ps> => bubble_ns,
        /// Part of an iteration in kernels of the optimizer.
        pub optimizer: Option<Ps> => optimizer_ns,
        /// Rest of an iteration: communication of no dimension, as that of a Chakra trace or of a collective alone, and what nothing explains.
        pub other: Option<Ps> => other_ns,
        /// The rank that ends last, of several the lowest: `iteration_time_ns` and its parts are of its timeline.
        pub critical_rank: Option<u64> => critical_rank,
        /// Tokens a second of a training job; of inference, output tokens a second.
        pub tokens_per_s: Option<f64> => tokens_per_s,
        /// Tokens a second, as in `tokens_per_s`, over the number of GPUs.
        pub tokens_per_s_per_gpu: Option<f64> => tokens_per_s_per_gpu,
        /// Model FLOPs utilisation of a training job: floating-point operations of the model a second, as a share of the GPUs' peak.
        pub mfu: Option<f64> => mfu,
        /// Algorithm bandwidth of a collective as nccl-tests define it, but in Gb/s.
        pub algbw_gbps: Option<f64> => algbw_gbps,
        /// Bus bandwidth of a collective as nccl-tests define it, but in Gb/s.
        pub busbw_gbps: Option<f64> => busbw_gbps,
        /// Bytes of GPU memory that the fullest rank needs.
        pub peak_memory_bytes: Option<u64> => peak_memory_bytes,
        /// Number of flows or messages. Those of background jobs may be unfinished.
        pub flows: Option<u64> => flows,
        /// Mean completion time, of the flows that completed.
        pub fct_mean: Option<Ps> => fct_mean_ns,
        /// Median of the flows' completion times, by nearest rank.
        pub fct_p50: Option<Ps> => fct_p50_ns,
        /// 99th percentile of the flows' completion times, by nearest rank.
        pub fct_p99: Option<Ps> => fct_p99_ns,
        /// Longest completion time of a flow.
        pub fct_max: Option<Ps> => fct_max_ns,
        /// Median of the flows' slowdowns: the completion time over the time at line rate on an idle network, over all paths of the flow together.
        pub fct_slowdown_p50: Option<Micro> => fct_slowdown_p50,
        /// 99th percentile of the flows' slowdowns, by nearest rank.
        pub fct_slowdown_p99: Option<Micro> => fct_slowdown_p99,
        /// Number of times that a data or ACK packet left a port, simulated or skipped.
        pub packet_hops: Option<u64> => packet_hops,
        /// Number of marks that switch ports put on data packets. A packet may count at several hops.
        pub ecn_marks: Option<u64> => ecn_marks,
        /// Number of pause frames received.
        pub pfc_pauses: Option<u64> => pfc_pauses,
        /// Time for which pauses held directions of links, added up over all of them.
        pub pfc_paused: Option<Ps> => pfc_paused_ns see "explanation/model-semantics.md#paused-time",
        /// Time for which pauses held the direction of a link that was paused longest. `paused` of `series_links.csv` says when.
        pub pfc_paused_max: Option<Ps> => pfc_paused_max_ns see "explanation/model-semantics.md#paused-time",
        /// Number of packets dropped or trimmed, ACKs too.
        pub drops: Option<u64> => drops,
        /// Number of data packets sent again: after a loss, after reordering that go-back-N takes for loss, after a timeout.
        pub retransmissions: Option<u64> => retransmissions,
        /// Bytes of the longest queue of a switch port.
        pub max_queue_bytes: Option<u64> => max_queue_bytes,
        /// Utilisation of the busiest direction of a link: the share of its rate, from 0 to the makespan.
        pub max_link_utilisation: Option<Micro> => max_link_utilisation,
        /// Name of the busiest direction of a link, as in `links.csv`.
        pub bottleneck_link: Option<String> => bottleneck_link,
        /// Algorithm of the collective that takes longest alone, in the words of `workload.algorithm`.
        pub algorithm: Option<String> => algorithm,
        /// Protocol of the collective that takes longest alone; empty where switches reduce.
        pub protocol: Option<String> => protocol,
        /// Number of channels of the collective that takes longest alone; empty where switches reduce.
        pub channels: Option<u64> => channels,
        /// How far times of such experiments were off measured machines, as a sentence, or `not validated`.
        /// It has the 90th percentile and the mean of the absolute errors. It also has the tables that they rest on, whether these are too few to judge by, and what differs from the nearest ones.
        /// Empty where no machine with that GPU was measured.
        pub validated_error: Option<String> => validated_error see "explanation/fidelity.md#what-a-result-is-worth",
        /// The nearest class that was measured, and what this experiment has otherwise.
        pub validated_class: Option<String> => validated_class,
        /// Mean of the absolute relative errors of such times: 0.05 is 5 %. Each table counts as one, and every difference from the nearest class makes it larger.
        pub validated_mean_error: Option<f64> => validated_mean_error,
        /// 90th percentile of the absolute relative errors of such times: 0.05 is 5 %.
        /// Each table counts as one, and every difference from the nearest class makes it larger.
        pub validated_p90_error: Option<f64> => validated_p90_error,
        /// Number of measured rows that are as near as the nearest class.
        pub validated_rows: Option<u64> => validated_rows,
        /// Dollars that it costs to buy the cluster.
        pub cost_usd: Option<f64> => cost_usd,
        /// Power of the cluster at full load, in kW.
        pub power_kw: Option<f64> => power_kw,
        /// Dollars for a million tokens of a model, of inference a million output tokens: price of the cluster over its life, and energy.
        pub usd_per_mtoken: Option<f64> => usd_per_mtoken,
        /// Results of a cluster over days.
        pub cluster: Option<Box<ClusterRecord>>,
        /// Results of inference.
        pub serving: Option<Box<ServingRecord>>,
    }
}

impl ExperimentRecord {
    /// Creates a record that has only its identity: status ok, everything measured empty.
    pub fn new(
        exp_id: u64,
        config_key: String,
        exp_key: String,
        replica: u32,
        seed: u64,
        axis_values: Vec<Cell>,
    ) -> Self {
        ExperimentRecord { exp_id, config_key, exp_key, replica, seed, axis_values, ..ExperimentRecord::default() }
    }

    /// Returns the record as failed, with the reason.
    pub fn failed(self, error: impl AsRef<str>) -> Self {
        ExperimentRecord { status: Status::Failed, error: one_line(error.as_ref()), ..self }
    }

    /// Returns the record as failed because the machine gave it no more time (`limits.wall_s`) or memory.
    pub fn reached_machine_limit(self, error: impl AsRef<str>) -> Self {
        ExperimentRecord { machine_limit: true, ..self.failed(error) }
    }

    /// Returns the record as not fitting a GPU: the bytes that its fullest rank needs, and the breakdown in words.
    pub fn oom(self, peak_bytes: u64, breakdown: impl AsRef<str>) -> Self {
        ExperimentRecord {
            status: Status::Oom,
            error: one_line(breakdown.as_ref()),
            peak_memory_bytes: Some(peak_bytes),
            ..self
        }
    }
}

/// Joins the lines of a text, so that a row of a result file stays one line.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    lines.join("; ")
}

record! {
    /// Results of a cluster. Shares are of all its GPU time.
    pub struct ClusterRecord (part of ExperimentRecord: |record| record.cluster.as_deref()) {
        /// Time that was simulated, ms.
        pub span_ms: Ms [
            /// Hours that were simulated.
            cluster_hours: f64 = |cluster| cluster.span_ms.0 as f64 / 3.6e6,
        ],
        /// Number of jobs.
        pub jobs: u64 => jobs,
        /// Number of jobs that ended.
        pub jobs_done: u64 => jobs_done,
        /// Number of jobs that had more than `failures.max_restarts` restarts.
        pub jobs_given_up: u64 => jobs_given_up,
        /// Share of GPU time that jobs held.
        pub utilisation: f64 => utilisation,
        /// Share of GPU time of work that counts, at full speed.
        pub goodput: f64 => goodput,
        /// Share of GPU time in service without a job.
        pub idle_share: f64 => idle_share,
        /// Part of `idle_share` in which the first job of the queue asks for no more GPUs than are free, but cannot have them where they are.
        pub stranded_share: f64 => stranded_share,
        /// Share of GPU time that work took longer for placement, company, slow servers and lost GPUs.
        pub slowdown_share: f64 => slowdown_share,
        /// Share of GPU time in which jobs stood still for checkpoints.
        pub checkpoint_share: f64 => checkpoint_share,
        /// Share of GPU time in which jobs stood still after failures, preemptions and moves.
        pub restart_share: f64 => restart_share,
        /// Share of GPU time of work that was lost.
        pub rollback_share: f64 => rollback_share,
        /// Share of GPU time of servers under repair.
        pub down_share: f64 => down_share,
        /// Share of GPU time without a job on servers that are drained or in maintenance.
        pub drained_share: f64 => drained_share,
        /// Share of GPU time of servers that stand by as spares.
        pub spare_share: f64 => spare_share,
        /// Mean time from arrival to the first start, of jobs that started.
        pub waiting_mean_ms: Option<Ms> => waiting_mean_s,
        /// Median of the times from arrival to the first start, by nearest rank.
        pub waiting_p50_ms: Option<Ms> => waiting_p50_s,
        /// 99th percentile of the times from arrival to the first start, by nearest rank.
        pub waiting_p99_ms: Option<Ms> => waiting_p99_s,
        /// Mean time from arrival to the end, of jobs that ended.
        pub turnaround_mean_ms: Option<Ms> => turnaround_mean_s,
        /// 99th percentile of the times from arrival to the end, by nearest rank.
        pub turnaround_p99_ms: Option<Ms> => turnaround_p99_s,
        /// Jain's index over users of their mean slowdown (turnaround over duration, each at least ten minutes): 1 if all have the same.
        pub fairness: Option<f64> => fairness,
        /// Number of failures of parts.
        pub failures: u64 => failures,
        /// Number of times that a job started again after a failure.
        pub restarts: u64 => restarts,
        /// Number of times that a job lost its GPUs to another one.
        pub preemptions: u64 => preemptions,
        /// Number of times that a job was moved to make room.
        pub migrations: u64 => migrations,
        /// Number of times that a server was drained.
        pub drains: u64 => drains,
        /// GPU hours of work that counts.
        pub useful_gpu_hours: f64 => useful_gpu_hours,
        /// Dollars for a GPU hour of work that counts: the share of the price that the simulated time is of `cost.years`, and energy at full load.
        pub usd_per_useful_gpu_hour: Option<f64> => usd_per_useful_gpu_hour,
        /// Number of times that a job went on with fewer GPUs after a failure.
        pub shrinks: u64 => shrinks,
        /// Number of times that a job got some of its GPUs back.
        pub grows: u64 => grows,
        /// Time of writes of checkpoints over their time alone. Empty where `checkpoint.writes_share` is `"nothing"`, or nothing was written.
        pub write_slowdown: Option<f64> => write_slowdown,
        /// Part of `slowdown_share` that work took longer than in the same places alone.
        pub company_share: f64 => company_share,
        /// Number of different sets of jobs that were simulated.
        pub iteration_sets: Option<u64> => iteration_sets,
        /// Number of times that the times of a set were needed.
        pub iteration_sets_asked: Option<u64> => iteration_sets_asked,
        /// Number of jobs of the largest set.
        pub iteration_set_most_jobs: Option<u64> => iteration_set_most_jobs,
        /// Number of sets that were audited, that is, of which four times as many iterations were simulated.
        pub iteration_audits: Option<u64> => iteration_audits,
        /// Mean relative difference of iteration times in audits of sets, over jobs.
        pub iteration_error_mean: Option<f64> => iteration_error_mean,
        /// Largest relative difference of iteration times in audits of sets, over jobs.
        pub iteration_error_max: Option<f64> => iteration_error_max,
        /// Value of the column of that name, which follows the next one.
        pub beside_writes_share: Option<f64>,
        /// Sequences a second on which models were trained by work that counts. Empty where no job is of a class that trains one.
        pub samples_per_s: Option<f64> => samples_per_s see "how-to/clusters-of-models.md" [
            /// The most that iterations could have lost by writes of others' checkpoints, as a share of GPU time. It is in no other column.
            /// Empty without `checkpoint.writes_share`, or if nothing was written.
            beside_writes_share see "how-to/speeds-beside-others.md#writes-of-checkpoints": Option<f64> = |cluster| cluster.beside_writes_share,
        ],
    }
}

record! {
    /// Results of inference. Shares are of the time of all stages of all instances.
    #[derive(Eq)]
    pub struct ServingRecord (part of ExperimentRecord: |record| record.serving.as_deref()) {
        /// Number of requests that arrived.
        pub requests: u64 => requests,
        /// Number of requests that were answered.
        pub requests_done: u64 => requests_done,
        /// Times to the first token of a request.
        pub ttft: TimeStats [
            /// Mean time from arrival to the end of the step with the first token.
            ttft_mean_ns: Option<Ps> = |serving| serving.ttft.mean,
            /// Median of the times to the first token.
            ttft_p50_ns: Option<Ps> = |serving| serving.ttft.p50,
            /// 99th percentile of the times to the first token.
            ttft_p99_ns: Option<Ps> = |serving| serving.ttft.p99,
        ],
        /// Times of each further token of a request.
        pub tpot: TimeStats [
            /// Mean time per output token: from the first to the last token, over the tokens after the first. Answers of one token have none.
            tpot_mean_ns: Option<Ps> = |serving| serving.tpot.mean,
            /// Median of the times per output token.
            tpot_p50_ns: Option<Ps> = |serving| serving.tpot.p50,
            /// 99th percentile of the times per output token.
            tpot_p99_ns: Option<Ps> = |serving| serving.tpot.p99,
        ],
        /// Times from a request's arrival to its last token.
        pub e2e: TimeStats [
            /// Mean time from arrival to the last token.
            e2e_mean_ns: Option<Ps> = |serving| serving.e2e.mean,
            /// Median of the times to the last token.
            e2e_p50_ns: Option<Ps> = |serving| serving.e2e.p50,
            /// 99th percentile of the times to the last token.
            e2e_p99_ns: Option<Ps> = |serving| serving.e2e.p99,
        ],
        /// Times from arrival to the first step.
        pub queue: TimeStats [
            /// Mean time from arrival to the begin of the first step.
            queue_mean_ns: Option<Ps> = |serving| serving.queue.mean,
            /// Median of the times to the first step.
            queue_p50_ns: Option<Ps> = |serving| serving.queue.p50,
            /// 99th percentile of the times to the first step.
            queue_p99_ns: Option<Ps> = |serving| serving.queue.p99,
        ],
        /// Times from the first token to keys and values on the ranks that decode.
        pub kv_transfer: TimeStats [
            /// Disaggregated: mean time from the first token until keys and values are on all ranks that decode, waiting for room there included.
            kv_transfer_mean_ns: Option<Ps> = |serving| serving.kv_transfer.mean,
            /// Disaggregated: median of the times until keys and values are on all ranks that decode.
            kv_transfer_p50_ns: Option<Ps> = |serving| serving.kv_transfer.p50,
            /// Disaggregated: 99th percentile of the times until keys and values are on all ranks that decode.
            kv_transfer_p99_ns: Option<Ps> = |serving| serving.kv_transfer.p99,
        ],
        /// Bytes of keys and values that were sent to ranks that decode.
        pub kv_transfer_bytes: u64 => kv_transfer_bytes,
        /// Answered requests a second.
        pub requests_per_s: Micro => requests_per_s,
        /// Tokens of answered requests a second.
        pub output_tokens_per_s: Micro => output_tokens_per_s,
        /// Requests a second that keep `workload.ttft_bound_ms` and `workload.tpot_bound_ms`, over the time from the first to the last arrival.
        /// If all arrive at once, that time goes to the last token.
        pub goodput_rps: Micro => goodput_rps,
        /// Share of all requests that keep both bounds of `goodput_rps`.
        pub within_bounds: Micro => within_bounds,
        /// Number of steps. One of several instances that step together counts once.
        pub steps: u64 => steps,
        /// Mean number of sequences in a step.
        pub sequences_per_step: Micro => sequences_per_step,
        /// Tokens that one instance has memory for, disaggregated one that decodes.
        pub kv_capacity_tokens: u64 => kv_capacity_tokens,
        /// Share of `kv_capacity_tokens` that is reserved, as the mean over instances and time.
        pub kv_use_mean: Micro => kv_use_mean,
        /// Largest share of `kv_capacity_tokens` that one instance has reserved.
        pub kv_use_peak: Micro => kv_use_peak,
        /// Share of the instances' time in which the first of a queue waits for memory alone.
        pub kv_blocked_share: Micro => kv_blocked_share,
        /// Share of the stages' time in kernels that are bound by arithmetic.
        pub compute_bound_share: Micro => compute_bound_share,
        /// Share of the stages' time in kernels that are bound by memory bandwidth.
        pub memory_bound_share: Micro => memory_bound_share,
        /// Share of the stages' time in launches and `workload.step_overhead_us`.
        pub launch_share: Micro => launch_share,
        /// Share of the stages' time in the rest of steps: collectives, messages, waiting for others.
        pub network_share: Micro => network_share,
        /// Share of the stages' time between steps.
        pub unused_share: Micro => unused_share,
        /// What limits: `memory for keys and values` if more than half of the time somebody waits for it alone, else `load` if more than half is unused.
        /// Else the largest of `compute`, `memory bandwidth`, `kernel launches` and `network`. Disaggregated, of each pool.
        pub limited_by: String => limited_by,
        /// How far latencies (`ttft_*`, `tpot_*`, `e2e_*`, `queue_*`) were off measured machines, as a sentence, or `not validated`.
        /// `validated_error` and the columns beside it are then of throughput.
        pub validated_latency_error: Option<String> => validated_latency_error,
        /// Mean of the absolute relative errors of latencies, as `validated_mean_error`.
        pub validated_latency_mean: Option<Micro> => validated_latency_mean_error,
        /// 90th percentile of the absolute relative errors of latencies, as `validated_p90_error`.
        pub validated_latency_p90: Option<Micro> => validated_latency_p90_error,
    }
}

/// A column of `results.csv` that is no axis.
pub type RecordColumn = FileColumn<ExperimentRecord>;

/// Number of columns before the axes: `exp_id` to `seed`.
const N_IDENTITY: usize = 5;
/// Number of columns that every cluster over days has: `cluster_hours` to `company_share`.
const N_CLUSTER: usize = 32;

/// The columns before the axes.
pub const IDENTITY: &[RecordColumn] = ExperimentRecord::COLUMNS.split_at(N_IDENTITY).0;
/// The columns after the axes.
pub const OUTCOME: &[RecordColumn] = ExperimentRecord::COLUMNS.split_at(N_IDENTITY).1;
/// The columns after `OUTCOME`, in sweeps with a cluster over days.
pub const CLUSTER: &[RecordColumn] = ClusterRecord::COLUMNS.split_at(N_CLUSTER).0;
/// The columns after `CLUSTER`, in sweeps with simulated iterations.
pub const ITERATIONS: &[RecordColumn] = ClusterRecord::COLUMNS.split_at(N_CLUSTER).1;
/// The last columns, in sweeps with inference.
pub const SERVING: &[RecordColumn] = ServingRecord::COLUMNS;

/// Returns the columns after the axes, with those of clusters and of inference if `sets` has them.
pub fn outcome_columns(sets: ColumnSets) -> impl Iterator<Item = &'static RecordColumn> {
    let plain = if sets.cluster >= ClusterColumns::Plain { CLUSTER } else { &[] };
    let measured = if sets.cluster >= ClusterColumns::WithIterations { ITERATIONS } else { &[] };
    let serving = if sets.serving { SERVING } else { &[] };
    OUTCOME.iter().chain(plain).chain(measured).chain(serving)
}

record! {
    /// The evaluation of a candidate in a search (`method = "optimize"`) at one level of detail. Only the journal has it, so that a resumed search does not
    /// evaluate again.
    pub struct LookRecord {
        /// Number of the level.
        pub level: u8,
        /// Id of the candidate's first experiment.
        pub exp_id: u64,
        /// Packet-hops that were simulated for it.
        pub packet_hops: u64,
        /// Value of each objective, less being better; `None` if the level does not know it.
        pub values: Vec<Option<f64>>,
        /// Why there are no values.
        pub why: Option<String>,
    }
}

record! {
    /// Everything that is written about one experiment.
    pub struct Finished {
        /// Row of `results.csv`.
        pub record: ExperimentRecord,
        /// Rows of `flows.csv`; ignored unless the sweep asks for the file. The same holds for the next two.
        pub flows: Vec<FlowRecord>,
        /// Rows of `links.csv`.
        pub links: Vec<LinkRecord>,
        /// Rows of `rtt.csv`.
        pub rtt: Vec<RttRecord>,
        /// Rows of `rtt_means.csv`, if the sweep asks for them.
        pub rtt_means: Vec<MeanRttRecord>,
        /// Rows of several jobs, in their order.
        pub jobs: Vec<JobRecord>,
        /// Rows of links that jobs share, by link, then by job, if the sweep asks for them.
        pub shared_links: Vec<SharedLinkRecord>,
        /// State of a cluster over days at regular times.
        pub cluster_timeline: Vec<ClusterSampleRecord>,
        /// Jobs of a cluster over days, in their order, if the sweep asks for them.
        pub cluster_jobs: Vec<ClusterJobRecord>,
        /// Rows of slowed jobs of a cluster over days, if iterations are simulated.
        pub cluster_congestion: Vec<ClusterCongestionRecord>,
        /// Rows of groups of servers by time, if the sweep asks for them.
        pub cluster_map: Vec<ClusterMapRecord>,
        /// Rows of inference requests, if the sweep asks for them.
        pub requests: Vec<RequestRecord>,
        /// Samples of links over time, if the sweep asks for them.
        pub series_links: Vec<LinkSampleRecord>,
        /// Samples of flows over time, if the sweep asks for them.
        pub series_flows: Vec<FlowSampleRecord>,
        /// Row of `stats.csv`.
        pub stats: StatsRecord,
    }
}

impl Finished {
    /// Creates an experiment that has only its row and statistics.
    pub fn without_rows(record: ExperimentRecord, stats: StatsRecord) -> Finished {
        Finished { record, stats, ..Finished::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_columns_begin_where_they_should() {
        let first = [IDENTITY, OUTCOME, CLUSTER, ITERATIONS, SERVING].map(|columns| columns[0].name);
        assert_eq!(first, ["exp_id", "status", "cluster_hours", "iteration_sets", "requests"]);
    }
}
