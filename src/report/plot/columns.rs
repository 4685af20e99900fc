//! Makes a figure of two columns of the results, with a series for each value of a third column.
//!
//! Layer: plot. Experiments with the same x and series become one point, at their mean.

use std::collections::BTreeMap;

use hyperfold_base::nearest::nearest_column;
use hyperfold_results::{Cell, ColumnKind, RunColumns};

use super::PlotError;
use super::figure::{AxisScale, Figure, FigureAxis, FigurePoint, Form, Series};
use super::quantity::Quantity;

/// Maximum number of series that can be told apart.
const MAX_SERIES: usize = 24;
/// Maximum number of categories that fit on an axis.
const MAX_CATEGORIES: usize = 40;

/// Request for a figure of two columns.
#[derive(Clone, Debug, Default)]
pub struct ColumnFigure {
    /// Column on the horizontal axis.
    pub x: String,
    /// Column on the vertical axis.
    pub y: String,
    /// Columns whose values distinguish the series.
    pub by: Vec<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// Whether to draw a mark for every experiment, and no lines.
    pub points: bool,
    /// Title. `None`: it is made of the names of the columns.
    pub title: Option<String>,
}

/// Makes the figure of two columns.
///
/// # Errors
/// A column does not exist, has no values of the type that is needed, or has more values than can be told apart.
pub fn figure_of_columns(run: &RunColumns, asked: &ColumnFigure) -> Result<Figure, PlotError> {
    let x = column(run, "--x", &asked.x)?;
    let y = column(run, "--y", &asked.y)?;
    let by_columns = series_columns(run, &asked.by)?;
    let name = |c: usize| run.columns[c].name.as_str();
    let wrong = |option, c: usize, why: String| PlotError::Column { option, name: name(c).into(), why };
    if !is_numeric(run, y) {
        let numbers = names(run, |c| is_numeric(run, c));
        return Err(wrong(
            "--y",
            y,
            format!("it has words, no numbers; columns with numbers are {}", numbers.join(", ")),
        ));
    }
    let categories = (!is_numeric(run, x)).then(|| distinct(run, x));
    if let Some(names) = &categories {
        if asked.log_x {
            return Err(wrong("--log-x", x, "it has words, which have no logarithm".into()));
        }
        if names.len() > MAX_CATEGORIES {
            return Err(wrong(
                "--x",
                x,
                format!("it has {} different words, and a figure has room for {MAX_CATEGORIES}", names.len()),
            ));
        }
    }
    let place = |row: usize| match &categories {
        Some(names) => names.iter().position(|n| *n == run.rows[row][x].to_string()).map(|index| index as f64),
        None => run.number(row, x),
    };
    let mut left_out = LeftOut::default();
    let mut groups: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    let labels = series_labels(run, &by_columns)?;
    for row in 0..run.rows.len() {
        match (place(row), run.number(row, y)) {
            (Some(x_value), Some(y_value)) if (asked.log_x && x_value <= 0.0) || (asked.log_y && y_value <= 0.0) => {
                left_out.no_logarithm += 1
            }
            (Some(x_value), Some(y_value)) => groups.entry(labels.of_row[row]).or_default().push((x_value, y_value)),
            _ => left_out.without_value += 1,
        }
    }
    if groups.is_empty() {
        let why = if left_out.no_logarithm > 0 {
            "no value is above 0, so none has a logarithm"
        } else {
            "no experiment has both columns"
        };
        return Err(PlotError::Nothing(format!("--x {} --y {}: {why}", asked.x, asked.y)));
    }
    let is_search = |method: &str| matches!(method, "random" | "lhs" | "optimize");
    let drawn = run.sweep().and_then(|s| Some(is_search(s.get("sweep")?.get("method")?.as_str()?))).unwrap_or(false);
    // Random points have no neighbours, so a line through them would be meaningless.
    let form = if asked.points || (drawn && categories.is_none()) { Form::Points } else { Form::Lines };
    let mut merged = 1;
    let series = groups
        .into_iter()
        .map(|(label, values)| {
            let points = if form == Form::Points { each(values) } else { means(values, &mut merged) };
            Series { label: labels.names[label].clone(), points }
        })
        .collect();
    let quantity = [x, y].map(|c| Quantity::of(name(c)));
    let scale = |log| if log { AxisScale::Log } else { AxisScale::Linear };
    let label = |c: usize, quantity: Quantity| {
        let of_job = run.job_of_column(name(c)).map(|job| format!(" of job {job}")).unwrap_or_default();
        format!("{}{of_job}", quantity.label(name(c)))
    };
    let axis = |c: usize, quantity: Quantity, scale| FigureAxis { label: label(c, quantity), quantity, scale };
    let title = format!("{}: {} over {}", run.manifest.name, label(y, quantity[1]), label(x, quantity[0]));
    Ok(Figure {
        title: asked.title.clone().unwrap_or(title),
        note: [means_note(run, merged, &[&[x], &by_columns[..]].concat()), left_out.note(name(y))].concat().join("; "),
        x: axis(x, quantity[0], categories.map_or(scale(asked.log_x), AxisScale::Categories)),
        y: axis(y, quantity[1], scale(asked.log_y)),
        legend: by_columns.iter().map(|c| name(*c)).collect::<Vec<_>>().join(", "),
        series,
        form,
    })
}

/// Experiments that are not part of any point.
#[derive(Default)]
struct LeftOut {
    without_value: usize,
    no_logarithm: usize,
}

impl LeftOut {
    fn note(&self, y: &str) -> Vec<String> {
        let plural = |n: usize| if n == 1 { "experiment" } else { "experiments" };
        let mut notes = Vec::new();
        if self.without_value > 0 {
            notes.push(format!("{} {} without {y} left out", self.without_value, plural(self.without_value)));
        }
        if self.no_logarithm > 0 {
            notes.push(format!("{} {} not above 0 left out", self.no_logarithm, plural(self.no_logarithm)));
        }
        notes
    }
}

/// A note on what the points are means over. Empty if each point is one experiment.
fn means_note(run: &RunColumns, max_values: usize, used: &[usize]) -> Vec<String> {
    if max_values == 1 {
        return Vec::new();
    }
    let mut averaged: Vec<&str> = run
        .axes()
        .filter(|c| !used.contains(c) && distinct(run, *c).len() > 1)
        .map(|c| run.columns[c].name.as_str())
        .collect();
    if run.manifest.replicas > 1 {
        averaged.push("replicas");
    }
    let averaged = if averaged.is_empty() { format!("up to {max_values} experiments") } else { averaged.join(", ") };
    vec![format!("means over {averaged}; bars from least to most")]
}

fn each(mut values: Vec<(f64, f64)>) -> Vec<FigurePoint> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    values.into_iter().map(|(x, y)| FigurePoint::of(x, y)).collect()
}

/// One point for each x, at the mean of its values. `max_values` is raised to the largest number of values of a point.
fn means(mut values: Vec<(f64, f64)>, max_values: &mut usize) -> Vec<FigurePoint> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let point = |same: &[(f64, f64)]| {
        let (first, last) = (same[0], same[same.len() - 1]);
        // Values are sorted, so the sum is always in the same order.
        let mean = same.iter().map(|(_, y)| y).sum::<f64>() / same.len() as f64;
        FigurePoint { x: first.0, y: mean.clamp(first.1, last.1), range: (first.1, last.1) }
    };
    let groups = values.chunk_by(|a, b| a.0 == b.0);
    groups
        .map(|same| {
            *max_values = (*max_values).max(same.len());
            point(same)
        })
        .collect()
}

/// Names of the series, and the index of the series of each row.
pub(super) struct SeriesLabels {
    pub(super) names: Vec<String>,
    pub(super) of_row: Vec<usize>,
}

/// Makes series by the values of these columns. Numbers are in ascending order, words in order of appearance.
pub(super) fn series_labels(run: &RunColumns, by_columns: &[usize]) -> Result<SeriesLabels, PlotError> {
    let orders: Vec<Vec<String>> = by_columns.iter().map(|c| distinct(run, *c)).collect();
    let key = |row: usize| -> Vec<usize> {
        let rank = |(c, order): (&usize, &Vec<String>)| {
            let text = run.rows[row][*c].to_string();
            order.iter().position(|v| *v == text).unwrap_or(order.len())
        };
        by_columns.iter().zip(&orders).map(rank).collect()
    };
    let keys: Vec<Vec<usize>> = (0..run.rows.len()).map(key).collect();
    let mut sorted = keys.clone();
    sorted.sort();
    sorted.dedup();
    if sorted.len() > MAX_SERIES {
        let name = by_columns.iter().map(|c| run.columns[*c].name.as_str()).collect::<Vec<_>>().join(" with ");
        let why =
            format!("{} series cannot be told apart; name a column with at most {MAX_SERIES} values", sorted.len());
        return Err(PlotError::Column { option: "--by", name, why });
    }
    let word = |(rank, order): (&usize, &Vec<String>)| {
        order.get(*rank).map_or("none", |v| if v.is_empty() { "none" } else { v }).to_string()
    };
    let names = sorted.iter().map(|k| k.iter().zip(&orders).map(word).collect::<Vec<_>>().join(", ")).collect();
    let of_row = keys.iter().map(|k| sorted.binary_search(k).expect("every key is among them")).collect();
    Ok(SeriesLabels { names, of_row })
}

/// Indices of the columns that `--by` names.
pub(super) fn series_columns(run: &RunColumns, by: &[String]) -> Result<Vec<usize>, PlotError> {
    by.iter().map(|name| column(run, "--by", name)).collect()
}

/// The column with this name, or the only axis that ends in `.name`.
fn column(run: &RunColumns, option: &'static str, name: &str) -> Result<usize, PlotError> {
    let ends = axes_ending(run, name);
    // Series are mostly by axes, figures mostly of results: `algorithm` is both the axis `workload.algorithm` and a column.
    let (axis, exact) =
        (ends.first().filter(|_| ends.len() == 1).copied(), run.column(name).filter(|c| has_values(run, *c)));
    if let Some(index) = if option == "--by" { axis.or(exact) } else { exact.or(axis) } {
        return Ok(index);
    }
    let known = names(run, |c| has_values(run, c));
    let there = format!("there are {}", known.join(", "));
    let why = match nearest_column(name, known.iter().copied()) {
        _ if known.is_empty() => "no experiment has a result".to_string(),
        _ if run.column(name).is_some() => format!("no experiment has a value; {there}"),
        _ if !ends.is_empty() => {
            format!(
                "several axes end so: {}",
                ends.iter().map(|c| run.columns[*c].name.as_str()).collect::<Vec<_>>().join(", ")
            )
        }
        Some(near) => format!("no such column; did you mean `{near}`? {}", there.replacen("there", "There", 1)),
        None => format!("no such column; {there}"),
    };
    Err(PlotError::Column { option, name: name.into(), why })
}

/// Axes whose last part is this name.
pub(super) fn axes_ending(run: &RunColumns, name: &str) -> Vec<usize> {
    run.axes().filter(|c| run.columns[*c].name.rsplit('.').next() == Some(name)).collect()
}

fn names(run: &RunColumns, keep: impl Fn(usize) -> bool) -> Vec<&str> {
    (0..run.columns.len()).filter(|c| keep(*c)).map(|c| run.columns[c].name.as_str()).collect()
}

fn has_values(run: &RunColumns, column: usize) -> bool {
    run.rows.iter().any(|row| row[column] != Cell::Empty)
}

fn is_numeric(run: &RunColumns, column: usize) -> bool {
    matches!(run.columns[column].kind, ColumnKind::Int | ColumnKind::Unsigned | ColumnKind::Real)
        && has_values(run, column)
}

/// Distinct values of a column as texts. Numbers are in ascending order, words in order of appearance.
fn distinct(run: &RunColumns, column: usize) -> Vec<String> {
    let mut cells: Vec<&Cell> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for row in &run.rows {
        if row[column] != Cell::Empty && seen.insert(row[column].to_string()) {
            cells.push(&row[column]);
        }
    }
    if is_numeric(run, column) {
        cells.sort_by(|a, b| a.number().unwrap_or(0.0).total_cmp(&b.number().unwrap_or(0.0)));
    }
    cells.iter().map(|c| c.to_string()).collect()
}
