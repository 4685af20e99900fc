//! Reasons why a folder of results cannot be read.
//!
//! Layer: results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use hyperfold_base::budget::OverBudget;

/// A reason why a folder's results could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("{}: no such folder", .0.display())]
    Absent(PathBuf),
    #[error("{}: not a folder of results: it has no {missing}; name what `hyperfold run --out` wrote", .path.display())]
    NotResults { path: PathBuf, missing: &'static str },
    #[error("cannot read {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not a manifest of this version ({source}); `hyperfold recover` makes another folder of the journal", .path.display())]
    Manifest { path: PathBuf, source: serde_json::Error },
    #[error("{}: {source}", .path.display())]
    Parquet { path: PathBuf, source: parquet::errors::ParquetError },
    #[error("{}: {source}", .path.display())]
    Csv { path: PathBuf, source: csv::Error },
    #[error("{}, line {line}: {column} is `{value}`; it must be {want}", .path.display())]
    Value { path: PathBuf, line: u64, column: String, value: String, want: &'static str },
    #[error("{}: {why}", .path.display())]
    Table { path: PathBuf, why: String },
    #[error(
        "{}: more of it than fits into {} MiB of memory (half of what may be used); use a machine with more, or fewer experiments a folder",
        .path.display(),
        .allowance >> 20
    )]
    Memory { path: PathBuf, allowance: u64 },
}

impl ReadError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> ReadError {
        let path = path.to_path_buf();
        move |source| ReadError::Io { path, source }
    }

    pub(super) fn memory(path: &Path) -> impl FnOnce(OverBudget) -> ReadError {
        let path = path.to_path_buf();
        move |excess| ReadError::Memory { path, allowance: excess.allowance }
    }
}
