//! Classes of experiments that take about equal time for equal work.
//!
//! Layer: session.

use std::hash::{DefaultHasher, Hash, Hasher};

use hyperfold_config::spec::{Config, KeyId};

/// The properties, besides their number, that decide how fast packets are simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SpeedClass {
    topology: String,
    control: String,
    workload: String,
    /// Whether repeats are looked up, and whether steady phases are skipped.
    folds: [bool; 2],
    /// Binary logarithm of the work: large experiments do not scale like small ones, least of all if folding saves most of the work.
    magnitude: u32,
}

impl SpeedClass {
    /// Returns the class of an experiment with so much work.
    pub(crate) fn of(config: &Config, work: u64) -> SpeedClass {
        let text = |key| config.values.text(key).to_string();
        SpeedClass {
            topology: text(KeyId::TopologyKind),
            control: text(KeyId::Cc),
            workload: text(KeyId::WorkloadKind),
            folds: [config.folding().is_some(), config.steady().is_some()],
            magnitude: work.max(1).ilog2(),
        }
    }

    /// Returns a number for the class, which holds in one process.
    pub(crate) fn hashed(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
