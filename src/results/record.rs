//! The records of a run, and the columns of `results.csv`, declared once.
//!
//! Layer: results. Plain data: what fills them is above or beside; what writes them is [`super::rows`] and [`super::parquet_file`].

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
    /// As the `status` column shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Oom => "oom",
            Status::Failed => "failed",
        }
    }
}

/// One row of `results.csv`. What does not apply is `None` and shown empty.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentRecord {
    /// Index in the sweep after constraints, before `--limit` and `--shard`.
    pub exp_id: u64,
    /// Shared by the replicas of one configuration.
    pub config_key: String,
    pub exp_key: String,
    pub replica: u32,
    pub seed: u64,
    /// One value an axis, in the order of the axes the writer was given.
    pub axis_values: Vec<Cell>,
    pub status: Status,
    /// Why it failed, or what of it does not fit; empty otherwise.
    pub error: String,
    /// Whether the machine ended it, not the model: `limits.wall_s` was reached, or there was too little memory. A resumed run tries it again.
    pub machine_limit: bool,
    /// From 0 to the last completion.
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
    /// The rank whose timeline the parts of an iteration are of: the last to end, of several the lowest.
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
    /// Packet-hops represented, simulated or skipped.
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
    /// The link of that utilisation, as `links.csv` names it.
    pub bottleneck_link: Option<String>,
    /// Algorithm, protocol and channels of the collective that takes longest, in the words of `workload.algorithm` and `workload.protocol`.
    pub algorithm: Option<String>,
    pub protocol: Option<String>,
    pub channels: Option<u64>,
    /// How far results of the nearest class were off measured machines, or `not validated`; and that class.
    pub validated_error: Option<String>,
    pub validated_class: Option<String>,
    /// Mean and 90th percentile of that class's absolute errors, relative, and its number of measured rows.
    pub validated_mean_error: Option<f64>,
    pub validated_p90_error: Option<f64>,
    pub validated_rows: Option<u64>,
    /// Purchase price of the cluster.
    pub cost_usd: Option<f64>,
    /// What the cluster draws at full load.
    pub power_kw: Option<f64>,
    /// Price of the cluster over its life and of its energy, a million tokens.
    pub usd_per_mtoken: Option<f64>,
    /// Of a cluster over days.
    pub cluster: Option<Box<ClusterRecord>>,
    /// Of inference.
    pub serving: Option<Box<ServingRecord>>,
}

impl ExperimentRecord {
    /// A record of an experiment that has only its identity so far: status ok, everything measured empty.
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

    /// The same, failed for this reason.
    pub fn failed(self, error: impl AsRef<str>) -> Self {
        ExperimentRecord { status: Status::Failed, error: one_line(error.as_ref()), ..self }
    }

    /// The same, failed because the machine gave it no more time (`limits.wall_s`) or memory.
    pub fn reached_machine_limit(self, error: impl AsRef<str>) -> Self {
        ExperimentRecord { machine_limit: true, ..self.failed(error) }
    }

    /// The same, which does not fit a GPU: what its fullest rank needs, and the breakdown in words.
    pub fn oom(self, peak_bytes: u64, breakdown: impl AsRef<str>) -> Self {
        ExperimentRecord {
            status: Status::Oom,
            error: one_line(breakdown.as_ref()),
            peak_memory_bytes: Some(peak_bytes),
            ..self
        }
    }
}

/// The lines of a text as one, so that a row of a result file stays one line.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    lines.join("; ")
}

/// A column of `results.csv` that is no axis.
pub struct RecordColumn {
    pub name: &'static str,
    pub kind: ColumnKind,
    /// Whether every experiment has it.
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

/// The columns after those, in sweeps with a cluster over days.
pub const CLUSTER: &[RecordColumn] = &[
    optional("cluster_hours", ColumnKind::Real, |r| of_cluster(r, |c| (c.span_ms as f64 / 3.6e6).into())),
    optional("jobs", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.jobs.into())),
    optional("jobs_done", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.jobs_done.into())),
    optional("jobs_given_up", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.jobs_given_up.into())),
    optional("utilisation", ColumnKind::Real, |r| of_cluster(r, |c| c.utilisation.into())),
    optional("goodput", ColumnKind::Real, |r| of_cluster(r, |c| c.goodput.into())),
    optional("idle_share", ColumnKind::Real, |r| of_cluster(r, |c| c.idle_share.into())),
    optional("stranded_share", ColumnKind::Real, |r| of_cluster(r, |c| c.stranded_share.into())),
    optional("slowdown_share", ColumnKind::Real, |r| of_cluster(r, |c| c.slowdown_share.into())),
    optional("checkpoint_share", ColumnKind::Real, |r| of_cluster(r, |c| c.checkpoint_share.into())),
    optional("restart_share", ColumnKind::Real, |r| of_cluster(r, |c| c.restart_share.into())),
    optional("rollback_share", ColumnKind::Real, |r| of_cluster(r, |c| c.rollback_share.into())),
    optional("down_share", ColumnKind::Real, |r| of_cluster(r, |c| c.down_share.into())),
    optional("drained_share", ColumnKind::Real, |r| of_cluster(r, |c| c.drained_share.into())),
    optional("spare_share", ColumnKind::Real, |r| of_cluster(r, |c| c.spare_share.into())),
    optional("waiting_mean_s", ColumnKind::Real, |r| {
        of_cluster(r, |c| c.waiting_mean_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("waiting_p50_s", ColumnKind::Real, |r| {
        of_cluster(r, |c| c.waiting_p50_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("waiting_p99_s", ColumnKind::Real, |r| {
        of_cluster(r, |c| c.waiting_p99_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("turnaround_mean_s", ColumnKind::Real, |r| {
        of_cluster(r, |c| c.turnaround_mean_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("turnaround_p99_s", ColumnKind::Real, |r| {
        of_cluster(r, |c| c.turnaround_p99_ms.map(|ms| ms as f64 / 1e3).into())
    }),
    optional("fairness", ColumnKind::Real, |r| of_cluster(r, |c| c.fairness.into())),
    optional("failures", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.failures.into())),
    optional("restarts", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.restarts.into())),
    optional("preemptions", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.preemptions.into())),
    optional("migrations", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.migrations.into())),
    optional("drains", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.drains.into())),
    optional("useful_gpu_hours", ColumnKind::Real, |r| of_cluster(r, |c| c.useful_gpu_hours.into())),
    optional("usd_per_useful_gpu_hour", ColumnKind::Real, |r| of_cluster(r, |c| c.usd_per_useful_gpu_hour.into())),
    optional("shrinks", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.shrinks.into())),
    optional("grows", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.grows.into())),
    optional("write_slowdown", ColumnKind::Real, |r| of_cluster(r, |c| c.write_slowdown.into())),
    optional("company_share", ColumnKind::Real, |r| of_cluster(r, |c| c.company_share.into())),
];

fn of_cluster(record: &ExperimentRecord, cell: fn(&ClusterRecord) -> Cell) -> Cell {
    record.cluster.as_deref().map_or(Cell::Empty, cell)
}

/// The columns after those, in sweeps with simulated iterations.
pub const ITERATIONS: &[RecordColumn] = &[
    optional("iteration_sets", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.iteration_sets.into())),
    optional("iteration_sets_asked", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.iteration_sets_asked.into())),
    optional("iteration_set_most_jobs", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.iteration_set_most_jobs.into())),
    optional("iteration_audits", ColumnKind::Unsigned, |r| of_cluster(r, |c| c.iteration_audits.into())),
    optional("iteration_error_mean", ColumnKind::Real, |r| of_cluster(r, |c| c.iteration_error_mean.into())),
    optional("iteration_error_max", ColumnKind::Real, |r| of_cluster(r, |c| c.iteration_error_max.into())),
    optional("samples_per_s", ColumnKind::Real, |r| of_cluster(r, |c| c.samples_per_s.into())),
    optional("beside_writes_share", ColumnKind::Real, |r| of_cluster(r, |c| c.beside_writes_share.into())),
];

/// The columns after those, in sweeps with inference.
pub const SERVING: &[RecordColumn] = &[
    optional("requests", ColumnKind::Unsigned, |r| of_serving(r, |s| s.requests.into())),
    optional("requests_done", ColumnKind::Unsigned, |r| of_serving(r, |s| s.requests_done.into())),
    optional("ttft_mean_ns", ColumnKind::Real, |r| of_serving(r, |s| s.ttft.mean.into())),
    optional("ttft_p50_ns", ColumnKind::Real, |r| of_serving(r, |s| s.ttft.p50.into())),
    optional("ttft_p99_ns", ColumnKind::Real, |r| of_serving(r, |s| s.ttft.p99.into())),
    optional("tpot_mean_ns", ColumnKind::Real, |r| of_serving(r, |s| s.tpot.mean.into())),
    optional("tpot_p50_ns", ColumnKind::Real, |r| of_serving(r, |s| s.tpot.p50.into())),
    optional("tpot_p99_ns", ColumnKind::Real, |r| of_serving(r, |s| s.tpot.p99.into())),
    optional("e2e_mean_ns", ColumnKind::Real, |r| of_serving(r, |s| s.e2e.mean.into())),
    optional("e2e_p50_ns", ColumnKind::Real, |r| of_serving(r, |s| s.e2e.p50.into())),
    optional("e2e_p99_ns", ColumnKind::Real, |r| of_serving(r, |s| s.e2e.p99.into())),
    optional("queue_mean_ns", ColumnKind::Real, |r| of_serving(r, |s| s.queue.mean.into())),
    optional("queue_p50_ns", ColumnKind::Real, |r| of_serving(r, |s| s.queue.p50.into())),
    optional("queue_p99_ns", ColumnKind::Real, |r| of_serving(r, |s| s.queue.p99.into())),
    optional("kv_transfer_mean_ns", ColumnKind::Real, |r| of_serving(r, |s| s.kv_transfer.mean.into())),
    optional("kv_transfer_p50_ns", ColumnKind::Real, |r| of_serving(r, |s| s.kv_transfer.p50.into())),
    optional("kv_transfer_p99_ns", ColumnKind::Real, |r| of_serving(r, |s| s.kv_transfer.p99.into())),
    optional("kv_transfer_bytes", ColumnKind::Unsigned, |r| of_serving(r, |s| s.kv_transfer_bytes.into())),
    optional("requests_per_s", ColumnKind::Real, |r| of_serving(r, |s| s.requests_per_s.into())),
    optional("output_tokens_per_s", ColumnKind::Real, |r| of_serving(r, |s| s.output_tokens_per_s.into())),
    optional("goodput_rps", ColumnKind::Real, |r| of_serving(r, |s| s.goodput_rps.into())),
    optional("within_bounds", ColumnKind::Real, |r| of_serving(r, |s| s.within_bounds.into())),
    optional("steps", ColumnKind::Unsigned, |r| of_serving(r, |s| s.steps.into())),
    optional("sequences_per_step", ColumnKind::Real, |r| of_serving(r, |s| s.sequences_per_step.into())),
    optional("kv_capacity_tokens", ColumnKind::Unsigned, |r| of_serving(r, |s| s.kv_capacity_tokens.into())),
    optional("kv_use_mean", ColumnKind::Real, |r| of_serving(r, |s| s.kv_use_mean.into())),
    optional("kv_use_peak", ColumnKind::Real, |r| of_serving(r, |s| s.kv_use_peak.into())),
    optional("kv_blocked_share", ColumnKind::Real, |r| of_serving(r, |s| s.kv_blocked_share.into())),
    optional("compute_bound_share", ColumnKind::Real, |r| of_serving(r, |s| s.compute_bound_share.into())),
    optional("memory_bound_share", ColumnKind::Real, |r| of_serving(r, |s| s.memory_bound_share.into())),
    optional("launch_share", ColumnKind::Real, |r| of_serving(r, |s| s.launch_share.into())),
    optional("network_share", ColumnKind::Real, |r| of_serving(r, |s| s.network_share.into())),
    optional("unused_share", ColumnKind::Real, |r| of_serving(r, |s| s.unused_share.into())),
    optional("limited_by", ColumnKind::Text, |r| of_serving(r, |s| s.limited_by.as_str().into())),
];

fn of_serving(record: &ExperimentRecord, cell: fn(&ServingRecord) -> Cell) -> Cell {
    record.serving.as_deref().map_or(Cell::Empty, cell)
}

/// The columns after the axes: with or without those of clusters and of inference.
pub fn outcome_columns(sets: ColumnSets) -> impl Iterator<Item = &'static RecordColumn> {
    let plain = if sets.cluster >= ClusterColumns::Plain { CLUSTER } else { &[] };
    let measured = if sets.cluster >= ClusterColumns::WithIterations { ITERATIONS } else { &[] };
    let serving = if sets.serving { SERVING } else { &[] };
    OUTCOME.iter().chain(plain).chain(measured).chain(serving)
}

/// One row of `flows.csv`; the experiment's id is the writer's to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Counts the flows of a flow file from 0 in file order.
    pub flow_id: u32,
    /// The file's host ids, or GPU ranks.
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    pub start: Ps,
    /// From start to the last ACK at the sender; `None` if unfinished.
    pub fct: Option<Ps>,
}

/// One row of `links.csv`: one direction of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// `host12->leaf3`, the names of its nodes; `host12->leaf3#k` for the k-th of parallel links (from 1).
    pub link: String,
    /// Bytes put on the link, wire sizes, pause frames included.
    pub bytes: u64,
    /// Share of the link's rate from 0 to the makespan.
    pub utilisation: Micro,
    /// What packets came to there; `None` where none were simulated.
    pub packets: Option<LinkPackets>,
}

/// What packets came to at a link's transmitting end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPackets {
    pub max_queue_bytes: u64,
    /// Over time, from 0 to the makespan.
    pub mean_queue_bytes: Micro,
    pub ecn_marks: u64,
    /// Pause frames that arrived.
    pub pfc_pauses: u64,
    pub drops: u64,
}

/// One row of `rtt.csv`: a round-trip time that a sender saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRecord {
    pub flow_id: u32,
    pub sample: Ps,
    pub rtt: Ps,
}

/// What a search (`method = "optimize"`) found of a candidate at one level of detail. In no file but the journal, so that a search that goes on does not
/// look again.
#[derive(Clone, Debug, PartialEq)]
pub struct LookRecord {
    /// The level, by the search's number for it.
    pub level: u8,
    /// The candidate's first experiment.
    pub exp_id: u64,
    /// Simulated for it.
    pub packet_hops: u64,
    /// By objective, less being better; `None` where the level does not know it.
    pub values: Vec<Option<f64>>,
    /// Why there are no values.
    pub why: Option<String>,
}

/// One row of `stats.csv`: how the result came about. Not part of the deterministic files.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StatsRecord {
    pub packet_hops_simulated: u64,
    pub packet_hops_skipped: u64,
    pub memo_hits: u64,
    pub memo_misses: u64,
    pub steady_skips: u64,
    /// Batches that the experiment was part of (more than one if it was re-run unfolded).
    pub batches: u64,
    pub wall_s: f64,
    /// Relative error of the flow completion times, where an audit was made.
    pub audit_fct_error: Option<f64>,
    /// Estimate of how far times are off because steady phases were skipped, relative; none where none was.
    pub steady_error: Option<f64>,
    /// What folding did; all 0 where nothing was folded.
    pub folding: FoldingRecord,
}

impl StatsRecord {
    /// How far times of the whole experiment may be off because something was skipped, relative: differences below it say nothing.
    /// Audits of carried rates are of single messages, which wait for each other and may be many times their own length late; so they do not count.
    pub fn times_error(&self) -> Option<f64> {
        let audited = self.audit_fct_error.filter(|_| self.folding.carried_skips == 0);
        [self.steady_error, audited].into_iter().flatten().reduce(f64::max)
    }
}

/// The part of `stats.csv` that says what folding did.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FoldingRecord {
    /// Episodes, lifetimes of partitions that began idle, that were looked up; of these, known.
    pub episodes: u64,
    pub episodes_known: u64,
    /// Snapshots of partitions that were looked up at checkpoints; of these, known.
    pub snapshots: u64,
    pub snapshots_known: u64,
    /// Partitions that came to be, the most at once, and their mean number over model time.
    pub partitions: u64,
    pub partitions_max: u64,
    pub partitions_mean: f64,
    /// Bytes in the memo, which the experiments of a run share, by the end of this one.
    pub memo_bytes: u64,
    /// Packet-hops that steady partitions skipped; partitions that were being skipped, on average over model time.
    pub hops_steady: u64,
    pub skipped_mean: f64,
    /// Times that what congestion control carries from message to message was rounded, or telemetry counted from elsewhere.
    pub rounded: u64,
    /// Switches whose ports were processed together because a pause or a drop came within reach; how often the experiment
    /// started over, folded, to couple more.
    pub switches_coupled: u64,
    pub couplings: u64,
    /// Skips that carried measured rates on where flows collide; how far the sum of rates was off over them on average,
    /// by what it changed; how often a pause was within reach and left out.
    pub carried_skips: u64,
    pub carried_drift: f64,
    /// Copies that went on for a while without that; how far off the mean time of messages is by them.
    pub carried_audits: u64,
    pub carried_messages_error: f64,
    pub pauses_left_out: u64,
    /// 1: skips left out too little, might have missed a pause, or may have had the makespan off by more than 1 %. So the experiment started over without them.
    pub exact_instead: u64,
    /// Of the skips: how many were audited (also simulated), the packet-hops of that (not counted as simulated),
    /// messages compared, the largest relative error of a completion time, the share of messages off by more than 1 %,
    /// violations of Wormhole's Theorems 2 and 3.
    pub audited: u64,
    pub audit_hops: u64,
    pub audit_messages: u64,
    pub audit_fct_error_max: f64,
    pub audit_above_1pct: f64,
    pub theorem2_violations: u64,
    pub theorem3_violations: u64,
    /// Estimates from samples: seconds of simulating partitions and of looking them up; then of checkpoints, which write
    /// and look up snapshots, and of audits.
    pub simulating_s: f64,
    pub looking_up_s: f64,
    pub checkpointing_s: f64,
    pub auditing_s: f64,
}

/// All that is written of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub record: ExperimentRecord,
    /// Ignored unless the sweep asks for `flows.csv`; likewise the next two.
    pub flows: Vec<FlowRecord>,
    pub links: Vec<LinkRecord>,
    pub rtt: Vec<RttRecord>,
    /// Where the experiment has several, in their order.
    pub jobs: Vec<JobRecord>,
    /// Of these, where they are asked for: by link, then by job.
    pub shared_links: Vec<SharedLinkRecord>,
    /// Of a cluster over days: how it was at regular times, and its jobs where they are asked for.
    pub cluster_timeline: Vec<ClusterSampleRecord>,
    pub cluster_jobs: Vec<ClusterJobRecord>,
    /// Where iterations are simulated, and where it is asked for.
    pub cluster_congestion: Vec<ClusterCongestionRecord>,
    pub cluster_map: Vec<ClusterMapRecord>,
    /// Of inference, where they are asked for.
    pub requests: Vec<RequestRecord>,
    pub stats: StatsRecord,
}

impl Finished {
    /// An experiment that has nothing but its row.
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
