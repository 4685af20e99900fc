//! Decides whether skips save enough to be worth their error. If they leave out less than half of an experiment's packet-hops, less than a factor of
//! two is gained, and the experiment goes on or starts over without skips. If they leave out hardly anything, it does so once a quarter has not been
//! skipped.
//!
//! It also decides whether an experiment that must start over, because a switch may pause, goes on skipping.
//!
//! Layer: fold/run. Decisions depend on the experiment alone: on the packet-hops that its messages need, on those that were simulated and skipped, and
//! on their instants. They do not depend on what the memo knew, nor on the wall time at which they are made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::run::partitions::partition::{Partition, Partitions};
use crate::steady::sampling::{hops_there_and_back, is_steadying};
use hyperfold_columns::{FlowIdx, FoldTrace, Tables, Task, mode, task as bits};
use hyperfold_engine::FoldStats;

/// Skips must leave out at least 1 - 1/`MIN_SHARE` of the packet-hops: half.
const MIN_SHARE: u64 = 2;

/// Once 1/`EARLY_SHARE` of the packet-hops were not skipped since the first skip, skips must have left out at least one for every `EARLY_GAIN_SHARE` of
/// them. Our choice: an iteration's warm-up may take a tenth of all packet-hops before nine tenths are skipped, and looked-up packet-hops count as well.
const EARLY_SHARE: u64 = 4;
const EARLY_GAIN_SHARE: u64 = 4;

/// Once this many percent of the packet-hops were simulated without a skip, no skip begins any more. Our choice: of 2,000 experiments, those that gained by
/// skips began with them before 26 %. Where the first skip came later, it came after 77 %.
const FIRST_SKIP_BY_PERCENT: u64 = 30;
/// Percentage in place of `FIRST_SKIP_BY_PERCENT` once every queue pair has delivered a message. Then nothing new is to be expected, and those that
/// gained began before 7 %.
const FIRST_SKIP_BY_PERCENT_IF_ALL_SENT: u64 = 12;

/// An experiment may simulate 1/`FREE_SHARE` of its packet-hops in attempts that it gives up, whatever skips gained in them: 5 %.
const FREE_SHARE: u64 = 20;

/// Packet-hops of a small experiment, which takes up to a second (our choice). If one of its switches may pause, skips are not worth a second try.
const SMALL_HOPS: u64 = 1 << 23;

/// Number of judgements over an experiment (our choice).
const JUDGEMENTS: u64 = 40;

/// Counts what an experiment gains by skips, and judges whether that is enough.
#[derive(Clone, Debug)]
pub(crate) struct LeastGain {
    /// Packet-hops that the experiment's messages need; `u64::MAX`: skips are not judged.
    needed_hops: u64,
    /// Packet-hops of the messages that were acknowledged by `passed_ps`.
    acknowledged_hops: u64,
    /// Packet-hops of the intervals of partitions that ended by `passed_ps`, whether they were simulated or looked up.
    interval_hops: u64,
    /// Instants that have not been passed, in ps. For each, the packet-hops of a message that is acknowledged then and its queue pair, or the packet-hops
    /// of an interval that ends then and `NONE`.
    pending: BinaryHeap<Reverse<(u64, u64, FlowIdx)>>,
    /// Queue pairs that have messages, of which none was acknowledged by `passed_ps`; and how many that are.
    silent: Vec<bool>,
    n_silent: usize,
    /// The last instant of `pending` that was passed, in ps.
    passed_ps: u64,
    /// Instant before which everything has happened, in ps. An instant that is added late counts as this one.
    now_ps: u64,
    /// Progress at which the next judgement is due, in packet-hops. Progress is what messages had that are acknowledged, or what ended intervals and
    /// skips had, if that is more.
    next_judgement_hops: u64,
    /// Packet-hops that had been simulated at the last judgement before the first skip or rounding.
    hops_before_skips: u64,
    /// Packet-hops that were simulated in attempts that were given up.
    lost_hops: u64,
    /// Whether a first skip may come too late. Carried rates may begin at any time, as they have audits of their own.
    may_be_late: bool,
    /// Whether so much was simulated without a skip that none begins any more.
    is_too_late: bool,
}

impl LeastGain {
    /// Counts for the experiment `t`.
    /// PRECONDITION: it has not taken a step.
    pub(crate) fn of(t: &Tables) -> LeastGain {
        let is_asked = is_steadying(t) && t.exps[0].modes & mode::MUST_GAIN != 0;
        if !is_asked {
            return LeastGain::unasked();
        }
        let mut silent = vec![false; t.flow_tx.len()];
        t.tasks.iter().filter(|row| row.flags & bits::MESSAGE != 0).for_each(|row| silent[row.flow.usize()] = true);
        let n_silent = silent.iter().filter(|is_silent| **is_silent).count();
        let may_be_late = t.exps[0].modes & mode::RATES == 0;
        LeastGain { needed_hops: hops_needed(t), silent, n_silent, may_be_late, ..LeastGain::unasked() }
    }

    /// Counts for an experiment whose skips are not judged: a copy, or one that does not skip.
    pub(crate) fn unasked() -> LeastGain {
        LeastGain {
            needed_hops: u64::MAX,
            acknowledged_hops: 0,
            interval_hops: 0,
            pending: BinaryHeap::new(),
            passed_ps: 0,
            now_ps: 0,
            next_judgement_hops: 0,
            hops_before_skips: 0,
            lost_hops: 0,
            silent: Vec::new(),
            n_silent: 0,
            may_be_late: false,
            is_too_late: false,
        }
    }

    /// Counts an interval of a partition that ended at `at_ps`, with its packet-hops. At the end of a skip `hops` is 0.
    pub(crate) fn count(&mut self, at_ps: u64, hops: u64) {
        if self.needed_hops != u64::MAX {
            self.pending.push(Reverse((at_ps.max(self.now_ps), hops, FlowIdx::NONE)));
        }
    }

    /// Counts the messages in `traced` that were acknowledged.
    pub(crate) fn note_acknowledged(&mut self, t: &Tables, traced: &[FoldTrace]) {
        if self.needed_hops == u64::MAX {
            return;
        }
        for event in traced {
            if let FoldTrace::Acked(task) = event {
                let row = &t.tasks[*task];
                self.pending.push(Reverse((row.done.max(self.now_ps), message_hops(t, row), row.flow)));
            }
        }
    }

    /// Counts acknowledged messages in the trace of `t` and clears the trace. Called after messages of a looked-up or skipped partition were reported:
    /// nothing else of their trace is needed.
    pub(crate) fn take_trace(&mut self, t: &mut Tables) {
        let mut traced = std::mem::take(&mut t.fold_trace);
        self.note_acknowledged(t, &traced);
        traced.clear();
        t.fold_trace = traced;
    }

    /// Whether skips gain too little so far.
    /// PRECONDITION: everything before `now_ps` has happened.
    #[inline]
    pub(crate) fn is_too_little(
        &mut self,
        t: &Tables,
        partitions: &Partitions,
        stats: &FoldStats,
        now_ps: u64,
    ) -> bool {
        self.now_ps = self.now_ps.max(now_ps);
        while let Some(&Reverse((at_ps, hops, flow))) = self.pending.peek()
            && at_ps < now_ps
        {
            self.pending.pop();
            if flow.is_some() {
                self.acknowledged_hops += hops;
                self.n_silent -= usize::from(std::mem::take(&mut self.silent[flow.usize()]));
            } else {
                self.interval_hops += hops;
            }
            self.passed_ps = at_ps;
            let is_due =
                self.acknowledged_hops.max(self.interval_hops + stats.hops_skipped) >= self.next_judgement_hops;
            if is_due && self.judge(t, partitions, stats) {
                return true;
            }
        }
        false
    }

    /// Whether skips gain too little up to `passed_ps`. Sets when the next judgement is due.
    fn judge(&mut self, t: &Tables, partitions: &Partitions, stats: &FoldStats) -> bool {
        let (simulated, skipped) = self.so_far(t, partitions, stats);
        let hops_per_judgement = (self.needed_hops / JUDGEMENTS).max(1);
        self.next_judgement_hops =
            (self.acknowledged_hops.max(self.interval_hops + stats.hops_skipped) / hops_per_judgement + 1)
                * hops_per_judgement;
        if stats.skips == 0 && stats.rounded == 0 && stats.unpaused == 0 {
            self.hops_before_skips = simulated;
            // Where states are rounded between messages, what follows may not be exact even without skips.
            let may_be_late = self.may_be_late && !t.fold_hints.rounding;
            let percent = if self.n_silent == 0 { FIRST_SKIP_BY_PERCENT_IF_ALL_SENT } else { FIRST_SKIP_BY_PERCENT };
            self.is_too_late |= may_be_late && simulated > self.needed_hops / 100 * percent;
            return false;
        }
        let since_skips = self.lost_hops + simulated.saturating_sub(self.hops_before_skips);
        let is_early = since_skips > self.needed_hops / EARLY_SHARE;
        simulated > self.needed_hops / MIN_SHARE || (is_early && skipped.saturating_mul(EARLY_GAIN_SHARE) < since_skips)
    }

    /// Number of packet-hops that were simulated up to `passed_ps`, and of those that were skipped.
    fn so_far(&self, t: &Tables, partitions: &Partitions, stats: &FoldStats) -> (u64, u64) {
        let under_way = |partition: &Partition| {
            let skip = partition.skip().filter(|skip| skip.since < self.passed_ps);
            skip.map_or(0, |skip| skip.hops(t, &partition.rows, &skip.moved_by(self.passed_ps)))
        };
        let skipped = stats.hops_skipped + partitions.iter().map(under_way).sum::<u64>();
        (self.interval_hops.max(self.acknowledged_hops.saturating_sub(skipped)), skipped)
    }

    /// Whether pauses were left out although skips gained too little for that.
    /// PRECONDITION: everything has happened.
    pub(crate) fn is_too_little_in_all(&self, t: &Tables, partitions: &Partitions, stats: &FoldStats) -> bool {
        self.is_asked() && stats.unpaused > 0 && {
            let (simulated, _) = self.so_far(t, partitions, stats);
            simulated > self.needed_hops / MIN_SHARE
        }
    }

    /// The instant of the last judgement, in ps. It depends on the experiment alone.
    pub(crate) fn passed_ps(&self) -> u64 {
        self.passed_ps
    }

    /// Packet-hops that were simulated or looked up by the last instant that was passed, as far as intervals and messages have ended.
    pub(crate) fn progress_hops(&self) -> u64 {
        self.interval_hops.max(self.acknowledged_hops)
    }

    /// Packet-hops that the experiment's messages need.
    pub(crate) fn needed_hops(&self) -> u64 {
        self.needed_hops
    }

    /// Whether it is too late for a first skip. Then none begins, and every result is exact.
    pub(crate) fn is_too_late(&self) -> bool {
        self.is_too_late
    }

    /// Whether skips are judged.
    pub(crate) fn is_asked(&self) -> bool {
        self.needed_hops != u64::MAX
    }

    /// Whether the experiment is so small that skips are not worth starting over with a switch coupled, however early that is.
    pub(crate) fn is_small(&self) -> bool {
        self.needed_hops <= SMALL_HOPS
    }

    /// Whether the experiment, which must start over at `passed_ps`, goes on skipping in the next attempt: what is lost is little, or skips have gained
    /// as much. Counts the attempt as lost.
    pub(crate) fn starts_over(&mut self, t: &Tables, partitions: &Partitions, stats: &FoldStats) -> bool {
        if self.needed_hops == u64::MAX {
            return true;
        }
        let (simulated, skipped) = self.so_far(t, partitions, stats);
        self.lost_hops += simulated;
        !self.is_small() && (self.lost_hops <= self.needed_hops / FREE_SHARE || skipped >= self.lost_hops)
    }

    /// These counts for the next attempt, after `given_up` was given up.
    pub(crate) fn after(self, given_up: &LeastGain) -> LeastGain {
        LeastGain { lost_hops: given_up.lost_hops, ..self }
    }
}

/// Packet-hops that the messages of `t` and their acknowledgements need.
pub(crate) fn hops_needed(t: &Tables) -> u64 {
    t.tasks.iter().map(|row| message_hops(t, row)).sum()
}

/// Packet-hops that task `row` and its acknowledgements need; 0 if it is no message.
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
    use hyperfold_columns::OwnedTables;

    /// Instant at which an experiment of 1,000 packet-hops is given up. `counts`: for each instant from 1 on, packet-hops that were simulated and skipped
    /// by then.
    fn given_up(counts: &[(u64, u64)]) -> Option<u64> {
        let mut owned = OwnedTables::default();
        let t = owned.view();
        let mut gain = LeastGain { needed_hops: 1000, ..LeastGain::unasked() };
        let mut stats = FoldStats::default();
        let mut simulated_before = 0;
        for (nth, &(simulated, skipped)) in counts.iter().enumerate() {
            let at_ps = nth as u64 + 1;
            (stats.skips, stats.hops_skipped) = (u64::from(skipped > 0), skipped);
            gain.count(at_ps, simulated - simulated_before);
            simulated_before = simulated;
            // What happens at an instant counts once the instant is over.
            assert!(!gain.is_too_little(&t, &Partitions::default(), &stats, at_ps));
            if gain.is_too_little(&t, &Partitions::default(), &stats, at_ps + 1) {
                return Some(at_ps);
            }
        }
        None
    }

    #[test]
    fn hardly_any_gain_is_given_up_once_a_quarter_was_simulated() {
        assert_eq!(given_up(&[(100, 5), (230, 20), (260, 30), (300, 40)]), Some(3));
        // A quarter is skipped.
        assert_eq!(given_up(&[(100, 30), (260, 90), (300, 110)]), None);
    }

    #[test]
    fn less_than_half_is_given_up() {
        assert_eq!(given_up(&[(100, 100), (300, 200), (490, 400), (510, 410)]), Some(4));
        assert_eq!(given_up(&[(100, 100), (300, 400), (480, 520)]), None);
    }

    #[test]
    fn what_was_simulated_before_the_first_skip_is_no_early_loss() {
        assert_eq!(given_up(&[(100, 0), (300, 0), (330, 10), (400, 200)]), None);
        // Half of all, whenever the first skip was.
        assert_eq!(given_up(&[(100, 0), (300, 0), (330, 10), (510, 300)]), Some(4));
    }
}
