//! Errors of inference workloads.

use std::path::PathBuf;

use crate::workload::checks::check_error::CheckError;

/// Why requests cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// A trace of requests cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line of a trace is wrong.
    #[error("{} line {line}: {why}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The fault, in words for the user.
        why: String,
    },
    /// A trace has no request.
    #[error("{}: it has no request", path.display())]
    NoRequests {
        /// Path of the file.
        path: PathBuf,
    },
    /// A request would arrive too late.
    #[error(
        "request {request} of {count} would arrive after {at_s:.0} s, and the last has to by {max_s:.0}; raise workload.request_rate, or lower workload.request_count"
    )]
    TooLate {
        /// Number of the request.
        request: usize,
        /// Number of requests.
        count: usize,
        /// Time of its arrival, s.
        at_s: f64,
        /// Latest time of an arrival, s.
        max_s: f64,
    },
    /// The model cannot be served.
    #[error("workload.model = \"{model}\": {why}")]
    Model {
        /// Name of the model.
        model: String,
        /// Reason why it cannot be served.
        why: &'static str,
    },
    /// A request needs more memory than there is.
    #[error(
        "{place} takes memory for {tokens} tokens of {what}, in whole blocks, but {pool} has memory for keys and values of {capacity}; use shorter requests, a larger tp or pp, kv_bytes = 1, or a GPU with more memory"
    )]
    TooLong {
        /// Number of the request.
        request: usize,
        /// The place of the request in its file, in words.
        place: String,
        /// Tokens that it needs memory for.
        tokens: u64,
        /// What these belong to.
        what: &'static str,
        /// Pool that has too little, in words.
        pool: &'static str,
        /// Tokens that an instance of it can hold.
        capacity: u64,
    },
    /// The generated programs break a rule: a defect.
    #[error("generated graph: {0}")]
    Graph(#[from] CheckError),
}
