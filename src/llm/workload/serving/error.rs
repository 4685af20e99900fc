//! Errors of inference workloads.

use std::path::PathBuf;

use crate::workload::checks::check_error::CheckError;

/// Why requests cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} line {line}: {why}", path.display())]
    Line { path: PathBuf, line: u64, why: String },
    #[error("{}: it has no request", path.display())]
    NoRequests { path: PathBuf },
    #[error(
        "request {request} of {count} would arrive after {at_s:.0} s, and the last has to by {max_s:.0}; raise workload.request_rate, or lower workload.request_count"
    )]
    TooLate { request: usize, count: usize, at_s: f64, max_s: f64 },
    #[error("workload.model = \"{model}\": {why}")]
    Model { model: String, why: &'static str },
    #[error(
        "{place} has {tokens} tokens of prompt and answer, but {pool} has memory for keys and values of {capacity}; use shorter requests, a larger tp or pp, kv_bytes = 1, or a GPU with more memory"
    )]
    TooLong { request: usize, place: String, tokens: u64, pool: &'static str, capacity: u64 },
    #[error("generated graph: {0}")]
    Graph(#[from] CheckError),
}
