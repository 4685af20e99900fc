//! Result records and the files in a run's folder.
//!
//! Layer: results, above the simulation, below the command line. Holds the results of an experiment as plain records ([`ExperimentRecord`] and its companions),
//! and writes them ([`ResultWriter`]) ordered by `exp_id`, whatever order they finish in, so that the bytes depend only on the results. Simulates nothing,
//! prints nothing.

#![forbid(unsafe_code)]

pub mod approximate;
mod cluster_record;
pub mod dir;
pub mod events;
mod follow;
pub mod job_record;
mod journal;
mod journal_codec;
pub mod journal_identity;
pub mod journal_reader;
mod journal_sync;
pub mod losses;
pub mod manifest;
mod meter;
mod outputs;
pub mod parquet_file;
pub mod read;
pub mod record;
pub mod rows;
mod serving_record;
pub mod stats;
pub mod timeline_file;
pub mod value;
pub mod writer;

use std::path::PathBuf;

use thiserror::Error;

pub use cluster_record::{
    CLUSTER_CONGESTION, CLUSTER_JOBS, CLUSTER_MAP, CLUSTER_TIMELINE, ClusterCongestionRecord, ClusterJobRecord,
    ClusterMapRecord, ClusterRecord, ClusterSampleRecord,
};
pub use dir::ResultDir;
pub use events::EventLog;
pub use follow::{RunFollower, RunState};
pub use job_record::{JobRecord, SharedLinkRecord};
pub use journal_codec::is_journal_entry;
pub use journal_identity::RunIdentity;
pub use journal_reader::{JournalReader, JournaledExperiment};
pub use losses::{cut_off, losses};
pub use manifest::{InputFile, Manifest, NotCompared, Outcome, Seconds};
pub use meter::memory_meter;
pub use outputs::{ClusterColumns, ColumnSets, Outputs};
pub use read::{ColumnInfo, ColumnRole, ReadError, RunResults};
pub use record::{
    ExperimentRecord, Finished, FlowRecord, FoldingRecord, LinkPackets, LinkRecord, LookRecord, RttRecord, StatsRecord,
    Status,
};
pub use serving_record::{REQUESTS, RequestRecord, ServingRecord, TimeStats};
pub use stats::{FctStats, fct_stats, utilisation};
pub use timeline_file::{copy_timeline, write_timeline};
pub use value::{Axis, Cell, ColumnKind, Micro, Ps};
pub use writer::{Recovered, ResultWriter};

/// A reason why results could not be written or read.
#[derive(Debug, Error)]
pub enum ResultsError {
    #[error("--out {}: the folder is not empty; name another one, or carry on with an earlier run by --resume", .0.display())]
    InUse(PathBuf),
    #[error("{}: another hyperfold is writing to this folder; wait until it has ended, or name another one", .0.display())]
    Locked(PathBuf),
    #[error("{}: the folder is not empty and has no journal.bin, so it is no run's to carry on with; name that of a run, or a new one", .0.display())]
    NoJournal(PathBuf),
    #[error("{}: there is no run here (no journal.bin, or one without a whole beginning, as after a kill at the very start); name the folder of a run, or run again into a new one", .0.display())]
    NoRun(PathBuf),
    #[error("{}: this is no journal that can be read: another program's or version's, or all of its beginning is lost; run again into a new folder", .0.display())]
    ForeignJournal(PathBuf),
    #[error(
        "{}: its last {} MiB are damaged, more than a run cuts off; `hyperfold recover` saves the rest in another folder",
        .path.display(),
        .bytes >> 20
    )]
    DamagedFar { path: PathBuf, bytes: u64 },
    #[error("{}: the folder holds another run ({}); run it as it was, or name another folder", .path.display(), .differences.join("; "))]
    OtherRun { path: PathBuf, differences: Vec<String> },
    #[error(
        "{}: the search does not choose experiment {exp_id} any more, which an earlier run of it has finished: limits.wall_s ended other candidates then; \
         start over in a new folder, without limits.wall_s",
        .path.display()
    )]
    OtherChoice { path: PathBuf, exp_id: u64 },
    #[error("{}: this is no regular file; remove it, or name another folder", .0.display())]
    NotRegular(PathBuf),
    #[error("{}: it was changed by somebody else while it was in use", .0.display())]
    Changed(PathBuf),
    #[error("cannot read {}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("--out {}: this is a file; name a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("--out {}: the folder cannot be created or written to ({why}); name one in a place you may write to", .path.display())]
    Cannot { path: PathBuf, why: String },
    #[error("{}: the folder was removed or replaced while the run wrote to it; what it held is not there any more: run again, into a folder that stays", .0.display())]
    FolderLost(PathBuf),
    #[error("cannot write {}{}", .path.display(), remedy(.source))]
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

/// Returns advice about a disk error, if there is any.
fn remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    // Linux's numbers of "no locks available" and "input/output error", which the standard library does not name.
    const ENOLCK: i32 = 37;
    const EIO: i32 = 5;
    match (error.kind(), error.raw_os_error()) {
        (StorageFull, _) => " (the file system is full: free some space there, or name a folder elsewhere)",
        (QuotaExceeded, _) => " (your quota there is used up: free some space, or name a folder elsewhere)",
        (FileTooLarge, _) => {
            " (larger than files may be here: raise `ulimit -f`, or leave output.flows, output.links and output.rtt out)"
        }
        (ReadOnlyFilesystem, _) => " (the file system is read-only: name a folder elsewhere)",
        (_, Some(ENOLCK)) => {
            " (the file system gives no locks, as NFS without its lock service: name a folder on another one)"
        }
        (_, Some(EIO)) => " (the disk reports an error: look into the system's log, and name a folder on another disk)",
        _ => "",
    }
}

impl ResultsError {
    /// Attaches the file to an I/O error of writing.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> ResultsError {
        let path = path.into();
        move |source| ResultsError::Io { path, source }
    }

    /// Attaches the file to an I/O error of reading.
    pub(crate) fn unreadable(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> ResultsError {
        let path = path.into();
        move |source| ResultsError::Unreadable { path, source }
    }

    /// Whether the user's arguments are at fault, rather than the disk.
    pub fn is_usage(&self) -> bool {
        use ResultsError::{
            Cannot, DamagedFar, ForeignJournal, InUse, Locked, NoJournal, NoRun, NotAFolder, NotRegular, OtherChoice,
            OtherRun, Unreadable,
        };
        matches!(
            self,
            InUse(_)
                | NotAFolder(_)
                | Cannot { .. }
                | Locked(_)
                | NoJournal(_)
                | NoRun(_)
                | ForeignJournal(_)
                | DamagedFar { .. }
                | OtherRun { .. }
                | OtherChoice { .. }
                | NotRegular(_)
                | Unreadable { .. }
        )
    }
}
