//! What simulating an experiment for a moment says of the time that all of it takes.
//!
//! Two things take time: packet-hops that are simulated, and all else, which goes by tasks. How many of the packet-hops that are
//! left are simulated goes by the same experiment with coarse packets, which comes further: what was simulated of the part that
//! both have seen is held against that.
//!
//! Layer: session. Arithmetic over counts that [`super::probe`] took.

use std::fmt::{self, Display, Formatter};

/// Packet-hops a second that are simulated, where a moment simulated too few to tell.
const PACKET_HOPS_PER_S: f64 = 8e6;
/// So few tell nothing (our choice).
const FEW_HOPS: f64 = 100_000.0;
/// Coarse packets need more of a phase to become steady, and repeat as often. So of what is left, at least this part of the share
/// with coarse packets is simulated (our choice).
const LEAST_OF_COARSE: f64 = 0.25;
/// An experiment that starts over has done less than before, by more than this share of it (our choice).
const STARTS_OVER: f64 = 0.5;

/// Counts while an experiment was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Count {
    /// Packet-hops that are done, whoever did them, and those of them that were simulated; both over all.
    pub(super) done: f64,
    pub(super) simulated: f64,
    /// Tasks and flows that are done, over all.
    pub(super) tasks: f64,
    /// Since it was prepared, and of these, what simulating took.
    pub(super) seconds: f64,
    pub(super) simulating: f64,
}

/// What was counted of an experiment while it was simulated for a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeMoment {
    /// Packet-hops, if each is simulated once; 0 at flow level.
    all: f64,
    preparing: f64,
    counts: Vec<Count>,
    ended: bool,
}

impl ProbeMoment {
    /// Of an experiment of so many packet-hops that was prepared in so many seconds.
    pub(super) fn of(all: u64, preparing: f64) -> ProbeMoment {
        ProbeMoment { all: all as f64, preparing, ..ProbeMoment::default() }
    }

    pub(super) fn note(&mut self, count: Count) {
        // What is looked up may not be counted before it ends, and some packets are sent again.
        self.counts.push(Count { done: count.done.min(1.0), ..count });
    }

    /// It is over.
    pub(super) fn ends(&mut self) {
        self.ended = true;
    }

    /// Whether all of the experiment was simulated.
    pub(super) fn is_whole(&self) -> bool {
        self.ended
    }

    fn last(&self) -> Count {
        self.counts.last().copied().unwrap_or_default()
    }

    /// When it started over last: the number of the first count after that.
    fn start(&self) -> usize {
        let falls = |i: &usize| self.counts[*i].done < STARTS_OVER * self.counts[*i - 1].done;
        (1..self.counts.len()).rev().find(falls).unwrap_or(0)
    }

    /// Seconds of one thread that the experiment takes, by its beginning and by the same with `coarse` packets.
    pub(super) fn forecast(&self, coarse: Option<&ProbeMoment>) -> f64 {
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

    /// Seconds in all for what is not simulating.
    fn other(&self, coarse: Option<&ProbeMoment>) -> f64 {
        let of = |moment: &ProbeMoment| {
            let Count { tasks, seconds, simulating, .. } = moment.last();
            let tasks = if moment.ended { 1.0 } else { tasks };
            (tasks, (seconds - simulating).max(0.0) / tasks.max(1e-6))
        };
        // Tasks are as many, however long packets are.
        let (own, coarse) = (of(self), coarse.map(of).unwrap_or_default());
        if coarse.0 > own.0 { coarse.1 } else { own.1 }
    }

    /// How many packet-hops are simulated after what was seen, over all.
    fn simulated_later(&self, coarse: Option<&ProbeMoment>) -> f64 {
        let (last, start) = (self.last(), self.start());
        let left = 1.0 - last.done;
        let Some(coarse) = coarse else { return left * self.recent_share() };
        let from = if start > 0 { coarse.start() } else { 0 };
        let seen = coarse.counts[from..].iter().find(|count| count.done >= last.done);
        let Some(seen) = seen else { return left * self.recent_share() };
        let end = coarse.last();
        let unseen = if coarse.ended { 0.0 } else { 1.0 - end.done };
        let later = (end.simulated - seen.simulated).max(0.0) + unseen * coarse.recent_share();
        let ratio = last.simulated / seen.simulated.max(1e-9);
        (later * ratio.clamp(LEAST_OF_COARSE, 1.0)).min(2.0)
    }

    /// Which share of what was done of late was simulated: of the later half of what is done, or since it started (over).
    fn recent_share(&self) -> f64 {
        let (last, start) = (self.last(), self.start());
        let half = self.counts[start..].iter().rev().find(|count| count.done <= last.done / 2.0);
        let half = half.or(self.counts.get(start)).filter(|half| half.done < last.done);
        let Some(half) = half else { return 1.0 };
        ((last.simulated - half.simulated) / (last.done - half.done)).clamp(0.0, 1.0)
    }
}

/// For the log.
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
        // Of the beginning all is simulated, at 20 million a second; of the whole a twentieth.
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
        // Half of what coarse packets say, 20 million a second.
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
