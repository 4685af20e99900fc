//! Decides when one experiment is stepped on several threads: if threads are spare, steps are long, and several threads have turned out to be faster.
//!
//! Layer: engine.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::cores;
use super::switch_groups::SwitchGroups;
use super::threads::SpareThreads;
use super::trial::ThreadTrial;
use crate::cpu::whole_step;
use hyperfold_columns::{Tables, mode};

/// How one experiment is stepped, on one thread or on several.
#[derive(Debug)]
pub struct SideBySide {
    /// Computed when first needed. `Some(None)`: the experiment cannot use several threads.
    groups: OnceLock<Option<SwitchGroups>>,
    trial: ThreadTrial,
}

impl SideBySide {
    /// State for one experiment. Its steps are shared among threads if they take at least `worth`; with `worth` zero, always.
    pub fn new(worth: Duration) -> SideBySide {
        SideBySide { groups: OnceLock::new(), trial: ThreadTrial::new(worth) }
    }

    /// Steps `t` for a while, at most until `end`: `steps` steps on one thread, or some steps on this thread and spare ones.
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
                let last_step = before + u64::from(self.trial.left());
                cores::run(t, groups, 1 + taken, &mut |t| {
                    t.exps[0].steps < last_step && Instant::now() < end && !stop()
                });
            }
            None => whole_step::run(t, steps),
        }
        spare.put(taken);
        let steps = t.exps[0].steps - before;
        self.trial.took(steps as u32, steps, began.elapsed(), shared);
    }
}
