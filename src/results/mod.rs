//! Result records and the files in a run's folder.
//!
//! Layer: results, above the simulation, below the command line. Holds what is reported of an experiment as plain records
//! ([`ExperimentRecord`] and its companions), and writes them ([`ResultWriter`]) ordered by `exp_id`, whatever order they finish in, so
//! that the bytes depend on the results alone. Simulates nothing, prints nothing.

pub mod dir;
pub mod events;
pub mod manifest;
pub mod parquet_file;
pub mod record;
pub mod rows;
pub mod stats;
pub mod value;
pub mod writer;

use std::path::PathBuf;

use thiserror::Error;

pub use dir::ResultDir;
pub use events::EventLog;
pub use manifest::{InputFile, Manifest, Outcome, Seconds};
pub use record::{ExperimentRecord, Finished, FlowRecord, FoldingRecord, LinkRecord, RttRecord, StatsRecord, Status};
pub use stats::{FctStats, fct_stats, utilisation};
pub use value::{Axis, Cell, Kind, Micro, Ps};
pub use writer::{Outputs, ResultWriter};

/// Why results could not be written.
#[derive(Debug, Error)]
pub enum ResultsError {
    #[error("--out {}: the folder is not empty; name another one or empty it", .0.display())]
    InUse(PathBuf),
    #[error("--out {}: this is a file; name a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("--out {}: the folder cannot be created ({why}); name one in a place you may write to", .path.display())]
    Cannot { path: PathBuf, why: String },
    #[error("cannot write {}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Parquet { path: PathBuf, source: parquet::errors::ParquetError },
    #[error("{}: {source}", .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("experiment {0} is not one of this run's, or was reported twice")]
    Unexpected(u64),
    #[error("experiment {exp_id} has {got} axis values, its sweep has {axes} axes")]
    AxisCount { exp_id: u64, got: usize, axes: usize },
}

impl ResultsError {
    /// Attaches the file to an I/O error.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> ResultsError {
        let path = path.into();
        move |source| ResultsError::Io { path, source }
    }
}
