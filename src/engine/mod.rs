//! The packet engine: the same systems in Rust (`cpu`) and WGSL (`gpu`), over the tables of `columns`.
//!
//! Layer: knows columns and numbers only; no TOML, no topology generator, no entity.

pub mod beside;
pub mod cpu;
pub mod fair_rates;
pub mod fold;
pub mod gpu;
pub mod grow;
pub mod systems;

use std::time::Duration;

use crate::columns::{Tables, status};

/// Runs batches of experiments, a slice of wall time after another.
pub trait Engine: Send + Sync {
    /// Advances every experiment that is not final for about [`Engine::slice`], or until `stop` says so; pools that run short grow up
    /// to `packet_limit` records. Slices change no result.
    ///
    /// # Errors
    /// The engine cannot go on at all; an experiment that cannot is no error, it is in [`SliceOutcome::failures`] or has a status.
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError>;

    /// How long `advance` goes on by itself: the time between two looks of the host.
    fn slice(&self) -> Duration;

    /// What solves rates of experiments at flow level on a device, if the engine has one.
    fn rates(&mut self) -> Option<&mut dyn fair_rates::RateSolver> {
        None
    }

    /// Experiments that one batch may have, as far as the engine is concerned, where it runs on `threads` threads.
    fn most(&self, _threads: usize) -> usize {
        usize::MAX
    }

    /// Bytes of tables that one batch may have, as far as the engine is concerned.
    fn room(&self) -> u64 {
        u64::MAX
    }
}

/// What a slice did.
#[derive(Clone, Debug, Default)]
pub struct SliceOutcome {
    /// Seconds spent on each experiment; where they run side by side on one device, its share.
    pub seconds: Vec<f64>,
    /// Experiments, by their place in the batch, that can never end on this engine, and why.
    pub failures: Vec<(usize, String)>,
    /// What folding did so far for each experiment; empty where the engine does not fold.
    pub folds: Vec<fold::FoldStats>,
}

/// An engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Device(String),
    /// The run is to stop, and the device was not done with what it was at.
    #[error("the run was asked to stop while the device was at work")]
    Stopped,
}

/// Packets that left a port so far: data and ACKs.
pub fn packet_hops(t: &Tables) -> u64 {
    t.nics.iter().map(|n| n.hops).sum::<u64>() + t.ports.iter().map(|p| p.hops).sum::<u64>()
}

/// Whether the experiment has come to an end, good or bad.
pub fn is_final(t: &Tables) -> bool {
    !matches!(t.exps[0].status, status::RUNNING | status::NEEDS_PACKETS)
}
