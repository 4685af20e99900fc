//! `--memo`: where a run remembers what it has simulated.
//!
//! Layer: cli.

use anyhow::anyhow;

use crate::batch::memo_keeper::MemoKeeper;
use crate::batch::memo_store::somebody_elses;
use crate::engine::fold::FoldEngine;

use super::args::RunArgs;
use super::exit::CliError;
use super::simulator::MemoChoice;

/// What `--memo` and `--memo-limit-mib` mean.
///
/// # Errors
/// The file is something else.
pub fn choice(args: &RunArgs) -> Result<MemoChoice, CliError> {
    Ok(match &args.memo {
        None => MemoChoice::Run,
        Some(path) if path.as_os_str() == "off" => MemoChoice::Off,
        Some(path) => match somebody_elses(path) {
            Some(file) => {
                return Err(CliError::bad_input(anyhow!(
                    "--memo {}: this file is no memo; name another one, which need not exist yet, or a folder",
                    file.display()
                )));
            }
            None => MemoChoice::Kept { path: path.clone(), limit_bytes: args.memo_limit_mib << 20 },
        },
    })
}

/// How a run remembers, while it lasts.
pub enum Remembering {
    Off,
    Run,
    Kept(MemoKeeper),
}

impl Remembering {
    /// Opens the memo. Where there is a device, what skips steady phases is folded beside it.
    pub fn start(choice: &MemoChoice) -> Remembering {
        match choice {
            MemoChoice::Off => Remembering::Off,
            MemoChoice::Run => Remembering::Run,
            MemoChoice::Kept { path, limit_bytes } => Remembering::Kept(MemoKeeper::start(path, *limit_bytes)),
        }
    }

    /// How the rounds of a search remember, which are of no use to other runs: for themselves alone.
    pub fn within(choice: &MemoChoice) -> Remembering {
        if matches!(choice, MemoChoice::Off) { Remembering::Off } else { Remembering::Run }
    }

    /// The CPU engine that remembers so.
    pub fn engine(&self) -> FoldEngine {
        match self {
            Remembering::Off => FoldEngine::forgetful(),
            Remembering::Run => FoldEngine::default(),
            Remembering::Kept(keeper) => FoldEngine::remembering(keeper.memo()),
        }
    }

    /// Puts on disk what is not there yet; gives warnings.
    pub fn finish(self) -> Vec<String> {
        match self {
            Remembering::Off | Remembering::Run => Vec::new(),
            Remembering::Kept(keeper) => keeper.finish(),
        }
    }
}
