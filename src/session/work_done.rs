//! How much of a run's work is done, by what its experiments are made of rather than by how many have ended.
//!
//! Layer: session. Counts; measures no time but that between its reports.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::update::Update;

/// Time between reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// What every experiment counts beside its packets and tasks: preparing and writing it. Our choice: about a millisecond.
const WORK_AN_EXPERIMENT: u64 = 8_000;
/// A task in packet-hops: 1.5 µs over 0.125 µs.
const HOPS_A_TASK: u64 = 12;

/// The work of an experiment, in packet-hops.
pub(crate) fn work_of(packet_hops: u64, tasks: u64) -> u64 {
    packet_hops.saturating_add(tasks.saturating_mul(HOPS_A_TASK)).saturating_add(WORK_AN_EXPERIMENT)
}

/// The work of a run.
pub(crate) struct WorkDone {
    /// Of each experiment that has not ended.
    open: HashMap<u64, u64>,
    /// Of these, what is done of those that run.
    running: HashMap<u64, u64>,
    total: u64,
    ended: u64,
    reported: Option<Instant>,
}

impl WorkDone {
    /// For experiments with so much work each.
    pub(crate) fn new(experiments: impl Iterator<Item = (u64, u64)>) -> WorkDone {
        let open: HashMap<u64, u64> = experiments.collect();
        let total = open.values().sum();
        WorkDone { open, running: HashMap::new(), total, ended: 0, reported: None }
    }

    /// So many packet-hops of these experiments are done.
    pub(crate) fn runs(&mut self, packet_hops: Vec<(u64, u64)>) {
        self.running.extend(packet_hops);
    }

    /// An experiment has ended.
    pub(crate) fn ends(&mut self, exp_id: u64) {
        self.running.remove(&exp_id);
        self.ended += self.open.remove(&exp_id).unwrap_or(0);
    }

    /// Work that is done, and all there is.
    pub(crate) fn done(&self) -> (u64, u64) {
        // Packets that are sent again are more than were counted on.
        let of_running: u64 =
            self.running.iter().map(|(id, &hops)| self.open.get(id).map_or(0, |&work| hops.min(work))).sum();
        (self.ended + of_running, self.total)
    }

    /// A report, if one is due.
    pub(crate) fn report(&mut self) -> Option<Update> {
        if self.reported.is_some_and(|at| at.elapsed() < REPORT_EVERY) {
            return None;
        }
        self.reported = Some(Instant::now());
        let (done, total) = self.done();
        Some(Update::Progress { done, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_experiment_counts_by_its_work() {
        let mut work = WorkDone::new([(1, 10), (2, 10), (3, 980)].into_iter());
        work.ends(1);
        work.ends(2);
        assert_eq!(work.done(), (20, 1000));
        work.runs(vec![(3, 490)]);
        assert_eq!(work.done(), (510, 1000));
        // What was sent again was not counted on.
        work.runs(vec![(3, 5000)]);
        assert_eq!(work.done(), (1000, 1000));
        work.ends(3);
        assert_eq!(work.done(), (1000, 1000));
    }

    #[test]
    fn reports_are_not_more_often_than_people_read() {
        let mut work = WorkDone::new([(1, 10)].into_iter());
        assert!(matches!(work.report(), Some(Update::Progress { done: 0, total: 10 })));
        work.ends(1);
        assert!(work.report().is_none());
    }
}
