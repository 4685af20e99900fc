//! Estimates the time of a whole experiment from simulating it for a moment.
//!
//! Two things take time: packet-hops that are simulated, and everything else, which is proportional to tasks. How many of the remaining packet-hops will be
//! simulated is estimated from the same experiment with coarse packets, which gets further. The estimate is scaled by what both simulated in the part that both
//! have seen.
//!
//! Layer: session. Arithmetic over counts that [`crate::planning::probe`] took.

use std::fmt::{self, Display, Formatter};

/// Assumed packet-hops per second, if a moment simulated too few to measure it.
const PACKET_HOPS_PER_S: f64 = 8e6;
/// Packet-hops up to which a measured speed means nothing (our choice).
const FEW_HOPS: f64 = 100_000.0;
/// Coarse packets need more of a phase to become steady, and repeat as often. So the simulated share of the rest is at least this part of the share with coarse
/// packets (our choice).
const MIN_OF_COARSE: f64 = 0.25;
/// An experiment has started over if its progress falls below this share of the progress before (our choice).
const STARTS_OVER: f64 = 0.5;

/// Progress at one moment of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// Packet-hops that are done, simulated or not, as a share of all.
    pub(crate) done: f64,
    pub(crate) simulated: f64,
    /// Tasks and flows that are done, as a share of all.
    pub(crate) tasks: f64,
    /// Seconds since it was prepared.
    pub(crate) seconds: f64,
    pub(crate) simulating: f64,
}

/// Counts of an experiment that was simulated for a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeMoment {
    /// All packet-hops, if each is simulated once; 0 at flow level.
    all: f64,
    preparing: f64,
    counts: Vec<Count>,
    ended: bool,
}

impl ProbeMoment {
    /// Creates the counts of an experiment with `all` packet-hops that was prepared in `preparing` seconds.
    pub(crate) fn of(all: u64, preparing: f64) -> ProbeMoment {
        ProbeMoment { all: all as f64, preparing, ..ProbeMoment::default() }
    }

    pub(crate) fn note(&mut self, count: Count) {
        // Looked-up packets may be counted only at the end, and some packets are sent again, so the count may exceed 1.
        self.counts.push(Count { done: count.done.min(1.0), ..count });
    }

    /// Records that the experiment has ended.
    pub(crate) fn ends(&mut self) {
        self.ended = true;
    }

    /// Whether the whole experiment was simulated.
    pub(crate) fn is_whole(&self) -> bool {
        self.ended
    }

    fn last(&self) -> Count {
        self.counts.last().copied().unwrap_or_default()
    }

    /// Returns the index of the first count after the experiment last started over; 0 if it never did.
    fn start(&self) -> usize {
        let falls = |i: &usize| self.counts[*i].done < STARTS_OVER * self.counts[*i - 1].done;
        (1..self.counts.len()).rev().find(falls).unwrap_or(0)
    }

    /// Estimates the seconds of one thread for the whole experiment, from its beginning and from the same experiment with coarse packets.
    pub(crate) fn forecast(&self, coarse: Option<&ProbeMoment>) -> f64 {
        let last = self.last();
        if self.ended {
            return self.preparing + last.seconds;
        }
        let simulated = last.simulated + self.simulated_later(coarse);
        let speed = if last.simulated * self.all < FEW_HOPS || last.simulating <= 0.0 {
            PACKET_HOPS_PER_S
        } else {
            last.simulated * self.all / last.simulating
        };
        self.preparing + simulated * self.all / speed + self.other(coarse)
    }

    /// Estimates the seconds of all work that is not simulation.
    fn other(&self, coarse: Option<&ProbeMoment>) -> f64 {
        let tasks_and_seconds = |moment: &ProbeMoment| {
            let Count { tasks, seconds, simulating, .. } = moment.last();
            let tasks = if moment.ended { 1.0 } else { tasks };
            (tasks, (seconds - simulating).max(0.0) / tasks.max(1e-6))
        };
        // The number of tasks does not depend on the length of packets.
        let (own, coarse) = (tasks_and_seconds(self), coarse.map(tasks_and_seconds).unwrap_or_default());
        if coarse.0 > own.0 { coarse.1 } else { own.1 }
    }

    /// Estimates the share of packet-hops that will be simulated after the moment.
    fn simulated_later(&self, coarse: Option<&ProbeMoment>) -> f64 {
        let (last, start) = (self.last(), self.start());
        let left = 1.0 - last.done;
        let Some(coarse) = coarse else { return left * self.recent_share() };
        let first = if start > 0 { coarse.start() } else { 0 };
        let seen = coarse.counts[first..].iter().find(|count| count.done >= last.done);
        let Some(seen) = seen else { return left * self.recent_share() };
        let end = coarse.last();
        let unseen = if coarse.ended { 0.0 } else { 1.0 - end.done };
        let later = (end.simulated - seen.simulated).max(0.0) + unseen * coarse.recent_share();
        let ratio = last.simulated / seen.simulated.max(1e-9);
        (later * ratio.clamp(MIN_OF_COARSE, 1.0)).min(2.0)
    }

    /// Share of recent packet-hops that were simulated. Recent means the later half of what is done, or all since it started over.
    fn recent_share(&self) -> f64 {
        let (last, start) = (self.last(), self.start());
        let half = self.counts[start..].iter().rev().find(|count| count.done <= last.done / 2.0);
        let half = half.or(self.counts.get(start)).filter(|half| half.done < last.done);
        let Some(half) = half else { return 1.0 };
        ((last.simulated - half.simulated) / (last.done - half.done)).clamp(0.0, 1.0)
    }
}

/// Formats the counts for the log.
impl Display for ProbeMoment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Count { done, simulated, tasks, seconds, simulating } = self.last();
        write!(
            f,
            "{} of {:.3e}, prepared in {:.2} s: {done:.4} done, {simulated:.4} simulated in {simulating:.2} of {seconds:.2} s, {tasks:.4} of tasks",
            if self.ended { "all" } else { "a part" },
            self.all,
            self.preparing
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(all: f64, counts: &[[f64; 2]], tasks: f64, seconds: f64, simulating: f64) -> ProbeMoment {
        let count =
            |[done, simulated]: &[f64; 2]| Count { done: *done, simulated: *simulated, tasks, seconds, simulating };
        ProbeMoment { all, counts: counts.iter().map(count).collect(), preparing: 0.5, ended: false }
    }

    fn ended(moment: ProbeMoment) -> ProbeMoment {
        ProbeMoment { ended: true, ..moment }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b
    }

    #[test]
    fn a_whole_experiment_is_its_own_estimate() {
        let whole = ended(moment(1e6, &[[0.5, 0.5], [1.0, 0.5]], 1.0, 0.25, 0.2));
        assert!(near(whole.forecast(None), 0.75));
    }

    #[test]
    fn what_repeats_only_later_is_seen_with_coarse_packets() {
        // All of the beginning is simulated, at 20 million a second; of the whole a twentieth.
        let begin = moment(1e9, &[[0.02, 0.02]], 0.1, 1.0, 1.0);
        let coarse = ended(moment(1e7, &[[0.02, 0.02], [1.0, 0.05]], 1.0, 0.5, 0.1));
        assert!(near(begin.forecast(Some(&coarse)), 0.5 + 2.5 + 0.4));
    }

    #[test]
    fn what_collides_only_later_is_seen_with_coarse_packets() {
        // The beginning skips nearly all; later all is simulated.
        let begin = moment(1e9, &[[0.1, 0.1]], 0.1, 5.0, 5.0);
        let coarse = ended(moment(1e7, &[[0.1, 0.1], [1.0, 0.8]], 1.0, 0.5, 0.5));
        assert!(near(begin.forecast(Some(&coarse)), 0.5 + 0.8 / 0.02));
    }

    #[test]
    fn more_is_simulated_with_coarse_packets_where_phases_become_steady() {
        let begin = moment(1e9, &[[0.1, 0.01]], 0.1, 0.5, 0.5);
        let coarse = |later: f64| ended(moment(1e7, &[[0.1, 0.02], [1.0, later]], 1.0, 0.5, 0.5));
        // Half of the share with coarse packets, at 20 million a second.
        assert!(near(begin.forecast(Some(&coarse(0.22))), 0.5 + (0.01 + 0.1) / 0.02));
    }

    #[test]
    fn what_is_left_of_tasks_takes_as_long_as_what_was_done() {
        // Hops are done, and nothing is simulated any more; a tenth of the tasks took 2 s.
        let begin = moment(1e9, &[[0.1, 0.001], [0.9, 0.001]], 0.1, 2.0, 0.0);
        assert!(near(begin.forecast(None), 0.5 + 0.125 + 20.0));
        // Coarse packets come further.
        let coarse = moment(1e7, &[[0.9, 0.001], [0.95, 0.001]], 0.5, 4.0, 0.0);
        assert!(near(begin.forecast(Some(&coarse)), 0.5 + 0.125 + 8.0));
    }

    #[test]
    fn the_later_half_says_what_comes_where_nothing_else_does() {
        let begin = moment(1e9, &[[0.1, 0.1], [0.2, 0.1], [0.4, 0.12]], 0.5, 12.0, 12.0);
        // 0.02 of 0.2, at ten million a second; no time for tasks.
        assert!(near(begin.forecast(None), 0.5 + (0.12 + 0.6 * 0.1) / 0.01));
    }

    #[test]
    fn what_starts_over_counts_from_there() {
        // The first attempt came to 0.6; since then all is simulated.
        let begin = moment(1e9, &[[0.2, 0.1], [0.6, 0.3], [0.01, 0.31], [0.1, 0.4]], 0.1, 4.0, 4.0);
        assert!(near(begin.forecast(None), 0.5 + (0.4 + 0.9) / 0.1));
        let coarse = ended(moment(1e7, &[[0.5, 0.3], [0.01, 0.31], [0.1, 0.4], [1.0, 0.7]], 1.0, 1.0, 1.0));
        assert!(near(begin.forecast(Some(&coarse)), 0.5 + (0.4 + 0.3) / 0.1));
    }
}
