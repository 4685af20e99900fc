//! How well the mean of few repeats is known.
//!
//! Layer: compare. Ordinary statistics of small samples: Student's t, and a variance that samples share. It knows nothing of experiments.

/// Statistics of a metric over replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of replicas that have a value.
    pub n: usize,
    /// Mean, in the metric's unit.
    pub mean: f64,
    /// Smallest value of a replica.
    pub low: f64,
    /// Largest value of a replica.
    pub high: f64,
    /// Standard deviation with n - 1 in the denominator; 0 for a single value.
    pub deviation: f64,
}

impl Sample {
    /// Statistics of some values. `None`: there are no values.
    pub fn of(values: &[f64]) -> Option<Sample> {
        let n = values.len();
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        if n == 0 {
            return None;
        }
        // Summing distances from the smallest value makes the mean of equal values exactly that value, and the deviation 0.
        let mean = (low + values.iter().map(|v| v - low).sum::<f64>() / n as f64).min(high);
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        Some(Sample { n, mean, low, high, deviation })
    }
}

/// Half the width of the 95 % interval of the mean. `None`: there are fewer than two values, or all are equal, because then replicas change nothing and count
/// as one.
pub fn half_width(s: &Sample) -> Option<f64> {
    (s.n > 1 && s.deviation > 0.0).then(|| t95((s.n - 1) as f64) * s.deviation / (s.n as f64).sqrt())
}

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (any statistics table).
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Half the width of a 95 % interval, in standard errors. Degrees of freedom are rounded down, which makes the interval wider.
pub fn t95(freedom: f64) -> f64 {
    let whole = freedom.max(1.0).floor() as usize;
    // Beyond the table, the first term of the expansion in 1 / freedom is exact to the third decimal.
    T95.get(whole - 1).copied().unwrap_or(1.960 + 2.4 / freedom)
}

/// Whether two configurations cannot be told apart by pairs of replicas with the same seed: 0 is in the 95 % interval of the mean difference. Values are
/// given with their seeds, in any order. `None`: there are fewer than three pairs, or the seeds differ.
pub fn tied_in_pairs(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<bool> {
    let sorted = |values: &[(u64, f64)]| {
        let mut values = values.to_vec();
        values.sort_by_key(|v| v.0);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let paired = a.len() > 2 && a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0);
    let once = a.windows(2).all(|w| w[0].0 != w[1].0);
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a.1 - b.1).collect();
    let sample = Sample::of(&differences).filter(|_| paired && once)?;
    Some(sample.mean.abs() <= half_width(&sample).unwrap_or(0.0))
}

/// Variance of a single value, estimated from all samples together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pooled {
    /// The variance, in the metric's unit squared.
    pub variance: f64,
    /// Degrees of freedom; 0 if nothing was repeated.
    pub freedom: usize,
}

impl Pooled {
    /// Pools all samples with at least two different values, in units of `unit(sample)`. Samples of equal values are left out: no seed changes them, and they
    /// would make other samples look more certain than they are.
    pub fn over<'a>(samples: impl IntoIterator<Item = &'a Sample>, unit: impl Fn(&Sample) -> f64) -> Pooled {
        let (mut sum, mut freedom) = (0.0, 0);
        for s in samples.into_iter().filter(|s| s.n > 1 && s.deviation > 0.0) {
            let deviation = s.deviation / unit(s);
            sum += (s.n - 1) as f64 * deviation * deviation;
            freedom += s.n - 1;
        }
        Pooled { variance: if freedom > 0 { sum / freedom as f64 } else { 0.0 }, freedom }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_width_is_the_textbooks() {
        // Variance 2.5 of five values, t of four degrees 2.776.
        let s = Sample::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((half_width(&s).unwrap() - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(half_width(&Sample::of(&[7.0]).unwrap()), None, "one value says nothing of its spread");
        assert_eq!(half_width(&Sample::of(&[0.1; 3]).unwrap()), None, "nor do equal ones");
    }

    #[test]
    fn pairs_tell_apart_what_deviations_do_not() {
        // A user's: 1.4 % worse with each of five seeds, which themselves are 10 % apart.
        let a = [63.00, 56.96, 59.70, 65.35, 58.48].iter().enumerate().map(|(i, v)| (i as u64, *v)).collect::<Vec<_>>();
        let b = [63.82, 57.86, 60.41, 66.20, 59.51].iter().enumerate().map(|(i, v)| (i as u64, *v)).collect::<Vec<_>>();
        assert_eq!(tied_in_pairs(&a, &b), Some(false));
        let mixed = [(0, 62.0), (1, 58.0), (2, 59.0), (3, 66.0), (4, 58.0)];
        assert_eq!(tied_in_pairs(&a, &mixed), Some(true));
        assert_eq!(tied_in_pairs(&a, &a), Some(true));
        assert_eq!(tied_in_pairs(&a[..2], &b[..2]), None, "two pairs say nothing");
        assert_eq!(tied_in_pairs(&a[..3], &b[2..]), None, "other seeds are no pairs");
    }

    #[test]
    fn what_no_seed_changes_makes_nothing_surer() {
        let samples = [vec![1.0, 3.0], vec![2.0; 9], vec![5.0]].map(|v| Sample::of(&v).unwrap());
        let pooled = Pooled::over(&samples, |_| 1.0);
        assert!((pooled.variance - 2.0).abs() < 1e-12 && pooled.freedom == 1, "{pooled:?}");
        assert_eq!(Pooled::over(&samples[1..], |_| 1.0), Pooled::default());
    }

    #[test]
    fn t_falls_to_that_of_the_normal_distribution() {
        let all: Vec<f64> = (1..200).map(|f| t95(f as f64)).collect();
        assert!(all.windows(2).all(|w| w[0] > w[1]), "{all:?}");
        assert!((t95(60.0) - 2.000).abs() < 1e-3 && (t95(1e9) - 1.960).abs() < 1e-3);
        assert_eq!(t95(0.0), 12.706);
    }

    #[test]
    fn larger_samples_weigh_more() {
        let samples =
            [Sample::of(&[1.0, 3.0]).unwrap(), Sample::of(&[10.0, 20.0, 30.0]).unwrap(), Sample::of(&[5.0]).unwrap()];
        let absolute = Pooled::over(&samples, |_| 1.0);
        assert_eq!(absolute.freedom, 3);
        assert!((absolute.variance - (2.0 + 2.0 * 100.0) / 3.0).abs() < 1e-9, "variances 2 and 100");
        let relative = Pooled::over(&samples, |s| s.mean);
        assert!((relative.variance - (0.5 + 2.0 * 0.25) / 3.0).abs() < 1e-12, "of means 2 and 20");
        assert_eq!(Pooled::over(&samples[2..], |_| 1.0), Pooled::default());
    }
}
