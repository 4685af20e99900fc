//! Measures how far rates differ from one skip to the next: rates that are steady in each window may still wander over a run. It also measures how
//! exactly they are known: a window counts whole packets, and a skip moves by whole packets.
//!
//! Layer: fold/steady. Data of a run; decides nothing. A skip's plan is the same whether it was just made or remembered, so the result does not
//! depend on the content of the memo.

use std::collections::HashMap;

use crate::memo::skip_plan::SkipPlan;
use crate::rows::advanced_rows::FRACTION;
use crate::rows::partition_rows::PartitionRows;
use hyperfold_columns::Tables;
use hyperfold_engine::cpu::math::hash32;

/// Packets by which equal rates may differ in two windows, because each begins and ends anywhere (our choice: one each).
const ALLOWED: u128 = 2;

/// Rates of queue pairs in their steady phases.
#[derive(Default)]
pub(crate) struct RateWander {
    pairs: HashMap<u32, SteadyPair>,
}

/// A queue pair: the rate in its first steady phase beside the same others, and the differences since then.
#[derive(Clone, Copy, Default)]
struct SteadyPair {
    /// Hash of the queue pairs that were skipped together with it.
    companions: u64,
    /// Bytes on the wire in a window, with [`FRACTION`] bits of fraction; and the length of the window in ps.
    work: u64,
    window: u64,
    /// End of its last skip, in ps.
    last_end_ps: u64,
    /// How much later it is than at its first rate, in ps.
    late: i64,
    /// Delay that skips may cause because they move by whole packets, in ps; and the sum of squares of the errors because a window counts whole
    /// packets, in ps squared.
    packets: u64,
    unsure: u128,
}

impl SteadyPair {
    /// Maximum by which it may be early or late, in ps.
    ///
    /// Each skip loses at most one packet, all of them in the same direction. Where windows begin and end within a packet is random: such errors add
    /// up as random steps do.
    fn off(&self) -> u64 {
        self.late.unsigned_abs() + self.packets + self.unsure.isqrt() as u64
    }
}

impl RateWander {
    /// Adds a skip of `rows` by `plan` from `since` to `at_ps`. Returns the maximum by which any of its queue pairs may now be early or late, in
    /// ps.
    pub(crate) fn add(&mut self, t: &Tables, rows: &PartitionRows, plan: &SkipPlan, since: u64, at_ps: u64) -> u64 {
        let going = || rows.members.iter().zip(&plan.rates).filter(|(_, rate)| rate.work > 0);
        // A sum, because the order of members must not matter.
        let companions = going().fold(0u64, |sum, (m, _)| {
            sum.wrapping_add(u64::from(hash32(m.flow.0, 1, 0, 0)) << 32 | u64::from(hash32(m.flow.0, 2, 0, 0)))
        });
        let e = &t.exps[0];
        let full = (u128::from(e.payload) + u128::from(e.data_overhead)) << FRACTION;
        let mut max_off_ps = 0;
        for (m, rate) in going() {
            let pair = self.pairs.entry(m.flow.0).or_default();
            if pair.companions == companions && pair.work > 0 {
                let was = u128::from(pair.work) * u128::from(plan.window);
                let is = u128::from(rate.work) * u128::from(pair.window);
                let same = ALLOWED * full * u128::from(plan.window.max(pair.window));
                let off = if was.abs_diff(is) > same { was.abs_diff(is) } else { 0 };
                let shift = was.max(1).ilog2().saturating_sub(40);
                let late = ((off >> shift) * u128::from(at_ps.saturating_sub(pair.last_end_ps)) / (was >> shift).max(1))
                    as i64;
                pair.late += if is < was { late } else { -late };
            } else {
                (pair.companions, pair.work, pair.window) = (companions, rate.work, plan.window);
            }
            pair.last_end_ps = at_ps;
            let time_of = |work: u128, span_ps: u64| (work * u128::from(span_ps) / u128::from(rate.work)) as u64;
            pair.packets += time_of(full, plan.window);
            let unsure = time_of(u128::from(plan.unsure) << FRACTION, at_ps - since);
            pair.unsure += u128::from(unsure).pow(2);
            max_off_ps = max_off_ps.max(pair.off());
        }
        max_off_ps
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
