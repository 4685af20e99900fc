//! `hyperfold bench`.
//!
//! Layer: cli.

use anyhow::anyhow;

use super::args::BenchArgs;
use super::exit::{CliError, Exit};
use super::measurement::BenchRow;
use super::output::is_closed;
use super::{benchmarks, say, table};

/// Lists benchmarks, or runs them.
///
/// # Errors
/// The name is unknown, or a benchmark cannot run.
pub fn execute(args: &BenchArgs) -> Result<Exit, CliError> {
    let all = benchmarks::list();
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
