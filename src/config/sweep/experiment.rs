//! One experiment of a sweep, and how many a sweep may have.
//!
//! Layer: sweep. Resolves no values.

use super::digest::Hash128;

/// Maximum number of experiments of a sweep. Expanding so many takes seconds and fits into a laptop's memory.
pub const MAX_EXPERIMENTS: u64 = 1_000_000;

/// One experiment of a sweep. Its contents are resolved when they are needed: [`config`](super::Sweep::config), [`axis_values`](super::Sweep::axis_values).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Its number after the constraints, but before `--limit` and `--shard`. The replicas of a point have consecutive numbers.
    pub exp_id: u64,
    /// The number of its point of the axes, before the constraints.
    pub point: u64,
    /// Number of its replica, from 0.
    pub replica: u32,
    /// The replica's seed, of 53 bits. Every random choice in the experiment depends on it.
    pub seed: u64,
    /// The hash of the resolved configuration with its files and the semantics of the engine. Replicas share it.
    pub config_key: Hash128,
    /// The hash of the same and the replica's seed.
    pub exp_key: Hash128,
}
