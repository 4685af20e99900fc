//! Group commit: appended records reach the disk within a fraction of a second, not one by one.
//!
//! Layer: results. A write already survives the process; this protects against a failure of the machine. One thread beside the run flushes, so that a slow disk
//! delays no simulation. Writes nothing itself.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time from the first append to the flush. With the flush's own time it stays under 200 ms on a healthy disk.
const INTERVAL: Duration = Duration::from_millis(100);

/// Flushes a file that others append to.
pub(super) struct GroupCommit {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether something was appended since the last flush began.
    dirty: bool,
    closing: bool,
    failed: Option<io::Error>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl GroupCommit {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn new(file: File) -> io::Result<GroupCommit> {
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || flush_until_closed(&file, &thread_shared))?;
        Ok(GroupCommit { shared, thread: Some(thread) })
    }

    /// Records that something was appended.
    ///
    /// # Errors
    /// An earlier flush failed, so earlier records may not be on the disk.
    pub(super) fn appended(&self) -> io::Result<()> {
        let mut state = self.shared.state();
        if !state.dirty {
            state.dirty = true;
            self.shared.changed.notify_one();
        }
        state.failed.take().map_or(Ok(()), Err)
    }

    /// Flushes the rest and ends the thread.
    ///
    /// # Errors
    /// A flush failed.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.join();
        self.shared.state().failed.take().map_or(Ok(()), Err)
    }

    fn join(&mut self) {
        self.shared.state().closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread does not panic");
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.join();
        }
    }
}

fn flush_until_closed(file: &File, shared: &Shared) {
    loop {
        let waiting = shared
            .changed
            .wait_while(shared.state(), |s| !s.dirty && !s.closing)
            .expect("no holder of this lock panics");
        // More appends join the group during this wait; closing ends it early.
        let mut state = shared
            .changed
            .wait_timeout_while(waiting, INTERVAL, |s| !s.closing)
            .expect("no holder of this lock panics")
            .0;
        let (dirty, closing) = (std::mem::take(&mut state.dirty), state.closing);
        drop(state);
        if dirty && let Err(error) = file.sync_data() {
            shared.state().failed.get_or_insert(error);
        }
        if closing {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Instant;

    #[test]
    fn appends_are_flushed_soon_and_closing_waits_for_no_interval() {
        let mut file = tempfile::tempfile().unwrap();
        let commit = GroupCommit::new(file.try_clone().unwrap()).unwrap();
        for _ in 0..3 {
            file.write_all(b"x").unwrap();
            commit.appended().unwrap();
        }
        let start = Instant::now();
        while commit.shared.state().dirty && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!commit.shared.state().dirty, "nothing flushed it");
        commit.appended().unwrap();
        commit.close().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_flush_that_fails_is_told() {
        // A pipe cannot be flushed.
        let (_reader, writer) = std::io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let commit = GroupCommit::new(file).unwrap();
        commit.appended().unwrap();
        assert!(commit.close().is_err());
    }
}
