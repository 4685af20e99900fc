//! Evaluates candidates: runs the sweep with other values of the fitted keys and predicts the measured rows.
//!
//! Layer: calibrate. A candidate is run as `hyperfold run --set` would run it. Each candidate is run once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::CalibrateError;
use super::parameter::FitParameter;
use super::rows::CalibrationRow;
use hyperfold_config::sweep::Sweep;
use hyperfold_results::{ExperimentRecord, Status};
use hyperfold_session::{EngineChoice, Interrupt, Session};

/// Predictions of all rows, each in the row's unit.
type Predicted = Arc<Vec<f64>>;

/// Predictions of the sweep with its own values.
#[derive(Clone, Debug)]
pub struct SweepAsItIs {
    /// Prediction of each row, in the row's unit.
    pub predicted: Vec<f64>,
    /// Measured value of each row as a time in ns. `None`: it cannot be expressed as a time.
    pub times_ns: Vec<Option<f64>>,
}

/// Runs candidates. Several threads may use it; its results do not depend on them.
pub struct Evaluator<'a> {
    sweep: &'a Sweep,
    rows: &'a [CalibrationRow],
    parameters: &'a [FitParameter],
    needed: BTreeSet<u64>,
    /// Predictions of the candidates that were run, by the bits of their values. `None`: the candidate is not possible, or a row has no result.
    known: Mutex<HashMap<Vec<u64>, Option<Predicted>>>,
    /// Stops the running candidate, and keeps others from starting.
    stop: Interrupt,
}

impl<'a> Evaluator<'a> {
    /// Makes an evaluator of these rows of this sweep. After `stop` fires, it only answers for candidates that have run.
    pub fn new(
        sweep: &'a Sweep,
        rows: &'a [CalibrationRow],
        parameters: &'a [FitParameter],
        stop: Interrupt,
    ) -> Evaluator<'a> {
        let needed = rows.iter().flat_map(|r| r.experiments.iter().copied()).collect();
        Evaluator { sweep, rows, parameters, needed, known: Mutex::default(), stop }
    }

    /// Whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.requested()
    }

    /// Predictions of the sweep with its own values, on `threads` threads.
    ///
    /// # Errors
    /// The sweep cannot be run, or a measured experiment has no result.
    pub fn as_it_is(&self, threads: usize) -> Result<SweepAsItIs, CalibrateError> {
        let records = self.records(self.sweep.clone(), threads)?;
        let mut found = SweepAsItIs { predicted: Vec::new(), times_ns: Vec::new() };
        for row in self.rows {
            match mean(row, &records) {
                Ok(value) => {
                    let iterations = row.experiments.iter().map(|id| Some(records.get(id)?.iteration_time?.0 as f64));
                    let sum_ps: Option<f64> = iterations.sum();
                    let iteration_ns = sum_ps.map(|ps| ps / 1e3 / row.experiments.len() as f64);
                    found.predicted.push(value);
                    found.times_ns.push(row.time_ns(value, iteration_ns));
                }
                Err(_) if self.is_stopped() => return Err(CalibrateError::Stopped),
                Err(experiment) => {
                    let why = records.get(&experiment).map_or("it was not run".to_string(), |r| match r.status {
                        Status::Ok => "its columns for this unit are empty".to_string(),
                        _ => format!("{}: {}", r.status.as_str(), r.error),
                    });
                    return Err(CalibrateError::NoResult { name: row.name.clone(), experiment, why });
                }
            }
        }
        Ok(found)
    }

    /// Predictions at a point, given by a place between 0 and 1 for each parameter. `None`: a value is not possible, or a row has no result.
    pub fn at(&self, places: &[f64]) -> Option<Predicted> {
        let values: Vec<f64> = self.parameters.iter().zip(places).map(|(p, place)| p.value(*place)).collect();
        self.with_values(&values)
    }

    /// Predictions with these values of the parameters. `None`: a value is not possible, a row has no result, or the evaluator was stopped before the
    /// candidate ran.
    pub fn with_values(&self, values: &[f64]) -> Option<Predicted> {
        let key: Vec<u64> = values.iter().map(|v| v.to_bits()).collect();
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let set: Vec<String> = self.parameters.iter().zip(values).map(|(p, v)| p.set(*v)).collect();
        // A combination of values that the sweep refuses is a candidate without a result.
        let run = || -> Option<Predicted> {
            let records = self.records(self.sweep.with_set(&set).ok()?, 1).ok()?;
            self.rows.iter().map(|row| mean(row, &records).ok()).collect::<Option<Vec<f64>>>().map(Arc::new)
        };
        if self.is_stopped() {
            return None;
        }
        let found = run();
        // A stopped experiment has no result, but that says nothing about the candidate, so it is not stored.
        if found.is_none() && self.is_stopped() {
            return None;
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, found.clone());
        found
    }

    /// Number of candidates that were run.
    pub fn n_run(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Results of the measured experiments, by `exp_id`.
    fn records(&self, mut sweep: Sweep, threads: usize) -> Result<BTreeMap<u64, ExperimentRecord>, CalibrateError> {
        sweep.experiments.retain(|e| self.needed.contains(&e.exp_id));
        let mut records = BTreeMap::new();
        for result in Session::new(EngineChoice::Cpu).threads(threads).interrupt(self.stop.clone()).run(&sweep)? {
            let record = result?.record;
            records.insert(record.exp_id, record);
        }
        Ok(records)
    }
}

/// Mean of a row's value over its replicas. The error is the id of an experiment without a value.
fn mean(row: &CalibrationRow, records: &BTreeMap<u64, ExperimentRecord>) -> Result<f64, u64> {
    let value = |id: &u64| records.get(id).filter(|r| r.status == Status::Ok).and_then(|r| row.of(r)).ok_or(*id);
    let values = row.experiments.iter().map(value).collect::<Result<Vec<f64>, u64>>()?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
