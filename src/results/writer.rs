//! Writes results as experiments finish, in whatever order, into files ordered by `exp_id`.
//!
//! Layer: results. The files grow in the order of `exp_id`: an experiment whose predecessors are all written is appended at once, any
//! other waits in `pending.part` on disk until its turn. So a killed run has lost only what was still running, and memory holds
//! one record an experiment but never its flows. Decides no order of execution.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::record::{ExperimentRecord, Finished, Status};
use super::value::Axis;
use super::{ResultDir, ResultsError, parquet_file, rows};

/// Which of the optional files a sweep asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    pub flows: bool,
    pub links: bool,
    pub rtt: bool,
}

/// The files an experiment has a part of, in the order of [`Parts`].
const FILES: usize = 6;

/// One experiment's text for each file: results, stats, flows, links, rtt, failed.
type Parts = [Vec<u8>; FILES];

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

/// Where an experiment that came early lies in `pending.part`.
struct Spilled {
    at: u64,
    lengths: [u64; FILES],
}

/// Takes finished experiments in any order.
pub struct ResultWriter {
    dir: ResultDir,
    axes: Vec<Axis>,
    /// Ids of this run, ascending.
    ids: Vec<u64>,
    /// How many of `ids` are in the files.
    written: usize,
    /// `None` for a file that this sweep does not ask for; `failed.csv` appears with the first failure.
    files: [Option<Growing>; FILES],
    pending: Growing,
    pending_len: u64,
    spilled: BTreeMap<u64, Spilled>,
    records: BTreeMap<u64, ExperimentRecord>,
    outputs: Outputs,
}

impl ResultWriter {
    /// Creates the files with their headers. `ids` are the `exp_id`s of this run, ascending.
    ///
    /// # Errors
    /// The folder is in use or cannot be written.
    pub fn create(dir: ResultDir, axes: Vec<Axis>, ids: Vec<u64>, outputs: Outputs) -> Result<ResultWriter, ResultsError> {
        let open = |name: &str, wanted: bool, header: Vec<u8>| -> Result<Option<Growing>, ResultsError> {
            if !wanted {
                return Ok(None);
            }
            let (path, file) = dir.new_file(name)?;
            let mut growing = Growing { path, file };
            growing.append(&header)?;
            Ok(Some(growing))
        };
        let files = [
            open("results.csv", true, rows::header(rows::results_header(&axes)))?,
            open("stats.csv", true, rows::header(rows::STATS.iter().copied()))?,
            open("flows.csv", outputs.flows, rows::header(rows::FLOWS.iter().copied()))?,
            open("links.csv", outputs.links, rows::header(rows::LINKS.iter().copied()))?,
            open("rtt.csv", outputs.rtt, rows::header(rows::RTT.iter().copied()))?,
            None,
        ];
        let (path, file) = dir.new_file("pending.part")?;
        Ok(ResultWriter {
            dir,
            axes,
            ids,
            written: 0,
            files,
            pending: Growing { path, file },
            pending_len: 0,
            spilled: BTreeMap::new(),
            records: BTreeMap::new(),
            outputs,
        })
    }

    /// The run's folder.
    pub fn dir(&self) -> &ResultDir {
        &self.dir
    }

    /// From now on these experiments are all there will be. PRECONDITION: some of those announced, ascending, and none has finished yet.
    pub fn only(&mut self, ids: Vec<u64>) {
        self.ids = ids;
    }

    /// A file of its own beside the results, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_beside(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        self.dir.replace(name, bytes)
    }

    /// Records so far, by `exp_id`.
    pub fn records(&self) -> impl Iterator<Item = &ExperimentRecord> {
        self.records.values()
    }

    /// Experiments so far that ended like this.
    pub fn count(&self, status: Status) -> u64 {
        self.records.values().filter(|r| r.status == status).count() as u64
    }

    /// Writes one finished experiment; when this returns it is in the operating system's hands.
    ///
    /// # Errors
    /// The experiment is not one of this run's or came twice, its axis values do not fit, or a file cannot be written.
    pub fn add(&mut self, finished: Finished) -> Result<(), ResultsError> {
        let exp_id = finished.record.exp_id;
        if self.ids.binary_search(&exp_id).is_err() || self.records.contains_key(&exp_id) {
            return Err(ResultsError::Unexpected(exp_id));
        }
        let (got, axes) = (finished.record.axis_values.len(), self.axes.len());
        if got != axes {
            return Err(ResultsError::AxisCount { exp_id, got, axes });
        }
        let parts = self.render(&finished);
        if self.ids.get(self.written) == Some(&exp_id) {
            self.append(&parts)?;
            self.written += 1;
            self.drain()?;
        } else {
            self.spill(exp_id, &parts)?;
        }
        self.records.insert(exp_id, finished.record);
        Ok(())
    }

    /// Writes what still waits for an experiment that never came, then `results.parquet`; the records, by `exp_id`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<(ResultDir, Vec<ExperimentRecord>), ResultsError> {
        while let Some((_, spilled)) = self.spilled.pop_first() {
            let parts = self.read_back(&spilled)?;
            self.append(&parts)?;
        }
        fs::remove_file(&self.pending.path).map_err(ResultsError::io(&self.pending.path))?;
        let records: Vec<ExperimentRecord> = self.records.into_values().collect();
        let path = self.dir.path().join("results.parquet");
        let mut bytes = Vec::new();
        parquet_file::write(&mut bytes, &self.axes, &records).map_err(|source| ResultsError::Parquet { path, source })?;
        self.dir.replace("results.parquet", &bytes)?;
        Ok((self.dir, records))
    }

    fn render(&self, finished: &Finished) -> Parts {
        let one = |row: Vec<super::Cell>| {
            let mut text = rows::Rows::default();
            text.push(row);
            text.into_bytes()
        };
        let when = |wanted: bool, text: fn(&Finished) -> Vec<u8>| if wanted { text(finished) } else { Vec::new() };
        let failed = finished.record.status == Status::Failed;
        [
            one(rows::results_row(&finished.record)),
            rows::stats_text(finished),
            when(self.outputs.flows, rows::flows_text),
            when(self.outputs.links, rows::links_text),
            when(self.outputs.rtt, rows::rtt_text),
            if failed { one(rows::failed_row(&finished.record)) } else { Vec::new() },
        ]
    }

    fn append(&mut self, parts: &Parts) -> Result<(), ResultsError> {
        if !parts[FILES - 1].is_empty() && self.files[FILES - 1].is_none() {
            let (path, file) = self.dir.new_file("failed.csv")?;
            let mut growing = Growing { path, file };
            growing.append(&rows::header(rows::failed_header(&self.axes)))?;
            self.files[FILES - 1] = Some(growing);
        }
        for (file, part) in self.files.iter_mut().zip(parts) {
            if let Some(file) = file {
                file.append(part)?;
            }
        }
        Ok(())
    }

    /// Appends those that waited and whose turn it is now.
    fn drain(&mut self) -> Result<(), ResultsError> {
        while let Some(spilled) = self.ids.get(self.written).copied().and_then(|id| self.spilled.remove(&id)) {
            let parts = self.read_back(&spilled)?;
            self.append(&parts)?;
            self.written += 1;
        }
        if self.spilled.is_empty() && self.pending_len > 0 {
            // Nothing waits any more: the file starts over, so it never holds more than what is out of order.
            self.pending.file.set_len(0).map_err(ResultsError::io(&self.pending.path))?;
            self.pending_len = 0;
        }
        Ok(())
    }

    /// One line with the id and the parts' lengths, then the parts.
    fn spill(&mut self, exp_id: u64, parts: &Parts) -> Result<(), ResultsError> {
        let lengths = parts.each_ref().map(|p| p.len() as u64);
        let mut entry = format!("{exp_id} {}\n", lengths.map(|l| l.to_string()).join(" ")).into_bytes();
        let at = self.pending_len + entry.len() as u64;
        parts.iter().for_each(|part| entry.extend_from_slice(part));
        self.pending.append(&entry)?;
        self.pending_len += entry.len() as u64;
        self.spilled.insert(exp_id, Spilled { at, lengths });
        Ok(())
    }

    fn read_back(&mut self, spilled: &Spilled) -> Result<Parts, ResultsError> {
        let file = &mut self.pending.file;
        let mut parts = Parts::default();
        file.seek(SeekFrom::Start(spilled.at)).map_err(ResultsError::io(&self.pending.path))?;
        for (part, length) in parts.iter_mut().zip(spilled.lengths) {
            part.resize(length as usize, 0);
            file.read_exact(part).map_err(ResultsError::io(&self.pending.path))?;
        }
        Ok(parts)
    }
}
