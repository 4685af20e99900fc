//! Partitions over model time, and where the time goes.
//!
//! Layer: engine. Decides nothing. A turn may take little longer than a look at the clock: one in [`TURNS_A_SAMPLE`] is timed, and all time is shared out as theirs was.

use std::time::{Duration, Instant};

use crate::engine::fold::run::turns::Run;

/// Our choice: prime, as turns of partitions that do the same come in cycles.
const TURNS_PER_TIMING: u64 = 17;

/// What a run remembers to count with.
#[derive(Default)]
pub struct TurnTimer {
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
pub struct TimedTurn {
    since: Instant,
    checkpointing: Duration,
}

impl Run {
    /// A turn at `at` begins.
    pub(in crate::engine::fold) fn begin_turn(&mut self, at: u64) -> Option<TimedTurn> {
        let timer = &mut self.timer;
        // Whoever is earliest goes a step ahead of the others: those that it calls may be earlier than the turn before.
        let at = at.max(timer.at);
        self.stats.partition_ps += u128::from(timer.alive) * u128::from(at - timer.at);
        self.stats.span_ps = at;
        timer.at = at;
        timer.turns += 1;
        timer
            .turns
            .is_multiple_of(TURNS_PER_TIMING)
            .then(|| TimedTurn { since: Instant::now(), checkpointing: self.stats.checkpointing + self.stats.auditing })
    }

    /// The turn is over; `replay` says whether its partition was looked up, `None` that it was an idle NIC's.
    pub(in crate::engine::fold) fn end_turn(&mut self, timed_turn: Option<TimedTurn>, looked_up: Option<bool>) {
        self.timer.alive = (self.partitions.len() - self.spare.len()) as u64;
        self.stats.partitions_max = self.stats.partitions_max.max(self.timer.alive);
        let Some(timed_turn) = timed_turn else { return };
        let kind = match looked_up {
            Some(false) => 0,
            Some(true) => 1,
            None => 2,
        };
        self.timer.timed[kind] += timed_turn
            .since
            .elapsed()
            .saturating_sub(self.stats.checkpointing + self.stats.auditing - timed_turn.checkpointing);
    }

    /// Turns took `spent` in all.
    pub(in crate::engine::fold) fn add_time(&mut self, spent: Duration) {
        let timer = &mut self.timer;
        timer.spent += spent;
        let timed: Duration = timer.timed.iter().sum();
        if timed.is_zero() {
            return;
        }
        let whole = timer.spent.saturating_sub(self.stats.checkpointing + self.stats.auditing);
        let [simulating, looking_up] =
            [0, 1].map(|kind| whole.mul_f64(timer.timed[kind].as_secs_f64() / timed.as_secs_f64()));
        (self.stats.simulating, self.stats.looking_up) = (simulating, looking_up);
    }
}
