//! The GPU engine behind the common interface: it runs a batch on one device in slices of wall time.
//!
//! Layer: engine. Decides only how long to stay on the device and how to dispatch the steps.

use std::time::{Duration, Instant};

use super::device::GpuDevice;
use super::faults::RunError;
use super::host::{GpuEngine, Mode};
use crate::fair_rates::RateSolver;
use crate::{Engine, EngineError, SliceOutcome, is_final};
use hyperfold_columns::Tables;

/// Wall time of a slice. Tables go to the device and back once per slice, so it is longer than the CPU engine's.
const SLICE: Duration = Duration::from_secs(1);
/// Batches of fewer than [`FEW`] experiments, one of them with more ports than this, are dispatched system by system: in the fused kernel one
/// workgroup per experiment would walk over all its rows in each step, while most of the device is idle. Our choice, not yet measured on a real GPU.
const LARGE_PORTS: u32 = 8192;
const FEW: usize = 16;

impl GpuEngine {
    /// Makes an engine on an adapter that has passed its self-test. Takes over the device's error handlers.
    ///
    /// # Errors
    /// It fails as [`GpuEngine::new`] does.
    pub fn on(gpu: &GpuDevice) -> Result<Self, RunError> {
        Self::new(gpu.device.clone(), gpu.queue.clone(), &gpu.device.limits())
    }

    /// Sets how every batch is dispatched from now on; `None`: the engine chooses per batch. Changes no result.
    pub fn dispatch_as(&mut self, mode: Option<Mode>) {
        self.mode = mode;
    }

    /// How `batch` is dispatched.
    pub fn mode_of(&self, batch: &[Tables]) -> Mode {
        self.mode.unwrap_or_else(|| Self::mode_for(batch))
    }

    /// Replaces the text of the kernel that solves rates. Tests show with it that a wrong kernel is found.
    ///
    /// # Errors
    /// The device allows no workgroup that the kernel can have.
    pub fn change_rates_kernel(&mut self, change: impl FnOnce(String) -> String) -> Result<(), RunError> {
        self.rates.change_kernel(change)
    }

    /// Solves rates on the device only for batches with at least `fewest` experiments at flow level. Changes no result.
    pub fn solve_rates_from(&mut self, fewest: usize) {
        self.rates.set_fewest(fewest);
    }

    /// The best way to dispatch a batch.
    fn mode_for(batch: &[Tables]) -> Mode {
        let mut running = 0;
        let mut max_ports = 0;
        for t in batch.iter().filter(|t| !is_final(t)) {
            running += 1;
            max_ports = max_ports.max(t.exps[0].port_len);
        }
        if running < FEW && max_ports > LARGE_PORTS { Mode::PerSystem } else { Mode::Fused }
    }
}

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
