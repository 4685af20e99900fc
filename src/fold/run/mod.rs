//! A folded run: which partition takes the next turn, and what happens in a turn.
//!
//! Layer: the highest of folding.
//!
//! | file or folder | holds |
//! |---|---|
//! | `engine`, `dispatch`, `fold_run` | experiments on threads; the state of one run |
//! | `turns`, `turn_order`, `schedule` | the main loop: whose turn it is |
//! | `simulation` | the turn of a partition that is simulated |
//! | `lookups` | the turn of a partition that is looked up; recording and restoring |
//! | `partitions` | how partitions join, merge, split and retire |
//! | `hand_over` | an experiment that finds little goes on as if it had never been folded |
//! | `skips`, `audits` | skips of steady partitions, and the copies that measure their error |
//! | `explanations`, `stats`, `stop` | why partitions were simulated, where time goes, why a run stops |

pub(super) mod audits;
pub(super) mod dispatch;
pub(super) mod engine;
pub(super) mod explanations;
pub(super) mod fold_run;
pub(super) mod hand_over;
pub(super) mod lookups;
pub(super) mod partitions;
pub(super) mod simulation;
pub(super) mod skips;
pub(super) mod stats;
pub(super) mod stop;
pub(super) mod turn_order;
pub(super) mod turn_schedule;
pub(super) mod turns;
