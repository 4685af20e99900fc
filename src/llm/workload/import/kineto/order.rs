//! Which kernels wait for which: the order that a trace shows.
//!
//! Layer: workload. It compares times.
//!
//! A kernel follows the kernel before it on its stream. Beyond that it waits for
//!
//! - the last kernel of each other stream that ended while its own stream was idle before it: that end is what it can have waited for;
//! - what its stream waited for by an event, where the trace has such waits. They tell of waits that took no time, which the first rule does not see.

use std::collections::BTreeMap;

use super::events::{GpuWork, StreamWait};

/// Work of a GPU in order, with what each waits for.
#[derive(Debug, Default)]
pub(super) struct KernelOrder {
    /// For each work, the index of its stream in `streams`.
    pub(super) lane: Vec<u32>,
    /// Streams by their number in the trace.
    pub(super) streams: Vec<u64>,
    /// Begin and end in ns, where work of a stream never overlaps.
    pub(super) times: Vec<(u64, u64)>,
    /// The time from which nothing is waited for any more, ns. Until `times` begins it is time of the host.
    pub(super) ready_ns: Vec<u64>,
    /// What each work waits for beside the work before it: pairs of a work and an earlier one, in order of the first.
    pub(super) waits: Vec<(u32, u32)>,
    /// Number of works that began before the one before them on their stream had ended.
    pub(super) overlaps: u64,
    /// Number of waits by events.
    pub(super) by_events: u64,
}

impl KernelOrder {
    /// The order of the work of a GPU, which is given by begin.
    pub(super) fn of(work: &[GpuWork], waits: &[StreamWait]) -> KernelOrder {
        let mut streams: Vec<u64> = work.iter().map(|w| w.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        let lane_of = |stream: u64| streams.binary_search(&stream).ok().map(|lane| lane as u32);
        let lane: Vec<u32> = work.iter().map(|w| lane_of(w.stream).expect("each stream is listed")).collect();
        let explicit = by_events(work, &lane, streams.len(), waits, lane_of);
        let mut order = KernelOrder { lane, ..KernelOrder::default() };
        // The last work of each stream, and the one before it.
        let mut last: Vec<[Option<u32>; 2]> = vec![[None; 2]; streams.len()];
        for (i, w) in work.iter().enumerate() {
            let own = order.lane[i] as usize;
            let end_of = |work_idx: Option<u32>, times: &[(u64, u64)]| work_idx.map_or(0, |i| times[i as usize].1);
            let free_ns = end_of(last[own][0], &order.times);
            order.overlaps += u64::from(w.begin_ns < free_ns);
            let begin_ns = w.begin_ns.max(free_ns);
            let mut ready_ns = free_ns;
            let first_wait = order.waits.len();
            for (_, recent) in last.iter().enumerate().filter(|(other, _)| *other != own) {
                let ended = recent.iter().flatten().find(|earlier| order.times[**earlier as usize].1 <= begin_ns);
                if let Some(earlier) = ended.copied().filter(|earlier| order.times[*earlier as usize].1 > free_ns) {
                    order.waits.push((i as u32, earlier));
                    ready_ns = ready_ns.max(order.times[earlier as usize].1);
                }
            }
            for earlier in
                explicit.get(&(i as u32)).into_iter().flatten().copied().filter(|earlier| (*earlier as usize) < i)
            {
                // Clocks of streams may differ by a little, so that a kernel seems to begin before what it waits for has ended.
                ready_ns = ready_ns.max(order.times[earlier as usize].1.min(begin_ns));
                if !order.waits[first_wait..].contains(&(i as u32, earlier)) {
                    order.waits.push((i as u32, earlier));
                    order.by_events += 1;
                }
            }
            order.ready_ns.push(ready_ns);
            order.times.push((begin_ns, w.end_ns.max(begin_ns)));
            last[own] = [Some(i as u32), last[own][0]];
        }
        order.streams = streams;
        order
    }
}

/// What each work waits for by events.
fn by_events(
    work: &[GpuWork],
    lane: &[u32],
    n_lanes: usize,
    waits: &[StreamWait],
    lane_of: impl Fn(u64) -> Option<u32>,
) -> BTreeMap<u32, Vec<u32>> {
    let mut launched: Vec<Vec<(u64, u32)>> = vec![Vec::new(); if waits.is_empty() { 0 } else { n_lanes }];
    if !waits.is_empty() {
        for (i, w) in work.iter().enumerate().filter(|(_, w)| w.correlation > 0) {
            launched[lane[i] as usize].push((w.correlation, i as u32));
        }
        launched.iter_mut().for_each(|works| works.sort_unstable());
    }
    let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for wait in waits {
        let (Some(own), Some(other)) = (lane_of(wait.stream), lane_of(wait.other_stream)) else { continue };
        if own == other {
            continue;
        }
        let (own, other) = (&launched[own as usize], &launched[other as usize]);
        let next = own.get(own.partition_point(|(correlation, _)| *correlation <= wait.correlation));
        let before = other.partition_point(|(correlation, _)| *correlation < wait.recorded);
        if let (Some((_, waiting)), Some(last)) = (next, before.checked_sub(1)) {
            found.entry(*waiting).or_default().push(other[last].1);
        }
    }
    found
}
