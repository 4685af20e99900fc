//! Simulates the rows of a partition for a span of time, with the systems of the CPU engine.
//!
//! Layer: fold/run.

use std::mem::take;

use super::span_rows::{SpanLeft, StepSpan};
use crate::rows::cc_state::timers_run;
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::PartitionRows;
use crate::rows::rows_by_switch::RowsBySwitch;
use crate::run::fold_run::FoldRun;
use crate::run::lookups::recording::mark_unpredictable;
use crate::run::partitions::counters::report_peaks;
use crate::run::stop::{Stop, reason};
use crate::run::turn_order::collect_all;
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{NEVER, NicIdx, PacketIdx, PortIdx, SHARED_FLAGS, Tables, flag, mode};
use hyperfold_engine::cpu::advance;
use hyperfold_engine::grow;

/// Simulates the rows of partition `p` from `at_ps` up to `end_ps`. Returns the NICs that stopped because a queue pair needs rows outside `p`: rows join only
/// when they are the earliest of all. The caller then calls [`end_span`].
/// PRECONDITION: no next event is more than a step before `end_ps`.
pub(crate) fn step_span(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    end_ps: u64,
) -> Result<Vec<NicIdx>, Stop> {
    let partition = &mut run.partitions[p];
    // These lists are indexed once per row and span, so they are taken out of the partition.
    let rows = take(&mut partition.rows);
    let by_switch = run.threads.by_switch(t, &rows, partition.by_switch.take());
    let stepped = step_rows(run, t, &rows, by_switch.as_deref(), at_ps, end_ps);
    let partition = &mut run.partitions[p];
    (partition.rows, partition.by_switch) = (rows, by_switch);
    let SpanLeft { mut peaks, drew, nics, .. } = stepped?;
    peaks.sort_unstable();
    let mut guard_fails = false;
    let carries = t.exps[0].modes & mode::RATES != 0;
    // If the guard fails in a small experiment, it starts over without skips, however early that is. So it need not wait for the end of the interval.
    let restarts_at_once = is_steadying(t) && !carries && run.gain.is_small();
    for (place, held_bytes) in peaks {
        let partition = &mut run.partitions[p];
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
    let partition = &run.partitions[p];
    let ends_by_itself = if is_steadying(t) { partition.recordable } else { partition.cursor.is_some() };
    if guard_fails && !carries && !ends_by_itself {
        let mark = partition.mark(at_ps + 1, run.step);
        report_peaks(run, t, p, mark);
    }
    if drew {
        mark_unpredictable(run, t, p);
    }
    Ok(nics.into_iter().flat_map(|left| left.held).collect())
}

/// [`step_span`] and [`end_span`] where rows that had joined are simulated again, so that none join.
///
/// # Errors
/// Rows must join nevertheless, or what [`step_span`] cannot go on with.
pub(crate) fn repeat_span(
    run: &mut FoldRun,
    t: &mut Tables,
    p: PartitionIdx,
    at_ps: u64,
    end_ps: u64,
) -> Result<(), Stop> {
    let stalled = step_span(run, t, p, at_ps, end_ps)?;
    let own = t.exps[0].end_len;
    if stalled.iter().any(|n| t.clocks[n.end().own_clock(own)] <= at_ps) {
        return Err(Stop::Abandon(reason::JOIN));
    }
    end_span(run, t, p)
}

/// Delivers what a span of `p` has left: signals to gates, used records to their pools, and what the flags of the experiment ask for.
pub(crate) fn end_span(run: &mut FoldRun, t: &mut Tables, p: PartitionIdx) -> Result<(), Stop> {
    collect_all(run, t, p);
    if t.shared[SHARED_FLAGS as usize] & flag::TO_RETURN != 0 {
        return_records(t, &run.partitions[p].rows);
        t.shared[SHARED_FLAGS as usize] &= !flag::TO_RETURN;
    }
    check_flags(run, t)
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
pub(crate) fn next_event_at(run: &mut FoldRun, t: &Tables, p: PartitionIdx) -> u64 {
    let partition = &mut run.partitions[p];
    let next = partition.next_events(t);
    partition.retires_at =
        if next.idle { partition.mark(partition.reached.max(partition.start + 1), run.step) } else { NEVER };
    next.at.min(partition.retires_at)
}
