//! Decides by measured time whether steps are shared among threads; no result depends on it. On a machine whose cores have other work, threads that
//! wait for each other lose time.
//!
//! Layer: engine. Knows nothing of what a step is.

use std::time::Duration;

/// Minimum wall time of a step that is shared among threads: many times what the barriers of a step take (our choice).
pub const WORTH: Duration = Duration::from_micros(100);
/// Each way of stepping is tried for this many steps and at least the time `TRIAL`; fewer steps suffice if they take `LONG_TRIAL` (our choice).
const TRIAL_STEPS: u32 = 4;
const TRIAL: Duration = Duration::from_millis(2);
const LONG_TRIAL: Duration = Duration::from_millis(20);
/// Number of steps for which the better way is kept. It doubles, up to `MAX_DOUBLINGS` times, while one thread keeps being better.
const KEPT_STEPS: u32 = 128;
const MAX_DOUBLINGS: u32 = 5;
/// Several threads count as better if they take less than this fraction of the time.
const BETTER: f64 = 0.9;

/// How the next steps are taken: on one thread or on several, as a trial or as the better way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    TryOne,
    TrySeveral,
    /// One thread is tried before and after several, because later steps may have more work than earlier ones, most of all at the beginning.
    TryOneAgain,
    One,
    Several,
}

impl Way {
    fn is_trial(self) -> bool {
        matches!(self, Way::TryOne | Way::TrySeveral | Way::TryOneAgain)
    }
}

/// Measures steps on one thread and on several, and decides how to take the next.
#[derive(Debug)]
pub struct ThreadTrial {
    worth: Duration,
    way: Way,
    /// Steps taken this way so far, the work in them, and the wall time of that.
    steps: u32,
    work: u64,
    time: Duration,
    /// Seconds per unit of work on one thread and on several, as last measured.
    one: f64,
    several: f64,
    /// How many times in a row one thread was better.
    in_vain: u32,
}

impl ThreadTrial {
    /// Steps are shared if they take at least `worth`; with `worth` zero, always.
    pub fn new(worth: Duration) -> ThreadTrial {
        ThreadTrial {
            worth,
            way: Way::TryOne,
            steps: 0,
            work: 0,
            time: Duration::ZERO,
            one: 0.0,
            several: 0.0,
            in_vain: 0,
        }
    }

    /// Whether all steps are shared, however short they are.
    pub fn always(&self) -> bool {
        self.worth.is_zero()
    }

    /// Whether the next step is shared.
    pub fn wants_several(&self) -> bool {
        matches!(self.way, Way::TrySeveral | Way::Several) || self.always()
    }

    /// Number of steps that are still to be taken this way.
    pub fn left(&self) -> u32 {
        let all = if self.way.is_trial() { TRIAL_STEPS } else { self.kept() };
        all.saturating_sub(self.steps).max(1)
    }

    /// Number of steps for which the better way is kept.
    fn kept(&self) -> u32 {
        KEPT_STEPS << self.in_vain.saturating_sub(1).min(MAX_DOUBLINGS)
    }

    /// Records `steps` steps with `work` to do that took `time`, on several threads if `shared`. Decides how to go on.
    pub fn took(&mut self, steps: u32, work: u64, time: Duration, shared: bool) {
        self.steps += steps;
        self.work += work;
        self.time += time;
        let next = match self.way {
            // There was no spare thread to share with.
            Way::TrySeveral | Way::Several if !shared => Way::TryOne,
            way if way.is_trial() && !self.is_tried() => return,
            Way::TryOne => {
                self.one = self.a_unit();
                let a_step = self.time.as_secs_f64() / f64::from(self.steps);
                if a_step < self.worth.as_secs_f64() { Way::TryOne } else { Way::TrySeveral }
            }
            Way::TrySeveral => {
                self.several = self.a_unit();
                Way::TryOneAgain
            }
            Way::TryOneAgain if self.several < BETTER * (self.one + self.a_unit()) / 2.0 => {
                self.in_vain = 0;
                Way::Several
            }
            Way::TryOneAgain => {
                self.in_vain += 1;
                Way::One
            }
            Way::One | Way::Several if self.steps < self.kept() => return,
            Way::One | Way::Several => Way::TryOne,
        };
        (self.way, self.steps, self.work, self.time) = (next, 0, 0, Duration::ZERO);
    }

    /// Whether this way has been tried for long enough.
    fn is_tried(&self) -> bool {
        self.time >= LONG_TRIAL || (self.steps >= TRIAL_STEPS && self.time >= TRIAL)
    }

    /// Seconds per unit of work for this way so far.
    fn a_unit(&self) -> f64 {
        self.time.as_secs_f64() / self.work.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn took(trial: &mut ThreadTrial, steps: u32, time: Duration, shared: bool) {
        trial.took(steps, steps.into(), time, shared);
    }

    #[test]
    fn the_faster_way_is_kept() {
        let mut trial = ThreadTrial::new(WORTH);
        took(&mut trial, 4, 4 * MS, false);
        assert_eq!(trial.way, Way::TrySeveral);
        took(&mut trial, 4, 2 * MS, true);
        assert_eq!(trial.way, Way::TryOneAgain);
        took(&mut trial, 4, 4 * MS, false);
        assert_eq!((trial.way, trial.left()), (Way::Several, KEPT_STEPS));
        took(&mut trial, KEPT_STEPS, 64 * MS, true);
        assert_eq!(trial.way, Way::TryOne);
        for times in [1, 2, 4] {
            took(&mut trial, 4, 4 * MS, false);
            took(&mut trial, 4, 4 * MS, true);
            took(&mut trial, 4, 4 * MS, false);
            assert_eq!((trial.way, trial.left()), (Way::One, times * KEPT_STEPS));
            took(&mut trial, times * KEPT_STEPS, 64 * MS, false);
        }
    }

    /// Trials compare the time for a unit of work: the steps of a trial may have more or less to do.
    #[test]
    fn steps_differ_in_size() {
        let mut trial = ThreadTrial::new(WORTH);
        trial.took(4, 100, 4 * MS, false);
        trial.took(4, 300, 6 * MS, true);
        trial.took(4, 100, 4 * MS, false);
        assert_eq!(trial.way, Way::Several);
    }

    /// At the beginning each step has more to do than the one before it.
    #[test]
    fn steps_that_grow_hide_no_gain() {
        let mut trial = ThreadTrial::new(WORTH);
        took(&mut trial, 1, 50 * MS, false);
        // One thread would take 80.
        took(&mut trial, 1, 55 * MS, true);
        took(&mut trial, 1, 110 * MS, false);
        assert_eq!(trial.way, Way::Several);
    }

    #[test]
    fn short_steps_are_not_shared() {
        let mut trial = ThreadTrial::new(WORTH);
        took(&mut trial, 400, 4 * MS, false);
        assert_eq!((trial.way, trial.steps), (Way::TryOne, 0));
    }

    #[test]
    fn without_spare_threads_one_goes_on() {
        let mut trial = ThreadTrial::new(WORTH);
        took(&mut trial, 4, 4 * MS, false);
        took(&mut trial, 1, MS, false);
        assert_eq!((trial.way, trial.steps), (Way::TryOne, 0));
    }
}
