//! Says that something is still going on where it takes longer than people expect.
//!
//! Layer: cli.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{table, tell};

/// The first line comes after this long.
const FIRST: Duration = Duration::from_secs(3);
/// Then one this often.
const EVERY: Duration = Duration::from_secs(15);

/// Tells lines on standard error until it is dropped.
pub(super) struct Patience {
    /// Its end ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Patience {
    /// Begins to wait for `what`, as in "still planning the experiments"; with `quiet` it tells nothing.
    pub(super) fn with(what: &'static str, quiet: bool) -> Patience {
        if quiet {
            return Patience { alive: None, thread: None };
        }
        let (alive, dead) = channel::<()>();
        let thread = std::thread::Builder::new().name("patience".into()).spawn(move || {
            let start = Instant::now();
            let mut wait = FIRST;
            while dead.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                tell(&format!("still {what}: {} so far", table::seconds(start.elapsed().as_secs_f64())));
                wait = EVERY;
            }
        });
        // Without a thread nothing is told.
        Patience { alive: Some(alive), thread: thread.ok() }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // It tells lines and nothing else.
            let _ = thread.join();
        }
    }
}
