//! What audits of skipped phases found, over a run.
//!
//! Layer: cli.

use crate::results::Finished;

/// Experiments whose audits found more error than they may have.
#[derive(Default)]
pub struct Audits {
    above: usize,
    /// The worst: its number, its mean error, its bound.
    worst: Option<(u64, f64, f64)>,
}

impl Audits {
    /// Looks at a finished experiment; `bound` is relative.
    pub fn add(&mut self, finished: &Finished, bound: f64) {
        let Some(error) = finished.stats.audit_fct_error.filter(|&e| e > bound) else { return };
        self.above += 1;
        if self.worst.is_none_or(|w| error > w.1) {
            self.worst = Some((finished.record.exp_id, error, bound));
        }
    }

    pub fn warning(&self) -> Option<String> {
        let (exp_id, error, bound) = self.worst?;
        Some(format!(
            "what was skipped as steady was off by {:.2} % on average in the audit of experiment {exp_id} (fidelity.audit_bound: {:.2} %), the worst of {} above their bound; \
             use fidelity.fast_forward = \"exact\", or a smaller fidelity.steady_theta",
            error * 100.0,
            bound * 100.0,
            self.above
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{ExperimentRecord, StatsRecord};

    #[test]
    fn the_worst_above_its_bound_is_told() {
        let of = |exp_id, error: Option<f64>| Finished {
            record: ExperimentRecord { exp_id, ..ExperimentRecord::default() },
            flows: Vec::new(),
            links: Vec::new(),
            rtt: Vec::new(),
            stats: StatsRecord { audit_fct_error: error, ..StatsRecord::default() },
        };
        let mut audits = Audits::default();
        audits.add(&of(1, Some(0.009)), 0.01);
        audits.add(&of(2, None), 0.0);
        assert_eq!(audits.warning(), None);
        audits.add(&of(3, Some(0.02)), 0.01);
        audits.add(&of(4, Some(0.05)), 0.01);
        audits.add(&of(5, Some(0.03)), 0.01);
        let told = audits.warning().expect("three were above");
        assert!(told.contains("5.00 %") && told.contains("experiment 4") && told.contains("of 3"), "{told}");
    }
}
