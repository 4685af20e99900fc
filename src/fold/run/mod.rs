//! A folded run: which partition takes the next turn, and what happens in a turn.
//!
//! Layer: the highest of folding.

pub(super) mod audit;
pub(super) mod checkpoint;
pub(super) mod claim;
pub(super) mod compare_copies;
pub(super) mod copies;
pub(super) mod copy_on;
pub(super) mod counters;
pub(super) mod couple;
pub(super) mod detection;
pub(super) mod dispatch;
pub(super) mod engine;
pub(super) mod explain;
pub(super) mod explanation;
pub(super) mod fold_run;
pub(super) mod gain;
pub(super) mod join;
pub(super) mod lookup;
pub(super) mod lookup_turn;
pub(super) mod merge;
pub(super) mod partition;
pub(super) mod progress;
pub(super) mod recording;
pub(super) mod restart;
pub(super) mod restore;
pub(super) mod resume;
pub(super) mod retire;
pub(super) mod schedule;
pub(super) mod simulate;
pub(super) mod simulate_turn;
pub(super) mod skip;
pub(super) mod split;
pub(super) mod stats;
pub(super) mod stop;
pub(super) mod turn_order;
pub(super) mod turns;
pub(super) mod window_rows;
pub(super) mod window_threads;
