//! Scheduler: shortest job first, by the estimates of durations. Long and large jobs may wait for ever.
//!
//! Layer: cluster.

use super::{Behind, QueueKey, Scheduler};
use crate::jobs::job::ClusterJob;

/// Scheduler `scheduler.policy = "sjf"`.
pub(super) struct ShortestFirst;

impl Scheduler for ShortestFirst {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        [job.estimate_ms, job.submit_ms]
    }

    fn behind(&self) -> Behind {
        Behind::Overtakes
    }
}
