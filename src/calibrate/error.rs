//! Why nothing can be calibrated.
//!
//! Layer: calibrate.

use crate::session::SessionError;

/// What is wrong with measurements, parameters or the sweep.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A file that is read: measured rows, a log, a trace. Lines count from 1.
    #[error("{file}:{line}: {why}")]
    Line {
        /// The file as the user named it.
        file: String,
        /// Where in it.
        line: u64,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The same of a whole file.
    #[error("{file}: {why}")]
    File {
        /// The file as the user named it.
        file: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// `--fit`.
    #[error("--fit {text}: {why}")]
    Parameter {
        /// As typed.
        text: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The sweep cannot be run.
    #[error(transparent)]
    Session(Box<SessionError>),
    /// A measured experiment without a result.
    #[error("{name}: experiment {experiment} has no result to compare: {why}")]
    NoResult {
        /// The measured row.
        name: String,
        /// Its `exp_id`.
        experiment: u64,
        /// What its row of results says.
        why: String,
    },
    /// Ctrl-C, or the end of the time, before the sweep had run once.
    #[error("stopped before the sweep had run with its own values: there is nothing to keep yet")]
    Stopped,
    /// No threads.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Options that do not go together with the rows.
    #[error("{0}")]
    Input(String),
}

impl From<SessionError> for CalibrateError {
    fn from(error: SessionError) -> CalibrateError {
        CalibrateError::Session(Box::new(error))
    }
}
