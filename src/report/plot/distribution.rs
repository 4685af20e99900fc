//! Makes a figure of the distribution of flow values or round-trip times: the share of values that are at most x.
//!
//! Layer: plot.

use hyperfold_results::{ReadError, RunColumns};

use super::PlotError;
use super::columns::{series_columns, series_labels};
use super::figure::{AxisScale, Figure, FigureAxis, FigurePoint, Form, Series};
use super::quantity::Quantity;

/// Names of the available distributions.
pub const DISTRIBUTIONS: [&str; 4] = ["fct", "slowdown", "bytes", "rtt"];
/// Maximum number of steps of a series. If there are more values, this many quantiles are drawn.
const MAX_STEPS: usize = 2000;

/// Request for a figure of a distribution.
#[derive(Clone, Debug, Default)]
pub struct DistributionFigure {
    /// The distribution, one of [`DISTRIBUTIONS`].
    pub of: String,
    /// Columns of the results whose values distinguish the series.
    pub by: Vec<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Title. `None`: it is made of names.
    pub title: Option<String>,
}

/// Makes the figure of a distribution.
///
/// # Errors
/// The run did not write the file, a file is damaged, a column does not exist, or there is nothing to draw.
pub fn figure_of_distribution(run: &RunColumns, asked: &DistributionFigure) -> Result<Figure, PlotError> {
    let by_columns = series_columns(run, &asked.by)?;
    let labels = series_labels(run, &by_columns)?;
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); labels.names.len()];
    let (mut unfinished, mut no_logarithm) = (0_u64, 0_u64);
    let mut take = |exp_id: u64, value: Option<f64>| match (run.find(exp_id), value) {
        (None, _) => {}
        (Some(_), None) => unfinished += 1,
        (Some(_), Some(v)) if asked.log_x && v <= 0.0 => no_logarithm += 1,
        (Some(row), Some(v)) => values[labels.of_row[row]].push(v),
    };
    let ns = |ps: u64| ps as f64 / 1e3;
    let (file, setting, name, written): (_, _, _, Result<bool, ReadError>) = match asked.of.as_str() {
        "bytes" => {
            ("flows.csv", "output.flows = true", "bytes", run.each_flow(|id, flow| take(id, Some(flow.bytes as f64))))
        }
        "slowdown" => (
            "flows.csv",
            "output.flows = true",
            "fct_slowdown_p50",
            run.each_flow(|id, flow| take(id, flow.measures.slowdown.map(|s| s.0 as f64 / 1e6))),
        ),
        "rtt" => {
            ("rtt.csv", "output.rtt = true", "rtt_ns", run.each_rtt(|id, sample| take(id, Some(ns(sample.rtt.0)))))
        }
        _ => (
            "flows.csv",
            "output.flows = true",
            "fct_ns",
            run.each_flow(|id, flow| take(id, flow.fct.map(|t| ns(t.0)))),
        ),
    };
    if !written? {
        return Err(PlotError::NotWritten { dir: run.path.display().to_string(), file, setting });
    }
    let series: Vec<Series> = labels
        .names
        .iter()
        .zip(values)
        .filter(|(_, values)| !values.is_empty())
        .map(|(label, values)| Series { label: label.clone(), points: steps(values) })
        .collect();
    if series.is_empty() {
        return Err(PlotError::Nothing(format!("--cdf {}: {file} has no values of it", asked.of)));
    }
    let quantity = Quantity::of(name);
    let quantity_name = match asked.of.as_str() {
        "bytes" => "size of flows",
        "rtt" => "round-trip time",
        "slowdown" => "slowdown of flows",
        _ => "flow completion time",
    };
    let mut notes = Vec::new();
    if unfinished > 0 {
        notes.push(format!("{unfinished} unfinished flows left out"));
    }
    if no_logarithm > 0 {
        notes.push(format!("{no_logarithm} values not above 0 left out"));
    }
    let scale = if asked.log_x { AxisScale::Log } else { AxisScale::Linear };
    Ok(Figure {
        title: asked.title.clone().unwrap_or_else(|| format!("{}: {quantity_name}", run.manifest.name)),
        note: notes.join("; "),
        x: FigureAxis { label: quantity_name.into(), quantity, scale },
        y: FigureAxis {
            label: format!("cumulative share of {}", if asked.of == "rtt" { "samples" } else { "flows" }),
            quantity: Quantity::Share,
            scale: AxisScale::Linear,
        },
        legend: by_columns.iter().map(|c| run.columns[*c].name.as_str()).collect::<Vec<_>>().join(", "),
        series,
        form: Form::Steps,
    })
}

/// Steps of the distribution: for each x the share of values that are at most x, starting at 0.
fn steps(mut values: Vec<f64>) -> Vec<FigurePoint> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let drawn = n.min(MAX_STEPS);
    let mut points = vec![FigurePoint::of(values[0], 0.0)];
    for i in 1..=drawn {
        // The last rank is that of the largest value.
        let rank = i * n / drawn;
        let point = FigurePoint::of(values[rank - 1], rank as f64 / n as f64);
        match points.last_mut() {
            Some(last) if last.x == point.x && last.y > 0.0 => *last = point,
            _ => points.push(point),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_reach_from_none_to_all() {
        let points =
            |values: &[f64]| -> Vec<(f64, f64)> { steps(values.to_vec()).iter().map(|p| (p.x, p.y)).collect() };
        assert_eq!(points(&[3.0, 1.0, 2.0, 2.0]), [(1.0, 0.0), (1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(points(&[7.0]), [(7.0, 0.0), (7.0, 1.0)]);
        let many: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let drawn = points(&many);
        assert_eq!((drawn.len(), drawn[1000], drawn[MAX_STEPS]), (MAX_STEPS + 1, (50_000.0, 0.5), (100_000.0, 1.0)));
    }
}
