//! Skips of steady partitions: when samples are taken, when a skip is worth it, and what it reports.
//!
//! Layer: fold. Whether a partition is steady is decided in `steady`.

pub(crate) mod detection;
pub(crate) mod gain;
pub(crate) mod skip;
