//! Means, spreads and how far apart two means must be to differ.
//!
//! Layer: report. Ordinary statistics of small samples: Student's t, Welch's difference of means. Knows no experiments.

/// Repeats of one measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub n: usize,
    pub mean: f64,
    /// Of a single value, n - 1 in the denominator; `None` of fewer than two.
    pub variance: Option<f64>,
}

impl Sample {
    /// `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let first = *values.first()?;
        let n = values.len();
        // Around the first value, so that equal values have exactly their own mean and no variance.
        let mean = first + values.iter().map(|v| v - first).sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Some(Sample { n, mean, variance: (n > 1).then(|| squares / (n - 1) as f64) })
    }

    /// Half the width of the mean's 95 % interval; `None` of fewer than two values.
    pub fn half_width(&self) -> Option<f64> {
        Some(t95((self.n - 1) as f64) * (self.variance? / self.n as f64).sqrt())
    }
}

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (any statistics table).
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
    2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// By how many standard errors a 95 % interval reaches to either side. Degrees of freedom are rounded down, to the safe side.
pub fn t95(freedom: f64) -> f64 {
    let whole = freedom.max(1.0).floor() as usize;
    // Beyond the table the first term of the expansion in 1 / freedom is exact to the third decimal.
    T95.get(whole - 1).copied().unwrap_or(1.960 + 2.4 / freedom)
}

/// The variance that samples share, relative to their means, for those that are too small to have one of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pooled {
    /// Of a single value over the square of its sample's mean.
    pub relative: f64,
    /// Degrees of freedom; 0 if nothing was repeated.
    pub freedom: usize,
}

impl Pooled {
    /// Over all samples of two values and more.
    pub fn over<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Pooled {
        let (mut sum, mut freedom) = (0.0, 0);
        for s in samples {
            if let Some(variance) = s.variance.filter(|_| s.mean != 0.0) {
                sum += (s.n - 1) as f64 * variance / (s.mean * s.mean);
                freedom += s.n - 1;
            }
        }
        Pooled { relative: if freedom > 0 { sum / freedom as f64 } else { 0.0 }, freedom }
    }

    /// Variance of a sample's mean and its degrees of freedom: its own, else the shared one.
    fn of_mean(&self, s: &Sample) -> Option<(f64, f64)> {
        match s.variance {
            Some(variance) => Some((variance / s.n as f64, (s.n - 1) as f64)),
            None if self.freedom > 0 => Some((self.relative * s.mean * s.mean / s.n as f64, self.freedom as f64)),
            None => None,
        }
    }
}

/// The difference of means that replicas alone explain, 19 times in 20 (Welch); `None` if nothing was repeated.
pub fn explained(a: &Sample, b: &Sample, pooled: &Pooled) -> Option<f64> {
    let ((va, fa), (vb, fb)) = (pooled.of_mean(a)?, pooled.of_mean(b)?);
    let sum = va + vb;
    if sum == 0.0 {
        return Some(0.0);
    }
    Some(t95(sum * sum / (va * va / fa + vb * vb / fb)) * sum.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_their_own_mean_and_no_spread() {
        let s = Sample::of(&[0.1, 0.1, 0.1]).unwrap();
        assert_eq!((s.mean, s.variance, s.half_width()), (0.1, Some(0.0), Some(0.0)));
        assert_eq!(Sample::of(&[7.0]).unwrap().half_width(), None);
        assert_eq!(Sample::of(&[]), None);
    }

    #[test]
    fn half_width_is_the_textbooks() {
        // Variance 2.5 of five values, t of four degrees 2.776.
        let s = Sample::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((s.half_width().unwrap() - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn t_falls_to_that_of_the_normal_distribution() {
        let all: Vec<f64> = (1..200).map(|f| t95(f as f64)).collect();
        assert!(all.windows(2).all(|w| w[0] > w[1]), "{all:?}");
        assert!((t95(60.0) - 2.000).abs() < 1e-3 && (t95(1e9) - 1.960).abs() < 1e-3);
        assert_eq!(t95(0.0), 12.706);
    }

    #[test]
    fn two_samples_of_equal_size_and_variance_have_the_pooled_freedom() {
        let a = Sample::of(&[1.0, 2.0, 3.0]).unwrap();
        let b = Sample::of(&[4.0, 5.0, 6.0]).unwrap();
        let none = Pooled::default();
        assert!((explained(&a, &b, &none).unwrap() - 2.776 * (2.0f64 / 3.0).sqrt()).abs() < 1e-12, "4 degrees of freedom");
        let one = Sample::of(&[9.0]).unwrap();
        assert_eq!(explained(&a, &one, &none), None, "nothing is known of a single value");
        assert!(explained(&a, &one, &Pooled::over([&a, &b])).is_some(), "but what its kind share");
    }
}
