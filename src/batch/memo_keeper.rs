//! Keeps the memo of a run on disk while the run goes on: a thread of its own adds what was learnt every now and then, so that a run that is killed loses little.
//!
//! Layer: batch. The run never waits for it; its end waits a moment.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::memo_store::MemoStore;
use crate::budget;
use crate::engine::fold::Memo;

/// Between additions: what a killed run loses at most.
const EVERY: Duration = Duration::from_secs(20);
/// How long an addition waits for other processes; what was not added now is added next time.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the last one waits.
const LAST_PATIENCE: Duration = Duration::from_secs(20);

/// Share of the memory that may be used which a memo may take (our choice).
const SHARE: u64 = 8;

/// Bytes that a memo may have in memory.
pub fn most_in_memory() -> u64 {
    budget::total() / SHARE
}

/// A run's memo, and its place on disk.
pub struct MemoKeeper {
    memo: Arc<Memo>,
    store: Arc<MemoStore>,
    /// Dropped to stop the thread.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl MemoKeeper {
    /// Opens the memo at `path`, a file or a folder. `limit`: bytes that it may have.
    pub fn start(path: &Path, limit: u64) -> MemoKeeper {
        let store = Arc::new(MemoStore::open(path, limit));
        let backing = Arc::clone(&store) as Arc<dyn crate::engine::fold::BackingStore>;
        let memo = Arc::new(Memo::on(backing).at_most(most_in_memory()));
        let (running, stopped) = mpsc::channel();
        let (of_thread, on_disk) = (Arc::clone(&memo), Arc::clone(&store));
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                on_disk.publish(&of_thread, PATIENCE, false);
            }
        });
        MemoKeeper { memo, store, running, thread }
    }

    /// What an engine is to remember by.
    pub fn memo(&self) -> Arc<Memo> {
        Arc::clone(&self.memo)
    }

    /// Adds what is left, and says what the user should know.
    pub fn finish(self) -> Vec<String> {
        drop(self.running);
        let mut warnings = Vec::new();
        if self.thread.join().is_err() {
            warnings.push(format!(
                "memo {}: internal error, please report: the thread that keeps it has stopped",
                self.store.path().display()
            ));
        }
        self.store.publish(&self.memo, LAST_PATIENCE, true);
        warnings.extend(self.store.warnings());
        warnings
    }
}
