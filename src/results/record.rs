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
        /// Index in the sweep after constraints, before `--limit` and `--shard`.
        pub exp_id: u64 => exp_id,
        /// Key that the replicas of one configuration share.
        pub config_key: String => config_key,
        pub exp_key: String => exp_key,
        pub replica: u32 => replica,
        pub seed: u64 => seed,
        /// One value per axis, in the order of the writer's axes.
        pub axis_values: Vec<Cell>,
        pub status: Status => status,
        /// Why it failed, or why it does not fit; empty otherwise.
        pub error: String [error: Option<String> = |record| Some(record.error.clone()).filter(|error| !error.is_empty())],
        /// Whether the machine ended it, not the model: `limits.wall_s` was reached, or memory was too small. A resumed run tries it again.
        pub machine_limit: bool,
        /// Time from 0 to the last completion.
        pub makespan: Option<Ps> => makespan_ns,
        pub iteration_time: Option<Ps> => iteration_time_ns,
        pub compute: Option<Ps> => compute_ns,
        pub comm_exposed_tp: Option<Ps> => comm_exposed_tp_ns,
        pub comm_exposed_pp: Option<Ps> => comm_exposed_pp_ns,
        pub comm_exposed_dp: Option<Ps> => comm_exposed_dp_ns,
        pub comm_exposed_ep: Option<Ps> => comm_exposed_ep_ns,
        pub comm_exposed_cp: Option<Ps> => comm_exposed_cp_ns,
        pub bubble: Option<Ps> => bubble_ns,
        pub optimizer: Option<Ps> => optimizer_ns,
        pub other: Option<Ps> => other_ns,
        /// The rank whose timeline the parts of an iteration describe: the last to end, of several the lowest.
        pub critical_rank: Option<u64> => critical_rank,
        pub tokens_per_s: Option<f64> => tokens_per_s,
        pub tokens_per_s_per_gpu: Option<f64> => tokens_per_s_per_gpu,
        pub mfu: Option<f64> => mfu,
        pub algbw_gbps: Option<f64> => algbw_gbps,
        pub busbw_gbps: Option<f64> => busbw_gbps,
        pub peak_memory_bytes: Option<u64> => peak_memory_bytes,
        pub flows: Option<u64> => flows,
        pub fct_mean: Option<Ps> => fct_mean_ns,
        pub fct_p50: Option<Ps> => fct_p50_ns,
        pub fct_p99: Option<Ps> => fct_p99_ns,
        pub fct_max: Option<Ps> => fct_max_ns,
        pub fct_slowdown_p50: Option<Micro> => fct_slowdown_p50,
        pub fct_slowdown_p99: Option<Micro> => fct_slowdown_p99,
        /// Packet-hops of the experiment, simulated or skipped.
        pub packet_hops: Option<u64> => packet_hops,
        /// Marks that switch ports put on data packets.
        pub ecn_marks: Option<u64> => ecn_marks,
        /// Pause frames received.
        pub pfc_pauses: Option<u64> => pfc_pauses,
        /// Time for which pauses held link ends, added up over all of them.
        pub pfc_paused: Option<Ps> => pfc_paused_ns,
        /// Time for which the link end was paused that was paused longest.
        pub pfc_paused_max: Option<Ps> => pfc_paused_max_ns,
        pub drops: Option<u64> => drops,
        /// Data packets that were sent again.
        pub retransmissions: Option<u64> => retransmissions,
        pub max_queue_bytes: Option<u64> => max_queue_bytes,
        pub max_link_utilisation: Option<Micro> => max_link_utilisation,
        /// The link with that utilisation, as `links.csv` names it.
        pub bottleneck_link: Option<String> => bottleneck_link,
        /// Algorithm of the collective that takes longest, in the words of `workload.algorithm`; then its protocol and channels.
        pub algorithm: Option<String> => algorithm,
        pub protocol: Option<String> => protocol,
        pub channels: Option<u64> => channels,
        /// Error of times of such results and what it rests on, as a sentence, or `not validated`; then the nearest class that was measured.
        pub validated_error: Option<String> => validated_error,
        pub validated_class: Option<String> => validated_class,
        /// Mean of the absolute relative errors, widened; then their 90th percentile, and the number of the nearest measured rows.
        pub validated_mean_error: Option<f64> => validated_mean_error,
        pub validated_p90_error: Option<f64> => validated_p90_error,
        pub validated_rows: Option<u64> => validated_rows,
        /// Purchase price of the cluster.
        pub cost_usd: Option<f64> => cost_usd,
        /// Power of the cluster at full load.
        pub power_kw: Option<f64> => power_kw,
        /// Price of the cluster over its life and of its energy, per million tokens.
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
        pub span_ms: Ms [cluster_hours: f64 = |cluster| cluster.span_ms.0 as f64 / 3.6e6],
        pub jobs: u64 => jobs,
        pub jobs_done: u64 => jobs_done,
        pub jobs_given_up: u64 => jobs_given_up,
        /// Share of GPU time that jobs held.
        pub utilisation: f64 => utilisation,
        /// Share of GPU time of work that counts, at full speed.
        pub goodput: f64 => goodput,
        pub idle_share: f64 => idle_share,
        /// Part of `idle_share` in which enough GPUs for the first job of the queue were idle, but not where the job can use them.
        pub stranded_share: f64 => stranded_share,
        pub slowdown_share: f64 => slowdown_share,
        pub checkpoint_share: f64 => checkpoint_share,
        pub restart_share: f64 => restart_share,
        pub rollback_share: f64 => rollback_share,
        pub down_share: f64 => down_share,
        pub drained_share: f64 => drained_share,
        pub spare_share: f64 => spare_share,
        /// Time from arrival to the first start; `None`: no job has started.
        pub waiting_mean_ms: Option<Ms> => waiting_mean_s,
        pub waiting_p50_ms: Option<Ms> => waiting_p50_s,
        pub waiting_p99_ms: Option<Ms> => waiting_p99_s,
        /// Time from arrival to the end; `None`: no job has ended.
        pub turnaround_mean_ms: Option<Ms> => turnaround_mean_s,
        pub turnaround_p99_ms: Option<Ms> => turnaround_p99_s,
        /// Jain's index over users.
        pub fairness: Option<f64> => fairness,
        pub failures: u64 => failures,
        pub restarts: u64 => restarts,
        pub preemptions: u64 => preemptions,
        pub migrations: u64 => migrations,
        pub drains: u64 => drains,
        pub useful_gpu_hours: f64 => useful_gpu_hours,
        pub usd_per_useful_gpu_hour: Option<f64> => usd_per_useful_gpu_hour,
        /// Number of times that a job continued with fewer GPUs.
        pub shrinks: u64 => shrinks,
        pub grows: u64 => grows,
        /// Time of writes to storage over their time alone; `None`: writes share nothing, or there were none.
        pub write_slowdown: Option<f64> => write_slowdown,
        /// Part of `slowdown_share` that is caused by other jobs.
        pub company_share: f64 => company_share,
        /// If iterations are simulated: sets of jobs that were simulated. Here the columns of simulated iterations begin.
        pub iteration_sets: Option<u64> => iteration_sets,
        pub iteration_sets_asked: Option<u64> => iteration_sets_asked,
        pub iteration_set_most_jobs: Option<u64> => iteration_set_most_jobs,
        pub iteration_audits: Option<u64> => iteration_audits,
        /// Mean relative difference of iteration times in audits.
        pub iteration_error_mean: Option<f64> => iteration_error_mean,
        pub iteration_error_max: Option<f64> => iteration_error_max,
        /// Share of GPU time that checkpoint writes could have cost jobs that send over the same links; `None`: no writes were simulated.
        /// Its column follows the next one.
        pub beside_writes_share: Option<f64>,
        /// Sequences on which models were trained, over the simulated time.
        pub samples_per_s: Option<f64> => samples_per_s [beside_writes_share: Option<f64> = |cluster| cluster.beside_writes_share],
    }
}

record! {
    /// Results of inference. Shares are of the time of all stages of all instances.
    #[derive(Eq)]
    pub struct ServingRecord (part of ExperimentRecord: |record| record.serving.as_deref()) {
        pub requests: u64 => requests,
        pub requests_done: u64 => requests_done,
        /// Time to the first token of a request.
        pub ttft: TimeStats [
            ttft_mean_ns: Option<Ps> = |serving| serving.ttft.mean,
            ttft_p50_ns: Option<Ps> = |serving| serving.ttft.p50,
            ttft_p99_ns: Option<Ps> = |serving| serving.ttft.p99,
        ],
        /// Time of each further token of a request.
        pub tpot: TimeStats [
            tpot_mean_ns: Option<Ps> = |serving| serving.tpot.mean,
            tpot_p50_ns: Option<Ps> = |serving| serving.tpot.p50,
            tpot_p99_ns: Option<Ps> = |serving| serving.tpot.p99,
        ],
        /// Time from a request's arrival to its last token.
        pub e2e: TimeStats [
            e2e_mean_ns: Option<Ps> = |serving| serving.e2e.mean,
            e2e_p50_ns: Option<Ps> = |serving| serving.e2e.p50,
            e2e_p99_ns: Option<Ps> = |serving| serving.e2e.p99,
        ],
        /// Times from arrival to the first step.
        pub queue: TimeStats [
            queue_mean_ns: Option<Ps> = |serving| serving.queue.mean,
            queue_p50_ns: Option<Ps> = |serving| serving.queue.p50,
            queue_p99_ns: Option<Ps> = |serving| serving.queue.p99,
        ],
        /// Times from the first token to keys and values on the ranks that decode.
        pub kv_transfer: TimeStats [
            kv_transfer_mean_ns: Option<Ps> = |serving| serving.kv_transfer.mean,
            kv_transfer_p50_ns: Option<Ps> = |serving| serving.kv_transfer.p50,
            kv_transfer_p99_ns: Option<Ps> = |serving| serving.kv_transfer.p99,
        ],
        pub kv_transfer_bytes: u64 => kv_transfer_bytes,
        pub requests_per_s: Micro => requests_per_s,
        pub output_tokens_per_s: Micro => output_tokens_per_s,
        /// Requests per second that met both bounds.
        pub goodput_rps: Micro => goodput_rps,
        pub within_bounds: Micro => within_bounds,
        pub steps: u64 => steps,
        pub sequences_per_step: Micro => sequences_per_step,
        /// Capacity of one instance of the pool that decodes.
        pub kv_capacity_tokens: u64 => kv_capacity_tokens,
        pub kv_use_mean: Micro => kv_use_mean,
        pub kv_use_peak: Micro => kv_use_peak,
        /// Share of the instances' time in which the first of a queue waits only for memory.
        pub kv_blocked_share: Micro => kv_blocked_share,
        pub compute_bound_share: Micro => compute_bound_share,
        pub memory_bound_share: Micro => memory_bound_share,
        pub launch_share: Micro => launch_share,
        pub network_share: Micro => network_share,
        pub unused_share: Micro => unused_share,
        pub limited_by: String => limited_by,
        /// Error of latencies and what it rests on, as a sentence, or `not validated`; `None`: nothing is stated. `validated_error` is of throughput.
        pub validated_latency_error: Option<String> => validated_latency_error,
        /// Mean of the absolute relative errors of latencies, widened; then their 90th percentile.
        pub validated_latency_mean: Option<Micro> => validated_latency_mean_error,
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
