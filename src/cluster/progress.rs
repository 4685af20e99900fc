//! How far a job is: its work, its checkpoints, and the time in which it stands still.
//!
//! Layer: cluster. Work is counted in nanoseconds at full speed, time on the clock in milliseconds. After every `interval_ns` of work a job stands still for
//! `cost_ms`; only then is that work safe. There is no checkpoint at the end. Any piece of work takes whole milliseconds.

/// Nanoseconds of a millisecond, times parts in a million.
const NS_PPM: u128 = 1_000_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// Why a job stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Restart,
    Checkpoint,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobProgress {
    total_ns: u64,
    /// Work that no failure takes away.
    safe_ns: u64,
    /// Work since the last checkpoint.
    since_ns: u64,
    /// Work between checkpoints; `None`: there are none.
    interval_ns: Option<u64>,
    cost_ms: u64,
    standing: Option<(Standing, u64)>,
}

/// What a stretch of time went into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeSpent {
    /// On the clock.
    pub working_ms: u64,
    /// What this came to.
    pub work_ns: u64,
    pub checkpoint_ms: u64,
    pub restart_ms: u64,
}

/// Clock time of so much work of a job that takes `factor_ppm` of its time at full speed.
fn clock_ms(work_ns: u64, factor_ppm: u64) -> u64 {
    (u128::from(work_ns) * u128::from(factor_ppm)).div_ceil(NS_PPM) as u64
}

impl JobProgress {
    /// A job that has not begun.
    pub(super) fn new(duration_ms: u64, interval_ms: Option<u64>, cost_ms: u64) -> JobProgress {
        JobProgress {
            total_ns: duration_ms * NS_PER_MS,
            safe_ns: 0,
            since_ns: 0,
            interval_ns: interval_ms.map(|ms| ms.max(1) * NS_PER_MS),
            cost_ms,
            standing: None,
        }
    }

    /// Work that no failure takes away.
    pub(super) fn safe_ns(&self) -> u64 {
        self.safe_ns
    }

    /// Work that is done, safe or not.
    pub(super) fn done_ns(&self) -> u64 {
        self.safe_ns + self.since_ns
    }

    /// Whether all of it is.
    pub(super) fn is_done(&self) -> bool {
        self.done_ns() >= self.total_ns
    }

    fn left_ns(&self) -> u64 {
        self.total_ns - self.done_ns()
    }

    /// Work until the next checkpoint, or all that is left.
    fn next_piece(&self) -> u64 {
        let left = self.left_ns();
        self.interval_ns.map_or(left, |interval| left.min(interval - self.since_ns))
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, mut ms: u64, factor_ppm: u64) -> TimeSpent {
        let mut spent = TimeSpent::default();
        while ms > 0 && !self.is_done() {
            if let Some((why, left)) = &mut self.standing {
                let some = ms.min(*left);
                *left -= some;
                ms -= some;
                match why {
                    Standing::Restart => spent.restart_ms += some,
                    Standing::Checkpoint => spent.checkpoint_ms += some,
                }
                if *left == 0 {
                    self.stands_no_more();
                }
                continue;
            }
            let piece = self.next_piece();
            let needs = clock_ms(piece, factor_ppm);
            if needs > ms {
                let work = (u128::from(ms) * NS_PPM / u128::from(factor_ppm)) as u64;
                self.since_ns += work.min(piece);
                spent.work_ns += work.min(piece);
                spent.working_ms += ms;
                break;
            }
            self.since_ns += piece;
            spent.work_ns += piece;
            spent.working_ms += needs;
            ms -= needs;
            if !self.is_done() && self.interval_ns == Some(self.since_ns) {
                self.standing = Some((Standing::Checkpoint, self.cost_ms));
                if self.cost_ms == 0 {
                    self.stands_no_more();
                }
            }
        }
        spent
    }

    fn stands_no_more(&mut self) {
        if let Some((Standing::Checkpoint, _)) = self.standing.take() {
            self.safe_ns += self.since_ns;
            self.since_ns = 0;
        }
    }

    /// Clock time until the end, if nothing happens.
    pub(super) fn left_ms(&self, factor_ppm: u64) -> u64 {
        let (mut after, mut ms) = (self.clone(), 0);
        if let Some((_, left)) = after.standing {
            ms += left;
            after.stands_no_more();
        }
        let Some(interval) = after.interval_ns else { return ms + clock_ms(after.left_ns(), factor_ppm) };
        let mut left = after.left_ns();
        let first = interval - after.since_ns;
        if left <= first {
            return ms + clock_ms(left, factor_ppm);
        }
        left -= first;
        ms += clock_ms(first, factor_ppm) + after.cost_ms;
        // All but the last piece end in a checkpoint.
        let pieces = (left - 1) / interval;
        ms = ms.saturating_add(pieces.saturating_mul(clock_ms(interval, factor_ppm) + after.cost_ms));
        ms.saturating_add(clock_ms(left - pieces * interval, factor_ppm))
    }

    /// Goes back to the last checkpoint; the work that is lost.
    pub(super) fn roll_back(&mut self) -> u64 {
        self.standing = None;
        std::mem::take(&mut self.since_ns)
    }

    /// Saves all work, as a job does that is told to stop.
    pub(super) fn save(&mut self) {
        self.standing = None;
        self.safe_ns += std::mem::take(&mut self.since_ns);
    }

    /// Stands still for so long before going on. PRECONDITION: it has saved or rolled back.
    pub(super) fn restart(&mut self, ms: u64) {
        self.standing = (ms > 0).then_some((Standing::Restart, ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_job_with_checkpoints_ends_when_it_says() {
        let job = JobProgress::new(10_000, Some(3_000), 500);
        // 3 + 0.5, 3 + 0.5, 3 + 0.5, 1.
        assert_eq!(job.left_ms(1_000_000), 11_500);
        let mut at = job.clone();
        assert_eq!(at.advance(7_500, 1_000_000).checkpoint_ms, 1_000);
        assert_eq!((at.done_ns(), at.roll_back()), (6_500_000_000, 500_000_000));
        at.restart(2_000);
        assert_eq!(at.left_ms(1_000_000), 2_000 + 3_500 + 1_000);
        // Exactly an interval needs no checkpoint.
        assert_eq!(JobProgress::new(3_000, Some(3_000), 500).left_ms(2_000_000), 6_000);
    }

    proptest! {
        #[test]
        fn time_and_work_add_up_however_it_is_cut(
            duration in 1u64..100_000, interval in 1u64..5_000, cost in 0u64..300, factor in 1_000_000u64..3_000_000,
            cuts in proptest::collection::vec(1u64..20_000, 0..40), fail in any::<bool>(),
        ) {
            let mut job = JobProgress::new(duration, Some(interval), cost);
            let (mut clock, mut sum, mut lost) = (0, TimeSpent::default(), 0);
            let add = |sum: &mut TimeSpent, s: TimeSpent| {
                sum.work_ns += s.work_ns;
                sum.working_ms += s.working_ms;
                sum.checkpoint_ms += s.checkpoint_ms;
                sum.restart_ms += s.restart_ms;
                s.working_ms + s.checkpoint_ms + s.restart_ms
            };
            for cut in cuts {
                let end = job.left_ms(factor);
                let spent = job.advance(cut, factor);
                let took = add(&mut sum, spent);
                prop_assert!(took == cut || job.is_done());
                prop_assert!(job.is_done() == (end <= cut) || end.abs_diff(cut) <= 1);
                clock += took;
                if fail && !job.is_done() {
                    let one = job.roll_back();
                    // No failure takes more than an interval.
                    prop_assert!(one <= interval * NS_PER_MS);
                    lost += one;
                    job.restart(7);
                }
            }
            for _ in 0..4 {
                let spent = job.advance(job.left_ms(factor), factor);
                clock += add(&mut sum, spent);
            }
            prop_assert!(job.is_done());
            prop_assert_eq!(sum.work_ns - lost, duration * NS_PER_MS);
            prop_assert_eq!(sum.working_ms + sum.checkpoint_ms + sum.restart_ms, clock);
            prop_assert!(sum.working_ms * NS_PER_MS >= sum.work_ns);
        }
    }
}
