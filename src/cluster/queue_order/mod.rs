//! Schedulers: which job runs next.
//!
//! Layer: cluster. A scheduler is one file here that implements [`Scheduler`], and one line of the registry (`src/base/registries.rs`). It orders the queue
//! and says what may happen while the first job of the queue has to wait. Placing, preempting and reserving are the same for all schedulers (`scheduling::pass`). All of
//! them give a job its GPUs together or not at all (gang scheduling).
//!
//! An example that runs the largest job first:
//!
//! ```
//! use hyperfold_cluster::{Behind, ClusterJob, QueueKey, Scheduler};
//!
//! struct LargestFirst;
//!
//! impl Scheduler for LargestFirst {
//!     fn key(&self, job: &ClusterJob) -> QueueKey {
//!         [u64::from(u32::MAX - job.gpus), job.submit_ms]
//!     }
//!     fn behind(&self) -> Behind {
//!         Behind::Waits
//!     }
//! }
//!
//! let job = |gpus| ClusterJob { name: "a".into(), user: "u".into(), submit_ms: 0, gpus, duration_ms: 1, estimate_ms: 1, priority: 0, min_gpus: 1, comm_share_ppm: 0, compute_ps: 0, comm_bytes: 0, class: None, iterations: None };
//! assert!(LargestFirst.key(&job(8)) < LargestFirst.key(&job(4)));
//! ```

mod backfill;
mod fcfs;
mod priority;
mod sjf;

use crate::jobs::job::ClusterJob;
use hyperfold_base::{by_name, for_each_scheduler};

/// Sort key of a job in the queue. A smaller key is earlier; jobs with equal keys keep the order of their arrival.
pub type QueueKey = [u64; 2];

/// The jobs that may start while the first job of the queue has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// No job overtakes it.
    Waits,
    /// Jobs may start that do not delay the first job, by the estimates of durations (EASY backfill: Lifka 1995).
    Backfills,
    /// Any job that fits may start.
    Overtakes,
}

/// An order of the queue.
pub trait Scheduler: Send + Sync {
    /// Sort key of a job in the queue.
    fn key(&self, job: &ClusterJob) -> QueueKey;

    /// The jobs that may start behind one that has to wait.
    fn behind(&self) -> Behind;
}

/// All schedulers by name.
pub const SCHEDULERS: &[(&str, &dyn Scheduler)] = for_each_scheduler!(by_name);

/// The scheduler with this name.
pub(super) fn scheduler(name: &str) -> Option<&'static dyn Scheduler> {
    SCHEDULERS.iter().find(|(known, _)| *known == name).map(|(_, scheduler)| *scheduler)
}
