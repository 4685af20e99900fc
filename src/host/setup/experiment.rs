//! An experiment that waits to be run.
//!
//! Layer: host. A leaf: `runner`, `devices` and `dedup` pass this type on.

use hyperfold_config::spec::Config;

/// One experiment to run.
#[derive(Clone)]
pub struct QueuedExperiment {
    /// Index in the sweep.
    pub exp_id: u64,
    /// Values of all its keys, resolved.
    pub config: Config,
}
