//! `run --resume`: whether the folder holds this run, what of it is done, and what is told about it.
//!
//! Layer: cli. The journal does the work (`results`); here is what it is asked for, and how its answers are put.

use std::fmt::Write;
use std::path::Path;

use anyhow::anyhow;
use sha2::{Digest, Sha256};

use crate::results::{Cell, Manifest, Recovered, ResultDir, RunIdentity, Seconds};
use crate::sweep::{SEMANTIC_VERSION, Sweep};

use super::exit::CliError;
use super::simulator::{Planned, SweepRequest};

/// Hash of all experiments of a sweep, before any selection: what each is, and what its row shows of it.
pub fn digest(sweep: &Sweep) -> String {
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

/// Whose results the run's are.
pub fn identity(planned: &Planned, request: &SweepRequest) -> RunIdentity {
    let selection = &request.selection;
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

/// The folder, claimed: a new one, or with `resume` that of an earlier run.
///
/// # Errors
/// As [`ResultDir::create`] and [`ResultDir::reopen`].
pub fn claim(path: &Path, resume: bool) -> Result<ResultDir, CliError> {
    let dir = if resume { ResultDir::reopen(path) } else { ResultDir::create(path) };
    dir.map_err(CliError::results)
}

/// What to tell about what an earlier run has left.
pub fn messages(recovered: &Recovered, planned: &Planned, dir: &ResultDir) -> Vec<String> {
    let mut told = Vec::new();
    if !dir.is_locked() {
        told.push(format!(
            "warning: {}: this file system knows no locks; see to it that no other run writes there",
            dir.path().display()
        ));
    }
    if let Some(damage) = &recovered.damage {
        told.push(format!("warning: {}: {damage}", dir.path().join("journal.bin").display()));
    }
    if recovered.again > 0 {
        told.push(format!("{} experiments had reached limits.wall_s and are run again", recovered.again));
    }
    let n = planned.rows();
    if planned.search.is_some() {
        if recovered.complete > 0 {
            told.push(format!(
                "{} experiments are complete and are not run again; the search decides once more by what it found",
                recovered.complete
            ));
        }
    } else if recovered.complete == n {
        told.push(format!("all {n} experiments are complete; the files are written again"));
    } else if recovered.complete > 0 {
        told.push(format!(
            "{} of {n} experiments are complete; running the other {}",
            recovered.complete,
            n - recovered.complete
        ));
    }
    told
}

/// Seconds that earlier sessions of the run have recorded.
pub fn earlier_seconds(path: &Path) -> Seconds {
    let manifest =
        std::fs::read(path.join("manifest.json")).ok().and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
    // A manifest is for people; one that cannot be read costs the sum, not the run.
    manifest.map_or_else(Seconds::default, |m| m.seconds)
}

/// An error that ended the run, with what is safe and how to go on.
pub fn broke_off(broken: CliError, saved: u64, of: u64, out: &Path) -> CliError {
    let told = anyhow!(
        "{:#}\n{saved} of {of} experiments are safe in {}; run the same command with --resume once the cause is mended",
        broken.error,
        out.display()
    );
    CliError { error: told, ..broken }
}
