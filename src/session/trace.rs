//! Records the timeline of an experiment: one that is being run, or one in a folder of results.
//!
//! Layer: session. The run's manifest holds the whole sweep, so the experiment is simulated again and recorded. It is the same experiment only if its key is
//! the same: the key covers every setting, the input files and the model's version.

use std::path::PathBuf;

use hyperfold_cluster::{ClusterError, ClusterHistory, PreparedCluster};
use hyperfold_config::spec::{Config, Place, SpecError};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_host::PrepareError;
use hyperfold_host::outcomes::timeline::{RecordedSpan, Timeline, record};
use hyperfold_results::{RunColumns, Status};
use hyperfold_trace::{DEFAULT_LIMIT, Trace, perfetto, samples};

use crate::error::SessionError;
use crate::running::interrupt::Interrupt;

/// Simulates an experiment without folding and records what happens within `recorded`.
///
/// # Errors
/// The experiment cannot be prepared.
pub fn timeline(
    config: &Config,
    exp_id: u64,
    recorded: RecordedSpan,
    interrupt: &Interrupt,
) -> Result<Timeline, PrepareError> {
    record(config, exp_id, recorded, &|| interrupt.requested())
}

/// Records the timeline of an experiment that is being run, for `output.trace`.
///
/// # Errors
/// The experiment cannot be prepared.
pub(crate) fn of_run(config: &Config, exp_id: u64, interrupt: &Interrupt) -> Result<Trace, PrepareError> {
    let recorded = RecordedSpan { samples: samples(DEFAULT_LIMIT), ..RecordedSpan::default() };
    timeline(config, exp_id, recorded, interrupt).map(|timeline| perfetto(&timeline, DEFAULT_LIMIT))
}

/// Simulates a cluster over days again and records what its jobs and servers do; `None`: it was interrupted.
///
/// # Errors
/// The cluster cannot be prepared, or does not end.
pub fn cluster_history(config: &Config, interrupt: &Interrupt) -> Result<Option<ClusterHistory>, ClusterError> {
    match PreparedCluster::new(config)?.recorded(&|| interrupt.requested()) {
        Err(ClusterError::Interrupted) => Ok(None),
        ended => ended.map(|(_, history)| Some(history)),
    }
}

/// Removes line numbers from an error in the sweep of a manifest: they refer to the text in the manifest, with every key, not to the user's file.
fn of_manifest(mut error: SpecError) -> SpecError {
    if let Place::File { line, columns, .. } = error.place_mut() {
        (*line, *columns) = (None, None);
    }
    error
}

/// Returns the row and the configuration of an experiment.
///
/// # Errors
/// There is no such experiment, or its inputs have changed.
pub fn experiment(run: &RunColumns, exp_id: u64) -> Result<(usize, Config), SessionError> {
    let dir = run.path.display();
    let row = run.find(exp_id).ok_or_else(|| {
        SessionError::Input(format!("{dir}: it has no experiment {exp_id}; results.csv lists those that it has"))
    })?;
    if run.status(row) == Status::Oom {
        return Err(SessionError::Input(format!(
            "{dir}: experiment {exp_id} does not fit into its GPUs' memory, so nothing happens in it"
        )));
    }
    let m = &run.manifest;
    let path = if m.sweep_path.is_empty() { PathBuf::from("sweep.toml") } else { PathBuf::from(&m.sweep_path) };
    let sweep = sweep::parse(&m.sweep, &path, &SetOverrides(Vec::new()))
        .map_err(|e| SessionError::Manifest { path: run.path.clone(), source: Box::new(of_manifest(e)) })?;
    let recorded = run.column("exp_key").map(|c| run.rows[row][c].to_string()).unwrap_or_default();
    let found = sweep.experiments.iter().find(|e| e.exp_id == exp_id).filter(|e| e.exp_key.to_string() == recorded);
    let Some(found) = found else {
        // Compare by content: paths depend on where the program was started.
        let is_there = |sha: &str| sweep.inputs.iter().any(|i| i.sha256 == sha);
        let changed: Vec<&str> = m.inputs.iter().filter(|i| !is_there(&i.sha256)).map(|i| i.path.as_str()).collect();
        let why = match changed.as_slice() {
            [] => "another version of hyperfold wrote these results, or its experiments do not come from the sweep file alone".to_string(),
            files => format!("changed since: {}", files.join(", ")),
        };
        return Err(SessionError::Input(format!(
            "{dir}: experiment {exp_id} cannot be simulated again as it was: {why}"
        )));
    };
    let config = sweep.config(found).map_err(|e| SessionError::Input(format!("{dir}: {e}")))?;
    Ok((row, config))
}
