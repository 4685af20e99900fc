//! Rows of `series_links.csv` and `series_flows.csv`: samples over time.
//!
//! Layer: results. Plain data, as in [`super::record`].

use std::sync::Arc;

use super::record_macro::record;
use super::value::{Micro, Ps};

record! {
    /// One row of `series_links.csv`: one direction of one link at a sample time. Counts are since the sample time before.
    #[derive(Eq)]
    pub struct LinkSampleRecord {
        /// The sample time.
        pub time: Ps => time_ns,
        /// Time since the sample time before, the same in all rows of an experiment.
        pub interval: Ps => interval_ns,
        /// Name of the direction, as in `links.csv`.
        pub link: Arc<str> => link,
        /// Bytes in the queue before it, at that time.
        pub queue_bytes: u64 => queue_bytes,
        /// Bytes sent since the sample time before, pause frames included. A packet counts when it begins.
        pub tx_bytes: u64 => tx_bytes [
            /// Rate of `tx_bytes` in Gb/s. It may be above that of the link by part of a packet.
            throughput_gbps: Micro = |sample| gbps(sample.tx_bytes, sample.interval),
        ],
        /// Number of marks since the sample time before.
        pub ecn_marks: u64 => ecn_marks,
        /// Number of pause frames that its sender received since the sample time before.
        pub pfc_pauses: u64 => pfc_pauses,
        /// Whether its sender is paused at that time.
        pub paused: bool => paused,
        /// Number of packets dropped since the sample time before.
        pub drops: u64 => drops,
        /// Time for which its sender was paused since the row before of this link. Empty in folders of earlier versions.
        pub paused_time: Option<Ps> => pfc_paused_ns,
    }
}

record! {
    /// One row of `series_flows.csv`: a flow, or a queue pair of a job, at a sample time.
    #[derive(Eq)]
    pub struct FlowSampleRecord {
        /// The sample time.
        pub time: Ps => time_ns,
        /// Time since the sample time before, the same in all rows of an experiment.
        pub interval: Ps => interval_ns,
        /// Number of the flow; of collectives and programs the queue pair, as in `rtt.csv`.
        pub flow_id: u32 => flow_id,
        /// Name of the NIC that sends.
        pub source: Arc<str> => source,
        /// Name of the NIC that receives.
        pub target: Arc<str> => target,
        /// Rate in force after the last event of the flow, in Gb/s.
        pub rate_gbps: Micro => rate_gbps,
        /// Bytes of the window in force after the last event of the flow; empty where there is none.
        pub window_bytes: Option<u64> => window_bytes,
        /// Bytes that are sent and not acknowledged.
        pub outstanding_bytes: u64 => outstanding_bytes,
        /// Bytes acknowledged since the sample time before.
        pub acked_bytes: u64 => acked_bytes [
            /// Rate of `acked_bytes` in Gb/s.
            goodput_gbps: Micro = |sample| gbps(sample.acked_bytes, sample.interval),
        ],
    }
}

/// Rate of so many bytes in a time, in Gb/s.
fn gbps(bytes: u64, time: Ps) -> Micro {
    // A bit a picosecond is 1,000 Gb/s.
    Micro::ratio(u128::from(bytes) * 8 * 1000, time.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_and_a_half_kilobytes_a_microsecond_are_a_hundred_gigabits_a_second() {
        assert_eq!(gbps(12_500, Ps(1_000_000)), Micro(100_000_000));
    }
}
