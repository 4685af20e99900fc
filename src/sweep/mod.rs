//! Sweeps: from a sweep file to experiments that are known to be sound, distinct and complete.
//!
//! Layer: sweep, beside `spec`. Reads the sweep file and hashes the files it names; builds no network and no flow.

mod axis;
pub mod condition;
mod condition_code;
mod condition_value;
mod constraint;
mod digest;
mod document;
mod expand;
mod include;
mod key_names;
mod layers;
mod method;
mod resolved;
mod sample;
mod schema;
mod shared_points;
mod sweep_text;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use digest::{Hash128, SEMANTIC_VERSION};
pub use document::SetOverrides;
pub use include::IncludedFile;
pub use method::Method;
pub use schema::{SchemaOf, json_schema};

use crate::input;
use crate::spec::{Config, Conflict, KeyId, Place, SpecError, Value, Values};

/// The most experiments a sweep may have: expanding so many takes seconds and fits a laptop.
pub const MAX_EXPERIMENTS: u64 = 1_000_000;

/// One experiment of a sweep. What it consists of is resolved on demand: [`Sweep::config`], [`Sweep::axis_values`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Index after constraints, before `--limit` and `--shard`. Replicas of a point are neighbours.
    pub exp_id: u64,
    /// Which point of the axes, before constraints.
    pub point: u64,
    pub replica: u32,
    /// The replica's seed, 53 bits; every random choice of the experiment comes from it.
    pub seed: u64,
    /// The resolved configuration with its files and the engine's semantics; shared by replicas.
    pub config_key: Hash128,
    /// The same with the replica's seed.
    pub exp_key: Hash128,
}

/// A sweep, expanded and checked.
#[derive(Clone)]
pub struct Sweep {
    pub name: String,
    pub seed: u64,
    pub method: Method,
    /// Repeats of every point with other seeds.
    pub replicas: u32,
    /// The sweep file.
    pub path: PathBuf,
    /// Dotted names of the axes, in file order.
    pub axes: Vec<String>,
    /// In order of `exp_id`, after [`Sweep::select`] those selected.
    pub experiments: Vec<Experiment>,
    /// The number of experiments before any selection.
    pub n_experiments: u64,
    /// The sweep as TOML with every key of `[base]`; reading it gives the same experiments.
    pub resolved_toml: String,
    /// Every input file with the SHA-256 of its content, ascending by path.
    pub inputs: Vec<SweepInputFile>,
    /// Files whose `[base]` lies below the sweep's, in the order of `include`; they are among `inputs`.
    pub included: Vec<IncludedFile>,
    /// How many points `optimize` runs in full, and what it looks for; `None` with other methods.
    pub search: Option<Search>,
    /// What has no effect, for the user to know; not errors.
    pub notes: Vec<String>,
    /// Experiments with the configuration and seed of one before them: they are simulated once, and each keeps its row.
    pub duplicates: u64,
    /// The same in words; `None` where there are none.
    pub duplicates_note: Option<String>,
    dir: PathBuf,
    layers: layers::Layers,
    /// Why points cannot run, by point.
    cannot_run: Arc<HashMap<u64, Arc<str>>>,
    /// Where keys of `[base]` were written, the last of each counts.
    places: Arc<[(KeyId, Place)]>,
}

/// What `method = "optimize"` was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Points to run in full; `None`: one of twenty candidates.
    pub samples: Option<u64>,
    /// Columns of results; none: the default.
    pub objectives: Vec<String>,
    /// Where they were written.
    pub place: Place,
    /// Conditions over columns of results, and where they were written.
    pub limits: Vec<String>,
    pub limits_place: Place,
}

/// A file an experiment reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepInputFile {
    pub path: PathBuf,
    /// Hexadecimal.
    pub sha256: String,
}

/// `--limit` and `--shard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only experiments with a smaller `exp_id`.
    pub limit: Option<u64>,
    pub shard: Option<Shard>,
}

/// Experiments whose `exp_id` modulo `of` is `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub index: u64,
    pub of: u64,
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// `I/N` with `0 <= I < N`.
    fn from_str(s: &str) -> Result<Shard, String> {
        let parts = s.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match parts {
            Some((index, of)) if index < of => Ok(Shard { index, of }),
            _ => Err(format!("`{s}` is not a shard; write I/N with I from 0 to N - 1, for example 0/4")),
        }
    }
}

/// Reads, expands and checks the sweep file at `path`. Every error is the user's to mend (exit code 2).
pub fn load(path: &Path, sets: &SetOverrides) -> Result<Sweep, SpecError> {
    let unreadable = |why: String| SpecError::Read { place: Place::file(path), why };
    let bytes = input::read_anywhere(path, input::most_tree()).map_err(|e| unreadable(e.to_string()))?;
    let text =
        String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text; save it as UTF-8".to_string()))?;
    parse(&text, path, sets)
}

/// [`load`] for text at hand; `path` is named in messages, and its folder is what the file's paths are relative to.
pub fn parse(text: &str, path: &Path, sets: &SetOverrides) -> Result<Sweep, SpecError> {
    let doc = document::Document::read(text, path, sets)?;
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let expanded = expand::expand(&doc, path, &dir)?;
    let search = (doc.method == Method::Optimize).then(|| {
        let (objectives, place) = doc.objectives.clone().unwrap_or_else(|| (Vec::new(), Place::file(path)));
        let (limits, limits_place) = doc.limits.clone().unwrap_or_else(|| (Vec::new(), Place::file(path)));
        let samples = doc.samples_place.as_ref().map(|_| doc.samples);
        Search { samples, objectives, place, limits, limits_place }
    });
    Ok(Sweep {
        search,
        resolved_toml: resolved::toml(&doc),
        included: doc.included,
        name: doc.name,
        seed: doc.seed,
        method: doc.method,
        replicas: doc.replicas,
        path: path.to_path_buf(),
        axes: (0..expanded.layers.axes.len()).map(|axis| expanded.layers.name(axis).into_owned()).collect(),
        n_experiments: expanded.experiments.len() as u64,
        experiments: expanded.experiments,
        inputs: expanded.files.0.into_iter().map(|(path, sha256)| SweepInputFile { path, sha256 }).collect(),
        notes: expanded.notes,
        duplicates: expanded.duplicates,
        duplicates_note: expanded.duplicates_note,
        cannot_run: Arc::new(expanded.cannot_run),
        places: expanded.places,
        dir,
        layers: expanded.layers,
    })
}

impl Sweep {
    /// Reads, expands and checks a sweep file.
    ///
    /// # Errors
    /// What is wrong with it, with file, line or key, value and what would be right.
    pub fn load(path: impl AsRef<Path>) -> Result<Sweep, SpecError> {
        load(path.as_ref(), &SetOverrides::default())
    }

    /// The same for a text at hand. `path` is named in messages, and its folder is what the text's paths are relative to.
    ///
    /// # Errors
    /// As [`Sweep::load`].
    pub fn parse(text: &str, path: &Path) -> Result<Sweep, SpecError> {
        parse(text, path, &SetOverrides::default())
    }

    /// The same sweep with keys set as `--set KEY=VALUE` sets them.
    ///
    /// # Errors
    /// As [`Sweep::load`], or a key is an axis.
    pub fn with_set(&self, set: &[String]) -> Result<Sweep, SpecError> {
        let mut sweep = parse(&self.resolved_toml, &self.path, &SetOverrides(set.to_vec()))?;
        // The resolved text holds what included files say.
        sweep.included.clone_from(&self.included);
        let of_included = |f: &&SweepInputFile| self.included.iter().any(|i| i.path == f.path);
        sweep.inputs.extend(self.inputs.iter().filter(of_included).cloned());
        sweep.inputs.sort_by(|a, b| a.path.cmp(&b.path));
        sweep.inputs.dedup();
        Ok(sweep)
    }

    /// The resolved values of an experiment.
    fn values(&self, experiment: &Experiment) -> Values {
        self.layers.values(experiment.point)
    }

    /// Why an experiment cannot run whatever happens, because its keys do not go together; `None` where they do. Its row says so.
    pub fn cannot_run(&self, experiment: &Experiment) -> Option<&str> {
        self.cannot_run.get(&experiment.point).map(|why| &**why)
    }

    /// Where a key was written that all experiments have alike; `None` of one that is on an axis, or that nobody wrote.
    pub fn place(&self, key: KeyId) -> Option<&Place> {
        let on_axis = self.layers.axes.iter().any(|axis| axis.key == key);
        self.places.iter().rev().find(|(written, _)| *written == key && !on_axis).map(|(_, place)| place)
    }

    /// The configuration of an experiment. [`load`] has checked it.
    ///
    /// # Errors
    /// What does not fit together, where [`Sweep::cannot_run`] says so.
    pub fn config(&self, experiment: &Experiment) -> Result<Config, Conflict> {
        Config::new(self.values(experiment), &self.dir, experiment.seed)
    }

    /// The same with other values of some keys, which need not be sound together.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn config_with(&self, experiment: &Experiment, changes: &[(KeyId, Value)]) -> Result<Config, Conflict> {
        Config::new(self.layers.values_with(experiment.point, changes), &self.dir, experiment.seed)
    }

    /// The experiment's value on every axis, in the order of `axes`.
    pub fn axis_values(&self, experiment: &Experiment) -> Vec<Value> {
        let mut resolved = None;
        let mut cell = |i: usize| match self.layers.design.value(experiment.point, i) {
            // A listed experiment that leaves the key to [base].
            Value::Unset => resolved.get_or_insert_with(|| self.values(experiment)).at(self.layers.axes[i]).clone(),
            value => value.clone(),
        };
        (0..self.layers.axes.len()).map(&mut cell).collect()
    }

    /// The axis values as `key = value, ...`, for messages and tables.
    pub fn axes_text(&self, experiment: &Experiment) -> String {
        self.layers.axes_text(experiment.point)
    }

    /// Keeps what `--limit` and `--shard` select. An error if that is nothing.
    pub fn select(&mut self, selection: &Selection) -> Result<(), SpecError> {
        let keep = |e: &Experiment| {
            selection.limit.is_none_or(|n| e.exp_id < n) && selection.shard.is_none_or(|s| e.exp_id % s.of == s.index)
        };
        self.experiments.retain(keep);
        if self.experiments.is_empty() {
            let n = self.n_experiments;
            let why = format!(
                "no experiments: --limit and --shard select none of {n}; --limit must be at least 1, and --shard I/N needs an I below {n}"
            );
            return Err(SpecError::Sweep { place: Place::file(&self.path), why });
        }
        Ok(())
    }
}
