//! The rows of a partition: which there are, how they are compared, written down and read back, and what they hold.
//!
//! Layer: the lowest of folding. Knows columns and the CPU systems; neither the memo nor what steady is.

pub mod advanced_rows;
pub mod buffer_guard;
pub mod bytes;
pub mod canonical_key;
pub mod cc_state;
pub mod index;
pub mod ingress_peaks;
pub mod message_stream;
pub mod partition_rows;
pub mod snapshot;
