//! What the rows of a folder may take in memory while they are read.
//!
//! Layer: results.

use crate::budget::{self, MemoryMeter};

/// Counts from now on: half of what may be used.
pub(crate) fn memory_meter() -> MemoryMeter {
    MemoryMeter::new(budget::total() / 2)
}
