//! Reasons why partitions are simulated, if they are asked for.
//!
//! Layer: fold.

pub(crate) mod explain;
pub(crate) mod explanation;
