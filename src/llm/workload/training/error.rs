//! What can be wrong with a training job.

use crate::model::ModelError;
use crate::workload::checks::check_error::CheckError;

/// Why no workload can be made of a model and its layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainingError {
    #[error("workload.rank_order = \"{order}\": {problem}")]
    Order { order: String, problem: String },
    #[error("workload.{key} = {value}: {problem}")]
    Key { key: &'static str, value: String, problem: String },
    #[error(transparent)]
    Layout(#[from] ModelError),
    #[error("generated graph: {0}")]
    Graph(#[from] CheckError),
}

impl TrainingError {
    /// An error about the value of a key.
    pub(super) fn key(key: &'static str, value: impl ToString, problem: impl Into<String>) -> TrainingError {
        TrainingError::Key { key, value: value.to_string(), problem: problem.into() }
    }
}
