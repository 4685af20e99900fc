//! The steps of a run that tests replace: loading, choosing an engine, simulating.
//!
//! Layer: session. [`super::simulate::BuiltIn`] implements it with the layers below; tests do with a few lines.

use super::error::SessionError;
use super::forecast::TimeForecast;
use super::planned::{Planned, SweepRequest};
use super::settings::RunSettings;
use super::update::{EngineUsed, Known, UpdateSink};

/// Sweeps and engines.
pub trait Simulator {
    /// An expanded sweep.
    type Sweep;
    /// Engines ready to run: threads, or devices that have passed their self-test.
    type Engine;

    /// Reads, expands, validates and selects.
    ///
    /// # Errors
    /// Anything wrong with the sweep or its input files; the message names file, line or key, value and what would be right.
    fn load(&self, request: &SweepRequest) -> Result<(Planned, Self::Sweep), SessionError>;

    /// Time of a run on the CPU, by simulating one experiment of each class for a moment; `None` where nothing can be simulated.
    fn probe(&self, _sweep: &Self::Sweep) -> Option<TimeForecast> {
        None
    }

    /// Decides what simulates, before anything is written.
    ///
    /// # Errors
    /// No adapter for `--engine gpu`, or a `--device` that is not there.
    fn engine(&self, sweep: &Self::Sweep, settings: &RunSettings) -> Result<(EngineUsed, Self::Engine), SessionError>;

    /// Simulates every selected experiment once, reporting each as it finishes. Those whose records are `known` from an earlier run are
    /// left out, and what its search found is not looked at again. Returns early, without an error, when `settings.interrupt` asks for
    /// it. The result is warnings that show only afterwards, with the known records taken into account.
    ///
    /// # Errors
    /// The run as a whole cannot go on; one bad experiment is a failed record instead.
    fn run(
        &self,
        sweep: Self::Sweep,
        engine: Self::Engine,
        settings: &RunSettings,
        known: &Known,
        sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, SessionError>;
}
