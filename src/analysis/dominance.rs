//! Pareto fronts of points whose values are all the better, the less they are: the one implementation, for tables, reports and searches.
//!
//! Layer: analysis, below compare and optimize. It knows neither metrics nor configurations.

use std::cmp::Ordering;

/// Whether `a` is nowhere worse than `b` and somewhere better.
fn dominates(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(x, y)| x <= y) && a.iter().zip(b).any(|(x, y)| x < y)
}

/// Order of two points by their first values, then by the next ones.
pub fn lexical(a: &[f64], b: &[f64]) -> Ordering {
    a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The points that no other dominates, in lexical order; equal points are all among them. A point is a number that identifies it, and its values.
pub fn front_of<P: AsRef<[f64]>>(points: impl IntoIterator<Item = (usize, P)>) -> Vec<usize> {
    let (names, values): (Vec<usize>, Vec<P>) = points.into_iter().unzip();
    peeled(&values, 1).into_iter().next().unwrap_or_default().into_iter().map(|i| names[i]).collect()
}

/// Index of each point's front: 0 if nothing dominates it, 1 if only front 0 does, and so on.
pub fn fronts(values: &[Vec<f64>]) -> Vec<usize> {
    let mut front = vec![0; values.len()];
    for (front_idx, members) in peeled(values, usize::MAX).into_iter().enumerate() {
        members.into_iter().for_each(|i| front[i] = front_idx);
    }
    front
}

/// The first `n_fronts` fronts, each as the indices of its points in lexical order.
fn peeled<P: AsRef<[f64]>>(points: &[P], n_fronts: usize) -> Vec<Vec<usize>> {
    let value = |i: usize| points[i].as_ref();
    // In lexical order, no point is dominated by a later one.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| lexical(value(a), value(b)));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    for i in order {
        let is_clear = |front: &Vec<usize>| {
            // A point that equals the last one of a front is on it. By two values, the last one dominates whatever any other of the front dominates.
            let last = front.len() - 1;
            let first = if value(i).len() == 2 || value(front[last]) == value(i) { last } else { 0 };
            !front[first..].iter().any(|&j| dominates(value(j), value(i)))
        };
        // If a member of a front dominates the point, so does a member of every earlier front.
        let front_idx = fronts.partition_point(|front| !is_clear(front));
        if front_idx == fronts.len() && fronts.len() < n_fronts {
            fronts.push(Vec::new());
        }
        if let Some(front) = fronts.get_mut(front_idx) {
            front.push(i);
        }
    }
    fronts
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_config::spec::mix;
    use proptest::prelude::*;

    #[test]
    fn fronts_peel_like_an_onion() {
        // By hand: (1,4) (2,2) (4,1) are not dominated; (3,3) and (2,5) are by one of them, (5,5) by one of those.
        let values: Vec<Vec<f64>> =
            [[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [5.0, 5.0], [2.0, 5.0]].map(|v| v.to_vec()).to_vec();
        assert_eq!(fronts(&values), [0, 0, 0, 1, 2, 1]);
    }

    #[test]
    fn fronts_are_those_of_the_definition() {
        for n_values in [2, 3] {
            let value = |i: u64| (0..n_values).map(|k| (mix(5, i, k) % 12) as f64).collect();
            let values: Vec<Vec<f64>> = (0..200u64).map(value).collect();
            let front = fronts(&values);
            for i in 0..values.len() {
                let above = (0..values.len()).filter(|&j| dominates(&values[j], &values[i])).map(|j| front[j] + 1);
                assert_eq!(front[i], above.max().unwrap_or(0), "{i}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_first_front_is_that_of_the_definition(
            points in prop::collection::vec(prop::collection::vec(0..9u8, 3), 0..60),
            n_values in 1..4usize,
        ) {
            let points: Vec<Vec<f64>> = points.iter().map(|p| p[..n_values].iter().map(|&v| f64::from(v)).collect()).collect();
            let mut found = front_of(points.iter().cloned().enumerate());
            prop_assert!(found.is_sorted_by(|&a, &b| lexical(&points[a], &points[b]).then(a.cmp(&b)).is_lt()));
            found.sort_unstable();
            let expected: Vec<usize> =
                (0..points.len()).filter(|&i| !points.iter().any(|p| dominates(p, &points[i]))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
