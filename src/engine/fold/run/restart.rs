//! A copy of an experiment's start, to start over with.
//!
//! Layer: fold/run. Of tasks, by far the most rows, it keeps only what changes; of what never changes nothing.

use crate::columns::{NEVER, OwnedTables, Tables, Task, TaskIdx, mode};

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

    /// Puts `t` back to its start, not to be folded.
    pub(crate) fn put_back(self, t: &mut Tables) {
        for (row, past) in t.tasks.iter_mut().zip(self.tasks) {
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
        t.overwrite(self.tables);
        (t.edges, t.paths) = kept;
        t.exps[0].modes &= !mode::FOLD;
    }
}
