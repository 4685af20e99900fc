//! The CPU systems over the rows of a partition, for a window of time.
//!
//! Layer: fold/run.

use crate::columns::{NEVER, NicIdx, PacketIdx, PortIdx, SHARED_FLAGS, SHARED_HEADER, SwitchIdx, Tables, flag, mode};
use crate::engine::cpu::key::START;
use crate::engine::cpu::{advance, classify, forward, forward_joint, nic, plan};
use crate::engine::fold::rows::cc_state::timers_run;
use crate::engine::fold::rows::partition_rows::PartitionRows;
use crate::engine::fold::run::counters::report_peaks;
use crate::engine::fold::run::fold_run::FoldRun;
use crate::engine::fold::run::recording::{drain, mark_unpredictable};
use crate::engine::fold::run::stop::{Stop, reason};
use crate::engine::fold::run::turn_order::collect_all;
use crate::engine::fold::steady::sampling::is_steadying;
use crate::engine::grow;
use std::mem::take;

/// Runs the systems over the rows of `p`, from `at` up to `end`; returns the partition that they belong to then. A NIC
/// that needs rows outside `p` stops, unless that is at `at`: rows join only when they are the earliest of all.
/// PRECONDITION: no next event is more than a step before `end`.
pub(crate) fn window(run: &mut FoldRun, t: &mut Tables, p: u32, at: u64, end: u64) -> Result<u32, Stop> {
    let own = t.exps[0].end_len;
    run.ingress_peaks.begin(at, end);
    let partition = &mut run.partitions[p as usize];
    // These lists are indexed once per row and window, so they are taken out of the partition.
    let rows = SwitchRows {
        ends: take(&mut partition.rows.ends),
        peaks: take(&mut partition.rows.peaks),
        ports: take(&mut partition.rows.ports),
        coupled: take(&mut partition.rows.switches),
    };
    let drew = switches(run, t, &rows, end);
    let partition = &mut run.partitions[p as usize];
    SwitchRows {
        ends: partition.rows.ends,
        peaks: partition.rows.peaks,
        ports: partition.rows.ports,
        coupled: partition.rows.switches,
    } = rows;
    let drew = drew?;
    let mut fails = false;
    for (place, held) in run.ingress_peaks.peaks() {
        let partition = &mut run.partitions[p as usize];
        let peak = run.guard.coarse(held);
        if peak <= partition.rows.peaks[place] {
            continue;
        }
        partition.rows.peaks[place] = peak;
        let (ends, peaks, local) = (&partition.rows.ends, &partition.rows.peaks, &run.index.end_local);
        let held = |port: PortIdx| {
            ends.get(local[port.usize()] as usize)
                .filter(|&&end| end == port)
                .map(|_| peaks[local[port.usize()] as usize])
        };
        fails |= !run.guard.may_hold(t, ends[place], held);
    }
    // Where no checkpoint ends the interval, memory might fill up before it does.
    let ends_by_itself = || {
        let partition = &run.partitions[p as usize];
        if is_steadying(t) { partition.recordable } else { partition.cursor.is_some() }
    };
    if fails && t.exps[0].modes & mode::RATES == 0 && !ends_by_itself() {
        let mark = run.partitions[p as usize].mark(at + 1, run.step);
        report_peaks(run, t, p, mark);
    }
    let mut held: Vec<NicIdx> = Vec::new();
    for k in 0..run.partitions[p as usize].rows.nics.len() {
        let n = run.partitions[p as usize].rows.nics[k];
        if t.clocks[n.usize()] < end || t.clocks[n.end().own_clock(own)] < end {
            nic::nic(t, n, end);
            if t.clocks[n.end().own_clock(own)] < end {
                held.push(n);
            }
        }
    }
    if drew {
        mark_unpredictable(run, t, p);
    }
    let p = join_stalled(run, t, p, held, at, end)?;
    collect_all(run, t, p);
    if t.shared[SHARED_FLAGS as usize] & flag::TO_RETURN != 0 {
        return_records(t, &run.partitions[p as usize].rows);
        t.shared[SHARED_FLAGS as usize] &= !flag::TO_RETURN;
    }
    check_flags(run, t)?;
    Ok(p)
}

/// Rows of a partition at switches: link ends, with the peak of each; ports; coupled switches.
pub(crate) struct SwitchRows {
    pub ends: Vec<PortIdx>,
    pub peaks: Vec<u32>,
    pub ports: Vec<PortIdx>,
    pub coupled: Vec<SwitchIdx>,
}

/// Runs the switch systems up to `end`. Returns whether something random happened.
pub(crate) fn switches(run: &mut FoldRun, t: &mut Tables, rows: &SwitchRows, end: u64) -> Result<bool, Stop> {
    let (nics, own, words) = (t.exps[0].nic_len, t.exps[0].end_len, t.exps[0].mask_words);
    let couples = !rows.coupled.is_empty();
    for (k, (&i, &peak)) in rows.ends.iter().zip(&rows.peaks).enumerate() {
        if t.clocks[i.end(nics).usize()] >= end {
            continue;
        }
        if couples && run.guard.is_coupled(t.ports[i].switch_idx) {
            plan::plan(t, i, end);
        } else {
            receive(run, t, k, i, peak, end);
        }
    }
    // Random marks are no function of the key. Neither is what follows once DCQCN's timers run, if they move windows
    // that the NIC reads at each post. Where windows stand still, recording relies on there being no congestion
    // (`cc_state::marks_by_chance`).
    let mut drew = false;
    let timers = timers_run(t) || t.fold_hints.random_marks;
    for &s in &rows.coupled {
        drew |= coupled_switch(run, t, s, timers, end)?;
    }
    for &port in &rows.ports {
        if couples && run.guard.is_coupled(t.ports[port].switch_idx) {
            continue;
        }
        let first = plan::request_word(t, port, 0) as usize;
        let wanted = t.shared[first..first + words as usize].iter().any(|&word| word != 0);
        if wanted || t.ports[port].in_frames.is_some() || t.clocks[port.end(nics).own_clock(own)] < end {
            let (draws, marks) = (t.ports[port].draws, t.ports[port].marks);
            let wire = t.wires[t.ports[port].peer];
            forward::forward(t, port, end);
            if run.ingress_peaks.is_watching(t.ports[port].switch_idx) {
                run.ingress_peaks.departures(t, port, wire.tail);
            }
            let row = &t.ports[port];
            drew |= row.draws != draws || (timers && row.marks != marks);
        }
    }
    Ok(drew)
}

/// Processes coupled switch `s` up to `end`, once what arrives there is planned. Returns whether something happened that
/// is no function of the key: after a drop, pauses of senders are random.
fn coupled_switch(run: &FoldRun, t: &mut Tables, s: SwitchIdx, timers: bool, end: u64) -> Result<bool, Stop> {
    let (nics, own) = (t.exps[0].nic_len, t.exps[0].end_len);
    let ports = t.switches[s].ports();
    let due = |t: &Tables, port: PortIdx| {
        let row = &t.ports[port];
        row.arr_n > 0 || row.in_frames.is_some() || t.clocks[port.end(nics).own_clock(own)] < end
    };
    if !ports.clone().any(|port| due(t, port)) {
        return Ok(false);
    }
    let count = |t: &Tables| {
        ports.clone().map(|port| &t.ports[port]).fold((0, 0, 0), |(draws, marks, drops), row| {
            (draws + row.draws, marks + row.marks, drops + u64::from(row.drops))
        })
    };
    let before = count(t);
    classify::classify(t, s);
    if t.shared[SHARED_FLAGS as usize] & flag::NEEDS_FRAMES != 0 {
        grow::grow(t, run.limit).map_err(|e| Stop::Fail(e.to_string()))?;
    }
    if t.switches[s].independent == 0 {
        forward_joint::forward_joint(t, s, end);
    } else {
        ports.clone().for_each(|port| forward::row(t, port, end));
    }
    let after = count(t);
    Ok(after.0 != before.0 || (timers && after.1 != before.1) || after.2 != before.2)
}

/// Returns dropped packets and used pause frames to the pools that they came from.
fn return_records(t: &mut Tables, rows: &PartitionRows) {
    let nics = rows.nics.iter().map(|&n| take_list(&mut t.nics[n].to_return)).collect::<Vec<_>>();
    let ports = rows.ports.iter().map(|&q| take_list(&mut t.ports[q].to_return)).collect::<Vec<_>>();
    for mut p in nics.into_iter().chain(ports) {
        while p.is_some() {
            p = advance::return_record(t, p);
        }
    }
}

fn take_list(head: &mut PacketIdx) -> PacketIdx {
    std::mem::replace(head, PacketIdx::NONE)
}

/// Plans what arrives at switch port `i`, the `k`-th of the partition's ends, before `end`, and counts it at once: an
/// independent switch needs no more.
pub(crate) fn receive(run: &mut FoldRun, t: &mut Tables, k: usize, i: PortIdx, peak: u32, end: u64) {
    plan::plan(t, i, end);
    let row = &mut t.ports[i];
    let bytes = take(&mut row.arr_bytes);
    row.arr_n = 0;
    let word = (SHARED_HEADER + i.0) as usize;
    let held = t.shared[word];
    t.shared[word] = held.wrapping_add(bytes);
    if t.shared[word] > peak {
        run.ingress_peaks.arrivals(t, k, i, held, peak);
    }
}

/// NICs that stopped because a queue pair needs rows outside `p`: these rows join, if that is at `at`.
pub(crate) fn join_stalled(
    run: &mut FoldRun,
    t: &mut Tables,
    p: u32,
    mut held: Vec<NicIdx>,
    at: u64,
    end: u64,
) -> Result<u32, Stop> {
    let own = t.exps[0].end_len;
    let mut p = p;
    while let Some(k) = (0..held.len()).find(|&k| t.clocks[held[k].end().own_clock(own)] <= at) {
        let n = held[k];
        let next = nic::next_event(t, n);
        let flow = if next.kind == START {
            let row = &t.nics[n];
            row.flow_first + row.flow_next
        } else {
            t.tasks[t.nics[n].task_head].flow
        };
        drain(run, t, p);
        p = (run.join)(run, t, n, flow, next.t)?;
        nic::nic(t, n, end);
        if t.clocks[n.end().own_clock(own)] > at {
            held.remove(k);
        }
    }
    Ok(p)
}

/// Does what the flags of the experiment ask for after a turn.
pub(crate) fn check_flags(run: &mut FoldRun, t: &mut Tables) -> Result<(), Stop> {
    let flags = t.shared[SHARED_FLAGS as usize];
    if flags & (flag::OVER_BUFFER | flag::POOL_EMPTY | flag::GAVE_UP) != 0 {
        return Err(Stop::Abandon(reason::FLAG));
    }
    if flags & flag::NEEDS_PACKETS != 0 {
        grow::grow(t, run.limit).map_err(|e| Stop::Fail(e.to_string()))?;
    }
    Ok(())
}

/// When simulated partition `p` goes on, be it to retire.
pub(crate) fn next_event_at(run: &mut FoldRun, t: &Tables, p: u32) -> u64 {
    let partition = &mut run.partitions[p as usize];
    let next = partition.next_events(t);
    partition.retires_at =
        if next.idle { partition.mark(partition.reached.max(partition.start + 1), run.step) } else { NEVER };
    next.at.min(partition.retires_at)
}
