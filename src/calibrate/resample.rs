//! How well rows determine parameters: sensitivities, bootstrap intervals, parameters that cannot be told apart.
//!
//! Layer: calibrate. Near the optimum predictions are taken as linear in the logarithms (or values) of parameters, so a thousand resamplings of the rows need
//! no further runs.

use crate::spec::mix;

/// Resamplings. Our choice: the ends of a 95 % interval are then the means of about 25 of them.
const RESAMPLINGS: u64 = 1000;
/// A sensitivity below this is none: logarithm of times over the whole range of a parameter.
const NO_EFFECT: f64 = 1e-6;
/// Columns of sensitivities this parallel cannot be told apart. Our choice.
const PARALLEL: f64 = 0.995;
/// Stream of random numbers, so that none is shared with others of the same seed.
const STREAM: u64 = 0xb007;

/// Rows as the linear model has them, those that are fitted.
pub(super) struct LinearModel {
    /// Logarithm of predicted over measured, a row.
    pub errors: Vec<f64>,
    pub weights: Vec<f64>,
    /// Change of `errors` by a parameter's place, which goes from 0 to 1: a list a parameter.
    pub slopes: Vec<Vec<f64>>,
}

/// What rows say of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Determined {
    /// Places of the ends of its 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Nothing that was measured depends on it.
    pub no_effect: bool,
    /// The first parameter before it that does the same to all rows.
    pub same_as: Option<usize>,
}

impl LinearModel {
    /// For each parameter, at these places.
    pub(super) fn determined(&self, places: &[f64], seed: u64) -> Vec<Determined> {
        let n = places.len();
        let dot = |a: usize, b: usize| {
            let products = self.slopes[a].iter().zip(&self.slopes[b]).zip(&self.weights);
            products.map(|((x, y), w)| x * y * w).sum::<f64>()
        };
        let no_effect: Vec<bool> = (0..n).map(|k| libm::sqrt(dot(k, k)) < NO_EFFECT).collect();
        let same = |k: usize| {
            let parallel = |&other: &usize| dot(k, other).abs() > PARALLEL * libm::sqrt(dot(k, k) * dot(other, other));
            (0..k).filter(|&other| !no_effect[k] && !no_effect[other]).find(parallel)
        };
        let active: Vec<usize> = (0..n).filter(|&k| !no_effect[k]).collect();
        let once = vec![1.0; self.errors.len()];
        let centre = self.step(&active, &once);
        let mut moved: Vec<Vec<f64>> = vec![Vec::new(); n];
        for draw in 0..RESAMPLINGS {
            let mut counts = vec![0.0; self.errors.len()];
            for i in 0..counts.len() {
                let row = mix(seed ^ STREAM, draw, i as u64) % counts.len() as u64;
                counts[row as usize] += 1.0;
            }
            let (Some(step), Some(centre)) = (self.step(&active, &counts), &centre) else { continue };
            for ((&k, to), from) in active.iter().zip(&step).zip(centre) {
                moved[k].push((places[k] + to - from).clamp(0.0, 1.0));
            }
        }
        (0..n)
            .map(|k| {
                let of = &mut moved[k];
                of.sort_by(f64::total_cmp);
                let end = |share: f64| of[((of.len() - 1) as f64 * share).round() as usize];
                // Rows that say nothing leave the whole range.
                let (low, high) = if of.is_empty() { (0.0, 1.0) } else { (end(0.025), end(0.975)) };
                Determined { low, high, no_effect: no_effect[k], same_as: same(k) }
            })
            .collect()
    }

    /// Gauss and Newton's step of the active parameters, with rows counted so often. `None` where there is none.
    fn step(&self, active: &[usize], counts: &[f64]) -> Option<Vec<f64>> {
        let n = active.len();
        let mut a = vec![vec![0.0; n + 1]; n];
        for (row, count) in counts.iter().enumerate() {
            let w = self.weights[row] * count;
            for (i, &k) in active.iter().enumerate() {
                for (j, &l) in active.iter().enumerate() {
                    a[i][j] += w * self.slopes[k][row] * self.slopes[l][row];
                }
                a[i][n] -= w * self.slopes[k][row] * self.errors[row];
            }
        }
        // A little of each diagonal, so that parameters that cannot be told apart share the step.
        for (i, row) in a.iter_mut().enumerate() {
            row[i] *= 1.0 + 1e-9;
        }
        solve(a)
    }
}

/// Gaussian elimination with the largest pivot; the last column is the right-hand side.
fn solve(mut a: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = a.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&x, &y| a[x][column].abs().total_cmp(&a[y][column].abs()))?;
        if a[pivot][column].abs() < 1e-300 {
            return None;
        }
        a.swap(column, pivot);
        for row in 0..n {
            if row != column {
                let factor = a[row][column] / a[column][column];
                let taken = a[column].clone();
                a[row].iter_mut().zip(taken).skip(column).for_each(|(x, t)| *x -= factor * t);
            }
        }
    }
    Some((0..n).map(|i| a[i][n] / a[i][i]).collect())
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
        assert!(found.iter().all(|d| d.low < 0.5 && d.high > 0.5 && !d.no_effect && d.same_as.is_none()));
    }

    #[test]
    fn what_rows_do_not_determine_is_told() {
        let found = model(0.05).determined(&[0.5; 4], 1);
        assert_eq!(found.iter().map(|d| d.no_effect).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(found.iter().map(|d| d.same_as).collect::<Vec<_>>(), [None, None, None, Some(0)]);
        assert_eq!((found[2].low, found[2].high), (0.0, 1.0));
    }
}
