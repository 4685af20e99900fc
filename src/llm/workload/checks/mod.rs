//! Proofs that a workload's ranks fit together and that none waits for ever.
//!
//! Layer: workload. Changes nothing.

pub mod check;
pub mod check_error;
mod progress;
