//! Rows of `requests.csv`, and statistics of their times.
//!
//! Layer: results. Plain data, as in [`super::record`].

use super::record_macro::record;
use super::value::Ps;

record! {
    /// Mean and nearest-rank percentiles of times.
    #[derive(Copy, Eq)]
    pub struct TimeStats {
        /// Mean, ps.
        pub mean: Option<Ps>,
        /// Median, ps.
        pub p50: Option<Ps>,
        /// 99th percentile, ps.
        pub p99: Option<Ps>,
    }
}

record! {
    /// One row of `requests.csv`. Times count from the job's start.
    #[derive(Eq)]
    pub struct RequestRecord {
        pub job: Option<String> => job,
        pub request: u64 => request,
        pub arrival: Ps => arrival_ns,
        pub prompt_tokens: u64 => prompt_tokens,
        pub output_tokens: u64 => output_tokens,
        pub instance: u64 => instance,
        pub decode_instance: Option<u64> => decode_instance,
        pub queue: Option<Ps> => queue_ns,
        pub ttft: Option<Ps> => ttft_ns,
        pub kv_transfer: Option<Ps> => kv_transfer_ns,
        pub tpot: Option<Ps> => tpot_ns,
        pub e2e: Option<Ps> => e2e_ns,
        pub within_bounds: bool => within_bounds,
        pub preemptions: u64 => preemptions,
        pub cached_tokens: u64 => cached_tokens,
    }
}
