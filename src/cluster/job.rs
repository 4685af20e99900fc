//! A job of a cluster: what it asks for.
//!
//! Layer: cluster. Plain data; what becomes of it is `state`'s.

use std::sync::Arc;

use crate::budget;

/// What a job takes while it waits, runs and is written, about (measured).
pub const BYTES_A_JOB: u64 = 1024;

/// Stops at once where so many jobs cannot fit.
pub(super) fn announce_jobs(n: u64) {
    budget::announce("jobs", n.saturating_mul(BYTES_A_JOB));
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterJob {
    pub name: Arc<str>,
    pub user: Arc<str>,
    pub submit_ms: u64,
    pub gpus: u32,
    /// Time that its work takes on all of its GPUs in one rack, without checkpoints.
    pub duration_ms: u64,
    /// What the scheduler believes of that.
    pub estimate_ms: u64,
    /// More is more important.
    pub priority: u32,
    /// With fewer GPUs it waits.
    pub min_gpus: u32,
    /// Share of its time in communication, millionths.
    pub comm_share_ppm: u64,
    /// Of an iteration, where iterations are simulated: time in which it does not wait for its network.
    pub compute_ps: u64,
    /// Likewise: what its servers all-reduce.
    pub comm_bytes: u64,
    /// Likewise: whose program it runs in place of both, by its place among the classes.
    pub class: Option<u32>,
    /// Of a class: its work in iterations, where its duration is what they take.
    pub iterations: Option<u64>,
}
