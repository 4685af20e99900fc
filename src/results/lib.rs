//! Result records, and the files in a run's folder.
//!
//! | part | content |
//! |---|---|
//! | [`record`], `job_record`, `cluster_record`, `serving_record`, `series_record` | the results of an experiment as plain records, and their columns |
//! | [`csv_rows`], [`stats`], [`value`] | rows of the smaller files |
//! | `journal`, `journal_reader`, [`journal_identity`] | the file that a run must not lose; every other one is made of it |
//! | [`writer`], [`parquet_file`], [`manifest`], [`events`] | the files that people read, ordered by `exp_id` whatever order experiments end in |
//! | [`read`] | a folder read back |
//! | [`dir`], `follow` | the folder of a run, claimed once; a run followed by its folder |
//! | [`mod@losses`], [`approximate`] | warnings: what a journal has lost, and how far skipped phases may be off |
//!
//! The bytes of results depend on the results only. This crate simulates nothing and prints nothing.
//! Start with [`record`].

#![forbid(unsafe_code)]

pub mod approximate;
mod bytes;
mod cluster_record;
pub mod csv_rows;
pub mod dir;
pub mod events;
mod follow;
mod job_record;
mod journal;
mod journal_codec;
pub mod journal_identity;
pub mod journal_reader;
mod journal_sync;
pub mod losses;
pub mod manifest;
mod meter;
mod network_record;
mod outputs;
pub mod parquet_file;
pub mod read;
pub mod record;
mod record_macro;
mod series_record;
mod serving_record;
pub mod stats;
mod stats_record;
pub mod timeline_file;
pub mod value;
pub mod writer;

use std::path::PathBuf;

use thiserror::Error;

pub use cluster_record::{ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterSampleRecord};
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
pub use network_record::{
    FlowMeasures, FlowRecord, LinkEnds, LinkPackets, LinkPauses, LinkRecord, MeanRttRecord, RttRecord,
};
pub use outputs::{ClusterColumns, ColumnSets, Outputs};
pub use read::{ColumnInfo, ColumnRole, ReadError, RunColumns};
pub use record::{ClusterRecord, ExperimentRecord, Finished, LookRecord, ServingRecord, Status};
pub use record_macro::{ColumnLine, FileColumn};
pub use series_record::{FlowSampleRecord, LinkSampleRecord};
pub use serving_record::{RequestRecord, TimeStats};
pub use stats::{FctStats, fct_stats, utilisation};
pub use stats_record::{FoldingRecord, StatsRecord};
pub use timeline_file::{copy_timeline, write_timeline};
pub use value::{Axis, Cell, ColumnKind, Micro, Ms, Ps};
pub use writer::{Recovered, ResultWriter};

/// A reason why results could not be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The folder of a new run is not empty.
    #[error("--out {}: the folder is not empty; name another one, or carry on with an earlier run by --resume", .0.display())]
    InUse(PathBuf),
    /// Another process writes to the folder.
    #[error("{}: another hyperfold is writing to this folder; wait until it has ended, or name another one", .0.display())]
    Locked(PathBuf),
    /// The folder of a resumed run is not empty and has no journal.
    #[error("{}: the folder is not empty and has no journal.bin, so it is no run's to carry on with; name that of a run, or a new one", .0.display())]
    NoJournal(PathBuf),
    /// The folder has no run.
    #[error("{}: there is no run here (no journal.bin, or one without a whole beginning, as after a kill at the very start); name the folder of a run, or run again into a new one", .0.display())]
    NoRun(PathBuf),
    /// The journal is no journal of this version.
    #[error("{}: this is no journal that can be read: another program's or version's, or all of its beginning is lost; run again into a new folder", .0.display())]
    ForeignJournal(PathBuf),
    /// The end of the journal is damaged.
    #[error(
        "{}: its last {} MiB are damaged, more than a run cuts off; `hyperfold recover` saves the rest in another folder",
        .path.display(),
        .bytes >> 20
    )]
    DamagedFar {
        /// Path of the folder.
        path: PathBuf,
        /// Bytes that are damaged.
        bytes: u64,
    },
    /// The folder has a run of another sweep.
    #[error("{}: the folder holds another run ({}); run it as it was, or name another folder", .path.display(), .differences.join("; "))]
    OtherRun {
        /// Path of the folder.
        path: PathBuf,
        /// A description of the difference.
        differences: Vec<String>,
    },
    /// A search that is carried on chooses otherwise than before.
    #[error(
        "{}: the search does not choose experiment {exp_id} any more, which an earlier run of it has finished: limits.wall_s ended other candidates then; \
         start over in a new folder, without limits.wall_s",
        .path.display()
    )]
    OtherChoice {
        /// Path of the folder.
        path: PathBuf,
        /// Experiment that is finished and not chosen any more.
        exp_id: u64,
    },
    /// A file of the folder is no regular file.
    #[error("{}: this is no regular file; remove it, or name another folder", .0.display())]
    NotRegular(PathBuf),
    /// A file of the folder was changed while the run wrote to it.
    #[error("{}: it was changed by somebody else while it was in use", .0.display())]
    Changed(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The name is that of a file.
    #[error("--out {}: this is a file; name a folder", .0.display())]
    NotAFolder(PathBuf),
    /// The folder cannot be created or written to.
    #[error("--out {}: the folder cannot be created or written to ({why}); name one in a place you may write to", .path.display())]
    Cannot {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the operating system, in words.
        why: String,
    },
    /// The folder was removed or replaced while the run wrote to it.
    #[error("{}: the folder was removed or replaced while the run wrote to it; what it held is not there any more: run again, into a folder that stays", .0.display())]
    FolderLost(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}{}", .path.display(), remedy(.source))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A Parquet file cannot be written.
    #[error("{}: {source}", .path.display())]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Error of the `parquet` crate.
        source: parquet::errors::ParquetError,
    },
    /// A JSON file cannot be written or read.
    #[error("{}: {source}", .path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Error of the `serde_json` crate.
        source: serde_json::Error,
    },
    /// An experiment was reported that is not of the run, or twice.
    #[error("experiment {0} is not one of this run's, or was reported twice")]
    Unexpected(u64),
    /// An experiment has another number of axis values than the sweep has axes.
    #[error("experiment {exp_id} has {got} axis values, its sweep has {axes} axes")]
    AxisCount {
        /// Number of the experiment.
        exp_id: u64,
        /// Number of its values.
        got: usize,
        /// Number of axes.
        axes: usize,
    },
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
            " (larger than files may be here: raise `ulimit -f`, or leave output.flows, output.links, output.rtt and output.series out)"
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
