//! The identity of a journal: the sweep, the selection and the version that a run's results belong to.
//!
//! Layer: results. Compares identities, and describes differences. The engine, threads, devices and the wall limit are no part of it, because they decide no
//! result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::journal_codec::layout;
use super::manifest::InputFile;
use super::outputs::Outputs;
use super::value::Axis;

/// Maximum number of differences that are described.
const MAX_LISTED: usize = 5;

/// The identity of the results in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunIdentity {
    /// Version of hyperfold.
    pub version: String,
    /// Version of the model: raised whenever a configuration may give other results than before.
    pub semantics: u32,
    /// Layout of the journal's bytes, set by [`RunIdentity::of_this_version`].
    pub layout: String,
    /// Hash of every experiment of the sweep, selected or not: its configuration, input files by content, seed and axis values.
    pub sweep: String,
    /// Number of experiments of the sweep after constraints.
    pub experiments: u64,
    /// Keys that the sweep varies.
    pub axes: Vec<Axis>,
    /// Files and columns that the run writes.
    pub outputs: Outputs,
    /// The settings that decide which experiments a search runs: objectives and budget, in words; `None`: all experiments are run.
    #[serde(default)]
    pub search: Option<String>,
    /// Value of `--limit`.
    pub limit: Option<u64>,
    /// Value of `--shard I/N`, as (I, N).
    pub shard: Option<(u64, u64)>,
    /// The sweep with every key resolved, as TOML; used to describe differences.
    pub resolved: String,
    /// Input files with their hashes; used to name files that have changed.
    pub inputs: Vec<InputFile>,
}

impl RunIdentity {
    /// Returns the identity as written by this version of the program.
    pub fn of_this_version(self, semantics: u32) -> RunIdentity {
        RunIdentity { version: env!("CARGO_PKG_VERSION").into(), semantics, layout: layout(), ..self }
    }

    /// Returns the identity with the layout of this build, in which what an earlier one wrote is passed on.
    pub(super) fn in_this_layout(self) -> RunIdentity {
        RunIdentity { layout: layout(), ..self }
    }

    /// Whether the selection includes an experiment.
    pub fn selects(&self, exp_id: u64) -> bool {
        exp_id < self.experiments
            && self.limit.is_none_or(|n| exp_id < n)
            && self.shard.is_none_or(|(i, n)| exp_id % n == i)
    }

    /// Describes what differs from `earlier`, the selection included. Empty if the results of `earlier` are results of this run.
    pub fn differences(&self, earlier: &RunIdentity) -> Vec<String> {
        let mut differences = self.sweep_differences(earlier);
        let limit = |l: Option<u64>| l.map_or("none".into(), |n| n.to_string());
        let shard = |s: Option<(u64, u64)>| s.map_or("none".into(), |(i, n)| format!("{i}/{n}"));
        for (option, was, is) in
            [("--limit", limit(earlier.limit), limit(self.limit)), ("--shard", shard(earlier.shard), shard(self.shard))]
        {
            if was != is {
                differences.push(format!("{option}: {was} there, {is} here"));
            }
        }
        differences
    }

    /// Describes what makes it another sweep or version. Empty if the two are parts of one sweep.
    pub fn sweep_differences(&self, earlier: &RunIdentity) -> Vec<String> {
        if self.layout != earlier.layout || self.version != earlier.version || self.semantics != earlier.semantics {
            let build_of = |r: &RunIdentity| format!("hyperfold {} with model {}", r.version, r.semantics);
            let build = if (&self.version, self.semantics) == (&earlier.version, earlier.semantics) {
                ", another build"
            } else {
                ""
            };
            return vec![format!("written by {}{build}; this is {}", build_of(earlier), build_of(self))];
        }
        let decisive = |r: &RunIdentity| (r.sweep.clone(), r.experiments, r.axes.clone(), r.outputs, r.search.clone());
        let same = decisive(self) == decisive(earlier);
        if same {
            return Vec::new();
        }
        let mut differences = changed_files(&earlier.inputs, &self.inputs);
        let (was, is) = (keys(&earlier.resolved), keys(&self.resolved));
        let all: BTreeMap<&String, ()> = was.keys().chain(is.keys()).map(|k| (k, ())).collect();
        let absent = "nothing".to_string();
        for key in all.into_keys() {
            let (was, is) = (was.get(key).unwrap_or(&absent), is.get(key).unwrap_or(&absent));
            if was != is {
                differences.push(format!("{key}: {was} there, {is} here"));
            }
        }
        if differences.is_empty() && self.search != earlier.search {
            let what = |s: &Option<String>| s.clone().unwrap_or_else(|| "no search".into());
            differences.push(format!("{} there, {} here", what(&earlier.search), what(&self.search)));
        }
        if differences.is_empty() {
            differences.push(format!(
                "its {} experiments are others than the {} of this sweep",
                earlier.experiments, self.experiments
            ));
        }
        if differences.len() > MAX_LISTED {
            let more = differences.len() - MAX_LISTED;
            differences.truncate(MAX_LISTED);
            differences.push(format!("{more} more"));
        }
        differences
    }
}

fn changed_files(was: &[InputFile], is: &[InputFile]) -> Vec<String> {
    let earlier_hashes: BTreeMap<&str, &str> = was.iter().map(|f| (f.path.as_str(), f.sha256.as_str())).collect();
    let changed = is.iter().filter(|f| earlier_hashes.get(f.path.as_str()).is_some_and(|hash| *hash != f.sha256));
    changed.map(|f| format!("{} has changed", f.path)).collect()
}

/// Returns the dotted keys of a resolved sweep with their values as written. Defaults, which are comments there, are included.
fn keys(resolved: &str) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    let (mut section, mut tables) = (String::new(), 0);
    for line in resolved.lines() {
        if let Some(name) = line.strip_prefix("[[").and_then(|l| l.strip_suffix("]]")) {
            tables += 1;
            section = format!("{name} {tables}.");
        } else if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((key, value)) = line.strip_prefix("# ").unwrap_or(line).split_once(" = ") {
            // A default that depends on other keys is described in words there.
            if key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'"' | b'-')) {
                keys.insert(format!("{section}{key}"), value.to_string());
            }
        }
    }
    // The name decides nothing, and limits of time and memory decide no result.
    keys.remove("name");
    keys.remove("base.limits.wall_s");
    keys.remove("base.limits.memory_gib");
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(resolved: &str, sweep: &str) -> RunIdentity {
        RunIdentity { sweep: sweep.into(), experiments: 4, resolved: resolved.into(), ..RunIdentity::default() }
            .of_this_version(1)
    }

    const SWEEP: &str = "name = \"a\"\nseed = 1\n\n[base.topology]\nlink_gbps = 400\n# buffer_mib = 32\n# bytes: 1000; with kind = \"a\": 2000\n\n[[constraints]]\nwhere = \"a\"\n";

    #[test]
    fn the_same_run_under_another_name_is_the_same() {
        let one = run(SWEEP, "x");
        assert!(one.differences(&one).is_empty());
        assert!(run(&SWEEP.replace("\"a\"\nseed", "\"b\"\nseed"), "x").differences(&one).is_empty());
    }

    #[test]
    fn what_differs_is_named() {
        let one = run(SWEEP, "x");
        let two = run(
            &SWEEP.replace("link_gbps = 400", "link_gbps = 100").replace("# buffer_mib = 32", "buffer_mib = 16"),
            "y",
        );
        let differences = two.differences(&one);
        assert_eq!(
            differences,
            ["base.topology.buffer_mib: 32 there, 16 here", "base.topology.link_gbps: 400 there, 100 here"]
        );
        let input = |hash: &str| vec![InputFile { path: "t.txt".into(), sha256: hash.into() }];
        let (a, b) =
            (RunIdentity { inputs: input("1"), ..one.clone() }, RunIdentity { inputs: input("2"), ..run(SWEEP, "z") });
        assert_eq!(b.differences(&a), ["t.txt has changed"]);
        assert_eq!(run(SWEEP, "z").differences(&one), ["its 4 experiments are others than the 4 of this sweep"]);
    }

    #[test]
    fn a_selection_matters_to_a_resumed_run_and_not_to_parts() {
        let one = run(SWEEP, "x");
        let two = RunIdentity { limit: Some(3), shard: Some((1, 2)), ..one.clone() };
        assert_eq!(two.differences(&one), ["--limit: none there, 3 here", "--shard: none there, 1/2 here"]);
        assert!(two.sweep_differences(&one).is_empty());
        assert_eq!((0..5).filter(|&id| two.selects(id)).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn another_version_is_said_before_anything_else() {
        let one = run(SWEEP, "x");
        let two = RunIdentity { version: "9.9".into(), ..run("", "y") };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            one.differences(&two),
            [format!("written by hyperfold 9.9 with model 1; this is hyperfold {version} with model 1")]
        );
    }
}
