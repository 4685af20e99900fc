//! One comparison of a formula with a simulation, and why one cannot be made.
//!
//! Layer: host. Simulates nothing.

use crate::PrepareError;
use hyperfold_config::spec::Conflict;
use hyperfold_engine::EngineError;

/// The result of a formula beside the simulated one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedFormRow {
    /// The kind of formula. Rows are summarised by it.
    pub table: &'static str,
    /// A description of the quantity.
    pub name: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// Value by the formula.
    pub formula: f64,
    /// Simulated value.
    pub simulated: f64,
    /// The formula in words.
    pub note: &'static str,
}

impl ClosedFormRow {
    /// Relative error: (simulated - formula) / formula.
    pub fn rel_error(&self) -> f64 {
        (self.simulated - self.formula) / self.formula
    }
}

/// The reason why a comparison failed.
#[derive(Debug, thiserror::Error)]
pub enum ClosedFormError {
    /// The keys of an experiment contradict each other.
    #[error("{name}: {why}")]
    Config {
        /// Name of the row.
        name: String,
        /// Keys that contradict each other.
        why: Conflict,
    },
    /// An experiment cannot be prepared.
    #[error("{name}: {why}")]
    Prepare {
        /// Name of the row.
        name: String,
        /// Reason why it cannot be prepared.
        why: Box<PrepareError>,
    },
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An experiment did not end.
    #[error("{name} did not end: {why}")]
    Ended {
        /// Name of the row.
        name: String,
        /// Reason why it did not end.
        why: String,
    },
}
