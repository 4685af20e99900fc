//! The CPU engine behind the common interface: experiments in parallel, each on one thread; [`advance_one`] may share
//! its steps among more.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::parallel::side_by_side::SideBySide;
use super::parallel::threads::SpareThreads;
use crate::cpu::whole_step;
use crate::{Engine, EngineError, SliceOutcome, go_on, is_final};
use hyperfold_base::isolation::isolated;
use hyperfold_columns::Tables;

/// Maximum number of steps between two readings of the clock: well below a millisecond for small networks.
const STEPS_PER_CHECK: u32 = 64;
/// Approximate number of rows times steps between two readings of the clock. A row can take a microsecond in a step, so this is some milliseconds.
const ROWS_PER_CHECK: usize = 4096;
/// Wall time of a slice: short enough for progress and limits, long enough that the host's work between slices does not count.
const SLICE: Duration = Duration::from_millis(100);

/// CPU engine without folding. It runs on the threads of the rayon pool in which it is called.
#[derive(Debug, Default)]
pub struct CpuEngine;

impl Engine for CpuEngine {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        let end = Instant::now() + SLICE;
        // Each free thread takes one experiment at a time: experiments differ in length by orders of magnitude.
        let done: Vec<(f64, Option<String>)> = batch
            .par_iter_mut()
            .with_max_len(1)
            .map(|t| {
                let ended = isolated(|| advance_one(t, end, packet_limit, stop, None));
                ended.unwrap_or_else(|defect| (0.0, Some(defect.to_string())))
            })
            .collect();
        let mut slice = SliceOutcome::default();
        for (place, (seconds, failure)) in done.into_iter().enumerate() {
            slice.seconds.push(seconds);
            slice.failures.extend(failure.map(|why| (place, why)));
        }
        Ok(slice)
    }

    fn slice(&self) -> Duration {
        SLICE
    }
}

/// Number of steps that take some milliseconds at most.
pub fn steps_per_check(t: &Tables) -> u32 {
    let rows = t.nics.len() + t.ports.len();
    ((ROWS_PER_CHECK / rows.max(1)) as u32).clamp(1, STEPS_PER_CHECK)
}

/// Runs one experiment until `end`. Returns the seconds it took and, if it can never end, the reason. With `threads` it may use threads that are
/// spare.
pub fn advance_one(
    t: &mut Tables,
    end: Instant,
    packet_limit: u64,
    stop: &(dyn Fn() -> bool + Sync),
    mut threads: Option<(&SpareThreads, &mut SideBySide)>,
) -> (f64, Option<String>) {
    let start = Instant::now();
    let mut failure = None;
    let steps = steps_per_check(t);
    while failure.is_none() && !is_final(t) && Instant::now() < end && !stop() {
        match &mut threads {
            Some((spare, side)) => side.advance(t, steps, spare, end, stop),
            None => whole_step::run(t, steps),
        }
        failure = go_on(t, packet_limit).err().map(|e| e.to_string());
    }
    (start.elapsed().as_secs_f64(), failure)
}
