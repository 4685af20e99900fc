//! The rows of a partition: which there are, how they are compared, written and read back, and how much their buffers hold.
//!
//! Layer: the lowest of folding. Knows columns and the CPU systems, but neither the memo nor steadiness.

pub(super) mod advanced_rows;
pub(super) mod buffer_guard;
pub(super) mod bytes;
pub(super) mod canonical_key;
pub(super) mod cc_state;
pub(super) mod coupling;
pub(super) mod index;
pub(super) mod ingress_peaks;
pub(super) mod key_parts;
pub(super) mod message_stream;
pub(super) mod part_hashes;
pub(super) mod partition_rows;
pub(super) mod rows_by_switch;
pub(super) mod snapshots;
