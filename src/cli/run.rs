//! `hyperfold run`.
//!
//! Layer: cli. Order of things: everything that can be refused is refused before the results' folder is created; then experiments are
//! written as they finish; then the table.

use std::time::Instant;

use anyhow::anyhow;
use serde_json::json;

use crate::results::{EventLog, Manifest, Outcome, ResultDir, ResultWriter, ResultsError, Seconds, Status};

use super::args::RunArgs;
use super::exit::{CliError, Exit};
use super::interrupt::Interrupt;
use super::progress::{self, Progress};
use super::simulator::{EngineUsed, Planned, RunSettings, Simulator, SweepRequest, Update};
use super::{say, summary};

/// Runs a sweep.
///
/// # Errors
/// Bad usage or input (nothing is written then), or results that cannot be written.
pub fn execute<S: Simulator>(args: &RunArgs, simulator: &S, interrupt: &Interrupt) -> Result<Exit, CliError> {
    refuse_what_is_not_there(args)?;
    ResultDir::check(&args.out).map_err(CliError::bad_input)?;

    let expanding = Instant::now();
    let (planned, sweep) = simulator.load(&SweepRequest::from(&args.sweep)).map_err(CliError::bad_input)?;
    if planned.selected.is_empty() {
        let error = anyhow!(
            "{}: no experiments to run (the sweep has {}); check constraints, --shard and --limit",
            args.sweep.sweep.display(),
            planned.experiments
        );
        return Err(CliError::bad_input(error));
    }
    let settings = settings(args, interrupt);
    let (used, engine) = simulator.engine(&sweep, &settings).map_err(CliError::bad_input)?;

    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }

    let dir = ResultDir::create(&args.out).map_err(dir_error)?;
    let mut report = Report::open(dir, &planned, &used, &settings, expanding.elapsed().as_secs_f64())?;
    let mut progress = progress::for_terminal(planned.selected.len() as u64, args.quiet);
    greet(progress.as_mut(), &planned, &used, settings.jobs);

    let simulating = Instant::now();
    let ran = simulator.run(sweep, engine, &settings, &mut |update| report.take(update, progress.as_mut()));
    let wall = simulating.elapsed().as_secs_f64();
    progress.close();

    let outcome = match &ran {
        Err(_) => Outcome::Aborted,
        Ok(_) if interrupt.requested() => Outcome::Interrupted,
        Ok(_) => Outcome::Complete,
    };
    let late = ran.as_ref().map_or(Vec::new(), Clone::clone);
    for warning in &late {
        eprintln!("warning: {warning}");
    }
    let warned = !planned.warnings.is_empty() || !late.is_empty();
    let finished = report.close(outcome, late, wall)?;
    ran?;

    if !args.quiet {
        summary::lines(&planned.axes, &finished.records).iter().for_each(|line| say(line));
        say(&format!("results: {}", args.out.display()));
    }
    let missing = planned.selected.len() - finished.records.len();
    if outcome == Outcome::Interrupted && missing > 0 {
        eprintln!("hyperfold: interrupted; {missing} of {} experiments have no result", planned.selected.len());
        return Ok(Exit::Interrupted);
    }
    if missing > 0 {
        return Err(CliError::broken(anyhow!("{missing} experiments ended without a result; this is a bug in hyperfold")));
    }
    Ok(match finished.failed {
        0 if args.strict && warned => {
            eprintln!("hyperfold: --strict: there were warnings");
            Exit::Condition
        }
        0 => Exit::Ok,
        _ => Exit::Failed,
    })
}

/// Options that name what this version does not do are refused before anything else.
fn refuse_what_is_not_there(args: &RunArgs) -> Result<(), CliError> {
    if args.resume {
        let error = anyhow!("--resume is not available in this version; run into a new folder instead");
        return Err(CliError::bad_input(error));
    }
    Ok(())
}

fn settings(args: &RunArgs, interrupt: &Interrupt) -> RunSettings {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    RunSettings {
        engine: args.engine,
        devices: args.device.clone(),
        gpu_dispatch: args.gpu_dispatch,
        jobs: args.jobs.map_or_else(all, |n| n as usize),
        memo: super::memo::choice(args),
        interrupt: interrupt.clone(),
    }
}

/// A folder that another run has just taken is the user's to solve; a full disk is not bad input.
fn dir_error(error: ResultsError) -> CliError {
    match error {
        ResultsError::InUse(_) | ResultsError::NotAFolder(_) | ResultsError::Cannot { .. } => CliError::bad_input(error),
        other => CliError::broken(other),
    }
}

fn greet(progress: &mut dyn Progress, planned: &Planned, used: &EngineUsed, jobs: usize) {
    for warning in &planned.warnings {
        progress.message(&format!("warning: {warning}"));
    }
    let on = match used.adapters.first() {
        Some(adapter) => format!("{} ({} {})", adapter.name, adapter.driver, adapter.driver_info),
        None => format!("{jobs} threads"),
    };
    let (name, n) = (&planned.name, planned.selected.len());
    progress.message(&format!("{name}: {n} experiments; engine {} on {on}: {}", used.engine, used.reason));
}

/// The files of a run while it goes on.
struct Report {
    writer: ResultWriter,
    log: EventLog,
    manifest: Manifest,
    /// Seconds spent in writing so far.
    writing: f64,
}

/// What is left when all is written.
struct Written {
    records: Vec<crate::results::ExperimentRecord>,
    failed: u64,
}

impl Report {
    fn open(dir: ResultDir, planned: &Planned, used: &EngineUsed, settings: &RunSettings, expanding: f64) -> Result<Report, CliError> {
        let manifest = Manifest {
            version: env!("CARGO_PKG_VERSION").into(),
            command_line: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
            outcome: Outcome::Running,
            name: planned.name.clone(),
            sweep: planned.resolved.clone(),
            inputs: planned.inputs.clone(),
            experiments: planned.experiments,
            selected: planned.selected.len() as u64,
            ok: 0,
            oom: 0,
            failed: 0,
            engine: used.engine.into(),
            engine_reason: used.reason.clone(),
            adapters: used.adapters.clone(),
            jobs: settings.jobs as u64,
            seconds: Seconds { expanding, ..Seconds::default() },
            warnings: planned.warnings.clone(),
        };
        let mut log = EventLog::create(&dir).map_err(dir_error)?;
        manifest.write(&dir).map_err(dir_error)?;
        let writer = ResultWriter::create(dir, planned.axes.clone(), planned.selected.clone(), planned.outputs).map_err(dir_error)?;
        log.log("run_started", [("name", json!(planned.name)), ("selected", json!(planned.selected.len())), ("engine", json!(used.engine))])
            .map_err(CliError::broken)?;
        Ok(Report { writer, log, manifest, writing: 0.0 })
    }

    fn take(&mut self, update: Update, progress: &mut dyn Progress) -> anyhow::Result<()> {
        let start = Instant::now();
        match update {
            Update::Compiled { seconds } => {
                self.manifest.seconds.compiling += seconds;
                self.log.log("compiled", [("seconds", json!(seconds))])?;
            }
            Update::Started { exp_id } => progress.started(exp_id),
            Update::Message(text) => {
                progress.message(&text);
                self.log.log("message", [("text", json!(text))])?;
            }
            Update::Finished(finished) => {
                progress.finished(&finished.record);
                let (exp_id, status) = (finished.record.exp_id, finished.record.status.as_str());
                let wall = finished.stats.wall_s;
                self.writer.add(*finished)?;
                self.log.log("finished", [("exp_id", json!(exp_id)), ("status", json!(status)), ("wall_s", json!(wall))])?;
            }
        }
        self.writing += start.elapsed().as_secs_f64();
        Ok(())
    }

    fn close(mut self, outcome: Outcome, late_warnings: Vec<String>, wall: f64) -> Result<Written, CliError> {
        let start = Instant::now();
        let (dir, records) = self.writer.finish().map_err(CliError::broken)?;
        let count = |status| records.iter().filter(|r| r.status == status).count() as u64;
        let m = &mut self.manifest;
        (m.ok, m.oom, m.failed, m.outcome) = (count(Status::Ok), count(Status::Oom), count(Status::Failed), outcome);
        m.warnings.extend(late_warnings);
        m.seconds.simulating = (wall - self.writing - m.seconds.compiling).max(0.0);
        m.seconds.writing = self.writing + start.elapsed().as_secs_f64();
        m.write(&dir).map_err(CliError::broken)?;
        let fields = [("ok", json!(m.ok)), ("oom", json!(m.oom)), ("failed", json!(m.failed)), ("outcome", json!(m.outcome))];
        self.log.log("run_ended", fields).map_err(CliError::broken)?;
        Ok(Written { records, failed: self.manifest.failed })
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
