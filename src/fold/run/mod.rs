//! A folded run: which partition takes the next turn, and what happens in a turn.
//!
//! Layer: the highest of folding.

pub(super) mod audits;
pub(super) mod dispatch;
pub(super) mod engine;
pub(super) mod explanations;
pub(super) mod fold_run;
pub(super) mod lookups;
pub(super) mod partitions;
pub(super) mod schedule;
pub(super) mod simulation;
pub(super) mod skips;
pub(super) mod stats;
pub(super) mod stop;
pub(super) mod turn_order;
pub(super) mod turns;
