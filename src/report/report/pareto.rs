//! Pareto front of two metrics: the configurations that no other configuration beats in both.
//!
//! Layer: report.

use super::rank::MetricSamples;

/// The front of `candidates`, best first by the first metric. Configurations that are equal in both metrics are all on it.
pub fn front(candidates: &[usize], a: &MetricSamples, b: &MetricSamples) -> Vec<usize> {
    // The mean with the sign that makes less better.
    let turned = |m: &MetricSamples, c: usize| m.samples[c].map(|s| if m.more { -s.mean } else { s.mean });
    let mut points: Vec<(f64, f64, usize)> =
        candidates.iter().filter_map(|&c| Some((turned(a, c)?, turned(b, c)?, c))).collect();
    points.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.total_cmp(&q.1)).then(p.2.cmp(&q.2)));
    let mut front: Vec<(f64, f64, usize)> = Vec::new();
    for p in points {
        let is_on_front = front.last().is_none_or(|best| p.1 < best.1 || (p.0, p.1) == (best.0, best.1));
        if is_on_front {
            front.push(p);
        }
    }
    front.into_iter().map(|p| p.2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_analysis::compare::Sample;
    use proptest::prelude::*;

    fn measured(values: &[f64], more: bool) -> MetricSamples {
        MetricSamples {
            samples: values.iter().map(|&v| Sample::of(&[v])).collect(),
            uncertainty: vec![0.0; values.len()],
            audited: vec![0.0; values.len()],
            by_seed: vec![Vec::new(); values.len()],
            cost_usd: vec![None; values.len()],
            more,
        }
    }

    #[test]
    fn the_front_is_what_nothing_beats() {
        let (a, b) = ([1.0, 2.0, 3.0, 2.0, 1.0], [5.0, 3.0, 4.0, 2.0, 5.0]);
        let all = [0, 1, 2, 3, 4];
        assert_eq!(front(&all, &measured(&a, false), &measured(&b, false)), [0, 4, 3]);
        assert_eq!(front(&all, &measured(&a, false), &measured(&b, true)), [0, 4]);
        let mut holes = measured(&a, false);
        holes.samples[3] = None;
        assert_eq!(front(&all, &holes, &measured(&b, false)), [0, 4, 1], "what lacks a metric is not on it");
    }

    proptest! {
        #[test]
        fn it_is_that_of_the_definition(points in prop::collection::vec((0..20u8, 0..20u8), 0..60), more in any::<bool>()) {
            let (a, b): (Vec<f64>, Vec<f64>) = points.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).unzip();
            let all: Vec<usize> = (0..points.len()).collect();
            let mut found = front(&all, &measured(&a, false), &measured(&b, more));
            found.sort_unstable();
            let y = |i: usize| if more { -b[i] } else { b[i] };
            let beaten = |i: usize| all.iter().any(|&j| a[j] <= a[i] && y(j) <= y(i) && (a[j] < a[i] || y(j) < y(i)));
            let expected: Vec<usize> = all.iter().copied().filter(|&i| !beaten(i)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
