//! Decides which nodes of the memo a run records itself, and which it waits for.
//!
//! Layer: fold/run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::progress::is_unknown_at;
use crate::memo::in_flight::ClaimAnswer;
use crate::rows::index::PartitionIdx;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::partition::Partitions;
use crate::run::stop::Stop;

/// Claims the current node of simulated partition `p`, and releases any other claim of it.
pub(crate) fn update_claim(run: &mut FoldRun, p: PartitionIdx) {
    let partition = &mut run.partitions[p];
    let simulated = partition.is_simulated();
    let Some(cursor) = &mut partition.cursor else { return };
    if cursor.claim.as_ref().is_some_and(|claim| simulated && Arc::ptr_eq(&claim.node, &cursor.node)) {
        return;
    }
    cursor.claim = if simulated { run.ticket.adopt(&cursor.node) } else { None };
}

/// Whether looked-up partition `p` must be simulated from `at_ps` on: what follows is not known, and no other experiment records it. If another one
/// does, returns [`Stop::Wait`].
pub(crate) fn must_simulate(run: &mut FoldRun, p: PartitionIdx, at_ps: u64) -> Result<bool, Stop> {
    if !is_unknown_at(run, p, at_ps) {
        return Ok(false);
    }
    let start = run.partitions[p].start;
    let Some(node) = run.partitions[p].cursor.as_ref().map(|s| Arc::clone(&s.node)) else {
        return Ok(true);
    };
    run.ticket.meet(&node, start, || is_free(&run.partitions, p));
    let Some(cursor) = &mut run.partitions[p].cursor else { return Ok(true) };
    if !run.ticket.may_wait || node.unpredictable.load(Ordering::Relaxed) {
        return Ok(true);
    }
    match run.ticket.ask(&node, at_ps - start) {
        ClaimAnswer::Wait => Err(Stop::Wait),
        ClaimAnswer::Go(None) => Ok(true),
        ClaimAnswer::Go(claim) => {
            cursor.claim = claim;
            // The previous holder may have recorded more before it released the claim.
            let missing = is_unknown_at(run, p, at_ps);
            if !missing {
                update_claim(run, p);
            }
            Ok(missing)
        }
    }
}

/// Whether no partition but `p` is simulated: what all others do is known or being recorded elsewhere.
pub(crate) fn is_free(partitions: &Partitions, p: PartitionIdx) -> bool {
    let is_simulated = |q: PartitionIdx| partitions[q].is_simulated() && !partitions[q].rows.nics.is_empty();
    partitions.numbers().all(|q| q == p || !is_simulated(q))
}
