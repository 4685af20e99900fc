//! Progress of a run: a bar on a terminal, lines elsewhere, and nothing with `--quiet`.
//!
//! Layer: cli. It is written to standard error, so that standard output has results only.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use hyperfold_results::{ExperimentRecord, Status};

use super::work_left::WorkShare;
use super::{logging, table, tell};

/// Time between lines.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Time without a line after which a line says that the run goes on. The wait doubles, up to `SILENT_AT_MOST`.
const SILENT_FOR: Duration = Duration::from_secs(10);
const SILENT_AT_MOST: Duration = Duration::from_secs(600);
/// Number of failures that are printed; the others are in `failed.csv`.
const FAILURES_TOLD: u64 = 10;

/// Receiver of the progress of a run.
pub trait Progress {
    /// An experiment entered a batch.
    fn started(&mut self, exp_id: u64);
    /// An experiment has its result.
    fn finished(&mut self, record: &ExperimentRecord);
    /// `done` of `total` units of work are done.
    fn work(&mut self, done: u64, total: u64);
    /// A message for the user.
    fn message(&mut self, text: &str);
    /// The run is over, and no further calls follow.
    fn close(&mut self);
}

/// The kind of progress that fits standard error.
pub fn for_terminal(total: u64, quiet: bool) -> Box<dyn Progress + Send> {
    if quiet {
        Box::new(Quiet)
    } else if std::io::stderr().is_terminal() && !logging::is_on() {
        Box::new(Bar::new(total))
    } else {
        Box::new(Lines::new(total))
    }
}

/// Progress with `--quiet`: prints nothing.
struct Quiet;

impl Progress for Quiet {
    fn started(&mut self, _: u64) {}
    fn finished(&mut self, _: &ExperimentRecord) {}
    fn work(&mut self, _: u64, _: u64) {}
    fn message(&mut self, _: &str) {}
    fn close(&mut self) {}
}

/// Prints the first failures, and that there are more.
#[derive(Default)]
struct Failures {
    seen: u64,
    /// Notes that were printed before the run. A failure whose reason is in a note is not printed again.
    notes: String,
    told: u64,
}

impl Failures {
    fn note(&mut self, text: &str) {
        if text.starts_with("note: ") {
            self.notes.push_str(text);
            self.notes.push('\n');
        }
    }

    fn line(&mut self, record: &ExperimentRecord) -> Option<String> {
        if record.status != Status::Failed {
            return None;
        }
        self.seen += 1;
        if !record.error.is_empty() && self.notes.contains(&record.error) {
            return None;
        }
        self.told += 1;
        match self.told {
            n if n <= FAILURES_TOLD => Some(format!("experiment {} failed: {}", record.exp_id, record.error)),
            n if n == FAILURES_TOLD + 1 => Some("more experiments failed; failed.csv lists them all".into()),
            _ => None,
        }
    }
}

struct Bar {
    bar: ProgressBar,
    counts: Counts,
}

/// Number of steps of the bar. It shows work, or experiments if no work is reported.
const BAR_STEPS: u64 = 10_000;

impl Bar {
    fn new(total: u64) -> Bar {
        let bar = ProgressBar::new(BAR_STEPS);
        let style = "{bar:30} {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is constant and tested"));
        bar.enable_steady_tick(Duration::from_millis(200));
        let bar = Bar { bar, counts: Counts::new(total) };
        bar.show();
        bar
    }

    fn show(&self) {
        self.bar.set_position((self.counts.share() * BAR_STEPS as f64) as u64);
        self.bar.set_message(self.counts.line());
    }
}

impl Progress for Bar {
    fn started(&mut self, _: u64) {
        self.counts.running += 1;
    }

    fn finished(&mut self, record: &ExperimentRecord) {
        if let Some(line) = self.counts.finished(record) {
            self.bar.suspend(|| tell(&line));
        }
        self.show();
    }

    fn work(&mut self, done: u64, total: u64) {
        self.counts.works(done, total);
        self.show();
    }

    fn message(&mut self, text: &str) {
        self.counts.failures.note(text);
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
    /// Experiments of batches that have begun and not ended. They take turns on the threads, so there may be more than threads.
    running: u64,
    start: Instant,
    last: Instant,
    failures: Failures,
    /// Share of the work that is done, and when it was last reported.
    work: WorkShare,
    heard: Instant,
}

impl Lines {
    fn new(total: u64) -> Lines {
        let counts = Arc::new(Mutex::new(Counts::new(total)));
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

/// Locks the counts. After a panic of another thread they are used as they are; at worst, a line is missing.
fn locked(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counts {
    fn new(total: u64) -> Counts {
        let now = Instant::now();
        Counts {
            total,
            done: 0,
            running: 0,
            start: now,
            last: now,
            failures: Failures::default(),
            work: WorkShare::default(),
            heard: now,
        }
    }

    /// Counts an experiment that has ended. Returns a line if it is to be printed.
    fn finished(&mut self, record: &ExperimentRecord) -> Option<String> {
        self.done += 1;
        self.running = self.running.saturating_sub(1);
        self.failures.line(record)
    }

    fn works(&mut self, done: u64, total: u64) {
        (self.work, self.heard) = (WorkShare { done, total }, Instant::now());
    }

    /// Share that is done: of the work, or of the experiments if no work was reported.
    fn share(&self) -> f64 {
        if self.work.total > 0 { self.work.share() } else { self.done as f64 / self.total.max(1) as f64 }
    }

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
        let running = if self.running > 0 { format!(", {} under way", self.running) } else { String::new() };
        // The time left is computed as of the last report of work, and then reduced by the time since.
        let heard = self.heard.duration_since(self.start).as_secs_f64();
        let left = self.work.seconds_left(heard).map(|left| (left - (elapsed - heard)).max(0.0));
        // Less than a second is not shown, because writing, for example, is not part of the work.
        let left = left.filter(|left| *left >= 1.0);
        let left = left.map(|left| format!(", about {} left", table::seconds(left))).unwrap_or_default();
        let work = if self.work.total > 0 { format!(", {}", self.work.percent()) } else { String::new() };
        format!(
            "{}/{} experiments finished{work}{failed}{running}, {} elapsed{left}",
            self.done,
            self.total,
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
        if let Some(line) = counts.finished(record) {
            tell(&line);
        }
        if counts.last.elapsed() >= LINE_EVERY && counts.done < counts.total {
            counts.tell();
        }
    }

    fn work(&mut self, done: u64, total: u64) {
        locked(&self.counts).works(done, total);
    }

    fn message(&mut self, text: &str) {
        locked(&self.counts).failures.note(text);
        tell(text);
    }

    fn close(&mut self) {
        if let Some((alive, thread)) = self.alive.take() {
            drop(alive);
            // A panic of the thread is ignored, because it only prints lines.
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
    fn failures_that_a_note_told_are_not_told_again() {
        let mut failures = Failures::default();
        failures.note("note: 2 experiments cannot run: all 2; there is no such rank");
        assert_eq!(failures.line(&record(0).failed("there is no such rank")), None);
        assert_eq!(failures.line(&record(1).failed("limit")).as_deref(), Some("experiment 1 failed: limit"));
        assert_eq!(failures.seen, 2);
    }

    #[test]
    fn time_left_goes_by_work_and_not_by_experiments() {
        let mut counts = Counts::new(48);
        // Forty of 48 experiments have ended in 100 s, with a tenth of the work.
        counts.done = 40;
        counts.start = Instant::now().checked_sub(Duration::from_secs(100)).expect("this machine runs for longer");
        counts.works(10, 100);
        assert!(counts.line().contains("about 15 min"), "{}", counts.line());
    }

    #[test]
    fn bars_and_lines_count() {
        let mut bar = Bar::new(3);
        bar.finished(&record(0));
        assert_eq!(bar.bar.position(), BAR_STEPS / 3);
        bar.work(1, 4);
        assert_eq!(bar.bar.position(), BAR_STEPS / 4);
        assert!(bar.bar.message().starts_with("1/3 experiments finished, 25 % of the work, "), "{}", bar.bar.message());
        let mut lines = Lines::new(3);
        lines.started(0);
        lines.started(1);
        lines.finished(&record(0));
        let counts = Arc::clone(&lines.counts);
        let line = || locked(&counts).line();
        assert!(line().starts_with("1/3 experiments finished, 1 under way, "), "{}", line());
        assert!(!line().contains("left"), "of the work nothing is known: {}", line());
        lines.work(30, 100);
        assert!(line().contains("30 % of the work") && !line().contains("left"), "less than a second: {}", line());
        locked(&counts).start =
            Instant::now().checked_sub(Duration::from_secs(10)).expect("this machine runs for longer");
        lines.work(30, 100);
        assert!(line().contains("30 % of the work") && line().contains("about 23.3 s left"), "{}", line());
        assert!(!locked(&Lines::new(3).counts).line().contains("left"), "nothing can be said yet");
    }
}
