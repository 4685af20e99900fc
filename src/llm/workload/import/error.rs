//! Errors in workload files of other tools.
//!
//! Layer: workload. An error names the file, and the node, byte or rank count where that is known.

use hyperfold_network::topology::FileError;

/// An error in a workload file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read, or a line of it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A path names no file that can be imported.
    #[error("{path}: {problem}")]
    Path {
        /// Path of the file.
        path: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// A binary file is damaged.
    #[error("{path}: byte {at}: {problem}")]
    Encoding {
        /// Path of the file.
        path: String,
        /// Position of the fault, in bytes from 0.
        at: usize,
        /// The fault, in words for the user.
        problem: String,
    },
    /// A node of a trace is wrong.
    #[error("{path}: node {node}: {problem}")]
    Node {
        /// Path of the file.
        path: String,
        /// Id of the node.
        node: u64,
        /// The fault, in words for the user.
        problem: String,
    },
    /// The file as a whole is wrong.
    #[error("{path}: {problem}")]
    Graph {
        /// Path of the file.
        path: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// The file does not fit the number of ranks.
    #[error("{path}: the number of ranks, {ranks}: {problem}")]
    Ranks {
        /// Path of the file.
        path: String,
        /// Number of ranks.
        ranks: u32,
        /// The fault, in words for the user.
        problem: String,
    },
}

impl ImportError {
    pub(super) fn path(path: &str, problem: impl Into<String>) -> ImportError {
        ImportError::Path { path: path.to_string(), problem: problem.into() }
    }

    pub(super) fn graph(path: &str, problem: impl Into<String>) -> ImportError {
        ImportError::Graph { path: path.to_string(), problem: problem.into() }
    }
}
