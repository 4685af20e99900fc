//! Errors in workload files of other tools.
//!
//! Layer: workload. An error names the file, and the node, byte or rank count where that is known.

use hyperfold_network::topology::FileError;

/// An error in a workload file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path}: {problem}")]
    Path { path: String, problem: String },
    #[error("{path}: byte {at}: {problem}")]
    Encoding { path: String, at: usize, problem: String },
    #[error("{path}: node {node}: {problem}")]
    Node { path: String, node: u64, problem: String },
    #[error("{path}: {problem}")]
    Graph { path: String, problem: String },
    #[error("{path}: the number of ranks, {ranks}: {problem}")]
    Ranks { path: String, ranks: u32, problem: String },
}

impl ImportError {
    pub(super) fn path(path: &str, problem: impl Into<String>) -> ImportError {
        ImportError::Path { path: path.to_string(), problem: problem.into() }
    }

    pub(super) fn graph(path: &str, problem: impl Into<String>) -> ImportError {
        ImportError::Graph { path: path.to_string(), problem: problem.into() }
    }
}
