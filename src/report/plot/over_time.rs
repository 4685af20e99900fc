//! Makes a figure of samples over time: of links or of flows.
//!
//! Layer: plot. Files may be larger than memory, so they are read twice: for the links or flows that are shown, and for their points.

use std::collections::BTreeMap;

use hyperfold_results::{ReadError, RunColumns};

use super::PlotError;
use super::columns::{series_columns, series_labels};
use super::figure::{AxisScale, Figure, FigureAxis, FigurePoint, Form, Series};
use super::quantity::Quantity;

/// Names of the columns that can be drawn over time.
pub const OVER_TIME: [&str; 9] = [
    "queue_bytes",
    "throughput_gbps",
    "ecn_marks",
    "pfc_pauses",
    "drops",
    "rate_gbps",
    "window_bytes",
    "outstanding_bytes",
    "goodput_gbps",
];
/// Number of series that are chosen if none are named.
const CHOSEN: usize = 6;
/// Maximum number of series that are named.
const MAX_SERIES: usize = 24;
/// Maximum number of points of a series. Of more, each point is the largest of several.
const MAX_POINTS: usize = 2000;
/// Number of names that an error lists.
const LISTED: usize = 6;

/// Request for a figure of samples over time.
#[derive(Clone, Debug, Default)]
pub struct OverTimeFigure {
    /// The column, one of [`OVER_TIME`].
    pub of: String,
    /// Links that are shown; empty: those with the largest values.
    pub links: Vec<String>,
    /// Flows that are shown; empty: those with the largest values.
    pub flows: Vec<u32>,
    /// Columns of the results whose values distinguish the experiments.
    pub by: Vec<String>,
    /// Title. `None`: it is made of names.
    pub title: Option<String>,
}

/// A column that can be drawn.
struct Sampled {
    label: &'static str,
    quantity: Quantity,
    /// Whether it counts since the sample time before. Others are states at the sample time.
    is_count: bool,
    /// Whether it is 0 before the first row. Rates and windows are not.
    begins_with_zero: bool,
    is_of_flows: bool,
}

impl Sampled {
    fn new(column: &str) -> Sampled {
        let (label, quantity, is_count) = match column {
            "throughput_gbps" => ("throughput (Gb/s)", Quantity::Plain, true),
            "ecn_marks" => ("ECN marks in an interval", Quantity::Plain, true),
            "pfc_pauses" => ("PFC pauses in an interval", Quantity::Plain, true),
            "drops" => ("drops in an interval", Quantity::Plain, true),
            "rate_gbps" => ("rate (Gb/s)", Quantity::Plain, false),
            "window_bytes" => ("window", Quantity::Bytes, false),
            "outstanding_bytes" => ("outstanding", Quantity::Bytes, false),
            "goodput_gbps" => ("goodput (Gb/s)", Quantity::Plain, true),
            _ => ("queue", Quantity::Bytes, false),
        };
        let is_of_flows = matches!(column, "rate_gbps" | "window_bytes" | "outstanding_bytes" | "goodput_gbps");
        let begins_with_zero = !matches!(column, "rate_gbps" | "window_bytes");
        Sampled { label, quantity, is_count, begins_with_zero, is_of_flows }
    }

    fn file(&self) -> &'static str {
        if self.is_of_flows { "series_flows.csv" } else { "series_links.csv" }
    }

    fn setting(&self) -> &'static str {
        if self.is_of_flows { "output.series = \"flows\"" } else { "output.series = \"links\"" }
    }
}

/// A value at a sample time.
struct Value {
    exp_id: u64,
    /// The link, or the flow with its ends.
    name: String,
    /// Number of the flow.
    flow: Option<u32>,
    time_ns: f64,
    interval_ns: f64,
    value: f64,
}

/// Calls `each` with the values of a column, in the order of the file. Returns false if there is no such file.
fn each_value(run: &RunColumns, column: &str, mut each: impl FnMut(Value)) -> Result<bool, ReadError> {
    let ns = |ps: u64| ps as f64 / 1e3;
    let gbps = |bytes: u64, ps: u64| bytes as f64 * 8e3 / ps.max(1) as f64;
    if Sampled::new(column).is_of_flows {
        return run.each_flow_sample(|exp_id, s| {
            let value = match column {
                "rate_gbps" => s.rate_gbps.0 as f64 / 1e6,
                "goodput_gbps" => gbps(s.acked_bytes, s.interval.0),
                "outstanding_bytes" => s.outstanding_bytes as f64,
                _ => match s.window_bytes {
                    Some(bytes) => bytes as f64,
                    None => return,
                },
            };
            let name = format!("{}: {}->{}", s.flow_id, s.source, s.target);
            let (time_ns, interval_ns) = (ns(s.time.0), ns(s.interval.0));
            each(Value { exp_id, name, flow: Some(s.flow_id), time_ns, interval_ns, value });
        });
    }
    run.each_link_sample(|exp_id, s| {
        let value = match column {
            "throughput_gbps" => gbps(s.tx_bytes, s.interval.0),
            "ecn_marks" => s.ecn_marks as f64,
            "pfc_pauses" => s.pfc_pauses as f64,
            "drops" => s.drops as f64,
            _ => s.queue_bytes as f64,
        };
        let (time_ns, interval_ns) = (ns(s.time.0), ns(s.interval.0));
        each(Value { exp_id, name: s.link.to_string(), flow: None, time_ns, interval_ns, value });
    })
}

/// Makes the figure of a column over time.
///
/// # Errors
/// The run did not write the file, a file is damaged, a column, link or flow does not exist, or several experiments would be one series.
pub fn figure_over_time(run: &RunColumns, asked: &OverTimeFigure) -> Result<Figure, PlotError> {
    let sampled = Sampled::new(&asked.of);
    let option = if sampled.is_of_flows { "--link" } else { "--flow" };
    if if sampled.is_of_flows { !asked.links.is_empty() } else { !asked.flows.is_empty() } {
        let why = format!("{option} does not go with --over-time {}, which is of {}", asked.of, sampled.file());
        return Err(PlotError::Nothing(why));
    }
    let by_columns = series_columns(run, &asked.by)?;
    let labels = series_labels(run, &by_columns)?;
    // Largest values by experiment and name.
    let mut peaks: BTreeMap<String, f64> = BTreeMap::new();
    let mut experiment_of_label: Vec<Option<u64>> = vec![None; labels.names.len()];
    let mut mixed = None;
    let is_asked = |v: &Value| match v.flow {
        Some(flow) => asked.flows.is_empty() || asked.flows.contains(&flow),
        None => asked.links.is_empty() || asked.links.contains(&v.name),
    };
    let mut links_there: Vec<String> = Vec::new();
    let mut found_flows: Vec<u32> = Vec::new();
    let written = each_value(run, &asked.of, |v| {
        let Some(row) = run.find(v.exp_id) else { return };
        let first = *experiment_of_label[labels.of_row[row]].get_or_insert(v.exp_id);
        if first != v.exp_id {
            mixed.get_or_insert((first, v.exp_id));
        }
        if !is_asked(&v) {
            if links_there.len() < LISTED && !links_there.contains(&v.name) {
                links_there.push(v.name);
            }
            return;
        }
        found_flows.extend(v.flow.filter(|flow| asked.flows.contains(flow) && !found_flows.contains(flow)));
        let peak = peaks.entry(v.name).or_insert(0.0);
        *peak = peak.max(v.value);
    });
    if !written? {
        let (file, setting) = (sampled.file(), sampled.setting());
        return Err(PlotError::NotWritten { dir: run.path.display().to_string(), file, setting });
    }
    if let Some((a, b)) = mixed {
        return Err(PlotError::Nothing(format!(
            "--over-time {}: experiments {a} and {b} would be one series; name by --by what they differ in, or choose one, such as by --where 'exp_id == {a}'",
            asked.of
        )));
    }
    let absent = asked.links.iter().find(|link| !peaks.contains_key(*link)).cloned();
    let absent = absent.or_else(|| asked.flows.iter().find(|flow| !found_flows.contains(flow)).map(u32::to_string));
    if let Some(name) = absent {
        let why = format!("it has no row in {}; there are {}", sampled.file(), links_there.join(", "));
        let option = if sampled.is_of_flows { "--flow" } else { "--link" };
        return Err(PlotError::Column { option, name, why });
    }
    let is_chosen = asked.links.is_empty() && asked.flows.is_empty();
    let n_labels = experiment_of_label.iter().flatten().count();
    let n_shown = if is_chosen { (CHOSEN / n_labels.max(1)).max(1) } else { peaks.len() };
    if n_shown * n_labels > MAX_SERIES {
        return Err(PlotError::Nothing(format!(
            "--over-time {}: {} series cannot be told apart; at most {MAX_SERIES} are drawn",
            asked.of,
            n_shown * n_labels
        )));
    }
    let mut by_peak: Vec<(&String, f64)> = peaks.iter().map(|(name, peak)| (name, *peak)).collect();
    by_peak.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    by_peak.truncate(n_shown);
    let mut shown: Vec<&String> = by_peak.into_iter().map(|(name, _)| name).collect();
    shown.sort();
    let mut points: BTreeMap<(usize, usize), Vec<FigurePoint>> = BTreeMap::new();
    each_value(run, &asked.of, |v| {
        let Some(row) = run.find(v.exp_id) else { return };
        let Ok(place) = shown.binary_search(&&v.name) else { return };
        let of_series = points.entry((labels.of_row[row], place)).or_default();
        if of_series.is_empty() && sampled.begins_with_zero {
            of_series.push(FigurePoint::of(0.0, 0.0));
        }
        add(of_series, &v, sampled.is_count);
    })?;
    let is_one = |n: usize| n <= 1;
    let series: Vec<Series> = points
        .into_iter()
        .map(|((label, place), points)| Series {
            label: match (is_one(n_labels), is_one(shown.len())) {
                (true, _) => shown[place].clone(),
                (false, true) => labels.names[label].clone(),
                (false, false) => format!("{}, {}", labels.names[label], shown[place]),
            },
            points: thinned(points),
        })
        .collect();
    if series.is_empty() {
        return Err(PlotError::Nothing(format!("--over-time {}: {} has no values of it", asked.of, sampled.file())));
    }
    let what = if sampled.is_of_flows { "flows" } else { "links" };
    let note = match (is_chosen && shown.len() < peaks.len(), shown.len()) {
        (true, _) => format!("the {} of {} {what} with the largest values", shown.len(), peaks.len()),
        (false, 1) => shown[0].clone(),
        (false, _) => String::new(),
    };
    let legend = match is_one(n_labels) {
        true if series.len() == 1 => String::new(),
        true => (if sampled.is_of_flows { "flow" } else { "link" }).to_string(),
        false => by_columns.iter().map(|c| run.columns[*c].name.as_str()).collect::<Vec<_>>().join(", "),
    };
    Ok(Figure {
        title: asked.title.clone().unwrap_or_else(|| format!("{}: {} over time", run.manifest.name, sampled.label)),
        note,
        x: FigureAxis { label: "time".into(), quantity: Quantity::Time, scale: AxisScale::Linear },
        y: FigureAxis { label: sampled.label.into(), quantity: sampled.quantity, scale: AxisScale::Linear },
        legend,
        series,
        form: Form::Steps,
    })
}

/// Adds a value to the steps of a series. A count lies over the interval before its time, and is 0 where there is no row. A state holds until the next row.
fn add(points: &mut Vec<FigurePoint>, v: &Value, is_count: bool) {
    if !is_count {
        points.push(FigurePoint::of(v.time_ns, v.value));
        return;
    }
    let begin = v.time_ns - v.interval_ns;
    // The step before ends at the last point, with 0.
    if points.last().is_some_and(|last| (last.x - begin).abs() < 0.5 * v.interval_ns) {
        points.pop();
    }
    points.push(FigurePoint::of(begin, v.value));
    points.push(FigurePoint::of(v.time_ns, 0.0));
}

/// Leaves at most [`MAX_POINTS`] points: of each group the first time with the largest value.
fn thinned(points: Vec<FigurePoint>) -> Vec<FigurePoint> {
    let size = points.len().div_ceil(MAX_POINTS);
    if size <= 1 {
        return points;
    }
    let largest = |group: &[FigurePoint]| {
        FigurePoint::of(group[0].x, group.iter().map(|p| p.y).fold(f64::NEG_INFINITY, f64::max))
    };
    points.chunks(size).map(largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(rows: &[(f64, f64)], is_count: bool) -> Vec<(f64, f64)> {
        let mut points = vec![FigurePoint::of(0.0, 0.0)];
        for &(time_ns, value) in rows {
            let v = Value { exp_id: 0, name: String::new(), flow: None, time_ns, interval_ns: 10.0, value };
            add(&mut points, &v, is_count);
        }
        points.iter().map(|p| (p.x, p.y)).collect()
    }

    #[test]
    fn counts_are_of_the_interval_before_and_states_hold() {
        let rows = [(10.0, 3.0), (20.0, 5.0), (50.0, 1.0)];
        assert_eq!(steps(&rows, true), [(0.0, 3.0), (10.0, 5.0), (20.0, 0.0), (40.0, 1.0), (50.0, 0.0)]);
        assert_eq!(steps(&rows, false), [(0.0, 0.0), (10.0, 3.0), (20.0, 5.0), (50.0, 1.0)]);
    }

    #[test]
    fn of_too_many_points_the_largest_are_left() {
        let points: Vec<FigurePoint> = (0..5000).map(|k| FigurePoint::of(f64::from(k), f64::from(k % 7))).collect();
        let thin = thinned(points);
        assert_eq!((thin.len(), thin[0].x, thin[1].x, thin[1].y), (1667, 0.0, 3.0, 5.0));
    }
}
