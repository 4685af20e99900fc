//! The identity of a run's results, and claiming a folder for them.
//!
//! Layer: session. The journal compares identities (`results`); this module computes them.

use std::fmt::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use hyperfold_config::sweep::{SEMANTIC_VERSION, Selection, Sweep};
use hyperfold_results::{Cell, ResultDir, RunIdentity};

use crate::error::SessionError;
use crate::planning::planned::Planned;

/// Returns a hash of all experiments of a sweep, before any selection: the identity of each, and the axis values in its row.
pub(crate) fn digest(sweep: &Sweep) -> String {
    let mut hash = Sha256::new();
    let mut text = String::new();
    for experiment in &sweep.experiments {
        text.clear();
        let _ = write!(text, "{} {}", experiment.exp_key, experiment.replica);
        for value in sweep.axis_values(experiment) {
            let _ = write!(text, "\0{}", Cell::from(&value));
        }
        text.push('\n');
        hash.update(&text);
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the identity of the run's results.
pub(crate) fn identity(planned: &Planned, selection: &Selection) -> RunIdentity {
    let run = RunIdentity {
        sweep: planned.digest.clone(),
        experiments: planned.experiments,
        axes: planned.axes.clone(),
        outputs: planned.outputs,
        search: planned.search.as_ref().map(ToString::to_string),
        limit: selection.limit,
        shard: selection.shard.map(|s| (s.index, s.of)),
        resolved: planned.resolved.clone(),
        inputs: planned.inputs.clone(),
        ..RunIdentity::default()
    };
    run.of_this_version(SEMANTIC_VERSION)
}

/// Claims a folder: a new one, or with `resume` that of an earlier run.
///
/// # Errors
/// As [`ResultDir::create`] and [`ResultDir::reopen`].
pub(crate) fn claim(path: &Path, resume: bool) -> Result<ResultDir, SessionError> {
    let dir = if resume { ResultDir::reopen(path) } else { ResultDir::create(path) };
    dir.map_err(SessionError::Results)
}
