//! The journal of a folder that is only read: a part to merge.
//!
//! Layer: results. Holds where every experiment lies, and reads one when asked. Joins nothing; that is the command line's.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::ResultsError;
use super::dir::{JOURNAL, lock, regular};
use super::journal::{JournalPiece, JournalSpan, read_at, scan};
use super::journal_identity::RunIdentity;
use super::meter::memory_meter;
use super::outputs::ColumnSets;
use super::record::{ExperimentRecord, Finished};
use super::value::Axis;
use crate::budget::OverBudget;
use crate::input;

/// Axes, columns of clusters, and experiments by `exp_id`.
type FinishedSoFar = (Vec<Axis>, ColumnSets, BTreeMap<u64, ExperimentRecord>);

/// The axes of a folder's sweep, its columns of clusters, and the experiments that have finished so far, by `exp_id`; also while a run goes on there. `None`: its journal says nothing, because
/// there is none, or another version's.
///
/// # Errors
/// They have no room in memory.
pub(super) fn finished(folder: &Path) -> Result<Option<FinishedSoFar>, OverBudget> {
    let path = folder.join(JOURNAL);
    if regular(&path).ok().flatten().is_none() {
        return Ok(None);
    }
    let Ok(file) = input::open_anywhere(&path) else { return Ok(None) };
    let (mut run, mut records) = (None, BTreeMap::new());
    let (meter, mut over) = (memory_meter(), None);
    let looked = scan(&path, &file, &mut |found| {
        if let Err(much) = meter.check("records of a journal", 0) {
            over = Some(much);
            return Err(ResultsError::ForeignJournal(path.clone()));
        }
        match found {
            JournalPiece::Run(of) if !is_of_this_version(&of) => {
                return Err(ResultsError::ForeignJournal(path.clone()));
            }
            JournalPiece::Run(of) => run = Some((of.axes, of.outputs.columns())),
            // An experiment that was run again counts as it ended last.
            JournalPiece::Experiment(_, finished) => drop(records.insert(finished.record.exp_id, finished.record)),
            JournalPiece::Look(_) => {}
        }
        Ok(())
    });
    if let Some(over) = over {
        return Err(over);
    }
    Ok(run.filter(|_| looked.is_ok()).map(|(axes, sets)| (axes, sets, records)))
}

/// What other versions wrote may mean other things: their experiments are not read.
fn is_of_this_version(run: &RunIdentity) -> bool {
    RunIdentity::default().of_this_version(run.semantics).same_layout(run)
}

/// An experiment of a part, without its flows.
#[derive(Clone, Copy, Debug)]
pub struct JournaledExperiment {
    span: JournalSpan,
    /// It ended because of the time on the clock, so another part's ending counts more.
    pub reached_machine_limit: bool,
}

/// A folder's journal. While it lives, no run can take the folder.
pub struct JournalReader {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    run: RunIdentity,
    parts: BTreeMap<u64, JournaledExperiment>,
    damage: Option<String>,
}

impl JournalReader {
    /// Opens the journal of `folder` and looks through it.
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
                JournalPiece::Run(of) if !is_of_this_version(&of) => {
                    return Err(ResultsError::ForeignJournal(path.clone()));
                }
                JournalPiece::Run(of) => run = Some(of),
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
        Ok(JournalReader { folder: folder.into(), path, file, run, parts, damage: scan.damage })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whose it is.
    pub fn run(&self) -> &RunIdentity {
        &self.run
    }

    /// In words, what of it cannot be read.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The experiments it holds, by `exp_id`.
    pub fn parts(&self) -> &BTreeMap<u64, JournaledExperiment> {
        &self.parts
    }

    /// An experiment with all that belongs to it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, part: JournaledExperiment) -> Result<Finished, ResultsError> {
        read_at(&self.path, &self.file, part.span)
    }
}
