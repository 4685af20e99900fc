//! A partition that is idle retires. What it leaves behind is recorded, or written into its rows if it was looked up.
//!
//! Layer: fold/run.

use crate::engine::fold::rows::partition_rows::{Member, NicBase, PortBase, hops};
use std::sync::Arc;

use crate::columns::{NEVER, NONE, NicIdx, PortIdx, Tables, qp};
use crate::engine::cpu::nic;
use crate::engine::fold::memo::outcome::{FinalState, MemberFinal, NicFinal};
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::run::claim::update_claim;
use crate::engine::fold::run::counters::{nic_delta, port_delta, report_peaks};
use crate::engine::fold::run::explain::settle;
use crate::engine::fold::run::fold_run::FoldRun;
use crate::engine::fold::run::partition::Partition;
use crate::engine::fold::run::recording::flush_covered;
use crate::engine::fold::run::restore::restore_members;
use crate::engine::fold::run::turn_order::schedule_nic;

/// Retires looked-up partition `p`.
pub(crate) fn retire_looked_up(run: &mut FoldRun, t: &mut Tables, p: u32, final_state: &FinalState) {
    run.stats.hits += 1;
    restore_members(run, t, p);
    let partition = &run.partitions[p as usize];
    run.gain.count(partition.start + final_state.at, final_state.hops());
    for (&n, end) in partition.rows.nics.iter().zip(&final_state.nics) {
        let row = &mut t.nics[n];
        end.gained.count(row);
        row.rr = end.rr;
        row.qp_n = end.order.len() as u32;
        for (k, &m) in end.order.iter().enumerate() {
            t.order[row.flow_first.usize() + k] = partition.rows.members[m as usize].flow;
        }
    }
    for (&port, end) in partition.rows.ports.iter().zip(&final_state.ports) {
        end.count(&mut t.ports[port]);
    }
    for (m, end) in partition.rows.members.iter().zip(&final_state.members) {
        let f = m.flow;
        let (tx, rx) = end.applied(t, &t.flow_tx[f], &t.flow_rx[f], partition.start);
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

/// Retires simulated partition `p`, which is idle; everything else has advanced as far.
pub(crate) fn retire_idle(run: &mut FoldRun, t: &mut Tables, p: u32) {
    let end = run.partitions[p as usize].retires_at;
    run.partitions[p as usize].covered = NEVER;
    flush_covered(run, p, end);
    update_claim(run, p);
    record_final_state(run, t, p, end);
    report_peaks(run, t, p, end);
    dissolve(run, t, p);
}

/// Records what came of simulated partition `p`, which is idle since before `end`.
pub(crate) fn record_final_state(run: &mut FoldRun, t: &Tables, p: u32, end: u64) {
    settle(run, t, p);
    let partition = &run.partitions[p as usize];
    let hops = hops(t, &partition.rows);
    run.stats.hops_simulated += hops;
    run.gain.count(end, hops);
    let (Some(cursor), Some(memo)) = (&partition.cursor, &run.memo) else { return };
    let size = FinalState::bytes(partition.rows.nics.len(), partition.rows.ports.len(), partition.rows.members.len());
    let mut body = cursor.node.body();
    if body.end.is_none() && memo.room(size, run.ticket.by(partition.start)) {
        let final_state = final_state(run, t, partition, end);
        body.known = body.known.max(final_state.at);
        body.end = Some(Arc::new(final_state));
    }
}

pub(crate) fn final_state(run: &FoldRun, t: &Tables, partition: &Partition, end: u64) -> FinalState {
    let nic = |(&n, base): (&NicIdx, &NicBase)| {
        let row = &t.nics[n];
        let turn = &t.order[row.flow_first.places(row.qp_n)];
        NicFinal {
            gained: nic_delta(t, n, base),
            rr: row.rr,
            order: turn.iter().map(|&f| run.index.member[f.usize()]).collect(),
        }
    };
    let port = |(&p, base): (&PortIdx, &PortBase)| port_delta(t, p, base);
    let member = |m: &Member| MemberFinal {
        start: partition.start,
        tx: t.flow_tx[m.flow],
        rx: t.flow_rx[m.flow],
        tx_before: m.tx,
        rx_before: m.rx,
    };
    FinalState {
        at: end - partition.start,
        nics: partition.rows.nics.iter().zip(&partition.rows.nic_base).map(nic).collect(),
        ports: partition.rows.ports.iter().zip(&partition.rows.port_base).map(port).collect(),
        peaks: partition.rows.peaks.clone(),
        members: partition.rows.members.iter().map(member).collect(),
    }
}

/// Dissolves partition `p`: its rows are idle again.
pub(crate) fn dissolve(run: &mut FoldRun, t: &mut Tables, p: u32) {
    let partition = std::mem::replace(&mut run.partitions[p as usize], Partition::new(0));
    run.spare.push(p);
    for m in &partition.rows.members {
        run.index.member[m.flow.usize()] = NONE;
        t.flow_tx[m.flow].flags |= qp::HELD;
    }
    for &s in &partition.rows.switches {
        run.index.switch_partition[s.usize()] = NONE;
    }
    for (&port, base) in partition.rows.ports.iter().zip(&partition.rows.port_base) {
        debug_assert!(t.ports[port].paused == 0 && t.ports[port].pausing == 0, "an idle port pauses");
        run.index.port_partition[port.usize()] = NONE;
        let row = &mut t.ports[port];
        row.max_q = row.max_q.max(base.max_q);
        // The end of a transmission that nothing waited for.
        row.busy = 0;
    }
    for &n in &partition.rows.nics {
        run.index.nic_partition[n.usize()] = NONE;
        // A deadline that nothing waits for any more.
        t.nics[n].rto = NEVER;
        nic::set_clock(t, n);
        schedule_nic(run, t, n);
    }
}
