//! The CPU engine behind the common interface: experiments in parallel, each on one thread.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::columns::{Tables, status};
use crate::engine::{Engine, EngineError, Slice, grow, is_final, systems};

/// Steps between two readings of the clock: well below a millisecond for small networks.
const STEPS_PER_CHECK: u32 = 64;
/// Short enough for progress and limits, long enough that the host's work between slices does not count.
const SLICE: Duration = Duration::from_millis(100);

/// Runs on the threads of the rayon pool it is called in.
#[derive(Debug, Default)]
pub struct CpuEngine;

impl Engine for CpuEngine {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Slice, EngineError> {
        let end = Instant::now() + SLICE;
        // One at a time to whoever is free: experiments differ in length by orders of magnitude.
        let done: Vec<(f64, Option<String>)> =
            batch.par_iter_mut().with_max_len(1).map(|t| advance_one(t, end, packet_limit, stop)).collect();
        let mut slice = Slice::default();
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

/// Runs one experiment until `end`; gives the seconds it took and why it can never end, if so.
pub fn advance_one(
    t: &mut Tables,
    end: Instant,
    packet_limit: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> (f64, Option<String>) {
    let start = Instant::now();
    let mut failure = None;
    while failure.is_none() && !is_final(t) && Instant::now() < end && !stop() {
        systems::run(t, STEPS_PER_CHECK);
        if t.exps[0].status == status::NEEDS_PACKETS {
            failure = grow::grow(t, packet_limit).err().map(|e| e.to_string());
        }
    }
    (start.elapsed().as_secs_f64(), failure)
}
