//! The CPU engine: the twin of the WGSL kernels. It runs one experiment at a time, and only rows that have something to do.

pub mod advance;
pub mod analytical;
pub mod cc;
pub mod engine;
pub mod key;
pub mod lists;
pub mod math;
pub mod nic;
pub mod parallel;
pub mod schedule;
pub mod switch;
pub mod task;
pub mod transport;

pub use super::systems::{run, step, step_end};
