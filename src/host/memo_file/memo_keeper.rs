//! Keeps the memo of a run on disk while the run goes on. A thread adds new records from time to time, so that a killed run loses little.
//!
//! Layer: host. The run never waits for it; its end waits a moment.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::memo_file::memo_store::MemoStore;
use hyperfold_base::budget;
use hyperfold_fold::Memo;

/// Time between additions: a killed run loses at most what it learnt in this time.
const EVERY: Duration = Duration::from_secs(20);
/// How long an addition waits for other processes. What is not added now is added next time.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the last addition waits.
const LAST_PATIENCE: Duration = Duration::from_secs(20);

/// A memo may take at most 1 / `SHARE` of the memory budget (our choice).
const SHARE: u64 = 8;

/// Bytes that a memo may take in memory.
pub fn max_in_memory() -> u64 {
    budget::total() / SHARE
}

/// A run's memo, and its store on disk.
pub struct MemoKeeper {
    memo: Arc<Memo>,
    store: Arc<MemoStore>,
    /// Dropped to stop the thread.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl MemoKeeper {
    /// Opens the memo at `path`, a file or a folder. `limit`: bytes that the file may have.
    pub fn start(path: &Path, limit: u64) -> MemoKeeper {
        let store = Arc::new(MemoStore::open(path, limit));
        let backing = Arc::clone(&store) as Arc<dyn hyperfold_fold::BackingStore>;
        let memo = Arc::new(Memo::on(backing).at_most(max_in_memory()));
        let (running, stopped) = mpsc::channel();
        let (thread_memo, thread_store) = (Arc::clone(&memo), Arc::clone(&store));
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                thread_store.publish(&thread_memo, PATIENCE, false);
            }
        });
        MemoKeeper { memo, store, running, thread }
    }

    /// Returns the memo for the engine to use.
    pub fn memo(&self) -> Arc<Memo> {
        Arc::clone(&self.memo)
    }

    /// Adds what is left, and returns warnings for the user.
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
