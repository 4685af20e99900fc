//! Statistics of a finished experiment, from integers to integers.
//!
//! Layer: results. Percentiles are nearest rank; means round half up; nothing depends on the order of the flows.

use super::value::{Micro, Ps};

/// Flow completion times of one experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FctStats {
    /// Number of flows that completed.
    pub flows: u64,
    /// Mean of their completion times.
    pub mean: Ps,
    /// Median of their completion times.
    pub p50: Ps,
    /// 99th percentile of their completion times.
    pub p99: Ps,
    /// Longest of their completion times.
    pub max: Ps,
    /// Median of completion time over the time on an empty network, for the flows whose ideal time is known.
    pub slowdown_p50: Option<Micro>,
    /// 99th percentile of the same ratio.
    pub slowdown_p99: Option<Micro>,
}

/// Computes statistics over pairs of completion time and the time that the same flow takes on an empty network (0 if unknown), both in picoseconds; `None` if
/// there are no flows.
pub fn fct_stats(flows: impl IntoIterator<Item = (u64, u64)>) -> Option<FctStats> {
    let (mut fcts, mut slowdowns, mut sum) = (Vec::new(), Vec::new(), 0_u128);
    for (fct, ideal) in flows {
        fcts.push(fct);
        sum += u128::from(fct);
        if ideal > 0 {
            slowdowns.push(Micro::ratio(fct.into(), ideal.into()));
        }
    }
    let n = fcts.len() as u128;
    let max = fcts.iter().copied().max()?;
    let mean = (sum + n / 2) / n;
    Some(FctStats {
        flows: fcts.len() as u64,
        mean: Ps(u64::try_from(mean).expect("a mean is at most the maximum")),
        p50: Ps(select_rank(&mut fcts, 50)?),
        p99: Ps(select_rank(&mut fcts, 99)?),
        max: Ps(max),
        slowdown_p50: select_rank(&mut slowdowns, 50),
        slowdown_p99: select_rank(&mut slowdowns, 99),
    })
}

/// Returns the smallest value that at least `percent` % of the values do not exceed; `None` if there are no values.
///
/// PRECONDITION: `sorted` ascends, `percent` is 1 to 100.
pub fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get(rank(sorted.len(), percent)?).copied()
}

/// Like [`nearest_rank`], for values in any order, which it changes. Faster than sorting.
fn select_rank<T: Copy + Ord>(values: &mut [T], percent: usize) -> Option<T> {
    let rank = rank(values.len(), percent)?;
    Some(*values.select_nth_unstable(rank).1)
}

/// Returns the index of the nearest rank among `n` values; `None` if there are no values.
fn rank(n: usize, percent: usize) -> Option<usize> {
    (n * percent).div_ceil(100).checked_sub(1)
}

/// Returns the share of a link of `rate_bps` that `bytes` use within `span_ps`; 0 for an empty span.
pub fn utilisation(bytes: u64, rate_bps: u64, span_ps: u64) -> Micro {
    // bytes * 8 bits over rate * seconds; both sides times 10^12 stay far below 128 bits.
    Micro::ratio(u128::from(bytes) * 8 * 1_000_000_000_000, u128::from(rate_bps) * u128::from(span_ps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearest_rank_is_a_value_that_occurred() {
        let hundred: Vec<u32> = (1..=100).collect();
        assert_eq!(nearest_rank(&hundred, 50), Some(50));
        assert_eq!(nearest_rank(&hundred, 99), Some(99));
        assert_eq!(nearest_rank(&[7], 99), Some(7));
        assert_eq!(nearest_rank(&[1, 2], 50), Some(1));
        assert_eq!(nearest_rank::<u32>(&[], 50), None);
    }

    #[test]
    fn statistics_of_known_flows() {
        let stats = fct_stats([(3_000, 1_000), (1_000, 1_000), (2_001, 2_000), (4_000, 0)]).expect("four flows");
        assert_eq!((stats.flows, stats.mean, stats.max), (4, Ps(2_500), Ps(4_000)));
        assert_eq!((stats.p50, stats.p99), (Ps(2_001), Ps(4_000)));
        assert_eq!((stats.slowdown_p50, stats.slowdown_p99), (Some(Micro(1_000_500)), Some(Micro(3_000_000))));
        assert_eq!(fct_stats([]), None);
    }

    #[test]
    fn a_full_link_is_utilised_once() {
        // 100 Gb/s for a microsecond carries 12,500 bytes.
        assert_eq!(utilisation(12_500, 100_000_000_000, 1_000_000), Micro(1_000_000));
        assert_eq!(utilisation(1, 100_000_000_000, 0), Micro(0));
    }

    proptest! {
        #[test]
        fn what_is_selected_is_what_sorting_finds(mut values in prop::collection::vec(0..50_u64, 0..200), percent in 1..=100_usize) {
            let selected = select_rank(&mut values, percent);
            values.sort_unstable();
            prop_assert_eq!(selected, nearest_rank(&values, percent));
        }

        #[test]
        fn order_does_not_matter(mut flows in prop::collection::vec((0..u64::MAX, 0..u64::MAX), 1..50)) {
            let forwards = fct_stats(flows.iter().copied());
            flows.reverse();
            prop_assert_eq!(forwards, fct_stats(flows));
        }
    }
}
