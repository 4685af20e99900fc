//! Scheduler: first come, first served, with EASY backfill.
//!
//! Layer: cluster.

use super::{Behind, QueueKey, Scheduler};
use crate::jobs::job::ClusterJob;

/// Scheduler `scheduler.policy = "backfill"`.
pub(super) struct Backfill;

impl Scheduler for Backfill {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        [job.submit_ms, 0]
    }

    fn behind(&self) -> Behind {
        Behind::Backfills
    }
}
