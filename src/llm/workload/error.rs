//! Errors of a workload's inputs.

use hyperfold_network::topology::FileError;

/// An error in a flow file, a distribution or a traffic pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A file cannot be read, or a line of it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The unit of start times is not clear.
    #[error(
        "{path}: all start times are whole numbers, which may be seconds or nanoseconds; set workload.start_unit to \"ns\" or \"s\""
    )]
    AmbiguousStart {
        /// Path of the file.
        path: String,
    },
    /// A key of the workload is wrong.
    #[error("workload.{key} = {value}: {problem}")]
    Parameter {
        /// Key, without its section.
        key: &'static str,
        /// Value that the key has.
        value: String,
        /// The fault, in words for the user.
        problem: String,
    },
}

impl WorkloadError {
    /// An error about the value of a pattern's parameter.
    pub(super) fn parameter(key: &'static str, value: impl ToString, problem: impl Into<String>) -> WorkloadError {
        WorkloadError::Parameter { key, value: value.to_string(), problem: problem.into() }
    }
}
