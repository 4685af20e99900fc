//! How far rates differ from one skip to the next: what is steady in each window may still wander over a run. And how
//! far they are known at all: a window counts whole packets, and a skip moves by whole packets.
//!
//! Layer: fold/steady. Data of a run; decides nothing. A skip's plan is the same whether it was just made or remembered,
//! so that this is the same whatever the memo holds.

use std::collections::HashMap;

use crate::columns::Tables;
use crate::engine::cpu::math::hash32;
use crate::engine::fold::memo::skip_plan::SkipPlan;
use crate::engine::fold::rows::advanced_rows::FRACTION;
use crate::engine::fold::rows::partition_rows::PartitionRows;

/// Packets by which equal rates may differ in two windows, as each begins and ends anywhere (our choice: one each).
const ALLOWED: u128 = 2;

/// The rates of queue pairs in their steady phases.
#[derive(Default)]
pub(crate) struct RateWander {
    pairs: HashMap<u32, SteadyPair>,
}

/// A queue pair: the rate of its first steady phase beside the same others, and what differs since.
#[derive(Clone, Copy, Default)]
struct SteadyPair {
    /// Who was skipped with it, as a hash.
    beside: u64,
    /// Bytes on the wire in a window, with [`FRACTION`] bits of fraction; the window, ps.
    work: u64,
    window: u64,
    /// When its last skip ended, ps.
    until: u64,
    /// By how much it is later than at its first rates, ps.
    late: i64,
    /// By how much skips may put it off because they go by whole packets, ps; the sum of squares of that because their
    /// rates are known but for a packet a window, ps squared.
    packets: u64,
    unsure: u128,
}

impl SteadyPair {
    /// The most by which it may be early or late, ps.
    ///
    /// Each skip loses a packet at most, all of them in the same direction. Where windows begin and end in a packet is
    /// chance: such errors add up as random steps do.
    fn off(&self) -> u64 {
        self.late.unsigned_abs() + self.packets + self.unsure.isqrt() as u64
    }
}

impl RateWander {
    /// A skip of `rows` by `plan` from `since` ended at `at`. Returns the most by which any of its queue pairs may now be
    /// early or late, ps.
    pub(crate) fn add(&mut self, t: &Tables, rows: &PartitionRows, plan: &SkipPlan, since: u64, at: u64) -> u64 {
        let going = || rows.members.iter().zip(&plan.rates).filter(|(_, rate)| rate.work > 0);
        // A sum, as the order of members is of no account.
        let beside = going().fold(0u64, |sum, (m, _)| {
            sum.wrapping_add(u64::from(hash32(m.flow.0, 1, 0, 0)) << 32 | u64::from(hash32(m.flow.0, 2, 0, 0)))
        });
        let e = &t.exps[0];
        let full = (u128::from(e.payload) + u128::from(e.data_overhead)) << FRACTION;
        let mut most = 0;
        for (m, rate) in going() {
            let pair = self.pairs.entry(m.flow.0).or_default();
            if pair.beside == beside && pair.work > 0 {
                let was = u128::from(pair.work) * u128::from(plan.window);
                let is = u128::from(rate.work) * u128::from(pair.window);
                let same = ALLOWED * full * u128::from(plan.window.max(pair.window));
                let off = if was.abs_diff(is) > same { was.abs_diff(is) } else { 0 };
                let shift = was.max(1).ilog2().saturating_sub(40);
                let late = ((off >> shift) * u128::from(at.saturating_sub(pair.until)) / (was >> shift).max(1)) as i64;
                pair.late += if is < was { late } else { -late };
            } else {
                (pair.beside, pair.work, pair.window) = (beside, rate.work, plan.window);
            }
            pair.until = at;
            let time_of = |work: u128, of: u64| (work * u128::from(of) / u128::from(rate.work)) as u64;
            pair.packets += time_of(full, plan.window);
            let unsure = time_of(u128::from(plan.unsure) << FRACTION, at - since);
            pair.unsure += u128::from(unsure).pow(2);
            most = most.max(pair.off());
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_one_direction_add_up_and_random_ones_less() {
        let pair = SteadyPair { late: -50, packets: 4 * 10, unsure: 4 * 15 * 15, ..SteadyPair::default() };
        assert_eq!(pair.off(), 50 + 40 + 30);
    }
}
