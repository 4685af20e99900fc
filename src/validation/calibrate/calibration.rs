//! Result of a fit: parameters, rows before and after, and which rows got better or worse.
//!
//! Layer: calibrate. Plain data.

use serde::Serialize;

use super::rows::CalibrationRow;
use hyperfold_validated::nearest_rank_90;

/// Largest change of an error that counts as none: half of the last digit that tables show.
const SAME: f64 = 0.0005;
/// Smallest increase of the error of an important row that is warned about (our choice): one percentage point.
const WORSE_FROM: f64 = 0.01;
/// Number of rows that a warning names.
const NAMED_UP_TO: usize = 3;

/// A fitted parameter.
#[derive(Clone, Debug, Serialize)]
pub struct FittedParameter {
    /// Name of the key.
    pub key: &'static str,
    /// Value in the sweep.
    pub before: f64,
    /// Fitted value.
    pub value: f64,
    /// Lower end of the 95 % interval, from resampling rows.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Lower bound of the search.
    pub min: f64,
    /// Upper bound of the search.
    pub max: f64,
    /// Whether the rows determine it.
    pub determined: bool,
    /// Whether moving it over its bounds changes the prediction of any measured row.
    pub has_effect: bool,
    /// A remark for the user. Empty if there is none.
    pub note: String,
    /// Fitted value as TOML.
    #[serde(skip)]
    pub toml: String,
}

/// Effect of a fit on the error of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowChange {
    /// The fit brought its prediction nearer to the measurement.
    Better,
    /// The fit took its prediction farther from the measurement.
    Worse,
    /// The fit left its prediction as it was.
    Same,
}

/// A measured row and its predictions.
#[derive(Clone, Debug, Serialize)]
pub struct FittedRow {
    /// Name in the measured file.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Measured value.
    pub measured: f64,
    /// Prediction of the sweep with its own values.
    pub before: f64,
    /// Prediction with fitted values.
    pub after: f64,
    /// Relative error with the sweep's own values, with its sign.
    pub error_before: f64,
    /// Relative error with fitted values, with its sign.
    pub error_after: f64,
    /// Whether the absolute error became smaller or larger.
    pub change: RowChange,
    /// Weight of the row in the fit, 1 on average.
    pub weight: f64,
    /// Whether the row was not fitted, only checked.
    pub held_back: bool,
}

impl FittedRow {
    /// Makes the row from its predictions before and after the fit.
    pub fn new(row: &CalibrationRow, before: f64, after: f64, weight: f64) -> FittedRow {
        let error = |said: f64| said / row.value - 1.0;
        let mut fitted = FittedRow {
            name: row.name.clone(),
            unit: row.unit.clone(),
            measured: row.value,
            before,
            after,
            error_before: error(before),
            error_after: error(after),
            change: RowChange::Same,
            weight,
            held_back: row.held_back,
        };
        fitted.change = match fitted.worse_by() {
            increase if increase > SAME => RowChange::Worse,
            increase if increase < -SAME => RowChange::Better,
            _ => RowChange::Same,
        };
        fitted
    }

    /// Increase of the absolute relative error. Below 0: the error became smaller.
    pub fn worse_by(&self) -> f64 {
        self.error_after.abs() - self.error_before.abs()
    }
}

/// Absolute relative errors of some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RowErrors {
    /// Number of rows.
    pub rows: usize,
    /// Mean error before and after the fit.
    pub mean: [f64; 2],
    /// Weighted mean error before and after the fit.
    pub weighted_mean: [f64; 2],
    /// 90th percentile of the errors before and after the fit.
    pub p90: [f64; 2],
    /// Number of rows that got better.
    pub better: usize,
    /// Number of rows that got worse.
    pub worse: usize,
}

impl RowErrors {
    /// Errors of the rows that were held back, or of the fitted rows.
    pub fn of(rows: &[FittedRow], held_back: bool) -> RowErrors {
        let chosen: Vec<&FittedRow> = rows.iter().filter(|r| r.held_back == held_back).collect();
        let weights = chosen.iter().map(|r| r.weight).sum::<f64>();
        let errors = |error: fn(&FittedRow) -> f64| {
            let mut all: Vec<f64> = chosen.iter().map(|r| error(r).abs()).collect();
            let weighted = chosen.iter().zip(&all).map(|(r, e)| r.weight * e).sum::<f64>();
            all.sort_by(f64::total_cmp);
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64 + 0.0;
            (mean, if weights > 0.0 { weighted / weights } else { 0.0 }, nearest_rank_90(&all))
        };
        let (before, after) = (errors(|r| r.error_before), errors(|r| r.error_after));
        let changed = |change: RowChange| chosen.iter().filter(|r| r.change == change).count();
        RowErrors {
            rows: chosen.len(),
            mean: [before.0, after.0],
            weighted_mean: [before.1, after.1],
            p90: [before.2, after.2],
            better: changed(RowChange::Better),
            worse: changed(RowChange::Worse),
        }
    }
}

/// Result of a fit.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// Parameters, in the order in which they were asked for.
    pub parameters: Vec<FittedParameter>,
    /// Rows, in the order of the measured file.
    pub rows: Vec<FittedRow>,
    /// Name of the weights of the rows.
    pub weights: &'static str,
    /// Errors of the fitted rows.
    pub fitted: RowErrors,
    /// Errors of the rows that were held back.
    pub held_back: RowErrors,
    /// Mean absolute error of rows, predicted by fits without them. `None`: there was no cross-validation.
    pub cross_validation: Option<f64>,
    /// Number of parts of the cross-validation.
    pub folds: usize,
    /// Number of candidates that were run.
    pub candidates: usize,
    /// Whether the fit was stopped early. The values are then those of the best candidate that had run.
    pub stopped: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A warning about important rows that got worse. A row is important if its weight or its measured time is above the average. `by_time`: rows are already
/// weighted by time. `None`: there are no such rows.
pub(super) fn what_got_worse(rows: &[FittedRow], times_ns: &[Option<f64>], by_time: bool) -> Option<String> {
    let known = times_ns.iter().flatten();
    let (all_ns, n) = (known.clone().sum::<f64>(), known.count());
    let all_weights = rows.iter().map(|r| r.weight).sum::<f64>();
    let mut worse: Vec<(f64, String)> = Vec::new();
    for (row, ns) in rows.iter().zip(times_ns).filter(|(row, _)| row.worse_by() > WORSE_FROM) {
        let of_time = ns.map(|ns| ns / all_ns).filter(|share| share * n as f64 > 1.0);
        let of_weight = Some(row.weight / all_weights).filter(|share| share * rows.len() as f64 > 1.0 + 1e-9);
        let (share, share_of) = match (of_time, of_weight) {
            (Some(share), _) => (share, "measured time"),
            (None, Some(share)) => (share, "weight"),
            (None, None) => continue,
        };
        let [before, after] = [row.error_before, row.error_after].map(|e| format!("{:+.1} %", e * 100.0));
        let text = format!("{} from {before} to {after} ({:.0} % of the {share_of})", row.name, share * 100.0);
        worse.push((share * row.worse_by(), text));
    }
    worse.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = worse.len().saturating_sub(NAMED_UP_TO);
    let named: Vec<String> = worse.into_iter().take(NAMED_UP_TO).map(|(_, text)| text).collect();
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        let hint = if by_time { "" } else { ", or give them more weight with --weights time" };
        format!("rows that count much got worse: {}{rest}. Fit other keys{hint}", named.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, error_before: f64, error_after: f64, weight: f64) -> FittedRow {
        let mut row = FittedRow {
            name: name.to_string(),
            unit: "us".to_string(),
            measured: 100.0,
            before: 100.0 * (1.0 + error_before),
            after: 100.0 * (1.0 + error_after),
            error_before,
            error_after,
            change: RowChange::Same,
            weight,
            held_back: false,
        };
        row.change = if row.worse_by() > 0.0 { RowChange::Worse } else { RowChange::Better };
        row
    }

    #[test]
    fn a_mean_that_falls_does_not_hide_a_large_row_that_got_worse() {
        let rows = [row("small", 0.3, 0.1, 0.1), row("middle", -0.2, 0.05, 0.4), row("large", 0.01, 0.2, 2.5)];
        let errors = RowErrors::of(&rows, false);
        assert!(errors.mean[1] < errors.mean[0] && errors.weighted_mean[1] > errors.weighted_mean[0], "{errors:?}");
        assert_eq!((errors.better, errors.worse), (2, 1));
        let times = [Some(10.0), Some(200.0), Some(3000.0)];
        let said = what_got_worse(&rows, &times, false).unwrap();
        assert!(said.ends_with("--weights time"));
        assert!(said.contains("large from +1.0 % to +20.0 % (93 % of the measured time)"), "{said}");
        assert!(!said.contains("small") && !said.contains("middle"), "{said}");
        // By weight alone, and of a row that counts little.
        assert!(what_got_worse(&rows, &[None; 3], true).unwrap().contains("(83 % of the weight). Fit other keys"));
        let light = [row("small", 0.1, 0.3, 0.1), row("large", 0.2, 0.01, 1.9)];
        assert_eq!(what_got_worse(&light, &[Some(1.0), Some(9.0)], false), None);
    }
}
