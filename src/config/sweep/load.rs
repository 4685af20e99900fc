//! A sweep file becomes a [`Sweep`], which gives the configuration of each of its experiments.
//!
//! Layer: sweep. [`super::file::document`] reads the file and [`super::expand`] makes the experiments; here both come together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::experiment::Experiment;
use super::file::document::{Document, SetOverrides};
use super::file::include::IncludedFile;
use super::layers::Layers;
use super::method::Method;
use super::selection::Selection;
use super::{expand, resolved};
use crate::spec::{Config, Conflict, KeyId, Place, PolicyRegistry, SpecError, Value, Values};
use hyperfold_base::input;

/// A sweep, expanded and checked.
#[derive(Clone)]
pub struct Sweep {
    /// Its name, from the file.
    pub name: String,
    /// Its seed, from the file. Seeds of replicas are derived from it.
    pub seed: u64,
    /// How its experiments come from its axes.
    pub method: Method,
    /// Number of times that every point is run, each time with another seed.
    pub replicas: u32,
    /// The path of the sweep file.
    pub path: PathBuf,
    /// Dotted names of the axes, in file order.
    pub axes: Vec<String>,
    /// The experiments in order of `exp_id`; after [`Sweep::select`] only those selected.
    pub experiments: Vec<Experiment>,
    /// The number of experiments before any selection.
    pub n_experiments: u64,
    /// The sweep as TOML with every key of `[base]`. Reading it gives the same experiments.
    pub resolved_toml: String,
    /// Every input file with the SHA-256 of its content, in order of their paths.
    pub inputs: Vec<SweepInputFile>,
    /// Files whose `[base]` the sweep's own overrides, in the order of `include`. They are also among `inputs`.
    pub included: Vec<IncludedFile>,
    /// How many points `optimize` runs in full, and its objectives. It is `None` with other methods.
    pub search: Option<Search>,
    /// Notes for the user about what has no effect. They are no errors.
    pub notes: Vec<String>,
    /// Number of experiments with the same configuration and seed as an earlier one. They are simulated once, and each keeps its row.
    pub duplicates: u64,
    /// A note about them. It is `None` if there are none.
    pub duplicates_note: Option<String>,
    dir: PathBuf,
    layers: Layers,
    /// Why points cannot run, by point.
    cannot_run: Arc<HashMap<u64, Arc<str>>>,
    /// The keys of `[base]` and the places where they were written. The last entry of a key counts.
    places: Arc<[(KeyId, Place)]>,
    /// The policies that its values may name beside the built-in ones.
    registry: PolicyRegistry,
}

/// The settings of `method = "optimize"`: samples, objectives and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Number of points that are run in full. With `None` it is one of twenty candidates.
    pub samples: Option<u64>,
    /// Columns of results. If there are none, the default is used.
    pub objectives: Vec<String>,
    /// Place of the objectives in the file.
    pub place: Place,
    /// Conditions over columns of results. `limits_place` says where they were written.
    pub limits: Vec<String>,
    /// Place of the limits in the file.
    pub limits_place: Place,
}

/// A file that an experiment reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepInputFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// Reads, expands and checks the sweep file at `path`. Every error is one that the user can correct (exit code 2).
pub fn load(path: &Path, sets: &SetOverrides) -> Result<Sweep, SpecError> {
    load_with(path, sets, PolicyRegistry::EMPTY)
}

/// Does the same as [`load`]. Values may also name policies of `registry`.
pub fn load_with(path: &Path, sets: &SetOverrides, registry: &PolicyRegistry) -> Result<Sweep, SpecError> {
    let unreadable = |why: String| SpecError::Read { place: Place::file(path), why };
    let bytes = input::read_anywhere(path, input::max_tree_bytes()).map_err(|e| unreadable(e.to_string()))?;
    let text =
        String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text; save it as UTF-8".to_string()))?;
    parse_with(&text, path, sets, registry)
}

/// Does the same as [`load`] for a text. `path` is used in messages, and the paths in the text are relative to its folder.
pub fn parse(text: &str, path: &Path, sets: &SetOverrides) -> Result<Sweep, SpecError> {
    parse_with(text, path, sets, PolicyRegistry::EMPTY)
}

/// Does the same as [`parse`]. Values may also name policies of `registry`.
pub fn parse_with(text: &str, path: &Path, sets: &SetOverrides, registry: &PolicyRegistry) -> Result<Sweep, SpecError> {
    let mut doc = Document::read(text, path, sets, registry)?;
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut expanded = expand::expand(&doc, path, &dir);
    if expanded.is_err() && !sets.0.is_empty() {
        // If the file is right by itself, an axis may be unread because of what was set, which is no mistake in the file.
        let own = Document::read(text, path, &SetOverrides::default(), registry);
        doc.keeps_unread_axes = own.and_then(|own| expand::expand(&own, path, &dir)).is_ok();
        if doc.keeps_unread_axes {
            expanded = expand::expand(&doc, path, &dir);
        }
    }
    let expanded = expanded?;
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
        inputs: expanded.files.into_hashes().map(|(path, sha256)| SweepInputFile { path, sha256 }).collect(),
        notes: expanded.notes,
        duplicates: expanded.duplicates,
        duplicates_note: expanded.duplicates_note,
        cannot_run: Arc::new(expanded.cannot_run),
        places: expanded.places,
        dir,
        layers: expanded.layers,
        registry: registry.clone(),
    })
}

impl Sweep {
    /// Reads, expands and checks a sweep file.
    ///
    /// # Errors
    /// The sweep file is wrong. The error names the file, the line or the key, and the value, and says what would be right.
    pub fn load(path: impl AsRef<Path>) -> Result<Sweep, SpecError> {
        load(path.as_ref(), &SetOverrides::default())
    }

    /// Does the same for a text. `path` is used in messages, and the paths in the text are relative to its folder.
    ///
    /// # Errors
    /// It fails as [`Sweep::load`] does.
    pub fn parse(text: &str, path: &Path) -> Result<Sweep, SpecError> {
        parse(text, path, &SetOverrides::default())
    }

    /// Returns the same sweep, with keys set as `--set KEY=VALUE` sets them.
    ///
    /// # Errors
    /// It fails as [`Sweep::load`] does, or a key is an axis.
    pub fn with_set(&self, set: &[String]) -> Result<Sweep, SpecError> {
        let mut sweep = parse_with(&self.resolved_toml, &self.path, &SetOverrides(set.to_vec()), &self.registry)?;
        // The resolved text contains the values of included files, but does not name the files.
        sweep.included.clone_from(&self.included);
        let is_included = |f: &&SweepInputFile| self.included.iter().any(|i| i.path == f.path);
        sweep.inputs.extend(self.inputs.iter().filter(is_included).cloned());
        sweep.inputs.sort_by(|a, b| a.path.cmp(&b.path));
        sweep.inputs.dedup();
        Ok(sweep)
    }

    /// Returns the resolved values of an experiment.
    fn values(&self, experiment: &Experiment) -> Values {
        self.layers.values(experiment.point)
    }

    /// Returns why an experiment cannot run at all because its keys do not go together, or `None` if they do. Its row says so too.
    pub fn cannot_run(&self, experiment: &Experiment) -> Option<&str> {
        self.cannot_run.get(&experiment.point).map(|why| &**why)
    }

    /// Returns the place where a key was written that all experiments share. It is `None` for a key that is on an axis, or that nobody wrote.
    pub fn place(&self, key: KeyId) -> Option<&Place> {
        let on_axis = self.layers.axes.iter().any(|axis| axis.key == key);
        self.places.iter().rev().find(|(written, _)| *written == key && !on_axis).map(|(_, place)| place)
    }

    /// Returns the configuration of an experiment. [`load`] has checked it.
    ///
    /// # Errors
    /// Some keys do not go together; then [`Sweep::cannot_run`] says the same.
    pub fn config(&self, experiment: &Experiment) -> Result<Config, Conflict> {
        Config::new(self.values(experiment), &self.dir, experiment.seed)
    }

    /// Returns the same with other values for some keys, which need not go together.
    ///
    /// # Errors
    /// Some keys do not go together.
    pub fn config_with(&self, experiment: &Experiment, changes: &[(KeyId, Value)]) -> Result<Config, Conflict> {
        Config::new(self.layers.values_with(experiment.point, changes), &self.dir, experiment.seed)
    }

    /// Returns the experiment's value on every axis, in the order of `axes`.
    pub fn axis_values(&self, experiment: &Experiment) -> Vec<Value> {
        let mut resolved = None;
        let mut cell = |i: usize| match self.layers.design.value(experiment.point, i) {
            // This is a listed experiment that leaves the key to `[base]`.
            Value::Unset => resolved.get_or_insert_with(|| self.values(experiment)).at(self.layers.axes[i]).clone(),
            value => value.clone(),
        };
        (0..self.layers.axes.len()).map(&mut cell).collect()
    }

    /// Returns the axis values as `key = value, ...`, for messages and tables.
    pub fn axes_text(&self, experiment: &Experiment) -> String {
        self.layers.axes_text(experiment.point)
    }

    /// Keeps the experiments that `--limit` and `--shard` select. It is an error if there are none.
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
