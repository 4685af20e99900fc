//! Progress of a job: its work, its checkpoints, and the time in which it stands still.
//!
//! Layer: cluster. Work is counted in nanoseconds at full speed, and clock time in milliseconds. After every `interval_ns` of work a job writes a checkpoint:
//! it stands still for `cost_ms`, and, if writes share the storage, until its data are written. Only then is that work safe. There is no checkpoint at the
//! end. Every piece of work takes whole milliseconds.

/// Nanoseconds in a millisecond, times one million parts.
const NS_PPM: u128 = 1_000_000_000_000;
const NS_PER_MS: u64 = 1_000_000;
const MS_PER_S: u128 = 1_000;

/// Why a job stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Restart,
    Checkpoint,
    /// Writes a checkpoint. What is left is counted in bits that each GPU still has to write.
    Write,
}

/// Cost of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointCost {
    /// Fixed time in ms, which does not depend on other writes.
    pub ms: u64,
    /// Bits that each GPU writes after that, at the rate that [`JobProgress::writes_at`] sets. 0: nothing.
    pub bits: u64,
    /// Estimate of the time of that write, in ms.
    pub write_ms: u64,
}

/// Progress of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobProgress {
    total_ns: u64,
    /// Work that no failure takes away.
    safe_ns: u64,
    /// Work since the last checkpoint.
    since_ns: u64,
    /// Work between checkpoints. `None`: there are none.
    interval_ns: Option<u64>,
    cost: CheckpointCost,
    /// Rate at which each GPU writes now, in bps. 0: it is not set yet.
    write_bps: u64,
    standing: Option<(Standing, u64)>,
}

/// How a job spent an interval of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeSpent {
    /// Clock time in which it worked.
    pub working_ms: u64,
    /// Work that it did in this time.
    pub work_ns: u64,
    pub checkpoint_ms: u64,
    pub restart_ms: u64,
    /// Part of `checkpoint_ms` in which it wrote. The next field is the bits that each GPU wrote.
    pub write_ms: u64,
    pub written_bits: u64,
}

/// Clock time in ms of this much work, for a job that takes `factor_ppm` millionths of its time at full speed.
fn clock_ms(work_ns: u64, factor_ppm: u64) -> u64 {
    (u128::from(work_ns) * u128::from(factor_ppm)).div_ceil(NS_PPM) as u64
}

impl JobProgress {
    /// Progress of a job that has not begun.
    pub(crate) fn new(duration_ms: u64, interval_ms: Option<u64>, cost: CheckpointCost) -> JobProgress {
        JobProgress {
            total_ns: duration_ms * NS_PER_MS,
            safe_ns: 0,
            since_ns: 0,
            interval_ns: interval_ms.map(|ms| ms.max(1) * NS_PER_MS),
            cost,
            write_bps: 0,
            standing: None,
        }
    }

    /// Work that no failure takes away, in ns.
    pub(crate) fn safe_ns(&self) -> u64 {
        self.safe_ns
    }

    /// Work that is done, safe or not, in ns.
    pub(crate) fn done_ns(&self) -> u64 {
        self.safe_ns + self.since_ns
    }

    /// Whether all work is done.
    pub(crate) fn is_done(&self) -> bool {
        self.done_ns() >= self.total_ns
    }

    fn left_ns(&self) -> u64 {
        self.total_ns - self.done_ns()
    }

    /// Work until the next checkpoint, or until the end if that comes first, in ns.
    fn next_piece(&self) -> u64 {
        let left = self.left_ns();
        self.interval_ns.map_or(left, |interval| left.min(interval - self.since_ns))
    }

    /// Lets `ms` of clock time pass, and returns how they were spent.
    pub(crate) fn advance(&mut self, mut ms: u64, factor_ppm: u64) -> TimeSpent {
        let mut spent = TimeSpent::default();
        while ms > 0 && !self.is_done() {
            if let Some((Standing::Write, left)) = &mut self.standing {
                let bps = u128::from(self.write_bps);
                let needs = if bps == 0 { u64::MAX } else { (u128::from(*left) * MS_PER_S).div_ceil(bps) as u64 };
                let some = ms.min(needs);
                let bits = if needs <= ms { *left } else { ((bps * u128::from(some) / MS_PER_S) as u64).min(*left) };
                *left -= bits;
                ms -= some;
                spent.checkpoint_ms += some;
                spent.write_ms += some;
                spent.written_bits += bits;
                if needs == some {
                    self.stands_no_more();
                }
                continue;
            }
            if let Some((why, left)) = &mut self.standing {
                let some = ms.min(*left);
                *left -= some;
                ms -= some;
                match why {
                    Standing::Restart => spent.restart_ms += some,
                    Standing::Checkpoint | Standing::Write => spent.checkpoint_ms += some,
                }
                if *left == 0 {
                    self.stands_no_more();
                }
                continue;
            }
            self.advance_whole_pieces(&mut ms, factor_ppm, &mut spent);
            if ms == 0 {
                break;
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
                self.standing = Some((Standing::Checkpoint, self.cost.ms));
                if self.cost.ms == 0 {
                    self.stands_no_more();
                }
            }
        }
        spent
    }

    /// Advances over all pieces of work that end, with their checkpoints, within `ms`. It is a shortcut: the loop that calls it would take one piece after
    /// another.
    fn advance_whole_pieces(&mut self, ms: &mut u64, factor_ppm: u64, spent: &mut TimeSpent) {
        let Some(interval) = self.interval_ns.filter(|_| self.since_ns == 0 && self.cost.bits == 0) else { return };
        let needs = clock_ms(interval, factor_ppm);
        // There is no checkpoint after the last piece.
        let pieces = ((self.left_ns() - 1) / interval).min(*ms / (needs + self.cost.ms));
        self.safe_ns += pieces * interval;
        spent.work_ns += pieces * interval;
        spent.working_ms += pieces * needs;
        spent.checkpoint_ms += pieces * self.cost.ms;
        *ms -= pieces * (needs + self.cost.ms);
    }

    fn stands_no_more(&mut self) {
        match self.standing.take() {
            Some((Standing::Checkpoint, _)) if self.cost.bits > 0 => {
                self.write_bps = 0;
                self.standing = Some((Standing::Write, self.cost.bits));
            }
            Some((Standing::Checkpoint | Standing::Write, _)) => {
                self.safe_ns += self.since_ns;
                self.since_ns = 0;
            }
            Some((Standing::Restart, _)) | None => {}
        }
    }

    /// Whether it writes to storage now.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.standing, Some((Standing::Write, _)))
    }

    /// Whether all of its work is safe and it does not stand still.
    pub(crate) fn is_safe(&self) -> bool {
        self.since_ns == 0 && self.standing.is_none()
    }

    /// Sets the rate at which each GPU writes from now on, in bps. Returns whether the rate has changed.
    pub(crate) fn writes_at(&mut self, bps: u64) -> bool {
        std::mem::replace(&mut self.write_bps, bps) != bps
    }

    /// Time of a checkpoint without other jobs, in ms.
    pub(crate) fn cost_ms(&self) -> u64 {
        self.cost.ms + self.cost.write_ms
    }

    /// Clock time in ms until the job begins a write or ends one, or until a checkpoint without a write ends. `None`: the job ends before, or its write has
    /// no rate yet.
    pub(crate) fn next_turn_ms(&self, factor_ppm: u64) -> Option<u64> {
        let before = match self.standing {
            Some((Standing::Write, _)) if self.write_bps == 0 => return None,
            Some((Standing::Write, left)) => {
                return Some((u128::from(left) * MS_PER_S).div_ceil(u128::from(self.write_bps)) as u64);
            }
            Some((Standing::Checkpoint, left)) => return Some(left),
            Some((Standing::Restart, left)) => left,
            None => 0,
        };
        let piece = self.next_piece();
        let ends_first = self.interval_ns.is_none() || piece == self.left_ns();
        (!ends_first).then(|| before + clock_ms(piece, factor_ppm) + self.cost.ms)
    }

    /// Clock time in ms until the job ends, if nothing happens.
    pub(crate) fn left_ms(&self, factor_ppm: u64) -> u64 {
        let (mut after, mut ms) = (self.clone(), 0);
        match after.standing {
            Some((Standing::Write, left)) => {
                let bps = u128::from(after.write_bps);
                ms += if bps == 0 { after.cost.write_ms } else { (u128::from(left) * MS_PER_S).div_ceil(bps) as u64 };
                after.stands_no_more();
            }
            Some((Standing::Checkpoint, left)) => {
                ms += left + after.cost.write_ms;
                after.cost.bits = 0;
                after.stands_no_more();
            }
            Some((Standing::Restart, left)) => {
                ms += left;
                after.stands_no_more();
            }
            None => {}
        }
        let Some(interval) = after.interval_ns else { return ms + clock_ms(after.left_ns(), factor_ppm) };
        let mut left = after.left_ns();
        let first = interval - after.since_ns;
        if left <= first {
            return ms + clock_ms(left, factor_ppm);
        }
        left -= first;
        ms += clock_ms(first, factor_ppm) + after.cost_ms();
        // All pieces but the last one end in a checkpoint.
        let pieces = (left - 1) / interval;
        ms = ms.saturating_add(pieces.saturating_mul(clock_ms(interval, factor_ppm) + after.cost_ms()));
        ms.saturating_add(clock_ms(left - pieces * interval, factor_ppm))
    }

    /// Clock time in ms until the job ends, if all of its work takes `estimate_ms`. `None`: it has done more than that already.
    pub(crate) fn believed_left_ms(&self, estimate_ms: u64, factor_ppm: u64) -> Option<u64> {
        let total_ns = estimate_ms.saturating_mul(NS_PER_MS);
        (total_ns > self.done_ns()).then(|| JobProgress { total_ns, ..self.clone() }.left_ms(factor_ppm))
    }

    /// Goes back to the last checkpoint. Returns the work that is lost, in ns.
    pub(crate) fn roll_back(&mut self) -> u64 {
        self.standing = None;
        std::mem::take(&mut self.since_ns)
    }

    /// Saves all work, as a job does when it is told to stop.
    pub(crate) fn save(&mut self) {
        self.standing = None;
        self.safe_ns += std::mem::take(&mut self.since_ns);
    }

    /// Lets the job stand still for `ms` before it goes on. PRECONDITION: it has saved or rolled back.
    pub(crate) fn restart(&mut self, ms: u64) {
        self.standing = (ms > 0).then_some((Standing::Restart, ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(ms: u64) -> CheckpointCost {
        CheckpointCost { ms, ..CheckpointCost::default() }
    }

    #[test]
    fn a_write_ends_by_its_rate_and_only_then_is_work_safe() {
        // 3 s of work, half a second of standing, 2 Gbit.
        let cost = CheckpointCost { ms: 500, bits: 2_000_000_000, write_ms: 1_000 };
        let mut job = JobProgress::new(10_000, Some(3_000), cost);
        assert_eq!((job.left_ms(1_000_000), job.next_turn_ms(1_000_000)), (14_500, Some(3_500)));
        job.advance(3_500, 1_000_000);
        assert!(job.is_writing() && job.safe_ns() == 0);
        assert!(job.writes_at(2_000_000_000) && !job.writes_at(2_000_000_000));
        assert_eq!(job.advance(500, 1_000_000).written_bits, 1_000_000_000);
        job.writes_at(1_000_000_000);
        assert_eq!((job.next_turn_ms(1_000_000), job.left_ms(1_000_000)), (Some(1_000), 1_000 + 7_000 + 2 * 1_500));
        assert_eq!(job.clone().roll_back(), 3_000_000_000);
        assert_eq!(job.advance(1_000, 1_000_000).write_ms, 1_000);
        assert!(job.is_safe() && job.safe_ns() == 3_000_000_000);
    }

    #[test]
    fn an_estimate_stands_in_for_the_work_until_it_is_outrun() {
        let mut job = JobProgress::new(10_000, Some(3_000), cost(500));
        let believed = |job: &JobProgress, estimate| job.believed_left_ms(estimate, 2_000_000);
        assert_eq!(believed(&job, 10_000), Some(job.left_ms(2_000_000)));
        // 3 + 1 s of work at half the speed, and a checkpoint between.
        assert_eq!(believed(&job, 4_000), Some(8_500));
        job.advance(8_500, 2_000_000);
        assert_eq!((job.done_ns(), believed(&job, 4_000), believed(&job, 5_000)), (4_000_000_000, None, Some(2_000)));
    }

    #[test]
    fn a_job_with_checkpoints_ends_when_it_says() {
        let job = JobProgress::new(10_000, Some(3_000), cost(500));
        // 3 + 0.5, 3 + 0.5, 3 + 0.5, 1.
        assert_eq!(job.left_ms(1_000_000), 11_500);
        let mut resumed = job.clone();
        assert_eq!(resumed.advance(7_500, 1_000_000).checkpoint_ms, 1_000);
        assert_eq!((resumed.done_ns(), resumed.roll_back()), (6_500_000_000, 500_000_000));
        resumed.restart(2_000);
        assert_eq!(resumed.left_ms(1_000_000), 2_000 + 3_500 + 1_000);
        // Exactly an interval needs no checkpoint.
        assert_eq!(JobProgress::new(3_000, Some(3_000), cost(500)).left_ms(2_000_000), 6_000);
    }

    proptest! {
        #[test]
        fn time_and_work_add_up_however_it_is_cut(
            duration in 1u64..100_000, interval in 1u64..5_000, cost_ms in 0u64..300, factor in 1_000_000u64..3_000_000,
            cuts in proptest::collection::vec(1u64..20_000, 0..40), fail in any::<bool>(),
        ) {
            let mut job = JobProgress::new(duration, Some(interval), cost(cost_ms));
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
