//! `hyperfold report`, and the report at the end of a run.
//!
//! Layer: cli. [`hyperfold_report::page`] decides what the page shows.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use hyperfold_base::input;
use hyperfold_report::page::{self, ReportError};

use super::exit::{CliError, Exit, with_causes};
use super::serve::PageServer;
use super::{say, tell, tell_approximate, tell_losses};

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder of results, as `hyperfold run --out` wrote it
    pub dir: PathBuf,
    /// Show it to a browser on this machine until Ctrl-C: on 127.0.0.1 only, at this port, or at any that is free
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0")]
    pub serve: Option<u16>,
}

/// Writes the page, and replaces an earlier one.
///
/// # Errors
/// The folder has no results or damaged ones, or it cannot be written to.
pub fn execute(args: &ReportArgs) -> Result<Exit, CliError> {
    let path = page::write(&args.dir).map_err(|e| match e {
        ReportError::Load(_) | ReportError::Read(_) | ReportError::Csv { .. } => CliError::bad_input(e),
        ReportError::Write { .. } => CliError::broken(e),
    })?;
    say(&format!("report: {}", path.display()));
    tell_losses(&args.dir);
    tell_approximate(&args.dir);
    if let Some(port) = args.serve {
        serve(&path, port)?;
    }
    Ok(Exit::Ok)
}

/// Serves the written page until the process ends.
fn serve(path: &Path, port: u16) -> Result<(), CliError> {
    let page =
        input::read_anywhere(path, u64::MAX).map_err(|e| CliError::broken(anyhow!("{}: {e}", path.display())))?;
    let server = PageServer::new(page, port).map_err(|e| {
        CliError::bad_input(anyhow!("--serve {port}: cannot listen on 127.0.0.1 at this port: {e}; name another one, or none for any that is free"))
    })?;
    say(&format!("serving it at {} until Ctrl-C", server.url()));
    server.run().map_err(CliError::broken)
}

/// Writes the report of a run that has just ended, and returns whether that worked. The results are safe already, so an error is only a warning.
pub fn after_run(dir: &Path, quiet: bool) -> bool {
    match page::write(dir) {
        Ok(path) => {
            if !quiet {
                say(&format!("report: {}", path.display()));
            }
            true
        }
        Err(error) => {
            let error = with_causes(&anyhow::Error::new(error));
            tell(&format!("warning: no report was written: {error}; `hyperfold report {}` tries again", dir.display()));
            false
        }
    }
}
