//! Flows that come from no program: traffic patterns, flow files, sizes from a distribution, storage.
//!
//! Layer: workload. Knows ranks as numbers only.

pub(super) mod cdf;
pub(super) mod decimal;
pub mod flow;
pub(super) mod flow_file;
pub(super) mod storage;
pub(super) mod traffic;
