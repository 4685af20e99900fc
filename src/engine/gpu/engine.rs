//! The GPU engine behind the common interface: it runs a batch on one device in slices of wall time.
//!
//! Layer: engine. Decides only how long to stay on the device and how to dispatch the steps.

use std::time::{Duration, Instant};

use super::batch_runner::GpuEngine;
use crate::fair_rates::RateSolver;
use crate::{Engine, EngineError, SliceOutcome, is_final};
use hyperfold_columns::Tables;

/// Wall time of a slice. Headers and counters come from the device once per slice, so it is longer than the CPU engine's.
const SLICE: Duration = Duration::from_secs(1);

impl Engine for GpuEngine {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        let ran: Vec<bool> = batch.iter().map(|t| !is_final(t)).collect();
        let start = Instant::now();
        let mode = self.mode_of(batch);
        let report = self
            .go_on(batch, mode, packet_limit, &mut |_| start.elapsed() < SLICE && !stop())
            .and_then(|report| self.refresh_counters(batch).map(|()| report))
            .inspect_err(|e| self.abandon_after(e))?;
        let share = start.elapsed().as_secs_f64() / ran.iter().filter(|r| **r).count().max(1) as f64;
        Ok(SliceOutcome {
            seconds: ran.iter().map(|r| if *r { share } else { 0.0 }).collect(),
            failures: report.failures.into_iter().map(|(place, why)| (place, why.to_string())).collect(),
            folds: Vec::new(),
        })
    }

    fn slice(&self) -> Duration {
        SLICE
    }

    fn rates(&mut self) -> Option<&mut dyn RateSolver> {
        Some(&mut self.rates)
    }

    fn forget(&mut self) {
        GpuEngine::forget(self);
    }
}
