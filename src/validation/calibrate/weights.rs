//! Weights of measured rows in a fit.
//!
//! Layer: calibrate.

use super::error::CalibrateError;
use super::rows::CalibrationRow;
use hyperfold_config::spec::KeyId;
use hyperfold_config::sweep::Sweep;

/// How rows are weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWeights {
    /// By the columns `weight` or `error` of the measured file.
    Own,
    /// All rows equally.
    Equal,
    /// By the square root of the measured time. A program spends its time in long operations, so an error there costs more. In proportion to time, the two or
    /// three longest rows would decide everything, and rows of microseconds nothing. The square root is between that and equal weights (our choice).
    RootTime,
    /// By the measured time.
    Time,
    /// By the size of messages, `workload.bytes`.
    Size,
}

impl RowWeights {
    /// All kinds of weights, with their names.
    pub const ALL: [(&'static str, RowWeights); 5] = [
        ("own", RowWeights::Own),
        ("equal", RowWeights::Equal),
        ("root-time", RowWeights::RootTime),
        ("time", RowWeights::Time),
        ("size", RowWeights::Size),
    ];

    /// Default weights: the file's own weights, else the square root of the times if every row has one, else equal weights.
    pub(super) fn usual(rows: &[CalibrationRow], times_ns: &[Option<f64>]) -> RowWeights {
        match () {
            () if rows.iter().any(|row| row.has_own_weight) => RowWeights::Own,
            () if times_ns.iter().all(Option::is_some) => RowWeights::RootTime,
            () => RowWeights::Equal,
        }
    }

    /// Name in options.
    pub fn name(self) -> &'static str {
        RowWeights::ALL.iter().find(|(_, weights)| *weights == self).map_or("", |(name, _)| name)
    }
}

/// Weights of the rows, 1 on average. `times_ns` are the measured values as times, if they can be expressed as such.
///
/// # Errors
/// A row lacks the time or size that it is weighted by.
pub(super) fn weights(
    kind: RowWeights,
    sweep: &Sweep,
    rows: &[CalibrationRow],
    times_ns: &[Option<f64>],
) -> Result<Vec<f64>, CalibrateError> {
    let weight = |i: usize| -> Result<f64, CalibrateError> {
        let lacks = |quantity: &str| {
            CalibrateError::Input(format!(
                "--weights {}: {} has no {quantity}; --weights equal counts all rows alike",
                kind.name(),
                rows[i].name
            ))
        };
        match kind {
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

/// Message size of a row's experiment. `None`: the sweep does not set one.
fn bytes(sweep: &Sweep, row: &CalibrationRow) -> Option<f64> {
    let experiment = sweep.experiments.iter().find(|e| row.experiments.contains(&e.exp_id))?;
    let values = sweep.config(experiment).ok()?.values;
    values.given(KeyId::Bytes).then(|| values.float(KeyId::Bytes)).filter(|bytes| *bytes > 0.0)
}
