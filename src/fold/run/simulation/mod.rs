//! The turn of a partition that is simulated: a span of time, on one thread or several.
//!
//! Layer: fold. Calls the systems of the CPU engine.

pub(crate) mod simulate;
pub(crate) mod simulate_turn;
pub(crate) mod span_rows;
pub(crate) mod span_threads;
