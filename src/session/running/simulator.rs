//! The steps of a run that tests replace: loading, choosing an engine, simulating.
//!
//! Layer: session. [`crate::running::simulate::BuiltIn`] implements it with the layers below; tests implement it with a few lines.

use crate::error::SessionError;
use crate::planning::forecast::TimeForecast;
use crate::planning::planned::{Planned, SweepRequest};
use crate::running::update::{EngineUsed, Known, UpdateSink};
use crate::settings::RunSettings;

/// A simulator of sweeps.
pub trait Simulator {
    /// An expanded sweep.
    type Sweep;
    /// Engines ready to run: threads, or devices that have passed their self-test.
    type Engine;

    /// Reads, expands, validates and selects a sweep.
    ///
    /// # Errors
    /// Anything wrong with the sweep or its input files. The message names file, line or key, value and what would be right.
    fn load(&self, request: &SweepRequest) -> Result<(Planned, Self::Sweep), SessionError>;

    /// Estimates the time of a run on the CPU by simulating one experiment of each class for a moment; `None` if nothing can be simulated.
    fn probe(&self, _sweep: &Self::Sweep) -> Option<TimeForecast> {
        None
    }

    /// Chooses the engine, before anything is written.
    ///
    /// # Errors
    /// No adapter for `--engine gpu`, or a `--device` that does not exist.
    fn engine(&self, sweep: &Self::Sweep, settings: &RunSettings) -> Result<(EngineUsed, Self::Engine), SessionError>;

    /// Simulates every selected experiment once, and reports each as it finishes. Experiments whose records are `known` from an earlier run are left out, and
    /// results of its search are reused. Returns early, without an error, when `settings.interrupt` asks for it. Returns warnings that appear only afterwards;
    /// they take known records into account.
    ///
    /// # Errors
    /// The run as a whole cannot go on; a bad experiment is a failed record instead.
    fn run(
        &self,
        sweep: Self::Sweep,
        engine: Self::Engine,
        settings: &RunSettings,
        known: &Known,
        sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, SessionError>;
}
