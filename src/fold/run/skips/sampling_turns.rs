//! Schedules and takes the samples of simulated partitions.
//!
//! Layer: fold/run.

use std::cmp::Reverse;

use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::is_idle;
use crate::run::fold_run::FoldRun;
use crate::steady::detector::{DetectorRule, is_settled};
use crate::steady::sampling::{choose_rule, is_steadying};
use hyperfold_columns::{FlowIdx, NEVER, Tables, mode};

/// Resets the detector of `p`, because something at `at_ps` may have changed its rates.
pub(crate) fn reset_detector(run: &mut FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64) {
    if !is_steadying(t) {
        return;
    }
    run.partitions[p].detector.reset(at_ps);
    run.partitions[p].ended_skip = None;
    schedule_sampling(run, t, p);
}

/// Whether a post at `at_ps` on a queue pair of `p` was expected, because the queue pair is intermittent and its rate allows for that. `idle`: time
/// since which it had nothing to send (`NEVER`: it had something). In ps.
pub(crate) fn goes_on_soon(run: &mut FoldRun, t: &Tables, p: PartitionIdx, idle: u64, at_ps: u64) -> bool {
    if t.exps[0].modes & mode::RATES == 0 {
        return false;
    }
    let rule = rule_of(run, t, p);
    rule.patience > 0 && (idle == NEVER || at_ps.saturating_sub(idle) <= rule.patience)
}

/// The rule by which `p` is sampled, or would be.
pub(crate) fn rule_of(run: &mut FoldRun, t: &Tables, p: PartitionIdx) -> DetectorRule {
    match run.partitions[p].detector.rule {
        Some(rule) => rule,
        None => {
            let rule = new_rule(run, t, p);
            run.partitions[p].detector.rule = Some(rule);
            rule
        }
    }
}

/// Schedules the next sample of `p`, if it is simulated.
pub(crate) fn schedule_sampling(run: &mut FoldRun, t: &Tables, p: PartitionIdx) {
    if !is_steadying(t) || !run.partitions[p].is_simulated() || !run.partitions[p].recordable {
        return;
    }
    rule_of(run, t, p);
    let partition = &run.partitions[p];
    run.schedule.samplings.push(Reverse((partition.detector.next(), partition.first)));
}

/// Chooses the rule by which `p` is sampled.
fn new_rule(run: &mut FoldRun, t: &Tables, p: PartitionIdx) -> DetectorRule {
    let partition = &mut run.partitions[p];
    choose_rule(t, &partition.rows, &run.index, &mut partition.detector, run.checkpoint_hops)
}

/// Forgets the rule and traits of `p`, because its rows have changed.
pub(crate) fn forget_rule(run: &mut FoldRun, p: PartitionIdx) {
    let detector = &mut run.partitions[p].detector;
    (detector.rule, detector.traits) = (None, None);
}

/// Forgets the rule of `p`, because queue pair `f` joined, perhaps with the rows of other partitions.
pub(crate) fn widen_rule(run: &mut FoldRun, p: PartitionIdx, f: FlowIdx) {
    let m = run.index.member[f.usize()] as usize;
    let detector = &mut run.partitions[p].detector;
    detector.rule = None;
    // It was a member before, but without a path.
    if detector.traits.as_ref().is_some_and(|traits| m < traits.members) {
        detector.traits = None;
    }
}

/// The first due sample of any simulated partition: its time and the partition.
pub(crate) fn next_sampling(run: &mut FoldRun) -> Option<(u64, PartitionIdx)> {
    while let Some(&Reverse((at_ps, n))) = run.schedule.samplings.peek() {
        let p = run.index.nic_partition[n.usize()];
        if p.is_some() {
            let partition = &run.partitions[p];
            if partition.is_simulated()
                && partition.recordable
                && partition.first == n
                && partition.detector.next() == at_ps
            {
                return Some((at_ps, p));
            }
        }
        run.schedule.samplings.pop();
    }
    None
}

/// Takes a sample of `p` and does nothing else. It also serves samples that are repeated after a return to a snapshot.
pub(crate) fn take_sample(run: &mut FoldRun, t: &Tables, p: PartitionIdx) {
    let mut detector = std::mem::take(&mut run.partitions[p].detector);
    detector.take_sample(t, &run.partitions[p].rows);
    run.partitions[p].detector = detector;
}

/// Takes a sample of `p`. Returns whether a whole window has been sampled now.
pub(crate) fn sample_partition(run: &mut FoldRun, t: &Tables, p: PartitionIdx) -> bool {
    take_sample(run, t, p);
    let partition = &run.partitions[p];
    let settled = || partition.rows.members.iter().all(|m| !m.routed || is_idle(t, m.flow) || is_settled(t, m.flow));
    partition.detector.is_full(false) || (partition.detector.is_full(true) && settled())
}

/// Whether queue pair `m` of `p` has something to do.
pub(crate) fn works(run: &FoldRun, t: &Tables, p: PartitionIdx, m: u32) -> bool {
    let m = &run.partitions[p].rows.members[m as usize];
    m.routed && !is_idle(t, m.flow)
}
