//! Threads: how those of a run are shared, and how several step one experiment with the same bytes as one.
//!
//! Layer: engine. Nothing here changes a result.

pub mod barrier;
pub mod cores;
pub mod phases;
pub mod side_by_side;
pub mod switch_groups;
pub mod threads;
pub mod trial;
