//! Whether skipping is worth its error. It is judged once, early: when a twentieth of the experiment was simulated since the
//! first skip. Where skips left out less than a quarter of that by then, the experiment starts over without skips, which
//! costs that twentieth. Later it is not given up any more, because starting over would cost more than skips may gain.
//! The same where it has to start over because a switch may pause.
//!
//! Layer: fold/run. Decides by counts and instants that nothing but the experiment determines: packet-hops that its
//! messages need, those that intervals had and skips left out, and when. Whoever simulated them, and when anybody looks,
//! is of no account.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::columns::{FoldTrace, Tables, Task, mode, task as bits};
use crate::engine::fold::run::partition::Partition;
use crate::engine::fold::run::stats::FoldStats;
use crate::engine::fold::steady::sampling::{hops_there_and_back, is_steadying};

/// Once more than one in so many packet-hops was simulated, an experiment is not given up any more.
const LEAST_SHARE: u64 = 2;

/// One in so many packet-hops of the experiment may be simulated before skipping must have gained anything: 5 %.
const FREE: u64 = 20;

/// Skips must have left out one packet-hop for so many that were simulated (our choice: at 5 % many partitions are still
/// in their first windows, also where five sixths are skipped in the end).
const LEAST_GAIN: u64 = 4;

/// An experiment that needs no more packet-hops takes a second (our choice). Where a switch of it may pause, skips are not
/// worth a second try.
const SMALL: u64 = 1 << 23;

/// It may be judged so many times over an experiment (our choice). Those in the first 7.5 % count.
const JUDGEMENTS: u64 = 40;
const COUNTING: u64 = 3;

/// What an experiment gains by skips.
#[derive(Clone, Debug)]
pub(crate) struct LeastGain {
    /// Packet-hops that its messages need; `u64::MAX`: nobody asks.
    needed: u64,
    /// Those of messages that were acknowledged by `seen`.
    acknowledged: u64,
    /// Those that left ports in intervals of partitions that are over, simulated or looked up.
    counted: u64,
    /// Instants that have not been passed, with the packet-hops of a message that is acknowledged then, and those of an
    /// interval that ends then.
    coming: BinaryHeap<Reverse<(u64, u64, u64)>>,
    /// The last instant that was passed, and the one up to which everything has happened, ps. What is told late counts
    /// from there on.
    seen: u64,
    now: u64,
    /// Packet-hops until the next judgement.
    next: u64,
    /// Packet-hops that were not skipped when the first skip or rounding was there.
    before_skips: u64,
    /// Packet-hops that were not skipped in attempts that are given up.
    lost: u64,
}

impl LeastGain {
    /// PRECONDITION: nothing of `t` has happened.
    pub(crate) fn of(t: &Tables) -> LeastGain {
        let asked = is_steadying(t) && t.exps[0].modes & mode::MUST_GAIN != 0;
        LeastGain { needed: if asked { hops_needed(t) } else { u64::MAX }, ..LeastGain::unasked() }
    }

    /// Of a copy, of which nobody asks what it gains.
    pub(crate) fn unasked() -> LeastGain {
        LeastGain {
            needed: u64::MAX,
            acknowledged: 0,
            counted: 0,
            coming: BinaryHeap::new(),
            seen: 0,
            now: 0,
            next: 0,
            before_skips: 0,
            lost: 0,
        }
    }

    /// An interval of a partition ended at `at`, in which `hops` packets left its ports; or a skip ended.
    pub(crate) fn count(&mut self, at: u64, hops: u64) {
        if self.needed != u64::MAX {
            self.coming.push(Reverse((at.max(self.now), 0, hops)));
        }
    }

    /// Takes note of the messages that were acknowledged, as `traced` says.
    pub(crate) fn note_acknowledged(&mut self, t: &Tables, traced: &[FoldTrace]) {
        if self.needed == u64::MAX {
            return;
        }
        for what in traced {
            if let FoldTrace::Acked(i) = what {
                let row = &t.tasks[*i];
                self.coming.push(Reverse((row.done.max(self.now), message_hops(t, row), 0)));
            }
        }
    }

    /// The same for what is traced of messages that are reported; nothing else of that is needed.
    pub(crate) fn take_trace(&mut self, t: &mut Tables) {
        let mut traced = std::mem::take(&mut t.fold_trace);
        self.note_acknowledged(t, &traced);
        traced.clear();
        t.fold_trace = traced;
    }

    /// Everything before `now` has happened. Whether skips gain too little so far.
    #[inline]
    pub(crate) fn is_too_little(&mut self, t: &Tables, partitions: &[Partition], stats: &FoldStats, now: u64) -> bool {
        self.now = self.now.max(now);
        while let Some(&Reverse((at, acknowledged, counted))) = self.coming.peek()
            && at < now
        {
            self.coming.pop();
            self.acknowledged += acknowledged;
            self.counted += counted;
            self.seen = at;
            let is_due = self.acknowledged.max(self.counted + stats.hops_skipped) >= self.next;
            if is_due && self.judge(t, partitions, stats) {
                return true;
            }
        }
        false
    }

    /// Whether skips gain too little by the last instant that was passed.
    fn judge(&mut self, t: &Tables, partitions: &[Partition], stats: &FoldStats) -> bool {
        let (simulated, skipped) = self.so_far(t, partitions, stats);
        let each = (self.needed / JUDGEMENTS).max(1);
        self.next = (self.acknowledged.max(self.counted + stats.hops_skipped) / each + 1) * each;
        if stats.skips == 0 && stats.rounded == 0 && stats.unpaused == 0 {
            self.before_skips = simulated;
            return false;
        }
        // A pause that was left out is an error of its own.
        if stats.unpaused > 0 && simulated > self.needed / LEAST_SHARE {
            return true;
        }
        // Roundings alone leave nothing out, whenever they are judged. Beyond half, what is left is less than it would take to start over.
        let since = self.lost + simulated.saturating_sub(self.before_skips);
        simulated <= self.needed / LEAST_SHARE
            && since > self.needed / FREE
            && (stats.skips == 0 || since <= each * COUNTING)
            && skipped.saturating_mul(LEAST_GAIN) < since
    }

    /// Packet-hops that were simulated by the last instant that was passed, and those that were skipped.
    fn so_far(&self, t: &Tables, partitions: &[Partition], stats: &FoldStats) -> (u64, u64) {
        let under_way = |partition: &Partition| {
            let skip = partition.skip.as_ref().filter(|skip| skip.since < self.seen);
            skip.map_or(0, |skip| skip.hops(t, &partition.rows, &skip.moved_by(self.seen)))
        };
        let skipped = stats.hops_skipped + partitions.iter().map(under_way).sum::<u64>();
        (self.counted.max(self.acknowledged.saturating_sub(skipped)), skipped)
    }

    /// Everything has happened. Whether pauses were left out where skips gained too little for that.
    pub(crate) fn is_too_little_in_all(&mut self, t: &Tables, partitions: &[Partition], stats: &FoldStats) -> bool {
        self.is_asked() && stats.unpaused > 0 && {
            let (simulated, _) = self.so_far(t, partitions, stats);
            simulated > self.needed / LEAST_SHARE
        }
    }

    /// Whether anybody asks what skips gain.
    pub(crate) fn is_asked(&self) -> bool {
        self.needed != u64::MAX
    }

    /// Whether skips are not worth starting over with a switch coupled, wherever that is.
    pub(crate) fn is_small(&self) -> bool {
        self.needed <= SMALL
    }

    /// The experiment has to start over by the last instant that was passed. Whether it should go on skipping then: that
    /// costs little, or skips gain as much.
    pub(crate) fn starts_over(&mut self, t: &Tables, partitions: &[Partition], stats: &FoldStats) -> bool {
        if self.needed == u64::MAX {
            return true;
        }
        let (simulated, skipped) = self.so_far(t, partitions, stats);
        self.lost += simulated;
        !self.is_small() && (self.lost <= self.needed / FREE || skipped >= self.lost)
    }

    /// It is the next attempt after `given_up`.
    pub(crate) fn after(self, given_up: &LeastGain) -> LeastGain {
        LeastGain { lost: given_up.lost, ..self }
    }
}

/// The packet-hops that the messages of `t` and their acknowledgements need.
pub(crate) fn hops_needed(t: &Tables) -> u64 {
    t.tasks.iter().map(|row| message_hops(t, row)).sum()
}

/// The packet-hops that task `row` needs; none if it is no message.
pub(crate) fn message_hops(t: &Tables, row: &Task) -> u64 {
    if row.flags & bits::MESSAGE == 0 {
        return 0;
    }
    let payload = u64::from(t.exps[0].payload.max(1));
    row.bytes.div_ceil(payload).max(1) * hops_there_and_back(t, row.flow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::OwnedTables;

    /// An experiment of 1,000 packet-hops, told at each instant what was simulated and skipped by then; when it is given
    /// up.
    fn given_up(told: &[(u64, u64)]) -> Option<u64> {
        let mut owned = OwnedTables::default();
        let t = owned.view();
        let mut gain = LeastGain { needed: 1000, ..LeastGain::unasked() };
        let mut stats = FoldStats::default();
        let mut counted = 0;
        for (at, &(simulated, skipped)) in told.iter().enumerate() {
            let at = at as u64 + 1;
            (stats.skips, stats.hops_skipped) = (u64::from(skipped > 0), skipped);
            gain.count(at, simulated - counted);
            counted = simulated;
            // Nothing at an instant counts before it is over.
            assert!(!gain.is_too_little(&t, &[], &stats, at));
            if gain.is_too_little(&t, &[], &stats, at + 1) {
                return Some(at);
            }
        }
        None
    }

    #[test]
    fn little_gain_is_given_up_once_a_twentieth_was_simulated() {
        assert_eq!(given_up(&[(20, 2), (45, 5), (55, 6), (90, 8)]), Some(3));
        // A quarter is skipped.
        assert_eq!(given_up(&[(20, 5), (55, 20), (70, 25)]), None);
        // Starting over would cost more.
        assert_eq!(given_up(&[(20, 5), (300, 6), (400, 7)]), None);
    }

    #[test]
    fn what_was_simulated_before_the_first_skip_is_no_loss() {
        assert_eq!(given_up(&[(100, 0), (300, 0), (320, 2), (340, 200)]), None);
        assert_eq!(given_up(&[(100, 0), (300, 0), (320, 2), (360, 3)]), Some(4));
    }

    #[test]
    fn nothing_is_given_up_that_is_half_done() {
        assert_eq!(given_up(&[(480, 0), (490, 1), (560, 2)]), None);
    }
}
