//! Errors of a training job.

use crate::model::ModelError;
use crate::workload::checks::check_error::CheckError;

/// Why no workload can be made of a model and its layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainingError {
    /// The order of ranks is wrong.
    #[error("workload.rank_order = \"{order}\": {problem}")]
    Order {
        /// Order, as it was written.
        order: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// A key of the workload is wrong.
    #[error("workload.{key} = {value}: {problem}")]
    Key {
        /// Key, without its section.
        key: &'static str,
        /// Value that the key has.
        value: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// The model cannot have the layout.
    #[error(transparent)]
    Layout(#[from] ModelError),
    /// The generated programs break a rule: a defect.
    #[error("generated graph: {0}")]
    Graph(#[from] CheckError),
}

impl TrainingError {
    /// An error about the value of a key.
    pub(super) fn key(key: &'static str, value: impl ToString, problem: impl Into<String>) -> TrainingError {
        TrainingError::Key { key, value: value.to_string(), problem: problem.into() }
    }
}
