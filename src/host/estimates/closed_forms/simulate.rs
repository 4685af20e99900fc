//! The small network that formulas are compared on, and its simulation.
//!
//! Layer: host. Knows no formula.

use std::path::Path;

use super::row::ClosedFormError;
use crate::ExperimentOutcome;
use crate::QueuedExperiment;
use crate::RunEvent;
use crate::RunOptions;
use crate::prepare;
use crate::run;
use hyperfold_config::spec::{Config, KeyId, Value, Values};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;

/// Keys of a workload and their values.
pub(super) type Keys<'a> = &'a [(KeyId, Value)];

pub(super) fn text(s: &str) -> Value {
    Value::Text(s.into())
}

/// Builds the configuration of hosts with one GPU each on one switch, with links of 100 Gb/s and a microsecond, and no congestion control; `keys` override.
pub(super) fn config(name: &str, hosts: i64, keys: Keys) -> Result<Config, ClosedFormError> {
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
pub(super) fn simulate(name: &str, config: Config) -> Result<ExperimentOutcome, ClosedFormError> {
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
