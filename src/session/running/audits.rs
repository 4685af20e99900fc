//! Collects over a run what audits of skipped phases found.
//!
//! Layer: session.

use hyperfold_base::units::counted;
use hyperfold_results::StatsRecord;
use hyperfold_results::approximate::{MESSAGES_UP_TO, SteadyErrors, WARNED, percent};

/// Statistics of experiments that skipped steady phases or rounded times so that episodes repeat, and of the audits that exceeded their bounds.
#[derive(Default)]
pub(crate) struct Audits {
    approximate: usize,
    /// Experiments that started over without skips, as skips saved too little.
    exactly: usize,
    /// Estimated errors that skips may have caused.
    errors_in_all: SteadyErrors,
    /// Audited phases.
    phases: u64,
    messages: u64,
    errors: f64,
    above: usize,
    /// Experiments that carried measured rates on.
    carried: usize,
    carried_doubtful: usize,
    /// The worst audit above its bound, as (experiment, mean relative error, bound).
    worst: Option<(u64, f64, f64)>,
    /// The worst audit of job speeds from few iterations, as (experiment, mean relative error, bound).
    worst_speeds: Option<(u64, f64, f64)>,
    /// The experiment whose iterations leave out most of the cost of checkpoint writes, and that share of GPU time.
    worst_writes: Option<(u64, f64)>,
}

/// Share of GPU time that iterations may lose to writes before a run warns (our choice).
const WRITES_UP_TO: f64 = 0.01;

impl Audits {
    /// Adds a finished experiment. `bound`: bound of the mean relative error in its audits.
    pub(crate) fn add(&mut self, exp_id: u64, stats: &StatsRecord, bound: f64) {
        let error = stats.audit_fct_error;
        self.approximate += usize::from(stats.steady_skips > 0 || stats.folding.rounded > 0);
        self.exactly += usize::from(stats.folding.exact_instead > 0);
        self.errors_in_all.add(exp_id, stats.steady_error);
        self.phases += stats.folding.audited;
        self.messages += stats.folding.audit_messages;
        self.errors += error.unwrap_or(0.0) * stats.folding.audit_messages as f64;
        let folding = &stats.folding;
        self.carried += usize::from(folding.carried_skips > 0);
        self.carried_doubtful += usize::from(
            folding.carried_skips > 0
                && (stats.steady_error.is_some_and(|error| error > WARNED)
                    || folding.carried_messages_error > MESSAGES_UP_TO
                    || folding.pauses_left_out > 0),
        );
        let Some(error) = error.filter(|&e| e > bound) else { return };
        self.above += 1;
        if self.worst.is_none_or(|w| error > w.1) {
            self.worst = Some((exp_id, error, bound));
        }
    }

    /// Adds a cluster whose jobs' iterations were simulated. `error`: mean relative difference in its audits.
    pub(crate) fn add_iterations(&mut self, exp_id: u64, error: Option<f64>, bound: f64) {
        if let Some(error) = error.filter(|&e| e > bound && self.worst_speeds.is_none_or(|w| e > w.1)) {
            self.worst_speeds = Some((exp_id, error, bound));
        }
    }

    /// Returns a warning if more iterations showed other speeds than few.
    pub(crate) fn iterations_warning(&self) -> Option<String> {
        let (exp_id, error, bound) = self.worst_speeds?;
        Some(format!(
            "four times as many iterations took another {} on average in the audit of experiment {exp_id} (scheduler.iterations_audit_bound: {}); \
             raise scheduler.iterations, or lower scheduler.iterations_within",
            percent(error),
            percent(bound)
        ))
    }

    /// Adds a cluster whose iterations were simulated without checkpoint writes. `share`: upper bound on the share of GPU time that this leaves out.
    pub(crate) fn add_writes(&mut self, exp_id: u64, share: Option<f64>) {
        if let Some(share) = share.filter(|&s| s > WRITES_UP_TO && self.worst_writes.is_none_or(|w| s > w.1)) {
            self.worst_writes = Some((exp_id, share));
        }
    }

    /// Returns a warning if checkpoint writes could slow iterations down considerably.
    pub(crate) fn writes_warning(&self) -> Option<String> {
        let (exp_id, share) = self.worst_writes?;
        Some(format!(
            "writes of checkpoints do not slow iterations down, and in experiment {exp_id} they could have cost up to {} of GPU time \
             (beside_writes_share); simulate a storage job beside the model with fidelity.mode = \"flow\" to know",
            percent(share)
        ))
    }

    /// Returns notes on approximations for readers of the results. `experiments`: number of all experiments.
    pub(crate) fn notes(&self, experiments: usize) -> Vec<String> {
        let found = match self.messages {
            0 => "no phase was audited (fidelity.audit), roundings never are".to_string(),
            n => {
                let phases = if self.phases == 1 {
                    "one such phase".to_string()
                } else {
                    format!("{} such phases", self.phases)
                };
                format!(
                    "{} of {phases}, simulated as well: {} off on average",
                    counted(n, "message"),
                    percent(self.errors / n as f64)
                )
            }
        };
        let carried = match self.carried {
            0 => String::new(),
            n => format!("; {} carried measured rates on where flows collide", counted(n, "experiment")),
        };
        let exactly = || {
            format!(
                "{} of {} started over as with fidelity.fast_forward = \"exact\" (exact_instead in stats.csv), as skips left out too little, might have missed a pause, or may have been off by more than 1 %",
                self.exactly,
                counted(experiments, "experiment")
            )
        };
        let approximate = (self.approximate > 0).then(|| {
            format!(
                "{} of {} skipped steady phases or rounded rates between messages, so their times are approximate; {found}{carried}; \
                 fidelity.fast_forward = \"exact\" does neither",
                self.approximate,
                counted(experiments, "experiment")
            )
        });
        approximate.into_iter().chain((self.exactly > 0).then(exactly)).collect()
    }

    /// Returns warnings about errors that skips may have caused.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.errors_in_all.warning().into_iter().chain(self.above_bound()).collect()
    }

    /// Returns a warning if rates were carried on, with the number of experiments whose estimated error is large or that left out pauses.
    pub(crate) fn doubt(&self) -> Option<String> {
        let doubtful = match self.carried_doubtful {
            0 => String::new(),
            n => format!(
                "; in {n} of them the estimate for the makespan is above {} (steady_error), or that for messages above {} \
                 (carried_messages_error; then their columns of completion times are empty), or pauses were left out \
                 (pauses_left_out)",
                percent(WARNED),
                percent(MESSAGES_UP_TO)
            ),
        };
        (self.carried > 0).then(|| {
            format!(
                "{} carried measured rates on where flows collide (carried_skips in stats.csv), an approximation that may be off \
                 by percents under contention{doubtful}; fidelity.fast_forward = \"steady\" does not",
                counted(self.carried as u64, "experiment")
            )
        })
    }

    /// Returns a warning if an audit exceeded its bound.
    fn above_bound(&self) -> Option<String> {
        let (exp_id, error, bound) = self.worst?;
        Some(format!(
            "what was skipped as steady was off by {} on average in the audit of experiment {exp_id} (fidelity.audit_bound: {}), {}; \
             use fidelity.fast_forward = \"exact\", or a smaller fidelity.steady_theta",
            percent(error),
            percent(bound),
            if self.above == 1 {
                "the only experiment above its bound".into()
            } else {
                format!("the worst of {} experiments above their bounds", self.above)
            }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::FoldingRecord;

    fn stats(steady_skips: u64, audit_messages: u64, audit_fct_error: Option<f64>) -> StatsRecord {
        let folding = FoldingRecord { audited: audit_messages.min(1), audit_messages, ..Default::default() };
        StatsRecord { steady_skips, audit_fct_error, folding, ..Default::default() }
    }

    #[test]
    fn what_is_approximate_is_told_with_what_audits_say() {
        let mut audits = Audits::default();
        audits.add(1, &stats(0, 0, None), 0.01);
        assert!(audits.notes(1).is_empty());
        audits.add(2, &stats(7, 0, None), 0.01);
        let told = audits.notes(2).join("");
        assert!(told.starts_with("1 of 2 experiments") && told.contains("no phase was audited"), "{told}");
        audits.add(3, &stats(2, 3, Some(0.001)), 0.01);
        audits.add(4, &stats(2, 1, Some(0.005)), 0.01);
        let told = audits.notes(4).join("");
        assert!(
            told.starts_with("3 of 4 experiments")
                && told.contains("4 messages of 2 such phases, simulated as well: 0.20 % off"),
            "{told}"
        );
    }

    #[test]
    fn carried_rates_are_always_told() {
        let mut audits = Audits::default();
        audits.add(1, &stats(1, 0, None), 0.01);
        assert_eq!(audits.doubt(), None);
        let mut carried = stats(1, 0, None);
        (carried.folding.carried_skips, carried.steady_error) = (3, Some(0.004));
        audits.add(2, &carried, 0.01);
        let told = audits.doubt().expect("one carried rates on");
        assert!(told.starts_with("1 experiment carried") && !told.contains("of them"), "{told}");
        for doubt in [
            StatsRecord { steady_error: Some(0.006), ..carried.clone() },
            StatsRecord {
                folding: FoldingRecord { carried_messages_error: 0.02, ..carried.folding.clone() },
                ..carried.clone()
            },
            StatsRecord { folding: FoldingRecord { pauses_left_out: 1, ..carried.folding.clone() }, ..carried.clone() },
        ] {
            audits.add(3, &doubt, 0.01);
        }
        let told = audits.doubt().expect("four carried rates on");
        assert!(told.starts_with("4 experiments carried") && told.contains("in 3 of them"), "{told}");
    }

    #[test]
    fn speeds_off_by_more_than_the_bound_are_told() {
        let mut audits = Audits::default();
        audits.add_iterations(1, Some(0.01), 0.02);
        audits.add_iterations(2, None, 0.0);
        assert_eq!(audits.iterations_warning(), None);
        audits.add_iterations(3, Some(0.05), 0.02);
        let told = audits.iterations_warning().expect("one is above");
        assert!(told.contains("another 5.00 %") && told.contains("experiment 3"), "{told}");
    }

    #[test]
    fn writes_that_could_cost_much_are_told() {
        let mut audits = Audits::default();
        audits.add_writes(1, None);
        audits.add_writes(2, Some(0.01));
        assert_eq!(audits.writes_warning(), None);
        audits.add_writes(3, Some(0.03));
        audits.add_writes(4, Some(0.02));
        let told = audits.writes_warning().expect("two are above");
        assert!(told.contains("experiment 3") && told.contains("up to 3.00 %"), "{told}");
    }

    #[test]
    fn the_worst_above_its_bound_is_told() {
        let mut audits = Audits::default();
        audits.add(1, &stats(1, 100, Some(0.009)), 0.01);
        audits.add(2, &stats(0, 0, None), 0.0);
        assert!(audits.warnings().is_empty());
        audits.add(3, &stats(1, 1, Some(0.02)), 0.01);
        audits.add(4, &stats(1, 1, Some(0.05)), 0.01);
        audits.add(5, &stats(1, 1, Some(0.03)), 0.01);
        let told = audits.warnings().join("");
        assert!(
            told.contains("5.00 %") && told.contains("experiment 4") && told.contains("of 3 experiments"),
            "{told}"
        );
    }
}
