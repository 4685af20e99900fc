//! The engine of a device that checks its kernels before it is believed.
//!
//! Layer: host. Each kind of kernel is checked when it is first needed. A device that differs is given up as a lost one is, and leaves no result.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hyperfold_columns::Tables;
use hyperfold_engine::fair_rates::{NumberedNetworks, RateNetwork, RateSolver};
use hyperfold_engine::gpu::{AdapterReport, GpuEngine, KernelParts, Mode};
use hyperfold_engine::{Engine, EngineError, SliceOutcome, is_final};

use super::known::KnownCase;
use super::{cases, packets, rates};

/// A GPU engine and what is known of its kernels.
pub struct CheckedEngine {
    engine: GpuEngine,
    /// Adapter and driver, in words.
    adapter: String,
    /// Ways of dispatching, each with the parts of the kernels that have passed.
    packets_passed: HashSet<(Mode, KernelParts)>,
    /// Whether the kernel of fair rates has passed.
    rates_passed: bool,
    /// Fewest experiments for which rates are solved on the device.
    fewest: usize,
}

impl CheckedEngine {
    /// The engine of an adapter. Options of `engine` are set before.
    pub fn new(mut engine: GpuEngine, report: &AdapterReport) -> CheckedEngine {
        let fewest = engine.rates().map_or(usize::MAX, |rates| rates.fewest());
        CheckedEngine {
            engine,
            adapter: adapter_in_words(report),
            packets_passed: HashSet::new(),
            rates_passed: false,
            fewest,
        }
    }

    fn check_packets(&mut self, mode: Mode, parts: KernelParts) -> Result<(), EngineError> {
        let clock = Instant::now();
        let known: Vec<KnownCase> = cases::of(parts).into_iter().map(KnownCase::simulated).collect();
        self.engine.fix_parts(Some(parts));
        let ends = packets::run(&mut self.engine, mode, &known);
        self.engine.fix_parts(None);
        if let Some(wrong) = ends?.wrong {
            return Err(self.refusal(&format!("{} with {parts}, {wrong}", packets::kernels_of(mode))));
        }
        self.packets_passed.insert((mode, parts));
        log::info!(
            "{}: {} with {parts}, checked in {} cases against the CPU engine: the same bytes, in {:.3} s",
            self.adapter,
            packets::kernels_of(mode),
            known.len(),
            clock.elapsed().as_secs_f64()
        );
        Ok(())
    }

    fn solver(&mut self) -> &mut dyn RateSolver {
        self.engine.rates().expect("a GPU engine solves rates")
    }

    fn check_rates(&mut self) -> Result<(), EngineError> {
        let clock = Instant::now();
        if let Some(wrong) = rates::first_difference(self.solver())? {
            return Err(self.refusal(&format!("the kernel of fair rates, {wrong}")));
        }
        self.rates_passed = true;
        log::info!(
            "{}: the kernel of fair rates, checked in {} networks: the same rates as on the CPU, in {:.3} s",
            self.adapter,
            rates::NETWORKS,
            clock.elapsed().as_secs_f64()
        );
        Ok(())
    }

    fn refusal(&self, wrong: &str) -> EngineError {
        EngineError::Differs(format!(
            "{} computes other results than the CPU engine ({wrong}), so none of its results is used; use `--engine cpu` or another driver, \
             and report what `hyperfold doctor --engine` prints",
            self.adapter
        ))
    }
}

/// The adapter with its driver, as errors name it.
fn adapter_in_words(report: &AdapterReport) -> String {
    format!("adapter {} ({}, driver {} {})", report.name, report.backend, report.driver, report.driver_info)
}

impl Engine for CheckedEngine {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        let mode = self.engine.mode_of(batch);
        let parts = self.engine.parts_for(batch);
        if !self.packets_passed.contains(&(mode, parts)) && batch.iter().any(|t| !is_final(t)) {
            self.check_packets(mode, parts)?;
        }
        self.engine.advance(batch, packet_limit, stop)
    }

    fn forget(&mut self) {
        Engine::forget(&mut self.engine);
    }

    fn slice(&self) -> Duration {
        self.engine.slice()
    }

    fn rates(&mut self) -> Option<&mut dyn RateSolver> {
        Some(self)
    }

    fn max_batch(&self, threads: usize) -> usize {
        self.engine.max_batch(threads)
    }

    fn max_batch_bytes(&self) -> u64 {
        self.engine.max_batch_bytes()
    }
}

impl RateSolver for CheckedEngine {
    fn fewest(&self) -> usize {
        self.fewest
    }

    fn load(&mut self, networks: &[RateNetwork]) -> Result<NumberedNetworks, EngineError> {
        if !self.rates_passed {
            self.check_rates()?;
        }
        self.solver().load(networks)
    }
}
