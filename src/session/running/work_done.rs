//! Measures how much of a run's work is done, by packets and tasks rather than by how many experiments have ended.
//!
//! Layer: session. Counts; measures no time except between its reports.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::running::update::Update;

/// Time between reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Work of every experiment besides its packets and tasks, in packet-hops: preparing and writing it. Our choice: about a millisecond.
const WORK_AN_EXPERIMENT: u64 = 8_000;
/// Work of a task, in packet-hops: 1.5 µs over 0.125 µs.
const HOPS_A_TASK: u64 = 12;

/// Returns the work of an experiment, in packet-hops.
pub(crate) fn work_of(packet_hops: u64, tasks: u64) -> u64 {
    packet_hops.saturating_add(tasks.saturating_mul(HOPS_A_TASK)).saturating_add(WORK_AN_EXPERIMENT)
}

/// An experiment that has not ended.
#[derive(Clone, Copy, Debug)]
struct OpenWork {
    work: u64,
    class: u64,
}

/// Work that has ended, and the seconds that it took.
#[derive(Clone, Copy, Debug, Default)]
struct EndedWork {
    work: u64,
    seconds: f64,
}

impl EndedWork {
    fn add(&mut self, work: u64, seconds: f64) {
        self.work += work;
        self.seconds += seconds;
    }

    /// Seconds that `work` takes at the same speed. `None`: nothing has ended.
    fn seconds_of(&self, work: u64) -> Option<f64> {
        (self.work > 0).then(|| self.seconds * work as f64 / self.work as f64)
    }
}

/// The progress of a run.
pub(crate) struct WorkDone {
    open: HashMap<u64, OpenWork>,
    /// For open experiments that run, the packet-hops that are done.
    running: HashMap<u64, u64>,
    total: u64,
    ended: EndedWork,
    /// Work that has ended, by class.
    ended_by_class: HashMap<u64, EndedWork>,
    reported: Option<Instant>,
    /// Largest share of the work that a report gave.
    share_reported: f64,
}

impl WorkDone {
    /// Creates the progress of a run from (experiment id, (work, class)). Within a class, equal work takes about equal time.
    pub(crate) fn new(experiments: impl Iterator<Item = (u64, (u64, u64))>) -> WorkDone {
        let open: HashMap<u64, OpenWork> =
            experiments.map(|(id, (work, class))| (id, OpenWork { work, class })).collect();
        let total = open.values().map(|open| open.work).sum();
        WorkDone {
            open,
            running: HashMap::new(),
            total,
            ended: EndedWork::default(),
            ended_by_class: HashMap::new(),
            reported: None,
            share_reported: 0.0,
        }
    }

    /// Records the packet-hops that are done, by experiment id.
    pub(crate) fn runs(&mut self, packet_hops: Vec<(u64, u64)>) {
        self.running.extend(packet_hops);
    }

    /// Records that an experiment has ended after so many seconds.
    pub(crate) fn ends(&mut self, exp_id: u64, seconds: f64) {
        self.running.remove(&exp_id);
        if let Some(OpenWork { work, class }) = self.open.remove(&exp_id) {
            self.ended.add(work, seconds);
            self.ended_by_class.entry(class).or_default().add(work, seconds);
        }
    }

    /// Returns the work that is done, and all work, in microseconds of one thread. Speeds are those of experiments of the same class that have ended. Before
    /// any has ended, work is in packet-hops.
    pub(crate) fn done(&self) -> (u64, u64) {
        // Packets that are sent again may exceed the expected work.
        let running = || {
            let done_of = |(id, &hops): (&u64, &u64)| {
                self.open.get(id).map(|&open| OpenWork { work: hops.min(open.work), ..open })
            };
            self.running.iter().filter_map(done_of)
        };
        let seconds = |open: OpenWork| {
            let class_seconds = self.ended_by_class.get(&open.class).and_then(|ended| ended.seconds_of(open.work));
            class_seconds.or_else(|| self.ended.seconds_of(open.work)).unwrap_or_default()
        };
        if self.ended.seconds <= 0.0 {
            return (self.ended.work + running().map(|open| open.work).sum::<u64>(), self.total);
        }
        let done = self.ended.seconds + running().map(seconds).sum::<f64>();
        let total = self.ended.seconds + self.open.values().map(|&open| seconds(open)).sum::<f64>();
        let micros = |seconds: f64| (seconds * 1e6).round() as u64;
        (micros(done), micros(total))
    }

    /// Returns a report, if one is due.
    pub(crate) fn report(&mut self) -> Option<Update> {
        if self.reported.is_some_and(|instant| instant.elapsed() < REPORT_EVERY) {
            return None;
        }
        self.reported = Some(Instant::now());
        let (done, total) = self.done_at_least_as_reported();
        Some(Update::Progress { done, total })
    }

    /// Returns what [`WorkDone::done`] does, but never a smaller share than before. Estimates of the rest may grow, and an experiment that starts over loses
    /// its progress, but a progress bar must not go back.
    fn done_at_least_as_reported(&mut self) -> (u64, u64) {
        let (done, total) = self.done();
        let held = (self.share_reported * total as f64) as u64;
        let done = done.max(held).min(total);
        if total > 0 {
            self.share_reported = self.share_reported.max(done as f64 / total as f64);
        }
        (done, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_experiment_counts_by_its_work() {
        let mut work = WorkDone::new([(1, (10, 0)), (2, (10, 0)), (3, (980, 0))].into_iter());
        work.runs(vec![(3, 490)]);
        assert_eq!(work.done(), (490, 1000));
        // Packets that are sent again exceed the expected work.
        work.runs(vec![(3, 5000)]);
        assert_eq!(work.done(), (980, 1000));
        work.ends(1, 1.0);
        work.ends(2, 1.0);
        work.runs(vec![(3, 490)]);
        assert_eq!(work.done(), (51_000_000, 100_000_000));
        work.ends(3, 60.0);
        assert_eq!(work.done(), (62_000_000, 62_000_000));
    }

    #[test]
    fn work_that_folds_counts_less_once_one_like_it_has_ended() {
        let experiment = |id: u64| (id, (1000, u64::from(id > 2)));
        let mut work = WorkDone::new((1..=4).map(experiment));
        // Nothing of the other class has ended yet: it is assumed to be like this one.
        work.ends(1, 10.0);
        assert_eq!(work.done(), (10_000_000, 40_000_000));
        work.ends(3, 1.0);
        assert_eq!(work.done(), (11_000_000, 22_000_000));
        work.runs(vec![(4, 500)]);
        assert_eq!(work.done(), (11_500_000, 22_000_000));
    }

    #[test]
    fn the_share_never_goes_back() {
        let mut work = WorkDone::new([(1, (1000, 0)), (2, (1000, 1))].into_iter());
        assert_eq!(work.done_at_least_as_reported(), (0, 2000));
        work.runs(vec![(1, 900)]);
        assert_eq!(work.done_at_least_as_reported(), (900, 2000));
        // It starts over.
        work.runs(vec![(1, 10)]);
        assert_eq!(work.done_at_least_as_reported(), (900, 2000));
        work.ends(1, 1.0);
        let (done, total) = work.done_at_least_as_reported();
        assert!(done as f64 / total as f64 >= 0.45, "{done} of {total}");
    }

    #[test]
    fn reports_are_not_more_often_than_people_read() {
        let mut work = WorkDone::new([(1, (10, 0))].into_iter());
        assert!(matches!(work.report(), Some(Update::Progress { done: 0, total: 10 })));
        work.ends(1, 0.5);
        assert!(work.report().is_none());
    }
}
