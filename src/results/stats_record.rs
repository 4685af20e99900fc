//! Rows of `stats.csv`.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;

record! {
    /// One row of `stats.csv`: how the result was computed. Not part of the deterministic files.
    pub struct StatsRecord {
        /// Packet-hops that were simulated.
        pub packet_hops_simulated: u64 => packet_hops_simulated,
        /// Packet-hops that were not simulated.
        pub packet_hops_skipped: u64 => packet_hops_skipped,
        /// Pieces of partitions' lifetimes that the memo knew.
        pub memo_hits: u64 => memo_hits,
        /// Pieces of partitions' lifetimes that the memo did not know.
        pub memo_misses: u64 => memo_misses,
        /// Number of skips of steady partitions. The log says why each ended.
        pub steady_skips: u64 => steady_skips see "explanation/folding.md#why-a-skip-ends",
        /// Value 2 if the experiment started over unfolded, because a queue pair gave up, the time limit was reached, or nothing could go on; else 1.
        pub batches: u64 => batches,
        /// Seconds of wall time spent on the experiment.
        pub wall_s: f64 => wall_s,
        /// Mean relative error of the messages compared in audits, from post to arrival. Empty without such messages.
        pub audit_fct_error: Option<f64> => audit_fct_error,
        /// Upper bound of how far skips put times off in all, but for chance, relative; with carried rates an estimate. Empty where nothing was skipped.
        /// Above 0.005 there is a warning. Above 0.01, as where `carried_messages_error` is, the columns of completion times in `results.csv` are empty.
        pub steady_error: Option<f64> => steady_error see "explanation/folding.md#what-skips-add-up-to",
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
        /// Number of episodes, lifetimes of partitions from idle to idle, that were looked up.
        pub episodes: u64 => episodes,
        /// Number of episodes that were looked up and known.
        pub episodes_known: u64 => episodes_known,
        /// Number of snapshots of partitions that were looked up at checkpoints.
        pub snapshots: u64 => snapshots,
        /// Number of snapshots that were looked up and known.
        pub snapshots_known: u64 => snapshots_known,
        /// Number of partitions that were formed.
        pub partitions: u64 => partitions,
        /// Largest number of partitions at once.
        pub partitions_max: u64 => partitions_max,
        /// Mean number of partitions over model time.
        pub partitions_mean: f64 => partitions_mean,
        /// Bytes that the memo, which the experiments of a run share, held by the end of this one.
        pub memo_bytes: u64 => memo_bytes,
        /// Packet-hops that skips of steady partitions left out.
        pub hops_steady: u64 => hops_steady,
        /// Mean number of partitions that are skipped, over model time.
        pub skipped_mean: f64 => skipped_mean,
        /// Number of times that a rate was rounded, or telemetry began to count anew (`"steady"` only, under HPCC and DCQCN). No audit sees this.
        pub rounded: u64 => rounded or default,
        /// Number of switches where a pause or a drop came within reach, so that their ports were processed together.
        pub switches_coupled: u64 => switches_coupled see "explanation/folding.md#switches-that-may-pause" or default,
        /// Number of times that the experiment started over, folded, to couple more switches.
        pub couplings: u64 => couplings or default,
        /// With `"rates"`: number of skips that carried measured rates on, where flows collide.
        pub carried_skips: u64 => carried_skips see "explanation/folding.md#rates-carried-on" or default,
        /// With `"rates"`: half of what the sum of rates changed by over skips that carried rates on, on average, relative.
        pub carried_drift: f64 => carried_drift or default,
        /// With `"rates"`: number of copies that went on for a while without carrying rates, as audits.
        pub carried_audits: u64 => carried_audits see "how-to/carried-rates.md#check-it-on-your-own-job" or default,
        /// With `"rates"`: estimate by the copies of how far the mean time of messages is off, relative.
        pub carried_messages_error: f64 => carried_messages_error or default,
        /// With `"rates"`: number of times that a pause was within reach and left out.
        pub pauses_left_out: u64 => pauses_left_out or default,
        /// Value 1 if the experiment started over as with `"exact"`, or went back or on so before anything was skipped; else 0.
        /// Reasons are that skips gained too little, a switch might have paused, or carried rates may have been off by more than 1 %.
        pub exact_instead: u64 => exact_instead see "explanation/folding.md#where-skips-gain-too-little" or default,
        /// Packet-hops, of those simulated, that were simulated without folding: what a GPU takes over, or all of an experiment that is not folded.
        pub packet_hops_plain: u64 => packet_hops_plain see "how-to/fold-explain.md#what-a-gpu-would-take" or default,
        /// Number of skips that were audited, that is, simulated all the same.
        pub audited: u64 => audited,
        /// Packet-hops of audits. They do not count as simulated.
        pub audit_hops: u64 => audit_hops,
        /// Number of messages compared in audits.
        pub audit_messages: u64 => audit_messages,
        /// Largest relative error of a message in audits, from post to arrival.
        pub audit_fct_error_max: f64 => audit_fct_error_max,
        /// Share of the messages in audits that are off by more than 1 %.
        pub audit_above_1pct: f64 => audit_above_1pct,
        /// Number of audited queue pairs whose rate was off by more than theta / (1 - theta) (Wormhole's Theorem 2).
        pub theorem2_violations: u64 => theorem2_violations,
        /// Number of audited queue pairs whose time was off by more than theta (Wormhole's Theorem 3).
        pub theorem3_violations: u64 => theorem3_violations,
        /// Seconds on partitions that are simulated, estimated.
        pub simulating_s: f64 => simulating_s,
        /// Seconds on partitions that are looked up or skipped, estimated.
        pub looking_up_s: f64 => looking_up_s,
        /// Seconds on checkpoints, which write and look up snapshots, estimated.
        pub checkpointing_s: f64 => checkpointing_s,
        /// Seconds on audits, estimated.
        pub auditing_s: f64 => auditing_s,
    }
}
