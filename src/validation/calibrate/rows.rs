//! Reads measured rows that refer to experiments of a sweep.
//!
//! Layer: calibrate. It parses CSV text like that of `experiments/validation`. Columns of keys are another way to name an experiment.

use std::collections::BTreeMap;

use super::error::CalibrateError;
use crate::Unit;
use hyperfold_base::input;
use hyperfold_config::spec::{Value, find, hint};
use hyperfold_config::sweep::Sweep;
use hyperfold_results::record::OUTCOME;
use hyperfold_results::{ColumnKind, ExperimentRecord};
use hyperfold_validated::Use;

/// Columns of the CSV that are not keys.
const KNOWN: [&str; 9] = ["experiment", "name", "value", "unit", "column", "weight", "error", "use", "source"];
/// A further column, with text for people.
const NOTE: &str = "note";

/// One measured value, and the columns of results that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationRow {
    /// Name in tables.
    pub name: String,
    /// `exp_id`s of one experiment, or of all replicas of a point, whose mean is used.
    pub experiments: Vec<u64>,
    /// Measured value in `unit`, above 0.
    pub value: f64,
    /// Unit as written.
    pub unit: String,
    /// Relative weight in the fit, above 0; 1 if the file has none.
    pub weight: f64,
    /// Whether the measured file has weights for its rows.
    pub has_own_weight: bool,
    /// Whether the row is not fitted, only checked.
    pub held_back: bool,
    /// Indices in [`OUTCOME`] of the result columns whose sum is compared with the value.
    columns: Vec<usize>,
    /// Factor from `unit` to the unit of the columns.
    per_unit: f64,
}

impl CalibrationRow {
    /// Predicted value in the row's unit, from a row of results. `None`: the columns are empty or 0.
    pub fn of(&self, record: &ExperimentRecord) -> Option<f64> {
        let cells = self.columns.iter().map(|&c| (OUTCOME[c].cell)(record).number());
        // Columns of parts that an iteration does not have are empty.
        let sum: f64 = cells.flatten().sum();
        (sum > 0.0 && sum.is_finite()).then_some(sum / self.per_unit)
    }

    /// The measured value as a time in ns. A rate is converted to the time of the simulated iteration, scaled by predicted over measured rate. Any other
    /// value counts as the time of that iteration. `predicted` is the prediction of the row. `None`: there is no such time.
    pub(super) fn time_ns(&self, predicted: f64, iteration_ns: Option<f64>) -> Option<f64> {
        let name = OUTCOME[self.columns[0]].name;
        match () {
            () if name.ends_with("_ns") => Some(self.value * self.per_unit),
            () if name.ends_with("_bytes") => iteration_ns,
            () => iteration_ns.map(|ns| ns * predicted / self.value),
        }
    }

    /// Whether the order of two rows is meaningful: both are compared with the same columns.
    pub fn is_comparable(&self, other: &CalibrationRow) -> bool {
        self.columns == other.columns
    }
}

/// Reads measured rows and finds their experiments in the sweep. With `hold_back` = n, every n-th row is checked and not fitted. `file` is only used in
/// messages.
///
/// # Errors
/// A line is not valid, or names no experiment, or several.
pub fn calibration_rows(
    text: &str,
    file: &str,
    sweep: &Sweep,
    hold_back: Option<usize>,
) -> Result<Vec<CalibrationRow>, CalibrateError> {
    let wrong_line = |line: u64, why: String| CalibrateError::Line { file: file.to_string(), line, why };
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let line_of = |e: &csv::Error| e.position().map_or(1, csv::Position::line);
    let headers = reader.headers().map_err(|e| wrong_line(line_of(&e), input::csv_problem(&e)))?.clone();
    let header_line = headers.position().map_or(1, csv::Position::line);
    let names = Names::new(&headers, sweep).map_err(|why| wrong_line(header_line, why))?;
    let mut rows: Vec<(CalibrationRow, Option<f64>)> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| wrong_line(line_of(&e), input::csv_problem(&e)))?;
        let line = record.position().map_or(1, csv::Position::line);
        if let Some(row) = names.row(&record).map_err(|why| wrong_line(line, why))? {
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(CalibrateError::File { file: file.to_string(), why: "there are no measured rows".to_string() });
    }
    let with_error = rows.iter().filter(|(_, error)| error.is_some()).count();
    if with_error != 0 && with_error != rows.len() {
        let why = format!("{with_error} of {} rows have an `error`; give each one, or none", rows.len());
        return Err(CalibrateError::File { file: file.to_string(), why });
    }
    // Weights are scaled to a mean of 1, because only ratios of standard errors matter.
    let mean = rows.iter().map(|(r, _)| r.weight).sum::<f64>() / rows.len() as f64;
    let mut rows: Vec<CalibrationRow> = rows.into_iter().map(|(r, _)| r).collect();
    rows.iter_mut().for_each(|r| r.weight /= mean);
    if let Some(n) = hold_back {
        let fitted = rows.iter_mut().filter(|r| !r.held_back);
        fitted.enumerate().filter(|(i, _)| i % n == n - 1).for_each(|(_, r)| r.held_back = true);
    }
    Ok(rows)
}

/// The parsed header: positions of columns, and the points of the sweep by their key values.
struct Names {
    column_of: BTreeMap<&'static str, usize>,
    /// Columns of keys, with the names of the keys.
    keys: Vec<(usize, String)>,
    /// For each point of the sweep, its values of these keys and its experiments.
    points: Vec<(Vec<String>, Vec<u64>)>,
    /// For each `exp_id`, the index of its point.
    of_experiment: Vec<usize>,
}

impl Names {
    fn new(headers: &csv::StringRecord, sweep: &Sweep) -> Result<Names, String> {
        let (mut column_of, mut keys) = (BTreeMap::new(), Vec::new());
        for (i, header) in headers.iter().enumerate() {
            if headers.iter().take(i).any(|other| other == header) {
                return Err(format!("the column `{header}` is there twice; keep one of them"));
            }
            match KNOWN.iter().find(|k| **k == header) {
                Some(known) => drop(column_of.insert(*known, i)),
                None if header == NOTE => {}
                None if sweep.axes.iter().any(|a| a == header) || find(header).is_some() => {
                    keys.push((i, header.to_string()));
                }
                None => {
                    return Err(format!(
                        "unknown column `{header}`; there are {}, {NOTE} and keys of the sweep ({})",
                        KNOWN.join(", "),
                        hint(header)
                    ));
                }
            }
        }
        for needed in ["value", "unit"] {
            if !column_of.contains_key(needed) {
                return Err(format!("there is no column `{needed}`; value and unit are needed"));
            }
        }
        if column_of.contains_key("weight") && column_of.contains_key("error") {
            return Err(
                "there are columns `weight` and `error`; a weight follows from an error, so keep one of them".into()
            );
        }
        let mut points: Vec<(Vec<String>, Vec<u64>)> = Vec::new();
        let mut of_experiment = Vec::with_capacity(sweep.experiments.len());
        let mut last = None;
        for e in &sweep.experiments {
            // Replicas of a point are adjacent.
            if last != Some(e.point) {
                let axes = sweep.axis_values(e);
                let config = sweep.config(e).ok();
                let value = |(_, name): &(usize, String)| match sweep.axes.iter().position(|a| a == name) {
                    Some(axis) => canonical_value(&axes[axis]),
                    None => config
                        .as_ref()
                        .zip(find(name))
                        .map_or(String::new(), |(c, key)| canonical_value(c.values.get(key.id))),
                };
                points.push((keys.iter().map(value).collect(), Vec::new()));
                last = Some(e.point);
            }
            let place = points.len() - 1;
            points[place].1.push(e.exp_id);
            of_experiment.push(place);
        }
        Ok(Names { column_of, keys, points, of_experiment })
    }

    /// Parses a row, with its standard error if it has one. `None`: its source marks it as doubtful.
    fn row(&self, record: &csv::StringRecord) -> Result<Option<(CalibrationRow, Option<f64>)>, String> {
        let cell = |name: &str| self.column_of.get(name).and_then(|i| record.get(*i)).unwrap_or("");
        let above_0 = |name: &str| match cell(name).parse::<f64>() {
            Ok(x) if x.is_finite() && x > 0.0 => Ok(x),
            _ => Err(format!("{name} = {:?}; a number above 0 would be right", cell(name))),
        };
        let value = above_0("value")?;
        let (columns, per_unit) = quantity(cell("unit"), cell("column"))?;
        let error = if cell("error").is_empty() { None } else { Some(above_0("error")?) };
        let weight = match error {
            Some(error) => (value / error) * (value / error),
            None if cell("weight").is_empty() => 1.0,
            None => above_0("weight")?,
        };
        let held_back = match cell("use") {
            "" | "fitted" => false,
            "checked" => true,
            "doubtful" => return Ok(None),
            other => {
                let names = [Use::Fitted, Use::Checked, Use::Doubtful].map(Use::as_str).join(", ");
                return Err(format!("use = {other:?}; it must be one of {names}"));
            }
        };
        let (point, named) = self.point(record)?;
        let name = if cell("name").is_empty() { named } else { cell("name").to_string() };
        let (experiments, unit) = (self.points[point].1.clone(), cell("unit").to_string());
        let has_own_weight = self.column_of.contains_key("weight") || self.column_of.contains_key("error");
        let row =
            CalibrationRow { name, experiments, value, unit, weight, has_own_weight, held_back, columns, per_unit };
        Ok(Some((row, error)))
    }

    /// The single point that a row names, and a text that says how.
    fn point(&self, record: &csv::StringRecord) -> Result<(usize, String), String> {
        let written = self.column_of.get("experiment").and_then(|i| record.get(*i)).unwrap_or("");
        let wanted: Vec<Option<String>> =
            self.keys.iter().map(|(i, _)| record.get(*i).filter(|c| !c.is_empty()).map(canonical)).collect();
        let cells =
            self.keys.iter().zip(&wanted).filter_map(|((_, name), v)| Some(format!("{name} = {}", v.as_ref()?)));
        let shown = cells.collect::<Vec<_>>().join(", ");
        if !written.is_empty() {
            let id: Option<usize> = written.parse().ok();
            let point = id.and_then(|id| self.of_experiment.get(id)).ok_or_else(|| {
                let last = self.of_experiment.len() - 1;
                format!("experiment = {written}; the sweep has experiments 0 to {last}")
            })?;
            return match self.fits(*point, &wanted) {
                true => Ok((*point, format!("experiment {written}"))),
                false => {
                    Err(format!("experiment {written} is another one than that with {shown}; leave out one of the two"))
                }
            };
        }
        let mut fitting = (0..self.points.len()).filter(|p| self.fits(*p, &wanted));
        let described = if shown.is_empty() { "a row without a key".to_string() } else { shown.clone() };
        let Some(point) = fitting.next() else {
            return Err(format!("no experiment of the sweep has {described}"));
        };
        let others = fitting.count();
        if others > 0 {
            let n = others + 1;
            return Err(format!(
                "{described} is said of {n} experiments; add columns of the axes in which they differ, or `experiment`"
            ));
        }
        Ok((point, if shown.is_empty() { "the sweep".to_string() } else { shown }))
    }

    fn fits(&self, point: usize, wanted: &[Option<String>]) -> bool {
        self.points[point].0.iter().zip(wanted).all(|(have, want)| want.as_ref().is_none_or(|w| w == have))
    }
}

/// A text in a canonical form: numbers by their value, other texts unchanged.
fn canonical(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => format!("{}", x + 0.0),
        _ => text.to_string(),
    }
}

fn canonical_value(value: &Value) -> String {
    canonical(&value.to_string())
}

/// Units of time, in ns.
const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// The result columns that a value is compared with, and the factor from its unit to theirs.
fn quantity(unit: &str, column: &str) -> Result<(Vec<usize>, f64), String> {
    let time = TIMES.iter().find(|(name, _)| *name == unit);
    let (usual, per_unit) = match (time, Unit::named(unit)) {
        (Some((_, ns)), _) => ("iteration_time_ns", *ns),
        (None, Some(unit)) => unit.column(),
        (None, None) => {
            let mut units: Vec<&str> = TIMES.iter().map(|t| t.0).collect();
            units.extend(Unit::ALL.iter().map(|u| u.as_str()).filter(|u| !units.contains(u)).collect::<Vec<_>>());
            return Err(format!("unit = {unit:?}; it must be one of {}", units.join(", ")));
        }
    };
    let names = if column.is_empty() { usual } else { column };
    // Times are compared with times, and rates with rates.
    let end = |name: &str| name.rsplit('_').next().unwrap_or("").to_string();
    let mut columns = Vec::new();
    for name in names.split('+').map(str::trim) {
        let place = OUTCOME.iter().position(|c| c.name == name && c.kind != ColumnKind::Text);
        let Some(place) = place.filter(|_| end(name) == end(usual)) else {
            return Err(format!(
                "column = {name:?}: a value in {unit} is held against columns of results.csv whose names end as that of {usual}"
            ));
        };
        columns.push(place);
    }
    Ok((columns, per_unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sweep() -> Sweep {
        let text = "name = \"s\"\n[base.cluster]\nserver = \"dgx-h100\"\ngpus = 8\n[base.workload]\nkind = \"collective\"\n[sweep]\nreplicas = 2\n[axes]\n\"workload.op\" = [\"all-reduce\", \"all-gather\"]\n\"workload.bytes\" = [1024, 2048]\n";
        Sweep::parse(text, Path::new("s.toml")).unwrap()
    }

    fn read(text: &str) -> Result<Vec<CalibrationRow>, String> {
        calibration_rows(text, "m.csv", &sweep(), None).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_name_experiments_by_id_or_by_keys() {
        let by_id = read("experiment,value,unit,use,note\n2,5,us,,\n7,6,ms,checked,x\n1,9,us,doubtful,\n").unwrap();
        assert_eq!(by_id.iter().map(|r| r.experiments.clone()).collect::<Vec<_>>(), [vec![2, 3], vec![6, 7]]);
        assert_eq!((by_id[0].held_back, by_id[1].held_back), (false, true));
        let text = "# measured\nworkload.op,workload.bytes,cluster.gpus,value,unit\nall-gather,1024.0,8,5,us\n";
        let by_key = read(text).unwrap();
        assert_eq!(by_key[0].experiments, [4, 5]);
        assert_eq!(by_key[0].name, "workload.op = all-gather, workload.bytes = 1024, cluster.gpus = 8");
    }

    #[test]
    fn weights_follow_from_errors_and_rows_are_held_back() {
        let rows = read("experiment,value,unit,error\n0,10,us,1\n2,10,us,2\n").unwrap();
        assert!((rows[0].weight - 1.6).abs() < 1e-12 && (rows[1].weight - 0.4).abs() < 1e-12);
        let text = "experiment,value,unit\n0,1,us\n2,1,us\n4,1,us\n6,1,us\n";
        let rows = calibration_rows(text, "m.csv", &sweep(), Some(2)).unwrap();
        assert_eq!(rows.iter().map(|r| r.held_back).collect::<Vec<_>>(), [false, true, false, true]);
    }

    #[test]
    fn faults_name_the_line_and_what_would_be_right() {
        for (text, parts) in [
            ("experiment,value\n0,1\n", &["m.csv:1", "`unit`"][..]),
            ("experiment,value,unit,wheight\n0,1,us,1\n", &["m.csv:1", "wheight"]),
            ("# c\nexperiment,value,unit\n0,-1,us\n", &["m.csv:3", "above 0"]),
            ("experiment,value,unit\n0,1,h\n", &["m.csv:2", "GB/s"]),
            ("experiment,value,unit\n8,1,us\n", &["m.csv:2", "0 to 7"]),
            ("workload.bytes,value,unit\n1024,1,us\n", &["m.csv:2", "2 experiments", "columns"]),
            ("workload.bytes,value,unit\n7,1,us\n", &["m.csv:2", "no experiment", "workload.bytes = 7"]),
            ("experiment,value,unit,use\n0,1,us,maybe\n", &["m.csv:2", "doubtful"]),
            ("experiment,value,unit,column\n0,1,us,busbw_gbps\n", &["m.csv:2", "iteration_time_ns"]),
            ("experiment,value,unit,column\n0,1,us,status\n", &["m.csv:2", "status"]),
            ("experiment,value,unit,weight,error\n0,1,us,1,1\n", &["m.csv:1", "keep one"]),
            ("experiment,value,unit,error\n0,1,us,1\n2,1,us,\n", &["m.csv", "1 of 2"]),
            ("experiment,workload.bytes,value,unit\n0,2048,1,us\n", &["m.csv:2", "another one"]),
            ("experiment,value,unit\n", &["no measured rows"]),
            ("", &["`value`"]),
            ("experiment,value,unit\n0,1\n", &["m.csv:2"]),
        ] {
            let error = read(text).unwrap_err();
            assert!(parts.iter().all(|p| error.contains(p)), "{text:?}: {error}");
        }
    }
}
