//! Partitions over model time, and where the time goes.
//!
//! Layer: engine. Decides nothing. A turn may take little longer than a look at the clock: one in [`TURNS_A_SAMPLE`] is timed, and all time is shared out as theirs was.

use std::time::{Duration, Instant};

use super::run::Run;

/// Our choice: prime, as turns of partitions that do the same come in cycles.
const TURNS_A_SAMPLE: u64 = 17;

/// What a run remembers to count with.
#[derive(Default)]
pub struct Tally {
    turns: u64,
    /// When the last turn was, ps.
    at: u64,
    /// Partitions since then.
    alive: u64,
    /// Time of all turns, cuts and audits among them.
    spent: Duration,
    /// Time of those that were timed, without cuts and audits: partitions that are simulated, partitions that are looked up, idle NICs.
    timed: [Duration; 3],
}

/// A turn that is timed: since when, and the time that had been spent on cuts and audits by then.
pub struct Sample {
    since: Instant,
    cutting: Duration,
}

impl Run {
    /// A turn at `at` begins.
    pub(super) fn begin_turn(&mut self, at: u64) -> Option<Sample> {
        let tally = &mut self.tally;
        // Whoever is earliest goes a step ahead of the others: those that it calls may be earlier than the turn before.
        let at = at.max(tally.at);
        self.stats.partition_ps += u128::from(tally.alive) * u128::from(at - tally.at);
        self.stats.span_ps = at;
        tally.at = at;
        tally.turns += 1;
        tally
            .turns
            .is_multiple_of(TURNS_A_SAMPLE)
            .then(|| Sample { since: Instant::now(), cutting: self.stats.cutting + self.stats.auditing })
    }

    /// The turn is over; `replay` says whether its partition was looked up, `None` that it was an idle NIC's.
    pub(super) fn end_turn(&mut self, sample: Option<Sample>, replay: Option<bool>) {
        self.tally.alive = (self.parts.len() - self.spare.len()) as u64;
        self.stats.partitions_max = self.stats.partitions_max.max(self.tally.alive);
        let Some(sample) = sample else { return };
        let kind = match replay {
            Some(false) => 0,
            Some(true) => 1,
            None => 2,
        };
        self.tally.timed[kind] +=
            sample.since.elapsed().saturating_sub(self.stats.cutting + self.stats.auditing - sample.cutting);
    }

    /// Turns took `spent` in all.
    pub(super) fn took(&mut self, spent: Duration) {
        let tally = &mut self.tally;
        tally.spent += spent;
        let timed: Duration = tally.timed.iter().sum();
        if timed.is_zero() {
            return;
        }
        let whole = tally.spent.saturating_sub(self.stats.cutting + self.stats.auditing);
        let [simulating, looking_up] =
            [0, 1].map(|kind| whole.mul_f64(tally.timed[kind].as_secs_f64() / timed.as_secs_f64()));
        (self.stats.simulating, self.stats.looking_up) = (simulating, looking_up);
    }
}
