//! Queue pairs: what their sending and receiving sides do, and their rates.
//!
//! Layer: engine. System `nic` calls these; congestion controls stand in `cpu/cc`.

pub mod answers;
pub mod any_order;
pub mod credit;
pub mod mixed_entropies;
pub mod queue_pair;
pub mod rate;
pub mod receiver;
pub mod selective;
pub mod sender;
pub mod spraying;
pub mod stream;
pub mod uec;
