//! Errors of a calibration.
//!
//! Layer: calibrate.

use hyperfold_session::SessionError;

/// Why a calibration fails: problems of measurements, parameters or the sweep.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A line of an input file is wrong: measured rows, a log, or a trace.
    #[error("{file}:{line}: {why}")]
    Line {
        /// The file, as the user named it.
        file: String,
        /// Line number, counted from 1.
        line: u64,
        /// The fault and its remedy, in words for the user.
        why: String,
    },
    /// An input file as a whole is wrong.
    #[error("{file}: {why}")]
    File {
        /// The file, as the user named it.
        file: String,
        /// The fault and its remedy, in words for the user.
        why: String,
    },
    /// A value of `--fit` is wrong.
    #[error("--fit {text}: {why}")]
    Parameter {
        /// The value as typed.
        text: String,
        /// The fault and its remedy, in words for the user.
        why: String,
    },
    /// The sweep cannot be run.
    #[error(transparent)]
    Session(Box<SessionError>),
    /// A measured experiment has no result.
    #[error("{name}: experiment {experiment} has no result to compare: {why}")]
    NoResult {
        /// Name of the measured row.
        name: String,
        /// `exp_id` of the experiment.
        experiment: u64,
        /// Status and message in its row of results.
        why: String,
    },
    /// Stopped by Ctrl-C or at the end of the time, before the sweep had run once.
    #[error("stopped before the sweep had run with its own values: there is nothing to keep yet")]
    Stopped,
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Options do not fit the rows.
    #[error("{0}")]
    Input(String),
}

impl From<SessionError> for CalibrateError {
    fn from(error: SessionError) -> CalibrateError {
        CalibrateError::Session(Box::new(error))
    }
}
