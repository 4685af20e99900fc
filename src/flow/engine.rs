//! The flow level beside a packet engine: each takes its own experiments of a batch.
//!
//! Layer: flow level. Experiments run in parallel, each on one thread, so threads and batches change no result.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::run::FlowRun;
use crate::columns::{OwnedTables, Tables, mode};
use crate::engine::fold::FoldStats;
use crate::engine::{Engine, EngineError, SliceOutcome, is_final};
use crate::isolation::isolated;

/// As the packet engine's: short enough for progress and limits.
const SLICE: Duration = Duration::from_millis(100);

/// Whether flows of an experiment have rates in place of packets.
pub fn is_flow_level(t: &Tables) -> bool {
    t.exps.first().is_some_and(|e| e.modes & mode::FLOW != 0)
}

/// About what simulating an experiment takes beside its tables: its carriers, what these cross, and events. 0 for packets.
pub fn expected_bytes(t: &OwnedTables) -> u64 {
    if t.exps.first().is_none_or(|e| e.modes & mode::FLOW == 0) {
        return 0;
    }
    let links = (t.nics.len() + t.ports.len()) * LINK_BYTES;
    (links + t.flow_tx.len() * CARRIER_BYTES + t.paths.len() * CROSSING_BYTES + t.tasks.len() * EVENT_BYTES) as u64
}

/// A link, a carrier, an entry of a path and an event, on the heap.
const LINK_BYTES: usize = 160;
const CARRIER_BYTES: usize = 480;
const CROSSING_BYTES: usize = 32;
const EVENT_BYTES: usize = 16;

/// Runs one experiment, which has not begun, to its end. Whether it got there, or `stop` said so before.
pub fn run_to_end(t: &mut Tables, stop: &dyn Fn() -> bool) -> bool {
    let mut run = FlowRun::new(t);
    while !is_final(t) {
        if stop() {
            return false;
        }
        run.advance(t, Instant::now() + SLICE, &|| false);
    }
    true
}

/// Experiments at flow level that have begun, by their places in the batch.
#[derive(Debug, Default)]
pub struct FlowEngine {
    runs: Vec<Option<Box<FlowRun>>>,
}

impl FlowEngine {
    /// Advances those of the batch that are at flow level for a slice of time, or until `stop` says so.
    fn advance(&mut self, batch: &mut [Tables], stop: &(dyn Fn() -> bool + Sync)) -> SliceOutcome {
        let end = Instant::now() + SLICE;
        self.runs.resize_with(batch.len(), || None);
        let one = |(t, run): (&mut Tables, &mut Option<Box<FlowRun>>)| {
            if !is_flow_level(t) || is_final(t) {
                *run = None;
                return (0.0, None);
            }
            let start = Instant::now();
            // One that has not begun is another than the one that was in its place.
            if t.exps[0].steps == 0 {
                *run = None;
            }
            let ended = isolated(|| {
                let run = run.get_or_insert_with(|| Box::new(FlowRun::new(t)));
                run.advance(t, end, stop);
            });
            (start.elapsed().as_secs_f64(), ended.err().map(|defect| defect.to_string()))
        };
        let done: Vec<(f64, Option<String>)> =
            batch.par_iter_mut().zip(&mut self.runs).with_max_len(1).map(one).collect();
        log::debug!("flow level: {} bytes", self.runs.iter().flatten().map(|run| run.bytes()).sum::<u64>());
        let mut slice = SliceOutcome { folds: vec![FoldStats::default(); batch.len()], ..SliceOutcome::default() };
        for (place, (seconds, failure)) in done.into_iter().enumerate() {
            slice.seconds.push(seconds);
            slice.failures.extend(failure.map(|why| (place, why)));
        }
        slice
    }
}

/// Advances a batch: what is at flow level here, what is left on `packets`.
///
/// # Errors
/// Those of `packets`.
pub fn advance_beside(
    flows: &mut FlowEngine,
    packets: &mut dyn Engine,
    batch: &mut [Tables],
    packet_limit: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SliceOutcome, EngineError> {
    let ours: Vec<usize> = (0..batch.len()).filter(|&k| is_flow_level(&batch[k])).collect();
    if ours.is_empty() {
        return packets.advance(batch, packet_limit, stop);
    }
    let theirs: Vec<usize> = (0..batch.len()).filter(|&k| !is_flow_level(&batch[k])).collect();
    if theirs.is_empty() {
        return Ok(flows.advance(batch, stop));
    }
    let mut others: Vec<Tables> = theirs.iter().map(|&k| std::mem::take(&mut batch[k])).collect();
    let ran = packets.advance(&mut others, packet_limit, stop);
    let mut slice = flows.advance(batch, stop);
    for (&k, t) in theirs.iter().zip(others) {
        batch[k] = t;
    }
    let ran = ran?;
    for (&k, seconds) in theirs.iter().zip(ran.seconds) {
        slice.seconds[k] = seconds;
    }
    for (&k, folds) in theirs.iter().zip(&ran.folds) {
        slice.folds[k] = *folds;
    }
    if ran.folds.is_empty() {
        for &k in &theirs {
            slice.folds[k].hops_simulated = crate::engine::packet_hops(&batch[k]);
        }
    }
    slice.failures.extend(ran.failures.into_iter().map(|(at, why)| (theirs[at], why)));
    Ok(slice)
}
