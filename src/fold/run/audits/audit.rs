//! Audits: some skips are also simulated, on a copy of the tables, and the reported events are compared with the simulated ones.
//!
//! Layer: fold/run. Changes nothing but counts. Whether a skip is audited depends only on what was skipped and audited before it ended, so the memo
//! has no influence.

use crate::rows::index::PartitionIdx;
use crate::run::partitions::counters::full;
use crate::run::partitions::partition::PartitionState;
use std::collections::HashMap;
use std::time::Instant;

use crate::rows::snapshots::snapshot;
use crate::run::fold_run::FoldRun;
use crate::run::partitions::counters::row_names;
use crate::run::partitions::partition::Partition;
use crate::run::simulation::simulate::repeat_span;
use crate::run::stop::Stop;
use crate::steady::audit::due;
use crate::steady::skip::Skip;
use hyperfold_columns::{Column, FoldTrace, NEVER, NONE, OwnedTables, Tables, Task, TaskIdx, qp, task as bits};
use hyperfold_engine::cpu::{nic, task};

/// Everything that is skipped is audited.
const WHOLE_PPM: u32 = 1_000_000;

/// A copy of `t` without its tasks, its task graph and its samples. The graph is not needed, because all messages are already reported.
fn copy_but_for_tasks(t: &mut Tables) -> OwnedTables {
    let (tasks, series) = (std::mem::take(&mut t.tasks), std::mem::take(&mut t.series));
    let graph = (std::mem::take(&mut t.edges), std::mem::take(&mut t.signals), std::mem::take(&mut t.gates));
    let copy = t.copied();
    (t.tasks, t.series) = (tasks, series);
    (t.edges, t.signals, t.gates) = graph;
    copy
}

/// Audits the `skip` of `p` that ends at `at_ps`, if an audit is due. `moved`: packets by which each queue pair went on. Of several skips from equal
/// snapshots only one is audited.
pub(crate) fn audit_if_due(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    skip: &Skip,
    moved: &[u64],
    at_ps: u64,
) -> Result<(), Stop> {
    let hops = skip.hops(t, &run.partitions[p].rows, moved);
    let stats = &run.stats;
    let Some(upto) = due(&t.exps[0], &stats.audit, hops, stats.audit_hops, stats.hops_skipped) else { return Ok(()) };
    // If rates are carried on, copies of the experiment show more (`continued`), unless everything is to be audited.
    if (skip.plan.carried.is_some() && t.exps[0].audit_ppm < WHOLE_PPM) || !run.audited.insert(skip.plan.draw) {
        return Ok(());
    }
    run.stats.audit.largest = run.stats.audit.largest.max(upto);
    let span = (u128::from(at_ps - skip.since) * u128::from(upto) / u128::from(hops)) as u64;
    audit(run, t, p, skip, skip.since + span)
}

/// Audits `skip` of partition `p` up to `at_ps`: simulates the time from its start on a copy of the tables, and compares.
fn audit(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx, skip: &Skip, at_ps: u64) -> Result<(), Stop> {
    let began = Instant::now();
    let moved = skip.moved_by(at_ps);
    let posted: Vec<(TaskIdx, Task)> =
        run.partitions[p].rows.members.iter().flat_map(|m| &m.posted).map(|&(i, _)| (i, t.tasks[i])).collect();
    let mut copy = copy_but_for_tasks(t);
    // A copy waits for no other experiment, and claims stay as they are.
    let may_wait = std::mem::take(&mut run.ticket.may_wait);
    let fails_for_certain = run.fails_for_certain;
    let cursor = run.partitions[p].cursor.take();
    let partition = Partition { cursor, ..run.partitions[p].clone() };
    let delivered = {
        let mut c = copy.view();
        // The copy works on the original tasks, which are by far the most rows. It changes only the posted ones.
        c.tasks = Column::from(&mut *t.tasks);
        simulate_skip(run, &mut c, p, skip, at_ps)
    };
    for &(i, row) in &posted {
        t.tasks[i] = row;
    }
    let (before, delivered) = delivered?;
    run.stats.audit.skips += 1;
    run.stats.audit_hops += hyperfold_engine::packet_hops(&copy.view()) - hyperfold_engine::packet_hops(t);
    let (mut ahead, mut sent) = (0, 0);
    for (m, member) in partition.rows.members.iter().enumerate().filter(|(m, _)| skip.goes_on(*m)) {
        let reported = &member.posted[skip.before[m][2]..member.delivered];
        let mut compared = false;
        for (i, row) in reported.iter().map(|&(i, _)| (i, &t.tasks[i])).filter(|(_, row)| row.got <= at_ps) {
            compared = true;
            // Messages that are not delivered yet arrive later than this.
            let simulated = delivered.get(&i).copied().unwrap_or(at_ps);
            run.stats.audit.message(row.got, simulated, row.at);
        }
        let simulated = skip.packets(m, before[m], copy.flow_tx[member.flow].snd_una);
        if !compared {
            run.stats.audit.progress(moved[m], simulated);
        }
        ahead += run.stats.audit.rate(moved[m], simulated, skip.plan.theta_ppm);
        sent += simulated;
    }
    if skip.plan.carried.is_none() {
        run.stats.audit.drifted(ahead, sent);
    }
    run.partitions[p] = partition;
    run.ticket.may_wait = may_wait;
    run.fails_for_certain = fails_for_certain;
    run.stats.auditing += began.elapsed();
    Ok(())
}

/// Simulates `p` from the start of `skip` to `at_ps`. Returns for each queue pair the acknowledged bytes at the start, and the time of each
/// delivery.
pub(crate) fn simulate_skip(
    run: &mut FoldRun,
    c: &mut Tables,
    p: PartitionIdx,
    skip: &Skip,
    at_ps: u64,
) -> Result<(Vec<u64>, HashMap<TaskIdx, u64>), Stop> {
    prepare(run, c, p, skip)?;
    let before = run.partitions[p].rows.members.iter().map(|m| c.flow_tx[m.flow].snd_una).collect();
    let mut delivered: HashMap<TaskIdx, u64> = HashMap::new();
    loop {
        let from = run.partitions[p].next_events(c).at;
        if from >= at_ps {
            break;
        }
        // Events that cannot be folded end the simulation.
        let end = (from + run.step).min(at_ps);
        if repeat_span(run, c, p, from, end).is_err() {
            break;
        }
        for noted in c.fold_trace.drain(..) {
            if let FoldTrace::DeliveredAgain { task, at: at_ps } = noted {
                delivered.entry(task).or_insert(at_ps);
            }
        }
    }
    Ok((before, delivered))
}

/// Restores the rows of `p` as they were when the skip began. Messages posted since are running tasks; reported events are not reported again.
pub(crate) fn prepare(run: &mut FoldRun, c: &mut Tables, p: PartitionIdx, skip: &Skip) -> Result<(), Stop> {
    let before_skip = &skip.before;
    let nics = run.partitions[p].rows.nics.clone();
    for &n in &nics {
        let row = &mut c.nics[n];
        // Signals on their way to gates arrive once, in the original tables.
        (row.task_head, row.next_task, row.signals) = (TaskIdx::NONE, NEVER, NONE);
    }
    let mut posts: Vec<TaskIdx> = Vec::new();
    for (m, &[given, posted, _]) in run.partitions[p].rows.members.iter_mut().zip(before_skip) {
        for &(i, first) in &m.posted {
            let row = &mut c.tasks[i];
            (row.got, row.done) = (row.got.min(NEVER - 1), row.done.min(NEVER - 1));
            if first && m.posted[posted..].contains(&(i, first)) {
                row.flags &= !bits::READY;
                posts.push(i);
            }
        }
        if let Some(&(i, _)) = m.posted.get(given) {
            c.flow_tx[m.flow].msg_post = i;
        }
        (m.given, m.posts_in_rows) = (given, posted);
    }
    snapshot::read(c, &skip.plan.state, row_names(run, p, None), skip.since, run.limit).map_err(full)?;
    for (m, &[given, posted, _]) in run.partitions[p].rows.members.iter().zip(before_skip) {
        let tx = &mut c.flow_tx[m.flow];
        for &(i, _) in &m.posted[given..posted] {
            tx.size += c.tasks[i].bytes;
            tx.msg_post = c.tasks[i].follow;
        }
        if m.routed {
            tx.flags &= !qp::HELD;
        }
    }
    // Latest first, so that each goes to the head of its NIC's list.
    posts.sort_by_key(|&i| std::cmp::Reverse((c.tasks[i].at, c.tasks[i].root, i)));
    for i in posts {
        task::under_way(c, c.tasks[i].owner, i);
    }
    for &n in &nics {
        nic::set_clock(c, n);
    }
    let partition = &mut run.partitions[p];
    (partition.state, partition.cursor, partition.turned_away) = (PartitionState::Simulated, None, false);
    c.fold_trace.clear();
    Ok(())
}
