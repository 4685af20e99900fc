//! What simulating iterations will take: which sets of jobs there will be, and how long a few of them take.
//!
//! Layer: cluster/iterations. The cluster is run once with the least times of iterations in place of simulated ones; its sets are much the same.

use std::time::Instant;

use super::super::error::ClusterError;
use super::case::IterationCase;
use super::fabric::IterationFabric;
use super::run::{least_time, most_bytes, simulated, work};

/// Sets that are simulated, by the share of all work that smaller ones have, in percent: in this order, as long as there is time.
const SAMPLED: [u64; 7] = [50, 20, 80, 35, 65, 5, 95];
/// Messages, or packets over links, a second and thread, where no set ends in time: what the engines do at least (our choice, from the benchmarks).
const LEAST_PER_S: f64 = 1e6;

/// Sets of jobs whose iterations were asked for and not simulated.
#[derive(Debug, Default)]
pub(in crate::cluster) struct ForeseenSets {
    cases: Vec<(u64, IterationCase)>,
}

impl ForeseenSets {
    /// A set; the least times of its jobs' iterations, ps.
    pub(super) fn add(&mut self, fabric: &IterationFabric, case: &IterationCase) -> Vec<u64> {
        self.cases.push((work(fabric, case, u64::from(fabric.keys.count)), case.clone()));
        (0..).zip(&case.works).map(|(job, _)| least_time(case, job)).collect()
    }

    /// How many there are.
    pub(in crate::cluster) fn len(&self) -> usize {
        self.cases.len()
    }

    /// Bytes that the sets which take most need together, where so many are simulated at a time.
    pub(in crate::cluster) fn bytes(&self, fabric: &IterationFabric, at_a_time: usize) -> u64 {
        let mut each: Vec<u64> = self.cases.iter().map(|(_, case)| most_bytes(fabric, case)).collect();
        each.sort_unstable_by(|a, b| b.cmp(a));
        each.iter().take(at_a_time).fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Seconds of one thread that all sets take, about, as a few of them show that are simulated until `stop`.
    ///
    /// # Errors
    /// Iterations cannot be simulated.
    pub(in crate::cluster) fn seconds(
        mut self,
        fabric: &IterationFabric,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<f64, ClusterError> {
        self.cases.sort_by(|a, b| (a.0, &a.1.key).cmp(&(b.0, &b.1.key)));
        let all: u128 = self.cases.iter().map(|(work, _)| u128::from(*work)).sum();
        let (mut took, mut samples, mut at_least) = (0.0, 0u32, 1.0 / LEAST_PER_S);
        for percent in SAMPLED {
            let mut below = 0u128;
            let found = self.cases.iter().find(|(work, _)| {
                below += u128::from(*work);
                below * 100 >= all * u128::from(percent)
            });
            let Some((work, case)) = found.filter(|_| !stop()) else { break };
            let start = Instant::now();
            let result = simulated(fabric, case, 0, stop);
            let of_each = start.elapsed().as_secs_f64() / (*work).max(1) as f64;
            match result {
                Ok(_) => {
                    took += of_each;
                    samples += 1;
                }
                // It takes longer than it was given.
                Err(ClusterError::Interrupted) => {
                    at_least = of_each.max(at_least);
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        let each = if samples == 0 { at_least } else { took / f64::from(samples) };
        // Audits simulate four times as many iterations once more.
        let audits = 1.0 + 4.0 * fabric.keys.audit_ppm as f64 / 1e6;
        Ok(all as f64 * each * audits)
    }
}
