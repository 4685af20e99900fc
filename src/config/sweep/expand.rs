//! Turns a document into experiments: every point is resolved, checked against the constraints, and given its keys.
//!
//! Layer: sweep. Only the keys of each experiment are kept; a configuration is resolved again when it is needed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::conditions::constraint::Constraint;
use super::digest::{self, Files, Hash128};
use super::experiment::{Experiment, MAX_EXPERIMENTS};
use super::file::axis::Points;
use super::file::document::{Document, Where};
use super::layers::Layers;
use super::method::Method;
use super::sample::SamplingDesign;
use super::shared_points::{self, FoundPoint};
use crate::spec::{
    Config, Conflict, Default, KeyId, KeyPath, LinkLine, Place, SpecError, Value, Values, key, mix, read_ns3_config,
};
use hyperfold_base::input;

/// The result of expanding a sweep.
pub(super) struct Expanded {
    pub layers: Layers,
    pub experiments: Vec<Experiment>,
    pub files: Files,
    /// Notes for the user about what has no effect.
    pub notes: Vec<String>,
    /// Why points cannot run, by point.
    pub cannot_run: HashMap<u64, Arc<str>>,
    /// The keys of `[base]` and the places where they were written. Later entries win.
    pub places: Arc<[(KeyId, Place)]>,
    /// Number of experiments with the same configuration and seed as an earlier one.
    pub duplicates: u64,
    /// A note about them.
    pub duplicates_note: Option<String>,
}

/// Expands and checks a whole sweep. `path` is the sweep file, and `dir` its folder.
pub(super) fn expand(doc: &Document, path: &Path, dir: &Path) -> Result<Expanded, SpecError> {
    let whole = |why: String| SpecError::Sweep { place: Place::file(path), why };
    let (axes, design) = SamplingDesign::new(doc).map_err(whole)?;
    let points = design.len();
    match points.checked_mul(u64::from(doc.replicas)) {
        Some(n) if n <= MAX_EXPERIMENTS => {}
        _ => {
            return Err(whole(format!(
                "{points} points times {} replicas are more than the {MAX_EXPERIMENTS} experiments a sweep may have; use fewer of either",
                doc.replicas
            )));
        }
    }
    let names: Vec<Arc<str>> = doc.jobs.iter().map(|job| Arc::clone(&job.name)).collect();
    let mut constraints = Vec::with_capacity(doc.constraints.len());
    for c in &doc.constraints {
        let bad = |why| SpecError::BadValue {
            place: c.place.clone(),
            key: "constraints.where".into(),
            value: c.shown(),
            why,
        };
        constraints.push((c, Constraint::parse(&c.text, &names).map_err(bad)?));
    }
    let mut run = Run {
        doc,
        path,
        dir,
        layers: Layers {
            axes,
            design: Arc::new(design),
            base: doc.base.iter().map(|(k, v, _)| (*k, v.clone())).collect(),
            jobs: names,
            job_keys: doc.jobs.iter().map(|j| j.values.iter().map(|(k, v, _)| (*k, v.clone())).collect()).collect(),
            flats: HashMap::new(),
        },
        files: Files::default(),
        notes: doc.notes.clone(),
        inert: BTreeMap::new(),
        used: Used::default(),
        cannot_run: HashMap::new(),
        reasons: HashMap::new(),
        first_conflict: None,
    };
    run.used = Used::none(run.layers.axes.len(), doc);
    for included in &doc.included {
        let hashed = run.files.hash(&included.path).map(|_| ());
        hashed.map_err(|e| SpecError::Read { place: Place::file(&included.path), why: e.to_string() })?;
    }
    let mut found = run.points(points, &constraints)?;
    if found.is_empty() {
        let why = format!("no experiments: the constraints leave none of {points} points; loosen one of them");
        return Err(SpecError::Sweep {
            place: doc.constraints.first().map_or_else(|| Place::file(path), |c| c.place.clone()),
            why,
        });
    }
    if let Some(conflict) = run.first_conflict.take().filter(|_| run.cannot_run.len() == found.len()) {
        return Err(conflict);
    }
    run.check_used(&found)?;
    let mut duplicates = 0;
    let mut duplicates_note = None;
    if run.leaves_out_duplicates() {
        run.leave_out_duplicates(&mut found);
    } else {
        let able: Vec<FoundPoint> = found.iter().filter(|p| !run.cannot_run.contains_key(&p.point)).copied().collect();
        let shared = shared_points::find(&able);
        if let Some(why) = shared_points::listed_twice(&run.layers, &shared) {
            return Err(whole(why));
        }
        duplicates = shared.len() as u64 * u64::from(doc.replicas);
        duplicates_note = shared_points::note(&run.layers, &able, &shared, u64::from(doc.replicas));
    }
    let seeds: Vec<u64> = (0..doc.replicas).map(|r| replica_seed(doc.seed, r)).collect();
    let mut experiments = Vec::with_capacity(found.len() * seeds.len());
    for FoundPoint { point, config_key, .. } in found {
        for (replica, seed) in seeds.iter().enumerate() {
            let exp_id = experiments.len() as u64;
            experiments.push(Experiment {
                exp_id,
                point,
                replica: replica as u32,
                seed: *seed,
                config_key,
                exp_key: digest::exp_key(config_key, *seed),
            });
        }
    }
    Ok(Expanded {
        layers: run.layers,
        experiments,
        files: run.files,
        notes: run.notes,
        cannot_run: run.cannot_run,
        places: doc.base.iter().map(|(key, _, place)| (*key, place.clone())).collect(),
        duplicates,
        duplicates_note,
    })
}

/// Returns the seed of a replica. It has at most 53 bits, so that every tool that reads results can represent it.
fn replica_seed(seed: u64, replica: u32) -> u64 {
    mix(seed, u64::from(replica), 7) >> 11
}

struct Run<'a> {
    doc: &'a Document,
    path: &'a Path,
    dir: &'a Path,
    layers: Layers,
    files: Files,
    notes: Vec<String>,
    /// Keys in configuration files that have no effect, each with the place where it was first found, the reason, and the number of files that have it.
    inert: BTreeMap<String, (String, &'static str, usize)>,
    used: Used,
    /// Why points cannot run, by point. Equal reasons share one text.
    cannot_run: HashMap<u64, Arc<str>>,
    reasons: HashMap<String, Arc<str>>,
    /// The first reason, as an error of the whole sweep.
    first_conflict: Option<SpecError>,
}

/// Number of points that one thread resolves at a time. It bounds what is held before it is merged.
const POINTS_A_BLOCK: u64 = 512;
/// Blocks per thread that are resolved before they are merged.
const BLOCKS_A_THREAD: usize = 8;

/// Which entries of the sweep file are read by some point.
#[derive(Default)]
struct Used {
    axes: Vec<bool>,
    base: Vec<bool>,
    jobs: Vec<Vec<bool>>,
}

impl Used {
    fn none(axes: usize, doc: &Document) -> Used {
        let jobs = doc.jobs.iter().map(|job| vec![false; job.values.len()]).collect();
        Used { axes: vec![false; axes], base: vec![false; doc.base.len()], jobs }
    }

    /// Adds what the values of a point read. Returns the axes among it, as [`FoundPoint::read`] has them.
    fn add(&mut self, values: &Values, axes: &[KeyPath], doc: &Document) -> u64 {
        let mut read = 0u64;
        for (i, (used, k)) in self.axes.iter_mut().zip(axes).enumerate() {
            let reads = is_read(values, *k);
            *used |= reads;
            read |= u64::from(reads).checked_shl(i as u32).unwrap_or(0);
        }
        for (used, (k, _, _)) in self.base.iter_mut().zip(&doc.base) {
            *used = *used || is_read(values, (*k).into());
        }
        for ((used, job), number) in self.jobs.iter_mut().zip(&doc.jobs).zip(0..) {
            for (used, (key, _, _)) in used.iter_mut().zip(&job.values) {
                *used = *used || is_read(values, KeyPath { job: Some(number), key: *key });
            }
        }
        read
    }

    /// Adds what other points read.
    fn merge(&mut self, other: &Used) {
        let own = [&mut self.axes, &mut self.base].into_iter().chain(&mut self.jobs);
        let others = [&other.axes, &other.base].into_iter().chain(&other.jobs);
        for (own, other) in own.zip(others) {
            own.iter_mut().zip(other).for_each(|(own, other)| *own |= other);
        }
    }
}

/// The result of resolving a block of points.
struct Block {
    /// The points that meet the constraints, each with the reason why it cannot run.
    found: Vec<(FoundPoint, Option<Box<Conflict>>)>,
    used: Used,
}

type ParsedConstraint<'a> = (&'a Where, Constraint);

impl Run<'_> {
    /// Resolves, filters and checks all points. Returns those that meet the constraints, whether they can run or not.
    fn points(&mut self, n: u64, constraints: &[ParsedConstraint<'_>]) -> Result<Vec<FoundPoint>, SpecError> {
        self.read_configs(n)?;
        let mut found = Vec::new();
        let blocks: Vec<Range<u64>> =
            (0..n.div_ceil(POINTS_A_BLOCK)).map(|b| b * POINTS_A_BLOCK..n.min((b + 1) * POINTS_A_BLOCK)).collect();
        for blocks in blocks.chunks(rayon::current_num_threads().max(1) * BLOCKS_A_THREAD) {
            let run = &*self;
            let resolved: Vec<_> = blocks.par_iter().map(|points| run.block(points.clone(), constraints)).collect();
            // Blocks are merged in the order of their points, so that every message is the same on any number of threads.
            for block in resolved {
                let block = block?;
                self.used.merge(&block.used);
                for (point, conflict) in block.found {
                    if let Some(conflict) = conflict {
                        self.refuse(point.point, *conflict);
                    }
                    found.push(point);
                }
            }
        }
        Ok(found)
    }

    /// Reads the configuration files that points name.
    fn read_configs(&mut self, points: u64) -> Result<(), SpecError> {
        let differ = self.layers.axes.contains(&KeyId::TransportConfig.into());
        let mut overlay = Vec::new();
        for point in 0..if differ { points } else { points.min(1) } {
            self.layers.overlay(point, &mut overlay);
            let file = self.layers.config_file(&overlay);
            if !self.layers.flats.contains_key(file) {
                self.read_config(file.into(), point)?;
            }
        }
        Ok(())
    }

    /// Resolves, filters and checks some points.
    fn block(&self, points: Range<u64>, constraints: &[ParsedConstraint<'_>]) -> Result<Block, SpecError> {
        let mut block = Block { found: Vec::new(), used: Used::none(self.layers.axes.len(), self.doc) };
        let mut overlay = Vec::new();
        let mut canonical = String::with_capacity(4096);
        let first_seed = replica_seed(self.doc.seed, 0);
        // One allocation serves all points: each configuration takes it and returns it.
        let mut values = Values::layered(&[]);
        for point in points {
            self.layers.overlay(point, &mut overlay);
            let file = self.layers.config_file(&overlay);
            values.copy_from(self.layers.flats.get(file).expect("the files of all points were read"));
            for (k, v) in overlay.drain(..) {
                values.set_at(k, v);
            }
            values.derive();
            if !self.meets(point, &values, constraints)? {
                continue;
            }
            digest::canonical(&values, self.dir, &self.files, &mut canonical)
                .map_err(|(k, e)| self.unreadable(point, k, &values, &e.to_string()))?;
            let read = block.used.add(&values, &self.layers.axes, self.doc);
            let found = FoundPoint { point, config_key: digest::config_key(&canonical), read };
            let conflict;
            (values, conflict) = match self.check(values, first_seed) {
                Ok(values) => (values, None),
                Err(conflict) => (Values::layered(&[]), Some(Box::new(conflict))),
            };
            block.found.push((found, conflict));
        }
        Ok(block)
    }

    /// Whether the values of a point meet all constraints.
    fn meets(&self, point: u64, values: &Values, constraints: &[ParsedConstraint<'_>]) -> Result<bool, SpecError> {
        let mut keep = true;
        for (c, constraint) in constraints {
            keep &= constraint.holds(values).map_err(|why| {
                let axes = self.layers.axes_text(point);
                let why = if axes.is_empty() { why } else { format!("{why} (experiment with {axes})") };
                SpecError::BadValue { place: c.place.clone(), key: "constraints.where".into(), value: c.shown(), why }
            })?;
        }
        Ok(keep)
    }

    /// Converts the values of a point to a configuration, and checks what can be checked without building its network.
    fn check(&self, values: Values, seed: u64) -> Result<Values, Conflict> {
        let config = Config::new(values, self.dir, seed)?;
        if !config.values.is(KeyId::TopologyKind, "file") {
            config.transport(config.topology.link_bps)?;
        }
        Ok(config.values)
    }

    /// Records that a point cannot run, and why.
    fn refuse(&mut self, point: u64, conflict: Conflict) {
        let name = conflict.name();
        let Conflict { job, key, why } = conflict;
        let job = job.and_then(|job| self.layers.jobs.iter().position(|j| *j == job)).map(|job| job as u16);
        let k = KeyPath { job, key };
        let values = self.layers.values(point);
        let reason = match values.at(k) {
            Value::Unset => match self.written(point, k) {
                Some(written) => format!("`{name} = {}`: {why}", written.to_toml()),
                None => format!("`{name}` is missing; {why}"),
            },
            value => format!("`{name} = {}`: {why}", value.to_toml()),
        };
        let shared = self.reasons.entry(reason).or_insert_with_key(|text| text.as_str().into());
        self.cannot_run.insert(point, Arc::clone(shared));
        if self.first_conflict.is_none() {
            self.first_conflict = Some(self.conflict(point, k, &values, why));
        }
    }

    /// Reads a configuration file of the reference, if one is named, and lays `[base]` over it.
    fn read_config(&mut self, file: Arc<str>, point: u64) -> Result<(), SpecError> {
        let mut file_values = Vec::new();
        if !file.is_empty() {
            let path = self.dir.join(&*file);
            let hashed = self.files.hash(&path).map(|_| ());
            let read = hashed.and_then(|()| input::read_table(&path));
            let text = read.map_err(|e| {
                self.unreadable(point, KeyId::TransportConfig.into(), &text_only(&file), &e.to_string())
            })?;
            let config = read_ns3_config(&text, &path)?;
            for n in config.notes {
                let first = format!("{}:{}", path.display(), n.line);
                self.inert.entry(n.key).or_insert((first, n.why, 0)).2 += 1;
            }
            file_values = config.values;
            if self.layers.names_key(KeyId::Outages) {
                // Both keys say what fails, and how soon paths avoid it: the file's do not mix with the sweep's.
                file_values.retain(|(key, _)| !matches!(key, KeyId::Outages | KeyId::RerouteUs));
            }
            let link_notes = self.link_notes(&path, &config.outages);
            self.notes.extend(link_notes);
        }
        let flat = self.layers.flat(&file_values);
        self.layers.flats.insert(file, flat);
        Ok(())
    }

    /// Returns notes on lines of a configuration file about links that fail or lose packets.
    fn link_notes(&self, path: &Path, lines: &[LinkLine]) -> Vec<String> {
        let yields = self.layers.names_key(KeyId::Outages);
        let note = |line: &LinkLine| {
            let said = match (yields, line.remark.as_str()) {
                (true, _) => "has no effect here: topology.outages of the sweep file takes its place",
                (false, "") => return None,
                (false, remark) => remark,
            };
            Some(format!("{}:{}: `{}` {said}", path.display(), line.line, line.key))
        };
        lines.iter().filter_map(note).collect()
    }

    /// Returns the value that was written for a key of a point although it stands for the default, such as 0 GPUs.
    fn written(&self, point: u64, k: KeyPath) -> Option<Value> {
        let axis_value =
            self.layers.axes.iter().position(|a| *a == k).map(|i| self.layers.design.value(point, i).clone());
        let job_values = k.job.map(|job| &self.doc.jobs[usize::from(job)].values);
        let written = job_values.into_iter().flat_map(|values| values.iter().rev()).chain(self.doc.base.iter().rev());
        let base_value = || written.into_iter().find(|(key, _, _)| *key == k.key).map(|(_, value, _)| value.clone());
        axis_value.filter(|value| *value != Value::Unset).or_else(base_value)
    }

    /// Returns the place where a key of a point was written.
    fn place(&self, point: u64, k: KeyPath) -> Place {
        let axes = self.layers.axes_text(point);
        let on_axis = self
            .layers
            .axes
            .iter()
            .position(|a| *a == k)
            .is_some_and(|i| *self.layers.design.value(point, i) != Value::Unset);
        // A job's key may also be written in `[base]`, for all jobs.
        let job_values = k.job.map(|job| &self.doc.jobs[usize::from(job)].values);
        let written = job_values.into_iter().flat_map(|values| values.iter().rev()).chain(self.doc.base.iter().rev());
        match written.into_iter().find(|(written, _, _)| *written == k.key) {
            Some((_, _, place)) if !on_axis => place.clone(),
            _ => Place::Experiment { path: self.path.to_path_buf(), axes },
        }
    }

    fn conflict(&self, point: u64, k: KeyPath, values: &Values, why: String) -> SpecError {
        let place = self.place(point, k);
        let axes = self.layers.axes_text(point);
        let why = if axes.is_empty() || matches!(place, Place::Experiment { .. }) {
            why
        } else {
            format!("{why} (experiment with {axes})")
        };
        let key = k.name(&self.layers.jobs).into_owned();
        match values.at(k) {
            Value::Unset => match self.written(point, k) {
                Some(written) => SpecError::BadValue { place, key, value: written.to_toml(), why },
                None => SpecError::Missing { place, key, hint: why },
            },
            value => SpecError::BadValue { place, key, value: value.to_toml(), why },
        }
    }

    fn unreadable(&self, point: u64, k: KeyPath, values: &Values, why: &str) -> SpecError {
        let own = k.job.map_or(values, |job| values.jobs()[usize::from(job)].values());
        // The message names the key that the user wrote.
        let k = match k.key {
            KeyId::ServerXml if !own.given(k.key) && own.has(KeyId::NcclTopoFile) => {
                KeyPath { key: KeyId::NcclTopoFile, ..k }
            }
            _ => k,
        };
        let (text, name) = (own.text(k.key), k.name(&self.layers.jobs).into_owned());
        if text.is_empty() {
            let when = match key(k.key).default {
                Default::None(when) => when,
                _ => "it must not be empty",
            };
            let hint = format!("{when}; give a file's path, relative to the sweep file");
            return SpecError::Missing { place: self.place(point, k), key: name, hint };
        }
        let file = self.dir.join(text);
        let what = if k.key == KeyId::Cdf {
            format!("it is neither a built-in distribution ({}) nor a file: ", crate::spec::BUILT_IN_CDFS.join(", "))
        } else {
            String::new()
        };
        let why =
            format!("{what}cannot read {}: {why}; give the path of a file, relative to the sweep file", file.display());
        SpecError::BadValue { place: self.place(point, k), key: name, value: own.get(k.key).to_toml(), why }
    }

    /// Whether an axis that nothing reads has a value other than the default, so that the user may have expected an effect.
    fn is_mistaken(&self, axis: usize, found: &[FoundPoint]) -> bool {
        let default = key(self.layers.axes[axis].key).plain_default();
        let values = found.iter().map(|p| self.layers.design.value(p.point, axis));
        default == Value::Unset || values.into_iter().any(|value| *value != default && *value != Value::Unset)
    }

    /// Rejects axes that nothing reads, unless they have the default value everywhere or `--set` made them so. Notes these, and keys of `[base]` that nothing
    /// reads.
    fn check_used(&mut self, found: &[FoundPoint]) -> Result<(), SpecError> {
        let unread: Vec<usize> =
            (0..self.used.axes.len()).filter(|&axis| !self.used.axes[axis] && self.is_mistaken(axis, found)).collect();
        for axis in unread {
            let k = self.layers.axes[axis];
            let declared = self.doc.axes.iter().find(|a| a.path == k).map(|a| a.place.clone());
            let place = declared.or_else(|| {
                self.doc.rows.iter().find(|r| r.values.iter().any(|(key, _)| *key == k)).map(|r| r.place.clone())
            });
            let place = place.unwrap_or_else(|| Place::file(self.path));
            let (name, doc) = (k.name(&self.layers.jobs), key(k.key).plain_doc());
            if self.doc.keeps_unread_axes {
                self.notes.push(format!("{place}: the axis `{name}` has no effect with what --set has set ({doc})"));
                continue;
            }
            let n = found.len();
            let why = format!(
                "nothing reads the axis `{name}` in any of the {n} experiments ({doc}); remove it, or choose what reads it"
            );
            return Err(SpecError::Sweep { place, why });
        }
        if let Some(axis) = self.doc.axes.iter().find(|a| a.path.key == KeyId::WorkloadSeed) {
            self.notes.push(format!(
                "{}: the axis `{}` makes one configuration of every seed; `sweep.replicas` repeats each configuration with seeds of its own, and tables and pages then show means and deviations",
                axis.place, axis.name
            ));
        }
        if let Some(axis) = self.doc.axes.iter().find(|a| a.path.key == KeyId::RoutingSeed) {
            self.notes.push(format!(
                "{}: the axis `routing.seed` makes one configuration of every seed, and tables rank them as if one could be chosen; no network lets you: read how far they lie apart",
                axis.place
            ));
        }
        for (key, (first, why, n)) in &self.inert {
            let others = if *n > 1 { format!(" and in {} other files", n - 1) } else { String::new() };
            self.notes.push(format!("{first}: `{key}` has no effect here{others}: {why}"));
        }
        if let (Some(place), Method::Grid | Method::Zip | Method::List) = (&self.doc.samples_place, self.doc.method) {
            self.notes.push(format!(
                "{place}: `sweep.samples` has no effect with method = \"{}\"; random, lhs and optimize read it",
                self.doc.method.name()
            ));
        }
        for (key, asked) in [("objectives", &self.doc.objectives), ("limits", &self.doc.limits)] {
            if let (Some((_, place)), Method::Grid | Method::Zip | Method::List | Method::Random | Method::Lhs) =
                (asked, self.doc.method)
            {
                self.notes.push(format!(
                    "{place}: `sweep.{key}` has no effect with method = \"{}\"; optimize reads it",
                    self.doc.method.name()
                ));
            }
        }
        self.note_replaced_values(found);
        let base_entries = self.doc.base.iter().zip(&self.used.base).map(|(entry, used)| (None, entry, used));
        let job_entries = (0u16..).zip(self.doc.jobs.iter().zip(&self.used.jobs));
        let job_entries = job_entries.flat_map(|(number, (job, used))| {
            job.values.iter().zip(used).map(move |(entry, used)| (Some(number), entry, used))
        });
        for (job, (k, _, place), _) in base_entries.chain(job_entries).filter(|(_, _, used)| !**used) {
            // This key decides which others have an effect, and writing out its default is no mistake.
            if *k == KeyId::Mode {
                continue;
            }
            let name = KeyPath { job, key: *k }.name(&self.layers.jobs);
            self.notes.push(format!(
                "{place}: `{name}` has no effect on any experiment of this sweep ({})",
                key(*k).plain_doc()
            ));
        }
        Ok(())
    }

    /// Notes values of the sweep's own `[base]` and of its jobs that an axis replaces in every experiment. A value that is also one of the axis' is no mistake,
    /// nor is one of an included file, which the sweep's own keys override.
    fn note_replaced_values(&mut self, found: &[FoundPoint]) {
        // Rows of a list fall back to `[base]`, so its values are no mistake there.
        if self.doc.method == Method::List {
            return;
        }
        let of_base = self.doc.base.iter().map(|entry| (None, entry));
        let of_jobs = (0u16..).zip(&self.doc.jobs);
        let of_jobs = of_jobs.flat_map(|(job, table)| table.values.iter().map(move |entry| (Some(job), entry)));
        for (job, (key, written, place)) in of_base.chain(of_jobs) {
            let k = KeyPath { job, key: *key };
            let is_own = matches!(place, Place::File { path, .. } if path == self.path);
            let Some(axis) = self.layers.axes.iter().position(|a| *a == k).filter(|_| is_own) else { continue };
            let is_replaced = |p: &FoundPoint| {
                let value = self.layers.design.value(p.point, axis);
                *value != Value::Unset && value != written
            };
            if found.iter().all(is_replaced) {
                let name = k.name(&self.layers.jobs);
                self.notes.push(format!(
                    "{place}: `{name} = {}` is in no experiment, because `{name}` is also an axis, which wins; remove one of them",
                    written.to_toml()
                ));
            }
        }
    }

    /// Whether points with the same configuration as others are left out: points that were drawn at random, which nobody wrote down, and candidates of a
    /// search, of which few get a row anyway.
    fn leaves_out_duplicates(&self) -> bool {
        matches!(self.doc.method, Method::Random | Method::Lhs | Method::Optimize)
    }

    /// Keeps the first of the points that differ in nothing that is read.
    fn leave_out_duplicates(&mut self, found: &mut Vec<FoundPoint>) {
        let mut first: HashMap<Hash128, u64> = HashMap::with_capacity(found.len());
        let mut pair = None;
        let n_found = found.len();
        found.retain(|p| match first.entry(p.config_key) {
            std::collections::hash_map::Entry::Occupied(e) => {
                pair = pair.or(Some((*e.get(), p.point)));
                false
            }
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert(p.point);
                true
            }
        });
        if let Some((a, b)) = pair {
            let n = n_found - found.len();
            let ranges = self.doc.axes.iter().any(|a| matches!(a.points, Points::Range { .. }));
            let drawn = if ranges || self.doc.method != Method::Optimize { "drawn points" } else { "points" };
            let unread = self.unread_difference(a, b);
            self.notes.push(format!(
                "{n} of {n_found} {drawn} are left out, because they are the same as others: [{}] and [{}]{unread}",
                self.layers.axes_text(a),
                self.layers.axes_text(b)
            ));
        }
    }

    /// Names the axes in which two equal experiments differ.
    fn unread_difference(&self, a: u64, b: u64) -> String {
        let differ = |i: &usize| self.layers.design.value(a, *i) != self.layers.design.value(b, *i);
        let names: Vec<String> =
            (0..self.layers.axes.len()).filter(differ).map(|i| format!("`{}`", self.layers.name(i))).collect();
        if names.is_empty() { String::new() } else { format!(" (there, {} changes nothing)", names.join(" and ")) }
    }
}

/// Whether an experiment with these values reads a key. If there are jobs, a key of the workload is the default for those that do not write it themselves.
fn is_read(values: &Values, k: KeyPath) -> bool {
    let key = key(k.key);
    let is_default = || values.jobs().iter().any(|job| key.applies(job.values()) && !job.writes(k.key));
    match k.job {
        Some(job) => key.applies(values.jobs()[usize::from(job)].values()),
        None if !values.jobs().is_empty() && key.name.starts_with("workload.") => is_default(),
        None => key.applies(values) || is_default(),
    }
}

/// Returns values with nothing but the path of a configuration file, for a message.
fn text_only(path: &str) -> Values {
    Values::layered(&[&[(KeyId::TransportConfig, Value::Text(path.into()))]])
}
