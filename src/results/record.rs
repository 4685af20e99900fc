//! The records of a run, and the columns of `results.csv`, declared once.
//!
//! Layer: results. Plain data. Other layers fill them; [`super::rows`] and [`super::parquet_file`] write them.

use super::cluster_record::{
    ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterRecord, ClusterSampleRecord,
};
use super::job_record::{JobRecord, SharedLinkRecord};
use super::outputs::{ClusterColumns, ColumnSets};
use super::serving_record::{RequestRecord, ServingRecord};
use super::value::{Cell, ColumnKind, Micro, Ps};

/// How an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Ok,
    /// The configuration does not fit the GPU's memory: a result, not a failure.
    Oom,
    Failed,
}

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

/// One row of `results.csv`. Fields that do not apply are `None` and shown empty.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentRecord {
    /// Index in the sweep after constraints, before `--limit` and `--shard`.
    pub exp_id: u64,
    /// Key that the replicas of one configuration share.
    pub config_key: String,
    pub exp_key: String,
    pub replica: u32,
    pub seed: u64,
    /// One value per axis, in the order of the writer's axes.
    pub axis_values: Vec<Cell>,
    pub status: Status,
    /// Why it failed, or why it does not fit; empty otherwise.
    pub error: String,
    /// Whether the machine ended it, not the model: `limits.wall_s` was reached, or memory was too small. A resumed run tries it again.
    pub machine_limit: bool,
    /// Time from 0 to the last completion.
    pub makespan: Option<Ps>,
    pub iteration_time: Option<Ps>,
    pub compute: Option<Ps>,
    pub comm_exposed_tp: Option<Ps>,
    pub comm_exposed_pp: Option<Ps>,
    pub comm_exposed_dp: Option<Ps>,
    pub comm_exposed_ep: Option<Ps>,
    pub comm_exposed_cp: Option<Ps>,
    pub bubble: Option<Ps>,
    pub optimizer: Option<Ps>,
    pub other: Option<Ps>,
    /// The rank whose timeline the parts of an iteration describe: the last to end, of several the lowest.
    pub critical_rank: Option<u64>,
    pub tokens_per_s: Option<f64>,
    pub tokens_per_s_per_gpu: Option<f64>,
    pub mfu: Option<f64>,
    pub algbw_gbps: Option<f64>,
    pub busbw_gbps: Option<f64>,
    pub peak_memory_bytes: Option<u64>,
    pub flows: Option<u64>,
    pub fct_mean: Option<Ps>,
    pub fct_p50: Option<Ps>,
    pub fct_p99: Option<Ps>,
    pub fct_max: Option<Ps>,
    pub fct_slowdown_p50: Option<Micro>,
    pub fct_slowdown_p99: Option<Micro>,
    /// Packet-hops of the experiment, simulated or skipped.
    pub packet_hops: Option<u64>,
    /// Marks that switch ports put on data packets.
    pub ecn_marks: Option<u64>,
    /// Pause frames received.
    pub pfc_pauses: Option<u64>,
    pub drops: Option<u64>,
    /// Data packets that were sent again.
    pub retransmissions: Option<u64>,
    pub max_queue_bytes: Option<u64>,
    pub max_link_utilisation: Option<Micro>,
    /// The link with that utilisation, as `links.csv` names it.
    pub bottleneck_link: Option<String>,
    /// Algorithm of the collective that takes longest, in the words of `workload.algorithm`; then its protocol and channels.
    pub algorithm: Option<String>,
    pub protocol: Option<String>,
    pub channels: Option<u64>,
    /// Error of the nearest validated class of results, as text, or `not validated`; then the name of that class.
    pub validated_error: Option<String>,
    pub validated_class: Option<String>,
    /// Mean of that class's absolute relative errors; then their 90th percentile, and the class's number of measured rows.
    pub validated_mean_error: Option<f64>,
    pub validated_p90_error: Option<f64>,
    pub validated_rows: Option<u64>,
    /// Purchase price of the cluster.
    pub cost_usd: Option<f64>,
    /// Power of the cluster at full load.
    pub power_kw: Option<f64>,
    /// Price of the cluster over its life and of its energy, per million tokens.
    pub usd_per_mtoken: Option<f64>,
    /// Results of a cluster over days.
    pub cluster: Option<Box<ClusterRecord>>,
    /// Results of inference.
    pub serving: Option<Box<ServingRecord>>,
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
        ExperimentRecord {
            exp_id,
            config_key,
            exp_key,
            replica,
            seed,
            axis_values,
            status: Status::Ok,
            error: String::new(),
            machine_limit: false,
            makespan: None,
            iteration_time: None,
            compute: None,
            comm_exposed_tp: None,
            comm_exposed_pp: None,
            comm_exposed_dp: None,
            comm_exposed_ep: None,
            comm_exposed_cp: None,
            bubble: None,
            optimizer: None,
            other: None,
            critical_rank: None,
            tokens_per_s: None,
            tokens_per_s_per_gpu: None,
            mfu: None,
            algbw_gbps: None,
            busbw_gbps: None,
            peak_memory_bytes: None,
            flows: None,
            fct_mean: None,
            fct_p50: None,
            fct_p99: None,
            fct_max: None,
            fct_slowdown_p50: None,
            fct_slowdown_p99: None,
            packet_hops: None,
            ecn_marks: None,
            pfc_pauses: None,
            drops: None,
            retransmissions: None,
            max_queue_bytes: None,
            max_link_utilisation: None,
            bottleneck_link: None,
            algorithm: None,
            protocol: None,
            channels: None,
            validated_error: None,
            validated_class: None,
            validated_mean_error: None,
            validated_p90_error: None,
            validated_rows: None,
            cost_usd: None,
            power_kw: None,
            usd_per_mtoken: None,
            cluster: None,
            serving: None,
        }
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

/// A column of `results.csv` that is no axis.
pub struct RecordColumn {
    pub name: &'static str,
    pub kind: ColumnKind,
    /// Whether every experiment has a value in it.
    pub required: bool,
    pub cell: fn(&ExperimentRecord) -> Cell,
}

const fn required(name: &'static str, kind: ColumnKind, cell: fn(&ExperimentRecord) -> Cell) -> RecordColumn {
    RecordColumn { name, kind, required: true, cell }
}

const fn optional(name: &'static str, kind: ColumnKind, cell: fn(&ExperimentRecord) -> Cell) -> RecordColumn {
    RecordColumn { name, kind, required: false, cell }
}

/// The columns before the axes.
pub const IDENTITY: &[RecordColumn] = &[
    required("exp_id", ColumnKind::Unsigned, |r| r.exp_id.into()),
    required("config_key", ColumnKind::Text, |r| r.config_key.as_str().into()),
    required("exp_key", ColumnKind::Text, |r| r.exp_key.as_str().into()),
    required("replica", ColumnKind::Unsigned, |r| r.replica.into()),
    required("seed", ColumnKind::Unsigned, |r| r.seed.into()),
];

/// The columns after the axes.
pub const OUTCOME: &[RecordColumn] = &[
    required("status", ColumnKind::Text, |r| r.status.as_str().into()),
    optional("error", ColumnKind::Text, |r| (!r.error.is_empty()).then_some(r.error.as_str()).into()),
    optional("makespan_ns", ColumnKind::Real, |r| r.makespan.into()),
    optional("iteration_time_ns", ColumnKind::Real, |r| r.iteration_time.into()),
    optional("compute_ns", ColumnKind::Real, |r| r.compute.into()),
    optional("comm_exposed_tp_ns", ColumnKind::Real, |r| r.comm_exposed_tp.into()),
    optional("comm_exposed_pp_ns", ColumnKind::Real, |r| r.comm_exposed_pp.into()),
    optional("comm_exposed_dp_ns", ColumnKind::Real, |r| r.comm_exposed_dp.into()),
    optional("comm_exposed_ep_ns", ColumnKind::Real, |r| r.comm_exposed_ep.into()),
    optional("comm_exposed_cp_ns", ColumnKind::Real, |r| r.comm_exposed_cp.into()),
    optional("bubble_ns", ColumnKind::Real, |r| r.bubble.into()),
    optional("optimizer_ns", ColumnKind::Real, |r| r.optimizer.into()),
    optional("other_ns", ColumnKind::Real, |r| r.other.into()),
    optional("critical_rank", ColumnKind::Unsigned, |r| r.critical_rank.into()),
    optional("tokens_per_s", ColumnKind::Real, |r| r.tokens_per_s.into()),
    optional("tokens_per_s_per_gpu", ColumnKind::Real, |r| r.tokens_per_s_per_gpu.into()),
    optional("mfu", ColumnKind::Real, |r| r.mfu.into()),
    optional("algbw_gbps", ColumnKind::Real, |r| r.algbw_gbps.into()),
    optional("busbw_gbps", ColumnKind::Real, |r| r.busbw_gbps.into()),
    optional("peak_memory_bytes", ColumnKind::Unsigned, |r| r.peak_memory_bytes.into()),
    optional("flows", ColumnKind::Unsigned, |r| r.flows.into()),
    optional("fct_mean_ns", ColumnKind::Real, |r| r.fct_mean.into()),
    optional("fct_p50_ns", ColumnKind::Real, |r| r.fct_p50.into()),
    optional("fct_p99_ns", ColumnKind::Real, |r| r.fct_p99.into()),
    optional("fct_max_ns", ColumnKind::Real, |r| r.fct_max.into()),
    optional("fct_slowdown_p50", ColumnKind::Real, |r| r.fct_slowdown_p50.into()),
    optional("fct_slowdown_p99", ColumnKind::Real, |r| r.fct_slowdown_p99.into()),
    optional("packet_hops", ColumnKind::Unsigned, |r| r.packet_hops.into()),
    optional("ecn_marks", ColumnKind::Unsigned, |r| r.ecn_marks.into()),
    optional("pfc_pauses", ColumnKind::Unsigned, |r| r.pfc_pauses.into()),
    optional("drops", ColumnKind::Unsigned, |r| r.drops.into()),
    optional("retransmissions", ColumnKind::Unsigned, |r| r.retransmissions.into()),
    optional("max_queue_bytes", ColumnKind::Unsigned, |r| r.max_queue_bytes.into()),
    optional("max_link_utilisation", ColumnKind::Real, |r| r.max_link_utilisation.into()),
    optional("bottleneck_link", ColumnKind::Text, |r| r.bottleneck_link.as_deref().into()),
    optional("algorithm", ColumnKind::Text, |r| r.algorithm.as_deref().into()),
    optional("protocol", ColumnKind::Text, |r| r.protocol.as_deref().into()),
    optional("channels", ColumnKind::Unsigned, |r| r.channels.into()),
    optional("validated_error", ColumnKind::Text, |r| r.validated_error.as_deref().into()),
    optional("validated_class", ColumnKind::Text, |r| r.validated_class.as_deref().into()),
    optional("validated_mean_error", ColumnKind::Real, |r| r.validated_mean_error.into()),
    optional("validated_p90_error", ColumnKind::Real, |r| r.validated_p90_error.into()),
    optional("validated_rows", ColumnKind::Unsigned, |r| r.validated_rows.into()),
    optional("cost_usd", ColumnKind::Real, |r| r.cost_usd.into()),
    optional("power_kw", ColumnKind::Real, |r| r.power_kw.into()),
    optional("usd_per_mtoken", ColumnKind::Real, |r| r.usd_per_mtoken.into()),
];

/// The columns after `OUTCOME`, in sweeps with a cluster over days.
pub const CLUSTER: &[RecordColumn] = &[
    optional("cluster_hours", ColumnKind::Real, |r| cluster_cell(r, |c| (c.span_ms as f64 / 3.6e6).into())),
    optional("jobs", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.jobs.into())),
    optional("jobs_done", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.jobs_done.into())),
    optional("jobs_given_up", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.jobs_given_up.into())),
    optional("utilisation", ColumnKind::Real, |r| cluster_cell(r, |c| c.utilisation.into())),
    optional("goodput", ColumnKind::Real, |r| cluster_cell(r, |c| c.goodput.into())),
    optional("idle_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.idle_share.into())),
    optional("stranded_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.stranded_share.into())),
    optional("slowdown_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.slowdown_share.into())),
    optional("checkpoint_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.checkpoint_share.into())),
    optional("restart_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.restart_share.into())),
    optional("rollback_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.rollback_share.into())),
    optional("down_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.down_share.into())),
    optional("drained_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.drained_share.into())),
    optional("spare_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.spare_share.into())),
    optional("waiting_mean_s", ColumnKind::Real, |r| {
        cluster_cell(r, |c| c.waiting_mean_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("waiting_p50_s", ColumnKind::Real, |r| {
        cluster_cell(r, |c| c.waiting_p50_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("waiting_p99_s", ColumnKind::Real, |r| {
        cluster_cell(r, |c| c.waiting_p99_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("turnaround_mean_s", ColumnKind::Real, |r| {
        cluster_cell(r, |c| c.turnaround_mean_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("turnaround_p99_s", ColumnKind::Real, |r| {
        cluster_cell(r, |c| c.turnaround_p99_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("fairness", ColumnKind::Real, |r| cluster_cell(r, |c| c.fairness.into())),
    optional("failures", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.failures.into())),
    optional("restarts", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.restarts.into())),
    optional("preemptions", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.preemptions.into())),
    optional("migrations", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.migrations.into())),
    optional("drains", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.drains.into())),
    optional("useful_gpu_hours", ColumnKind::Real, |r| cluster_cell(r, |c| c.useful_gpu_hours.into())),
    optional("usd_per_useful_gpu_hour", ColumnKind::Real, |r| cluster_cell(r, |c| c.usd_per_useful_gpu_hour.into())),
    optional("shrinks", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.shrinks.into())),
    optional("grows", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.grows.into())),
    optional("write_slowdown", ColumnKind::Real, |r| cluster_cell(r, |c| c.write_slowdown.into())),
    optional("company_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.company_share.into())),
];

fn cluster_cell(record: &ExperimentRecord, cell: fn(&ClusterRecord) -> Cell) -> Cell {
    record.cluster.as_deref().map_or(Cell::Empty, cell)
}

/// The columns after `CLUSTER`, in sweeps with simulated iterations.
pub const ITERATIONS: &[RecordColumn] = &[
    optional("iteration_sets", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.iteration_sets.into())),
    optional("iteration_sets_asked", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.iteration_sets_asked.into())),
    optional("iteration_set_most_jobs", ColumnKind::Unsigned, |r| {
        cluster_cell(r, |c| c.iteration_set_most_jobs.into())
    }),
    optional("iteration_audits", ColumnKind::Unsigned, |r| cluster_cell(r, |c| c.iteration_audits.into())),
    optional("iteration_error_mean", ColumnKind::Real, |r| cluster_cell(r, |c| c.iteration_error_mean.into())),
    optional("iteration_error_max", ColumnKind::Real, |r| cluster_cell(r, |c| c.iteration_error_max.into())),
    optional("samples_per_s", ColumnKind::Real, |r| cluster_cell(r, |c| c.samples_per_s.into())),
    optional("beside_writes_share", ColumnKind::Real, |r| cluster_cell(r, |c| c.beside_writes_share.into())),
];

/// The last columns, in sweeps with inference.
pub const SERVING: &[RecordColumn] = &[
    optional("requests", ColumnKind::Unsigned, |r| serving_cell(r, |s| s.requests.into())),
    optional("requests_done", ColumnKind::Unsigned, |r| serving_cell(r, |s| s.requests_done.into())),
    optional("ttft_mean_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.ttft.mean.into())),
    optional("ttft_p50_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.ttft.p50.into())),
    optional("ttft_p99_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.ttft.p99.into())),
    optional("tpot_mean_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.tpot.mean.into())),
    optional("tpot_p50_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.tpot.p50.into())),
    optional("tpot_p99_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.tpot.p99.into())),
    optional("e2e_mean_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.e2e.mean.into())),
    optional("e2e_p50_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.e2e.p50.into())),
    optional("e2e_p99_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.e2e.p99.into())),
    optional("queue_mean_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.queue.mean.into())),
    optional("queue_p50_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.queue.p50.into())),
    optional("queue_p99_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.queue.p99.into())),
    optional("kv_transfer_mean_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.kv_transfer.mean.into())),
    optional("kv_transfer_p50_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.kv_transfer.p50.into())),
    optional("kv_transfer_p99_ns", ColumnKind::Real, |r| serving_cell(r, |s| s.kv_transfer.p99.into())),
    optional("kv_transfer_bytes", ColumnKind::Unsigned, |r| serving_cell(r, |s| s.kv_transfer_bytes.into())),
    optional("requests_per_s", ColumnKind::Real, |r| serving_cell(r, |s| s.requests_per_s.into())),
    optional("output_tokens_per_s", ColumnKind::Real, |r| serving_cell(r, |s| s.output_tokens_per_s.into())),
    optional("goodput_rps", ColumnKind::Real, |r| serving_cell(r, |s| s.goodput_rps.into())),
    optional("within_bounds", ColumnKind::Real, |r| serving_cell(r, |s| s.within_bounds.into())),
    optional("steps", ColumnKind::Unsigned, |r| serving_cell(r, |s| s.steps.into())),
    optional("sequences_per_step", ColumnKind::Real, |r| serving_cell(r, |s| s.sequences_per_step.into())),
    optional("kv_capacity_tokens", ColumnKind::Unsigned, |r| serving_cell(r, |s| s.kv_capacity_tokens.into())),
    optional("kv_use_mean", ColumnKind::Real, |r| serving_cell(r, |s| s.kv_use_mean.into())),
    optional("kv_use_peak", ColumnKind::Real, |r| serving_cell(r, |s| s.kv_use_peak.into())),
    optional("kv_blocked_share", ColumnKind::Real, |r| serving_cell(r, |s| s.kv_blocked_share.into())),
    optional("compute_bound_share", ColumnKind::Real, |r| serving_cell(r, |s| s.compute_bound_share.into())),
    optional("memory_bound_share", ColumnKind::Real, |r| serving_cell(r, |s| s.memory_bound_share.into())),
    optional("launch_share", ColumnKind::Real, |r| serving_cell(r, |s| s.launch_share.into())),
    optional("network_share", ColumnKind::Real, |r| serving_cell(r, |s| s.network_share.into())),
    optional("unused_share", ColumnKind::Real, |r| serving_cell(r, |s| s.unused_share.into())),
    optional("limited_by", ColumnKind::Text, |r| serving_cell(r, |s| s.limited_by.as_str().into())),
];

fn serving_cell(record: &ExperimentRecord, cell: fn(&ServingRecord) -> Cell) -> Cell {
    record.serving.as_deref().map_or(Cell::Empty, cell)
}

/// Returns the columns after the axes, with those of clusters and of inference if `sets` has them.
pub fn outcome_columns(sets: ColumnSets) -> impl Iterator<Item = &'static RecordColumn> {
    let plain = if sets.cluster >= ClusterColumns::Plain { CLUSTER } else { &[] };
    let measured = if sets.cluster >= ClusterColumns::WithIterations { ITERATIONS } else { &[] };
    let serving = if sets.serving { SERVING } else { &[] };
    OUTCOME.iter().chain(plain).chain(measured).chain(serving)
}

/// One row of `flows.csv`; the writer adds the experiment's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Number of the flow: for a flow file, from 0 in file order.
    pub flow_id: u32,
    /// Source: the host id of the file, or a GPU rank.
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    pub start: Ps,
    /// Time from start to the last ACK at the sender; `None` if unfinished.
    pub fct: Option<Ps>,
}

/// One row of `links.csv`: one direction of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// Name from the link's nodes, `host12->leaf3`; `host12->leaf3#k` for the k-th of parallel links (from 1).
    pub link: String,
    /// Wire bytes put on the link, pause frames included.
    pub bytes: u64,
    /// Share of the link's rate from 0 to the makespan.
    pub utilisation: Micro,
    /// Counts of packets; `None` if no packets were simulated.
    pub packets: Option<LinkPackets>,
}

/// Counts of packets at a link's transmitting end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPackets {
    pub max_queue_bytes: u64,
    /// Mean over time, from 0 to the makespan.
    pub mean_queue_bytes: Micro,
    pub ecn_marks: u64,
    /// Pause frames that arrived.
    pub pfc_pauses: u64,
    pub drops: u64,
}

/// One row of `rtt.csv`: a round-trip time that a sender measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRecord {
    pub flow_id: u32,
    pub sample: Ps,
    pub rtt: Ps,
}

/// The evaluation of a candidate in a search (`method = "optimize"`) at one level of detail. Only the journal has it, so that a resumed search does not
/// evaluate again.
#[derive(Clone, Debug, PartialEq)]
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

/// One row of `stats.csv`: how the result was computed. Not part of the deterministic files.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StatsRecord {
    pub packet_hops_simulated: u64,
    pub packet_hops_skipped: u64,
    pub memo_hits: u64,
    pub memo_misses: u64,
    pub steady_skips: u64,
    /// Batches that the experiment was part of (more than one if it was run again unfolded).
    pub batches: u64,
    pub wall_s: f64,
    /// Relative error of flow completion times, if there was an audit.
    pub audit_fct_error: Option<f64>,
    /// Estimated relative error of times due to skipped steady phases; `None` if none was skipped.
    pub steady_error: Option<f64>,
    /// Statistics of folding; all 0 if nothing was folded.
    pub folding: FoldingRecord,
}

impl StatsRecord {
    /// Relative error that times of the whole experiment may have due to skips: smaller differences mean nothing. Audits of carried rates do not count: they
    /// are of single messages, which wait for each other and may be late by many times their own length.
    pub fn times_error(&self) -> Option<f64> {
        let audited = self.audit_fct_error.filter(|_| self.folding.carried_skips == 0);
        [self.steady_error, audited].into_iter().flatten().reduce(f64::max)
    }
}

/// The columns of `stats.csv` about folding.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FoldingRecord {
    /// Episodes (lifetimes of partitions that began idle) that were looked up.
    pub episodes: u64,
    /// Episodes of these that were known.
    pub episodes_known: u64,
    /// Snapshots of partitions that were looked up at checkpoints.
    pub snapshots: u64,
    /// Snapshots of these that were known.
    pub snapshots_known: u64,
    /// Partitions that were formed.
    pub partitions: u64,
    /// Most partitions at once.
    pub partitions_max: u64,
    /// Mean number of partitions over model time.
    pub partitions_mean: f64,
    /// Bytes in the memo, which the experiments of a run share, at the end of this one.
    pub memo_bytes: u64,
    /// Packet-hops that steady partitions skipped.
    pub hops_steady: u64,
    /// Mean number of partitions that were being skipped, over model time.
    pub skipped_mean: f64,
    /// Number of times that congestion control's state between messages was rounded, or telemetry counted from another start.
    pub rounded: u64,
    /// Switches whose ports were processed together because a pause or a drop was near.
    pub switches_coupled: u64,
    /// Number of times that the experiment started over, folded, to couple more switches.
    pub couplings: u64,
    /// Skips that carried measured rates on where flows collide.
    pub carried_skips: u64,
    /// Mean relative error of the sum of rates over these skips, by what the rates changed.
    pub carried_drift: f64,
    /// Copies that went on for a while without carrying rates, as audits.
    pub carried_audits: u64,
    /// Relative error of the mean time of messages according to these copies.
    pub carried_messages_error: f64,
    /// Number of times that a pause was near and left out.
    pub pauses_left_out: u64,
    /// 1 if the experiment started over without skips, because they left out too little, might have missed a pause, or may have changed the makespan by more than 1 %.
    pub exact_instead: u64,
    /// Skips that were audited, that is, also simulated.
    pub audited: u64,
    /// Packet-hops of audits (not counted as simulated).
    pub audit_hops: u64,
    /// Messages compared in audits.
    pub audit_messages: u64,
    /// Largest relative error of a completion time in audits.
    pub audit_fct_error_max: f64,
    /// Share of messages in audits that are off by more than 1 %.
    pub audit_above_1pct: f64,
    /// Violations of Wormhole's Theorem 2 in audits.
    pub theorem2_violations: u64,
    /// Violations of Wormhole's Theorem 3 in audits.
    pub theorem3_violations: u64,
    /// Seconds of simulating partitions, estimated from samples.
    pub simulating_s: f64,
    /// Seconds of looking partitions up, estimated from samples.
    pub looking_up_s: f64,
    /// Seconds of checkpoints, which write and look up snapshots, estimated from samples.
    pub checkpointing_s: f64,
    /// Seconds of audits, estimated from samples.
    pub auditing_s: f64,
}

/// Everything that is written about one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub record: ExperimentRecord,
    /// Rows of `flows.csv`; ignored unless the sweep asks for the file. The same holds for the next two.
    pub flows: Vec<FlowRecord>,
    pub links: Vec<LinkRecord>,
    pub rtt: Vec<RttRecord>,
    /// Rows of several jobs, in their order.
    pub jobs: Vec<JobRecord>,
    /// Rows of links that jobs share, by link, then by job, if the sweep asks for them.
    pub shared_links: Vec<SharedLinkRecord>,
    /// For a cluster over days: its state at regular times; then its jobs, if the sweep asks for them.
    pub cluster_timeline: Vec<ClusterSampleRecord>,
    pub cluster_jobs: Vec<ClusterJobRecord>,
    /// For a cluster over days: rows of slowed jobs if iterations are simulated; then rows of groups of servers, if the sweep asks for them.
    pub cluster_congestion: Vec<ClusterCongestionRecord>,
    pub cluster_map: Vec<ClusterMapRecord>,
    /// Rows of inference requests, if the sweep asks for them.
    pub requests: Vec<RequestRecord>,
    pub stats: StatsRecord,
}

impl Finished {
    /// Creates an experiment that has only its row and statistics.
    pub fn without_rows(record: ExperimentRecord, stats: StatsRecord) -> Finished {
        Finished {
            record,
            flows: Vec::new(),
            links: Vec::new(),
            rtt: Vec::new(),
            jobs: Vec::new(),
            shared_links: Vec::new(),
            cluster_timeline: Vec::new(),
            cluster_jobs: Vec::new(),
            cluster_congestion: Vec::new(),
            cluster_map: Vec::new(),
            requests: Vec::new(),
            stats,
        }
    }
}
