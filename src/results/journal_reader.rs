//! The journal of a folder that is only read, for example a part to merge.
//!
//! Layer: results. Knows where every experiment is, and reads one on demand. Joins nothing: the session does.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::ResultsError;
use super::bytes::FieldNames;
use super::dir::{JOURNAL, lock, regular};
use super::journal::{JournalPiece, JournalSpan, read_at, scan};
use super::journal_identity::RunIdentity;
use super::meter::memory_meter;
use super::outputs::ColumnSets;
use super::record::{ExperimentRecord, Finished};
use super::value::Axis;
use hyperfold_base::budget::OverBudget;
use hyperfold_base::input;

/// Axes of a sweep, its optional columns, and finished experiments by `exp_id`.
type FinishedSoFar = (Vec<Axis>, ColumnSets, BTreeMap<u64, ExperimentRecord>);

/// Returns the axes of a folder's sweep, its optional columns, and the experiments that have finished so far, by `exp_id`; also while a run is in progress.
/// `None`: there is no journal, or it has a layout that this build does not read.
///
/// # Errors
/// The records do not fit into memory.
pub(super) fn finished(folder: &Path) -> Result<Option<FinishedSoFar>, OverBudget> {
    let path = folder.join(JOURNAL);
    if regular(&path).ok().flatten().is_none() {
        return Ok(None);
    }
    let Ok(file) = input::open_anywhere(&path) else { return Ok(None) };
    let (mut run, mut records) = (None, BTreeMap::new());
    let (meter, mut over_budget) = (memory_meter(), None);
    let looked = scan(&path, &file, &mut |found| {
        if let Err(much) = meter.check("records of a journal", 0) {
            over_budget = Some(much);
            return Err(ResultsError::ForeignJournal(path.clone()));
        }
        match found {
            JournalPiece::Run(identity) => run = Some((identity.axes, identity.outputs.columns())),
            // If an experiment was run again, its last result counts.
            JournalPiece::Experiment(_, finished) => drop(records.insert(finished.record.exp_id, finished.record)),
            JournalPiece::Look(_) => {}
        }
        Ok(())
    });
    if let Some(over_budget) = over_budget {
        return Err(over_budget);
    }
    Ok(run.filter(|_| looked.is_ok()).map(|(axes, sets)| (axes, sets, records)))
}

/// An experiment in the journal of a part, without its flows.
#[derive(Clone, Copy, Debug)]
pub struct JournaledExperiment {
    span: JournalSpan,
    /// Whether a wall-clock limit ended it; then another part's result takes precedence.
    pub reached_machine_limit: bool,
}

/// A folder's journal. While it is open, no run can claim the folder.
pub struct JournalReader {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    run: RunIdentity,
    parts: BTreeMap<u64, JournaledExperiment>,
    /// Fields that its records lack, because an earlier build wrote them.
    lacking: FieldNames,
    damage: Option<String>,
}

impl JournalReader {
    /// Opens the journal of `folder` and scans it.
    ///
    /// # Errors
    /// There is none, a run is writing to it, or it cannot be read.
    pub fn open(folder: &Path) -> Result<JournalReader, ResultsError> {
        let path = folder.join(JOURNAL);
        if regular(&path)?.is_none() {
            return Err(ResultsError::NoRun(folder.into()));
        }
        let file = input::open_anywhere(&path).map_err(ResultsError::unreadable(&path))?;
        lock(folder, || file.try_lock_shared())?;
        let (mut run, mut parts) = (None, BTreeMap::new());
        let scan = scan(&path, &file, &mut |found| {
            match found {
                JournalPiece::Run(identity) => run = Some(identity.in_this_layout()),
                JournalPiece::Experiment(span, finished) => {
                    let reached_machine_limit = finished.record.machine_limit;
                    parts.insert(finished.record.exp_id, JournaledExperiment { span, reached_machine_limit });
                }
                // A search has no parts.
                JournalPiece::Look(_) => {}
            }
            Ok(())
        })?;
        let run = run.ok_or_else(|| ResultsError::NoRun(folder.into()))?;
        Ok(JournalReader { folder: folder.into(), path, file, run, parts, lacking: scan.lacking, damage: scan.damage })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the identity of the run.
    pub fn run(&self) -> &RunIdentity {
        &self.run
    }

    /// Describes what cannot be read.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Returns the experiments it holds, by `exp_id`.
    pub fn parts(&self) -> &BTreeMap<u64, JournaledExperiment> {
        &self.parts
    }

    /// Reads an experiment with all its rows.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, part: JournaledExperiment) -> Result<Finished, ResultsError> {
        read_at(&self.path, &self.file, part.span, &self.lacking)
    }
}
