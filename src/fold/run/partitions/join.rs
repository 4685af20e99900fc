//! Joins rows to a partition: idle rows, and rows of other partitions, which merge.
//!
//! Layer: fold/run.

use super::merge::{catch_up, complete_until, merge};
use super::retire::retire_idle;
use crate::memo::cursor::{MemoCursor, PendingEvent, PendingKind};
use crate::memo::keys::edge;
use crate::rows::canonical_key::CanonicalKey;
use crate::rows::cc_state;
use crate::rows::cc_state::timers_run;
use crate::rows::coupling::{coupled_rows, put_coupling};
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::{Member, NicBase, PortBase, SendProgress};
use crate::run::explanations::explain::{because, new_start};
use crate::run::explanations::explanation::FoldCause;
use crate::run::fold_run::{FoldRun, new_partition};
use crate::run::lookups::claim::{is_free, update_claim};
use crate::run::lookups::lookup::{catch_up_with, follow, stop_remembering};
use crate::run::lookups::progress::{ends_by, has_more, next_reported};
use crate::run::lookups::recording::{flush, rewind};
use crate::run::partitions::partition::PartitionState;
use crate::run::skips::sampling_turns::{reset_detector, widen_rule};
use crate::run::stop::Stop;
use crate::run::turn_order::schedule_partition;
use hyperfold_columns::{FlowIdx, LinkEndIdx, NEVER, NONE, NicIdx, PortIdx, SwitchIdx, Tables, qp};

/// Initial capacity in bytes for the key of a queue pair that starts a partition, with its rows.
const FORM_BYTES: usize = 1024;

/// Joins all rows that queue pair `f` of NIC `n` crosses into one partition, before it sends at `at_ps`. Returns the partition's number.
pub(crate) fn join(run: &mut FoldRun, t: &mut Tables, n: NicIdx, f: FlowIdx, at_ps: u64) -> Result<PartitionIdx, Stop> {
    let needed = rows_of(run, t, f);
    catch_up_rows(run, t, &needed, at_ps)?;
    let touched = touched(run, &needed);
    let born = touched.is_empty();
    let p = touched.first().copied().unwrap_or_else(|| new_partition(run, at_ps));
    // In a partition's own turn, its events are put in order at the end of the turn.
    let inside = touched.len() == 1 && run.turning == p;
    for &other in touched.iter().skip(1) {
        merge(run, t, p, other, n, at_ps)?;
    }
    let complete = complete_until(run, p, at_ps);
    let mut form = CanonicalKey(Vec::with_capacity(FORM_BYTES));
    form.first_locals(&run.partitions[p].rows);
    for &n in &needed.nics {
        add_nic(run, t, p, n, at_ps, &mut form);
    }
    // This does not depend on whether the partition starts now: at one instant that depends on which partition goes first.
    let activates = run.index.nic_active_since[t.flow_tx[f].nic.usize()] == at_ps;
    for &port in &needed.ports {
        add_port(run, t, p, port, at_ps, activates, &mut form);
    }
    add_member(run, t, p, f, at_ps, &mut form);
    route(run, t, p, f, at_ps, activates, &mut form);
    for &s in &needed.switches {
        if run.index.switch_partition[s.usize()].is_none() {
            // Nothing crosses it yet.
            run.guard.process_jointly(s);
            run.index.switch_partition[s.usize()] = p;
            run.partitions[p].rows.switches.push(s);
        }
    }
    if !run.partitions[p].rows.switches.is_empty() {
        put_coupling(t, &run.partitions[p].rows, &run.index.end_local, &mut form);
    }
    let (tx, rx) = (&t.flow_tx[f], &t.flow_rx[f]);
    let plain = tx.start != NEVER;
    let joined_unrecordable = std::mem::take(&mut run.joined_unrecordable);
    run.partitions[p].shape = None;
    run.partitions[p].retires_at = NEVER;
    run.partitions[p].recordable &= !(plain || joined_unrecordable || tx.n_paths > 1 || rx.n_paths > 1);
    widen_rule(run, p, f);
    reset_detector(run, t, p, at_ps);
    if !run.partitions[p].recordable || run.memo.is_none() {
        let recordable = run.partitions[p].recordable;
        because(run, t, p, if recordable { FoldCause::NoMemo } else { FoldCause::NotRecordable });
        stop_remembering(run, t, p, at_ps)?;
    } else if born {
        record_start(run, t, p, form, at_ps);
    } else if !run.partitions[p].is_simulated() {
        follow(run, t, p, edge(b'J', at_ps - run.partitions[p].start, form), at_ps, at_ps + 1)?;
    } else if inside {
        if let Some(cursor) = &mut run.partitions[p].cursor {
            cursor.pending.push(PendingEvent { at: at_ps, nic: n, what: PendingKind::Join(form.0) });
        }
    } else {
        record_join(run, p, form, n, at_ps, complete);
    }
    if run.partitions[p].is_simulated() {
        t.flow_tx[f].flags &= !qp::HELD;
    }
    Ok(p)
}

/// Brings looked-up partitions of these rows up to `at_ps`. They may split; idle partitions may retire.
pub(crate) fn catch_up_rows(run: &mut FoldRun, t: &mut Tables, needed: &NeededRows, at_ps: u64) -> Result<(), Stop> {
    loop {
        let lags = |p: &PartitionIdx| p.is_some() && lags(run, t, *p, at_ps);
        let Some(p) = needed.partitions(run).find(lags) else { break };
        if !run.partitions[p].is_simulated() {
            catch_up_with(run, t, p, at_ps)?;
        } else {
            retire_idle(run, t, p);
        }
    }
    Ok(())
}

/// Whether `p` must do something before rows join at `at_ps`: message events, checkpoints and retiring come first.
pub(crate) fn lags(run: &FoldRun, t: &Tables, p: PartitionIdx, at_ps: u64) -> bool {
    let partition = &run.partitions[p];
    if !partition.is_simulated() {
        partition.skip().is_some()
            || next_reported(run, t, p) < at_ps
            || has_more(run, p, at_ps)
            || ends_by(run, p, at_ps)
    } else {
        partition.retires_at <= at_ps
    }
}

/// Starts partition `p` at `at_ps`: looks it up in the memo, or records it.
pub(crate) fn record_start(run: &mut FoldRun, t: &Tables, p: PartitionIdx, form: CanonicalKey, at_ps: u64) {
    let Some(memo) = &run.memo else { return };
    let mut key = CanonicalKey::head(t, at_ps, &run.guard).0;
    key.extend_from_slice(&form.0);
    let Some((root, known)) = memo.root(key, run.ticket.by(at_ps)) else {
        run.partitions[p].turned_away = true;
        return;
    };
    run.stats.episodes += 1;
    run.stats.episodes_known += u64::from(known);
    if known {
        run.ticket.meet(&root, at_ps, || is_free(&run.partitions, p));
    } else {
        run.ticket.goes_alone();
    }
    let partition = &mut run.partitions[p];
    if known {
        partition.state = PartitionState::LookedUp;
    }
    partition.cursor = Some(MemoCursor::new(root));
    if partition.is_simulated() {
        run.stats.misses += 1;
        new_start(run, t, p, at_ps);
    }
    update_claim(run, p);
}

/// Records that rows joined `p` at `at_ps`, outside its own turn.
pub(crate) fn record_join(
    run: &mut FoldRun,
    p: PartitionIdx,
    form: CanonicalKey,
    n: NicIdx,
    at_ps: u64,
    complete: u64,
) {
    rewind(run, p, at_ps, n);
    flush(run, p, (at_ps, n), complete);
    let partition = &mut run.partitions[p];
    let (Some(cursor), Some(memo)) = (&mut partition.cursor, &run.memo) else { return };
    match memo.child(
        &cursor.node,
        edge(b'J', at_ps - partition.start, form),
        complete - partition.start,
        run.ticket.by(partition.start),
    ) {
        Some((child, _)) => cursor.at(child),
        None => partition.turn_away(),
    }
    update_claim(run, p);
    catch_up(run, p);
}

/// Adds NIC `n` to `p`, with the queue pairs in its round-robin order.
pub(crate) fn add_nic(run: &mut FoldRun, t: &Tables, p: PartitionIdx, n: NicIdx, at_ps: u64, form: &mut CanonicalKey) {
    if run.index.nic_partition[n.usize()].is_some() {
        return;
    }
    let row = &t.nics[n];
    form.nic(t, &run.partitions[p].rows, n, &|m| run.index.local_nic(p, m));
    run.index.nic_partition[n.usize()] = p;
    run.index.nic_active_since[n.usize()] = at_ps;
    run.schedule.idle_at[n.usize()] = NEVER;
    let partition = &mut run.partitions[p];
    run.index.nic_local[n.usize()] = partition.rows.nics.len() as u32;
    partition.rows.nics.push(n);
    partition.rows.nic_base.push(NicBase::of(t, n, at_ps));
    partition.rows.last_post_at.push(NEVER);
    partition.first = partition.first.min(n);
    add_end(run, t, p, row.peer);
    let turn = row.flow_first.places(row.qp_n);
    for k in turn.clone() {
        add_member(run, t, p, t.order[k], at_ps, form);
    }
    form.numbers(t.order[turn].iter().map(|&f| run.index.member[f.usize()]));
    schedule_partition(run, p, row.next_task.min(row.next_start));
}

/// Adds the switch port at link end `peer` to the ends of `p`.
pub(crate) fn add_end(run: &mut FoldRun, t: &Tables, p: PartitionIdx, peer: LinkEndIdx) {
    if let Some(port) = peer.port(t.exps[0].nic_len) {
        let partition = &mut run.partitions[p];
        run.index.end_local[port.usize()] = partition.rows.ends.len() as u32;
        partition.rows.ends.push(port);
        partition.rows.peaks.push(run.guard.least());
    }
}

/// Adds `port` to `p`. `activates`: a NIC becomes active at this instant.
pub(crate) fn add_port(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    port: PortIdx,
    at_ps: u64,
    activates: bool,
    form: &mut CanonicalKey,
) {
    if run.index.port_partition[port.usize()].is_some() {
        // Another partition may have added it at this instant.
        if activates && run.index.port_active_since[port.usize()] == at_ps && move_telemetry_origin(run, t, port, at_ps)
        {
            form.numbers([u32::from(b'C'), run.index.port_local[port.usize()]].into_iter());
        }
        return;
    }
    run.index.port_active_since[port.usize()] = at_ps;
    if activates {
        move_telemetry_origin(run, t, port, at_ps);
    }
    form.port(t, &run.partitions[p].rows, port, at_ps, &|m| run.index.local_nic(p, m));
    run.index.port_partition[port.usize()] = p;
    let partition = &mut run.partitions[p];
    run.index.port_local[port.usize()] = partition.rows.ports.len() as u32;
    partition.rows.ports.push(port);
    let max_q = std::mem::take(&mut t.ports[port].max_q);
    partition.rows.port_base.push(PortBase::of(t, port, max_q, at_ps));
    let peer = t.ports[port].peer;
    add_end(run, t, p, peer);
}

/// Moves the telemetry origin of `port`, which became active at `at_ps`, to that time. Returns whether folding may choose the origin.
pub(crate) fn move_telemetry_origin(run: &mut FoldRun, t: &mut Tables, port: PortIdx, at_ps: u64) -> bool {
    let (free, moved) = cc_state::count_from_here(t, port, at_ps);
    run.stats.rounded += u64::from(moved);
    free
}

/// Adds queue pair `f` to `p`, without its path.
pub(crate) fn add_member(
    run: &mut FoldRun,
    t: &Tables,
    p: PartitionIdx,
    f: FlowIdx,
    at_ps: u64,
    form: &mut CanonicalKey,
) {
    if run.index.member[f.usize()] != NONE {
        return;
    }
    form.flow(t, &run.partitions[p].rows, run.partitions[p].start, f, at_ps);
    let partition = &mut run.partitions[p];
    run.index.member[f.usize()] = partition.rows.members.len() as u32;
    let (tx, rx) = (t.flow_tx[f], t.flow_rx[f]);
    partition.rows.flow_ids.push(tx.flow_id);
    run.joined_unrecordable |= timers_run(t) && tx.flags & qp::STARTED != 0;
    partition.rows.members.push(Member {
        flow: f,
        routed: false,
        posted: Vec::new(),
        posts_in_rows: 0,
        given: 0,
        sent: 0,
        delivered: 0,
        acked: 0,
        sent_in_rows: 0,
        idle_since: at_ps,
        at_checkpoint: SendProgress::default(),
        known: false,
        tx,
        rx,
    });
}

/// Adds the path of queue pair `f` to `p`. `activates`: its NIC became active at this instant.
pub(crate) fn route(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    f: FlowIdx,
    at_ps: u64,
    activates: bool,
    form: &mut CanonicalKey,
) {
    let (tx, rx) = (t.flow_tx[f], t.flow_rx[f]);
    let m = run.index.member[f.usize()];
    form.numbers(
        [
            u32::from(b'R'),
            m,
            run.index.nic_local[tx.nic.usize()],
            run.index.nic_local[rx.nic.usize()],
            tx.path_len,
            rx.path_len,
        ]
        .into_iter(),
    );
    let member = &mut run.partitions[p].rows.members[m as usize];
    if !std::mem::replace(&mut member.known, true) {
        cc_state::catch_up(t, f, at_ps);
        if activates {
            run.stats.rounded += u64::from(cc_state::round(t, f));
        }
        form.state(t, f, at_ps, run.partitions[p].start);
    }
    for (first, len) in [(tx.path_first, tx.path_len), (rx.path_first, rx.path_len)] {
        let path = &t.paths[first as usize..(first + len) as usize];
        form.numbers(path.iter().map(|&port| run.index.port_local[port.usize()]));
    }
    run.partitions[p].rows.members[m as usize].routed = true;
}

/// The rows that a queue pair needs.
pub(crate) struct NeededRows {
    pub nics: Vec<NicIdx>,
    pub ports: Vec<PortIdx>,
    /// Coupled switches.
    pub switches: Vec<SwitchIdx>,
}

/// The partitions of `needed`, without repeats, in the order in which they merge.
pub(crate) fn touched(run: &FoldRun, needed: &NeededRows) -> Vec<PartitionIdx> {
    let mut touched: Vec<PartitionIdx> = Vec::new();
    for p in needed.partitions(run) {
        if p.is_some() && !touched.contains(&p) {
            touched.push(p);
        }
    }
    touched.sort_by_key(|&p| (run.partitions[p].start, run.partitions[p].first));
    touched
}

impl NeededRows {
    /// The partition of each row; `NONE` if it is idle.
    fn partitions(&self, run: &FoldRun) -> impl Iterator<Item = PartitionIdx> {
        let nics = self.nics.iter().map(|&n| run.index.nic_partition[n.usize()]);
        let ports = self.ports.iter().map(|&q| run.index.port_partition[q.usize()]);
        let switches = self.switches.iter().map(|&s| run.index.switch_partition[s.usize()]);
        nics.chain(ports).chain(switches)
    }
}

/// The rows that queue pair `f` needs: both ends, data and acknowledgement paths; and coupled switches on them, with the ports by which it enters
/// these.
fn rows_of(run: &FoldRun, t: &Tables, f: FlowIdx) -> NeededRows {
    let (tx, rx) = (&t.flow_tx[f], &t.flow_rx[f]);
    let mut ports: Vec<PortIdx> = Vec::new();
    for (first, len) in [(tx.path_first, tx.path_len * tx.n_paths), (rx.path_first, rx.path_len * rx.n_paths)] {
        for &port in &t.paths[first as usize..(first + len) as usize] {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    let mut nics = vec![tx.nic];
    if rx.nic != tx.nic {
        nics.push(rx.nic);
    }
    let mut switches = Vec::new();
    if run.guard.couples() {
        let (crossed, ingresses) = coupled_rows(t, f, &|s| run.guard.is_coupled(s));
        switches = crossed;
        for port in ingresses {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    NeededRows { nics, ports, switches }
}
