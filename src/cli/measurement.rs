//! Name of a benchmark, and the values that it measures.
//!
//! Layer: cli.

use serde::Serialize;

/// Name and description of a benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchInfo {
    pub name: String,
    pub about: String,
}

/// One measurement of a benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    pub name: String,
    pub engine: String,
    pub hosts: u64,
    pub experiments: u64,
    pub packet_hops: u64,
    pub seconds: f64,
    pub packet_hops_per_s: f64,
    pub peak_bytes: u64,
}
