//! Errors of a graph written by the user.

use crate::workload::checks::check_error::CheckError;
use hyperfold_network::topology::FileError;

/// The fault of the graph, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no TOML or CSV of the project's form.
    #[error("{path}: {message}")]
    Syntax {
        /// Path of the file.
        path: String,
        /// The fault, in words for the user.
        message: String,
    },
    /// A node is wrong.
    #[error("{path}:{line}: node `{id}`: {problem}")]
    Node {
        /// Path of the file.
        path: String,
        /// Line of the node, from 1.
        line: u64,
        /// Id of the node.
        id: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// A group is wrong.
    #[error("{path}: group `{group}`: {problem}")]
    Group {
        /// Path of the file.
        path: String,
        /// Name of the group.
        group: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// The programs break a rule.
    #[error("{path}: {source}")]
    Check {
        /// Path of the file.
        path: String,
        /// The rule, and where it is broken.
        source: CheckError,
    },
}
