//! What the watchdog of pauses did in the experiments of a run, for a warning at its end.
//!
//! Layer: session. Adds up; prints nothing.

use hyperfold_base::units::counted;
use hyperfold_host::WatchdogOutcome;

/// What is known of the experiments that have a watchdog of pauses.
#[derive(Debug, Default)]
pub(crate) struct WatchedPauses {
    /// Experiments with a watchdog that lost packets, those of earlier sessions included.
    pub(crate) lost: u64,
    /// Experiments of this session in which the watchdog acted.
    acted: u64,
    /// The experiment of this session in which it acted most often.
    most: Option<(u64, WatchdogOutcome)>,
    /// Whether an earlier session has run experiments of the sweep. What the watchdog did in them is not known.
    is_resumed: bool,
}

impl WatchedPauses {
    /// Begins a session after another one that has run `n_before` experiments of the sweep.
    pub(crate) fn after(n_before: usize) -> WatchedPauses {
        WatchedPauses { is_resumed: n_before > 0, ..WatchedPauses::default() }
    }

    /// Adds an experiment that ended with a result in this session.
    pub(crate) fn add(&mut self, exp_id: u64, outcome: WatchdogOutcome) {
        if outcome.starts == 0 {
            return;
        }
        self.acted += 1;
        let rank = |(id, outcome): (u64, WatchdogOutcome)| (outcome.starts, std::cmp::Reverse(id));
        if self.most.is_none_or(|most| rank((exp_id, outcome)) > rank(most)) {
            self.most = Some((exp_id, outcome));
        }
    }

    /// Returns a warning if the watchdog acted.
    pub(crate) fn warning(&self) -> Option<String> {
        let Some((exp_id, most)) = self.most else {
            return (self.lost > 0).then(|| {
                let lost = counted(self.lost, "experiment");
                format!("{lost} with a watchdog of pauses lost packets (transport.pfc_watchdog); links.csv has the drops of each port")
            });
        };
        let done = match most.drops {
            0 => "and it dropped nothing itself; a switch that is sent more than it asked for may (drops)".to_string(),
            drops => format!("and it dropped {}", counted(drops, "packet")),
        };
        Some(format!(
            "the watchdog of pauses acted in {}{} (transport.pfc_watchdog), most often in experiment {exp_id}: {} at {}, {done}. A cycle of pauses, \
             or a transport.pfc_watchdog_detect_us that is shorter than ordinary pauses, makes it act",
            counted(self.acted, "experiment"),
            if self.is_resumed { " of those simulated now" } else { "" },
            counted(most.starts, "time"),
            counted(most.ports, "port"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiment_with_most_is_named() {
        let mut watched = WatchedPauses::default();
        watched.add(4, WatchdogOutcome::default());
        assert_eq!(watched.warning(), None);
        watched.lost = 2;
        assert!(watched.warning().is_some_and(|told| told.starts_with("2 experiments with a watchdog")));
        for (exp_id, starts) in [(3, 5), (1, 7), (2, 7)] {
            watched.add(exp_id, WatchdogOutcome { starts, ports: 1, drops: 20 + exp_id });
        }
        let told = watched.warning().expect("it acted");
        let words = "acted in 3 experiments (transport.pfc_watchdog), most often in experiment 1: 7 times at 1 port, and it dropped 21 packets";
        assert!(told.contains(words), "{told}");
        let mut resumed = WatchedPauses::after(2);
        resumed.add(9, WatchdogOutcome { starts: 1, ports: 1, drops: 0 });
        let told = resumed.warning().expect("it acted");
        assert!(
            told.contains("1 experiment of those simulated now") && told.contains("dropped nothing itself"),
            "{told}"
        );
    }
}
