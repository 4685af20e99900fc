//! Results of inference: columns of `results.csv`, and the rows of `requests.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`]. Only sweeps with an experiment of `workload.kind = "inference"` have these columns.

use super::value::{Cell, Micro, Ps};

/// Mean and nearest-rank percentiles of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeStats {
    pub mean: Option<Ps>,
    pub p50: Option<Ps>,
    pub p99: Option<Ps>,
}

/// Results of inference. Shares are of the time of all stages of all instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingRecord {
    pub requests: u64,
    pub requests_done: u64,
    pub ttft: TimeStats,
    pub tpot: TimeStats,
    pub e2e: TimeStats,
    /// Times from arrival to the first step.
    pub queue: TimeStats,
    /// Times from the first token to keys and values on the ranks that decode.
    pub kv_transfer: TimeStats,
    pub kv_transfer_bytes: u64,
    pub requests_per_s: Micro,
    pub output_tokens_per_s: Micro,
    /// Requests per second that met both bounds.
    pub goodput_rps: Micro,
    pub within_bounds: Micro,
    pub steps: u64,
    pub sequences_per_step: Micro,
    /// Capacity of one instance of the pool that decodes.
    pub kv_capacity_tokens: u64,
    pub kv_use_mean: Micro,
    pub kv_use_peak: Micro,
    /// Share of the instances' time in which the first of a queue waits only for memory.
    pub kv_blocked_share: Micro,
    pub compute_bound_share: Micro,
    pub memory_bound_share: Micro,
    pub launch_share: Micro,
    pub network_share: Micro,
    pub unused_share: Micro,
    pub limited_by: String,
}

/// One row of `requests.csv`. Times count from the job's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRecord {
    pub job: Option<String>,
    pub request: u64,
    pub arrival: Ps,
    pub prompt_tokens: u64,
    pub output_tokens: u64,
    pub instance: u64,
    pub decode_instance: Option<u64>,
    pub queue: Option<Ps>,
    pub ttft: Option<Ps>,
    pub kv_transfer: Option<Ps>,
    pub tpot: Option<Ps>,
    pub e2e: Option<Ps>,
    pub within_bounds: bool,
}

/// A column of `requests.csv`: its name, and the cell of a row.
type Column = (&'static str, fn(&RequestRecord) -> Cell);

/// The columns of `requests.csv` after `exp_id`.
pub const REQUESTS: &[Column] = &[
    ("job", |r| r.job.as_deref().into()),
    ("request", |r| r.request.into()),
    ("arrival_ns", |r| r.arrival.into()),
    ("prompt_tokens", |r| r.prompt_tokens.into()),
    ("output_tokens", |r| r.output_tokens.into()),
    ("instance", |r| r.instance.into()),
    ("decode_instance", |r| r.decode_instance.into()),
    ("queue_ns", |r| r.queue.into()),
    ("ttft_ns", |r| r.ttft.into()),
    ("kv_transfer_ns", |r| r.kv_transfer.into()),
    ("tpot_ns", |r| r.tpot.into()),
    ("e2e_ns", |r| r.e2e.into()),
    ("within_bounds", |r| Cell::Flag(r.within_bounds)),
];
