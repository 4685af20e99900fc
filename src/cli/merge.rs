//! `hyperfold merge`: the folders of shards become the folder of the whole run.
//!
//! Layer: cli. Joins journals, so that the files are made as a run makes them, byte for byte, and the result can be merged again or
//! completed by `run --resume`. Which folder comes first decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use crate::results::rows::{results_header, results_row};
use crate::results::{
    EventLog, ExperimentRecord, Finished, JournalReader, Manifest, Part, ResultDir, ResultWriter, RunIdentity, Status,
    copy_timeline,
};

use super::exit::{CliError, Exit};
use super::merge_manifest::joined;
use super::{best, resume, say, summary, tell};

/// Ranges of missing experiments that are named.
const NAMED: usize = 20;

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Folders of runs of one sweep: shards, in any order; they may overlap
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Folder for the whole; new, empty, or that of an earlier merge, which then gets what it lacks
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// No table; only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Joins the folders.
///
/// # Errors
/// A folder without a journal or still in use, folders of different sweeps, different results of one experiment, or results that cannot
/// be written.
pub fn execute(args: &MergeArgs) -> Result<Exit, CliError> {
    refuse_out_among_parts(args)?;
    ResultDir::check(&args.out, true).map_err(CliError::results)?;
    let parts =
        args.dirs.iter().map(|d| JournalReader::open(d)).collect::<Result<Vec<_>, _>>().map_err(CliError::results)?;
    for part in &parts {
        if let Some(damage) = part.damage() {
            tell(&format!("warning: {}: {damage}", part.folder().join("journal.bin").display()));
        }
    }
    if let Some(part) = parts.iter().find(|p| p.run().search.is_some()) {
        let error = anyhow!(
            "{}: a search (method = \"optimize\") is one run and has no parts to merge; if it was interrupted, run it again with --resume",
            part.folder().display()
        );
        return Err(CliError::bad_input(error));
    }
    let run = whole(&parts)?;
    let chosen = choose(&parts, &run)?;
    let ids: Vec<u64> = (0..run.experiments).filter(|&id| run.selects(id)).collect();

    let dir = resume::claim(&args.out, true)?;
    let (mut writer, recovered) = ResultWriter::open(dir, &run, ids.clone()).map_err(CliError::results)?;
    if let Some(damage) = recovered.damage {
        tell(&format!("warning: {}: {damage}", args.out.join("journal.bin").display()));
    }
    let known: BTreeMap<u64, ExperimentRecord> = writer.records().map(|r| (r.exp_id, r.clone())).collect();
    for (&exp_id, &(of, part)) in &chosen {
        let finished = parts[of].read(part).map_err(CliError::results)?;
        match known.get(&exp_id) {
            Some(record) if *record == finished.record => {}
            // The clock ended it here, and the model there.
            Some(_) if part.reached_wall_limit => {}
            Some(record) => return Err(conflict(&run, (&args.out, record), (parts[of].folder(), &finished.record))),
            None => writer.add(finished).map_err(CliError::results)?,
        }
    }
    for &exp_id in chosen.keys() {
        // Timelines are simulated unfolded, so that of any part will do.
        for part in parts.iter().filter(|p| p.parts().contains_key(&exp_id)) {
            if copy_timeline(part.folder(), &args.out, exp_id).map_err(CliError::results)? {
                break;
            }
        }
    }
    let mut log = EventLog::create(writer.dir()).map_err(CliError::results)?;
    let (dir, records) = writer.finish().map_err(CliError::results)?;

    let missing = missing(&ids, &records);
    let manifest = joined(&args.dirs, &args.out, &run, &records, missing.as_deref());
    manifest.write(&dir).map_err(CliError::results)?;
    let from: Vec<String> = args.dirs.iter().map(|d| d.display().to_string()).collect();
    log.log("merged", [("parts", json!(from)), ("experiments", json!(records.len()))]).map_err(CliError::results)?;
    drop(dir);
    let exit = conclude(args, &run, &manifest, &records, missing);
    super::report::after_run(&args.out, args.quiet);
    Ok(exit)
}

fn conclude(
    args: &MergeArgs,
    run: &RunIdentity,
    manifest: &Manifest,
    records: &[ExperimentRecord],
    missing: Option<String>,
) -> Exit {
    if !args.quiet {
        summary::lines(&run.axes, records).iter().for_each(|line| say(line));
        best::lines(&args.out, None).iter().for_each(|line| say(line));
        say(&format!("{}: {} experiments of {} folders", manifest.name, records.len(), args.dirs.len()));
        say(&format!("results: {}", args.out.display()));
    }
    for warning in &manifest.warnings {
        tell(&format!("warning: {warning}"));
    }
    if missing.is_some() {
        tell(&format!(
            "hyperfold: merge the missing shards into {0}, or run what is missing: hyperfold run SWEEP.toml --out {0} --resume",
            args.out.display()
        ));
    }
    let failed = records.iter().any(|r| r.status == Status::Failed);
    if missing.is_some() || failed { Exit::Failed } else { Exit::Ok }
}

fn refuse_out_among_parts(args: &MergeArgs) -> Result<(), CliError> {
    let same = |d: &PathBuf| matches!((d.canonicalize(), args.out.canonicalize()), (Ok(a), Ok(b)) if a == b);
    match args.dirs.iter().find(|d| same(d)) {
        Some(dir) if args.dirs.len() == 1 => {
            Err(CliError::bad_input(anyhow!("{}: --out is the folder to merge; name another one", dir.display())))
        }
        Some(dir) => {
            let error = anyhow!(
                "{}: --out is among the folders to merge; what it holds is kept, so leave it out of them",
                dir.display()
            );
            Err(CliError::bad_input(error))
        }
        None => Ok(()),
    }
}

/// The run that all are parts of: the same sweep without `--shard`, with the largest `--limit` among them.
fn whole(parts: &[JournalReader]) -> Result<RunIdentity, CliError> {
    let first = parts.first().expect("the command line demands one folder");
    for part in parts {
        let differences = part.run().sweep_differences(first.run());
        if !differences.is_empty() {
            let (a, b) = (first.folder().display(), part.folder().display());
            return Err(CliError::bad_input(anyhow!(
                "{a} and {b} are not parts of one sweep (there is {a}, here is {b}): {}",
                differences.join("; ")
            )));
        }
    }
    let limit = parts.iter().map(|p| p.run().limit).reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten();
    Ok(RunIdentity { limit, shard: None, ..first.run().clone() })
}

/// For every experiment the part that it is taken from. Where several have it, their results must be the same, and which one's statistics
/// are kept depends on these alone, not on the order of folders.
fn choose(parts: &[JournalReader], run: &RunIdentity) -> Result<BTreeMap<u64, (usize, Part)>, CliError> {
    let all: BTreeSet<u64> = parts.iter().flat_map(|p| p.parts().keys().copied()).collect();
    let mut chosen = BTreeMap::new();
    for exp_id in all {
        let holders = parts.iter().enumerate().filter_map(|(of, p)| p.parts().get(&exp_id).map(|part| (of, *part)));
        let mut holders: Vec<(usize, Part)> = holders.collect();
        if holders.iter().any(|(_, part)| !part.reached_wall_limit) {
            holders.retain(|(_, part)| !part.reached_wall_limit);
        }
        let mut best = holders[0];
        if holders.len() > 1 {
            let mut kept = parts[best.0].read(best.1).map_err(CliError::results)?;
            for &other in &holders[1..] {
                let finished = parts[other.0].read(other.1).map_err(CliError::results)?;
                if !other.1.reached_wall_limit && !same_result(&kept, &finished) {
                    let folder = |of: usize| parts[of].folder();
                    return Err(conflict(run, (folder(best.0), &kept.record), (folder(other.0), &finished.record)));
                }
                if rank(&finished) < rank(&kept) {
                    (best, kept) = (other, finished);
                }
            }
        }
        chosen.insert(exp_id, best);
    }
    Ok(chosen)
}

fn same_result(a: &Finished, b: &Finished) -> bool {
    (&a.record, &a.flows, &a.links, &a.rtt) == (&b.record, &b.flows, &b.links, &b.rtt)
}

/// An order of equal results by how they came about; any will do that knows nothing of folders.
fn rank(finished: &Finished) -> String {
    format!("{:?} {}", finished.stats, finished.record.error)
}

fn conflict(run: &RunIdentity, a: (&Path, &ExperimentRecord), b: (&Path, &ExperimentRecord)) -> CliError {
    let (one, two) = (results_row(a.1), results_row(b.1));
    let differs = results_header(&run.axes).into_iter().zip(one.iter().zip(&two)).find(|(_, (x, y))| x != y);
    let how = differs.map_or("rows of flows.csv, links.csv or rtt.csv".into(), |(name, (x, y))| {
        format!("{name} is `{x}` and `{y}`")
    });
    let (a, b, id) = (a.0.display(), b.0.display(), a.1.exp_id);
    CliError::bad_input(anyhow!(
        "experiment {id} differs between {a} and {b}: {how}; one of the folders is not what this sweep gives, so run its shard again"
    ))
}

/// The experiments without a result, as ranges; `None` if there are none.
fn missing(ids: &[u64], records: &[ExperimentRecord]) -> Option<String> {
    let have: BTreeSet<u64> = records.iter().map(|r| r.exp_id).collect();
    let missing: Vec<u64> = ids.iter().copied().filter(|id| !have.contains(id)).collect();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &id in &missing {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    let text = |&(a, b): &(u64, u64)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    let mut named: Vec<String> = ranges.iter().take(NAMED).map(text).collect();
    if ranges.len() > NAMED {
        named.push("...".into());
    }
    (!missing.is_empty())
        .then(|| format!("{} of {} experiments are missing: {}", missing.len(), ids.len(), named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_experiments_are_named_as_ranges() {
        let record = |id| ExperimentRecord::new(id, String::new(), String::new(), 0, 0, vec![]);
        let have: Vec<ExperimentRecord> = [0, 4, 6].map(record).to_vec();
        let ids: Vec<u64> = (0..8).collect();
        assert_eq!(missing(&ids, &have).unwrap(), "5 of 8 experiments are missing: 1-3, 5, 7");
        assert_eq!(missing(&[0, 4], &have), None);
        let odd: Vec<u64> = (0..100).map(|i| 2 * i).collect();
        assert!(missing(&odd, &[]).unwrap().ends_with(", 38, ..."));
    }
}
