//! Corrects estimates of candidates that were not simulated, by what coarse simulations of others show.
//!
//! Layer: optimize. The difference between simulated and estimated values is modelled as a sum of one effect per axis value (ridge regression), because what
//! estimates miss, such as a congestion control or a topology, affects many candidates alike. It only decides which candidates are simulated next.

use hyperfold_base::linear_equations::solve;

/// Weight that pulls each effect towards 0, relative to one observation.
const RIDGE: f64 = 0.3;
/// Maximum number of values of an axis with one effect per value. Beyond it, an ordered axis acts by a parabola over the rank of the value.
const MAX_LEVELS: usize = 8;

/// Axis values of candidates as regression features: one row per candidate, one column per effect.
pub(super) struct CandidateFeatures(Vec<Vec<f64>>);

impl CandidateFeatures {
    /// Makes features from the rank of each candidate's value among the distinct values of each axis. `ordered` says whether the values of an axis have an
    /// order.
    pub(super) fn new(ranks: &[Vec<u32>], ordered: &[bool]) -> CandidateFeatures {
        let levels: Vec<usize> =
            (0..ordered.len()).map(|k| ranks.iter().map(|r| r[k] as usize + 1).max().unwrap_or(1)).collect();
        let row = |r: &Vec<u32>| {
            let mut row = vec![1.0];
            for (k, &n) in levels.iter().enumerate() {
                if n > MAX_LEVELS && ordered[k] {
                    let x = 2.0 * f64::from(r[k]) / (n - 1) as f64 - 1.0;
                    row.extend([x, x * x]);
                } else if n > 1 && n <= 4 * MAX_LEVELS {
                    row.extend((0..n).map(|level| f64::from(u8::from(level == r[k] as usize))));
                }
            }
            row
        };
        CandidateFeatures(ranks.iter().map(row).collect())
    }

    /// Fits the observed values of the candidates `seen`, and predicts the value of every candidate.
    pub(super) fn predict(&self, seen: &[usize], values: &[f64]) -> Vec<f64> {
        let n = self.0.first().map_or(0, Vec::len);
        let mut a = vec![vec![0.0; n]; n];
        let mut b = vec![0.0; n];
        for (&i, &value) in seen.iter().zip(values) {
            let x = &self.0[i];
            for r in 0..n {
                b[r] += x[r] * value;
                for c in 0..n {
                    a[r][c] += x[r] * x[c];
                }
            }
        }
        for (r, row) in a.iter_mut().enumerate() {
            // The mean is not penalised.
            row[r] += if r == 0 { 1e-9 } else { RIDGE };
        }
        // The ridge makes the matrix positive definite.
        let w = solve(a, b).unwrap_or_else(|| vec![0.0; n]);
        self.0.iter().map(|x| x.iter().zip(&w).map(|(x, w)| x * w).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_axes_are_found_from_a_few_of_their_combinations() {
        let ranks: Vec<Vec<u32>> = (0..4u32).flat_map(|a| (0..5u32).map(move |b| vec![a, b])).collect();
        let truth = |r: &[u32]| 0.5 * f64::from(r[0] % 2) - 0.2 * f64::from(r[1]);
        let features = CandidateFeatures::new(&ranks, &[false, true]);
        let seen: Vec<usize> = (0..20).filter(|i| i % 3 != 1).collect();
        let values: Vec<f64> = seen.iter().map(|&i| truth(&ranks[i])).collect();
        for (r, p) in ranks.iter().zip(features.predict(&seen, &values)) {
            assert!((p - truth(r)).abs() < 0.12, "{r:?}: {p} for {}", truth(r));
        }
    }

    #[test]
    fn long_axes_are_a_parabola() {
        let ranks: Vec<Vec<u32>> = (0..100).map(|a| vec![a]).collect();
        let truth = |r: u32| (f64::from(r) / 50.0 - 1.0).powi(2);
        let seen: Vec<usize> = (0..100).step_by(7).collect();
        let values: Vec<f64> = seen.iter().map(|&i| truth(i as u32)).collect();
        let p = CandidateFeatures::new(&ranks, &[true]).predict(&seen, &values);
        assert!((0..100).all(|i| (p[i] - truth(i as u32)).abs() < 0.1));
    }
}
