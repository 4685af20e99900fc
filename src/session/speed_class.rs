//! Classes of experiments that take about as long for as much work.
//!
//! Layer: session.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::spec::{Config, KeyId};

/// What decides how fast packets are, beside their number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SpeedClass {
    topology: String,
    control: String,
    workload: String,
    /// Whether repeats are looked up, and whether what is steady is skipped.
    folds: [bool; 2],
    /// The binary logarithm of the work: large experiments are no larger small ones, least of all where folding saves most of them.
    magnitude: u32,
}

impl SpeedClass {
    /// Of an experiment with so much work.
    pub(super) fn of(config: &Config, work: u64) -> SpeedClass {
        let text = |key| config.values.text(key).to_string();
        SpeedClass {
            topology: text(KeyId::TopologyKind),
            control: text(KeyId::Cc),
            workload: text(KeyId::WorkloadKind),
            folds: [config.folding().is_some(), config.steady().is_some()],
            magnitude: work.max(1).ilog2(),
        }
    }

    /// One number for each class, in one process.
    pub(super) fn hashed(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
