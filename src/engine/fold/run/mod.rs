//! A folded run: whose turn it is, and what happens in it.
//!
//! Layer: the highest of folding.

pub mod audit;
pub mod checkpoint;
pub mod claim;
pub mod counters;
pub mod detection;
pub mod dispatch;
pub mod engine;
pub mod fold_run;
pub mod join;
pub mod lookup;
pub mod lookup_turn;
pub mod merge;
pub mod partition;
pub mod progress;
pub mod recording;
pub mod restart;
pub mod restore;
pub mod resume;
pub mod retire;
pub mod schedule;
pub mod simulate;
pub mod simulate_turn;
pub mod skip;
pub mod split;
pub mod stats;
pub mod stop;
pub mod turn_order;
pub mod turns;
