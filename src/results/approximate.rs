//! Warnings about results that skipped phases may have made inaccurate, shared by `run`, `compare` and `report`.
//!
//! Layer: results. Estimates nothing: the engine does, and `stats.csv` has it.

use std::path::Path;

use super::read::RunColumns;

/// Estimated relative error of times from which there is a warning (our choice: half a percent decides rankings).
pub const WARNED: f64 = 0.005;

/// Estimated relative error from which times of messages are left empty (our choice).
pub const MESSAGES_UP_TO: f64 = 0.01;

/// Experiments whose times may be off by more than [`WARNED`].
#[derive(Default)]
pub struct SteadyErrors {
    above: usize,
    /// The worst experiment and its relative error.
    worst: Option<(u64, f64)>,
}

impl SteadyErrors {
    /// Adds an experiment with its `steady_error`.
    pub fn add(&mut self, exp_id: u64, error: Option<f64>) {
        let Some(error) = error.filter(|&e| e > WARNED) else { return };
        self.above += 1;
        if self.worst.is_none_or(|w| error > w.1) {
            self.worst = Some((exp_id, error));
        }
    }

    /// Returns the warning for the user. `None`: no experiment is off by more than is worth one.
    pub fn warning(&self) -> Option<String> {
        let (exp_id, error) = self.worst?;
        let others = if self.above == 1 {
            format!("the only experiment above {}", percent(WARNED))
        } else {
            format!("the worst of {} experiments above {}", self.above, percent(WARNED))
        };
        Some(format!(
            "phases skipped as steady may put the times of experiment {exp_id} off by {} (steady_error in stats.csv), {others}; \
             above {}, times of messages are left empty; use fidelity.fast_forward = \"exact\"",
            percent(error),
            percent(MESSAGES_UP_TO)
        ))
    }
}

/// Returns the warning about the results in `dir`, if there is one.
pub fn of_folder(dir: &Path) -> Option<String> {
    let mut errors = SteadyErrors::default();
    // Errors of reading are reported by the caller, which reads the results itself.
    RunColumns::open(dir).ok()?.each_stats(|exp_id, stats| errors.add(exp_id, stats.steady_error)).ok()?;
    errors.warning()
}

/// Formats a share in percent: two decimals, or up to six to show two digits.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let decimals = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(2.0, 6.0) as usize } else { 2 };
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_show_two_digits_or_six_decimals() {
        assert_eq!(
            [0.0, 0.000_000_001, 0.000_031, 0.000_2, 0.012_345, 1.5].map(percent),
            ["0.00 %", "0.000000 %", "0.0031 %", "0.020 %", "1.23 %", "150.00 %"]
        );
    }

    #[test]
    fn the_worst_is_told() {
        let mut errors = SteadyErrors::default();
        errors.add(1, None);
        errors.add(2, Some(0.004));
        assert_eq!(errors.warning(), None);
        errors.add(3, Some(0.02));
        errors.add(4, Some(0.007));
        let told = errors.warning().expect("two are above");
        assert!(told.contains("experiment 3 off by 2.00 %") && told.contains("of 2 experiments"), "{told}");
    }
}
