//! The CPU engine behind the common interface: experiments in parallel, each on one thread.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::columns::{Tables, status};
use crate::engine::{Engine, EngineError, grow, is_final};

/// Steps between looks at the clock.
const STEPS_A_LOOK: u32 = 256;

/// Runs on the threads of the rayon pool it is called in.
#[derive(Debug, Default)]
pub struct CpuEngine;

impl Engine for CpuEngine {
    fn name(&self) -> String {
        "cpu".into()
    }

    fn advance(&mut self, batch: &mut [Tables], slice: Duration, packet_limit: u64) -> Result<Vec<f64>, EngineError> {
        Ok(batch.par_iter_mut().map(|t| advance_one(t, slice, packet_limit)).collect())
    }
}

fn advance_one(t: &mut Tables, slice: Duration, packet_limit: u64) -> f64 {
    let start = Instant::now();
    while !is_final(t) && start.elapsed() < slice {
        super::run(t, STEPS_A_LOOK);
        if t.exps[0].status == status::NEEDS_PACKETS && grow::grow(t, packet_limit).is_err() {
            t.exps[0].status = status::TOO_MANY_PACKETS;
        }
    }
    start.elapsed().as_secs_f64()
}
