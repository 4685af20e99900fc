//! `hyperfold run`.
//!
//! Layer: cli. Order of things: everything that can be refused is refused before the results' folder is created; then experiments are
//! written as they finish; then the table.

use std::time::Instant;

use anyhow::anyhow;
use serde_json::json;

use crate::results::{
    EventLog, ExperimentRecord, Manifest, Outcome, ResultDir, ResultWriter, ResultsError, Seconds, Status,
    write_timeline,
};

use super::args::RunArgs;
use super::exit::{CliError, Exit};
use super::interrupt::Interrupt;
use super::progress::{self, Progress};
use super::simulator::{EngineUsed, Known, Planned, RunSettings, Simulator, SweepRequest, Update};
use super::style::Style;
use super::{best, resume, say, summary, tell};

/// Runs a sweep.
///
/// # Errors
/// Bad usage or input (nothing is written then), or results that cannot be written.
pub fn execute<S: Simulator>(args: &RunArgs, simulator: &S, interrupt: &Interrupt) -> Result<Exit, CliError> {
    ResultDir::check(&args.out, args.resume).map_err(CliError::results)?;
    let settings = settings(args, interrupt)?;

    let expanding = Instant::now();
    let request = SweepRequest::from(&args.sweep);
    let (planned, sweep) = simulator.load(&request).map_err(CliError::bad_input)?;
    if planned.selected.is_empty() {
        let error = anyhow!(
            "{}: no experiments to run (the sweep has {}); check constraints, --shard and --limit",
            args.sweep.sweep.display(),
            planned.experiments
        );
        return Err(CliError::bad_input(error));
    }
    log::info!(
        "{}: {} of {} experiments selected, expanded in {:.3} s",
        planned.name,
        planned.selected.len(),
        planned.experiments,
        expanding.elapsed().as_secs_f64()
    );
    let (used, engine) = simulator.engine(&sweep, &settings).map_err(CliError::bad_input)?;

    log::info!("engine {}: {}; {} CPU threads", used.engine, used.reason, settings.jobs);

    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }

    let dir = resume::claim(&args.out, args.resume)?;
    let run = resume::identity(&planned, &request);
    let (mut writer, recovered) = ResultWriter::open(dir, &run, planned.selected.clone()).map_err(CliError::results)?;
    let known = Known {
        looks: writer.take_looks(),
        stats: writer.take_earlier(),
        records: writer.records().cloned().collect(),
    };
    let mut progress = progress::for_terminal(planned.rows().saturating_sub(known.records.len() as u64), args.quiet);
    greet(progress.as_mut(), &planned, &used, settings.jobs);
    resume::messages(&recovered, &planned, writer.dir()).iter().for_each(|m| progress.message(m));
    let mut report = Report::open(writer, &planned, &used, &settings, expanding.elapsed().as_secs_f64())?;
    if let Some(damage) = &recovered.damage {
        report.log.log("journal_cut", [("why", json!(damage))]).map_err(CliError::broken)?;
    }

    let simulating = Instant::now();
    let ran = simulator.run(sweep, engine, &settings, &known, &mut |update| report.take(update, progress.as_mut()));
    let wall = simulating.elapsed().as_secs_f64();
    progress.close();
    log::info!("simulated for {wall:.3} s");

    let outcome = match &ran {
        Err(_) => Outcome::Aborted,
        Ok(_) if interrupt.requested() => Outcome::Interrupted,
        Ok(_) => Outcome::Complete,
    };
    let late = ran.as_ref().map_or(Vec::new(), Clone::clone);
    // With --strict a warning decides the exit code, so that it is told however quiet the rest is.
    let quiet = args.quiet && !args.strict;
    let early: &[String] = if args.quiet && args.strict { &planned.warnings } else { &[] };
    for warning in early.iter().chain(late.iter().filter(|_| !quiet)) {
        tell(&format!("{} {warning}", Style::of_stderr().warning("warning:")));
    }
    let mut warned = !planned.warnings.is_empty() || !late.is_empty();
    let saved = report.writer.records().count() as u64;
    let closed = report.close(outcome, late, wall);
    // What broke the run off is told, rather than that its files could not be finished either.
    let finished = ran.and(closed).map_err(|e| resume::broke_off(e, saved, planned.rows(), &args.out))?;

    if !args.quiet {
        summary::lines(&planned.axes, &finished.records).iter().for_each(|line| say(line));
        best::lines(&args.out, planned.search.as_ref().map(|_| planned.experiments)).iter().for_each(|line| say(line));
        say(&format!("results: {}", args.out.display()));
    }
    warned |= !super::report::after_run(&args.out, args.quiet);
    let missing = finished.expected - finished.records.len();
    if outcome == Outcome::Interrupted && missing > 0 {
        tell(&format!("hyperfold: interrupted; {missing} of {} experiments have no result", finished.expected));
        return Ok(Exit::Interrupted);
    }
    if missing > 0 {
        return Err(CliError::broken(anyhow!(
            "{missing} experiments ended without a result; this is a bug in hyperfold"
        )));
    }
    Ok(match finished.failed {
        0 if args.strict && warned => {
            tell("hyperfold: --strict: there were warnings");
            Exit::Condition
        }
        0 => Exit::Ok,
        _ => Exit::Failed,
    })
}

fn settings(args: &RunArgs, interrupt: &Interrupt) -> Result<RunSettings, CliError> {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    Ok(RunSettings {
        engine: args.engine,
        devices: args.device.clone(),
        gpu_dispatch: args.gpu_dispatch,
        jobs: args.jobs.map_or_else(all, |n| n as usize),
        memo: super::memo::choice(args)?,
        interrupt: interrupt.clone(),
    })
}

fn greet(progress: &mut dyn Progress, planned: &Planned, used: &EngineUsed, jobs: usize) {
    for warning in &planned.warnings {
        progress.message(&format!("{} {warning}", Style::of_stderr().warning("warning:")));
    }
    let adapters: Vec<String> =
        used.adapters.iter().map(|a| format!("{} ({} {})", a.name, a.driver, a.driver_info)).collect();
    let on = if adapters.is_empty() { format!("{jobs} threads") } else { adapters.join(", ") };
    let (name, n) = (&planned.name, planned.selected.len());
    progress.message(&format!("{name}: {n} experiments; engine {} on {on}: {}", used.engine, used.reason));
}

/// The files of a run while it goes on.
struct Report {
    writer: ResultWriter,
    log: EventLog,
    manifest: Manifest,
    /// Seconds spent in writing so far, and in compiling.
    writing: f64,
    compiling: f64,
    /// Experiments that get a row; of a search at most, until it has chosen.
    expected: usize,
}

/// What is left when all is written.
struct Written {
    records: Vec<ExperimentRecord>,
    failed: u64,
    expected: usize,
}

impl Report {
    fn open(
        writer: ResultWriter,
        planned: &Planned,
        used: &EngineUsed,
        settings: &RunSettings,
        expanding: f64,
    ) -> Result<Report, CliError> {
        let dir = writer.dir();
        let earlier = resume::earlier_seconds(dir.path());
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
            jobs: settings.jobs as u64,
            seconds: Seconds { expanding: earlier.expanding + expanding, ..earlier },
            warnings: planned.warnings.clone(),
        };
        let mut log = EventLog::create(dir).map_err(CliError::results)?;
        manifest.write(dir).map_err(CliError::results)?;
        let (name, selected) = (json!(planned.name), json!(planned.selected.len()));
        log.log(
            "run_started",
            [("name", name), ("selected", selected), ("known", json!(known)), ("engine", json!(used.engine))],
        )
        .map_err(CliError::broken)?;
        log_warnings(&mut log, &planned.warnings).map_err(CliError::results)?;
        Ok(Report { writer, log, manifest, writing: 0.0, compiling: 0.0, expected: planned.rows() as usize })
    }

    fn take(&mut self, update: Update, progress: &mut dyn Progress) -> anyhow::Result<()> {
        let start = Instant::now();
        match update {
            Update::Compiled { seconds } => {
                self.manifest.seconds.compiling += seconds;
                self.compiling += seconds;
                self.log.log("compiled", [("seconds", json!(seconds))])?;
            }
            Update::Started { exp_id } => progress.started(exp_id),
            Update::Looked(look) => self.writer.look(&look)?,
            Update::Chosen { ids, csv } => {
                self.expected = ids.len();
                self.log.log("chosen", [("experiments", json!(ids.len()))])?;
                self.writer.only(ids)?;
                self.writer.write_beside("optimize.csv", &csv)?;
            }
            Update::Message(text) => {
                progress.message(&text);
                self.log.log("message", [("text", json!(text))])?;
            }
            Update::Traced { exp_id, bytes } => drop(write_timeline(self.writer.dir().path(), exp_id, &bytes)?),
            Update::Finished(finished) => {
                progress.finished(&finished.record);
                let (exp_id, status) = (finished.record.exp_id, finished.record.status.as_str());
                let wall = finished.stats.wall_s;
                self.writer.add(*finished)?;
                self.log
                    .log("finished", [("exp_id", json!(exp_id)), ("status", json!(status)), ("wall_s", json!(wall))])?;
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
        log_warnings(&mut self.log, &late_warnings).map_err(CliError::broken)?;
        m.warnings.extend(late_warnings);
        m.seconds.simulating += (wall - self.writing - self.compiling).max(0.0);
        m.seconds.writing += self.writing + start.elapsed().as_secs_f64();
        m.write(&dir).map_err(CliError::broken)?;
        let fields =
            [("ok", json!(m.ok)), ("oom", json!(m.oom)), ("failed", json!(m.failed)), ("outcome", json!(m.outcome))];
        self.log.log("run_ended", fields).map_err(CliError::broken)?;
        Ok(Written { records, failed: self.manifest.failed, expected: self.expected })
    }
}

fn log_warnings(log: &mut EventLog, warnings: &[String]) -> Result<(), ResultsError> {
    warnings.iter().try_for_each(|text| log.log("warning", [("text", json!(text))]))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
