//! Errors of a workload's inputs.

use hyperfold_network::topology::FileError;

/// An error in a flow file, a distribution or a traffic pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{path}: all start times are whole numbers, which may be seconds or nanoseconds; set workload.start_unit to \"ns\" or \"s\""
    )]
    AmbiguousStart { path: String },
    #[error("workload.{key} = {value}: {problem}")]
    Parameter { key: &'static str, value: String, problem: String },
}

impl WorkloadError {
    /// An error about the value of a pattern's parameter.
    pub(super) fn parameter(key: &'static str, value: impl ToString, problem: impl Into<String>) -> WorkloadError {
        WorkloadError::Parameter { key, value: value.to_string(), problem: problem.into() }
    }
}
