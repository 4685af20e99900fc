//! Reads from the memo or a skip how a looked-up partition goes on.
//!
//! Layer: fold/run. Changes nothing.

use std::sync::Arc;

use crate::memo::node::NodeBody;
use crate::memo::outcome::FinalState;
use crate::rows::index::PartitionIdx;
use crate::run::fold_run::FoldRun;
use hyperfold_columns::{NEVER, Tables};

/// Time of a looked-up partition's next event, in ps.
pub(crate) fn next_reported(run: &FoldRun, t: &Tables, p: PartitionIdx) -> u64 {
    let partition = &run.partitions[p];
    let tasks =
        partition.rows.nics.iter().map(|&n| t.nics[n].next_task.min(t.nics[n].next_start)).min().unwrap_or(NEVER);
    if partition.skip().is_some() {
        return tasks.min(next_of_skip(run, p));
    }
    let Some(cursor) = &partition.cursor else { return tasks };
    let body = cursor.node.body();
    let event = body.events.get(cursor.next_event).map_or(NEVER, |x| x.at);
    let end = match (&body.checkpoint, &body.end) {
        (Some(checkpoint), _) => checkpoint.at,
        (None, Some(final_state)) => final_state.at,
        (None, None) => body.known,
    };
    tasks.min(partition.start.saturating_add(event.min(end)))
}

/// Time of the next event of skipped partition `p`, apart from its tasks, in ps.
fn next_of_skip(run: &FoldRun, p: PartitionIdx) -> u64 {
    run.partitions[p].skip().map_or(NEVER, |skip| skip.next_event().0)
}

/// Whether looked-up partition `p` reaches a checkpoint or its end by `at_ps`, or the memo knows no further. That comes before rows that join at
/// `at_ps`, unless such a join is known.
pub(crate) fn ends_by(run: &FoldRun, p: PartitionIdx, at_ps: u64) -> bool {
    let partition = &run.partitions[p];
    let Some(cursor) = &partition.cursor else { return partition.skip().is_none() };
    let body = cursor.node.body();
    let known_until = match (&body.checkpoint, &body.end) {
        (Some(checkpoint), _) => checkpoint.at,
        (None, Some(final_state)) => final_state.at,
        (None, None) => body.known,
    };
    let now = at_ps - partition.start;
    known_until <= now
        && (body.checkpoint.is_some()
            || body.end.is_some()
            || body.choice.is_some()
            || (now > 0 && ![b'J', b'M'].iter().any(|&tag| body.has_edge(tag, now))))
}

/// Whether the memo does not know what happens to `p` at `at_ps`. A skip needs no memo.
pub(crate) fn is_unknown_at(run: &FoldRun, p: PartitionIdx, at_ps: u64) -> bool {
    let partition = &run.partitions[p];
    let Some(cursor) = &partition.cursor else { return partition.skip().is_none() };
    let body = cursor.node.body();
    body.end.is_none() && body.checkpoint.is_none() && partition.start.saturating_add(body.known) <= at_ps
}

/// Time at which the known future continues at another node, whatever else happens; in ps from the episode's start.
pub(crate) fn leaves_at(body: &NodeBody) -> u64 {
    let checkpoint = body.checkpoint.as_ref().map_or(NEVER, |checkpoint| checkpoint.at);
    checkpoint.min(body.choice.as_ref().map_or(NEVER, |choice| choice.at))
}

/// Whether the memo has events of `p` by `at_ps` that were not reported.
pub(crate) fn has_more(run: &FoldRun, p: PartitionIdx, at_ps: u64) -> bool {
    let partition = &run.partitions[p];
    let Some(cursor) = &partition.cursor else { return false };
    let body = cursor.node.body();
    let event = body.events.get(cursor.next_event).map_or(NEVER, |x| x.at);
    event.min(leaves_at(&body)) <= at_ps - partition.start
}

/// The final state of `p`, if the memo says that it is idle by `at_ps`.
pub(crate) fn final_state_by(run: &FoldRun, p: PartitionIdx, at_ps: u64) -> Option<Arc<FinalState>> {
    let partition = &run.partitions[p];
    let cursor = partition.cursor.as_ref()?;
    let body = cursor.node.body();
    let final_state = body.end.as_ref().filter(|_| body.checkpoint.is_none())?;
    (cursor.next_event == body.events.len() && partition.start + final_state.at <= at_ps)
        .then(|| Arc::clone(final_state))
}
