//! Counts of an experiment by an engine that folds: packet-hops that it simulated, looked up and skipped, and how far skips were off where that was measured.
//!
//! The engine that folds is a crate of its own. These counts stand here, because every engine hands them over in its [`SliceOutcome`](crate::SliceOutcome).

use std::time::Duration;

/// The number 1 in millionths.
const WHOLE: u64 = 1_000_000;

/// Statistics of folding for one experiment. Counts depend on the experiment and on the content of the memo. Times are estimates from a sample of turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStats {
    /// Packet-hops that were simulated. An experiment that started over counts them again.
    pub hops_simulated: u64,
    /// Packet-hops of these that were simulated without folding: all of an experiment that is not folded, or what follows after it was handed over.
    pub hops_plain: u64,
    /// Number of skips of steady partitions.
    pub skips: u64,
    /// Packet-hops that skips left out.
    pub hops_skipped: u64,
    /// Model time that skips left out, summed over partitions, in ps.
    pub skipped_ps: u128,
    /// How many times congestion-control state was rounded between messages, or the origin of a telemetry counter was moved.
    pub rounded: u64,
    /// With `"rates"`: how many times a possible pause, resume or drop was left out.
    pub unpaused: u64,
    /// Number of skips that carried measured rates on.
    pub carried: u64,
    /// Drift of the carried skips that ended by themselves: half the change of the sum of rates (in millionths) times the skip's length in ps, summed.
    pub drift_ps: u128,
    /// Lengths of the skips that `drift_ps` sums over, in ps.
    pub drift_over_ps: u128,
    /// Packet-hops that carried skips left out.
    pub hops_carried: u64,
    /// Number of copies that ran without carried rates for a while, to measure their error.
    pub continued: u64,
    /// Possible error of the makespan by what was found there, in millionths.
    pub carried_ppm: u64,
    /// Possible error of the mean time of messages by what was found there, in millionths.
    pub carried_messages_ppm: u64,
    /// Packet-hops that were simulated although they were skipped, to measure the error.
    pub audit_hops: u64,
    /// Errors that were measured so.
    pub audit: Audit,
    /// Maximum by which the time of a queue pair may differ, because its rates were not those of its first steady phase or are only known up to one
    /// packet per window; in ps.
    pub wander_ps: u64,
    /// 1 if the experiment went back and on without skips, or on without skips before there were any.
    pub exactly: u64,
    /// Lifetimes of partitions, from idle to idle, that were looked up.
    pub hits: u64,
    /// Lifetimes that had to be simulated at least in part.
    pub misses: u64,
    /// 1 if the experiment started over without folding.
    pub restarts: u64,
    /// Number of switches whose ports are processed together because a pause or a drop was possible.
    pub coupled: u64,
    /// Number of times that the experiment started over, folded, to couple more switches.
    pub couplings: u64,
    /// Lifetimes that began idle and were looked up: patterns of contention.
    pub episodes: u64,
    /// Number of these lifetimes that the memo knew: repetitions.
    pub episodes_known: u64,
    /// Snapshots that were looked up at checkpoints.
    pub snapshots: u64,
    /// Number of these snapshots that the memo knew.
    pub snapshots_known: u64,
    /// Partitions that were formed: from idle rows, or as pieces of a split.
    pub partitions: u64,
    /// Maximum number of partitions at one time.
    pub partitions_max: u64,
    /// Number of partitions, summed over model time in ps. Divided by `span_ps` it is the mean number of partitions.
    pub partition_ps: u128,
    /// Model time of that sum, in ps.
    pub span_ps: u64,
    /// Bytes of keys and outcomes in the memo at the experiment's last turn. All experiments of the process share the memo.
    pub memo_bytes: u64,
    /// Wall time spent simulating partitions.
    pub simulating: Duration,
    /// Wall time spent looking up partitions.
    pub looking_up: Duration,
    /// Wall time spent on checkpoints, which write and look up snapshots.
    pub checkpointing: Duration,
    /// Wall time spent on audits. No result depends on them.
    pub auditing: Duration,
}

impl FoldStats {
    /// These statistics without those of skips, for a result that no longer depends on skips.
    pub fn without_skips(&self) -> FoldStats {
        FoldStats {
            skips: 0,
            hops_skipped: 0,
            skipped_ps: 0,
            rounded: 0,
            audit_hops: 0,
            audit: Audit::default(),
            unpaused: 0,
            carried: 0,
            drift_ps: 0,
            drift_over_ps: 0,
            hops_carried: 0,
            continued: 0,
            carried_ppm: 0,
            carried_messages_ppm: 0,
            wander_ps: 0,
            ..*self
        }
    }

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

/// Number of standard errors that are added to what audits found (our choice: the usual two, 95 % of cases).
const ERRORS: f64 = 2.0;

/// Results of audits. Errors are in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Number of skips that were also simulated.
    pub skips: u64,
    /// Number of messages delivered in them, counting a queue pair without any delivery as one.
    pub messages: u64,
    /// Sum of the errors of the messages' times from post to delivery, or of the progress of queue pairs.
    pub error_sum: u64,
    /// Largest of these errors.
    pub error_max: u64,
    /// Number of these errors above 1 %.
    pub above: u64,
    /// Number of queue pairs whose rate was off by more than theta / (1 - theta) (Wormhole's Theorem 2).
    pub theorem2: u64,
    /// Number of queue pairs whose time to send was off by more than theta (Wormhole's Theorem 3).
    pub theorem3: u64,
    /// Number of audits that measure how far skips drift.
    pub drifts: u64,
    /// Packets that skips counted beyond those sent, except one per queue pair, summed over these audits.
    pub ahead: i64,
    /// Packets sent, summed over these audits.
    pub sent: u64,
    /// Squares of the audits' `ahead`, summed.
    pub ahead_squares: u128,
    /// Products of the audits' `ahead` and `sent`, summed.
    pub ahead_sent: i128,
    /// Squares of the audits' `sent`, summed.
    pub sent_squares: u128,
    /// Packet-hops of the largest audit.
    pub largest: u64,
}

impl Audit {
    /// Counts a message that was posted at `posted`: a skip reported its delivery at `reported`, but it was at `simulated` (all in ps).
    pub fn message(&mut self, reported: u64, simulated: u64, posted: u64) {
        let took = simulated.saturating_sub(posted).max(1);
        let error = (u128::from(reported.abs_diff(simulated)) * u128::from(WHOLE) / u128::from(took))
            .min(u128::from(u64::from(u32::MAX))) as u64;
        self.messages += 1;
        self.error_sum += error;
        self.error_max = self.error_max.max(error);
        self.above += u64::from(error > WHOLE / 100);
    }

    /// Counts a queue pair without a delivered message, by its packets: `reported` in the skip, `simulated` in the simulation.
    pub fn progress(&mut self, reported: u64, simulated: u64) {
        // Packets in flight at the start and the end may differ by one.
        let off = reported.abs_diff(simulated).saturating_sub(1);
        self.message(simulated + off, simulated, 0);
    }

    /// Relative drift of skips from what was sent: the drift that audits found, plus [`ERRORS`] standard errors, because other skips may differ.
    /// `audited`: the share that was audited.
    ///
    /// The drift is a ratio of sums over a sample of skips. Its standard error is that of Cochran's *Sampling Techniques*, equation 6.13. A single
    /// audit does not tell how much others differ, so what it found counts twice.
    pub fn drift(&self, audited: f64) -> f64 {
        let (n, ahead, sent) = (self.drifts as f64, self.ahead as f64, self.sent.max(1) as f64);
        let ratio = ahead / sent;
        if self.drifts < 2 {
            return 2.0 * ratio.abs();
        }
        let squares =
            self.ahead_squares as f64 - 2.0 * ratio * self.ahead_sent as f64 + ratio * ratio * self.sent_squares as f64;
        let error = (n / (n - 1.0) * squares.max(0.0) * (1.0 - audited.clamp(0.0, 1.0))).sqrt() / sent;
        ratio.abs() + ERRORS * error
    }

    /// Counts an audit in which the skip counted `ahead` packets beyond the `sent` ones, over all queue pairs.
    pub fn drifted(&mut self, ahead: i64, sent: u64) {
        self.drifts += 1;
        self.ahead += ahead;
        self.sent += sent;
        self.ahead_squares += u128::from(ahead.unsigned_abs()).pow(2);
        self.ahead_sent += i128::from(ahead) * i128::from(sent);
        self.sent_squares += u128::from(sent).pow(2);
    }

    /// Counts a queue pair that sent `simulated` packets while the skip counted `reported`. Returns how many packets the skip was ahead, not counting one.
    pub fn rate(&mut self, reported: u64, simulated: u64, theta_ppm: u64) -> i64 {
        // Packets in flight at the start and the end may differ by one.
        let off = reported.abs_diff(simulated).saturating_sub(1);
        let ahead = if reported > simulated { off as i64 } else { -(off as i64) };
        let off = u128::from(off);
        let (reported, simulated, theta, whole) =
            (u128::from(reported), u128::from(simulated), u128::from(theta_ppm.min(WHOLE)), u128::from(WHOLE));
        self.theorem2 += u64::from(off > 0 && off * (whole - theta) >= simulated * theta);
        self.theorem3 += u64::from(off > 0 && off * whole >= reported * theta);
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(audits: &[(i64, u64)], audited: f64) -> f64 {
        let mut audit = Audit::default();
        audits.iter().for_each(|&(ahead, sent)| audit.drifted(ahead, sent));
        (audit.drift(audited) * 1e6).round() / 1e6
    }

    #[test]
    fn what_audits_differ_by_is_reckoned_with() {
        assert_eq!(drift(&[], 0.0), 0.0);
        // One says nothing of others.
        assert_eq!(drift(&[(-3, 1000)], 0.1), 0.006);
        assert_eq!(drift(&[(3, 1000), (6, 2000)], 0.0), 0.003);
        // 3 of 1,000, and each is 3 packets off that: the standard error is 3 of 1,000, too.
        assert_eq!(drift(&[(0, 1000), (6, 1000)], 0.0), 0.009);
        assert_eq!(drift(&[(0, 1000), (6, 1000)], 0.75), 0.006);
        assert_eq!(drift(&[(0, 1000), (6, 1000)], 1.0), 0.003);
    }
}
