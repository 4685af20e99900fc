//! A study: the results of one or several folders side by side, by configuration.
//!
//! Layer: compare. Folders may have different axes. If a folder does not vary a key, its value comes from the folder's sweep, or is the key's default.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeValue;

use hyperfold_config::spec::{self, Key, KeyId, Value, Values};
use hyperfold_results::{Cell, RunColumns, Status};

use super::levels::Levels;
use super::spread::Sample;
use super::unmodelled::{ComparedOutcome, POLICY, Unmodelled};
use super::{CompareError, Questions};

/// One point of one folder's sweep, with its replicas. If an axis makes no difference, several points have the same configuration.
#[derive(Clone, Debug)]
pub struct StudyConfiguration {
    /// Index of its folder in [`Study::runs`].
    pub run: usize,
    /// `exp_id` of its first replica.
    pub exp_id: u64,
    /// Key of the configuration: the column `config_key`.
    pub config_key: String,
    /// Row numbers of its replicas, ascending.
    pub rows: Vec<usize>,
    /// Its value on every axis of the study.
    pub values: Vec<Cell>,
    /// Largest relative error of times over its replicas, as found by audits or as estimated for skips; 0 if there is none.
    pub audit: f64,
}

/// Experiments of a folder in which measured rates were carried on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CarriedRuns {
    /// Number of such experiments.
    pub experiments: u64,
    /// Largest estimate of the relative error of times.
    pub error: f64,
}

/// Results of one or several folders.
pub struct Study {
    /// The folders. The first is the base of comparisons.
    pub runs: Vec<RunColumns>,
    /// Axes of all folders, and keys that no folder varies but that differ between folders. Dotted names, in the order of the folders.
    pub axes: Vec<String>,
    /// Configurations of all folders, folder by folder.
    pub configurations: Vec<StudyConfiguration>,
    /// For each folder, its experiments that carried rates on.
    pub carried: Vec<CarriedRuns>,
    asked: Questions,
}

impl Study {
    /// Reads the folders.
    ///
    /// # Errors
    /// A folder cannot be read, or is given twice.
    pub fn open(dirs: &[impl AsRef<Path>]) -> Result<Study, CompareError> {
        let mut runs: Vec<RunColumns> = Vec::new();
        let mut seen = Vec::new();
        for dir in dirs {
            let dir = dir.as_ref();
            let run = RunColumns::open(dir)?;
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
        let fixed: Vec<Vec<(&'static Key, Value)>> = runs.iter().map(fixed_keys).collect();
        // A key that folders set to different values, or that only some of them set, distinguishes them as an axis does.
        if runs.len() > 1 {
            let resolved: Vec<Values> = fixed.iter().map(|f| resolve(f, &[])).collect();
            let differs = |key: &Key| resolved.iter().any(|v| v.get(key.id) != resolved[0].get(key.id));
            axes.extend(fixed.iter().flatten().filter(|(key, _)| differs(key)).map(|(key, _)| key.name.to_string()));
        }
        let mut once = std::collections::BTreeSet::new();
        axes.retain(|a| once.insert(a.clone()));
        let mut configurations = Vec::new();
        let mut carried = vec![CarriedRuns::default(); runs.len()];
        for (run_idx, run) in runs.iter().enumerate() {
            let mut audits: BTreeMap<u64, f64> = BTreeMap::new();
            run.each_stats(|exp_id, stats| {
                audits.extend(stats.times_error().map(|e| (exp_id, e)));
                let folding = &stats.folding;
                if folding.carried_skips > 0 {
                    let runs_carried = &mut carried[run_idx];
                    (runs_carried.experiments, runs_carried.error) =
                        (runs_carried.experiments + 1, runs_carried.error.max(stats.steady_error.unwrap_or(0.0)));
                }
            })?;
            configurations.extend(of_run(run_idx, run, &axes, &fixed[run_idx], &audits));
        }
        let mut asked = Questions::default();
        for run in &runs {
            asked.add(run.sweep().as_ref(), |key| {
                run.column(key).map(|c| run.rows.iter().map(|row| row[c].to_string()).collect()).unwrap_or_default()
            });
            asked.add_not_compared(&run.manifest.not_compared);
        }
        Ok(Study { runs, axes, configurations, carried, asked })
    }

    /// Whether experiments that differ in this axis do different work, so that they are not ranked against each other. Folders that differ in how they were
    /// simulated (except packets or flows) are compared to see just that difference.
    pub fn asks(&self, key: &str) -> bool {
        let between_folders = Questions::is_of_the_model(key) && key != "fidelity.mode" && !self.varied(key);
        self.asked.asks(key) && !between_folders
    }

    /// Axes of the study whose values a run says are not compared, each with its reason.
    pub fn not_compared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.axes.iter().filter_map(|key| Some((key.as_str(), self.asked.why_not_compared(key)?)))
    }

    /// Value of a key in one row of a folder: its axis' value, else what the sweep sets, else the default.
    pub fn key_value(&self, run: usize, row: usize, key: KeyId) -> Value {
        let run = &self.runs[run];
        let of_axis = |c: usize| {
            let key = spec::find(&run.columns[c].name)?;
            Some((key, value(key, &run.rows[row][c])?))
        };
        let varied: Vec<(&'static Key, Value)> = run.axes().filter_map(of_axis).collect();
        resolve(&fixed_keys(run), &varied).get(key).clone()
    }

    /// Whether a key is an axis of any folder.
    pub fn varied(&self, key: &str) -> bool {
        self.runs.iter().any(|run| run.axes().any(|a| run.columns[a].name == key))
    }

    /// Name of a folder as the user gave it.
    pub fn dir(&self, run: usize) -> String {
        self.runs[run].path.display().to_string()
    }

    /// Statistics of a column over the replicas that have a result.
    pub fn sample(&self, configuration: &StudyConfiguration, column: &str) -> Option<Sample> {
        let run = &self.runs[configuration.run];
        let column_idx = run.column(column)?;
        let ok = configuration.rows.iter().filter(|&&row| run.status(row) == Status::Ok);
        Sample::of(&ok.filter_map(|&row| run.number(row, column_idx)).collect::<Vec<_>>())
    }

    /// Values of a column with their seeds, for the replicas that have a result.
    pub(super) fn by_seed(&self, configuration: &StudyConfiguration, column: &str) -> Vec<(u64, f64)> {
        let run = &self.runs[configuration.run];
        let (Some(column_idx), Some(seed)) = (run.column(column), run.column("seed")) else { return Vec::new() };
        let ok = configuration.rows.iter().filter(|&&row| run.status(row) == Status::Ok);
        let seed_and_value = |&row: &usize| match run.rows[row][seed] {
            Cell::Unsigned(seed) => Some((seed, run.number(row, column_idx)?)),
            _ => None,
        };
        ok.filter_map(seed_and_value).collect()
    }

    /// Axes that were not simulated, by way of simulating. Axes that change the work are not judged.
    pub fn unmodelled(&self) -> Unmodelled {
        let values = |axis: usize| {
            Levels::of(&self.configurations.iter().map(|c| c.values[axis].to_string()).collect::<Vec<_>>()).value
        };
        let of_axes: Vec<Vec<u32>> = (0..self.axes.len()).map(values).collect();
        let mean = |c: &StudyConfiguration, column: &str| self.sample(c, column).map(|s| s.mean);
        let policy = self.axes.iter().position(|a| a == POLICY);
        let outcome = |(index, c): (usize, &StudyConfiguration)| {
            let values = of_axes.iter().map(|values| values[index]).collect();
            let policy = policy.map(|axis| c.values[axis].to_string());
            let texts: Vec<String> = c.values.iter().map(ToString::to_string).collect();
            let axis = |key: &str| Some(texts[self.axes.iter().position(|a| a == key)?].as_str());
            let goes_back_n = self.asked.goes_back_n(Questions::recovery_of(axis));
            ComparedOutcome::of(values, &c.config_key, policy.as_deref(), goes_back_n, |column| mean(c, column))
        };
        let outcomes: Vec<ComparedOutcome> = self.configurations.iter().enumerate().map(outcome).collect();
        let is_way = |&a: &usize| self.asked.is_way(&self.axes[a]) && self.asks(&self.axes[a]);
        let of_ways: Vec<usize> = (0..self.axes.len()).filter(is_way).collect();
        let mut ways: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let way = |index: usize| {
            let fresh = ways.len();
            *ways.entry(of_ways.iter().map(|&a| of_axes[a][index]).collect()).or_insert(fresh)
        };
        let way = (0..self.configurations.len()).map(way).collect();
        let keys: Vec<Option<&str>> = self.axes.iter().map(|key| (!self.asks(key)).then_some(key.as_str())).collect();
        Unmodelled::of(&keys, &outcomes, way)
    }

    /// For each configuration, the index of the question that it answers. Questions are numbered in the order of their first configuration.
    pub fn group_of(&self) -> Vec<usize> {
        let questions = self.questions();
        let mut place: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let mut group = |c: &StudyConfiguration| {
            let fresh = place.len();
            *place.entry(questions.iter().map(|&q| c.values[q].to_string()).collect()).or_insert(fresh)
        };
        self.configurations.iter().map(&mut group).collect()
    }

    /// Indices of the axes that change the work and take several values.
    pub fn questions(&self) -> Vec<usize> {
        let varies = |a: usize| self.configurations.iter().any(|c| c.values[a] != self.configurations[0].values[a]);
        (0..self.axes.len()).filter(|&a| self.asks(&self.axes[a]) && varies(a)).collect()
    }
}

fn of_run(
    run_idx: usize,
    run: &RunColumns,
    axes: &[String],
    fixed: &[(&'static Key, Value)],
    audits: &BTreeMap<u64, f64>,
) -> Vec<StudyConfiguration> {
    let places: Vec<Option<usize>> = axes.iter().map(|a| run.column(a)).collect();
    let own: Vec<(usize, &'static Key)> =
        run.axes().filter_map(|c| Some((c, spec::find(&run.columns[c].name)?))).collect();
    let values = |row: usize| -> Vec<Cell> {
        // A key that the folder does not vary is set by its sweep, or has a default that may depend on keys that it varies.
        let resolved = places.iter().any(Option::is_none).then(|| {
            let varied: Vec<(&'static Key, Value)> =
                own.iter().filter_map(|(c, key)| Some((*key, value(key, &run.rows[row][*c])?))).collect();
            resolve(fixed, &varied)
        });
        let fallback = |axis: &str| {
            resolved.as_ref().zip(spec::find(axis)).map_or(Cell::Empty, |(v, key)| Cell::from(v.get(key.id)))
        };
        places
            .iter()
            .zip(axes)
            .map(|(p, axis)| p.map_or_else(|| fallback(axis), |c| run.rows[row][c].clone()))
            .collect()
    };
    // Points of a sweep that resolve to the same configuration have the same key. The values of their axes distinguish them.
    let point = |row: usize| -> (&str, Vec<String>) {
        (run.config_key(row), run.axes().map(|c| run.rows[row][c].to_string()).collect())
    };
    let mut place: BTreeMap<(&str, Vec<String>), usize> = BTreeMap::new();
    let mut found: Vec<StudyConfiguration> = Vec::new();
    for row in 0..run.rows.len() {
        let key = run.config_key(row);
        let index = *place.entry(point(row)).or_insert_with(|| {
            found.push(StudyConfiguration {
                run: run_idx,
                exp_id: run.exp_id(row),
                config_key: key.into(),
                rows: Vec::new(),
                values: values(row),
                audit: 0.0,
            });
            found.len() - 1
        });
        found[index].rows.push(row);
        found[index].audit = found[index].audit.max(audits.get(&run.exp_id(row)).copied().unwrap_or(0.0));
    }
    found
}

/// Keys and values that a sweep sets for all its experiments. Keys that it varies are left out, and keys that only control what is written or how long it may
/// run.
fn fixed_keys(run: &RunColumns) -> Vec<(&'static Key, Value)> {
    fn walk(prefix: &str, table: &toml::Table, keys: &mut Vec<(&'static Key, Value)>) {
        for (name, entry) in table {
            let dotted = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match (spec::find(&dotted), entry) {
                (None, toml::Value::Table(inner)) => walk(&dotted, inner, keys),
                (None, _) => {}
                (Some(key), entry) => keys.extend(value(key, &cell(entry)).map(|v| (key, v))),
            }
        }
    }
    let mut keys = Vec::new();
    if let Some(base) = run.sweep().as_ref().and_then(|s| s.get("base")).and_then(toml::Value::as_table) {
        walk("", base, &mut keys);
    }
    keys.retain(|(key, _)| key.in_identity && run.column(key.name).is_none());
    keys
}

fn cell(value: &toml::Value) -> Cell {
    match value {
        toml::Value::Integer(v) => Cell::Int(*v),
        toml::Value::Float(v) => Cell::Real(*v),
        toml::Value::Boolean(v) => Cell::Flag(*v),
        toml::Value::String(v) => v.as_str().into(),
        other => other.to_string().into(),
    }
}

/// The value of a cell, by its key. `None`: the cell is empty, or this version does not know its value.
fn value(key: &Key, cell: &Cell) -> Option<Value> {
    match cell {
        Cell::Int(v) => key.check_number(*v as f64, Some(*v)).ok(),
        Cell::Flag(v) => key.read(&DeValue::Boolean(*v)).ok(),
        Cell::Text(v) => key.read(&DeValue::String(v.as_str().into())).ok(),
        other => key.check_number(other.number()?, None).ok(),
    }
}

/// Values of all keys if these are set. `varied` overrides `fixed`.
fn resolve(fixed: &[(&'static Key, Value)], varied: &[(&'static Key, Value)]) -> Values {
    let ids = |layer: &[(&'static Key, Value)]| {
        layer.iter().map(|(key, v)| (key.id, v.clone())).collect::<Vec<(KeyId, Value)>>()
    };
    let mut values = Values::layered(&[&ids(fixed), &ids(varied)]);
    values.derive();
    values
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
    fn points_of_one_configuration_are_not_replicas() {
        let rows = vec![ok(0, "a", &["rail-only", "100"], 10_000), ok(1, "a", &["rail-only", "400"], 10_000)];
        let folder = Folder::new(&["topology.kind", "topology.uplink_gbps"], rows);
        let study = Study::open(&[folder.path()]).unwrap();
        let rows: Vec<&[usize]> = study.configurations.iter().map(|c| c.rows.as_slice()).collect();
        assert_eq!(rows, [[0], [1]]);
    }

    #[test]
    fn folders_with_other_axes_meet_by_key() {
        let one = Folder::new(&["transport.cc"], vec![ok(0, "a", &["dcqcn"], 1_000)]);
        let two = Folder::with_sweep(
            &["topology.kind"],
            vec![ok(0, "b", &["clos"], 1_000)],
            "[base.topology]\nlink_gbps = 100\n[base.transport]\ncc = \"timely\"\npayload_bytes = 4000\n[base.output]\nflows = true\n",
        );
        let study = Study::open(&[one.path(), two.path()]).unwrap();
        assert_eq!(study.axes, ["transport.cc", "topology.kind", "topology.link_gbps", "transport.payload_bytes"]);
        assert_eq!(
            study.configurations[0].values,
            ["dcqcn".into(), "rail-optimized".into(), Cell::Real(400.0), Cell::Int(1000)]
        );
        assert_eq!(
            study.configurations[1].values,
            ["timely".into(), "clos".into(), Cell::Real(100.0), Cell::Int(4000)]
        );
        assert!(matches!(Study::open(&[one.path(), one.path()]), Err(CompareError::Twice(_))));
    }
}
