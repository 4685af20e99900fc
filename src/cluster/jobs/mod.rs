//! Jobs of a cluster: read from a trace or drawn, and their work, checkpoints and speed.
//!
//! Layer: cluster. Knows no queue.

pub(super) mod generate;
pub(super) mod interval;
pub(super) mod job;
pub(super) mod progress;
pub(super) mod slowdown;
pub(super) mod trace;
