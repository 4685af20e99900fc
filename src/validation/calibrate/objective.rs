//! Objective of a fit: how far predictions are from measurements, after Arcadia's Eq. 3, with relative errors.
//!
//! Layer: calibrate. The paper squares differences of times and adds, with a weight, how far pairs of rows are in the wrong order. Times of collectives of 8
//! B and of 2 GiB differ by five orders of magnitude. So this code takes logarithms of times, and means in place of sums; then the weight means the same for
//! any number of rows.

use super::rows::CalibrationRow;

/// Objective of rows that are fitted together.
pub(super) struct FitObjective<'a> {
    rows: &'a [CalibrationRow],
    /// Weight of the order of rows.
    order_weight: f64,
}

impl<'a> FitObjective<'a> {
    pub(super) fn new(rows: &'a [CalibrationRow], order_weight: f64) -> FitObjective<'a> {
        FitObjective { rows, order_weight }
    }

    /// Cost over the rows with indices `fitted`. Infinite without predictions.
    pub(super) fn cost(&self, predicted: Option<&[f64]>, fitted: &[usize]) -> f64 {
        let Some(predicted) = predicted else { return f64::INFINITY };
        let (mut sum, mut weights) = (0.0, 0.0);
        for &i in fitted {
            let error = log_error(&self.rows[i], predicted[i]);
            sum += self.rows[i].weight * error * error;
            weights += self.rows[i].weight;
        }
        let mean = if weights > 0.0 { sum / weights } else { 0.0 };
        if self.order_weight == 0.0 { mean } else { mean + self.order_weight * self.disorder(predicted, fitted) }
    }

    /// Mean over comparable pairs of rows of how far the prediction has them in the wrong order.
    fn disorder(&self, predicted: &[f64], fitted: &[usize]) -> f64 {
        let (mut sum, mut pairs) = (0.0, 0u64);
        for (n, &i) in fitted.iter().enumerate() {
            for &j in &fitted[n + 1..] {
                let (a, b) = (&self.rows[i], &self.rows[j]);
                if a.value == b.value || a.unit != b.unit || !a.is_comparable(b) {
                    continue;
                }
                pairs += 1;
                let ahead = libm::log(predicted[i] / predicted[j]);
                sum += if a.value < b.value { ahead.max(0.0) } else { (-ahead).max(0.0) };
            }
        }
        if pairs == 0 { 0.0 } else { sum / pairs as f64 }
    }
}

/// Logarithm of the predicted over the measured value.
pub(super) fn log_error(row: &CalibrationRow, predicted: f64) -> f64 {
    libm::log(predicted / row.value)
}

/// Mean absolute relative error over the rows with indices `fitted`; 0 if there are none.
pub(super) fn mean_error(rows: &[CalibrationRow], predicted: &[f64], fitted: &[usize]) -> f64 {
    let sum: f64 = fitted.iter().map(|&i| (predicted[i] / rows[i].value - 1.0).abs()).sum();
    if fitted.is_empty() { 0.0 } else { sum / fitted.len() as f64 }
}
