//! How much each measured row counts in a fit.
//!
//! Layer: calibrate.

use super::error::CalibrateError;
use super::rows::CalibrationRow;
use crate::spec::KeyId;
use crate::sweep::Sweep;

/// What rows are weighted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWeights {
    /// The columns `weight` or `error` of the measured file.
    Own,
    /// All count alike.
    Equal,
    /// The square root of the measured time. A program spends its time where operations take long, so an error there costs more. In proportion to time, two
    /// or three rows of the longest would decide everything, and rows of microseconds nothing; the root lies half-way between that and equal weights (our choice).
    RootTime,
    /// The measured time.
    Time,
    /// The size of messages, `workload.bytes`.
    Size,
}

impl RowWeights {
    /// All of them, with their names.
    pub const ALL: [(&'static str, RowWeights); 5] = [
        ("own", RowWeights::Own),
        ("equal", RowWeights::Equal),
        ("root-time", RowWeights::RootTime),
        ("time", RowWeights::Time),
        ("size", RowWeights::Size),
    ];

    /// What is used where nothing is said: the file's own weights, else the root of times, if every row has one.
    pub(super) fn usual(rows: &[CalibrationRow], times_ns: &[Option<f64>]) -> RowWeights {
        match () {
            () if rows.iter().any(|row| row.has_own_weight) => RowWeights::Own,
            () if times_ns.iter().all(Option::is_some) => RowWeights::RootTime,
            () => RowWeights::Equal,
        }
    }

    /// As options have it.
    pub fn name(self) -> &'static str {
        RowWeights::ALL.iter().find(|(_, weights)| *weights == self).map_or("", |(name, _)| name)
    }
}

/// Weights of rows, 1 on average. `times_ns`: what was measured as a time, where that can be said.
///
/// # Errors
/// A row has no time or size, and is to be weighted by it.
pub(super) fn weights(
    by: RowWeights,
    sweep: &Sweep,
    rows: &[CalibrationRow],
    times_ns: &[Option<f64>],
) -> Result<Vec<f64>, CalibrateError> {
    let weight = |i: usize| -> Result<f64, CalibrateError> {
        let lacks = |what: &str| {
            CalibrateError::Input(format!(
                "--weights {}: {} has no {what}; --weights equal counts all rows alike",
                by.name(),
                rows[i].name
            ))
        };
        match by {
            RowWeights::Own if !rows[i].has_own_weight => Err(CalibrateError::Input(
                "--weights own: the measured file has no column `weight` or `error`; add one of the two".to_string(),
            )),
            RowWeights::Own => Ok(rows[i].weight),
            RowWeights::Equal => Ok(1.0),
            RowWeights::RootTime => times_ns[i].map(libm::sqrt).ok_or_else(|| lacks("time")),
            RowWeights::Time => times_ns[i].ok_or_else(|| lacks("time")),
            RowWeights::Size => bytes(sweep, &rows[i]).ok_or_else(|| lacks("workload.bytes that the sweep sets")),
        }
    };
    let all: Vec<f64> = (0..rows.len()).map(weight).collect::<Result<_, _>>()?;
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    Ok(all.into_iter().map(|weight| weight / mean).collect())
}

/// The size of messages of a row's experiment, where the sweep sets one.
fn bytes(sweep: &Sweep, row: &CalibrationRow) -> Option<f64> {
    let experiment = sweep.experiments.iter().find(|e| row.experiments.contains(&e.exp_id))?;
    let values = sweep.config(experiment).ok()?.values;
    values.given(KeyId::Bytes).then(|| values.float(KeyId::Bytes)).filter(|bytes| *bytes > 0.0)
}
