//! Reasons why a folder of results cannot be read.
//!
//! Layer: results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use hyperfold_base::budget::OverBudget;

/// A reason why a folder's results could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such folder.
    #[error("{}: no such folder", .0.display())]
    Absent(PathBuf),
    /// The folder has no results.
    #[error("{}: not a folder of results: it has no {missing}; name what `hyperfold run --out` wrote", .path.display())]
    NotResults {
        /// Path of the folder.
        path: PathBuf,
        /// File that it lacks.
        missing: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The manifest is of another version, or damaged.
    #[error("{}: not a manifest of this version ({source}); `hyperfold recover` makes another folder of the journal", .path.display())]
    Manifest {
        /// Path of the file.
        path: PathBuf,
        /// The fault, and its place.
        source: serde_json::Error,
    },
    /// A Parquet file is damaged.
    #[error("{}: {source}", .path.display())]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Error of the `parquet` crate.
        source: parquet::errors::ParquetError,
    },
    /// A CSV file is damaged.
    #[error("{}: {source}", .path.display())]
    Csv {
        /// Path of the file.
        path: PathBuf,
        /// The fault, and the line that it is in.
        source: csv::Error,
    },
    /// A cell of a CSV file has a wrong value.
    #[error("{}, line {line}: {column} is `{value}`; it must be {want}", .path.display())]
    Value {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Heading of the column.
        column: String,
        /// Text that stands in the cell.
        value: String,
        /// A description of values that would be right.
        want: &'static str,
    },
    /// A table lacks columns or rows.
    #[error("{}: {why}", .path.display())]
    Table {
        /// Path of the file.
        path: PathBuf,
        /// The fault, in words for the user.
        why: String,
    },
    /// A table needs more memory than may be used.
    #[error(
        "{}: more of it than fits into {} MiB of memory (half of what may be used); use a machine with more, or fewer experiments a folder",
        .path.display(),
        .allowance >> 20
    )]
    Memory {
        /// Path of the file.
        path: PathBuf,
        /// Bytes that it may take.
        allowance: u64,
    },
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
