//! Forecast of the time that simulating iterations takes: which sets of jobs there will be, and how long a few of them take.
//!
//! Layer: cluster/iterations. The cluster is run once with lower bounds of iteration times in place of simulated times. Its sets of jobs are much the same.

use std::time::Instant;

use super::super::error::ClusterError;
use super::case::IterationCase;
use super::fabric::IterationFabric;
use super::run::{max_bytes, min_time, simulated, work};

/// Which sets are sampled, in this order as long as there is time: the share of all work, in percent, that the sampled set and all smaller ones have.
const SAMPLED: [u64; 7] = [50, 20, 80, 35, 65, 5, 95];
/// Work that an engine does per second and thread if no sampled set ends in time: messages, or packets over links. It is the least that the engines do (our
/// choice, from the benchmarks).
const MIN_PER_S: f64 = 1e6;

/// Sets of jobs whose iterations were asked for but not simulated, with their work.
#[derive(Debug, Default)]
pub(crate) struct ForeseenSets {
    cases: Vec<(u64, IterationCase)>,
}

impl ForeseenSets {
    /// Adds a set. Returns lower bounds of the iteration times of its jobs, in ps.
    pub(super) fn add(&mut self, fabric: &IterationFabric, case: &IterationCase) -> Vec<u64> {
        self.cases.push((work(fabric, case, u64::from(fabric.keys.count)), case.clone()));
        (0..).zip(&case.works).map(|(job, _)| min_time(case, job)).collect()
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.cases.len()
    }

    /// Bytes that the largest sets need together, if `at_a_time` sets are simulated at a time.
    pub(crate) fn bytes(&self, fabric: &IterationFabric, at_a_time: usize) -> u64 {
        let mut each: Vec<u64> = self.cases.iter().map(|(_, case)| max_bytes(fabric, case)).collect();
        each.sort_unstable_by(|a, b| b.cmp(a));
        each.iter().take(at_a_time).fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Estimate of the seconds of one thread that all sets take. It simulates a few of them until `stop` fires.
    ///
    /// # Errors
    /// Iterations cannot be simulated.
    pub(crate) fn seconds(
        mut self,
        fabric: &IterationFabric,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<f64, ClusterError> {
        self.cases.sort_by(|a, b| (a.0, &a.1.key).cmp(&(b.0, &b.1.key)));
        let all: u128 = self.cases.iter().map(|(work, _)| u128::from(*work)).sum();
        let (mut took, mut samples, mut at_least) = (0.0, 0u32, 1.0 / MIN_PER_S);
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
                // The sample takes longer than the time that was left.
                Err(ClusterError::Interrupted) => {
                    at_least = of_each.max(at_least);
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        let each = if samples == 0 { at_least } else { took / f64::from(samples) };
        // An audit simulates four times as many iterations in addition.
        let audits = 1.0 + 4.0 * fabric.keys.audit_ppm as f64 / 1e6;
        Ok(all as f64 * each * audits)
    }
}
