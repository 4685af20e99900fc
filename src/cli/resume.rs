//! Messages of `run --resume` about the results of an earlier run, and the command that carries on with one.
//!
//! Layer: cli.

use std::path::Path;

use hyperfold_results::{Recovered, ResultDir, ResultsError, RunIdentity, cut_off};
use hyperfold_session::{Planned, SessionError};

use super::exit::CliError;
use crate::submit::quote::shell;
use hyperfold_base::units::counted;

/// The command that carries on with a run in the folder `out`. It has the run's selection, without which `--resume` refuses the folder.
pub fn command(run: &RunIdentity, out: &Path) -> String {
    let shard = run.shard.map_or(String::new(), |(i, n)| format!(" --shard {i}/{n}"));
    let limit = run.limit.map_or(String::new(), |n| format!(" --limit {n}"));
    format!("hyperfold run SWEEP.toml --out {}{shard}{limit} --resume", shell(&out.display().to_string()))
}

/// Messages about what an earlier run has left in the folder.
pub fn messages(recovered: &Recovered, planned: &Planned, dir: &ResultDir) -> Vec<String> {
    let mut told = Vec::new();
    if !dir.is_locked() {
        told.push(format!(
            "warning: {}: this file system knows no locks; see to it that no other run writes there",
            dir.path().display()
        ));
    }
    told.extend(cut_off(dir.path()).filter(|_| recovered.damage.is_none()).map(|text| format!("warning: {text}")));
    if let Some(damage) = &recovered.damage {
        told.push(format!("warning: {}: {damage}", dir.path().join("journal.bin").display()));
    }
    if recovered.again > 0 {
        told.push(format!(
            "run again, after a limit of time (limits.wall_s) or memory: {}",
            counted(recovered.again, "experiment")
        ));
    }
    let n = planned.rows();
    if planned.search.is_some() {
        if recovered.complete > 0 {
            told.push(format!(
                "complete and not run again: {}; the search decides once more by what it found",
                counted(recovered.complete, "experiment")
            ));
        }
    } else if recovered.complete == n {
        let all = if n == 1 { "the experiment is".into() } else { format!("all {n} experiments are") };
        told.push(format!("{all} complete; the files are written again"));
    } else if recovered.complete > 0 {
        told.push(format!(
            "{} of {n} experiments are complete; running the other {}",
            recovered.complete,
            n - recovered.complete
        ));
    }
    told
}

/// The error that ended a run, with a line about what is safe and how to go on.
pub fn broke_off(broken: CliError, saved: u64, total: u64, out: &Path) -> CliError {
    let folder_lost = |e: &(dyn std::error::Error + 'static)| {
        let of_session = match e.downcast_ref() {
            Some(SessionError::Writing(e) | SessionError::Results(e)) => Some(e),
            _ => None,
        };
        matches!(e.downcast_ref().or(of_session), Some(ResultsError::FolderLost(_)))
    };
    if broken.error.chain().any(folder_lost) {
        return broken;
    }
    let then = format!(
        "{saved} of {total} experiments are safe in {}; run the same command with --resume once the cause is mended",
        out.display()
    );
    CliError { then: Some(then), ..broken }
}
