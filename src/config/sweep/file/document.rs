//! The sweep file as it was written: names, values and axes, each checked by itself and kept with its place.
//!
//! Layer: sweep. It expands nothing and does not check combinations of values.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::axis::{DeclaredAxis, read_axis};
use super::include::{self, BaseKeys, IncludedFile};
use super::key_names::KnownKey;
use super::sweep_text::{SweepText, is_section, known, leaves};
use crate::spec::{KeyId, KeyPath, Place, PolicyRegistry, SpecError, Value, alternatives, find, wrong_job_name};
use crate::sweep::experiment::MAX_EXPERIMENTS;
use crate::sweep::method::Method;
use hyperfold_base::nearest::nearest;
use hyperfold_base::printable::shortened;

/// The names that may stand at the top of a sweep file.
pub(in crate::sweep) const TOP_KEYS: [&str; 9] =
    ["name", "seed", "include", "base", "job", "sweep", "axes", "constraints", "experiment"];
/// The names that may stand in `[sweep]`.
pub(in crate::sweep) const SWEEP_KEYS: [&str; 5] = ["method", "samples", "replicas", "objectives", "limits"];
/// Maximum number of jobs in a sweep. The limit is ours; networks of this size are never shared by more.
const MAX_JOBS: usize = 1024;
/// Most bytes in a sweep's name.
pub(in crate::sweep) const NAME_LENGTH: usize = 200;

/// One `[[experiment]]` table.
pub(in crate::sweep) struct ExperimentSection {
    pub place: Place,
    pub values: Vec<(KeyPath, Value)>,
}

/// One `[[job]]` table.
pub(in crate::sweep) struct JobTable {
    pub name: Arc<str>,
    /// The keys in the table, followed by those from `--set`. Later entries win.
    pub values: Vec<(KeyId, Value, Place)>,
}

/// A constraint, and the place where it was written.
pub(in crate::sweep) struct Where {
    pub text: String,
    pub place: Place,
}

impl Where {
    /// Returns the condition, shortened for a message.
    pub(in crate::sweep) fn shown(&self) -> String {
        format!("\"{}\"", shortened(&self.text, 80).escape_default())
    }
}

/// Everything that a sweep file says, with `--set` applied.
pub(in crate::sweep) struct Document {
    pub name: String,
    pub seed: u64,
    /// The files that `include` names.
    pub included: Vec<IncludedFile>,
    /// The keys of `[base]`: those of included files, then those of the sweep in file order, then those from `--set`. Later entries win.
    pub base: BaseKeys,
    /// The jobs, in file order.
    pub jobs: Vec<JobTable>,
    pub method: Method,
    pub samples: u64,
    /// Place of `samples` in the file, if it was written.
    pub samples_place: Option<Place>,
    /// The objectives of `optimize`, and the place where they were written.
    pub objectives: Option<(Vec<String>, Place)>,
    /// Conditions over result columns that the points chosen by a search must meet, and the place where they were written.
    pub limits: Option<(Vec<String>, Place)>,
    pub replicas: u32,
    /// The axes, in file order.
    pub axes: Vec<DeclaredAxis>,
    pub rows: Vec<ExperimentSection>,
    pub constraints: Vec<Where>,
    /// Notes for the user about values that later ones replace.
    pub notes: Vec<String>,
    /// Whether an axis that nothing reads is noted instead of refused, because the file is right without `--set`.
    pub keeps_unread_axes: bool,
}

/// Names that users may try instead of those in [`TOP_KEYS`] and [`SWEEP_KEYS`].
const TOP_ALIASES: &[(&str, &[&str])] = &[
    ("name", &["title", "id"]),
    ("include", &["includes", "import", "imports", "extends", "overlay", "overlays"]),
    ("base", &["defaults", "default", "common", "fixed", "config", "settings", "parameters", "params"]),
    ("sweep", &["search", "sampling", "optimize", "method", "samples", "replicas", "objectives", "limits"]),
    ("axes", &["grid", "matrix", "vary", "variables", "sweeps"]),
    ("constraints", &["where", "filter", "filters", "conditions", "require", "exclude"]),
    ("experiment", &["runs", "points", "cases", "configurations"]),
];
const SWEEP_ALIASES: &[(&str, &[&str])] = &[
    ("method", &["mode", "kind", "type", "strategy", "sampler", "algorithm"]),
    ("samples", &["n", "n_samples", "num_samples", "count", "points", "budget", "trials"]),
    ("replicas", &["repeats", "repeat", "repetitions", "replicates", "reps", "runs", "seeds"]),
    ("objectives", &["metric", "metrics", "goal", "goals", "target", "minimize", "minimise", "maximize", "maximise"]),
];

/// Returns the name that an alias stands for.
fn aliased(aliases: &[(&'static str, &[&str])], name: &str) -> Option<&'static str> {
    aliases.iter().find(|(_, words)| words.contains(&name)).map(|(known, _)| *known)
}

/// Returns a hint for an unknown name at the top of the file.
fn top_hint(name: &str) -> String {
    if let Some(k) = aliased(TOP_ALIASES, name) {
        let inside = if SWEEP_KEYS.contains(&name) { format!(" `{name}` stands below it") } else { String::new() };
        return format!("did you mean `{k}`?{inside}");
    }
    if let Some(k) = nearest(name, TOP_KEYS.into_iter()) {
        return format!("did you mean `{k}`?");
    }
    if find(name).is_some() || is_section(name) {
        return format!("write [base.{name}]: keys of experiments stand below `base`");
    }
    match alternatives(name)[..] {
        [] => format!("at the top stand {}", TOP_KEYS.join(", ")),
        [key] => {
            let (table, last) = key.rsplit_once('.').expect("every key of the table is dotted");
            format!("did you mean `{key}`? Write `{last}` in [base.{table}]: keys of experiments stand below `base`")
        }
        ref keys => format!("did you mean `{}`? Keys of experiments stand below `base`", keys.join("` or `")),
    }
}

/// Returns a hint for an unknown name in `[sweep]`.
fn sweep_hint(name: &str) -> String {
    if TOP_KEYS.contains(&name) {
        return format!("`{name}` stands at the top of the file");
    }
    match aliased(SWEEP_ALIASES, name).or_else(|| nearest(name, SWEEP_KEYS.into_iter())) {
        Some(k) => format!("did you mean `sweep.{k}`?"),
        None => format!("known there: sweep.{}", SWEEP_KEYS.join(", sweep.")),
    }
}

/// The texts of `--set KEY=VALUE`, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub struct SetOverrides(pub Vec<String>);

impl SetOverrides {
    /// Returns a note for every value that a later `--set` of the same key replaces by another one.
    fn replaced(&self) -> Vec<String> {
        let parts = |set: &str| -> Option<(String, String)> {
            let (name, value) = set.split_once('=')?;
            let name = name.trim();
            Some((name.strip_prefix("base.").unwrap_or(name).into(), value.trim().into()))
        };
        let all: Vec<Option<(String, String)>> = self.0.iter().map(|set| parts(set)).collect();
        let note = |(index, own): (usize, &Option<(String, String)>)| {
            let (name, value) = own.as_ref()?;
            let last = all[index + 1..].iter().flatten().rfind(|(other, _)| other == name)?;
            (last.1 != *value).then(|| {
                let (set, last) = (&self.0[index], &last.1);
                format!("--set {set}: `{name}` is set again, and the last value, {last}, wins; set it once")
            })
        };
        all.iter().enumerate().filter_map(note).collect()
    }
}

impl Document {
    /// Reads the text of a sweep file. `path` is only used in messages. Values may name policies of `registry`.
    pub(in crate::sweep) fn read(
        text: &str,
        path: &Path,
        sets: &SetOverrides,
        registry: &PolicyRegistry,
    ) -> Result<Document, SpecError> {
        let mut source = SweepText::new(path, text, None, registry);
        let root = DeTable::parse(text).map_err(|e| SpecError::Syntax {
            place: source.place_of(e.span().unwrap_or(0..0)),
            why: e.message().lines().next().unwrap_or("").to_string(),
        })?;
        let mut doc = Document {
            name: String::new(),
            seed: 1,
            included: Vec::new(),
            base: Vec::new(),
            jobs: Vec::new(),
            method: Method::Grid,
            samples: 100,
            samples_place: None,
            objectives: None,
            limits: None,
            replicas: 1,
            axes: Vec::new(),
            rows: Vec::new(),
            constraints: Vec::new(),
            notes: sets.replaced(),
            keeps_unread_axes: false,
        };
        source.jobs = read_job_names(&source, root.get_ref())?;
        let mut sections: Vec<_> = root.get_ref().iter().collect();
        sections.sort_by_key(|(k, _)| k.span().start);
        // `[sweep]` is read first, because the method decides how axes are read. Then come the included files, which the sweep's own keys override.
        sections.sort_by_key(|(k, _)| match k.get_ref().as_ref() {
            "sweep" => 0,
            "include" => 1,
            _ => 2,
        });
        for (k, v) in sections {
            doc.section(&source, k.get_ref(), k.span().start, v)?;
        }
        for text in &sets.0 {
            doc.apply_set(path, text, registry)?;
        }
        doc.check(path)?;
        Ok(doc)
    }

    fn section(
        &mut self,
        source: &SweepText<'_>,
        name: &str,
        offset: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SpecError> {
        let tables = || -> Result<Vec<&Spanned<DeValue<'_>>>, SpecError> {
            let list = value.get_ref().as_array().map(|a| a.iter().collect::<Vec<_>>());
            list.filter(|l| l.iter().all(|v| v.get_ref().is_table()))
                .ok_or_else(|| source.bad(name, value, format!("write tables: [[{name}]]")))
        };
        let table = || {
            value.get_ref().as_table().ok_or_else(|| source.bad(name, value, format!("it must be a table: [{name}]")))
        };
        match name {
            "name" | "seed" => self.scalar(source, name, offset, value),
            "include" => {
                self.included = include::read(source, value, &mut self.base)?;
                Ok(())
            }
            "base" => {
                let mut out = Vec::new();
                leaves(table()?, "", &mut out);
                for (name, offset, v) in out {
                    let KnownKey { path, key } = known(source, &name, offset)?;
                    if path.job.is_some() {
                        let hint = "jobs stand at the top of the file, as [[job]] tables".to_string();
                        return Err(SpecError::UnknownKey { place: source.place(offset), key: name, hint });
                    }
                    let read = source.value(key, &name, v)?;
                    self.base.push((key.id, read, source.place(offset)));
                }
                Ok(())
            }
            "job" => {
                for (t, name) in tables()?.into_iter().zip(&source.jobs) {
                    let mut out = Vec::new();
                    let table = t.get_ref().as_table().expect("`tables` lets only tables through");
                    leaves(table, &format!("job.{name}"), &mut out);
                    let mut values = Vec::with_capacity(out.len());
                    for (dotted, offset, v) in
                        out.into_iter().filter(|(dotted, ..)| *dotted != format!("job.{name}.name"))
                    {
                        let key = known(source, &dotted, offset)?.key;
                        let read = source.value(key, &dotted, v)?;
                        values.push((key.id, read, source.place(offset)));
                    }
                    self.jobs.push(JobTable { name: Arc::clone(name), values });
                }
                Ok(())
            }
            "sweep" => {
                let mut entries: Vec<_> = table()?.iter().collect();
                entries.sort_by_key(|(k, _)| k.span().start);
                entries
                    .into_iter()
                    .try_for_each(|(k, v)| self.scalar(source, &format!("sweep.{}", k.get_ref()), k.span().start, v))
            }
            "axes" => {
                let mut out = Vec::new();
                leaves(table()?, "", &mut out);
                for leaf in out {
                    self.axes.push(read_axis(source, self.method, &leaf)?);
                }
                Ok(())
            }
            "experiment" => {
                for t in tables()? {
                    let mut out = Vec::new();
                    leaves(t.get_ref().as_table().expect("`tables` lets only tables through"), "", &mut out);
                    let mut values = Vec::with_capacity(out.len());
                    for (name, offset, v) in out {
                        let KnownKey { path, key } = known(source, &name, offset)?;
                        values.push((path, source.value(key, &name, v)?));
                    }
                    self.rows.push(ExperimentSection { place: source.place(t.span().start), values });
                }
                Ok(())
            }
            "constraints" => {
                for t in tables()? {
                    let t_place = source.place(t.span().start);
                    let table = t.get_ref().as_table().expect("`tables` lets only tables through");
                    if let Some((k, _)) = table.iter().find(|(k, _)| k.get_ref() != "where") {
                        let key = format!("constraints.{}", k.get_ref());
                        return Err(SpecError::UnknownKey {
                            place: source.place(k.span().start),
                            key,
                            hint: "did you mean `where`? It is the one key of a constraint".into(),
                        });
                    }
                    let Some(v) = table.get("where") else {
                        let hint = "write the condition as text: where = \"transport.cc == \\\"hpcc\\\"\"".to_string();
                        return Err(SpecError::Missing { place: t_place, key: "constraints.where".into(), hint });
                    };
                    match v.get_ref() {
                        DeValue::String(s) => {
                            self.constraints.push(Where { text: s.to_string(), place: source.place_of(v.span()) })
                        }
                        _ => {
                            return Err(source.bad(
                                "constraints.where",
                                v,
                                "it must be a text with a condition".into(),
                            ));
                        }
                    }
                }
                Ok(())
            }
            _ => {
                let hint = top_hint(name);
                let key = name.chars().filter(|c| !c.is_control()).take(80).collect();
                Err(SpecError::UnknownKey { place: source.place(offset), key, hint })
            }
        }
    }

    /// Reads `name`, `seed` or a key of `[sweep]`.
    fn scalar(
        &mut self,
        source: &SweepText<'_>,
        name: &str,
        offset: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SpecError> {
        let whole = |min: i64, max: i64| {
            match value.get_ref() {
                DeValue::Integer(i) => {
                    i64::from_str_radix(i.as_str(), i.radix()).ok().filter(|i| (min..=max).contains(i))
                }
                _ => None,
            }
            .ok_or_else(|| source.bad(name, value, format!("it must be a whole number from {min} to {max}")))
        };
        match name {
            "name" => match value.get_ref().as_str() {
                Some(s) if !s.trim().is_empty() && s.len() <= NAME_LENGTH && !s.contains(char::is_control) => {
                    self.name = s.to_string()
                }
                _ => return Err(source.bad(name, value, "it must be a text of 1 to 200 characters".into())),
            },
            "seed" => self.seed = whole(0, i64::MAX)? as u64,
            "sweep.samples" => {
                self.samples = whole(1, MAX_EXPERIMENTS as i64)? as u64;
                self.samples_place = Some(source.place(offset));
            }
            "sweep.replicas" => self.replicas = whole(1, MAX_EXPERIMENTS as i64)? as u32,
            "sweep.objectives" => {
                let bad = || {
                    source.bad(name, value, "it must be a list of one or more column names of results.csv, for example [\"iteration_time_ns\"]".into())
                };
                self.objectives = Some((distinct_texts(value).ok_or_else(bad)?, source.place(offset)));
            }
            "sweep.limits" => {
                let bad = || {
                    source.bad(name, value, "it must be a list of one or more conditions over columns of results.csv, for example [\"cost_usd <= 3e6\"]".into())
                };
                self.limits = Some((distinct_texts(value).ok_or_else(bad)?, source.place(offset)));
            }
            "sweep.method" => {
                self.method = match value.get_ref().as_str() {
                    Some("grid") => Method::Grid,
                    Some("zip") => Method::Zip,
                    Some("list") => Method::List,
                    Some("random") => Method::Random,
                    Some("lhs") => Method::Lhs,
                    Some("optimize") => Method::Optimize,
                    _ => {
                        return Err(source.bad(
                            name,
                            value,
                            "it must be one of \"grid\", \"zip\", \"list\", \"random\", \"lhs\", \"optimize\"".into(),
                        ));
                    }
                }
            }
            _ => {
                let hint = sweep_hint(name.trim_start_matches("sweep."));
                let key = name.chars().filter(|c| !c.is_control()).take(80).collect();
                return Err(SpecError::UnknownKey { place: source.place(offset), key, hint });
            }
        }
        Ok(())
    }

    fn apply_set(&mut self, path: &Path, set: &str, registry: &PolicyRegistry) -> Result<(), SpecError> {
        let place = || Place::Set(set.to_string());
        let Some((name, text)) = set.split_once('=') else {
            return Err(SpecError::Sweep {
                place: place(),
                why: "write KEY=VALUE, for example transport.cc=hpcc".into(),
            });
        };
        let (name, text) = (name.trim(), text.trim());
        let mut source = SweepText::new(path, text, Some(set), registry);
        source.jobs = self.jobs.iter().map(|job| Arc::clone(&job.name)).collect();
        // A bare word counts as text, so that users need not quote twice for the shell.
        let value = match DeValue::parse(text) {
            Ok(v) => v,
            Err(_) => Spanned::new(0..text.len(), DeValue::String(text.into())),
        };
        if name == "sweep.method" {
            return Err(SpecError::Sweep {
                place: place(),
                why: "the method cannot be changed, because it decides how axes are read; change it in the sweep file"
                    .into(),
            });
        }
        if matches!(name, "name" | "seed") || name.starts_with("sweep.") {
            return self.scalar(&source, name, 0, &value);
        }
        let name = name.strip_prefix("base.").unwrap_or(name);
        let KnownKey { path: key_path, key } = known(&source, name, 0)?;
        if self.axes.iter().any(|a| a.path == key_path)
            || self.rows.iter().any(|r| r.values.iter().any(|(k, _)| *k == key_path))
        {
            let why = format!("`{name}` is an axis of this sweep, which would win; change the axis in the sweep file");
            return Err(SpecError::Sweep { place: place(), why });
        }
        let read = source.value(key, name, &value)?;
        match key_path.job {
            Some(job) => self.jobs[usize::from(job)].values.push((key.id, read, place())),
            None => self.base.push((key.id, read, place())),
        }
        Ok(())
    }

    /// Checks what needs the whole file.
    fn check(&self, path: &Path) -> Result<(), SpecError> {
        let fail = |place: Place, why: &str| Err(SpecError::Sweep { place, why: why.to_string() });
        if self.name.is_empty() {
            return Err(SpecError::Missing {
                place: Place::file(path),
                key: "name".into(),
                hint: "write name = \"...\" at the top".into(),
            });
        }
        for (i, a) in self.axes.iter().enumerate() {
            if self.axes[..i].iter().any(|b| b.path == a.path) {
                return fail(a.place.clone(), &format!("axis `{}` is given twice; keep one of them", a.name));
            }
        }
        match (self.method, self.rows.first(), self.axes.first()) {
            (Method::List, None, _) => {
                fail(Place::file(path), "method = \"list\" needs [[experiment]] tables; add one for each experiment")
            }
            (Method::List, _, Some(a)) => fail(
                a.place.clone(),
                "method = \"list\" takes [[experiment]] tables instead of axes; remove [axes] or use another method",
            ),
            (Method::Grid | Method::Zip | Method::Random | Method::Lhs | Method::Optimize, Some(r), _) => fail(
                r.place.clone(),
                &format!("[[experiment]] tables need method = \"list\" in [sweep]; it is \"{}\"", self.method.name()),
            ),
            (Method::Random | Method::Lhs | Method::Optimize, _, None) => fail(
                Place::file(path),
                &format!("method = \"{}\" needs axes to choose from; add [axes]", self.method.name()),
            ),
            _ => Ok(()),
        }
    }
}

/// Reads the names of the `[[job]]` tables of a file, in file order. The other keys of the tables are read later.
fn read_job_names(source: &SweepText<'_>, root: &DeTable<'_>) -> Result<Vec<Arc<str>>, SpecError> {
    let mut names: Vec<Arc<str>> = Vec::new();
    let tables = root.get("job").and_then(|v| v.get_ref().as_array());
    for t in tables.into_iter().flatten() {
        let Some(table) = t.get_ref().as_table() else { continue };
        let Some(value) = table.get("name") else {
            let (place, key) = (source.place(t.span().start), "job.name".to_string());
            return Err(SpecError::Missing { place, key, hint: "give every [[job]] a name of its own".into() });
        };
        let name = value.get_ref().as_str().unwrap_or_default();
        if let Some(why) = wrong_job_name(name) {
            return Err(source.bad("job.name", value, why.into()));
        }
        if names.iter().any(|other| **other == *name) {
            return Err(source.bad("job.name", value, "another [[job]] has this name; give each its own".into()));
        }
        if names.len() == MAX_JOBS {
            return Err(source.bad("job.name", value, format!("a sweep has at most {MAX_JOBS} jobs")));
        }
        names.push(name.into());
    }
    Ok(names)
}

/// Returns a list of one or more distinct texts. A single text counts as a list of one, so that `--set` can take a bare word.
fn distinct_texts(value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    let listed: Vec<String> = match value.get_ref() {
        DeValue::Array(list) => list.iter().map(|v| v.get_ref().as_str().map(str::to_string)).collect::<Option<_>>()?,
        DeValue::String(one) => vec![one.to_string()],
        _ => return None,
    };
    let is_distinct = (1..listed.len()).all(|i| !listed[..i].contains(&listed[i]));
    (!listed.is_empty() && is_distinct).then_some(listed)
}
