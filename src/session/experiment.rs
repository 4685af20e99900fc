//! One experiment of a sweep: its configuration, and its record before it has run.
//!
//! Layer: session.

use hyperfold_config::spec::Config;
use hyperfold_config::sweep::{Experiment, Sweep};
use hyperfold_results::{Cell, ExperimentRecord};

/// Returns the configuration of an experiment of a loaded sweep.
pub(crate) fn config(sweep: &Sweep, experiment: &Experiment) -> Config {
    sweep.config(experiment).expect("loading has checked every experiment's configuration")
}

/// Returns the record of an experiment with its identity, and nothing measured.
pub(crate) fn unmeasured(sweep: &Sweep, e: &Experiment) -> ExperimentRecord {
    let axes = sweep.axis_values(e).iter().map(Cell::from).collect();
    ExperimentRecord::new(e.exp_id, e.config_key.to_string(), e.exp_key.to_string(), e.replica, e.seed, axes)
}
