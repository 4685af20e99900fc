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
        /// Job that serves the request; empty without `[[job]]` tables.
        pub job: Option<String> => job,
        /// Number of the request, by arrival.
        pub request: u64 => request,
        /// Time of its arrival.
        pub arrival: Ps => arrival_ns,
        /// Tokens of its prompt.
        pub prompt_tokens: u64 => prompt_tokens,
        /// Tokens of its answer.
        pub output_tokens: u64 => output_tokens,
        /// Instance of the model at which it arrives.
        pub instance: u64 => instance,
        /// Disaggregated: instance that decodes it.
        pub decode_instance: Option<u64> => decode_instance,
        /// Time from its arrival to the begin of its first step.
        pub queue: Option<Ps> => queue_ns,
        /// Time from its arrival to the end of the step with its first token.
        pub ttft: Option<Ps> => ttft_ns,
        /// Disaggregated: time from its first token until its keys and values are on all ranks that decode.
        pub kv_transfer: Option<Ps> => kv_transfer_ns,
        /// Time from its first to its last token, over its tokens after the first. Empty for answers of one token.
        pub tpot: Option<Ps> => tpot_ns,
        /// Time from its arrival to its last token.
        pub e2e: Option<Ps> => e2e_ns,
        /// Whether it keeps `workload.ttft_bound_ms` and `workload.tpot_bound_ms`.
        pub within_bounds: bool => within_bounds,
        /// Number of times that its memory was taken from it, so that it was computed anew.
        pub preemptions: u64 => preemptions,
        /// Tokens of its prompt that were found in memory.
        pub cached_tokens: u64 => cached_tokens,
    }
}
