//! `hyperfold run`.
//!
//! Layer: cli. First, everything that can be refused is refused, before the result folder is created. Then experiments are written as they finish. Last comes
//! the table.

use std::time::Instant;

use anyhow::anyhow;

use hyperfold_base::units::counted;
use hyperfold_results::{Outcome, ResultDir};
use hyperfold_session::folders::folder::ClaimedFolder;
use hyperfold_session::{EngineUsed, Interrupt, MemoChoice, Planned, RunSettings, SessionError, Simulator, Update};

use super::args::RunArgs;
use super::exit::{CliError, Exit};
use super::interrupt::may_end_at_once;
use super::patience::Patience;
use super::progress::{self, Progress};
use super::{best, jobs_table, resume, run_json, say, say_json, summary, table, tell};

/// Planning time in seconds above which it is reported.
const TOLD_FROM_SECONDS: f64 = 1.0;
/// Number of groups of experiments that cannot run or fit whose reasons are printed. Each row has its own reason.
const REASONS_TOLD: usize = 3;

/// Runs a sweep.
///
/// # Errors
/// Usage or input is bad (then nothing is written), or results cannot be written.
pub fn execute<S: Simulator>(args: &RunArgs, simulator: &S, interrupt: &Interrupt) -> Result<Exit, CliError> {
    ResultDir::check(&args.out, args.resume).map_err(CliError::results)?;
    args.sweep.limit_memory();
    let settings = settings(args, interrupt)?;
    settings.memo.check_outside(&args.out)?;
    if args.jobs.is_some() {
        // Planning uses the global threads of the process. In tests, another run may have started them already.
        let made = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build_global();
        made.unwrap_or_else(|why| log::debug!("planning keeps its threads: {why}"));
    }

    let expanding = Instant::now();
    let request = args.sweep.request();
    let patience = Patience::with(&request.progress, args.quiet);
    let (planned, sweep) = simulator.load(&request)?;
    drop(patience);
    let planning = expanding.elapsed().as_secs_f64();
    if planned.selected.is_empty() {
        let error = anyhow!(
            "{}: no experiments to run (the sweep has {}); check constraints, --shard and --limit",
            args.sweep.sweep.display(),
            planned.experiments
        );
        return Err(CliError::bad_input(error));
    }
    log::info!(
        "{}: {} of {} experiments selected, planned on {} in {:.3} s",
        planned.name,
        planned.selected.len(),
        planned.experiments,
        counted(rayon::current_num_threads(), "thread"),
        planning
    );
    let (used, engine) = simulator.engine(&sweep, &settings)?;

    log::info!("engine {}: {}; {} CPU threads", used.engine, used.reason, settings.threads);

    // From here on, there is something to write when a signal arrives.
    may_end_at_once(false);
    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }
    let claimed = ClaimedFolder::open(&args.out, args.resume, &planned, &request.selection)?;
    let open = planned.rows().saturating_sub(claimed.known.records.len() as u64);
    let mut progress = progress::for_terminal(open, args.quiet);
    greet(progress.as_mut(), &planned, &used, settings.threads);
    if planning >= TOLD_FROM_SECONDS {
        progress.message(&format!("planning took {}", table::seconds(planning)));
    }
    for message in resume::messages(&claimed.recovered, &planned, claimed.dir()) {
        // Losses are reported even with --quiet.
        if args.quiet && message.starts_with("warning:") { tell(&message) } else { progress.message(&message) }
    }
    let (mut folder, known) = claimed.start(&planned, &used, &settings, expanding.elapsed().as_secs_f64())?;

    let simulating = Instant::now();
    let ran = simulator.run(sweep, engine, &settings, &known, &mut |update| {
        show(&update, progress.as_mut());
        folder.take(update)
    });
    let wall = simulating.elapsed().as_secs_f64();
    progress.close();
    log::info!("simulated for {wall:.3} s");

    let outcome = match &ran {
        Err(_) => Outcome::Aborted,
        Ok(_) if interrupt.requested() => Outcome::Interrupted,
        Ok(_) => Outcome::Complete,
    };
    let late = ran.as_ref().map_or(Vec::new(), Clone::clone);
    // With --strict, a warning decides the exit code, so warnings are printed even with --quiet.
    let quiet = args.quiet && !args.strict;
    let early: &[String] = if args.quiet && args.strict { &planned.warnings } else { &[] };
    for warning in early.iter().chain(late.iter().filter(|_| !quiet)) {
        tell(&format!("warning: {warning}"));
    }
    let mut warned = !planned.warnings.is_empty() || !late.is_empty();
    let saved = folder.saved();
    let closed = folder.close(outcome, late, wall);
    // The cause that broke the run off is reported first; an error of closing the files would only follow from it.
    let finished = ran.and(closed).map_err(|e| resume::broke_off(e.into(), saved, planned.rows(), &args.out))?;
    // What follows can be repeated by `hyperfold report`.
    may_end_at_once(true);

    if args.json {
        run_json::lines(&planned.axes, &finished.records).iter().for_each(|line| say_json(line));
    } else if !args.quiet {
        summary::lines(&planned.axes, &finished.records).iter().for_each(|line| say(line));
        jobs_table::lines(&args.out).iter().for_each(|line| say(line));
        best::lines(&args.out, planned.search.as_ref().map(|_| planned.experiments), &planned.tight)
            .iter()
            .for_each(|line| say(line));
        say(&format!("results: {}", args.out.display()));
    }
    if args.quiet && finished.failed > 0 {
        let total = counted(finished.records.len(), "experiment");
        let path = args.out.join("failed.csv");
        tell(&format!("hyperfold: {} of {total} failed; {} says why", finished.failed, path.display()));
    }
    warned |= !super::report::after_run(&args.out, args.quiet || args.json);
    let missing = finished.expected - finished.records.len();
    if outcome == Outcome::Interrupted && missing > 0 {
        let total = counted(finished.expected, "experiment");
        let have = if missing == 1 { "has" } else { "have" };
        tell(&format!("hyperfold: interrupted; {missing} of {total} {have} no result"));
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

fn settings(args: &RunArgs, interrupt: &Interrupt) -> Result<RunSettings, SessionError> {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    Ok(RunSettings {
        engine: args.engine,
        devices: args.device.clone(),
        gpu_dispatch: args.gpu_dispatch,
        threads: args.jobs.map_or_else(all, |n| n as usize),
        memo: memo(args)?,
        interrupt: interrupt.clone(),
    })
}

/// The choice that `--memo` and `--memo-limit-mib` make.
fn memo(args: &RunArgs) -> Result<MemoChoice, SessionError> {
    match &args.memo {
        None => Ok(MemoChoice::Run),
        Some(path) if path.as_os_str() == "off" => Ok(MemoChoice::Off),
        Some(path) => MemoChoice::kept(path, args.memo_limit_mib << 20),
    }
}

/// Shows the events of a run that a person follows.
fn show(update: &Update, progress: &mut dyn Progress) {
    match update {
        Update::Started { exp_id } => progress.started(*exp_id),
        Update::Progress { done, total } => progress.work(*done, *total),
        Update::Message(text) => progress.message(text),
        Update::Finished(finished) => progress.finished(&finished.record),
        Update::Compiled { .. } | Update::Looked(_) | Update::Chosen { .. } | Update::Traced { .. } => {}
        Update::Defect { exp_id, .. } => progress.message(&format!(
            "warning: experiment {exp_id} met a defect in hyperfold; defects.txt in the folder of the results says more: please report it"
        )),
    }
}

fn greet(progress: &mut dyn Progress, planned: &Planned, used: &EngineUsed, jobs: usize) {
    for warning in &planned.warnings {
        progress.message(&format!("warning: {warning}"));
    }
    if let Some(note) = &planned.duplicates_note {
        progress.message(&format!("note: {note}"));
    }
    for (heading, excluded) in [("cannot run", &planned.cannot_run), ("cannot fit", &planned.cannot_fit)] {
        if !excluded.experiments.is_empty() {
            let n = counted(excluded.experiments.len(), "experiment");
            let lines = excluded.lines();
            let told = lines[..lines.len().min(REASONS_TOLD)].join("; ");
            let more = if lines.len() > REASONS_TOLD { "; ... (`hyperfold plan` has all reasons)" } else { "" };
            progress.message(&format!("note: {n} {heading}: {told}{more}"));
        }
    }
    let adapters: Vec<String> =
        used.adapters.iter().map(|a| format!("{} ({} {})", a.name, a.driver, a.driver_info)).collect();
    let device_names = if adapters.is_empty() { counted(jobs, "thread") } else { adapters.join(", ") };
    let (name, n) = (&planned.name, planned.selected.len());
    let n = counted(n, "experiment");
    progress.message(&format!("{name}: {n}; engine {} on {device_names}: {}", used.engine, used.reason));
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
