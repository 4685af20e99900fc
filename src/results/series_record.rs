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
        pub time: Ps => time_ns,
        /// Time from one sample time to the next.
        pub interval: Ps => interval_ns,
        /// Name of the link, as in `links.csv`.
        pub link: Arc<str> => link,
        /// Bytes in the queue before the link.
        pub queue_bytes: u64 => queue_bytes,
        /// Wire bytes put on the link, pause frames included.
        pub tx_bytes: u64 => tx_bytes [throughput_gbps: Micro = |sample| gbps(sample.tx_bytes, sample.interval)],
        pub ecn_marks: u64 => ecn_marks,
        /// Pause frames that arrived.
        pub pfc_pauses: u64 => pfc_pauses,
        /// Whether the receiver has paused the sender.
        pub paused: bool => paused,
        pub drops: u64 => drops,
        /// Time for which the sender was paused since the row before of this link; `None` in rows of earlier builds.
        pub paused_time: Option<Ps> => pfc_paused_ns,
    }
}

record! {
    /// One row of `series_flows.csv`: a flow, or a queue pair of a job, at a sample time.
    #[derive(Eq)]
    pub struct FlowSampleRecord {
        pub time: Ps => time_ns,
        /// Time from one sample time to the next.
        pub interval: Ps => interval_ns,
        /// Number of the flow, as in `rtt.csv`.
        pub flow_id: u32 => flow_id,
        /// Name of the NIC that sends.
        pub source: Arc<str> => source,
        /// Name of the NIC that receives.
        pub target: Arc<str> => target,
        /// Rate in force, in Gb/s.
        pub rate_gbps: Micro => rate_gbps,
        /// Window in force; `None`: there is none.
        pub window_bytes: Option<u64> => window_bytes,
        /// Bytes sent and not acknowledged.
        pub outstanding_bytes: u64 => outstanding_bytes,
        /// Bytes acknowledged since the sample time before.
        pub acked_bytes: u64 => acked_bytes [goodput_gbps: Micro = |sample| gbps(sample.acked_bytes, sample.interval)],
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
