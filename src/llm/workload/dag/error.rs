//! Errors of a graph written by the user.

use crate::workload::checks::check_error::CheckError;
use hyperfold_network::topology::FileError;

/// What is wrong with the graph, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path}: {message}")]
    Syntax { path: String, message: String },
    #[error("{path}:{line}: node `{id}`: {problem}")]
    Node { path: String, line: u64, id: String, problem: String },
    #[error("{path}: group `{group}`: {problem}")]
    Group { path: String, group: String, problem: String },
    #[error("{path}: {source}")]
    Check { path: String, source: CheckError },
}
