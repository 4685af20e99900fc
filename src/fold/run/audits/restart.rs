//! A copy of an experiment's start, from which it can start over.
//!
//! Layer: fold/run. Of tasks, by far the most rows, the copy has only the columns that change; of constant tables it has nothing.

use std::collections::BTreeSet;

use crate::rows::buffer_guard::{BufferGuard, Failure};
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{NEVER, OwnedTables, SwitchIdx, Tables, Task, TaskIdx};

/// Number of restarts after which all switches are coupled (our choice).
const MAX_RESTARTS: u64 = 6;
/// A switch that would fail with this many times as much counts as near a failure. The second value applies if a restart finds nothing in the memo
/// (our choice).
const NEAR: u32 = 2;
const NEAR_UNREMEMBERED: u32 = 4;

/// The switches that are coupled because the proof about their buffers failed in an earlier attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoupledSwitches {
    pub switches: Vec<SwitchIdx>,
    /// Number of times that the experiment started over for them.
    pub times: u64,
}

impl CoupledSwitches {
    /// How many times as much switches would have to hold to count as near a failure, from now on; 1: this is not used.
    ///
    /// The first time, only switches that failed are coupled. But if marks are random and nothing is skipped, what was simulated is not in the memo,
    /// and a restart simulates all of it again. So more switches are coupled at once.
    pub(crate) fn near(&self, t: &Tables) -> u32 {
        if t.fold_hints.random_marks && !is_steadying(t) {
            NEAR_UNREMEMBERED
        } else if self.times > 0 {
            NEAR
        } else {
            1
        }
    }

    /// The coupled switches with `switches` added, at which pauses were left out in an attempt that is given up.
    pub(crate) fn with(&self, switches: &BTreeSet<SwitchIdx>) -> CoupledSwitches {
        let all: BTreeSet<SwitchIdx> = self.switches.iter().chain(switches).copied().collect();
        CoupledSwitches { switches: all.into_iter().collect(), times: self.times }
    }

    /// The coupled switches after `failure`: its switch, those that failed at the same instant, all that were near a failure by then
    /// ([`CoupledSwitches::near`]), and in the end all switches. It depends only on what happened in the experiment.
    pub(crate) fn after(&self, guard: &BufferGuard, failure: Failure, switches: u32) -> CoupledSwitches {
        let times = self.times + 1;
        let mut all: BTreeSet<SwitchIdx> = self.switches.iter().copied().collect();
        all.insert(failure.switch);
        all.extend(guard.failed());
        all.extend(guard.near_by(failure.at));
        if times >= MAX_RESTARTS {
            all.extend(SwitchIdx::all(switches));
        }
        CoupledSwitches { switches: all.into_iter().collect(), times }
    }
}

/// The state to restore.
pub(crate) struct Restart {
    /// All tables but tasks, edges and paths.
    tables: OwnedTables,
    tasks: Vec<TaskStart>,
}

/// The columns that change in a task that has not ended.
struct TaskStart {
    at: u64,
    next: TaskIdx,
    waits: u32,
    flags: u32,
}

impl Restart {
    /// Copies the start of an experiment. PRECONDITION: nothing of `t` has happened.
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

    /// Restores `t` to its start.
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
    use hyperfold_columns::{Exp, mode};

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
