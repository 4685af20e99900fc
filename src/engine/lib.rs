//! The packet engine: the same systems in Rust ([`cpu`]) and WGSL ([`gpu`]), over the tables of `hyperfold-columns`.
//!
//! | module | content |
//! |---|---|
//! | [`systems`] | the list of systems, in the order of a step; CPU, GPU and tests run from it |
//! | [`cpu`] | each system in a file of its own; its twin in `shaders` has the same stem |
//! | [`gpu`] | devices, self-test, buffers, dispatches |
//! | [`grow`] | packet pools that grow between steps |
//! | [`stops`] | times at which an experiment stops for the host |
//! | [`changes`] | links that fail and new paths, between steps |
//! | `watchdog` | pauses that last too long, between steps |
//! | `queue_reports` | what switches tell each other of their queues, between steps |
//! | `restart_port` | starts a port between steps |
//! | [`series`] | samples over time, between steps |
//! | [`fair_rates`] | what a device that solves rates at flow level offers |
//! | `fold_stats` | what an engine that folds counts of an experiment |
//!
//! [`Engine`] is the trait of what advances a batch: the engines here, folding in `hyperfold-fold`, and flow level beside either of them.
//!
//! This crate knows columns and numbers only: no sweep file, no topology, no workload. Its rules are those of `docs/explanation/model-semantics.md`.
//! Start with [`systems`], then `cpu/switch/forward.rs` and `cpu/nic.rs`.

#![deny(unsafe_code)]

pub mod changes;
pub mod cpu;
mod error;
pub mod fair_rates;
mod fold_stats;
pub mod gpu;
pub mod grow;
mod queue_reports;
mod restart_port;
pub mod series;
pub mod stops;
pub mod systems;
mod watchdog;

pub use error::EngineError;
pub use fold_stats::{Audit, FoldStats};

use std::time::Duration;

use hyperfold_columns::{Tables, status};

/// Runs batches of experiments in slices of wall time.
pub trait Engine: Send + Sync {
    /// Advances every experiment that is not final for about [`Engine::slice`], or until `stop` returns true. Pools that run short grow up to
    /// `packet_limit` records. Slices change no result.
    ///
    /// # Errors
    /// The engine cannot go on at all. An experiment that cannot go on is no error: it is in [`SliceOutcome::failures`] or has a final status.
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError>;

    /// Drops what the engine keeps of the experiments of the last calls: the next batch has others. A batch keeps its places until then.
    fn forget(&mut self) {}

    /// Wall time after which `advance` returns by itself, so that the host can report progress and check for a stop.
    fn slice(&self) -> Duration;

    /// The solver for rates of flow-level experiments on a device, if the engine has one.
    fn rates(&mut self) -> Option<&mut dyn fair_rates::RateSolver> {
        None
    }

    /// Maximum number of experiments in one batch when the engine runs on `threads` threads.
    fn max_batch(&self, _threads: usize) -> usize {
        usize::MAX
    }

    /// Maximum size of all tables in one batch, in bytes.
    fn max_batch_bytes(&self) -> u64 {
        u64::MAX
    }
}

/// The result of one slice.
#[derive(Clone, Debug, Default)]
pub struct SliceOutcome {
    /// Wall time spent on each experiment, in seconds. Experiments that run side by side on one device share its time equally.
    pub seconds: Vec<f64>,
    /// Experiments that can never end on this engine: place in the batch, and reason.
    pub failures: Vec<(usize, String)>,
    /// Folding statistics of each experiment so far; empty if the engine does not fold.
    pub folds: Vec<FoldStats>,
}

/// Number of packets (data and ACKs) that have left a port so far, summed over all ports.
pub fn packet_hops(t: &Tables) -> u64 {
    t.nics.iter().map(|n| n.hops).sum::<u64>() + t.ports.iter().map(|p| p.hops).sum::<u64>()
}

/// Whether the experiment has ended, with success or not. An empty place of a batch has. One that has stopped for the host has not.
pub fn is_final(t: &Tables) -> bool {
    t.exps.first().is_none_or(|exp| !matches!(exp.status, status::RUNNING | status::NEEDS_PACKETS)) && !stops::is_due(t)
}

/// Lets an experiment go on that has stopped between two steps: its pools grow to at most `packet_limit` records, its network changes, and samples are taken.
///
/// # Errors
/// It needs more records.
pub fn go_on(t: &mut Tables, packet_limit: u64) -> Result<(), grow::TooManyPackets> {
    if stops::is_due(t) {
        return stops::pass(t, packet_limit);
    }
    match t.exps[0].status {
        status::NEEDS_PACKETS => grow::grow(t, packet_limit),
        _ => Ok(()),
    }
}
