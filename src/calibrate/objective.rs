//! How far predictions are from measurements: Arcadia's Eq. 3, relative.
//!
//! Layer: calibrate. The paper squares differences of times and adds, with a weight, how far pairs are in the wrong order. Collectives of 8 B and of 2 GiB
//! are five orders of magnitude apart, so this takes logarithms of times instead, and means instead of sums: then the weight means the same for any number of rows.

use super::rows::CalibrationRow;

/// Which pairs of rows have an order, for rows that are fitted together.
pub(super) struct FitObjective<'a> {
    rows: &'a [CalibrationRow],
    /// Weight of the order.
    order_weight: f64,
}

impl<'a> FitObjective<'a> {
    pub(super) fn new(rows: &'a [CalibrationRow], order_weight: f64) -> FitObjective<'a> {
        FitObjective { rows, order_weight }
    }

    /// Over the rows named. Infinite without predictions.
    pub(super) fn of(&self, predicted: Option<&[f64]>, of: &[usize]) -> f64 {
        let Some(predicted) = predicted else { return f64::INFINITY };
        let (mut sum, mut weights) = (0.0, 0.0);
        for &i in of {
            let error = log_error(&self.rows[i], predicted[i]);
            sum += self.rows[i].weight * error * error;
            weights += self.rows[i].weight;
        }
        let mean = if weights > 0.0 { sum / weights } else { 0.0 };
        if self.order_weight == 0.0 { mean } else { mean + self.order_weight * self.disorder(predicted, of) }
    }

    /// Mean over pairs with an order of how far the prediction has them the other way round.
    fn disorder(&self, predicted: &[f64], of: &[usize]) -> f64 {
        let (mut sum, mut pairs) = (0.0, 0u64);
        for (n, &i) in of.iter().enumerate() {
            for &j in &of[n + 1..] {
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

/// Logarithm of predicted over measured.
pub(super) fn log_error(row: &CalibrationRow, predicted: f64) -> f64 {
    libm::log(predicted / row.value)
}

/// Mean of absolute relative errors over the rows named; 0 of none.
pub(super) fn mean_error(rows: &[CalibrationRow], predicted: &[f64], of: &[usize]) -> f64 {
    let sum: f64 = of.iter().map(|&i| (predicted[i] / rows[i].value - 1.0).abs()).sum();
    if of.is_empty() { 0.0 } else { sum / of.len() as f64 }
}
