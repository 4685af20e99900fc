//! A copy of an experiment's start, to start over with.
//!
//! Layer: fold/run. Of tasks, by far the most rows, it keeps only what changes; of what never changes nothing.

use std::collections::BTreeSet;

use crate::columns::{NEVER, OwnedTables, SwitchIdx, Tables, Task, TaskIdx};
use crate::engine::fold::rows::buffer_guard::{BufferGuard, Failure};
use crate::engine::fold::steady::sampling::is_steadying;

/// After so many times, all switches are coupled (our choice).
const MOST_TIMES: u64 = 6;
/// Who would fail with so many times as much is near a failure; the second, where starting over finds nothing in the memo
/// (our choice).
const NEAR: u32 = 2;
const NEAR_UNREMEMBERED: u32 = 4;

/// The switches that are coupled because the proof about their buffers failed in an earlier attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoupledSwitches {
    pub switches: Vec<SwitchIdx>,
    /// How often the experiment started over for them.
    pub times: u64,
}

impl CoupledSwitches {
    /// How much more switches would have to hold to count as near a failure, from now on; 1: nobody asks.
    ///
    /// The first time, only those that failed are coupled. But where marks are drawn and nothing is skipped, what was
    /// simulated is not in the memo, and starting over simulates all of it again. So more switches are coupled at once.
    pub(crate) fn near(&self, t: &Tables) -> u32 {
        if t.fold_hints.random_marks && !is_steadying(t) {
            NEAR_UNREMEMBERED
        } else if self.times > 0 {
            NEAR
        } else {
            1
        }
    }

    /// Also with `switches`, at which pauses were left out in an attempt that is given up.
    pub(crate) fn with(&self, switches: &BTreeSet<SwitchIdx>) -> CoupledSwitches {
        let all: BTreeSet<SwitchIdx> = self.switches.iter().chain(switches).copied().collect();
        CoupledSwitches { switches: all.into_iter().collect(), times: self.times }
    }

    /// After `failure`: its switch and those that failed at the same instant, all that were near a failure by then
    /// ([`CoupledSwitches::near`]), in the end all. It depends on nothing but what happened in the experiment.
    pub(crate) fn after(&self, guard: &BufferGuard, failure: Failure, switches: u32) -> CoupledSwitches {
        let times = self.times + 1;
        let mut all: BTreeSet<SwitchIdx> = self.switches.iter().copied().collect();
        all.insert(failure.switch);
        all.extend(guard.failed());
        all.extend(guard.near_by(failure.at));
        if times >= MOST_TIMES {
            all.extend(SwitchIdx::all(switches));
        }
        CoupledSwitches { switches: all.into_iter().collect(), times }
    }
}

/// What has to be put back.
pub(crate) struct Restart {
    /// All but tasks, edges and paths.
    tables: OwnedTables,
    tasks: Vec<TaskStart>,
}

/// What changes about a task that has not ended.
struct TaskStart {
    at: u64,
    next: TaskIdx,
    waits: u32,
    flags: u32,
}

impl Restart {
    /// PRECONDITION: nothing of `t` has happened.
    pub(crate) fn of(t: &mut Tables) -> Restart {
        let kept = (std::mem::take(&mut t.tasks), std::mem::take(&mut t.edges), std::mem::take(&mut t.paths));
        let tables = t.copied();
        (t.tasks, t.edges, t.paths) = kept;
        Restart {
            tables,
            tasks: t
                .tasks
                .iter()
                .map(|row| TaskStart { at: row.at, next: row.next, waits: row.waits, flags: row.flags })
                .collect(),
        }
    }

    /// Puts `t` back to its start.
    pub(crate) fn put_back(&self, t: &mut Tables) {
        for (row, past) in t.tasks.iter_mut().zip(&self.tasks) {
            *row = Task {
                at: past.at,
                next: past.next,
                waits: past.waits,
                flags: past.flags,
                done: NEVER,
                got: NEVER,
                ..*row
            };
        }
        let kept = (std::mem::take(&mut t.edges), std::mem::take(&mut t.paths));
        t.overwrite(self.tables.clone());
        (t.edges, t.paths) = kept;
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use crate::columns::{Exp, mode};

    #[test]
    fn more_is_coupled_where_the_memo_has_nothing() {
        let near = |random_marks: bool, modes: u32, times: u64| {
            let mut owned = OwnedTables { exps: vec![Exp { modes, ..Exp::zeroed() }], ..OwnedTables::default() };
            let mut t = owned.view();
            t.fold_hints.random_marks = random_marks;
            CoupledSwitches { switches: Vec::new(), times }.near(&t)
        };
        assert_eq!([near(false, 0, 0), near(false, 0, 1)], [1, NEAR]);
        assert_eq!([near(true, 0, 0), near(true, 0, 1)], [NEAR_UNREMEMBERED; 2]);
        // Which switches are coupled decides what is skipped, so there the first time stays as it is.
        assert_eq!([near(true, mode::STEADY, 0), near(true, mode::STEADY, 1)], [1, NEAR]);
    }

    #[test]
    fn pauses_that_were_left_out_couple_their_switches() {
        let [a, b, c] = [1, 4, 7].map(SwitchIdx);
        let coupled = CoupledSwitches { switches: vec![b], times: 2 }.with(&BTreeSet::from([c, a, b]));
        assert_eq!((coupled.switches, coupled.times), (vec![a, b, c], 2));
    }
}
