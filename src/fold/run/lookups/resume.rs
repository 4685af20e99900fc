//! Continues a partition from a snapshot: it is looked up if the memo knows it, otherwise simulated.
//!
//! Layer: fold/run.

use std::sync::Arc;

use super::claim::{is_free, update_claim};
use super::restore::stand_at_snapshot;
use crate::memo::cursor::MemoCursor;
use crate::memo::node::{Continuation, MemoNode};
use crate::rows::canonical_key::{CanonicalKey, shape};
use crate::rows::coupling::put_coupling;
use crate::rows::index::PartitionIdx;
use crate::rows::snapshots::snapshot;
use crate::run::explanations::explain::new_snapshot;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::counters::{rebase, until_next, write_snapshot};
use crate::run::simulation::simulate::next_event_at;
use crate::run::skips::sampling_turns::{forget_rule, rule_of, schedule_sampling};
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{NEVER, Tables, mode};

/// Continues partition `p`, whose rows are in the tables as of `at_ps`. If the memo knows what follows, it is looked up. Returns its node.
pub(crate) fn resume(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    may_look_up: bool,
) -> Option<Continuation> {
    run.partitions[p].start = at_ps;
    let bytes = if may_look_up || is_steadying(t) { write_snapshot(run, t, p, at_ps) } else { Vec::new() };
    let due = until_next(run, snapshot::weight(&bytes));
    let found = if may_look_up { find_node(run, t, p, at_ps, bytes) } else { None };
    rebase(run, t, p, at_ps);
    let partition = &mut run.partitions[p];
    partition.changed = false;
    partition.hops_due = due;
    partition.cursor = None;
    partition.turned_away = may_look_up && run.memo.is_some() && found.is_none();
    partition.detector.reset(at_ps);
    let mut continuation = None;
    if let Some((node, known)) = found {
        continuation = Some(Continuation::Snapshot(Arc::clone(&node)));
        partition.cursor = Some(MemoCursor::new(Arc::clone(&node)));
        if known {
            snapshot::clear(t, &partition.rows, at_ps);
            stand_at_snapshot(run, p, node, at_ps);
        }
    }
    forget_rule(run, p);
    schedule_sampling(run, t, p);
    if run.partitions[p].is_simulated() {
        // Equivalent partitions that reach the same snapshot now follow it.
        let next = next_event_at(run, t, p).min(run.partitions[p].detector.next());
        let partition = &run.partitions[p];
        if let (Some(cursor), true) = (&partition.cursor, next != NEVER) {
            let mut body = cursor.node.body();
            body.known = body.known.max(next.saturating_sub(at_ps));
        }
        run.ticket.goes_alone();
    }
    update_claim(run, p);
    continuation
}

/// The node of `p`'s snapshot `bytes` at `at_ps`, and whether anything is known of it. `None`: the memo does not admit it or is full.
pub(crate) fn find_node(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    bytes: Vec<u8>,
) -> Option<(Arc<MemoNode>, bool)> {
    let memo = run.memo.clone()?;
    let mut key = CanonicalKey(vec![b'S']);
    key.0.extend(CanonicalKey::head(t, at_ps, &run.guard).0);
    key.0.extend_from_slice(&partition_shape(run, t, p));
    let partition = &run.partitions[p];
    key.u32(partition.rows.ancestors.len() as u32);
    partition.rows.ancestors.iter().for_each(|&id| key.id(&partition.rows, id));
    match &run.partitions[p].ended_skip {
        Some(plan) => plan.put(&mut key),
        None => key.u32(u32::MAX),
    }
    put_idle_times(run, t, p, at_ps, &mut key);
    key.0.extend_from_slice(&bytes);
    let (node, known) = memo.state(key.0, bytes.len(), run.ticket.by(at_ps))?;
    let body = node.body();
    let known = known && (body.known > 0 || body.checkpoint.is_some() || body.end.is_some());
    drop(body);
    let known = known || run.ticket.is_foreign(&node);
    if known {
        run.ticket.meet(&node, at_ps, || is_free(&run.partitions, p));
    }
    run.stats.snapshots += 1;
    run.stats.snapshots_known += u64::from(known);
    if !known {
        new_snapshot(run, t, p, at_ps);
    }
    Some((node, known))
}

/// If measured rates are carried on, adds to `key` how long each queue pair of `p` has had nothing to send, as far as that matters: after some time a
/// post changes rates.
fn put_idle_times(run: &mut FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64, key: &mut CanonicalKey) {
    if t.exps[0].modes & mode::RATES == 0 {
        return;
    }
    let patience = rule_of(run, t, p).patience;
    if patience > 0 {
        run.partitions[p].rows.members.iter().for_each(|m| key.u64(m.idle_for(at_ps).min(patience)));
    }
}

/// The constant properties of `p`'s rows, while no others join.
pub(crate) fn partition_shape(run: &mut FoldRun, t: &Tables, p: PartitionIdx) -> Arc<[u8]> {
    let partition = &run.partitions[p];
    if let Some(shape) = &partition.shape {
        return Arc::clone(shape);
    }
    let mut form =
        CanonicalKey(shape(t, &partition.rows, &|n| run.index.local_nic(p, n), &|q| run.index.local_port(p, q)));
    if !partition.rows.switches.is_empty() {
        put_coupling(t, &partition.rows, &run.index.end_local, &mut form);
    }
    let shape: Arc<[u8]> = form.0.into();
    run.partitions[p].shape = Some(Arc::clone(&shape));
    shape
}
