//! A folded run: whose turn it is, and what happens in it.
//!
//! Layer: the highest of folding.

pub mod audit;
pub mod checkpoint;
pub mod dispatch;
pub mod engine;
pub mod join;
pub mod lookup;
pub mod partition;
pub mod recording;
pub mod restart;
pub mod retire;
pub mod simulate;
pub mod split;
pub mod stats;
pub mod turns;
