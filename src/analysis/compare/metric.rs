//! Metrics: the columns that experiments can be ranked by.
//!
//! Layer: compare.

use hyperfold_base::nearest::nearest_column;
use hyperfold_config::spec::split_job_name;
use hyperfold_results::{ColumnKind, ColumnRole, RunColumns};

use super::better::Better;
use super::ranking::MeasuredValue;
use super::{CompareError, Study, StudyConfiguration};

/// A column that experiments are ranked by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankingMetric {
    /// Name of the column in `results.csv`.
    pub name: String,
    /// Which of two values is better.
    pub better: Better,
}

/// Default metrics: the first of these that any experiment has is used.
pub const DEFAULTS: &[&str] = &["goodput_rps", "iteration_time_ns", "makespan_ns", "fct_p99_ns", "goodput"];

/// Parts of an iteration, in the order in which they are shown. They add up to the iteration time.
pub const PARTS: &[&str] = &[
    "compute_ns",
    "comm_exposed_tp_ns",
    "comm_exposed_pp_ns",
    "comm_exposed_dp_ns",
    "comm_exposed_ep_ns",
    "comm_exposed_cp_ns",
    "bubble_ns",
    "optimizer_ns",
    "other_ns",
];

/// Columns that say how much was simulated, how reliable a result is, or how something was done. They are not metrics.
pub const NO_METRIC: &[&str] = &[
    "flows",
    "packet_hops",
    "validated_mean_error",
    "validated_p90_error",
    "validated_rows",
    "jobs",
    "cluster_hours",
    "requests",
    "steps",
    "kv_transfer_bytes",
    "critical_rank",
    "channels",
];

impl RankingMetric {
    /// The metric of a column.
    pub fn of(name: &str) -> RankingMetric {
        let bare = split_job_name(name).map_or(name, |(_, column)| column);
        RankingMetric { name: name.into(), better: Better::of_column(bare) }
    }

    /// The metric of this name, if any experiment of the study has it. `option` is the command-line option that named it, for messages.
    ///
    /// # Errors
    /// There is no such column, it holds no numbers, or no experiment has a value in it.
    pub fn named(study: &Study, option: &'static str, name: &str) -> Result<RankingMetric, CompareError> {
        let known = available(study);
        if known.iter().any(|k| k == name) {
            return Ok(RankingMetric::of(name));
        }
        let hint = match nearest_column(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "no experiment has any number".to_string(),
            None => format!("those with values are {}", known.join(", ")),
        };
        Err(CompareError::Metric { option, name: name.into(), hint })
    }

    /// The metric to rank by if the user names none. For a search it is the first objective.
    ///
    /// # Errors
    /// No experiment has a default metric.
    pub fn default_of(study: &Study) -> Result<RankingMetric, CompareError> {
        let known = available(study);
        if let Some(first) = objectives(study.runs[0].sweep().as_ref()).iter().find(|o| known.contains(o)) {
            return Ok(RankingMetric::of(first));
        }
        DEFAULTS
            .iter()
            .find(|d| known.iter().any(|k| k == *d))
            .map(|d| RankingMetric::of(d))
            .ok_or(CompareError::Nothing)
    }

    /// Whether `a` is better than `b`.
    pub fn is_better(&self, a: f64, b: f64) -> bool {
        self.better.turned(a) < self.better.turned(b)
    }

    /// Order of two values, the better one first.
    pub fn order(&self, a: f64, b: f64) -> std::cmp::Ordering {
        self.better.order(a, b)
    }

    /// Whether an error of completion times is also an error of this metric.
    pub fn is_timed(&self) -> bool {
        self.better == Better::More
            || self.name.ends_with("_ns")
            || self.name.ends_with(".slowdown")
            || self.name.starts_with("fct_")
    }

    /// Whether less or more is better, in words.
    pub fn which(&self) -> &'static str {
        match self.better {
            Better::Less => "less is better",
            Better::More => "more is better",
        }
    }
}

/// Objectives of a sweep with `method = "optimize"`. Empty for other sweeps.
pub fn objectives(sweep: Option<&toml::Table>) -> Vec<String> {
    let table = sweep.and_then(|s| s.get("sweep"));
    let searches = table.and_then(|s| s.get("method")).and_then(toml::Value::as_str) == Some("optimize");
    let named = table.filter(|_| searches).and_then(|s| s.get("objectives")).and_then(toml::Value::as_array);
    named.map(|o| o.iter().filter_map(|name| name.as_str().map(String::from)).collect()).unwrap_or_default()
}

/// Objectives of the first folder's search that any experiment has a value of.
pub fn searched_by(study: &Study) -> Vec<RankingMetric> {
    let known = available(study);
    let names = objectives(study.runs[0].sweep().as_ref());
    names.iter().filter(|o| known.contains(o)).map(|o| RankingMetric::of(o)).collect()
}

/// Names of the numeric outcomes that at least one experiment has, in the order of columns.
pub fn available(study: &Study) -> Vec<String> {
    available_in(&study.runs)
}

/// Names of the numeric outcomes that at least one experiment of these folders has, in the order of columns.
pub fn available_in(runs: &[RunColumns]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        for (column_idx, column) in run.columns.iter().enumerate() {
            let numeric = matches!(column.kind, ColumnKind::Int | ColumnKind::Unsigned | ColumnKind::Real)
                && column.role == ColumnRole::Outcome;
            let bare = split_job_name(&column.name).map_or(column.name.as_str(), |(_, of_job)| of_job);
            if numeric
                && !NO_METRIC.contains(&bare)
                && !names.contains(&column.name)
                && (0..run.rows.len()).any(|row| run.number(row, column_idx).is_some())
            {
                names.push(column.name.clone());
            }
        }
    }
    names
}

impl Study {
    /// A metric of a configuration, with all that says how well it is known. `None`: no replica has a value.
    pub fn measured(&self, configuration: &StudyConfiguration, metric: &RankingMetric) -> Option<MeasuredValue> {
        let audited = if metric.is_timed() { configuration.audit } else { 0.0 };
        let sample = self.sample(configuration, &metric.name)?;
        Some(MeasuredValue::new(sample, self.by_seed(configuration, &metric.name), audited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    #[test]
    fn parts_of_an_iteration_are_columns() {
        let folder = Folder::new(&["a"], vec![ok(0, "k", &["1"], 5_000)]);
        let study = Study::open(&[folder.path()]).unwrap();
        assert!(PARTS.iter().chain(&NO_METRIC[..5]).all(|p| study.runs[0].column(p).is_some()));
    }

    #[test]
    fn a_search_is_ranked_by_what_it_searched_by() {
        let ranked = |method: &str| {
            let sweep = format!("[sweep]\nmethod = \"{method}\"\nobjectives = [\"drops\", \"makespan_ns\"]\n");
            let mut row = ok(0, "k", &["1"], 5_000);
            row.record.drops = Some(3);
            let folder = Folder::with_sweep(&["a"], vec![row], &sweep);
            let study = Study::open(&[folder.path()]).unwrap();
            RankingMetric::default_of(&study).unwrap().name
        };
        assert_eq!([ranked("optimize"), ranked("grid")], ["drops", "makespan_ns"]);
    }

    #[test]
    fn only_what_has_values_is_a_metric() {
        let folder = Folder::new(&["a"], vec![ok(0, "k", &["1"], 5_000)]);
        let study = Study::open(&[folder.path()]).unwrap();
        assert_eq!(RankingMetric::default_of(&study).unwrap().name, "makespan_ns");
        let why = |name| RankingMetric::named(&study, "--metric", name).unwrap_err().to_string();
        assert!(why("makespan").contains("did you mean `makespan_ns`?"));
        assert!(why("duration").contains("those with values are makespan_ns"), "{}", why("duration"));
        assert!(why("makespam_ns").contains("did you mean `makespan_ns`?"));
        assert!(why("iteration_time_ns").contains("no metric"));
    }
}
