//! Scheduler: by priority, then by arrival, with EASY backfill. `scheduler.preempt` and `scheduler.low_delay_s` add preemption and a delay of low priorities.
//! Arcadia's description of MAST names these three: low priorities are delayed, starts are staggered, preemption is allowed.
//!
//! Layer: cluster.

use super::{Behind, QueueKey, Scheduler};
use crate::jobs::job::ClusterJob;

/// Scheduler `scheduler.policy = "priority"`.
pub(super) struct ByPriority;

impl Scheduler for ByPriority {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        [u64::from(u32::MAX - job.priority), job.submit_ms]
    }

    fn behind(&self) -> Behind {
        Behind::Backfills
    }
}
