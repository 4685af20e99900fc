//! Prints progress of planning if it takes longer than people expect.
//!
//! Layer: cli.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{table, tell};
use hyperfold_base::budget;
use hyperfold_session::PlanProgress;

/// Time until the first line.
const FIRST: Duration = Duration::from_millis(900);
/// Time between later lines: at first, and afterwards.
const EVERY: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(15)];
/// Number of lines to which the first interval applies.
const AT_FIRST: usize = 3;

/// Prints lines on standard error until it is dropped.
pub(super) struct Patience {
    /// Dropping it ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Patience {
    /// Starts to wait for a plan. With `quiet` it prints nothing.
    pub(super) fn with(progress: &PlanProgress, quiet: bool) -> Patience {
        if quiet {
            return Patience { alive: None, thread: None };
        }
        let (alive, dead) = channel::<()>();
        let progress = progress.clone();
        let thread = std::thread::Builder::new().name("patience".into()).spawn(move || {
            let start = Instant::now();
            let (mut wait, mut lines) = (FIRST, 0);
            while dead.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                tell(&line(progress.planned(), budget::current_work(), start.elapsed().as_secs_f64()));
                lines += 1;
                wait = EVERY[usize::from(lines > AT_FIRST)];
            }
        });
        // Without a thread, nothing is printed.
        Patience { alive: Some(alive), thread: thread.ok() }
    }
}

/// Text of a line, from the planned and all experiments, the current work, and the elapsed seconds.
fn line((planned, total): (u64, u64), made: &str, seconds: f64) -> String {
    let far = if total > 1 { format!("{planned} of {total} done, ") } else { String::new() };
    let now = if made.is_empty() { String::new() } else { format!("now {made}, ") };
    format!("still planning the experiments: {far}{now}{} so far", table::seconds(seconds))
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is ignored, because it only prints lines.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_line_says_how_far_it_is() {
        let text = line((3, 12), "tables", 18.0);
        assert_eq!(text, "still planning the experiments: 3 of 12 done, now tables, 18.0 s so far");
        assert_eq!(line((0, 1), "", 3.0), "still planning the experiments: 3.0 s so far");
    }
}
