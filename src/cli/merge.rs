//! `hyperfold merge`: joins the folders of shards to the folder of the whole run.
//!
//! Layer: cli. [`hyperfold_session::merge()`] does the work.

use std::path::PathBuf;

use clap::Args;

use hyperfold_results::Status;
use hyperfold_session::folders::merge::{Merged, merge};

use super::exit::{CliError, Exit};
use super::{best, jobs_table, resume, say, summary, tell};
use hyperfold_base::units::counted;

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Folders of runs of one sweep: shards, in any order; they may overlap
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Folder for the whole; new, empty, or that of an earlier merge, which then gets what it lacks
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// No table; only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Joins the folders.
///
/// # Errors
/// Fails as [`merge`] does.
pub fn execute(args: &MergeArgs) -> Result<Exit, CliError> {
    let merged = merge(&args.dirs, &args.out, &mut |warning| tell(&format!("warning: {warning}")))?;
    let exit = conclude(args, &merged);
    super::report::after_run(&args.out, args.quiet);
    Ok(exit)
}

fn conclude(args: &MergeArgs, merged: &Merged) -> Exit {
    let Merged { run, manifest, records, missing, .. } = merged;
    if !args.quiet {
        summary::lines(&run.axes, records).iter().for_each(|line| say(line));
        jobs_table::lines(&args.out).iter().for_each(|line| say(line));
        best::lines(&args.out, None, &Default::default()).iter().for_each(|line| say(line));
        say(&format!(
            "{}: {} of {}",
            manifest.name,
            counted(records.len(), "experiment"),
            counted(args.dirs.len(), "folder")
        ));
        say(&format!("results: {}", args.out.display()));
    }
    for warning in &manifest.warnings {
        tell(&format!("warning: {warning}"));
    }
    if missing.is_some() {
        tell(&format!(
            "hyperfold: merge the missing shards into {}, or run what is missing: {}",
            args.out.display(),
            resume::command(run, &args.out)
        ));
    }
    let failed = records.iter().any(|r| r.status == Status::Failed);
    if missing.is_some() || failed { Exit::Failed } else { Exit::Ok }
}
