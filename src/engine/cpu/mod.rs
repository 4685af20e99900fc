//! The CPU engine: the twin of the WGSL kernels. It runs one experiment at a time, and only rows that have something to do.

pub mod advance;
pub mod analytical;
pub mod barrier;
pub mod cc;
pub mod classify;
pub mod cores;
pub mod egress;
pub mod engine;
pub mod forward;
pub mod forward_joint;
pub mod key;
pub mod lists;
pub mod math;
pub mod mmu;
pub mod nic;
pub mod phases;
pub mod plan;
pub mod queue_pair;
pub mod rate;
pub mod receiver;
pub mod schedule;
pub mod sender;
pub mod side_by_side;
pub mod switch_groups;
pub mod switches;
pub mod task;
pub mod threads;
pub mod trial;

pub use super::systems::{run, step, step_end};
