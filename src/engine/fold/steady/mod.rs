//! Steady partitions: how they are detected, and how their queue pairs go on while they are not simulated.
//!
//! Layer: above `memo`, below `run`.

pub mod audit;
pub mod criterion;
pub mod detector;
pub mod sampling;
pub mod skip;
pub mod skip_plan;
