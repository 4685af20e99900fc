//! Scheduler: first come, first served.
//!
//! Layer: cluster.

use super::{Behind, QueueKey, Scheduler};
use crate::jobs::job::ClusterJob;

/// Scheduler `scheduler.policy = "fcfs"`.
pub(super) struct FirstCome;

impl Scheduler for FirstCome {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        [job.submit_ms, 0]
    }

    fn behind(&self) -> Behind {
        Behind::Waits
    }
}
