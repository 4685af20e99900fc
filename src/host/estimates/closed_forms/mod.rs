//! Simulations compared with formulas: collectives, pipelines and traffic whose result a few lines of algebra predict.
//!
//! Layer: host. The networks are small, generated and free of contention, so the formulas are exact up to packets in flight. `hyperfold validate closed-forms`
//! and the test of the same name use these rows. Nothing here is fitted.

mod collectives;
mod formulas;
mod pipelines;
mod traffic;

use std::path::Path;

use crate::ExperimentOutcome;
use crate::PrepareError;
use crate::QueuedExperiment;
use crate::RunEvent;
use crate::RunOptions;
use crate::prepare;
use crate::run;
use hyperfold_config::spec::{Config, Conflict, KeyId, Value, Values};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;

/// The result of a formula beside the simulated one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedFormRow {
    /// The kind of formula. Rows are summarised by it.
    pub table: &'static str,
    /// What is computed, in words.
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
        /// What contradicts what.
        why: Conflict,
    },
    /// An experiment cannot be prepared.
    #[error("{name}: {why}")]
    Prepare {
        /// Name of the row.
        name: String,
        /// Why it cannot.
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
        /// Why it did not.
        why: String,
    },
}

/// Simulates and returns all rows. Takes some seconds.
///
/// # Errors
/// An experiment cannot be prepared or does not end.
pub fn rows() -> Result<Vec<ClosedFormRow>, ClosedFormError> {
    let mut rows = collectives::rows()?;
    rows.extend(pipelines::rows()?);
    rows.extend(traffic::rows()?);
    Ok(rows)
}

/// Keys of a workload and their values.
type Keys<'a> = &'a [(KeyId, Value)];

fn text(s: &str) -> Value {
    Value::Text(s.into())
}

/// Builds the configuration of hosts with one GPU each on one switch, with links of 100 Gb/s and a microsecond, and no congestion control; `keys` override.
fn config(name: &str, hosts: i64, keys: Keys) -> Result<Config, ClosedFormError> {
    let network = [
        (KeyId::Gpus, Value::Int(hosts)),
        (KeyId::GpusPerServer, Value::Int(1)),
        (KeyId::NicsPerServer, Value::Int(1)),
        (KeyId::TopologyKind, Value::Choice("rail-only")),
        (KeyId::LinkGbps, Value::Float(100.0)),
        (KeyId::LinkDelayNs, Value::Float(1000.0)),
        (KeyId::Cc, Value::Choice("none")),
        (KeyId::Protocol, Value::Choice("Simple")),
        (KeyId::Channels, Value::Int(1)),
    ];
    let mut values = Values::layered(&[&network, keys]);
    values.derive();
    Config::new(values, Path::new(""), 1).map_err(|why| ClosedFormError::Config { name: name.to_string(), why })
}

/// Simulates one configuration to its end.
fn simulate(name: &str, config: Config) -> Result<ExperimentOutcome, ClosedFormError> {
    prepare(&config, 0).map_err(|why| ClosedFormError::Prepare { name: name.to_string(), why: Box::new(why) })?;
    let mut outcome = None;
    let task = QueuedExperiment { exp_id: 0, config };
    run::<EngineError>(std::iter::once(task), Box::new(CpuEngine), &RunOptions::default(), || false, &mut |news| {
        if let RunEvent::Ended(ended) = news {
            outcome = Some(ended.result);
        }
        Ok(())
    })?;
    match outcome {
        Some(Ok(outcome)) => Ok(outcome),
        unfinished => Err(ClosedFormError::Ended { name: name.to_string(), why: format!("{unfinished:?}") }),
    }
}
