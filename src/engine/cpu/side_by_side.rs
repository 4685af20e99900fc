//! When one experiment is stepped on several threads: where threads are spare, steps are long, and it has turned out to be faster.
//!
//! Layer: engine.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::cores;
use super::switch_groups::SwitchGroups;
use super::threads::SpareThreads;
use super::trial::ThreadTrial;
use crate::columns::{Tables, mode};
use crate::engine::systems;

/// How one experiment is stepped.
#[derive(Debug)]
pub struct SideBySide {
    /// Found when they are needed first. `None` inside: it goes on one thread.
    groups: OnceLock<Option<SwitchGroups>>,
    trial: ThreadTrial,
}

impl SideBySide {
    /// For an experiment. Its steps are shared where they take at least `worth`; none: always.
    pub fn from(worth: Duration) -> SideBySide {
        SideBySide { groups: OnceLock::new(), trial: ThreadTrial::from(worth) }
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
        let whole = t.exps[0].phase == 0 && t.exps[0].modes & mode::TRACED == 0;
        let taken = if self.trial.wants_several() && whole { spare.take() } else { 0 };
        let groups = if taken > 0 { self.groups.get_or_init(|| SwitchGroups::of(t)).as_ref() } else { None };
        let (began, before) = (Instant::now(), t.exps[0].steps);
        let shared = groups.is_some();
        match groups {
            Some(groups) => {
                let until = before + u64::from(self.trial.left());
                cores::run(t, groups, 1 + taken, &mut |t| t.exps[0].steps < until && Instant::now() < end && !stop());
            }
            None => systems::run(t, steps),
        }
        spare.put(taken);
        let steps = t.exps[0].steps - before;
        self.trial.took(steps as u32, steps, began.elapsed(), shared);
    }
}
