//! Restores looked-up partitions: their rows are in a snapshot, and not in the tables until they are restored.
//!
//! Layer: fold/run.

use crate::rows::index::PartitionIdx;
use crate::run::partitions::counters::full;
use crate::run::partitions::partition::PartitionState;
use std::sync::Arc;

use crate::memo::node::MemoNode;
use crate::rows::partition_rows::RowCounts;
use crate::rows::snapshots::snapshot;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::counters::{rebase_range, row_names, until_next};
use crate::run::partitions::partition::BaseSnapshot;
use crate::run::stop::{Stop, reason};
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{Tables, TaskIdx};

/// Marks that all rows of `p` are in the snapshot `node` as of `at_ps`, and not in the tables.
pub(crate) fn stand_at_snapshot(run: &mut FoldRun, p: PartitionIdx, node: Arc<MemoNode>, at_ps: u64) {
    let partition = &mut run.partitions[p];
    partition.state = PartitionState::LookedUp;
    partition.base_snapshots =
        vec![BaseSnapshot { node, at: at_ps, from: RowCounts::default(), to: RowCounts::of(&partition.rows) }];
}

/// Restores the rows of looked-up partition `p` as of the start of its episode or its last checkpoint.
pub(crate) fn restore(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) -> Result<(), Stop> {
    for member in &mut run.partitions[p].rows.members {
        (member.posts_in_rows, member.sent_in_rows) = (member.at_checkpoint.posted, member.at_checkpoint.sent);
    }
    let base_snapshots = std::mem::take(&mut run.partitions[p].base_snapshots);
    for base in &base_snapshots {
        let Some(bytes) = base.node.state() else { return Err(Stop::Abandon(reason::BACKING_STORE)) };
        next_unposted(run, t, p, base);
        snapshot::read(t, bytes, row_names(run, p, Some(base)), base.at, run.limit).map_err(full)?;
        // Messages that wait behind unsent bytes were there already.
        for m in &run.partitions[p].rows.members[base.from.members..base.to.members] {
            let tx = &mut t.flow_tx[m.flow];
            for &(i, _) in &m.posted[m.at_checkpoint.given..m.at_checkpoint.posted] {
                tx.size += t.tasks[i].bytes;
                tx.msg_post = t.tasks[i].follow;
            }
        }
        rebase_range(run, t, p, (base.from, base.to), base.at);
    }
    let sizes = base_snapshots.iter().filter_map(|b| b.node.state()).map(snapshot::weight);
    // If steady phases are skipped, checkpoints influence decisions. They come at the same time as after a merge of simulated partitions
    // (`merge::move_rows`).
    let due = if is_steadying(t) {
        sizes.map(|n| until_next(run, n)).max().unwrap_or(run.checkpoint_hops)
    } else {
        until_next(run, sizes.sum())
    };
    run.partitions[p].hops_due = due;
    Ok(())
}

/// Restores only the queue pairs of looked-up partition `p`. Their next post is the first one that the last checkpoint's snapshot does not contain.
pub(crate) fn restore_members(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) {
    let base_snapshots = std::mem::take(&mut run.partitions[p].base_snapshots);
    for base in &base_snapshots {
        let Some(bytes) = base.node.state() else { continue };
        let next: Vec<TaskIdx> = run.partitions[p].rows.members.iter().map(|m| t.flow_tx[m.flow].msg_post).collect();
        next_unposted(run, t, p, base);
        snapshot::read_members(t, bytes, row_names(run, p, Some(base)), base.at);
        for (m, next) in run.partitions[p].rows.members.iter().zip(next) {
            t.flow_tx[m.flow].msg_post = next;
        }
    }
}

/// Sets the next message of each queue pair to the first one that the snapshot `base` does not contain.
pub(crate) fn next_unposted(run: &FoldRun, t: &mut Tables, p: PartitionIdx, base: &BaseSnapshot) {
    for m in &run.partitions[p].rows.members[base.from.members..base.to.members] {
        if let Some(&(i, _)) = m.posted.get(m.at_checkpoint.given) {
            t.flow_tx[m.flow].msg_post = i;
        }
    }
}
