//! The folder of a run: journal, files, manifest and log, from the start of the run to its end.
//!
//! Layer: session. Handles the events of a run in their order. Prints nothing.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use hyperfold_base::input;
use hyperfold_config::sweep::Selection;
use hyperfold_results::{
    EventLog, ExperimentRecord, Manifest, Outcome, Recovered, ResultDir, ResultWriter, ResultsError, Seconds, Status,
    write_timeline,
};

use crate::error::SessionError;
use crate::folders::identity::{claim, identity};
use crate::planning::planned::Planned;
use crate::running::update::{EngineUsed, Known, Update};
use crate::settings::RunSettings;

/// A folder that is claimed for a run that has not begun.
pub struct ClaimedFolder {
    writer: ResultWriter,
    /// The files that an earlier run has left in the folder.
    pub recovered: Recovered,
    /// Results of that run, from which this one goes on.
    pub known: Known,
}

impl ClaimedFolder {
    /// Claims a new folder, or with `resume` that of an earlier run of the same sweep.
    ///
    /// # Errors
    /// The folder is in use, belongs to another run, or cannot be written.
    pub fn open(
        path: &Path,
        resume: bool,
        planned: &Planned,
        selection: &Selection,
    ) -> Result<ClaimedFolder, SessionError> {
        let dir = claim(path, resume)?;
        let run = identity(planned, selection);
        let (mut writer, recovered) =
            ResultWriter::open(dir, &run, planned.selected.clone()).map_err(SessionError::Results)?;
        let known = Known {
            looks: writer.take_looks(),
            stats: writer.take_earlier(),
            records: writer.records().cloned().collect(),
        };
        Ok(ClaimedFolder { writer, recovered, known })
    }

    /// The folder.
    pub fn dir(&self) -> &ResultDir {
        self.writer.dir()
    }

    /// Begins the run: writes manifest and log. `expanding`: seconds that planning took.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn start(
        self,
        planned: &Planned,
        used: &EngineUsed,
        settings: &RunSettings,
        expanding: f64,
    ) -> Result<(RunFolder, Known), SessionError> {
        let mut folder = RunFolder::start(self.writer, planned, used, settings, expanding)?;
        if let Some(damage) = &self.recovered.damage {
            folder.log.log("journal_cut", [("why", json!(damage))]).map_err(SessionError::Writing)?;
        }
        Ok((folder, self.known))
    }
}

/// The files of a run in progress.
pub struct RunFolder {
    writer: ResultWriter,
    log: EventLog,
    /// Content of `defects.txt`.
    defects: String,
    manifest: Manifest,
    /// Seconds spent writing so far.
    writing: f64,
    compiling: f64,
    /// Number of experiments that get a row; for a search an upper bound until it has chosen.
    expected: usize,
}

/// The result of a run whose files are complete.
pub struct Written {
    /// Records of all experiments that have one, by `exp_id`.
    pub records: Vec<ExperimentRecord>,
    /// Number of them that are `failed`.
    pub failed: u64,
    /// Number of experiments that get a row.
    pub expected: usize,
}

impl RunFolder {
    fn start(
        writer: ResultWriter,
        planned: &Planned,
        used: &EngineUsed,
        settings: &RunSettings,
        expanding: f64,
    ) -> Result<RunFolder, SessionError> {
        let dir = writer.dir();
        let earlier = earlier_seconds(dir.path());
        let known = writer.records().count() as u64;
        let manifest = Manifest {
            version: env!("CARGO_PKG_VERSION").into(),
            command_line: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
            outcome: Outcome::Running,
            name: planned.name.clone(),
            sweep: planned.resolved.clone(),
            sweep_path: planned.sweep_path.clone(),
            axes: planned.axes.clone(),
            replicas: planned.replicas,
            inputs: planned.inputs.clone(),
            experiments: planned.experiments,
            selected: planned.selected.len() as u64,
            ok: 0,
            oom: 0,
            failed: 0,
            from_journal: known,
            engine: used.engine.into(),
            engine_reason: used.reason.clone(),
            adapters: used.adapters.clone(),
            jobs: settings.threads as u64,
            seconds: Seconds { expanding: earlier.expanding + expanding, ..earlier },
            warnings: planned.warnings.clone(),
            not_compared: planned.not_compared.clone(),
        };
        let mut log = EventLog::create(dir).map_err(SessionError::Results)?;
        manifest.write(dir).map_err(SessionError::Results)?;
        let (name, selected) = (json!(planned.name), json!(planned.selected.len()));
        log.log(
            "run_started",
            [("name", name), ("selected", selected), ("known", json!(known)), ("engine", json!(used.engine))],
        )
        .map_err(SessionError::Writing)?;
        log_warnings(&mut log, &planned.warnings).map_err(SessionError::Results)?;
        Ok(RunFolder {
            writer,
            log,
            defects: String::new(),
            manifest,
            writing: 0.0,
            compiling: 0.0,
            expected: planned.rows() as usize,
        })
    }

    /// Returns how many experiments are safe in the journal.
    pub fn saved(&self) -> u64 {
        self.writer.records().count() as u64
    }

    /// Writes an update of the run.
    ///
    /// # Errors
    /// A file cannot be written, or a search chooses other experiments than before.
    pub fn take(&mut self, update: Update) -> Result<(), SessionError> {
        let start = Instant::now();
        match update {
            Update::Chosen { ids, csv } => self.choose(ids, &csv).map_err(SessionError::Results)?,
            other => self.write(other).map_err(SessionError::Writing)?,
        }
        self.writing += start.elapsed().as_secs_f64();
        Ok(())
    }

    fn choose(&mut self, ids: Vec<u64>, csv: &[u8]) -> Result<(), ResultsError> {
        self.expected = ids.len();
        self.log.log("chosen", [("experiments", json!(ids.len()))])?;
        self.writer.only(ids)?;
        self.writer.write_beside("optimize.csv", csv)
    }

    fn write(&mut self, update: Update) -> Result<(), ResultsError> {
        match update {
            Update::Compiled { seconds } => {
                self.manifest.seconds.compiling += seconds;
                self.compiling += seconds;
                self.log.log("compiled", [("seconds", json!(seconds))])
            }
            // For programs that follow the run from its folder.
            Update::Started { exp_id } => self.log.log("started", [("exp_id", json!(exp_id))]),
            Update::Progress { done, total } => {
                self.log.log("progress", [("done", json!(done)), ("total", json!(total))])
            }
            Update::Looked(look) => self.writer.look(&look),
            Update::Chosen { ids, csv } => self.choose(ids, &csv),
            Update::Message(text) => self.log.log("message", [("text", json!(text))]),
            Update::Defect { exp_id, report } => {
                self.defects.push_str(&report);
                self.log.log("defect", [("exp_id", json!(exp_id))])?;
                self.writer.write_beside("defects.txt", self.defects.as_bytes())
            }
            Update::Traced { exp_id, bytes } => write_timeline(self.writer.dir().path(), exp_id, &bytes).map(drop),
            Update::Finished(finished) => {
                let (exp_id, status) = (finished.record.exp_id, finished.record.status.as_str());
                let wall = finished.stats.wall_s;
                self.writer.add(*finished)?;
                self.log
                    .log("finished", [("exp_id", json!(exp_id)), ("status", json!(status)), ("wall_s", json!(wall))])
            }
        }
    }

    /// Completes the files. `wall`: seconds that the simulation took.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn close(mut self, outcome: Outcome, late_warnings: Vec<String>, wall: f64) -> Result<Written, SessionError> {
        let start = Instant::now();
        let (dir, records) = self.writer.finish().map_err(SessionError::Writing)?;
        let count = |status| records.iter().filter(|r| r.status == status).count() as u64;
        let m = &mut self.manifest;
        (m.ok, m.oom, m.failed, m.outcome) = (count(Status::Ok), count(Status::Oom), count(Status::Failed), outcome);
        log_warnings(&mut self.log, &late_warnings).map_err(SessionError::Writing)?;
        m.warnings.extend(late_warnings);
        m.seconds.simulating += (wall - self.writing - self.compiling).max(0.0);
        m.seconds.writing += self.writing + start.elapsed().as_secs_f64();
        m.write(&dir).map_err(SessionError::Writing)?;
        let fields =
            [("ok", json!(m.ok)), ("oom", json!(m.oom)), ("failed", json!(m.failed)), ("outcome", json!(m.outcome))];
        self.log.log("run_ended", fields).map_err(SessionError::Writing)?;
        dir.is_still_there().map_err(SessionError::Writing)?;
        Ok(Written { records, failed: self.manifest.failed, expected: self.expected })
    }
}

/// Returns the seconds that earlier sessions of the run have recorded.
fn earlier_seconds(path: &Path) -> Seconds {
    let manifest = input::read_anywhere(&path.join("manifest.json"), input::max_table_bytes())
        .ok()
        .and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
    // A manifest is for people. If it cannot be read, only the sum is lost, not the run.
    manifest.map_or_else(Seconds::default, |m| m.seconds)
}

fn log_warnings(log: &mut EventLog, warnings: &[String]) -> Result<(), ResultsError> {
    warnings.iter().try_for_each(|text| log.log("warning", [("text", json!(text))]))
}
