//! `hyperfold trace`: writes the timeline of one experiment for Perfetto.
//!
//! Layer: cli. [`hyperfold_session::trace`] finds the experiment and simulates it again.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use hyperfold_config::spec::Config;
use hyperfold_host::outcomes::timeline::RecordedSpan;
use hyperfold_results::{RunColumns, write_timeline};
use hyperfold_session::Interrupt;
use hyperfold_session::trace::{cluster_history, experiment, timeline};
use hyperfold_trace::{DEFAULT_LIMIT, Trace, perfetto, perfetto_cluster, samples};

use super::exit::{CliError, Exit};
use super::{say, table, tell, tell_losses};

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Folder of results
    pub dir: PathBuf,
    /// The experiment
    pub exp_id: u64,
    /// File to write [default: DIR/trace/EXP_ID.pftrace]
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

/// Simulates the experiment again, and writes its timeline.
///
/// # Errors
/// The folder, the experiment, or an input of it does not exist any more, or the file cannot be written.
pub fn execute(args: &TraceArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let window = window(args).map_err(CliError::bad_input)?;
    if let Some(path) = args.out.as_ref().filter(|p| p.exists() && !args.force) {
        return Err(CliError::bad_input(anyhow!(
            "--out {}: exists already; name another file, or replace it with --force",
            path.display()
        )));
    }
    let run = RunColumns::open(&args.dir).map_err(CliError::bad_input)?;
    tell_losses(&args.dir);
    let (row, config) = experiment(&run, args.exp_id)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    if config.cluster_run().is_some() {
        return of_cluster(args, &config, limit, interrupt);
    }
    tell(&format!("simulating experiment {} again, unfolded", args.exp_id));
    let timeline = timeline(&config, args.exp_id, window, interrupt).map_err(CliError::bad_input)?;
    if interrupt.requested() {
        return Ok(Exit::Interrupted);
    }
    let trace = perfetto(&timeline, limit);
    write(args, &trace)?;
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

/// Writes a trace, and prints where.
fn write(args: &TraceArgs, trace: &Trace) -> Result<(), CliError> {
    let path = match &args.out {
        Some(path) => std::fs::write(path, &trace.bytes)
            .map(|()| path.clone())
            .with_context(|| format!("--out {}: cannot be written", path.display())),
        None => write_timeline(&args.dir, args.exp_id, &trace.bytes).map_err(Into::into),
    };
    say(&format!("trace: {}", path.map_err(CliError::broken)?.display()));
    Ok(())
}

/// Writes the trace of a cluster over days: its jobs and servers.
fn of_cluster(args: &TraceArgs, config: &Config, limit: usize, interrupt: &Interrupt) -> Result<Exit, CliError> {
    /// Nanoseconds in a millisecond.
    const NS: u64 = 1_000_000;
    tell(&format!("simulating experiment {} again", args.exp_id));
    let Some(history) = cluster_history(config, interrupt).map_err(CliError::bad_input)? else {
        return Ok(Exit::Interrupted);
    };
    let to_ms = args.to_ns.map_or(u64::MAX, |ns| ns.div_ceil(NS));
    let trace = perfetto_cluster(&history, args.from_ns / NS, to_ms, limit);
    write(args, &trace)?;
    say(&format!(
        "{} of {} states of jobs and servers",
        table::count(trace.slices as u64),
        table::count(trace.slices_of as u64)
    ));
    trace.notes.iter().for_each(|note| say(note));
    Ok(Exit::Ok)
}

fn window(args: &TraceArgs) -> anyhow::Result<RecordedSpan> {
    let ps = |ns: u64, option: &str| {
        ns.checked_mul(1000).with_context(|| format!("{option} {ns}: too far off; at most {}", u64::MAX / 1000))
    };
    let from_ps = ps(args.from_ns, "--from-ns")?;
    let to_ps = args.to_ns.map_or(Ok(u64::MAX), |ns| ps(ns, "--to-ns"))?;
    if to_ps <= from_ps {
        return Err(anyhow!("--to-ns {} must be after --from-ns {}", to_ps / 1000, args.from_ns));
    }
    Ok(RecordedSpan { from_ps, to_ps, samples: samples(usize::try_from(args.limit).unwrap_or(usize::MAX)) })
}
