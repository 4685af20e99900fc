//! Collectives become tasks: messages of a schedule, one flow, or a time.
//!
//! Layer: workload. The caller's [`Planner`] decides which.

use std::borrow::Cow;
use std::collections::HashMap;

use super::calls::{CallInstance, NOT_YET, listed};
use super::error::LowerError;
use super::joined_flows;
use super::lowerer::Lowerer;
use super::planner::{Asked, CollectivePlan, Planner};
use super::reduction::Parties;
use super::transfer::Arrival;
use crate::collective::{Overheads, Protocol, Schedule, Transfer};
use crate::workload::tasks::{Edge, GraphTask};
use hyperfold_base::budget;

/// Makes the tasks of a collective. PRECONDITION: all ranks' ops are lowered.
pub(super) fn collective(
    l: &mut Lowerer,
    group: u32,
    nth: u32,
    instance: &CallInstance,
    parties: &[Cow<[u32]>],
    planner: &mut dyn Planner,
) -> Result<(), LowerError> {
    let members = &l.workload.groups[group as usize].members;
    if let Some(absent) = instance.members.iter().position(|m| *m == NOT_YET) {
        return Err(LowerError::Missing { group: listed(members), nth, rank: parties[group as usize][absent] });
    }
    if members.len() == 1 {
        l.graph.after(instance.members[0].begin, instance.members[0].end);
        return Ok(());
    }
    let call = instance.call;
    let shares = call.shares.map(|s| l.workload.shares[s as usize].as_slice());
    let asked =
        Asked { op: call.op, bytes: call.bytes, dim: call.dim, algorithm: call.algorithm, group, members, shares };
    let (rank, op) = (instance.first, instance.first_op);
    let plan = planner.plan(&asked).map_err(|why| LowerError::Plan { rank, op, name: l.name(rank, op), why })?;
    match plan {
        CollectivePlan::Analytic { ps } => {
            meet(l, instance, 0);
            let gate = l.graph.gate(None, 0, ps);
            for m in &instance.members {
                l.graph.into_gate(m.go, gate);
                l.graph.release(gate, m.end);
            }
        }
        CollectivePlan::OneFlow { steps, overheads, min_ps } => {
            l.check_task_limit(2, rank, op)?;
            meet(l, instance, l.machine.rendezvous_ps.unwrap_or(0));
            joined_flows::one_flow(l, group, instance, &steps, &overheads, min_ps);
        }
        CollectivePlan::Transfers { schedule, protocol, overheads, switches } => {
            if l.machine.representatives.is_some() {
                return Err(LowerError::NotOneFlow { op: call.text(), rank, name: l.name(rank, op) });
            }
            // Each transfer is up to three tasks. If messages are split over queue pairs, it is one more per queue pair.
            let each = 3 + if l.machine.split { l.machine.qps_per_connection as usize } else { 0 };
            l.check_task_limit(schedule.transfers.len().saturating_mul(each), rank, op)?;
            if nth == 0 {
                // Each transfer of each equal collective becomes at least one task. A graph that cannot fit is stopped here.
                let transfers = schedule.transfers.len().saturating_mul(l.same_calls);
                budget::announce_rows::<(GraphTask, Edge)>("tasks", transfers as u64);
            }
            meet(l, instance, l.machine.rendezvous_ps.unwrap_or(0));
            let parties = Parties { members, switches: &switches };
            transfers(l, group, instance, &parties, &schedule, protocol, &overheads);
        }
    }
    Ok(())
}

/// Lets each member's `go` follow its `begin` if the latency is 0. Otherwise every `go` waits until all members have begun and the latency has passed.
fn meet(l: &mut Lowerer, instance: &CallInstance, latency_ps: u64) {
    if latency_ps == 0 {
        for m in &instance.members {
            l.graph.after(m.begin, m.go);
        }
        return;
    }
    let gate = l.graph.gate(None, 0, latency_ps);
    for m in &instance.members {
        l.graph.into_gate(m.begin, gate);
        l.graph.release(gate, m.go);
    }
}

/// Makes the tasks of a collective's messages: one post per transfer of the schedule, with its dependencies.
fn transfers(
    l: &mut Lowerer,
    group: u32,
    instance: &CallInstance,
    parties: &Parties,
    schedule: &Schedule,
    protocol: Protocol,
    overheads: &Overheads,
) {
    let mut got: Vec<Arrival> = Vec::with_capacity(schedule.transfers.len());
    // Messages of one queue pair arrive in order, so the last of a connection implies those before it. On several queue pairs, and through gates, messages
    // may overtake.
    let in_order = l.machine.qps_per_connection <= 1;
    let mut lasts: HashMap<(u32, u32, u16), usize> = HashMap::new();
    let mut receives = vec![false; parties.members.len() + parties.switches.len()];
    // The gate of the last sum of a switch. Messages that carry it to several receivers share it.
    let mut sum = (Transfer::default(), 0);
    for (k, tr) in schedule.transfers.iter().enumerate() {
        let start = if tr.after_n == 0 { overheads.start_ps } else { 0 };
        let bytes = protocol.wire_bytes(tr.bytes);
        let (post, arrival) = parties.transfer(l, group, tr, bytes, start, overheads);
        let after = &schedule.after[tr.after_first as usize..(tr.after_first + tr.after_n) as usize];
        match instance.members.get(tr.from as usize) {
            Some(member) => {
                l.graph.after(member.go, post);
                for &earlier in after {
                    l.wait(got[earlier as usize], post);
                }
            }
            None => {
                if (sum.0.from, sum.0.after_first) != (tr.from, tr.after_first) {
                    sum = (*tr, l.graph.gate(None, 0, l.machine.reduce_ps));
                    after.iter().for_each(|&earlier| l.wait_in_gate(got[earlier as usize], sum.1));
                }
                l.graph.release(sum.1, post);
            }
        }
        got.push(arrival);
        lasts.insert((tr.from, tr.to, tr.channel), k);
        receives[tr.to as usize] = true;
    }
    for (k, tr) in schedule.transfers.iter().enumerate() {
        if in_order && got[k].message && lasts[&(tr.from, tr.to, tr.channel)] != k {
            continue;
        }
        if let Some(member) = instance.members.get(tr.to as usize) {
            l.wait(got[k], member.end);
        }
        // A member that receives nothing is done when its sends are acknowledged.
        if let Some(member) = instance.members.get(tr.from as usize).filter(|_| !receives[tr.from as usize]) {
            l.wait_sent(got[k], member.end);
        }
    }
    for m in &instance.members {
        l.graph.after(m.go, m.end);
    }
}
