//! `hyperfold trace`: the timeline of one experiment for Perfetto.
//!
//! Layer: cli. The run's manifest holds the whole sweep, so the experiment is simulated again, recorded this time. It is the same experiment only if its key
//! still is: the key covers every setting, the input files and the model's version.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use crate::batch::PrepareError;
use crate::batch::timeline::{Window, record};
use crate::results::{RunResults, Status, write_timeline};
use crate::spec::{Config, Place, SpecError};
use crate::sweep::{self, SetOverrides};
use crate::trace::{DEFAULT_LIMIT, Trace, perfetto, samples};

use super::exit::{CliError, Exit};
use super::interrupt::Interrupt;
use super::{say, table, tell};

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Folder of results
    pub dir: PathBuf,
    /// The experiment
    pub exp_id: u64,
    /// Where to write it [default: DIR/trace/EXP_ID.pftrace]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file that --out names, if there is one
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Most events: of more, the longest are kept
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT as u64, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub limit: u64,
    /// Leave out what ends before this
    #[arg(long, value_name = "NS", default_value_t = 0)]
    pub from_ns: u64,
    /// End the simulation here
    #[arg(long, value_name = "NS")]
    pub to_ns: Option<u64>,
}

/// Simulates the experiment again and writes its timeline.
///
/// # Errors
/// The folder, the experiment, or what it was made from is not there any more; or the file cannot be written.
pub fn execute(args: &TraceArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let window = window(args).map_err(CliError::bad_input)?;
    if let Some(path) = args.out.as_ref().filter(|p| p.exists() && !args.force) {
        return Err(CliError::bad_input(anyhow!(
            "--out {}: exists already; name another file, or replace it with --force",
            path.display()
        )));
    }
    let run = RunResults::open(&args.dir).map_err(CliError::bad_input)?;
    let (row, config) = experiment(&run, args.exp_id).map_err(CliError::bad_input)?;
    tell(&format!("simulating experiment {} again, unfolded", args.exp_id));
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let timeline = record(&config, args.exp_id, window, &|| interrupt.requested()).map_err(CliError::bad_input)?;
    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }
    let trace = perfetto(&timeline, limit);
    let path = match &args.out {
        Some(path) => std::fs::write(path, &trace.bytes)
            .map(|()| path.clone())
            .with_context(|| format!("--out {}: cannot be written", path.display())),
        None => write_timeline(&args.dir, args.exp_id, &trace.bytes).map_err(Into::into),
    };
    say(&format!("trace: {}", path.map_err(CliError::broken)?.display()));
    let Trace { slices, slices_of, samples, .. } = trace;
    let count = |n: usize| table::count(n as u64);
    say(&format!(
        "{} of {} ops, messages and pauses; {} samples of queues",
        count(slices),
        count(slices_of),
        count(samples)
    ));
    trace.notes.iter().for_each(|note| say(note));
    if timeline.cut.is_none() {
        let recorded = run.column("makespan_ns").and_then(|c| run.number(row, c));
        let now = timeline.makespan_ps as f64 / 1e3;
        if let Some(recorded) = recorded.filter(|r| *r != now) {
            say(&format!(
                "the makespan is {now} ns, in the results {recorded} ns: these skipped or rounded what the trace does not (fidelity.fast_forward)"
            ));
        }
    }
    Ok(Exit::Ok)
}

/// The timeline of an experiment that is being run, as `output.trace` asks for.
///
/// # Errors
/// It cannot be prepared.
pub fn of_run(config: &Config, exp_id: u64, interrupt: &Interrupt) -> Result<Trace, PrepareError> {
    let window = Window { samples: samples(DEFAULT_LIMIT), ..Window::default() };
    record(config, exp_id, window, &|| interrupt.requested()).map(|timeline| perfetto(&timeline, DEFAULT_LIMIT))
}

fn window(args: &TraceArgs) -> anyhow::Result<Window> {
    let ps = |ns: u64, option: &str| {
        ns.checked_mul(1000).with_context(|| format!("{option} {ns}: too far off; at most {}", u64::MAX / 1000))
    };
    let from_ps = ps(args.from_ns, "--from-ns")?;
    let to_ps = args.to_ns.map_or(Ok(u64::MAX), |ns| ps(ns, "--to-ns"))?;
    if to_ps <= from_ps {
        return Err(anyhow!("--to-ns {} must be after --from-ns {}", to_ps / 1000, args.from_ns));
    }
    Ok(Window { from_ps, to_ps, samples: samples(usize::try_from(args.limit).unwrap_or(usize::MAX)) })
}

/// An error of the sweep that a manifest holds: lines are those of what is written there, with every key, and not of the user's file.
fn of_manifest(mut error: SpecError) -> SpecError {
    if let Place::File { line, columns, .. } = error.place_mut() {
        (*line, *columns) = (None, None);
    }
    error
}

/// The row and the configuration of an experiment.
pub(super) fn experiment(run: &RunResults, exp_id: u64) -> anyhow::Result<(usize, Config)> {
    let dir = run.path.display();
    let row = run
        .find(exp_id)
        .with_context(|| format!("{dir}: it has no experiment {exp_id}; results.csv lists those that it has"))?;
    if run.status(row) == Status::Oom {
        return Err(anyhow!("{dir}: experiment {exp_id} does not fit into its GPUs' memory, so nothing happens in it"));
    }
    let m = &run.manifest;
    let path = if m.sweep_path.is_empty() { PathBuf::from("sweep.toml") } else { PathBuf::from(&m.sweep_path) };
    let sweep = sweep::parse(&m.sweep, &path, &SetOverrides(Vec::new()))
        .map_err(of_manifest)
        .with_context(|| format!("{dir}: the sweep in manifest.json cannot be expanded any more"))?;
    let recorded = run.column("exp_key").map(|c| run.rows[row][c].to_string()).unwrap_or_default();
    let found = sweep.experiments.iter().find(|e| e.exp_id == exp_id).filter(|e| e.exp_key.to_string() == recorded);
    let Some(found) = found else {
        // By content: paths depend on where the program was started.
        let is_there = |sha: &str| sweep.inputs.iter().any(|i| i.sha256 == sha);
        let changed: Vec<&str> = m.inputs.iter().filter(|i| !is_there(&i.sha256)).map(|i| i.path.as_str()).collect();
        let why = match changed.as_slice() {
            [] => "another version of hyperfold wrote these results, or its experiments do not come from the sweep file alone".to_string(),
            files => format!("changed since: {}", files.join(", ")),
        };
        return Err(anyhow!("{dir}: experiment {exp_id} cannot be simulated again as it was: {why}"));
    };
    Ok((row, sweep.config(found).map_err(|e| anyhow!("{dir}: {e}"))?))
}
