//! Progress of a run: a bar on a terminal, plain lines elsewhere, nothing with `--quiet`.
//!
//! Layer: cli. All of it goes to standard error, so that standard output stays the results' own.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::results::{ExperimentRecord, Status};

use super::{logging, table, tell};

/// Time between plain lines.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Time without a line after which one says that the run goes on, at first; the wait doubles.
const SILENT_FOR: Duration = Duration::from_secs(10);
const SILENT_AT_MOST: Duration = Duration::from_secs(600);
/// Failures told one by one; the rest are in `failed.csv`.
const FAILURES_TOLD: u64 = 10;

/// Who is told how a run goes.
pub trait Progress {
    /// An experiment entered a batch.
    fn started(&mut self, exp_id: u64);
    /// An experiment has its result.
    fn finished(&mut self, record: &ExperimentRecord);
    /// Something worth a line.
    fn message(&mut self, text: &str);
    /// The run is over; nothing follows.
    fn close(&mut self);
}

/// The progress that fits where standard error goes.
pub fn for_terminal(total: u64, quiet: bool) -> Box<dyn Progress + Send> {
    if quiet {
        Box::new(Quiet)
    } else if std::io::stderr().is_terminal() && !logging::is_on() {
        Box::new(Bar::new(total))
    } else {
        Box::new(Lines::new(total))
    }
}

/// `--quiet`.
struct Quiet;

impl Progress for Quiet {
    fn started(&mut self, _: u64) {}
    fn finished(&mut self, _: &ExperimentRecord) {}
    fn message(&mut self, _: &str) {}
    fn close(&mut self) {}
}

/// Tells the first failures, and that there are more.
#[derive(Default)]
struct Failures {
    seen: u64,
}

impl Failures {
    fn line(&mut self, record: &ExperimentRecord) -> Option<String> {
        if record.status != Status::Failed {
            return None;
        }
        self.seen += 1;
        match self.seen {
            n if n <= FAILURES_TOLD => Some(format!("experiment {} failed: {}", record.exp_id, record.error)),
            n if n == FAILURES_TOLD + 1 => Some("more experiments failed; failed.csv lists them all".into()),
            _ => None,
        }
    }
}

struct Bar {
    bar: ProgressBar,
    failures: Failures,
}

impl Bar {
    fn new(total: u64) -> Bar {
        let bar = ProgressBar::new(total);
        let style = "{bar:30} {pos}/{len} experiments, {elapsed} elapsed, {eta} left {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is constant and tested"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar, failures: Failures::default() }
    }
}

impl Progress for Bar {
    fn started(&mut self, _: u64) {}

    fn finished(&mut self, record: &ExperimentRecord) {
        self.bar.inc(1);
        if let Some(line) = self.failures.line(record) {
            self.bar.suspend(|| tell(&line));
            self.bar.set_message(format!("({} failed)", self.failures.seen));
        }
    }

    fn message(&mut self, text: &str) {
        self.bar.suspend(|| tell(text));
    }

    fn close(&mut self) {
        self.bar.finish_and_clear();
    }
}

struct Lines {
    counts: Arc<Mutex<Counts>>,
    /// Dropped to stop the thread that says that the run is alive.
    alive: Option<(Sender<()>, JoinHandle<()>)>,
}

struct Counts {
    total: u64,
    done: u64,
    running: u64,
    start: Instant,
    last: Instant,
    failures: Failures,
}

impl Lines {
    fn new(total: u64) -> Lines {
        let now = Instant::now();
        let counts = Counts { total, done: 0, running: 0, start: now, last: now, failures: Failures::default() };
        let counts = Arc::new(Mutex::new(counts));
        let (alive, stopped) = mpsc::channel();
        let of_thread = Arc::clone(&counts);
        let thread = thread::spawn(move || {
            let mut wait = SILENT_FOR;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let mut counts = locked(&of_thread);
                if counts.last.elapsed() >= wait {
                    counts.tell();
                    wait = (2 * wait).min(SILENT_AT_MOST);
                }
            }
        });
        Lines { counts, alive: Some((alive, thread)) }
    }
}

/// The counts. A thread that panicked with them in its hands has at worst told a line less.
fn locked(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counts {
    fn tell(&mut self) {
        tell(&self.line());
        self.last = Instant::now();
    }

    fn line(&self) -> String {
        let elapsed = self.start.elapsed().as_secs_f64();
        let failed = match self.failures.seen {
            0 => String::new(),
            n => format!(", {n} failed"),
        };
        let left = match self.done {
            // Of what nothing has been seen nothing can be said.
            0 => String::new(),
            n => format!(", about {} left", table::seconds(elapsed / n as f64 * self.total.saturating_sub(n) as f64)),
        };
        format!(
            "{}/{} experiments finished{failed}, {} running, {} elapsed{left}",
            self.done,
            self.total,
            self.running,
            table::seconds(elapsed)
        )
    }
}

impl Progress for Lines {
    fn started(&mut self, _: u64) {
        locked(&self.counts).running += 1;
    }

    fn finished(&mut self, record: &ExperimentRecord) {
        let mut counts = locked(&self.counts);
        counts.done += 1;
        counts.running = counts.running.saturating_sub(1);
        if let Some(line) = counts.failures.line(record) {
            tell(&line);
        }
        if counts.last.elapsed() >= LINE_EVERY && counts.done < counts.total {
            counts.tell();
        }
    }

    fn message(&mut self, text: &str) {
        tell(text);
    }

    fn close(&mut self) {
        if let Some((alive, thread)) = self.alive.take() {
            drop(alive);
            // It tells lines and nothing else; one that panicked has told fewer.
            let _ = thread.join();
        }
        let counts = locked(&self.counts);
        if counts.total == 0 {
            return;
        }
        let elapsed = table::seconds(counts.start.elapsed().as_secs_f64());
        tell(&format!("{}/{} experiments finished in {elapsed}", counts.done, counts.total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(exp_id: u64) -> ExperimentRecord {
        ExperimentRecord::new(exp_id, "c".into(), "e".into(), 0, 1, Vec::new())
    }

    #[test]
    fn failures_are_told_but_not_without_end() {
        let mut failures = Failures::default();
        assert_eq!(failures.line(&record(0)), None);
        let told: Vec<String> = (0..50).filter_map(|id| failures.line(&record(id).failed("why"))).collect();
        assert_eq!(told.len(), 11);
        assert_eq!(told[0], "experiment 0 failed: why");
        assert!(told[10].contains("failed.csv"));
    }

    #[test]
    fn bars_and_lines_count() {
        let mut bar = Bar::new(3);
        bar.finished(&record(0));
        assert_eq!(bar.bar.position(), 1);
        let mut lines = Lines::new(3);
        lines.started(0);
        lines.started(1);
        lines.finished(&record(0));
        let line = || locked(&lines.counts).line();
        assert!(line().starts_with("1/3 experiments finished, 1 running, ") && line().contains("left"), "{}", line());
        assert!(!locked(&Lines::new(3).counts).line().contains("left"), "nothing can be said yet");
    }
}
