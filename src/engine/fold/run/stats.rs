//! Statistics of folding: what it did, the number of partitions over model time, and where wall time goes.
//!
//! Layer: fold/run. Decides nothing. Reading the clock may take as long as a turn. So only one turn in [`TURNS_PER_TIMING`] is timed, and all time is
//! divided in proportion.

use std::time::{Duration, Instant};

use crate::engine::fold::steady::audit::Audit;

/// Statistics of folding for one experiment. Counts depend on the experiment and on the content of the memo. Times are estimates: see [`TurnTimer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStats {
    /// Packet-hops that were simulated. An experiment that started over counts them again.
    pub hops_simulated: u64,
    /// Number of skips of steady partitions, packet-hops that they skipped, and model time that they skipped, summed over partitions, in ps.
    pub skips: u64,
    pub hops_skipped: u64,
    pub skipped_ps: u128,
    /// How many times congestion-control state was rounded between messages, or the origin of a telemetry counter was moved.
    pub rounded: u64,
    /// With `"rates"`: how many times a possible pause, resume or drop was left out.
    pub unpaused: u64,
    /// Number of skips that carried measured rates on. Of those that ended by themselves: the sum of half the change of the sum of rates (in
    /// millionths) times their length in ps; and the sum of their lengths in ps.
    pub carried: u64,
    pub drift_ps: u128,
    pub drift_over_ps: u128,
    /// Packet-hops that these skipped; number of copies that ran without carried rates for a while; and possible errors of the makespan and of the
    /// mean time of messages by what was found there, in millionths.
    pub hops_carried: u64,
    pub continued: u64,
    pub carried_ppm: u64,
    pub carried_messages_ppm: u64,
    /// Skips that were also simulated, to measure the error: packet-hops of that, and results.
    pub audit_hops: u64,
    pub audit: Audit,
    /// Maximum by which the time of a queue pair may differ, because its rates were not those of its first steady phase or are only known up to one
    /// packet per window; in ps.
    pub wander_ps: u64,
    /// 1 if the experiment started over without skips, because they left out too little.
    pub exactly: u64,
    /// Lifetimes of partitions, from idle to idle, that were looked up; and those that had to be simulated at least in part.
    pub hits: u64,
    pub misses: u64,
    /// 1 if the experiment started over without folding.
    pub restarts: u64,
    /// Number of switches whose ports are processed together because a pause or a drop was possible; and how many times the experiment started over,
    /// folded, to couple more of them.
    pub coupled: u64,
    pub couplings: u64,
    /// Lifetimes that began idle and were looked up, and how many of these the memo knew. The first number counts patterns of contention, the second
    /// repetitions.
    pub episodes: u64,
    pub episodes_known: u64,
    /// Snapshots that were looked up at checkpoints, and how many of these the memo knew.
    pub snapshots: u64,
    pub snapshots_known: u64,
    /// Partitions that were formed: from idle rows, or as pieces of a split.
    pub partitions: u64,
    /// Maximum number of partitions at one time.
    pub partitions_max: u64,
    /// Partitions times model time (ps), and the model time itself. Their quotient is the mean number of partitions.
    pub partition_ps: u128,
    pub span_ps: u64,
    /// Bytes of keys and outcomes in the memo at the experiment's last turn. All experiments of the process share the memo.
    pub memo_bytes: u64,
    /// Wall time spent simulating partitions, looking them up, and on checkpoints, which write and look up snapshots.
    pub simulating: Duration,
    pub looking_up: Duration,
    pub checkpointing: Duration,
    /// Wall time spent on audits. No result depends on them.
    pub auditing: Duration,
}

impl FoldStats {
    /// Relative error of times that skips may cause, in a run of `hops` packet-hops and `span` ps: the drift that audits let expect, over everything
    /// that was skipped, plus the wander of rates between skips. The error of carried rates is known from copies. `None`: nothing was skipped.
    pub fn steady_error(&self, hops: u64, span: u64) -> Option<f64> {
        let of_steady = self.hops_skipped - self.hops_carried;
        let skipped = of_steady as f64 / hops.max(1) as f64;
        let audited = self.audit_hops as f64 / of_steady.max(1) as f64;
        let wander = self.wander_ps as f64 / span.max(1) as f64;
        let carried = self.carried_ppm as f64 / 1e6;
        (self.skips > 0).then(|| self.audit.drift(audited) * skipped + wander + carried)
    }
}

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
