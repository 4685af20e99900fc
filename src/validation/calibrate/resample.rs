//! How well rows determine parameters: sensitivities, bootstrap intervals, and parameters that cannot be told apart.
//!
//! Layer: calibrate. Near the optimum, predictions are taken as linear in the logarithms (or values) of parameters. So a thousand resamplings of the rows
//! need no further runs.
//!
//! Resampling alone gives intervals that are too narrow if there are few rows, because a fit follows its own rows. So each error is divided by one less the
//! leverage of its row (MacKinnon and White 1985, HC3), and intervals are widened from normal to Student's quantiles (Hesterberg 2015, arXiv 1411.5279,
//! expanded percentile intervals).

use hyperfold_base::linear_equations::solve;
use hyperfold_config::spec::mix;

/// Number of resamplings. Our choice: each end of a 95 % interval is then decided by about 25 of them.
const RESAMPLINGS: u64 = 1000;
/// Sensitivity below which a parameter counts as flat: change of the logarithm of times over the parameter's whole range.
const FLAT: f64 = 1e-6;
/// Correlation of sensitivities above which two parameters cannot be told apart. Our choice.
const PARALLEL: f64 = 0.995;
/// Stream of random numbers, so that none is shared with other uses of the same seed.
const STREAM: u64 = 0xb007;

/// 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.959964;

/// Linear model of the fitted rows.
#[derive(Clone)]
pub(super) struct LinearModel {
    /// Logarithm of the predicted over the measured value, per row.
    pub errors: Vec<f64>,
    pub weights: Vec<f64>,
    /// Change of each row's error by a parameter's place, which goes from 0 to 1: one list per parameter.
    pub slopes: Vec<Vec<f64>>,
}

/// How well the rows determine a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Determined {
    /// Places of the ends of its 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Whether no fitted row changes with it near its place.
    pub is_flat: bool,
    /// The first earlier parameter that has the same effect on all rows.
    pub same_as: Option<usize>,
}

impl LinearModel {
    /// How well each parameter is determined at these places.
    pub(super) fn determined(&self, places: &[f64], seed: u64) -> Vec<Determined> {
        let n = places.len();
        let dot = |a: usize, b: usize| {
            let products = self.slopes[a].iter().zip(&self.slopes[b]).zip(&self.weights);
            products.map(|((x, y), w)| x * y * w).sum::<f64>()
        };
        let is_flat: Vec<bool> = self.slopes.iter().map(|slopes| slopes.iter().all(|s| s.abs() < FLAT)).collect();
        let same = |k: usize| {
            let parallel = |&other: &usize| dot(k, other).abs() > PARALLEL * libm::sqrt(dot(k, k) * dot(other, other));
            (0..k).filter(|&other| !is_flat[k] && !is_flat[other]).find(parallel)
        };
        let active: Vec<usize> = (0..n).filter(|&k| !is_flat[k]).collect();
        let once = vec![1.0; self.errors.len()];
        let model = LinearModel { errors: self.unfitted_errors(&active), ..self.clone() };
        let centre = model.step(&active, &once);
        let wider = student(self.errors.len().saturating_sub(active.len()).max(1) as f64) / NORMAL;
        let mut moved: Vec<Vec<f64>> = vec![Vec::new(); n];
        for draw in 0..RESAMPLINGS {
            let mut counts = vec![0.0; self.errors.len()];
            for i in 0..counts.len() {
                let row = mix(seed ^ STREAM, draw, i as u64) % counts.len() as u64;
                counts[row as usize] += 1.0;
            }
            let (Some(step), Some(centre)) = (model.step(&active, &counts), &centre) else { continue };
            for ((&k, resampled), original) in active.iter().zip(&step).zip(centre) {
                moved[k].push((places[k] + (resampled - original) * wider).clamp(0.0, 1.0));
            }
        }
        (0..n)
            .map(|k| {
                let sorted = &mut moved[k];
                sorted.sort_by(f64::total_cmp);
                let end = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
                // Without any draw, the interval is the whole range.
                let (low, high) = if sorted.is_empty() { (0.0, 1.0) } else { (end(0.025), end(0.975)) };
                Determined { low, high, is_flat: is_flat[k], same_as: same(k) }
            })
            .collect()
    }

    /// Errors as they would be in fits without their own row. A row that alone decides a parameter keeps its error.
    fn unfitted_errors(&self, active: &[usize]) -> Vec<f64> {
        let once = vec![1.0; self.errors.len()];
        let leverage = |row: usize| -> f64 {
            let (matrix, _) = self.normal_equations(active, &once);
            let slopes = active.iter().map(|&k| self.slopes[k][row]).collect();
            let solved = solve(matrix, slopes).unwrap_or_else(|| vec![0.0; active.len()]);
            self.weights[row] * active.iter().zip(&solved).map(|(&k, x)| self.slopes[k][row] * x).sum::<f64>()
        };
        let unfitted = |(row, error): (usize, &f64)| match 1.0 - leverage(row) {
            rest if rest > 0.01 => error / rest,
            _ => *error,
        };
        self.errors.iter().enumerate().map(unfitted).collect()
    }

    /// Gauss-Newton step of the active parameters, with each row counted `counts` times. `None`: the equations have no solution.
    fn step(&self, active: &[usize], counts: &[f64]) -> Option<Vec<f64>> {
        let (matrix, right) = self.normal_equations(active, counts);
        solve(matrix, right)
    }

    /// Normal equations of the step: the matrix and the right-hand side.
    fn normal_equations(&self, active: &[usize], counts: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let n = active.len();
        let (mut a, mut right) = (vec![vec![0.0; n]; n], vec![0.0; n]);
        for (row, count) in counts.iter().enumerate() {
            let w = self.weights[row] * count;
            for (i, &k) in active.iter().enumerate() {
                for (j, &l) in active.iter().enumerate() {
                    a[i][j] += w * self.slopes[k][row] * self.slopes[l][row];
                }
                right[i] -= w * self.slopes[k][row] * self.errors[row];
            }
        }
        // A small addition to the diagonal makes parameters that cannot be told apart share the step.
        for (i, row) in a.iter_mut().enumerate() {
            row[i] *= 1.0 + 1e-9;
        }
        (a, right)
    }
}

/// 97.5 % quantile of Student's distribution, by the Cornish-Fisher expansion. It is within 1 % from three degrees of freedom on, and a quarter too small for
/// one.
fn student(degrees: f64) -> f64 {
    let z = NORMAL;
    let power = |n| libm::pow(z, n);
    z + (power(3.0) + z) / (4.0 * degrees)
        + (5.0 * power(5.0) + 16.0 * power(3.0) + 3.0 * z) / (96.0 * degrees * degrees)
        + (3.0 * power(7.0) + 19.0 * power(5.0) + 17.0 * power(3.0) - 15.0 * z) / (384.0 * libm::pow(degrees, 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 rows: the first half depends on parameter 0, the second on 1; 2 does nothing, 3 the same as 0.
    fn model(noise: f64) -> LinearModel {
        let half =
            |from: usize, slope: f64| (0..40).map(|i| if i / 20 == from { slope } else { 0.0 }).collect::<Vec<f64>>();
        LinearModel {
            errors: (0..40).map(|i| if i % 2 == 0 { noise } else { -noise }).collect(),
            weights: vec![1.0; 40],
            slopes: vec![half(0, 2.0), half(1, -1.0), vec![0.0; 40], half(0, 1.0)],
        }
    }

    #[test]
    fn intervals_are_those_of_means() {
        let mut model = model(0.05);
        model.slopes.truncate(2);
        let found = model.determined(&[0.5, 0.5], 1);
        // The mean of 20 errors of 0.05 has a standard error of 0.0112; half of it in places at a slope of 2.
        let widths: Vec<f64> = found.iter().map(|d| d.high - d.low).collect();
        assert!((0.017..0.027).contains(&widths[0]) && (0.034..0.054).contains(&widths[1]), "{widths:?}");
        assert!(found.iter().all(|d| d.low < 0.5 && d.high > 0.5 && !d.is_flat && d.same_as.is_none()));
    }

    /// Share of intervals from few rows with normal noise that contain the true value.
    #[test]
    fn intervals_of_few_rows_cover_what_they_say() {
        let uniform = |a: u64, b: u64| (mix(7, a, b) >> 11) as f64 / (1u64 << 53) as f64;
        let normal = |a: u64, b: u64| {
            libm::sqrt(-2.0 * libm::log(uniform(a, 2 * b) + 1e-300))
                * libm::cos(std::f64::consts::TAU * uniform(a, 2 * b + 1))
        };
        for rows in [4u64, 8] {
            let covered = (0..300).filter(|&set| {
                let noise: Vec<f64> = (0..rows).map(|i| 0.05 * normal(set * 100 + rows, i)).collect();
                let mean = noise.iter().sum::<f64>() / rows as f64;
                let model = LinearModel {
                    errors: noise.iter().map(|e| e - mean).collect(),
                    weights: vec![1.0; rows as usize],
                    slopes: vec![vec![1.0; rows as usize]],
                };
                let found = model.determined(&[0.5 - mean], set)[0];
                (found.low..=found.high).contains(&0.5)
            });
            let share = covered.count() as f64 / 300.0;
            assert!((0.90..0.995).contains(&share), "{rows} rows: {share}");
        }
        assert!((student(10.0) - 2.228).abs() < 0.01 && (student(3.0) - 3.182).abs() < 0.05);
    }

    #[test]
    fn what_rows_do_not_determine_is_told() {
        let found = model(0.05).determined(&[0.5; 4], 1);
        assert_eq!(found.iter().map(|d| d.is_flat).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(found.iter().map(|d| d.same_as).collect::<Vec<_>>(), [None, None, None, Some(0)]);
        assert_eq!((found[2].low, found[2].high), (0.0, 1.0));
    }
}
