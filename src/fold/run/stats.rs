//! Measures where the wall time of a folded run goes, and counts partitions over model time.
//!
//! Layer: fold/run. Decides nothing. Reading the clock may take as long as a turn. So only one turn in [`TURNS_PER_TIMING`] is timed, and all time is
//! divided in proportion.

use std::time::{Duration, Instant};

use hyperfold_engine::FoldStats;

/// One turn in this many is timed. A prime, because turns of equivalent partitions come in cycles (our choice).
const TURNS_PER_TIMING: u64 = 17;

/// Measures the wall time of turns.
#[derive(Default)]
pub(crate) struct TurnTimer {
    turns: u64,
    /// Model time of the last turn, in ps.
    last_turn_ps: u64,
    /// Number of partitions since then.
    alive: u64,
    /// Wall time of all turns, including checkpoints and audits.
    spent: Duration,
    /// Wall time of timed turns without checkpoints and audits: of simulated partitions, of looked-up partitions, of idle NICs.
    timed: [Duration; 3],
}

/// A timed turn: its start, and the time spent on checkpoints and audits before it.
pub(crate) struct TimedTurn {
    since: Instant,
    checkpointing: Duration,
}

impl TurnTimer {
    /// Restarts model time, because the experiment starts over, folded.
    pub(crate) fn start_over(&mut self) {
        (self.last_turn_ps, self.alive) = (0, 0);
    }

    /// Begins a turn at `at_ps`.
    pub(crate) fn begin_turn(&mut self, stats: &mut FoldStats, at_ps: u64) -> Option<TimedTurn> {
        // The earliest partition goes a step ahead of the others. What it schedules may be earlier than the turn before.
        let at_ps = at_ps.max(self.last_turn_ps);
        stats.partition_ps += u128::from(self.alive) * u128::from(at_ps - self.last_turn_ps);
        stats.span_ps = at_ps;
        self.last_turn_ps = at_ps;
        self.turns += 1;
        self.turns
            .is_multiple_of(TURNS_PER_TIMING)
            .then(|| TimedTurn { since: Instant::now(), checkpointing: stats.checkpointing + stats.auditing })
    }

    /// Ends a turn. `looked_up`: whether its partition was looked up; `None`: it was the turn of an idle NIC.
    pub(crate) fn end_turn(
        &mut self,
        stats: &mut FoldStats,
        alive: u64,
        timed_turn: Option<TimedTurn>,
        looked_up: Option<bool>,
    ) {
        self.alive = alive;
        stats.partitions_max = stats.partitions_max.max(self.alive);
        let Some(timed_turn) = timed_turn else { return };
        let kind = match looked_up {
            Some(false) => 0,
            Some(true) => 1,
            None => 2,
        };
        self.timed[kind] +=
            timed_turn.since.elapsed().saturating_sub(stats.checkpointing + stats.auditing - timed_turn.checkpointing);
    }

    /// Adds the wall time `spent` of several turns, and updates the estimates in `stats`.
    pub(crate) fn add_time(&mut self, stats: &mut FoldStats, spent: Duration) {
        self.spent += spent;
        let timed: Duration = self.timed.iter().sum();
        if timed.is_zero() {
            return;
        }
        let whole = self.spent.saturating_sub(stats.checkpointing + stats.auditing);
        let [simulating, looking_up] =
            [0, 1].map(|kind| whole.mul_f64(self.timed[kind].as_secs_f64() / timed.as_secs_f64()));
        (stats.simulating, stats.looking_up) = (simulating, looking_up);
    }
}
