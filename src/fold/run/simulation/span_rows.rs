//! Runs the rows of a partition through a span of time: switches, then NICs.
//!
//! Layer: fold/run. Knows the rows and the CPU's systems; nothing of turns or the memo. Which thread processes which rows changes nothing.

use std::mem::take;
use std::ops::Range;

use crate::rows::buffer_guard::BufferGuard;
use crate::rows::ingress_peaks::IngressPeaks;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{FoldTrace, NicIdx, PortIdx, SHARED_HEADER, SwitchIdx, Tables, TaskIdx, mode};
use hyperfold_engine::cpu::nic;
use hyperfold_engine::cpu::switch::{classify, forward, forward_joint, plan, switches};

/// Number of consecutive NICs whose arrivals are prefetched together.
const TOGETHER: usize = nic::TOGETHER as usize;

/// The time over which the rows of one partition are stepped at once, and these rows.
pub(crate) struct StepSpan<'a> {
    pub rows: &'a PartitionRows,
    pub guard: &'a BufferGuard,
    /// Start of the span in ps.
    pub start_ps: u64,
    /// End of the span in ps.
    pub end_ps: u64,
    /// Whether a mark counts as random: DCQCN's timers run, or marks are random choices.
    pub timers: bool,
}

/// Work that rows leave for the caller. Lists have no order.
#[derive(Default)]
pub(crate) struct SpanLeft {
    /// Ingresses that exceeded their known peak: place, and bytes.
    pub peaks: Vec<(usize, u32)>,
    /// Whether something happened that is no function of the key.
    pub drew: bool,
    /// Coupled switches that need more pause frames.
    pub lacking: Vec<SwitchIdx>,
    pub nics: Vec<NicsLeft>,
}

/// Work that a range of NICs leaves.
pub(crate) struct NicsLeft {
    /// The place of the first of these NICs.
    pub from: usize,
    /// NICs that stopped because a queue pair needs rows outside the partition.
    pub held: Vec<NicIdx>,
    pub traced: Vec<FoldTrace>,
    /// Arrived messages and their times in ps, if threads share the rows.
    pub got: Vec<(TaskIdx, u64)>,
}

impl StepSpan<'_> {
    /// Processes link ends (with their places) and ports of whole switches; `coupled` are the coupled ones among these switches.
    pub(crate) fn switches(
        &self,
        t: &mut Tables,
        peaks: &mut IngressPeaks,
        (ends, ports): (impl Iterator<Item = (usize, PortIdx)> + Clone, &[PortIdx]),
        coupled: impl Iterator<Item = SwitchIdx>,
        left: &mut SpanLeft,
    ) {
        let (nics, own, words) = (t.exps[0].nic_len, t.exps[0].end_len, t.exps[0].mask_words);
        let end = self.end_ps;
        let couples = !self.rows.switches.is_empty();
        let due = |t: &Tables, port: PortIdx| t.clocks[port.end(nics).usize()] < end;
        peaks.begin(self.start_ps, end);
        switches::fetch_arrivals(t, ends.clone().map(|(_, port)| port), end);
        for (place, port) in ends {
            if !due(t, port) {
                continue;
            }
            plan::plan(t, port, end);
            if !couples || !self.guard.is_joint(t.ports[port].switch_idx) {
                count(t, peaks, place, port, self.rows.peaks[place]);
            }
        }
        for s in coupled.filter(|&s| self.guard.is_joint(s)) {
            self.coupled_switch(t, s, left);
        }
        for &port in ports {
            if couples && self.guard.is_joint(t.ports[port].switch_idx) {
                continue;
            }
            let first = plan::request_word(t, port, 0) as usize;
            let wanted = t.shared[first..first + words as usize].iter().any(|&word| word != 0);
            if wanted || t.ports[port].in_frames.is_some() || t.clocks[port.end(nics).own_clock(own)] < end {
                let (draws, marks) = (t.ports[port].draws, t.ports[port].marks);
                let wire = t.wires[t.ports[port].peer];
                forward::forward(t, port, end);
                if peaks.is_watching(t.ports[port].switch_idx) {
                    peaks.departures(t, port, wire.tail);
                }
                let row = &t.ports[port];
                left.drew |= row.draws != draws || (self.timers && row.marks != marks);
            }
        }
        left.peaks.extend(peaks.peaks());
    }

    /// Processes coupled switch `s`, after its arrivals are planned. If it lacks pause frames, it is left for the caller.
    fn coupled_switch(&self, t: &mut Tables, s: SwitchIdx, left: &mut SpanLeft) {
        let (nics, own) = (t.exps[0].nic_len, t.exps[0].end_len);
        let ports = t.switches[s].ports();
        let due = |t: &Tables, port: PortIdx| {
            let row = &t.ports[port];
            row.arr_n > 0 || row.in_frames.is_some() || t.clocks[port.end(nics).own_clock(own)] < self.end_ps
        };
        if !ports.clone().any(|port| due(t, port)) {
            return;
        }
        classify::classify(t, s);
        let row = &t.switches[s];
        if row.independent == 0 && row.free_n < row.need && t.exps[0].modes & mode::PFC != 0 {
            left.lacking.push(s);
        } else {
            self.send(t, s, left);
        }
    }

    /// Lets coupled switch `s` send. After a drop, pauses of senders are random.
    pub(crate) fn send(&self, t: &mut Tables, s: SwitchIdx, left: &mut SpanLeft) {
        let ports = t.switches[s].ports();
        let count = |t: &Tables| {
            ports.clone().map(|port| &t.ports[port]).fold((0, 0, 0), |(draws, marks, drops), row| {
                (draws + row.draws, marks + row.marks, drops + u64::from(row.drops))
            })
        };
        let before = count(t);
        if t.switches[s].independent == 0 {
            forward_joint::forward_joint(t, s, self.end_ps);
        } else {
            ports.clone().for_each(|port| forward::row(t, port, self.end_ps));
        }
        let after = count(t);
        left.drew |= after.0 != before.0 || (self.timers && after.1 != before.1) || after.2 != before.2;
    }

    /// Processes the NICs at these places. If threads share the rows, traced events and arrived messages are left for the caller.
    pub(crate) fn nics(&self, t: &mut Tables, places: Range<usize>, left: &mut SpanLeft) {
        let own = t.exps[0].end_len;
        let mut held = Vec::new();
        for k in places.clone() {
            if (k - places.start).is_multiple_of(TOGETHER) {
                let together = &self.rows.nics[k..places.end.min(k + TOGETHER)];
                nic::fetch_arrivals(t, together.iter().copied(), self.end_ps);
            }
            let n = self.rows.nics[k];
            if t.clocks[n.usize()] < self.end_ps || t.clocks[n.end().own_clock(own)] < self.end_ps {
                nic::nic(t, n, self.end_ps);
                if t.clocks[n.end().own_clock(own)] < self.end_ps {
                    held.push(n);
                }
            }
        }
        let shared = t.got_later.is_some();
        let traced = if shared { take(&mut t.fold_trace) } else { Vec::new() };
        let got = t.got_later.as_mut().map_or_else(Vec::new, take);
        if !(held.is_empty() && traced.is_empty() && got.is_empty()) {
            left.nics.push(NicsLeft { from: places.start, held, traced, got });
        }
    }
}

/// Charges the planned arrivals to ingress `port`, at `place`, at once: an independent switch needs no more. `peak`: its known peak in bytes.
fn count(t: &mut Tables, peaks: &mut IngressPeaks, place: usize, port: PortIdx, peak: u32) {
    let row = &mut t.ports[port];
    let bytes = take(&mut row.arr_bytes);
    row.arr_n = 0;
    let word = (SHARED_HEADER + port.0) as usize;
    let held = t.shared[word];
    t.shared[word] = held.wrapping_add(bytes);
    if t.shared[word] > peak {
        peaks.arrivals(t, place, port, held, peak);
    }
}
