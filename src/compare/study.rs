//! A study: the results of one or several folders side by side, by configuration.
//!
//! Layer: compare. Folders may have different axes; a folder that does not vary a key has its value from its sweep, or the key's default.

use std::collections::BTreeMap;
use std::path::Path;

use crate::results::{Cell, RunResults, Status};
use crate::spec::{self, Default};

use super::{CompareError, Metric};

/// Keys of `[base.workload]` that say what is to be done, not how: experiments that differ in them are not ranked against each other.
const QUESTIONS: &[&str] = &[
    "kind",
    "path",
    "pattern",
    "bytes",
    "fan_in",
    "receivers",
    "stride",
    "load",
    "cdf",
    "duration_ns",
    "op",
    "ranks",
    "model",
    "seq",
    "global_batch",
    "bytes_scale",
    "iterations",
    "seed",
    "start_unit",
    "expert_skew",
    "compute_jitter",
    "straggler_ranks",
    "straggler_slowdown",
    "compute_scale",
];

/// Whether a key says what is to be done, so that experiments that differ in it are not ranked against each other.
pub fn is_question(key: &str) -> bool {
    key.strip_prefix("workload.").is_some_and(|k| QUESTIONS.contains(&k))
}

/// One configuration in one folder: its replicas.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Index of its folder.
    pub run: usize,
    /// `exp_id` of its first replica.
    pub exp_id: u64,
    pub config_key: String,
    /// Places of its replicas' rows, ascending.
    pub rows: Vec<usize>,
    /// Its value on every axis of the study.
    pub values: Vec<Cell>,
    /// Relative error of completion times that audits found, the largest of its replicas'; 0 where there was none.
    pub audit: f64,
}

/// Replicas' values of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Replicas that have one.
    pub n: usize,
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// Standard deviation, of n - 1; 0 of a single one.
    pub deviation: f64,
}

impl Sample {
    /// `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let n = values.len();
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        if n == 0 {
            return None;
        }
        // From the least upwards: equal values have exactly their value as mean, and no deviation.
        let mean = (low + values.iter().map(|v| v - low).sum::<f64>() / n as f64).min(high);
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        Some(Sample { n, mean, low, high, deviation })
    }
}

/// Results of some folders.
pub struct Study {
    /// The first is what others are compared with.
    pub runs: Vec<RunResults>,
    /// Axes of all folders, and keys that differ between folders that both vary nothing else; dotted, in the folders' order.
    pub axes: Vec<String>,
    pub configurations: Vec<Configuration>,
}

impl Study {
    /// Reads the folders.
    ///
    /// # Errors
    /// One cannot be read, or is given twice.
    pub fn open(dirs: &[impl AsRef<Path>]) -> Result<Study, CompareError> {
        let mut runs: Vec<RunResults> = Vec::new();
        let mut seen = Vec::new();
        for dir in dirs {
            let dir = dir.as_ref();
            let run = RunResults::open(dir)?;
            let real = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
            if seen.contains(&real) {
                return Err(CompareError::Twice(dir.display().to_string()));
            }
            seen.push(real);
            runs.push(run);
        }
        let mut axes: Vec<String> = Vec::new();
        for run in &runs {
            axes.extend(run.axes().map(|a| run.columns[a].name.clone()));
        }
        let fixed: Vec<BTreeMap<String, Cell>> = runs.iter().map(fixed_keys).collect();
        // What one folder sets and another sets otherwise, or leaves alone, tells them apart as an axis does.
        if runs.len() > 1 {
            let differs = |key: &String| fixed.iter().any(|f| value(f, key) != value(&fixed[0], key));
            let keys: Vec<String> = fixed.iter().flat_map(BTreeMap::keys).filter(|k| spec::find(k).is_some() && differs(k)).cloned().collect();
            axes.extend(keys);
        }
        let mut once = std::collections::BTreeSet::new();
        axes.retain(|a| once.insert(a.clone()));
        let mut configurations = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            let mut audits: BTreeMap<u64, f64> = BTreeMap::new();
            run.each_stats(|exp_id, stats| {
                audits.extend(stats.audit_fct_error.map(|e| (exp_id, e)));
            })?;
            configurations.extend(of_run(at, run, &axes, &fixed[at], &audits));
        }
        Ok(Study { runs, axes, configurations })
    }

    /// A folder's name as the user gave it.
    pub fn dir(&self, run: usize) -> String {
        self.runs[run].path.display().to_string()
    }

    /// Values of a column, of replicas that have a result.
    pub fn sample(&self, configuration: &Configuration, column: &str) -> Option<Sample> {
        let run = &self.runs[configuration.run];
        let at = run.column(column)?;
        let ok = configuration.rows.iter().filter(|&&row| run.status(row) == Status::Ok);
        Sample::of(&ok.filter_map(|&row| run.number(row, at)).collect::<Vec<_>>())
    }

    /// How far two means may lie apart and still say nothing: the replicas' deviation, or the audited error where that is more.
    pub fn uncertainty(&self, configuration: &Configuration, metric: &Metric, sample: &Sample) -> f64 {
        let audited = if metric.is_timed() { configuration.audit * sample.mean.abs() } else { 0.0 };
        sample.deviation.max(audited)
    }

    /// Places of the axes that ask different questions, of those that take several values.
    pub fn questions(&self) -> Vec<usize> {
        let varies = |a: usize| self.configurations.iter().any(|c| c.values[a] != self.configurations[0].values[a]);
        (0..self.axes.len()).filter(|&a| is_question(&self.axes[a]) && varies(a)).collect()
    }
}

fn of_run(at: usize, run: &RunResults, axes: &[String], fixed: &BTreeMap<String, Cell>, audits: &BTreeMap<u64, f64>) -> Vec<Configuration> {
    let places: Vec<Option<usize>> = axes.iter().map(|a| run.column(a)).collect();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found: Vec<Configuration> = Vec::new();
    for row in 0..run.rows.len() {
        let key = run.config_key(row);
        let values = || places.iter().zip(axes).map(|(p, key)| p.map_or_else(|| value(fixed, key), |c| run.rows[row][c].clone())).collect();
        let index = *place.entry(key).or_insert_with(|| {
            found.push(Configuration { run: at, exp_id: run.exp_id(row), config_key: key.into(), rows: Vec::new(), values: values(), audit: 0.0 });
            found.len() - 1
        });
        found[index].rows.push(row);
        found[index].audit = found[index].audit.max(audits.get(&run.exp_id(row)).copied().unwrap_or(0.0));
    }
    found
}

/// What a sweep sets for all its experiments, by dotted key; axes are not among it.
fn fixed_keys(run: &RunResults) -> BTreeMap<String, Cell> {
    fn walk(prefix: &str, table: &toml::Table, keys: &mut BTreeMap<String, Cell>) {
        for (name, value) in table {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                toml::Value::Table(table) if spec::find(&key).is_none() => walk(&key, table, keys),
                toml::Value::Integer(v) => drop(keys.insert(key, Cell::Int(*v))),
                toml::Value::Float(v) => drop(keys.insert(key, Cell::Real(*v))),
                toml::Value::Boolean(v) => drop(keys.insert(key, Cell::Flag(*v))),
                toml::Value::String(v) => drop(keys.insert(key, v.as_str().into())),
                other => drop(keys.insert(key, other.to_string().into())),
            }
        }
    }
    let mut keys = BTreeMap::new();
    if let Some(base) = run.sweep().as_ref().and_then(|s| s.get("base")).and_then(toml::Value::as_table) {
        walk("", base, &mut keys);
    }
    let axes: Vec<&String> = run.axes().map(|a| &run.columns[a].name).collect();
    keys.retain(|key, _| !axes.contains(&key) && !key.starts_with("output.") && !key.starts_with("limits."));
    keys
}

/// What a folder has for a key it does not vary: what it sets, or the default; empty where neither says it.
fn value(fixed: &BTreeMap<String, Cell>, key: &str) -> Cell {
    fixed.get(key).cloned().unwrap_or_else(|| match spec::find(key).map(|k| k.default) {
        Some(Default::Int(v)) => Cell::Int(v),
        Some(Default::Float(v)) => Cell::Real(v),
        Some(Default::Bool(v)) => Cell::Flag(v),
        Some(Default::Choice(v) | Default::Text(v)) => v.into(),
        Some(Default::None(_) | Default::Derived(..)) | None => Cell::Empty,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    #[test]
    fn replicas_are_one_configuration() {
        let rows = vec![ok(0, "a", &["1"], 10_000), ok(1, "a", &["1"], 14_000), ok(2, "b", &["2"], 20_000)];
        let folder = Folder::new(&["transport.cc"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        assert_eq!(study.configurations.len(), 2);
        let sample = study.sample(&study.configurations[0], "makespan_ns").unwrap();
        assert_eq!((sample.n, sample.mean, sample.low, sample.high), (2, 12.0, 10.0, 14.0));
        assert!((sample.deviation - 8f64.sqrt()).abs() < 1e-12);
        assert_eq!(Sample::of(&[0.1; 3]).unwrap().deviation, 0.0);
    }

    #[test]
    fn folders_with_other_axes_meet_by_key() {
        let one = Folder::new(&["transport.cc"], vec![ok(0, "a", &["dcqcn"], 1_000)]);
        let two = Folder::with_sweep(&["topology.kind"], vec![ok(0, "b", &["clos"], 1_000)], "[base.transport]\ncc = \"timely\"\npayload_bytes = 4000\n");
        let study = Study::open(&[one.path(), two.path()]).unwrap();
        assert_eq!(study.axes, ["transport.cc", "topology.kind", "transport.payload_bytes"]);
        assert_eq!(study.configurations[0].values, ["dcqcn".into(), "rail-optimized".into(), Cell::Int(1000)]);
        assert_eq!(study.configurations[1].values, ["timely".into(), "clos".into(), Cell::Int(4000)]);
        assert!(matches!(Study::open(&[one.path(), one.path()]), Err(CompareError::Twice(_))));
    }

    #[test]
    fn questions_are_known_keys() {
        for q in QUESTIONS {
            assert!(spec::find(&format!("workload.{q}")).is_some(), "{q}");
        }
    }
}
