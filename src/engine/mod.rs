//! The packet engine: the same systems in Rust (`cpu`) and WGSL (`gpu`), over the tables of `columns`.
//!
//! Layer: knows columns and numbers only; no TOML, no topology generator, no entity.

pub mod cpu;
pub mod gpu;
pub mod grow;

use std::time::Duration;

use crate::columns::{Tables, status};

/// What the semantics of the engine are called; part of every experiment's key, so that results of another version are never
/// mistaken for this one's.
pub const SEMANTICS_VERSION: u32 = 1;

/// Runs batches of experiments, a slice of wall time after another.
pub trait Engine {
    /// Name for people and manifests.
    fn name(&self) -> String;

    /// Advances every experiment that is `RUNNING` for about `slice`; pools that run short grow up to `packet_limit` records.
    ///
    /// Returns the seconds spent on each experiment in this slice.
    fn advance(&mut self, batch: &mut [Tables], slice: Duration, packet_limit: u64) -> Result<Vec<f64>, EngineError>;
}

/// An engine cannot go on at all (an experiment that cannot is no error, it has a status).
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Device(String),
}

/// Packets that left a port so far: data and ACKs.
pub fn packet_hops(t: &Tables) -> u64 {
    t.nics.iter().map(|n| n.hops).sum::<u64>() + t.ports.iter().map(|p| p.hops).sum::<u64>()
}

/// Whether the experiment has come to an end, good or bad.
pub fn is_final(t: &Tables) -> bool {
    !matches!(t.exps[0].status, status::RUNNING | status::NEEDS_PACKETS)
}
