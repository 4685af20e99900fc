//! A copy of an experiment's start, to start over with.
//!
//! Layer: fold/run. Of tasks, by far the most rows, it keeps only what changes; of what never changes nothing.

use std::collections::BTreeSet;

use crate::columns::{NEVER, OwnedTables, SwitchIdx, Tables, Task, TaskIdx};
use crate::engine::fold::rows::buffer_guard::{BufferGuard, Failure};

/// After so many times, all switches are coupled (our choice).
const MOST_TIMES: u64 = 6;

/// The switches that are coupled because the proof about their buffers failed in an earlier attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoupledSwitches {
    pub switches: Vec<SwitchIdx>,
    /// How often the experiment started over for them.
    pub times: u64,
}

impl CoupledSwitches {
    /// After `failure`: its switch and those that failed at the same instant, from the second time on all that were near
    /// a failure by then, in the end all. It depends on nothing but what happened in the experiment.
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
