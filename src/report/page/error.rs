//! Reasons why a report cannot be written.
//!
//! Layer: report. Reads and writes nothing.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use hyperfold_analysis::recommendation::load::LoadError;
use hyperfold_results::read::ReadError;

/// Why a report cannot be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The folder cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The folder has no results, or damaged ones.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A CSV file of the folder is damaged.
    #[error("{}: {source}", .path.display())]
    Csv {
        /// Path of the file.
        path: PathBuf,
        /// The fault, and the line that it is in.
        source: csv::Error,
    },
    /// The page cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// Path of the page.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}
