//! Runs the rows of a partition through a span of time: switches, then NICs.
//!
//! Layer: fold/run. Knows the rows and the CPU's systems; nothing of turns or the memo. Which thread processes which rows changes nothing.

use std::mem::take;
use std::ops::Range;

use crate::rows::buffer_guard::BufferGuard;
use crate::rows::ingress_peaks::IngressPeaks;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::{FoldTrace, NicIdx, PortIdx, SHARED_HEADER, SwitchIdx, Tables, TaskIdx};
use hyperfold_engine::cpu::nic;
use hyperfold_engine::cpu::switch::{classify, forward, forward_joint, plan, whole_switch};
use hyperfold_engine::systems::{NicRows, STAGES, StepStage, SwitchRows, run_nics, run_switches};

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

/// Rows of a partition at switches that go through the systems together: all of them, or those at one switch.
#[derive(Clone)]
pub(crate) struct SwitchBlock<'a, E, C> {
    /// Link ends, with their places in the partition.
    pub ends: E,
    /// Ports that may forward.
    pub ports: &'a [PortIdx],
    /// The coupled ones among the switches.
    pub coupled: C,
}

impl StepSpan<'_> {
    /// Runs the stages of a step that rows of a partition go through, on one thread. `switches` does the work of the first one.
    pub(crate) fn stages(
        &self,
        t: &mut Tables,
        left: &mut SpanLeft,
        mut switches: impl FnMut(&mut Tables, &mut SpanLeft),
    ) {
        for stage in STAGES {
            match stage {
                StepStage::Switches => switches(t, left),
                StepStage::Nics if left.lacking.is_empty() => self.nics(t, 0..self.rows.nics.len(), left),
                // Turns serve gates in the order of time, and find the next event.
                StepStage::Nics | StepStage::Gates | StepStage::Clocks => {}
            }
        }
    }

    /// Processes a block of rows at switches.
    pub(crate) fn switches(
        &self,
        t: &mut Tables,
        peaks: &mut IngressPeaks,
        block: SwitchBlock<impl Iterator<Item = (usize, PortIdx)> + Clone, impl Iterator<Item = SwitchIdx> + Clone>,
        left: &mut SpanLeft,
    ) {
        let due = Vec::new();
        run_switches(t, &mut SpanSwitches { span: self, peaks, block, left, due }, self.end_ps);
    }

    /// Processes the NICs at these places. If threads share the rows, traced events and arrived messages are left for the caller.
    pub(crate) fn nics(&self, t: &mut Tables, places: Range<usize>, left: &mut SpanLeft) {
        let mut nics = SpanNics { span: self, places: places.clone(), held: Vec::new() };
        run_nics(t, &mut nics, self.end_ps);
        let held = nics.held;
        let shared = t.got_later.is_some();
        let traced = if shared { take(&mut t.fold_trace) } else { Vec::new() };
        let got = t.got_later.as_mut().map_or_else(Vec::new, take);
        if !(held.is_empty() && traced.is_empty() && got.is_empty()) {
            left.nics.push(NicsLeft { from: places.start, held, traced, got });
        }
    }

    /// Whether the ports of `s` are processed jointly where they affect each other.
    fn is_joint(&self, s: SwitchIdx) -> bool {
        !self.rows.switches.is_empty() && self.guard.is_joint(s)
    }
}

/// How a block of rows at switches goes through the systems.
struct SpanSwitches<'s, 'a, E, C> {
    span: &'s StepSpan<'a>,
    peaks: &'s mut IngressPeaks,
    block: SwitchBlock<'a, E, C>,
    left: &'s mut SpanLeft,
    /// Joint switches that have something to do and enough pause frames.
    due: Vec<SwitchIdx>,
}

impl<E, C> SwitchRows for SpanSwitches<'_, '_, E, C>
where
    E: Iterator<Item = (usize, PortIdx)> + Clone,
    C: Iterator<Item = SwitchIdx> + Clone,
{
    #[inline]
    fn plan(&mut self, t: &mut Tables, end: u64) {
        let nics = t.exps[0].nic_len;
        self.peaks.begin(self.span.start_ps, end);
        whole_switch::fetch_arrivals(t, self.block.ends.clone().map(|(_, port)| port), end);
        for (place, port) in self.block.ends.clone() {
            if t.clocks[port.end(nics).usize()] < end {
                plan::plan(t, port, end);
                if !self.span.is_joint(t.ports[port].switch_idx) {
                    charge(t, self.peaks, place, port, self.span.rows.peaks[place]);
                }
            }
        }
    }

    /// The buffer guard proves that all other switches are independent.
    #[inline]
    fn classify(&mut self, t: &mut Tables, end: u64) {
        for s in self.block.coupled.clone().filter(|&s| self.span.is_joint(s)) {
            if !is_due(t, s, end) {
                continue;
            }
            classify::classify(t, s);
            if classify::lacks_frames(t, s) {
                self.left.lacking.push(s);
            } else {
                self.due.push(s);
            }
        }
    }

    #[inline]
    fn forward(&mut self, t: &mut Tables, end: u64) {
        let (nics, own, words) = (t.exps[0].nic_len, t.exps[0].end_len, t.exps[0].mask_words);
        for &port in self.block.ports {
            if self.span.is_joint(t.ports[port].switch_idx) {
                continue;
            }
            let first = plan::request_word(t, port, 0) as usize;
            let wanted = t.shared[first..first + words as usize].iter().any(|&word| word != 0);
            if wanted || t.ports[port].in_frames.is_some() || t.clocks[port.end(nics).own_clock(own)] < end {
                let (draws, marks) = (t.ports[port].draws, t.ports[port].marks);
                let wire = t.wires[t.ports[port].peer];
                forward::forward(t, port, end);
                if self.peaks.is_watching(t.ports[port].switch_idx) {
                    self.peaks.departures(t, port, wire.tail);
                }
                let row = &t.ports[port];
                self.left.drew |= row.draws != draws || (self.span.timers && row.marks != marks);
            }
        }
        self.left.peaks.extend(self.peaks.peaks());
        for k in 0..self.due.len() {
            let s = self.due[k];
            if t.switches[s].independent != 0 {
                self.watch(t, s, |t| t.switches[s].ports().for_each(|port| forward::row(t, port, end)));
            }
        }
    }

    #[inline]
    fn forward_joint(&mut self, t: &mut Tables, end: u64) {
        for k in 0..self.due.len() {
            let s = self.due[k];
            if t.switches[s].independent == 0 {
                self.watch(t, s, |t| forward_joint::forward_joint(t, s, end));
            }
        }
    }
}

impl<E, C> SpanSwitches<'_, '_, E, C> {
    /// Lets joint switch `s` send, and notes whether something happened that is no function of the key. After a drop, pauses of senders are random.
    fn watch(&mut self, t: &mut Tables, s: SwitchIdx, send: impl FnOnce(&mut Tables)) {
        let count = |t: &Tables| {
            t.switches[s].ports().map(|port| &t.ports[port]).fold((0, 0, 0), |(draws, marks, drops), row| {
                (draws + row.draws, marks + row.marks, drops + u64::from(row.drops))
            })
        };
        let before = count(t);
        send(t);
        let after = count(t);
        self.left.drew |= after.0 != before.0 || (self.span.timers && after.1 != before.1) || after.2 != before.2;
    }
}

/// Whether a port of `s` has something to do before `end`.
fn is_due(t: &Tables, s: SwitchIdx, end: u64) -> bool {
    let (nics, own) = (t.exps[0].nic_len, t.exps[0].end_len);
    t.switches[s].ports().any(|port| {
        let row = &t.ports[port];
        row.arr_n > 0 || row.in_frames.is_some() || t.clocks[port.end(nics).own_clock(own)] < end
    })
}

/// NICs at some places of a partition.
struct SpanNics<'s, 'a> {
    span: &'s StepSpan<'a>,
    places: Range<usize>,
    /// NICs that stopped because a queue pair needs rows outside the partition.
    held: Vec<NicIdx>,
}

impl NicRows for SpanNics<'_, '_> {
    #[inline]
    fn nic(&mut self, t: &mut Tables, end: u64) {
        let own = t.exps[0].end_len;
        let nics = &self.span.rows.nics[self.places.clone()];
        for (k, &n) in nics.iter().enumerate() {
            if k.is_multiple_of(TOGETHER) {
                nic::fetch_arrivals(t, nics[k..nics.len().min(k + TOGETHER)].iter().copied(), end);
            }
            if t.clocks[n.usize()] < end || t.clocks[n.end().own_clock(own)] < end {
                nic::nic(t, n, end);
                if t.clocks[n.end().own_clock(own)] < end {
                    self.held.push(n);
                }
            }
        }
    }
}

/// Charges the planned arrivals to ingress `port`, at `place`, at once: an independent switch needs no more. `peak`: its known peak in bytes.
fn charge(t: &mut Tables, peaks: &mut IngressPeaks, place: usize, port: PortIdx, peak: u32) {
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
