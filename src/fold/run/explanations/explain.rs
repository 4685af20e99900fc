//! Finds out why partitions are simulated, if that is requested.
//!
//! Layer: fold/run. Changes nothing but the explanation.

use std::collections::HashMap;

use super::explanation::FoldCause;
use crate::memo::lock::lock;
use crate::memo::node::MemoNode;
use crate::rows::canonical_key::{CanonicalKey, shape};
use crate::rows::coupling::put_coupling;
use crate::rows::index::PartitionIdx;
use crate::rows::key_parts::{KeyPart, KeyPartSet};
use crate::rows::part_hashes::PartHashes;
use crate::rows::partition_rows::hops;
use crate::rows::snapshots::snapshot;
use crate::rows::snapshots::snapshot_walk::Pen;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::counters::row_names;
use hyperfold_columns::{INT_TX_UNIT, Tables, cc};

/// Maximum number of earlier keys with the same rows that a new one is compared with: the latest.
const MAX_COMPARED: usize = 256;

/// Notes that `p` is simulated from here on because of `cause`.
pub(crate) fn because(run: &mut FoldRun, t: &Tables, p: PartitionIdx, cause: FoldCause) {
    if run.explainer.is_none() {
        return;
    }
    settle(run, t, p);
    run.partitions[p].cause = cause;
    if let Some(explainer) = &run.explainer {
        lock(&explainer.told).causes.entry(cause).or_default().times += 1;
    }
}

/// Counts what was simulated of `p` since the last count.
pub(crate) fn settle(run: &mut FoldRun, t: &Tables, p: PartitionIdx) {
    let (Some(explainer), partition) = (&run.explainer, &mut run.partitions[p]) else { return };
    if !partition.is_simulated() {
        return;
    }
    let all = hops(t, &partition.rows);
    let more = all.saturating_sub(partition.explained_hops);
    partition.explained_hops = all;
    lock(&explainer.told).causes.entry(partition.cause).or_default().hops += more;
}

/// Explains why the lifetime of `p`, which starts at `at_ps`, is not known.
pub(crate) fn new_start(run: &mut FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64) {
    if run.explainer.is_none() {
        return;
    }
    let rows = &run.partitions[p].rows;
    let mut parts = PartHashes::default();
    parts.bytes(KeyPart::Rows, &rows_of(run, t, p).0);
    let e = &t.exps[0];
    if e.cc == cc::HPCC {
        parts.part(KeyPart::Phases);
        if t.fold_hints.telemetry_from.is_empty() {
            parts.word(at_ps % 1000);
        }
        for &port in &rows.ports {
            let (from_ps, from_bytes) = t.fold_hints.counts_from(port);
            parts.word((t.ports[port].tx_bytes - from_bytes) % (u64::from(INT_TX_UNIT) * u64::from(e.int_multi)));
            if !t.fold_hints.telemetry_from.is_empty() {
                parts.word((at_ps - from_ps) % 1000);
            }
        }
    }
    parts.part(KeyPart::Transmitters);
    for &n in &rows.nics {
        parts.word(u64::from(t.nics[n].rr));
        parts.word(u64::from(t.nics[n].qp_n));
    }
    let mut state = CanonicalKey::default();
    for m in rows.members.iter().filter(|m| m.known) {
        state.state(t, m.flow, at_ps, at_ps);
    }
    parts.bytes(KeyPart::Rates, &state.0);
    let Some(explainer) = &mut run.explainer else { return };
    let cause = match nearest(&mut explainer.starts, parts) {
        None => FoldCause::NewRows,
        Some(parts) => FoldCause::NewStart(parts),
    };
    because(run, t, p, cause);
}

/// Explains why the snapshot of `p` at `at_ps` is not known.
pub(crate) fn new_snapshot(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) {
    if run.explainer.is_none() {
        return;
    }
    let mut parts = snapshot::hash_parts(t, row_names(run, p, None), at_ps);
    parts.bytes(KeyPart::Rows, &rows_of(run, t, p).0);
    parts.bytes(KeyPart::Phases, &CanonicalKey::head(t, at_ps, &run.guard).0);
    let partition = &run.partitions[p];
    let mut ancestors = CanonicalKey::default();
    partition.rows.ancestors.iter().for_each(|&id| ancestors.id(&partition.rows, id));
    parts.bytes(KeyPart::Lineages, &ancestors.0);
    if let Some(plan) = &partition.ended_skip {
        let mut skip = CanonicalKey::default();
        plan.put(&mut skip);
        parts.bytes(KeyPart::Skips, &skip.0);
    }
    let Some(explainer) = &mut run.explainer else { return };
    let cause = match nearest(&mut explainer.snapshots, parts) {
        None => FoldCause::NewRowsAtCheckpoint,
        Some(parts) => FoldCause::NewSnapshot(parts),
    };
    // What was simulated before has another cause and has been counted.
    run.partitions[p].cause = cause;
    if let Some(explainer) = &run.explainer {
        lock(&explainer.told).causes.entry(cause).or_default().times += 1;
    }
}

/// Explains why the edge `key` of `node` is not known.
pub(crate) fn new_edge(run: &mut FoldRun, t: &Tables, p: PartitionIdx, node: &MemoNode, key: &[u8]) {
    if run.explainer.is_none() {
        return;
    }
    // A key consists of the kind, eight bytes of time, and the rest.
    let like = |other: &[u8]| other.len() > 9 && other[0] == key[0] && other[9..] == key[9..];
    let other_time = node.body().children.keys().any(|other| **other != *key && like(other));
    let cause = match (key[0], other_time) {
        (b'J', true) => FoldCause::JoinAtOtherTime,
        (b'J', false) => FoldCause::OtherJoin,
        (b'M', _) => FoldCause::Merge,
        (_, true) => FoldCause::PostAtOtherTime,
        (_, false) => FoldCause::OtherPost,
    };
    because(run, t, p, cause);
}

/// The constant properties of `p`'s rows, including those of coupled switches.
fn rows_of(run: &FoldRun, t: &Tables, p: PartitionIdx) -> CanonicalKey {
    let rows = &run.partitions[p].rows;
    let mut form = CanonicalKey(shape(t, rows, &|n| run.index.local_nic(p, n), &|q| run.index.local_port(p, q)));
    if !rows.switches.is_empty() {
        put_coupling(t, rows, &run.index.end_local, &mut form);
    }
    form
}

/// The parts in which `parts` differ from the most similar known ones with the same rows. `None`: there are none. Adds `parts` to the known ones.
fn nearest(known: &mut HashMap<u64, Vec<PartHashes>>, parts: PartHashes) -> Option<KeyPartSet> {
    let others = known.entry(parts.of(KeyPart::Rows)).or_default();
    let found = others.iter().rev().map(|other| parts.differing(other)).min_by_key(|set| set.len());
    if others.len() == MAX_COMPARED {
        others.remove(0);
    }
    others.push(parts);
    found
}
