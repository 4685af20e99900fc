//! Simulation of a cluster over days to months: jobs arrive, wait, run, are interrupted and end.
//!
//! A job here has GPUs, a duration, and a factor by which its placement and other jobs slow it down. Packets are sent only in the few iterations from
//! which such factors come. Time is whole milliseconds. Draws use counted streams and no function that platforms round differently.
//!
//! | file or folder | holds |
//! |---|---|
//! | `machine`, `servers`, `failing_parts` | racks and prices, which GPUs are free, what fails |
//! | `jobs` | jobs, read or drawn; their work, checkpoints and speed |
//! | `scheduling` | which jobs start now: the scheduling pass, quotas, defragmentation, GPUs given back |
//! | `queue_order`, `placement`, `failure` | policies: one file for each, and a registry |
//! | `registered` | policies of the program that uses the library |
//! | `iterations` | speeds of jobs beside each other, by simulating their iterations |
//! | `state`, `event`, `failures_and_repairs`, `storage`, `stop_check`, `simulate` | the simulation |
//! | `reports` | use of GPU time, history, congestion, outcomes |
//! | `fixed_point` | logarithms and powers in fixed point, for draws |
//! | `error` | errors |
//!
//! It prints nothing and writes no file. Start with `simulate.rs`; a policy is a file of its folder and a line of `hyperfold_base::registries`.

#![forbid(unsafe_code)]

mod error;
mod event;
mod failing_parts;
mod failure;
mod failures_and_repairs;
mod fixed_point;
mod iterations;
mod jobs;
mod machine;
mod placement;
mod queue_order;
mod registered;
mod reports;
mod scheduling;
mod servers;
mod simulate;
mod state;
mod stop_check;
mod storage;

pub use error::ClusterError;
pub use failure::{FAILURE_MODELS, FailureModel};
pub use iterations::{IterationSummary, SlowestMoment};
pub use jobs::job::{BYTES_A_JOB, ClusterJob};
pub use placement::{PLACEMENTS, Placement, Request};
pub use queue_order::{Behind, QueueKey, SCHEDULERS, Scheduler};
pub use registered::{register_failure_model, register_placement, register_scheduler};
pub use reports::account::{Account, UnheldGpus};
pub use reports::history::{ActivityTime, ClusterHistory, JobActivity, ServerActivity};
pub use reports::map::{ClusterMapBin, ServerGroupUse};
pub use reports::outcome::{
    ClusterCongestion, ClusterJobOutcome, ClusterJobSpeed, ClusterMapRow, ClusterOutcome, ClusterSample, Distribution,
};
pub use servers::{GpuShare, ServerUse, Servers};
pub use simulate::{IterationForecast, PreparedCluster};
pub use state::JobPhase;
