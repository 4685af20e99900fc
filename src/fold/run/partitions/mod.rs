//! Partitions of a folded run: how they join, merge, split, couple a switch, and retire.
//!
//! Layer: fold.

pub(crate) mod counters;
pub(crate) mod couple;
pub(crate) mod join;
pub(crate) mod merge;
pub(crate) mod partition;
pub(crate) mod retire;
pub(crate) mod split;
