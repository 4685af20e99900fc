//! Ranks candidates by one value, or by several at once.
//!
//! Layer: optimize. Several values are ranked by Pareto fronts: a candidate dominates another if it is nowhere worse and somewhere better. Within a front,
//! less crowded candidates come first, as in NSGA-II (Deb et al. 2002). Equal candidates are ordered by a seeded hash.

use hyperfold_config::spec::mix;

use crate::dominance::{fronts, lexical};

/// Crowding distance of each candidate: how far its neighbours along the front are apart, summed over the values, each relative to the front's spread.
/// Infinite at the ends of a front.
fn crowding(values: &[Vec<f64>], front: &[usize]) -> Vec<f64> {
    let mut distance = vec![0.0; values.len()];
    let n_fronts = front.iter().max().map_or(0, |m| m + 1);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); n_fronts];
    front.iter().enumerate().for_each(|(i, &f)| members[f].push(i));
    for list in &mut members {
        for k in 0..values[list[0]].len() {
            list.sort_by(|&a, &b| {
                values[a][k].total_cmp(&values[b][k]).then_with(|| lexical(&values[a], &values[b])).then(a.cmp(&b))
            });
            let (first, last) = (list[0], list[list.len() - 1]);
            let spread = values[last][k] - values[first][k];
            (distance[first], distance[last]) = (f64::INFINITY, f64::INFINITY);
            if spread > 0.0 {
                for w in list.windows(3) {
                    distance[w[1]] += (values[w[2]][k] - values[w[0]][k]) / spread;
                }
            }
        }
    }
    distance
}

/// Indices of the candidates, best first. PRECONDITION: all have the same number of values, at least 1, and none is NaN.
pub(super) fn best_first(values: &[Vec<f64>], seed: u64, stage: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let tie = |i: usize| mix(seed, stage, i as u64);
    if values.first().is_some_and(|v| v.len() == 1) {
        order.sort_by(|&a, &b| values[a][0].total_cmp(&values[b][0]).then(tie(a).cmp(&tie(b))));
        return order;
    }
    let front = fronts(values);
    let far = crowding(values, &front);
    order.sort_by(|&a, &b| front[a].cmp(&front[b]).then(far[b].total_cmp(&far[a])).then(tie(a).cmp(&tie(b))));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_a_sort_and_ties_depend_on_the_seed() {
        let values: Vec<Vec<f64>> = [3.0, 1.0, 2.0, 1.0, 1.0, 1.0].map(|x| vec![x]).to_vec();
        let order = best_first(&values, 1, 0);
        assert_eq!(order[4..], [2, 0]);
        assert!((0..20).any(|seed| best_first(&values, seed, 0)[..4] != order[..4]));
        assert_eq!(best_first(&values, 1, 0), order);
    }

    #[test]
    fn the_ends_of_a_front_come_before_what_is_crowded() {
        let values: Vec<Vec<f64>> =
            [[0.0, 10.0], [5.0, 5.0], [5.1, 4.9], [5.2, 4.8], [10.0, 0.0]].map(|v| v.to_vec()).to_vec();
        let order = best_first(&values, 1, 0);
        let mut ends = order[..2].to_vec();
        ends.sort_unstable();
        assert_eq!((ends, order[4]), (vec![0, 4], 2));
    }
}
