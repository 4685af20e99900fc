//! Writes results, as experiments finish in any order, into files ordered by `exp_id`.
//!
//! Layer: results. Every experiment goes into the journal first. The other files are made from it and grow in the order of `exp_id`: an experiment whose
//! predecessors are all written is appended at once, any other waits in the journal until its turn. So a killed run has lost only what was still running, and
//! memory holds one record per experiment but never its flows. Does not decide the order of execution.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::journal::{Journal, JournalPiece, JournalSpan};
use super::journal_identity::RunIdentity;
use super::outputs::Outputs;
use super::record::{ExperimentRecord, Finished, LookRecord, Status};
use super::stats_record::StatsRecord;
use super::value::Axis;
use super::{ResultDir, ResultsError, csv_rows, parquet_file};

/// One experiment's text for each file, in their order: `results.csv`, [`csv_rows::COMPANIONS`], `failed.csv`.
type Parts = Vec<Vec<u8>>;

/// A file that grows.
struct Growing {
    path: PathBuf,
    file: File,
}

impl Growing {
    fn append(&mut self, bytes: &[u8]) -> Result<(), ResultsError> {
        self.file.write_all(bytes).map_err(ResultsError::io(&self.path))
    }
}

/// The results that an earlier run has left in the folder.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Number of experiments that are complete and are not run again.
    pub complete: u64,
    /// Number of experiments that reached a limit of the machine (time, memory), which another run may not reach: they are run again.
    pub again: u64,
    /// Description of the part of the journal that could not be read and was cut off.
    pub damage: Option<String>,
}

/// Writes the results of finished experiments, which come in any order.
pub struct ResultWriter {
    dir: ResultDir,
    axes: Vec<Axis>,
    /// Ids of this run, ascending.
    ids: Vec<u64>,
    /// How many of `ids` are in the files.
    written: usize,
    /// The open files. `None` for a file that this sweep does not ask for; `failed.csv` is created at the first failure.
    files: Vec<Option<Growing>>,
    journal: Journal,
    /// Experiments that wait for their turn, with their positions in the journal.
    waiting: BTreeMap<u64, JournalSpan>,
    records: BTreeMap<u64, ExperimentRecord>,
    outputs: Outputs,
    /// Evaluations of an earlier run's search.
    looks: Vec<LookRecord>,
    /// Statistics of experiments that an earlier run completed, by `exp_id`.
    earlier: BTreeMap<u64, StatsRecord>,
}

impl ResultWriter {
    /// Opens the journal and creates the files, with their headers and the results in the journal of an earlier run. `ids` are the `exp_id`s of this run,
    /// ascending.
    ///
    /// # Errors
    /// The folder is in use, belongs to another run, or cannot be written.
    pub fn open(dir: ResultDir, run: &RunIdentity, ids: Vec<u64>) -> Result<(ResultWriter, Recovered), ResultsError> {
        let (mut waiting, mut records, mut recovered) = (BTreeMap::new(), BTreeMap::new(), Recovered::default());
        let (mut looks, mut earlier) = (Vec::new(), BTreeMap::new());
        let (journal, damage) = Journal::open(&dir, run, &mut |found| {
            match found {
                JournalPiece::Run(_) => {}
                JournalPiece::Experiment(span, finished) => {
                    let record = finished.record;
                    check(&record, &ids, &run.axes)?;
                    // If an experiment was run again, its last result counts.
                    waiting.insert(record.exp_id, span);
                    earlier.insert(record.exp_id, finished.stats);
                    records.insert(record.exp_id, record);
                }
                JournalPiece::Look(look) if ids.binary_search(&look.exp_id).is_err() => {
                    return Err(ResultsError::Unexpected(look.exp_id));
                }
                JournalPiece::Look(look) => looks.push(look),
            }
            Ok(())
        })?;
        recovered.damage = damage;
        recovered.again = records.values().filter(|r| r.machine_limit).count() as u64;
        records.retain(|_, r| !r.machine_limit);
        waiting.retain(|exp_id, _| records.contains_key(exp_id));
        earlier.retain(|exp_id, _| records.contains_key(exp_id));
        recovered.complete = records.len() as u64;

        let open = |name: &str, wanted: bool, header: Vec<u8>| -> Result<Option<Growing>, ResultsError> {
            if !wanted {
                return Ok(None);
            }
            let (path, file) = dir.new_file(name)?;
            let mut growing = Growing { path, file };
            growing.append(&header)?;
            Ok(Some(growing))
        };
        let (axes, outputs) = (run.axes.clone(), run.outputs);
        let mut files =
            vec![open("results.csv", true, csv_rows::header(csv_rows::results_header(&axes, outputs.columns())))?];
        for file in csv_rows::COMPANIONS {
            files.push(open(file.name, (file.is_wanted)(&outputs), file.header(&outputs))?);
        }
        files.push(None);
        // These are created again later; until then, those of an earlier run would not match the other files.
        dir.remove("failed.csv")?;
        dir.remove("results.parquet")?;
        let mut writer =
            ResultWriter { dir, axes, ids, written: 0, files, journal, waiting, records, outputs, looks, earlier };
        writer.drain()?;
        Ok((writer, recovered))
    }

    /// Returns the run's folder.
    pub fn dir(&self) -> &ResultDir {
        &self.dir
    }

    /// Takes out the evaluations of an earlier run's search, which are not needed here.
    pub fn take_looks(&mut self) -> Vec<LookRecord> {
        std::mem::take(&mut self.looks)
    }

    /// Takes out the statistics of experiments that an earlier run completed, by `exp_id`.
    pub fn take_earlier(&mut self) -> BTreeMap<u64, StatsRecord> {
        std::mem::take(&mut self.earlier)
    }

    /// Keeps an evaluation of a search for a resumed run.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn look(&mut self, look: &LookRecord) -> Result<(), ResultsError> {
        self.journal.append_look(look)
    }

    /// Restricts the run to these experiments. PRECONDITION: they are among those announced, ascending.
    ///
    /// # Errors
    /// An experiment that is not among them has finished already, or a file cannot be written.
    pub fn only(&mut self, ids: Vec<u64>) -> Result<(), ResultsError> {
        if let Some(exp_id) = self.records.keys().find(|id| ids.binary_search(id).is_err()) {
            return Err(ResultsError::OtherChoice { path: self.dir.path().into(), exp_id: *exp_id });
        }
        // CORRECTNESS: the files hold the first `written` of the announced experiments. All of them are among `ids`, so they are also the first of `ids`.
        self.ids = ids;
        self.drain()
    }

    /// Writes another file beside the results, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_beside(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        self.dir.replace(name, bytes)
    }

    /// Returns the records so far, by `exp_id`.
    pub fn records(&self) -> impl Iterator<Item = &ExperimentRecord> {
        self.records.values()
    }

    /// Returns how many experiments have this status so far.
    pub fn count(&self, status: Status) -> u64 {
        self.records.values().filter(|r| r.status == status).count() as u64
    }

    /// Writes one finished experiment. When this returns, the operating system has it.
    ///
    /// # Errors
    /// The experiment is not one of this run's or came twice, its axis values do not fit, or a file cannot be written.
    pub fn add(&mut self, finished: Finished) -> Result<(), ResultsError> {
        let exp_id = finished.record.exp_id;
        check(&finished.record, &self.ids, &self.axes)?;
        if self.records.contains_key(&exp_id) {
            return Err(ResultsError::Unexpected(exp_id));
        }
        self.dir.is_still_there()?;
        let span = self.journal.append(&finished)?;
        if self.ids.get(self.written) == Some(&exp_id) {
            self.append(&self.render(&finished))?;
            self.written += 1;
            self.drain()?;
        } else {
            self.waiting.insert(exp_id, span);
        }
        self.records.insert(exp_id, finished.record);
        Ok(())
    }

    /// Writes the experiments that still wait for one that never came, then `results.parquet`. Returns the records, by `exp_id`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<(ResultDir, Vec<ExperimentRecord>), ResultsError> {
        self.dir.is_still_there()?;
        while let Some((_, span)) = self.waiting.pop_first() {
            self.append_from_journal(span)?;
        }
        for growing in self.files.iter().flatten() {
            growing.file.sync_all().map_err(ResultsError::io(&growing.path))?;
        }
        self.journal.close()?;
        let records: Vec<ExperimentRecord> = self.records.into_values().collect();
        let path = self.dir.path().join("results.parquet");
        let mut bytes = Vec::new();
        parquet_file::write(&mut bytes, &self.axes, self.outputs.columns(), &records)
            .map_err(|source| ResultsError::Parquet { path, source })?;
        self.dir.replace("results.parquet", &bytes)?;
        Ok((self.dir, records))
    }

    fn render(&self, finished: &Finished) -> Parts {
        let one = |row: Vec<super::Cell>| {
            let mut text = csv_rows::CollectedRows::default();
            text.push(row);
            text.into_bytes()
        };
        let companion = |file: &csv_rows::Companion| {
            if (file.is_wanted)(&self.outputs) { (file.text)(&self.outputs, finished) } else { Vec::new() }
        };
        let failed = finished.record.status == Status::Failed;
        std::iter::once(one(csv_rows::results_row(&finished.record, self.outputs.columns())))
            .chain(csv_rows::COMPANIONS.iter().map(companion))
            .chain([if failed { one(csv_rows::failed_row(&finished.record)) } else { Vec::new() }])
            .collect()
    }

    fn append(&mut self, parts: &Parts) -> Result<(), ResultsError> {
        let failed = self.files.last_mut().expect("failed.csv is the last file");
        if failed.is_none() && parts.last().is_some_and(|part| !part.is_empty()) {
            let (path, file) = self.dir.new_file("failed.csv")?;
            let mut growing = Growing { path, file };
            growing.append(&csv_rows::header(csv_rows::failed_header(&self.axes)))?;
            *failed = Some(growing);
        }
        for (file, part) in self.files.iter_mut().zip(parts) {
            if let Some(file) = file {
                file.append(part)?;
            }
        }
        Ok(())
    }

    /// Appends the waiting experiments whose turn it is.
    fn drain(&mut self) -> Result<(), ResultsError> {
        while let Some(span) = self.ids.get(self.written).and_then(|id| self.waiting.remove(id)) {
            self.append_from_journal(span)?;
            self.written += 1;
        }
        Ok(())
    }

    fn append_from_journal(&mut self, span: JournalSpan) -> Result<(), ResultsError> {
        let finished = self.journal.read(span)?;
        self.append(&self.render(&finished))
    }
}

/// Checks that a record is one of this run's.
fn check(record: &ExperimentRecord, ids: &[u64], axes: &[Axis]) -> Result<(), ResultsError> {
    let (exp_id, got, axes) = (record.exp_id, record.axis_values.len(), axes.len());
    match ids.binary_search(&exp_id) {
        Err(_) => Err(ResultsError::Unexpected(exp_id)),
        Ok(_) if got != axes => Err(ResultsError::AxisCount { exp_id, got, axes }),
        Ok(_) => Ok(()),
    }
}
