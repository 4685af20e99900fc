//! When one experiment is stepped on several threads: where threads are spare, steps are long, and it has turned out to be faster.
//!
//! Layer: engine. Decides by the clock, as no result depends on it: on a machine whose cores have other work, threads that wait for each other lose time.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::cores;
use super::switch_groups::SwitchGroups;
use super::threads::SpareThreads;
use crate::columns::{Tables, mode};
use crate::engine::systems;

/// Steps that take this long are shared among threads: many times what the barriers of a step take (our choice).
pub const WORTH: Duration = Duration::from_micros(100);
/// A way to go on is tried for so many steps, and for so long at least.
const TRIAL_STEPS: u32 = 4;
const TRIAL: Duration = Duration::from_millis(2);
/// The better way is kept for so many steps; twice as many, and so on, where one thread was better several times in a row.
const KEPT_STEPS: u32 = 128;
const MOST_DOUBLINGS: u32 = 5;
/// Several threads are better if they take less than this share of the time.
const BETTER: f64 = 0.9;

/// What an experiment is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    TryOne,
    TrySeveral,
    One,
    Several,
}

/// How one experiment is stepped.
#[derive(Debug)]
pub struct SideBySide {
    /// Found when they are needed first. `None` inside: it goes on one thread.
    groups: OnceLock<Option<SwitchGroups>>,
    worth: Duration,
    way: Way,
    /// Steps and time of this way so far.
    steps: u32,
    time: Duration,
    /// Seconds of a step on one thread, when that was tried last.
    one: f64,
    /// How often in a row one thread was better.
    in_vain: u32,
}

impl SideBySide {
    /// For an experiment. Its steps are shared where they take at least `worth`; none: always.
    pub fn from(worth: Duration) -> SideBySide {
        let groups = OnceLock::new();
        SideBySide { groups, worth, way: Way::TryOne, steps: 0, time: Duration::ZERO, one: 0.0, in_vain: 0 }
    }

    /// Steps `t` for a while, until `end` at most: `steps` steps on one thread, or some on this and spare ones.
    pub fn advance(
        &mut self,
        t: &mut Tables,
        steps: u32,
        spare: &SpareThreads,
        end: Instant,
        stop: &(dyn Fn() -> bool + Sync),
    ) {
        let several = matches!(self.way, Way::TrySeveral | Way::Several) || self.worth.is_zero();
        let whole = t.exps[0].phase == 0 && t.exps[0].modes & mode::TRACED == 0;
        let taken = if several && whole { spare.take() } else { 0 };
        let groups = if taken > 0 { self.groups.get_or_init(|| SwitchGroups::of(t)).as_ref() } else { None };
        let (began, before) = (Instant::now(), t.exps[0].steps);
        let shared = groups.is_some();
        match groups {
            Some(groups) => {
                let until = before + u64::from(self.left());
                cores::run(t, groups, 1 + taken, &mut |t| t.exps[0].steps < until && Instant::now() < end && !stop());
            }
            None => systems::run(t, steps),
        }
        spare.put(taken);
        self.took((t.exps[0].steps - before) as u32, began.elapsed(), shared);
    }

    /// Steps that this way is still to be gone.
    fn left(&self) -> u32 {
        let all = if matches!(self.way, Way::TryOne | Way::TrySeveral) { TRIAL_STEPS } else { self.kept() };
        all.saturating_sub(self.steps).max(1)
    }

    /// For how many steps the better way is kept.
    fn kept(&self) -> u32 {
        KEPT_STEPS << self.in_vain.saturating_sub(1).min(MOST_DOUBLINGS)
    }

    /// So many steps took so much time, `shared` among threads or not. Decides how to go on.
    fn took(&mut self, steps: u32, time: Duration, shared: bool) {
        self.steps += steps;
        self.time += time;
        let next = match self.way {
            // There was no thread to share with.
            Way::TrySeveral | Way::Several if !shared => Way::TryOne,
            Way::TryOne | Way::TrySeveral if self.steps < TRIAL_STEPS || self.time < TRIAL => return,
            Way::TryOne => {
                self.one = self.a_step();
                if self.one < self.worth.as_secs_f64() { Way::TryOne } else { Way::TrySeveral }
            }
            Way::TrySeveral if self.a_step() < BETTER * self.one => {
                self.in_vain = 0;
                Way::Several
            }
            Way::TrySeveral => {
                self.in_vain += 1;
                Way::One
            }
            Way::One | Way::Several if self.steps < self.kept() => return,
            Way::One | Way::Several => Way::TryOne,
        };
        (self.way, self.steps, self.time) = (next, 0, Duration::ZERO);
    }

    /// Seconds of a step of this way so far.
    fn a_step(&self) -> f64 {
        self.time.as_secs_f64() / f64::from(self.steps.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_faster_way_is_kept() {
        let mut side = SideBySide::from(WORTH);
        side.took(4, 4 * MS, false);
        assert_eq!(side.way, Way::TrySeveral);
        side.took(4, 2 * MS, true);
        assert_eq!((side.way, side.left()), (Way::Several, KEPT_STEPS));
        side.took(KEPT_STEPS, 64 * MS, true);
        assert_eq!(side.way, Way::TryOne);
        for times in [1, 2, 4] {
            side.took(4, 4 * MS, false);
            side.took(4, 4 * MS, true);
            assert_eq!((side.way, side.left()), (Way::One, times * KEPT_STEPS));
            side.took(times * KEPT_STEPS, 64 * MS, false);
        }
    }

    #[test]
    fn short_steps_are_not_shared() {
        let mut side = SideBySide::from(WORTH);
        side.took(400, 4 * MS, false);
        assert_eq!((side.way, side.steps), (Way::TryOne, 0));
    }

    #[test]
    fn without_spare_threads_one_goes_on() {
        let mut side = SideBySide::from(WORTH);
        side.took(4, 4 * MS, false);
        side.took(1, MS, false);
        assert_eq!((side.way, side.steps), (Way::TryOne, 0));
    }
}
