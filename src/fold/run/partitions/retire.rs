//! Retires partitions that are idle. The final state of a simulated partition is recorded; that of a looked-up partition is written into its rows.
//!
//! Layer: fold/run.

use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::{Member, NicBase, PortBase, hops};
use std::sync::Arc;

use super::counters::{nic_delta, port_delta, report_peaks};
use super::partition::Partition;
use crate::memo::outcome::{FinalState, MemberFinal, NicFinal};
use crate::rows::cc_state;
use crate::run::explanations::explain::settle;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::claim::update_claim;
use crate::run::lookups::recording::flush_covered;
use crate::run::lookups::restore::restore_members;
use crate::run::turn_order::schedule_nic;
use hyperfold_columns::{NEVER, NONE, NicIdx, PortIdx, Tables, qp};
use hyperfold_engine::cpu::nic;

/// Retires looked-up partition `p`, whose rows get `final_state`.
pub(crate) fn retire_looked_up(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, final_state: &FinalState) {
    run.stats.hits += 1;
    restore_members(run, t, p);
    let partition = &run.partitions[p];
    run.gain.count(partition.start + final_state.at, final_state.hops());
    for (&n, final_nic) in partition.rows.nics.iter().zip(&final_state.nics) {
        final_nic.gained.count(t, n);
        let row = &mut t.nics[n];
        row.rr = final_nic.rr;
        row.qp_n = final_nic.order.len() as u32;
        for (k, &m) in final_nic.order.iter().enumerate() {
            t.order[row.flow_first.usize() + k] = partition.rows.members[m as usize].flow;
        }
    }
    for (&port, delta) in partition.rows.ports.iter().zip(&final_state.ports) {
        delta.count(t, port);
    }
    for (m, final_member) in partition.rows.members.iter().zip(&final_state.members) {
        let f = m.flow;
        let (tx, rx) = final_member.applied(t, &t.flow_tx[f], &t.flow_rx[f], partition.start);
        t.flow_tx[f] = cc_state::kept_or_own(t, &t.flow_tx[f], tx);
        t.flow_rx[f] = rx;
    }
    run.guard.report_peaks(
        t,
        partition.start,
        partition.start + final_state.at,
        &partition.rows.ends,
        &final_state.peaks,
    );
    dissolve(run, t, p);
}

/// Retires simulated partition `p`, which is idle. All other partitions have advanced as far.
pub(crate) fn retire_idle(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) {
    let end_ps = run.partitions[p].retires_at;
    run.partitions[p].covered = NEVER;
    flush_covered(run, p, end_ps);
    update_claim(run, p);
    record_final_state(run, t, p, end_ps);
    report_peaks(run, t, p, end_ps);
    dissolve(run, t, p);
}

/// Records the final state of simulated partition `p`, which became idle before `end_ps`, and counts its packet-hops.
pub(crate) fn record_final_state(run: &mut FoldRun, t: &Tables, p: PartitionIdx, end_ps: u64) {
    settle(run, t, p);
    let partition = &run.partitions[p];
    let hops = hops(t, &partition.rows);
    run.stats.hops_simulated += hops;
    run.gain.count(end_ps, hops);
    let (Some(cursor), Some(memo)) = (&partition.cursor, &run.memo) else { return };
    let bytes = FinalState::bytes(partition.rows.nics.len(), partition.rows.ports.len(), partition.rows.members.len());
    let mut body = cursor.node.body();
    if body.end.is_none() && memo.reserve(bytes, run.ticket.by(partition.start)) {
        let final_state = final_state(run, t, partition, end_ps);
        body.known = body.known.max(final_state.at);
        body.end = Some(Arc::new(final_state));
    }
}

/// Returns the changes that simulated `partition`, which is idle at `end_ps`, has made since its start.
pub(crate) fn final_state(run: &FoldRun, t: &Tables, partition: &Partition, end_ps: u64) -> FinalState {
    let nic = |(&n, base): (&NicIdx, &NicBase)| {
        let row = &t.nics[n];
        let order = &t.order[row.flow_first.places(row.qp_n)];
        NicFinal {
            gained: nic_delta(t, n, base, end_ps),
            rr: row.rr,
            order: order.iter().map(|&f| run.index.member[f.usize()]).collect(),
        }
    };
    let port = |(&p, base): (&PortIdx, &PortBase)| port_delta(t, p, base, end_ps);
    let member = |m: &Member| MemberFinal {
        start: partition.start,
        tx: t.flow_tx[m.flow],
        rx: t.flow_rx[m.flow],
        tx_before: m.tx,
        rx_before: m.rx,
    };
    FinalState {
        at: end_ps - partition.start,
        nics: partition.rows.nics.iter().zip(&partition.rows.nic_base).map(nic).collect(),
        ports: partition.rows.ports.iter().zip(&partition.rows.port_base).map(port).collect(),
        peaks: partition.rows.peaks.clone(),
        members: partition.rows.members.iter().map(member).collect(),
    }
}

/// Dissolves partition `p`: its rows belong to no partition any more.
pub(crate) fn dissolve(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) {
    let partition = run.partitions.remove(p);
    for m in &partition.rows.members {
        run.index.member[m.flow.usize()] = NONE;
        t.flow_tx[m.flow].flags |= qp::HELD;
    }
    for &s in &partition.rows.switches {
        run.index.switch_partition[s.usize()] = PartitionIdx::NONE;
    }
    for (&port, base) in partition.rows.ports.iter().zip(&partition.rows.port_base) {
        debug_assert!(t.ports[port].paused == 0 && t.ports[port].pausing == 0, "an idle port pauses");
        run.index.port_partition[port.usize()] = PartitionIdx::NONE;
        let row = &mut t.ports[port];
        row.max_q = row.max_q.max(base.max_q);
        // `busy` is the end of a transmission, and nothing waits for it.
        row.busy = 0;
    }
    for &n in &partition.rows.nics {
        run.index.nic_partition[n.usize()] = PartitionIdx::NONE;
        // `rto` is a deadline, and nothing waits for it any more.
        t.nics[n].rto = NEVER;
        nic::set_clock(t, n);
        schedule_nic(run, t, n);
    }
}
