//! Limits the memory that the rows of a folder take while they are read.
//!
//! Layer: results.

use hyperfold_base::budget::{self, MemoryMeter};

/// Creates a meter that counts from now on. Its limit is half of the memory budget.
pub fn memory_meter() -> MemoryMeter {
    MemoryMeter::new(budget::total() / 2)
}
