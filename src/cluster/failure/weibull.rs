//! Weibull's distribution. With a shape below 1, a part that has just been repaired is more likely to fail again than one that has run for long.
//!
//! Layer: cluster.

use super::FailureModel;
use crate::fixed_point::{gamma, pow};

/// Failure model `failures.model = "weibull"`.
pub(super) struct Weibull {
    power: f64,
    mean: f64,
}

impl Weibull {
    /// Makes the model from its shape in thousandths.
    pub(super) fn new(shape_milli: u64) -> Weibull {
        let power = 1000.0 / shape_milli as f64;
        Weibull { power, mean: gamma(1.0 + power) }
    }
}

impl FailureModel for Weibull {
    fn gap(&self, draw: &mut dyn FnMut() -> f64) -> f64 {
        pow(draw().max(1e-12), self.power) / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_point::exponential;
    use hyperfold_llm::workload::random::RandomStream;

    #[test]
    fn the_mean_gap_is_one() {
        for shape in [700, 1000, 1500] {
            let mut random = RandomStream::new(5, shape);
            let model = Weibull::new(shape);
            let mean = (0..200_000).map(|_| model.gap(&mut || exponential(&mut random))).sum::<f64>() / 2e5;
            assert!((mean - 1.0).abs() < 0.02, "{shape}: {mean}");
        }
    }
}
