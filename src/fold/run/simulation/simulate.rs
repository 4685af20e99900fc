//! Simulates the rows of a partition for a span of time, with the systems of the CPU engine.
//!
//! Layer: fold/run.

use std::mem::take;

use super::span_rows::{SpanLeft, StepSpan};
use crate::rows::cc_state::timers_run;
use crate::rows::partition_rows::PartitionRows;
use crate::rows::rows_by_switch::RowsBySwitch;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::recording::{drain, mark_unpredictable};
use crate::run::partitions::counters::report_peaks;
use crate::run::stop::{Stop, reason};
use crate::run::turn_order::collect_all;
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{NEVER, NicIdx, PacketIdx, PortIdx, SHARED_FLAGS, Tables, flag, mode};
use hyperfold_engine::cpu::key::START;
use hyperfold_engine::cpu::{advance, nic};
use hyperfold_engine::grow;

/// Simulates the rows of partition `p` from `at_ps` up to `end_ps`. Returns the partition that they belong to then. A NIC that needs rows outside `p`
/// stops, unless it needs them at `at_ps`: rows join only when they are the earliest of all.
/// PRECONDITION: no next event is more than a step before `end_ps`.
pub(crate) fn step_span(run: &mut FoldRun, t: &mut Tables, p: u32, at_ps: u64, end_ps: u64) -> Result<u32, Stop> {
    let partition = &mut run.partitions[p as usize];
    // These lists are indexed once per row and span, so they are taken out of the partition.
    let rows = take(&mut partition.rows);
    let by_switch = run.threads.by_switch(t, &rows, partition.by_switch.take());
    let stepped = step_rows(run, t, &rows, by_switch.as_deref(), at_ps, end_ps);
    let partition = &mut run.partitions[p as usize];
    (partition.rows, partition.by_switch) = (rows, by_switch);
    let SpanLeft { mut peaks, drew, nics, .. } = stepped?;
    peaks.sort_unstable();
    let mut guard_fails = false;
    let carries = t.exps[0].modes & mode::RATES != 0;
    // If the guard fails in a small experiment, it starts over without skips, however early that is. So it need not wait for the end of the interval.
    let restarts_at_once = is_steadying(t) && !carries && run.gain.is_small();
    for (place, held_bytes) in peaks {
        let partition = &mut run.partitions[p as usize];
        let peak = run.guard.coarse(held_bytes);
        if peak <= partition.rows.peaks[place] {
            continue;
        }
        partition.rows.peaks[place] = peak;
        run.guard.note_peak(t, partition.rows.ends[place], peak);
        let (ends, peaks, local) = (&partition.rows.ends, &partition.rows.peaks, &run.index.end_local);
        let known_peak = |port: PortIdx| {
            ends.get(local[port.usize()] as usize)
                .filter(|&&end| end == port)
                .map(|_| peaks[local[port.usize()] as usize])
        };
        let port = ends[place];
        if run.guard.may_hold(t, port, known_peak) {
            continue;
        }
        guard_fails = true;
        let switch = t.ports[port].switch_idx;
        if restarts_at_once && peak > t.exps[0].reserve && !run.guard.is_joint(switch) {
            run.fails_for_certain = true;
            run.left_out.insert(switch);
        }
    }
    // If no checkpoint will end the interval, it ends now: memory might fill up before the partition retires.
    let partition = &run.partitions[p as usize];
    let ends_by_itself = if is_steadying(t) { partition.recordable } else { partition.cursor.is_some() };
    if guard_fails && !carries && !ends_by_itself {
        let mark = partition.mark(at_ps + 1, run.step);
        report_peaks(run, t, p, mark);
    }
    if drew {
        mark_unpredictable(run, t, p);
    }
    let stalled = nics.into_iter().flat_map(|left| left.held).collect();
    let p = join_stalled(run, t, p, stalled, at_ps, end_ps)?;
    collect_all(run, t, p);
    if t.shared[SHARED_FLAGS as usize] & flag::TO_RETURN != 0 {
        return_records(t, &run.partitions[p as usize].rows);
        t.shared[SHARED_FLAGS as usize] &= !flag::TO_RETURN;
    }
    check_flags(run, t)?;
    Ok(p)
}

/// Runs the systems over `rows` from `at_ps` up to `end_ps`. What the NICs leave behind is in the order of the NICs.
fn step_rows(
    run: &mut FoldRun,
    t: &mut Tables,
    rows: &PartitionRows,
    by_switch: Option<&RowsBySwitch>,
    at_ps: u64,
    end_ps: u64,
) -> Result<SpanLeft, Stop> {
    // Random marks are no function of the memo's key. Once DCQCN's timers run, what follows is none either, if the timers change windows that the NIC
    // reads at each post. If they do not, recording relies on there being no congestion (`cc_state::marks_by_chance`).
    let timers = timers_run(t) || t.fold_hints.random_marks;
    let span = StepSpan { rows, guard: &run.guard, start_ps: at_ps, end_ps, timers };
    let mut left = run.threads.step(t, &span, by_switch);
    if !left.lacking.is_empty() {
        grow::grow(t, run.limit).map_err(|e| Stop::Fail(e.to_string()))?;
        let mut lacking = take(&mut left.lacking);
        lacking.sort_unstable();
        run.threads.resume(t, &span, &lacking, &mut left);
    }
    left.nics.sort_unstable_by_key(|nics| nics.from);
    for nics in &mut left.nics {
        for (task, arrived_ps) in take(&mut nics.got) {
            t.tasks[task].got = arrived_ps;
        }
        t.fold_trace.append(&mut nics.traced);
    }
    Ok(left)
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

/// The first record of a list, which is empty afterwards.
fn take_list(head: &mut PacketIdx) -> PacketIdx {
    std::mem::replace(head, PacketIdx::NONE)
}

/// For each of the `stalled` NICs, which stopped because a queue pair needs rows outside `p`: if it needs them at `at_ps`, they join, and the NIC goes
/// on up to `end_ps`. Returns the partition that the rows belong to then.
pub(crate) fn join_stalled(
    run: &mut FoldRun,
    t: &mut Tables,
    p: u32,
    mut stalled: Vec<NicIdx>,
    at_ps: u64,
    end_ps: u64,
) -> Result<u32, Stop> {
    let own = t.exps[0].end_len;
    let mut p = p;
    while let Some(k) = (0..stalled.len()).find(|&k| t.clocks[stalled[k].end().own_clock(own)] <= at_ps) {
        let n = stalled[k];
        let next = nic::next_event(t, n);
        let flow = if next.kind == START {
            let row = &t.nics[n];
            row.flow_first + row.flow_next
        } else {
            t.tasks[t.nics[n].task_head].flow
        };
        drain(run, t, p);
        p = (run.join)(run, t, n, flow, next.t)?;
        nic::nic(t, n, end_ps);
        if t.clocks[n.end().own_clock(own)] > at_ps {
            stalled.remove(k);
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

/// Time at which simulated partition `p` goes on or retires, in ps. Sets the time at which it retires.
pub(crate) fn next_event_at(run: &mut FoldRun, t: &Tables, p: u32) -> u64 {
    let partition = &mut run.partitions[p as usize];
    let next = partition.next_events(t);
    partition.retires_at =
        if next.idle { partition.mark(partition.reached.max(partition.start + 1), run.step) } else { NEVER };
    next.at.min(partition.retires_at)
}
