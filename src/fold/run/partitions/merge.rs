//! Merges partitions.
//!
//! Layer: fold/run.

use crate::memo::node::MemoNode;
use crate::rows::index::PartitionIdx;
use std::sync::Arc;

use super::partition::BaseSnapshot;
use crate::memo::cursor::{MemoCursor, PendingKind};
use crate::memo::keys::edge;
use crate::memo::node_id::MemoNodeId;
use crate::rows::canonical_key::{CanonicalKey, rank};
use crate::rows::partition_rows::RowCounts;
use crate::run::explanations::explain::{because, settle};
use crate::run::explanations::explanation::FoldCause;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::claim::update_claim;
use crate::run::lookups::lookup::{leave_memo, report_events, start_simulating, stop_remembering};
use crate::run::lookups::recording::{flush, flush_covered, rewind};
use crate::run::skips::skip::{SkipEnd, end_skip};
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use hyperfold_columns::{NicIdx, Tables};

/// Merges `other` into `p` at `at_ps`, because NIC `n` needs rows of both.
pub(crate) fn merge(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    other: PartitionIdx,
    n: NicIdx,
    at_ps: u64,
) -> Result<(), Stop> {
    let complete = complete_until(run, p, at_ps).min(complete_until(run, other, at_ps));
    for q in [p, other] {
        report_events(run, t, q, at_ps)?;
        // At this instant it may have reached a skip.
        end_skip(run, t, q, at_ps, SkipEnd::Joined)?;
    }
    let may_look_up = [p, other].iter().all(|&q| run.partitions[q].cursor.is_some());
    for q in [p, other] {
        if !may_look_up {
            leave_memo(run, t, q, at_ps)?;
        } else if run.partitions[q].is_simulated() {
            rewind(run, q, at_ps, n);
            let complete = complete_until(run, q, at_ps);
            flush(run, q, (at_ps, n), complete);
        }
    }
    let looked_up = [p, other].map(|q| !run.partitions[q].is_simulated());
    let mut child = None;
    let key = merge_key(run, p, other, at_ps);
    if let (Some(memo), Some(cursor)) = (&run.memo, &run.partitions[p].cursor) {
        let start = run.partitions[p].start;
        child = memo.child(&cursor.node, key, complete - start, run.ticket.by(start));
    }
    if let (Some(memo), Some(cursor), Some(_)) = (&run.memo, &run.partitions[other].cursor, &child) {
        // Only records that the other partition got as far as here (`progress::ends_by`).
        let start = run.partitions[other].start;
        memo.child(
            &cursor.node,
            edge(b'M', at_ps - start, CanonicalKey::default()),
            complete - start,
            run.ticket.by(start),
        );
    }
    let both = looked_up == [true, true] && child.as_ref().is_some_and(|c| c.1);
    if !both {
        for q in [p, other] {
            if !run.partitions[q].is_simulated() {
                because(run, t, q, FoldCause::Merge);
                start_simulating(run, t, q, at_ps)?;
            }
        }
    }
    for q in [p, other] {
        settle(run, t, q);
    }
    let memorable = [p, other].iter().all(|&q| run.partitions[q].is_memorable());
    let cursor = child.and_then(|(node, _)| merged_cursor(run, p, other, node));
    move_rows(run, p, other);
    run.partitions[p].cursor = cursor;
    run.partitions[p].turned_away = false;
    if run.partitions[p].cursor.is_none() {
        stop_remembering(run, t, p, at_ps)?;
        run.partitions[p].turned_away = memorable;
    } else if both {
        update_claim(run, p);
        report_events(run, t, p, at_ps)?;
    } else {
        update_claim(run, p);
        catch_up(run, p);
    }
    Ok(())
}

/// Time in ps before which all events of `p` are known if rows join at `at_ps`.
pub(crate) fn complete_until(run: &FoldRun, p: PartitionIdx, at_ps: u64) -> u64 {
    let partition = &run.partitions[p];
    if partition.next > at_ps { at_ps + 1 } else { partition.next }
}

/// Records the events that are later than the join. In `p`'s own turn that is done at its end.
pub(crate) fn catch_up(run: &mut FoldRun, p: PartitionIdx) {
    if run.turning != p {
        let covered = run.partitions[p].covered;
        flush_covered(run, p, covered);
    }
}

/// The key of the merge of `other` into `p`.
pub(crate) fn merge_key(run: &FoldRun, p: PartitionIdx, other: PartitionIdx, at_ps: u64) -> Vec<u8> {
    let (a, b) = (&run.partitions[p], &run.partitions[other]);
    let mut form = CanonicalKey::default();
    form.first_locals(&a.rows);
    form.0.extend(b.cursor.as_ref().map_or(MemoNodeId::default(), |s| s.node.id()));
    form.u64(b.start.wrapping_sub(a.start));
    form.numbers(b.rows.nics.iter().map(|&n| rank(&a.rows.nics, n)));
    form.numbers(b.rows.ends.iter().map(|&e| rank(&a.rows.ends, e)));
    b.rows.flow_ids.iter().chain(&b.rows.ancestors).for_each(|&id| form.id(&a.rows, id));
    edge(b'M', at_ps - a.start, form)
}

/// The cursor of `p` after `other` merged into it at `node`.
pub(crate) fn merged_cursor(
    run: &mut FoldRun,
    p: PartitionIdx,
    other: PartitionIdx,
    node: Arc<MemoNode>,
) -> Option<MemoCursor> {
    let shift = run.partitions[p].rows.members.len() as u32;
    let mut cursor = run.partitions[p].cursor.take()?;
    let mut other_cursor = run.partitions[other].cursor.take()?;
    // Local numbers of rows that joined later than this are now void.
    if cursor.pending.iter().chain(&other_cursor.pending).any(|e| matches!(e.what, PendingKind::Join(_))) {
        return None;
    }
    for event in &mut other_cursor.pending {
        if let PendingKind::Message { member, .. } | PendingKind::Post { member, .. } = &mut event.what {
            *member += shift;
        }
    }
    cursor.pending.extend(other_cursor.pending);
    cursor.at(node);
    Some(cursor)
}

/// Moves the rows and the state of `other` to `p`.
pub(crate) fn move_rows(run: &mut FoldRun, p: PartitionIdx, other: PartitionIdx) {
    let merged = run.partitions.remove(other);
    run.partitions[p].explained_hops += merged.explained_hops;
    if run.turning == other {
        run.turning = p;
    }
    let partition = &mut run.partitions[p];
    let before = RowCounts::of(&partition.rows);
    partition.base_snapshots.extend(merged.base_snapshots.into_iter().map(|b| BaseSnapshot {
        from: before + b.from,
        to: before + b.to,
        ..b
    }));
    partition.changed |= merged.changed;
    partition.hops_due = partition.hops_due.max(merged.hops_due);
    partition.shape = None;
    partition.rows.last_post_at.extend(merged.rows.last_post_at);
    for &n in &merged.rows.nics {
        run.index.nic_partition[n.usize()] = p;
        run.index.nic_local[n.usize()] += partition.rows.nics.len() as u32;
    }
    for &port in &merged.rows.ports {
        run.index.port_partition[port.usize()] = p;
        run.index.port_local[port.usize()] += partition.rows.ports.len() as u32;
    }
    for &end in &merged.rows.ends {
        run.index.end_local[end.usize()] += partition.rows.ends.len() as u32;
    }
    for m in merged.rows.members {
        run.index.member[m.flow.usize()] = partition.rows.members.len() as u32;
        partition.rows.members.push(m);
    }
    partition.rows.flow_ids.extend(merged.rows.flow_ids);
    partition.rows.ancestors.extend(merged.rows.ancestors);
    partition.rows.nics.extend(merged.rows.nics);
    partition.rows.nic_base.extend(merged.rows.nic_base);
    partition.rows.ports.extend(merged.rows.ports);
    partition.rows.port_base.extend(merged.rows.port_base);
    partition.rows.ends.extend(merged.rows.ends);
    partition.rows.peaks.extend(merged.rows.peaks);
    for &s in &merged.rows.switches {
        run.index.switch_partition[s.usize()] = p;
    }
    partition.rows.switches.extend(merged.rows.switches);
    partition.detector.reset(merged.detector.from);
    partition.awaits = match (partition.awaits, merged.awaits) {
        (Some(a), Some(b)) => Some(a && b),
        (a, b) => a.or(b),
    };
    partition.recordable &= merged.recordable;
    partition.first = partition.first.min(merged.first);
    partition.covered = partition.covered.min(merged.covered);
    partition.reached = partition.reached.max(merged.reached);
    schedule_partition(run, p, merged.next);
}
