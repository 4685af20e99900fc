//! The memo of a run: how it remembers what it has simulated.
//!
//! Layer: session. The memo itself is in `fold`, its file in `host`.

use std::sync::Arc;

use hyperfold_fold::{FoldEngine, HandOver, Memo};
use hyperfold_host::memo_file::memo_keeper::{MemoKeeper, max_in_memory};

use crate::settings::MemoChoice;

/// The memo of a run.
pub(crate) enum RunMemo {
    Off,
    Run,
    Kept(MemoKeeper),
}

impl RunMemo {
    /// Opens the memo.
    pub(crate) fn start(choice: &MemoChoice) -> RunMemo {
        match choice {
            MemoChoice::Off => RunMemo::Off,
            MemoChoice::Run => RunMemo::Run,
            MemoChoice::Kept { path, limit_bytes } => RunMemo::Kept(MemoKeeper::start(path, *limit_bytes)),
        }
    }

    /// Returns the memo of a search's rounds. It is never kept on disk, as it is of no use to other runs.
    pub(crate) fn of_search(choice: &MemoChoice) -> RunMemo {
        if matches!(choice, MemoChoice::Off) { RunMemo::Off } else { RunMemo::Run }
    }

    /// Creates the CPU engine that uses this memo.
    pub(crate) fn engine(&self) -> FoldEngine {
        match self {
            // Nothing is ever known.
            RunMemo::Off => FoldEngine::forgetful().handing_over(HandOver::FindsLittle),
            RunMemo::Run => FoldEngine::remembering(Arc::new(Memo::default().at_most(max_in_memory()))),
            RunMemo::Kept(keeper) => FoldEngine::remembering(keeper.memo()),
        }
    }

    /// Writes what is not on disk yet. Returns warnings.
    pub(crate) fn finish(self) -> Vec<String> {
        match self {
            RunMemo::Off | RunMemo::Run => Vec::new(),
            RunMemo::Kept(keeper) => keeper.finish(),
        }
    }
}
