//! Computes the total error of carried rates: compares an experiment with its copies, which ran without carried rates.
//!
//! Layer: fold/run. Changes nothing but counts.

use std::cmp::Reverse;

use super::copies::ExperimentCopy;
use crate::run::fold_run::FoldRun;
use crate::steady::carried_error::{ComparedCopy, carried_error};
use hyperfold_base::units::{PS_PER_NS, PS_PER_S};
use hyperfold_columns::{FlowIdx, NEVER, NONE, Tables, TaskIdx, task as bits};

/// A transmitter counts as always busy if it is busy for more than this share of the time, in millionths (our choice).
const BUSY_PPM: u128 = 950_000;

/// Bytes that queue pair `f` has sent by `at_ps`. PRECONDITION: its rows are not later than that.
pub(crate) fn sent(run: &FoldRun, t: &Tables, f: FlowIdx, at_ps: u64) -> u64 {
    let tx = &t.flow_tx[f];
    let (p, m) = (run.index.nic_partition[tx.nic.usize()], run.index.member[f.usize()]);
    let skip = if p.is_none() || m == NONE { None } else { run.partitions[p].skip() };
    tx.sent_bytes + skip.map_or(0, |skip| skip.bytes(m as usize, at_ps))
}

/// Stores what the experiment has sent by the ends of copies that it has now passed.
pub(crate) fn note_progress(run: &mut FoldRun, t: &Tables, now: u64) {
    let mut copies = std::mem::take(&mut run.continued.copies);
    for copied in copies.iter_mut().filter(|copied| copied.experiment_sent.is_none() && copied.to < now) {
        copied.experiment_sent = Some(copied.flows.iter().map(|&(f, ..)| sent(run, t, f, copied.to)).collect());
    }
    run.continued.copies = copies;
    run.continued.next = NEVER;
}

/// Compares all copies with the experiment, which is over.
pub(crate) fn compare_all(run: &mut FoldRun, t: &Tables) {
    if run.continued.carried.is_empty() {
        return;
    }
    note_progress(run, t, NEVER);
    let audits = &run.continued;
    let carried = union(&audits.carried);
    let ended = t.tasks.iter().filter(|row| row.done != NEVER);
    let makespan = ended.clone().map(|row| row.done).max().unwrap_or(0);
    // The queue pair whose last message ended last: its share decides the makespan.
    let messages = ended.filter(|row| row.flags & bits::MESSAGE != 0);
    let last = messages.max_by_key(|row| (row.done, Reverse(row.flow))).map(|row| row.flow);
    let last = last.filter(|&f| !is_paced(t, f, makespan));
    let copies: Vec<ComparedCopy> = audits
        .copies
        .iter()
        .map(|copied| ComparedCopy { covered: within(&carried, copied.from, copied.to), ..compared(t, copied, last) })
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

/// Whether a transmitter on the path of queue pair `f` was busy for the whole `makespan` (ps). Then other queue pairs had earlier what `f` lacks, and
/// `f` ends on time.
fn is_paced(t: &Tables, f: FlowIdx, makespan: u64) -> bool {
    let tx = &t.flow_tx[f];
    let busy = |bytes: u64, rate: u64| u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(rate.max(1));
    let is_busy = |busy: u128| busy * 1_000_000 >= BUSY_PPM * u128::from(makespan);
    let ports = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
    let nic = &t.nics[tx.nic];
    is_busy(busy(nic.tx_bytes, nic.rate)) || ports.iter().any(|&q| is_busy(busy(t.ports[q].tx_bytes, t.ports[q].rate)))
}

/// Error of the experiment at the end of a copy, without `covered`. Messages count one by one. `last`: the queue pair that ended last of all, if its
/// own share decides when.
fn compared(t: &Tables, copied: &ExperimentCopy, last: Option<FlowIdx>) -> ComparedCopy {
    let span = (copied.to - copied.from) as f64;
    let experiment_sent = copied.experiment_sent.as_deref().unwrap_or_default();
    let flows = || copied.flows.iter().zip(experiment_sent).filter(|((_, from, to), _)| to > from);
    let late = late(t, flows().map(|(&(f, from, to), &experiment_sent)| (f, from, to, experiment_sent)), last, span);
    let (mut messages_late, mut messages_took) = (0.0, 0.0);
    let is_done = |i: &TaskIdx| t.tasks[*i].flags & bits::MESSAGE != 0 && t.tasks[*i].done != NEVER;
    for &(i, took, done) in copied.tasks.iter().filter(|(i, ..)| is_done(i)) {
        let row = &t.tasks[i];
        messages_late += row.done.saturating_sub(row.at) as f64 - took as f64;
        messages_took += took.min(done - copied.from) as f64;
    }
    if messages_took == 0.0 {
        // No message was done: running messages are as late as their queue pairs.
        for (&(_, from, to), &experiment_sent) in flows() {
            messages_late += (to as f64 - experiment_sent as f64) / (to - from) as f64 * span;
            messages_took += span;
        }
    }
    ComparedCopy { covered: 0, late, messages_late, messages_took }
}

/// Possible lateness of the makespan, in ps. `flows`: queue pairs, each with the bytes sent when the copy of `span` ps began, when it ended in the
/// copy, and by the same time in the experiment.
///
/// Of two queue pairs that share a port, one is early by as much as the other is late. So all are taken together; or those through the port that has
/// most left to send by then, because it decides when everything is sent. But shares themselves may be off. If no port is busy all the time, the
/// `last` queue pair to end is early or late by the error of its own share. The largest of these counts.
fn late(t: &Tables, flows: impl Iterator<Item = (FlowIdx, u64, u64, u64)>, last: Option<FlowIdx>, span: f64) -> f64 {
    let nics = t.exps[0].nic_len as usize;
    let mut transmitters = vec![Progress::default(); nics + t.ports.len()];
    let (mut all, mut of_last) = (Progress::default(), Progress::default());
    for (f, from, to, experiment_sent) in flows {
        if Some(f) == last {
            of_last.add(from, to, experiment_sent, 0.0);
        }
        let tx = &t.flow_tx[f];
        let path = &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize];
        let crossed = path.iter().map(|q| (nics + q.usize(), t.ports[*q].tx_full));
        for (transmitter, tx_full) in crossed.chain([(tx.nic.usize(), t.nics[tx.nic].tx_full)]) {
            transmitters[transmitter].add(
                from,
                to,
                experiment_sent,
                tx.size.saturating_sub(experiment_sent) as f64 * tx_full as f64,
            );
        }
        all.add(from, to, experiment_sent, 0.0);
    }
    most_late(&transmitters, [all, of_last], span)
}

/// The largest lateness after `span` ps, in ps: of `groups` of queue pairs, or of those at the transmitter that has most left to send.
fn most_late(transmitters: &[Progress], groups: [Progress; 2], span: f64) -> f64 {
    let slowest = transmitters.iter().max_by(|a, b| a.left.total_cmp(&b.left)).copied().unwrap_or_default();
    let late = groups.into_iter().chain([slowest]).map(|group| group.late(span));
    late.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default()
}

/// Total progress of the queue pairs at a transmitter.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Bytes that they sent in the copy, and by how many bytes the experiment is behind that.
    sent: f64,
    behind: f64,
    /// Data that they have yet to send, in bytes times the transmission time of a packet in ps.
    left: f64,
}

impl Progress {
    fn add(&mut self, from: u64, to: u64, experiment_sent: u64, left: f64) {
        self.sent += (to - from) as f64;
        self.behind += to as f64 - experiment_sent as f64;
        self.left += left;
    }

    /// Their lateness after `span` ps, in ps.
    fn late(&self, span: f64) -> f64 {
        if self.sent > 0.0 { self.behind / self.sent * span } else { 0.0 }
    }
}

/// The union of spans of time: disjoint spans, in order.
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

/// Total length of the spans between `from` and `to`.
fn within(spans: &[(u64, u64)], from: u64, to: u64) -> u64 {
    spans.iter().map(|&(begins, ends)| ends.min(to).saturating_sub(begins.max(from))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Progress at a transmitter: 1,000 bytes in the copy, `behind` fewer in the experiment, and `left` to send.
    fn through(behind: f64, left: f64) -> Progress {
        Progress { sent: 1000.0, behind, left }
    }

    #[test]
    fn the_port_with_most_left_decides() {
        // The others are early by as much, so all together are on time.
        let ports = [through(-110.0, 5.0), through(110.0, 9.0), through(0.0, 7.0)];
        let all = Progress { sent: 3000.0, ..Progress::default() };
        assert_eq!(most_late(&ports, [all, Progress::default()], 2000.0), 220.0);
        // The last port is on time, and all together are early.
        let ports = [through(0.0, 9.0), through(-60.0, 1.0)];
        let all = Progress { sent: 2000.0, behind: -60.0, left: 0.0 };
        assert_eq!(most_late(&ports, [all, Progress::default()], 2000.0), -60.0);
        // The shared part is on time, but the queue pair that ends last has more of it than it should have.
        let share = through(-90.0, 0.0);
        assert_eq!(most_late(&ports, [all, share], 2000.0), -180.0);
        assert_eq!(most_late(&[], [Progress::default(); 2], 2000.0), 0.0);
    }
}
