//! `hyperfold bench`.
//!
//! Layer: cli.

use anyhow::anyhow;

use super::args::BenchArgs;
use super::exit::{CliError, Exit};
use super::measurement::{BenchInfo, BenchRow};
use super::output::is_closed;
use super::{benchmark_gpu, benchmarks, say, table};

/// The benchmark of a device, which has a table of its own.
const GPU: &str = "gpu";

/// Lists benchmarks, or runs them.
///
/// # Errors
/// The name is unknown, or a benchmark cannot run.
pub fn execute(args: &BenchArgs) -> Result<Exit, CliError> {
    if args.name.as_deref() == Some(GPU) && !args.list {
        return benchmark_gpu::execute(args);
    }
    if args.out.is_some() || args.budget.is_some() || args.device.is_some() {
        return Err(CliError::bad_input(anyhow!("--out, --budget and --device belong to `hyperfold bench {GPU}`")));
    }
    let mut all = benchmarks::list();
    if args.list {
        all.push(BenchInfo {
            name: GPU.into(),
            about: "what a GPU does, by number of experiments side by side".into(),
        });
    }
    let chosen: Vec<_> = all.iter().filter(|b| args.name.as_ref().is_none_or(|name| *name == b.name)).collect();
    if let (Some(name), true) = (&args.name, chosen.is_empty()) {
        let names: Vec<&str> = all.iter().map(|b| b.name.as_str()).collect();
        return Err(CliError::bad_input(anyhow!("no benchmark `{name}`; there are: {}", names.join(", "))));
    }
    if args.list {
        for bench in chosen {
            let json = || serde_json::to_string(bench).expect("plain strings serialise");
            say(&if args.json { json() } else { format!("{:<24}  {}", bench.name, bench.about) });
        }
        return Ok(Exit::Ok);
    }
    // If standard output is closed, the remaining benchmarks are not run.
    for bench in chosen.into_iter().take_while(|_| !is_closed()) {
        benchmarks::run(&bench.name, &mut |row| say(&line(&row, args.json))).map_err(CliError::broken)?;
    }
    Ok(Exit::Ok)
}

fn line(row: &BenchRow, json: bool) -> String {
    if json {
        return serde_json::to_string(row).expect("plain numbers and strings serialise");
    }
    format!(
        "{:<24}  {:<8}  {:>6} hosts  {:>4} experiments  {:>9.2} M packet-hops/s  {:>16} packet-hops in {:.3} s  {}",
        row.name,
        row.engine,
        row.hosts,
        row.experiments,
        row.packet_hops_per_s / 1e6,
        table::count(row.packet_hops),
        row.seconds,
        table::bytes(row.peak_bytes)
    )
}
