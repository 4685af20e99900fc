//! `hyperfold recover`: makes a folder of the sound part of a folder's journal.
//!
//! Layer: cli. [`hyperfold_session::folders::merge::recover`] does the work.

use std::path::PathBuf;

use clap::Args;

use hyperfold_session::folders::merge::recover;

use super::exit::{CliError, Exit};
use super::{resume, say, tell};
use hyperfold_base::units::counted;

#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// Folder of a run whose journal is damaged, or whose other files are lost; it is only read
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Folder for what is recovered; new or empty [default: DIR-recovered]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Recovers the folder.
///
/// # Errors
/// There is no journal, a run writes to it, nothing sound identifies its sweep, or the new folder cannot be written.
pub fn execute(args: &RecoverArgs) -> Result<Exit, CliError> {
    let out = args.out.clone().unwrap_or_else(|| {
        let name = args.dir.components().next_back().map(|c| c.as_os_str().to_owned()).unwrap_or_default();
        let mut name = name;
        name.push("-recovered");
        args.dir.with_file_name(name)
    });
    let merged = recover(&args.dir, &out, &mut |warning| tell(&format!("warning: {warning}")))?;
    say(&format!("recovered: {} of {}", counted(merged.records.len(), "experiment"), args.dir.display()));
    say(&format!("results: {}", out.display()));
    super::report::after_run(&out, true);
    match &merged.missing {
        None => Ok(Exit::Ok),
        Some(missing) => {
            tell(&format!("hyperfold: {missing}; to run them: {}", resume::command(&merged.run, &out)));
            Ok(Exit::Failed)
        }
    }
}
