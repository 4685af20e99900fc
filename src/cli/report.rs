//! `hyperfold report`, and the report at the end of a run.
//!
//! Layer: cli. What the page shows is [`crate::report`]'s.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::report::{self, ReportError};

use super::exit::{CliError, Exit};
use super::{say, tell};

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder of results, as `hyperfold run --out` wrote it
    pub dir: PathBuf,
}

/// Writes the page, replacing an earlier one.
///
/// # Errors
/// The folder holds no results or damaged ones, or it cannot be written to.
pub fn execute(args: &ReportArgs) -> Result<Exit, CliError> {
    let path = report::write(&args.dir).map_err(|e| match e {
        ReportError::Read(_) | ReportError::Csv { .. } => CliError::bad_input(e),
        ReportError::Write { .. } => CliError::broken(e),
    })?;
    say(&format!("report: {}", path.display()));
    Ok(Exit::Ok)
}

/// The report of a run that has just ended, and whether there is one. The results are safe by then, so what goes wrong here is a warning.
pub fn after_run(dir: &Path, quiet: bool) -> bool {
    match report::write(dir) {
        Ok(path) => {
            if !quiet {
                say(&format!("report: {}", path.display()));
            }
            true
        }
        Err(error) => {
            let error = anyhow::Error::new(error);
            tell(&format!(
                "warning: no report was written: {error:#}; `hyperfold report {}` tries again",
                dir.display()
            ));
            false
        }
    }
}
