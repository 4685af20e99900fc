//! Skips of steady partitions: when samples are taken, when a skip is worth it, and what it reports.
//!
//! Layer: fold. Whether a partition is steady is decided in `steady`.

pub(crate) mod decision;
pub(crate) mod gain;
pub(crate) mod sampling_turns;
pub(crate) mod series_samples;
pub(crate) mod skip;
