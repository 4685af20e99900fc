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
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: {source}", .path.display())]
    Csv { path: PathBuf, source: csv::Error },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}
