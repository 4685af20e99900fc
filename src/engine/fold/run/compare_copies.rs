//! What carried rates add up to: an experiment is compared with its copies, which went on without them.
//!
//! Layer: fold/run. Changes nothing but counts.

use crate::columns::{FlowIdx, NEVER, NONE, Tables, TaskIdx, task as bits};
use crate::engine::fold::run::copies::ExperimentCopy;
use crate::engine::fold::run::fold_run::FoldRun;
use crate::engine::fold::steady::carried_error::{ComparedCopy, carried_error};
use crate::units::PS_PER_NS;

/// Bytes that queue pair `f` has sent by `at`, where rows are not later than that.
pub(crate) fn sent(run: &FoldRun, t: &Tables, f: FlowIdx, at: u64) -> u64 {
    let tx = &t.flow_tx[f];
    let (p, m) = (run.index.nic_partition[tx.nic.usize()], run.index.member[f.usize()]);
    let skip = if p == NONE || m == NONE { None } else { run.partitions[p as usize].skip.as_ref() };
    tx.sent_bytes + skip.map_or(0, |skip| skip.bytes(m as usize, at))
}

/// The experiment is beyond the time up to which copies went: what it has sent is compared with theirs.
pub(crate) fn note_progress(run: &mut FoldRun, t: &Tables, now: u64) {
    let mut copies = std::mem::take(&mut run.continued.copies);
    for copied in copies.iter_mut().filter(|copied| copied.came.is_none() && copied.to < now) {
        copied.came = Some(copied.flows.iter().map(|&(f, ..)| sent(run, t, f, copied.to)).collect());
    }
    run.continued.copies = copies;
    run.continued.next = NEVER;
}

/// The experiment is over: all copies are compared with it.
pub(crate) fn compare_all(run: &mut FoldRun, t: &Tables) {
    if run.continued.carried.is_empty() {
        return;
    }
    note_progress(run, t, NEVER);
    let audits = &run.continued;
    let carried = union(&audits.carried);
    let makespan = t.tasks.iter().map(|row| if row.done == NEVER { 0 } else { row.done }).max().unwrap_or(0);
    let copies: Vec<ComparedCopy> = audits
        .copies
        .iter()
        .map(|copied| ComparedCopy { covered: within(&carried, copied.from, copied.to), ..compared(t, copied) })
        .collect();
    for (copy, copied) in copies.iter().zip(&audits.copies) {
        log::debug!(
            "folding: experiment {}: a copy went on from {} to {} ns; {copy:?}",
            t.exps[0].exp_id,
            copied.from / PS_PER_NS,
            copied.to / PS_PER_NS
        );
    }
    run.stats.continued = copies.len() as u64;
    (run.stats.carried_ppm, run.stats.carried_messages_ppm) =
        carried_error(&copies, within(&carried, 0, NEVER), (audits.unsettled / 1_000_000) as u64, makespan);
}

/// What the experiment was off by at the end of what was copied, but for how long rates were carried on. The makespan goes
/// by the bytes of all queue pairs: of two that share a port, one is early by what the other is late. Messages count one
/// by one.
fn compared(t: &Tables, copied: &ExperimentCopy) -> ComparedCopy {
    let span = (copied.to - copied.from) as f64;
    let came = copied.came.as_deref().unwrap_or_default();
    let flows = || copied.flows.iter().zip(came).filter(|((_, from, to), _)| to > from);
    let (behind, all) = flows()
        .fold((0.0, 0.0), |sum, (&(_, from, to), &came)| (sum.0 + to as f64 - came as f64, sum.1 + (to - from) as f64));
    let late = if all > 0.0 { behind / all * span } else { 0.0 };
    let (mut messages_late, mut messages_took) = (0.0, 0.0);
    let is_done = |i: &TaskIdx| t.tasks[*i].flags & bits::MESSAGE != 0 && t.tasks[*i].done != NEVER;
    for &(i, took, done) in copied.tasks.iter().filter(|(i, ..)| is_done(i)) {
        let row = &t.tasks[i];
        messages_late += row.done.saturating_sub(row.at) as f64 - took as f64;
        messages_took += took.min(done - copied.from) as f64;
    }
    if messages_took == 0.0 {
        // None was done: those under way are as late as their queue pairs.
        for (&(_, from, to), &came) in flows() {
            messages_late += (to as f64 - came as f64) / (to - from) as f64 * span;
            messages_took += span;
        }
    }
    ComparedCopy { covered: 0, late, messages_late, messages_took }
}

/// Spans of time as such that do not meet, in order.
fn union(spans: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let mut apart: Vec<(u64, u64)> = Vec::new();
    for (from, to) in sorted {
        match apart.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// How much of the spans is between `from` and `to`.
fn within(spans: &[(u64, u64)], from: u64, to: u64) -> u64 {
    spans.iter().map(|&(begins, ends)| ends.min(to).saturating_sub(begins.max(from))).sum()
}
