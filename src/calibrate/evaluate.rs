//! What the sweep says of measured rows with other values of the fitted keys.
//!
//! Layer: calibrate. A candidate is run as `hyperfold run --set` would run it. The same candidate is run once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::CalibrateError;
use super::parameter::FitParameter;
use super::rows::CalibrationRow;
use crate::results::{ExperimentRecord, Status};
use crate::session::{EngineChoice, Interrupt, Session};
use crate::sweep::Sweep;

/// Predictions by row, in each row's unit.
type Predicted = Arc<Vec<f64>>;

/// What the sweep says before anything is fitted.
#[derive(Clone, Debug)]
pub struct SweepAsItIs {
    /// By row, in each row's unit.
    pub predicted: Vec<f64>,
    /// What was measured as a time, ns, by row; `None` where that cannot be said.
    pub times_ns: Vec<Option<f64>>,
}

/// Runs candidates. It may be asked by several threads; what it answers does not depend on them.
pub struct Evaluator<'a> {
    sweep: &'a Sweep,
    rows: &'a [CalibrationRow],
    parameters: &'a [FitParameter],
    needed: BTreeSet<u64>,
    /// By the values as they are set. `None`: it cannot be, or has no result.
    known: Mutex<HashMap<Vec<u64>, Option<Predicted>>>,
    /// Ends the candidate that runs, and lets no other begin.
    stop: Interrupt,
}

impl<'a> Evaluator<'a> {
    /// For these rows of this sweep. After `stop` asks to, only what is known already is answered.
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

    /// What the sweep says as it is, on `jobs` threads.
    ///
    /// # Errors
    /// It cannot be run, or a measured experiment has no result.
    pub fn as_it_is(&self, jobs: usize) -> Result<SweepAsItIs, CalibrateError> {
        let records = self.records(self.sweep.clone(), jobs)?;
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

    /// What it says with other values, places of the parameters. `None` where a value cannot be, or a row has no result.
    pub fn at(&self, places: &[f64]) -> Option<Predicted> {
        let values: Vec<f64> = self.parameters.iter().zip(places).map(|(p, place)| p.value(*place)).collect();
        self.with_values(&values)
    }

    /// The same by values. Also `None` of what is not known yet after it was stopped.
    pub fn with_values(&self, values: &[f64]) -> Option<Predicted> {
        let key: Vec<u64> = values.iter().map(|v| v.to_bits()).collect();
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let set: Vec<String> = self.parameters.iter().zip(values).map(|(p, v)| p.set(*v)).collect();
        // A combination that the sweep refuses is a candidate that is not taken.
        let run = || -> Option<Predicted> {
            let records = self.records(self.sweep.with_set(&set).ok()?, 1).ok()?;
            self.rows.iter().map(|row| mean(row, &records).ok()).collect::<Option<Vec<f64>>>().map(Arc::new)
        };
        if self.is_stopped() {
            return None;
        }
        let found = run();
        // An experiment that was stopped has no result, and that says nothing of the candidate.
        if found.is_none() && self.is_stopped() {
            return None;
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, found.clone());
        found
    }

    /// Candidates that were run.
    pub fn n_run(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Results of the measured experiments by `exp_id`.
    fn records(&self, mut sweep: Sweep, jobs: usize) -> Result<BTreeMap<u64, ExperimentRecord>, CalibrateError> {
        sweep.experiments.retain(|e| self.needed.contains(&e.exp_id));
        let mut records = BTreeMap::new();
        for result in Session::new(EngineChoice::Cpu).jobs(jobs).interrupt(self.stop.clone()).run(&sweep)? {
            let record = result?.record;
            records.insert(record.exp_id, record);
        }
        Ok(records)
    }
}

/// Mean over a row's replicas; the error is the experiment that has no value.
fn mean(row: &CalibrationRow, records: &BTreeMap<u64, ExperimentRecord>) -> Result<f64, u64> {
    let value = |id: &u64| records.get(id).filter(|r| r.status == Status::Ok).and_then(|r| row.of(r)).ok_or(*id);
    let values = row.experiments.iter().map(value).collect::<Result<Vec<f64>, u64>>()?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
