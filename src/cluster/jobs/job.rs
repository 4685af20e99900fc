//! A job of a cluster, as it was submitted.
//!
//! Layer: cluster. Plain data; `state` holds what becomes of it.

use std::sync::Arc;

use hyperfold_base::budget;

/// Estimate of the host memory of a job while it waits, runs and is written, in bytes (measured).
pub const BYTES_A_JOB: u64 = 1024;

/// Stops at once if `n` jobs cannot fit in memory.
pub(crate) fn announce_jobs(n: u64) {
    budget::announce("jobs", n.saturating_mul(BYTES_A_JOB));
}

/// A job as it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterJob {
    /// Name of the job.
    pub name: Arc<str>,
    /// User who submits it.
    pub user: Arc<str>,
    /// Time of its arrival, in ms.
    pub submit_ms: u64,
    /// GPUs that it asks for.
    pub gpus: u32,
    /// Time that its work takes on all of its GPUs in one rack, without checkpoints, in ms.
    pub duration_ms: u64,
    /// Duration that the scheduler believes, in ms.
    pub estimate_ms: u64,
    /// Priority: a higher number is more important.
    pub priority: u32,
    /// Smallest number of GPUs with which it runs.
    pub min_gpus: u32,
    /// Share of its time that is communication, in millionths.
    pub comm_share_ppm: u64,
    /// Time of an iteration in which it does not wait for the network, in ps. Used if iterations are simulated.
    pub compute_ps: u64,
    /// Bytes that its servers all-reduce in an iteration. Used if iterations are simulated.
    pub comm_bytes: u64,
    /// Index of the class whose program it runs; `compute_ps` and `comm_bytes` are not used then. Used if iterations are simulated.
    pub class: Option<u32>,
    /// Number of its iterations, if its duration is the time that these take. Only for jobs of a class.
    pub iterations: Option<u64>,
}
