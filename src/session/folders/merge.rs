//! Merges the folders of shards into the folder of the whole run.
//!
//! Layer: session. Joins journals, then writes files as a run does, so they are equal byte for byte, and the result can be merged again or completed by `run
//! --resume`. The order of folders does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::json;

use hyperfold_results::csv_rows::{results_header, results_row};
use hyperfold_results::{
    EventLog, ExperimentRecord, Finished, JournalReader, JournaledExperiment, Manifest, ResultDir, ResultWriter,
    RunIdentity, copy_timeline, cut_off,
};

use crate::error::SessionError;
use crate::folders::identity::claim;
use crate::folders::merge_manifest::{MISSING, joined};
use hyperfold_base::index_list::ranges;
use hyperfold_base::units::counted;

/// Most ranges of missing experiments that are named.
const NAMED: usize = 20;

/// The result of a merge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Merged {
    /// The run that all folders are parts of.
    pub run: RunIdentity,
    /// The manifest, as it was written.
    pub manifest: Manifest,
    /// All results, by `exp_id`.
    pub records: Vec<ExperimentRecord>,
    /// The missing experiments, in words; `None`: none.
    pub missing: Option<String>,
}

/// Merges the folders `dirs` into `out`. `warn` gets warnings. Folders of an earlier release are merged as long as this one reads their journals; only that
/// release can run what is missing.
///
/// # Errors
/// A folder is without a journal or still in use, folders are of different sweeps, results of one experiment differ, or results cannot be written.
pub fn merge(dirs: &[PathBuf], out: &Path, warn: &mut dyn FnMut(&str)) -> Result<Merged, SessionError> {
    join(dirs, out, whole, warn)
}

/// Copies the intact part of the journal of `dir` into the folder `out`, with all files that follow from it. `dir` does not change.
///
/// # Errors
/// Fails as [`merge`] does.
pub fn recover(dir: &Path, out: &Path, warn: &mut dyn FnMut(&str)) -> Result<Merged, SessionError> {
    // The selection stays the same, so that the run can go on in `out`.
    join(&[dir.into()], out, |parts| Ok(parts[0].run().clone()), warn)
}

fn join(
    dirs: &[PathBuf],
    out: &Path,
    run_of: impl FnOnce(&[JournalReader]) -> Result<RunIdentity, SessionError>,
    warn: &mut dyn FnMut(&str),
) -> Result<Merged, SessionError> {
    refuse_out_among_parts(dirs, out)?;
    ResultDir::check(out, true).map_err(SessionError::Results)?;
    let parts =
        dirs.iter().map(|d| JournalReader::open(d)).collect::<Result<Vec<_>, _>>().map_err(SessionError::Results)?;
    for part in &parts {
        if let Some(cut_off) = cut_off(part.folder()) {
            warn(&cut_off);
        }
        if let Some(damage) = part.damage() {
            warn(&format!("{}: {damage}", part.folder().join("journal.bin").display()));
        }
    }
    if let Some(part) = parts.iter().find(|p| p.run().search.is_some()) {
        let error = format!(
            "{}: a search (method = \"optimize\") is one run and has no parts to merge; if it was interrupted, run it again with --resume",
            part.folder().display()
        );
        return Err(SessionError::Input(error));
    }
    let run = run_of(&parts)?;
    let chosen = choose(&parts, &run)?;
    let ids: Vec<u64> = (0..run.experiments).filter(|&id| run.selects(id)).collect();

    let dir = claim(out, true)?;
    let (mut writer, recovered) = ResultWriter::open(dir, &run, ids.clone()).map_err(SessionError::Results)?;
    if let Some(damage) = recovered.damage {
        warn(&format!("{}: {damage}", out.join("journal.bin").display()));
    }
    let known: BTreeMap<u64, ExperimentRecord> = writer.records().map(|r| (r.exp_id, r.clone())).collect();
    for (&exp_id, &(part_idx, part)) in &chosen {
        let finished = parts[part_idx].read(part).map_err(SessionError::Results)?;
        match known.get(&exp_id) {
            Some(record) if *record == finished.record => {}
            // A wall-clock limit ended it in the part, and the model ended it in `out`.
            Some(_) if part.reached_machine_limit => {}
            Some(record) => return Err(conflict(&run, (out, record), (parts[part_idx].folder(), &finished.record))),
            None => writer.add(finished).map_err(SessionError::Results)?,
        }
    }
    for &exp_id in chosen.keys() {
        // Timelines are simulated unfolded, so that of any part is right.
        for part in parts.iter().filter(|p| p.parts().contains_key(&exp_id)) {
            if copy_timeline(part.folder(), out, exp_id).map_err(SessionError::Results)? {
                break;
            }
        }
    }
    let mut log = EventLog::create(writer.dir()).map_err(SessionError::Results)?;
    let (dir, records) = writer.finish().map_err(SessionError::Results)?;

    let missing = missing(&ids, &records);
    let manifest = joined(dirs, out, &run, &records, missing.as_deref());
    manifest.write(&dir).map_err(SessionError::Results)?;
    let part_names: Vec<String> = dirs.iter().map(|d| d.display().to_string()).collect();
    log.log("merged", [("parts", json!(part_names)), ("experiments", json!(records.len()))])
        .map_err(SessionError::Results)?;
    drop(dir);
    Ok(Merged { run, manifest, records, missing })
}

fn refuse_out_among_parts(dirs: &[PathBuf], out: &Path) -> Result<(), SessionError> {
    let same = |d: &PathBuf| matches!((d.canonicalize(), out.canonicalize()), (Ok(a), Ok(b)) if a == b);
    match dirs.iter().find(|d| same(d)) {
        Some(dir) if dirs.len() == 1 => {
            Err(SessionError::Input(format!("{}: --out is the folder to merge; name another one", dir.display())))
        }
        Some(dir) => {
            let error = format!(
                "{}: --out is among the folders to merge; what it holds is kept, so leave it out of them",
                dir.display()
            );
            Err(SessionError::Input(error))
        }
        None => Ok(()),
    }
}

/// Returns the run that all are parts of: the same sweep without `--shard`, with the largest `--limit` among them.
fn whole(parts: &[JournalReader]) -> Result<RunIdentity, SessionError> {
    let first = parts.first().expect("the command line demands one folder");
    for part in parts {
        let differences = part.run().sweep_differences(first.run());
        if !differences.is_empty() {
            let (a, b) = (first.folder().display(), part.folder().display());
            return Err(SessionError::Input(format!(
                "{a} and {b} are not parts of one sweep (there is {a}, here is {b}): {}",
                differences.join("; ")
            )));
        }
    }
    let limit = parts.iter().map(|p| p.run().limit).reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten();
    Ok(RunIdentity { limit, shard: None, ..first.run().clone() })
}

/// Chooses for every experiment the part from which it is taken. If several parts have it, their results must be equal. Which one's statistics are kept depends
/// only on these, not on the order of folders.
fn choose(
    parts: &[JournalReader],
    run: &RunIdentity,
) -> Result<BTreeMap<u64, (usize, JournaledExperiment)>, SessionError> {
    let all: BTreeSet<u64> = parts.iter().flat_map(|p| p.parts().keys().copied()).collect();
    let mut chosen = BTreeMap::new();
    for exp_id in all {
        let holders = parts.iter().enumerate().filter_map(|(i, p)| p.parts().get(&exp_id).map(|part| (i, *part)));
        let mut holders: Vec<(usize, JournaledExperiment)> = holders.collect();
        if holders.iter().any(|(_, part)| !part.reached_machine_limit) {
            holders.retain(|(_, part)| !part.reached_machine_limit);
        }
        let mut best = holders[0];
        if holders.len() > 1 {
            let mut kept = parts[best.0].read(best.1).map_err(SessionError::Results)?;
            for &other in &holders[1..] {
                let finished = parts[other.0].read(other.1).map_err(SessionError::Results)?;
                if !other.1.reached_machine_limit && !same_result(&kept, &finished) {
                    let folder = |part_idx: usize| parts[part_idx].folder();
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
    // Compare everything but the statistics of the run.
    let Finished {
        record,
        flows,
        links,
        rtt,
        rtt_means,
        jobs,
        shared_links,
        cluster_timeline,
        cluster_jobs,
        cluster_congestion,
        cluster_map,
        requests,
        series_links,
        series_flows,
        stats: _,
    } = a;
    (record, flows, links, rtt) == (&b.record, &b.flows, &b.links, &b.rtt)
        && (jobs, shared_links, requests) == (&b.jobs, &b.shared_links, &b.requests)
        && (cluster_timeline, cluster_jobs) == (&b.cluster_timeline, &b.cluster_jobs)
        && (series_links, series_flows, rtt_means) == (&b.series_links, &b.series_flows, &b.rtt_means)
        && (cluster_congestion, cluster_map) == (&b.cluster_congestion, &b.cluster_map)
}

/// Returns a key that orders equal results by their statistics. Any order is right that does not depend on folders.
fn rank(finished: &Finished) -> String {
    format!("{:?} {}", finished.stats, finished.record.error)
}

fn conflict(run: &RunIdentity, a: (&Path, &ExperimentRecord), b: (&Path, &ExperimentRecord)) -> SessionError {
    let (one, two) = (results_row(a.1, run.outputs.columns()), results_row(b.1, run.outputs.columns()));
    let differs = results_header(&run.axes, run.outputs.columns())
        .into_iter()
        .zip(one.iter().zip(&two))
        .find(|(_, (x, y))| x != y);
    let how = differs
        .map_or("rows of flows.csv, links.csv or another file beside results.csv".into(), |(name, (x, y))| {
            format!("{name} is `{x}` and `{y}`")
        });
    let (a, b, id) = (a.0.display(), b.0.display(), a.1.exp_id);
    SessionError::Input(format!(
        "experiment {id} differs between {a} and {b}: {how}; one of the folders is not what this sweep gives, so run its shard again"
    ))
}

/// Returns the experiments without a result, as ranges; `None` if there are none.
fn missing(ids: &[u64], records: &[ExperimentRecord]) -> Option<String> {
    let have: BTreeSet<u64> = records.iter().map(|r| r.exp_id).collect();
    let missing: Vec<u64> = ids.iter().copied().filter(|id| !have.contains(id)).collect();
    let mut named = ranges(missing.iter().copied());
    if named.len() > NAMED {
        named.truncate(NAMED);
        named.push("...".into());
    }
    let are = if missing.len() == 1 { "is" } else { "are" };
    (!missing.is_empty()).then(|| {
        format!("{} of {} {are}{MISSING}{}", missing.len(), counted(ids.len(), "experiment"), named.join(", "))
    })
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
        use crate::folders::merge_manifest::is_of_missing;
        assert!(is_of_missing(&missing(&ids, &have).unwrap()) && !is_of_missing("a file is missing: x"));
        let odd: Vec<u64> = (0..100).map(|i| 2 * i).collect();
        assert!(missing(&odd, &[]).unwrap().ends_with(", 38, ..."));
    }
}
