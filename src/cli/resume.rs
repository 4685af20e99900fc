//! `run --resume`: what is told about what an earlier run has left.
//!
//! Layer: cli.

use std::path::Path;

use anyhow::anyhow;

use crate::results::{Recovered, ResultDir};
use crate::session::Planned;

use super::exit::CliError;

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

/// An error that ended the run, with what is safe and how to go on.
pub fn broke_off(broken: CliError, saved: u64, of: u64, out: &Path) -> CliError {
    let told = anyhow!(
        "{:#}\n{saved} of {of} experiments are safe in {}; run the same command with --resume once the cause is mended",
        broken.error,
        out.display()
    );
    CliError { error: told, ..broken }
}
