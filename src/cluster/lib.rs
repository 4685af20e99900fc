//! Simulation of a cluster over days to months: jobs arrive, wait, run, are interrupted and end.
//!
//! Layer: cluster. It is above `host`, which builds its network. A job here has GPUs, a duration, and a factor by which its placement and other jobs slow it
//! down. Packets are sent only in the few iterations from which such factors come. Time is whole milliseconds. Draws use counted streams and no function that
//! platforms round differently.
//!
//! | file | holds |
//! |---|---|
//! | `machine`, `servers`, `part` | racks and prices, which GPUs are free, what fails |
//! | `job`, `trace`, `generate`, `quota` | jobs, read or drawn |
//! | `scheduler`, `placement`, `failure` | policies: one file for each, and a registry |
//! | `registered` | policies of the program that uses the library |
//! | `iterations` | speeds of jobs beside each other, by simulating their iterations |
//! | `progress`, `interval`, `storage`, `slowdown`, `account` | work, checkpoints and shared storage, speed, use of GPU time |
//! | `congestion`, `history`, `map`, `timeline` | reports over time |
//! | `state`, `event`, `pass`, `scratch`, `defragment`, `grow`, `breakage`, `stop_check`, `simulate` | the simulation |
//! | `outcome`, `error` | results and errors |

#![forbid(unsafe_code)]

mod account;
mod breakage;
mod congestion;
mod defragment;
mod error;
mod event;
mod failure;
mod fixed;
mod generate;
mod grow;
mod history;
mod interval;
mod iterations;
mod job;
mod machine;
mod map;
mod outcome;
mod part;
mod pass;
mod placement;
mod progress;
mod quota;
mod registered;
mod scheduler;
mod scratch;
mod servers;
mod simulate;
mod slowdown;
mod state;
mod stop_check;
mod storage;
mod timeline;
mod trace;

pub use account::{Account, UnheldGpus};
pub use error::ClusterError;
pub use failure::{FAILURE_MODELS, FailureModel};
pub use history::{ActivityTime, ClusterHistory, JobActivity, ServerActivity};
pub use iterations::{IterationSummary, SlowestMoment};
pub use job::{BYTES_A_JOB, ClusterJob};
pub use map::{ClusterMapBin, ServerGroupUse};
pub use outcome::{
    ClusterCongestion, ClusterJobOutcome, ClusterJobSpeed, ClusterMapRow, ClusterOutcome, ClusterSample, Distribution,
};
pub use placement::{PLACEMENTS, Placement, Request};
pub use registered::{register_failure_model, register_placement, register_scheduler};
pub use scheduler::{Behind, QueueKey, SCHEDULERS, Scheduler};
pub use servers::{GpuShare, ServerUse, Servers};
pub use simulate::{IterationForecast, PreparedCluster};
pub use state::JobPhase;
