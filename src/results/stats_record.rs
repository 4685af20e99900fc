//! Rows of `stats.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;

record! {
    /// One row of `stats.csv`: how the result was computed. Not part of the deterministic files.
    pub struct StatsRecord {
        pub packet_hops_simulated: u64 => packet_hops_simulated,
        pub packet_hops_skipped: u64 => packet_hops_skipped,
        pub memo_hits: u64 => memo_hits,
        pub memo_misses: u64 => memo_misses,
        pub steady_skips: u64 => steady_skips,
        /// Batches that the experiment was part of (more than one if it was run again unfolded).
        pub batches: u64 => batches,
        pub wall_s: f64 => wall_s,
        /// Relative error of flow completion times, if there was an audit.
        pub audit_fct_error: Option<f64> => audit_fct_error,
        /// Estimated relative error of times due to skipped steady phases; `None` if none was skipped.
        pub steady_error: Option<f64> => steady_error,
        /// Statistics of folding; all 0 if nothing was folded.
        pub folding: FoldingRecord,
    }
}

impl StatsRecord {
    /// Relative error that times of the whole experiment may have due to skips: smaller differences mean nothing. Audits of carried rates do not count: they
    /// are of single messages, which wait for each other and may be late by many times their own length.
    pub fn times_error(&self) -> Option<f64> {
        let audited = self.audit_fct_error.filter(|_| self.folding.carried_skips == 0);
        [self.steady_error, audited].into_iter().flatten().reduce(f64::max)
    }
}

record! {
    /// The columns of `stats.csv` about folding.
    pub struct FoldingRecord (part of StatsRecord: |stats| Some(&stats.folding)) {
        /// Episodes (lifetimes of partitions that began idle) that were looked up.
        pub episodes: u64 => episodes,
        /// Episodes of these that were known.
        pub episodes_known: u64 => episodes_known,
        /// Snapshots of partitions that were looked up at checkpoints.
        pub snapshots: u64 => snapshots,
        /// Snapshots of these that were known.
        pub snapshots_known: u64 => snapshots_known,
        /// Partitions that were formed.
        pub partitions: u64 => partitions,
        /// Most partitions at once.
        pub partitions_max: u64 => partitions_max,
        /// Mean number of partitions over model time.
        pub partitions_mean: f64 => partitions_mean,
        /// Bytes in the memo, which the experiments of a run share, at the end of this one.
        pub memo_bytes: u64 => memo_bytes,
        /// Packet-hops that steady partitions skipped.
        pub hops_steady: u64 => hops_steady,
        /// Mean number of partitions that were being skipped, over model time.
        pub skipped_mean: f64 => skipped_mean,
        /// Number of times that congestion control's state between messages was rounded, or telemetry counted from another start.
        pub rounded: u64 => rounded or default,
        /// Switches whose ports were processed together because a pause or a drop was near.
        pub switches_coupled: u64 => switches_coupled or default,
        /// Number of times that the experiment started over, folded, to couple more switches.
        pub couplings: u64 => couplings or default,
        /// Skips that carried measured rates on where flows collide.
        pub carried_skips: u64 => carried_skips or default,
        /// Mean relative error of the sum of rates over these skips, by what the rates changed.
        pub carried_drift: f64 => carried_drift or default,
        /// Copies that went on for a while without carrying rates, as audits.
        pub carried_audits: u64 => carried_audits or default,
        /// Relative error of the mean time of messages according to these copies.
        pub carried_messages_error: f64 => carried_messages_error or default,
        /// Number of times that a pause was near and left out.
        pub pauses_left_out: u64 => pauses_left_out or default,
        /// 1 if the experiment went back, to its start or to before its first skip, and on without skips, because they left out too little, might have missed a pause, or may have changed the makespan by more than 1 %.
        pub exact_instead: u64 => exact_instead or default,
        /// Packet-hops, of those simulated, that were simulated without folding: the experiment is not folded, or went on without because little was known.
        pub packet_hops_plain: u64 => packet_hops_plain or default,
        /// Skips that were audited, that is, also simulated.
        pub audited: u64 => audited,
        /// Packet-hops of audits (not counted as simulated).
        pub audit_hops: u64 => audit_hops,
        /// Messages compared in audits.
        pub audit_messages: u64 => audit_messages,
        /// Largest relative error of a completion time in audits.
        pub audit_fct_error_max: f64 => audit_fct_error_max,
        /// Share of messages in audits that are off by more than 1 %.
        pub audit_above_1pct: f64 => audit_above_1pct,
        /// Violations of Wormhole's Theorem 2 in audits.
        pub theorem2_violations: u64 => theorem2_violations,
        /// Violations of Wormhole's Theorem 3 in audits.
        pub theorem3_violations: u64 => theorem3_violations,
        /// Seconds of simulating partitions, estimated from samples.
        pub simulating_s: f64 => simulating_s,
        /// Seconds of looking partitions up, estimated from samples.
        pub looking_up_s: f64 => looking_up_s,
        /// Seconds of checkpoints, which write and look up snapshots, estimated from samples.
        pub checkpointing_s: f64 => checkpointing_s,
        /// Seconds of audits, estimated from samples.
        pub auditing_s: f64 => auditing_s,
    }
}
