//! What audits of skipped phases found, over a run.
//!
//! Layer: cli.

/// Experiments whose audits found more error than they may have.
#[derive(Default)]
pub struct Audits {
    above: usize,
    /// The worst: its number, its mean error, its bound.
    worst: Option<(u64, f64, f64)>,
}

impl Audits {
    /// Looks at a finished experiment: its number, its audits' mean error, if there were any, and its bound, both relative.
    pub fn add(&mut self, exp_id: u64, error: Option<f64>, bound: f64) {
        let Some(error) = error.filter(|&e| e > bound) else { return };
        self.above += 1;
        if self.worst.is_none_or(|w| error > w.1) {
            self.worst = Some((exp_id, error, bound));
        }
    }

    pub fn warning(&self) -> Option<String> {
        let (exp_id, error, bound) = self.worst?;
        Some(format!(
            "what was skipped as steady was off by {:.2} % on average in the audit of experiment {exp_id} (fidelity.audit_bound: {:.2} %), {}; \
             use fidelity.fast_forward = \"exact\", or a smaller fidelity.steady_theta",
            error * 100.0,
            bound * 100.0,
            if self.above == 1 { "the only experiment above its bound".into() } else { format!("the worst of {} experiments above their bounds", self.above) }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_above_its_bound_is_told() {
        let mut audits = Audits::default();
        audits.add(1, Some(0.009), 0.01);
        audits.add(2, None, 0.0);
        assert_eq!(audits.warning(), None);
        audits.add(3, Some(0.02), 0.01);
        audits.add(4, Some(0.05), 0.01);
        audits.add(5, Some(0.03), 0.01);
        let told = audits.warning().expect("three were above");
        assert!(told.contains("5.00 %") && told.contains("experiment 4") && told.contains("of 3 experiments"), "{told}");
    }
}
