//! Gains of a partition's counters since its start or the last checkpoint; and its snapshot.
//!
//! Layer: fold/run.

use super::partition::BaseSnapshot;
use crate::memo::node::Checkpoint;
use crate::memo::outcome::{CounterDelta, NicDelta, PortDelta};
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::Member;
use crate::rows::partition_rows::{NicBase, PortBase, RowCounts, SendProgress};
use crate::rows::snapshots::snapshot;
use crate::rows::snapshots::snapshot_walk::RowNames;
use crate::run::fold_run::FoldRun;
use crate::run::stop::Stop;
use hyperfold_columns::{NicIdx, PortIdx, SHARED_HEADER, Tables, mode};
use hyperfold_engine::grow::TooManyPackets;

/// Minimum number of packets between checkpoints. A snapshot costs as much as simulating a few hundred packets.
pub(crate) const HOPS_PER_CHECKPOINT: u64 = 2048;

/// Minimum number of packets between checkpoints per byte of the last snapshot.
const BYTES_PER_HOP: u64 = 1;

/// Returns the gains of `p`'s counters since its episode began or the last checkpoint. Its rows are at `at_ps`.
pub(crate) fn deltas(run: &FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64) -> Checkpoint {
    let partition = &run.partitions[p];
    let nic = |(&n, base): (&NicIdx, &NicBase)| nic_delta(t, n, base, at_ps);
    let port = |(&q, base): (&PortIdx, &PortBase)| port_delta(t, q, base, at_ps);
    let member = |m: &Member| {
        let (tx, rx) = (&t.flow_tx[m.flow], &t.flow_rx[m.flow]);
        CounterDelta {
            una: tx.snd_una - m.tx.snd_una,
            sent_bytes: tx.sent_bytes - m.tx.sent_bytes,
            arrived_bytes: rx.arrived_bytes - m.rx.arrived_bytes,
            milestone: rx.milestone.wrapping_sub(m.rx.milestone),
            n_sent: tx.n_sent.wrapping_sub(m.tx.n_sent),
            n_acks: rx.n_acks.wrapping_sub(m.rx.n_acks),
            rtt_sum: tx.rtt_sum - m.tx.rtt_sum,
            rtt_seen: tx.rtt_seen.wrapping_sub(m.tx.rtt_seen),
        }
    };
    Checkpoint {
        at: 0,
        pieces: Vec::new(),
        continuations: Vec::new(),
        nics: partition.rows.nics.iter().zip(&partition.rows.nic_base).map(nic).collect(),
        ports: partition.rows.ports.iter().zip(&partition.rows.port_base).map(port).collect(),
        peaks: partition.rows.peaks.clone(),
        members: partition.rows.members.iter().map(member).collect(),
    }
}

/// Resets the base of all counters of `p`, whose rows are at `at_ps`: gains are counted from here on.
pub(crate) fn rebase(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) {
    let to = RowCounts::of(&run.partitions[p].rows);
    rebase_range(run, t, p, (RowCounts::default(), to), at_ps);
}

/// Resets the base of the counters of a range of `p`'s rows, which are at `at_ps`.
pub(crate) fn rebase_range(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    (from, to): (RowCounts, RowCounts),
    at_ps: u64,
) {
    let partition = &mut run.partitions[p];
    for k in from.nics..to.nics {
        partition.rows.nic_base[k] = NicBase::of(t, partition.rows.nics[k], at_ps);
    }
    for k in from.ports..to.ports {
        let port = partition.rows.ports[k];
        let row = &mut t.ports[port];
        let max_q = partition.rows.port_base[k].max_q.max(row.max_q);
        row.max_q = row.q_bytes;
        partition.rows.port_base[k] = PortBase::of(t, port, max_q, at_ps);
    }
    for k in from.ends..to.ends {
        partition.rows.peaks[k] = run.guard.coarse(t.shared[(SHARED_HEADER + partition.rows.ends[k].0) as usize]);
    }
    for m in &mut partition.rows.members[from.members..to.members] {
        (m.tx, m.rx) = (t.flow_tx[m.flow], t.flow_rx[m.flow]);
        // Bytes of messages that the network was not given yet do not count.
        let behind: u64 =
            m.posted[m.at_checkpoint.given..m.at_checkpoint.posted].iter().map(|&(i, _)| t.tasks[i].bytes).sum();
        m.tx.size -= behind;
    }
}

/// Removes messages that are both delivered and acknowledged.
pub(crate) fn forget_finished_messages(run: &mut FoldRun, t: &Tables, p: PartitionIdx) {
    // If rates were carried on, rows may still have to acknowledge what is already reported.
    let behind = t.exps[0].modes & mode::RATES != 0 && run.partitions[p].is_simulated();
    for m in &mut run.partitions[p].rows.members {
        let mut n_finished = m.delivered.min(m.acked);
        if behind && n_finished > 0 {
            let first = t.flow_tx[m.flow].msg_ack;
            n_finished = m.posted[..n_finished].iter().position(|&(i, _)| i == first).unwrap_or(n_finished);
        }
        m.posted.drain(..n_finished);
        m.delivered -= n_finished;
        m.acked -= n_finished;
        m.given -= n_finished;
        m.sent = m.sent.saturating_sub(n_finished);
        m.posts_in_rows = m.posts_in_rows.saturating_sub(n_finished);
        m.sent_in_rows = m.sent_in_rows.saturating_sub(n_finished);
        m.known = true;
        m.at_checkpoint = SendProgress { posted: m.posted.len(), given: m.given, sent: m.sent };
    }
}

/// Writes the snapshot of `p`, whose rows are in the tables as of `at_ps`.
pub(crate) fn write_snapshot(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, at_ps: u64) -> Vec<u8> {
    let (bytes, ancestors) = snapshot::write(t, row_names(run, p, None), at_ps);
    run.partitions[p].rows.ancestors = ancestors;
    bytes
}

/// Names for the rows of `p`, or of the range of them in snapshot `base`.
pub(crate) fn row_names<'a>(run: &'a FoldRun, p: PartitionIdx, base: Option<&BaseSnapshot>) -> RowNames<'a> {
    let partition = &run.partitions[p];
    let (from, to) = base.map_or((RowCounts::default(), RowCounts::of(&partition.rows)), |b| (b.from, b.to));
    RowNames {
        rows: &partition.rows,
        from,
        to,
        member: &run.index.member,
        flow: &run.index.flow,
        end: &run.index.end_local,
    }
}

/// Ends an interval of `p` at `end` (ps): reports the maximum that its ingresses held.
pub(crate) fn report_peaks(run: &mut FoldRun, t: &Tables, p: PartitionIdx, end: u64) {
    let partition = &run.partitions[p];
    run.guard.report_peaks(t, partition.start, end, &partition.rows.ends, &partition.rows.peaks);
}

/// Number of packets from a snapshot of this weight to the next checkpoint.
pub(crate) fn until_next(run: &FoldRun, weight: u64) -> u64 {
    run.checkpoint_hops.max(weight * run.checkpoint_hops / HOPS_PER_CHECKPOINT / BYTES_PER_HOP)
}

/// Returns the gains of NIC `n`'s counters from `base` to `at_ps`.
pub(crate) fn nic_delta(t: &Tables, n: NicIdx, base: &NicBase, at_ps: u64) -> NicDelta {
    let row = &t.nics[n];
    NicDelta {
        tx_bytes: row.tx_bytes - base.tx_bytes,
        hops: row.hops - base.hops,
        pauses: row.pauses - base.pauses,
        paused_ps: t.paused_until(n.end(), at_ps) - base.paused_ps,
    }
}

/// Returns the gains of port `q`'s counters from `base` to `at_ps`.
pub(crate) fn port_delta(t: &Tables, q: PortIdx, base: &PortBase, at_ps: u64) -> PortDelta {
    let row = &t.ports[q];
    PortDelta {
        tx_bytes: row.tx_bytes - base.tx_bytes,
        hops: row.hops - base.hops,
        max_q: row.max_q,
        q_area: row.q_area - base.q_area,
        marks: row.marks - base.marks,
        pauses: row.pauses - base.pauses,
        drops: row.drops - base.drops,
        dropped_bytes: row.dropped_bytes - base.dropped_bytes,
        paused_ps: t.paused_until(q.end(t.exps[0].nic_len), at_ps) - base.paused_ps,
    }
}

pub(crate) fn full(e: TooManyPackets) -> Stop {
    Stop::Fail(e.to_string())
}
