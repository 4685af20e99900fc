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
    pub name: String,
    pub unit: &'static str,
    pub formula: f64,
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
    #[error("{name}: {why}")]
    Config { name: String, why: Conflict },
    #[error("{name}: {why}")]
    Prepare { name: String, why: Box<PrepareError> },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{name} did not end: {why}")]
    Ended { name: String, why: String },
}
