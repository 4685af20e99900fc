//! How a run remembers what it has simulated, while it lasts.
//!
//! Layer: session. The memo itself is the engine's, its file `batch`'s.

use std::sync::Arc;

use crate::batch::memo_keeper::{MemoKeeper, most_in_memory};
use crate::engine::fold::{FoldEngine, Memo};

use super::settings::MemoChoice;

/// The memo of a run.
pub(crate) enum RunMemo {
    Off,
    Run,
    Kept(MemoKeeper),
}

impl RunMemo {
    /// Opens the memo. Where there is a device, what skips steady phases is folded beside it.
    pub(crate) fn start(choice: &MemoChoice) -> RunMemo {
        match choice {
            MemoChoice::Off => RunMemo::Off,
            MemoChoice::Run => RunMemo::Run,
            MemoChoice::Kept { path, limit_bytes } => RunMemo::Kept(MemoKeeper::start(path, *limit_bytes)),
        }
    }

    /// The memo of a search's rounds, which are of no use to other runs: for themselves alone.
    pub(crate) fn of_search(choice: &MemoChoice) -> RunMemo {
        if matches!(choice, MemoChoice::Off) { RunMemo::Off } else { RunMemo::Run }
    }

    /// The CPU engine that remembers so.
    pub(crate) fn engine(&self) -> FoldEngine {
        match self {
            RunMemo::Off => FoldEngine::forgetful(),
            RunMemo::Run => FoldEngine::remembering(Arc::new(Memo::default().at_most(most_in_memory()))),
            RunMemo::Kept(keeper) => FoldEngine::remembering(keeper.memo()),
        }
    }

    /// Puts on disk what is not there yet; gives warnings.
    pub(crate) fn finish(self) -> Vec<String> {
        match self {
            RunMemo::Off | RunMemo::Run => Vec::new(),
            RunMemo::Kept(keeper) => keeper.finish(),
        }
    }
}
