//! Snapshots: the whole state of a partition at one instant, as bytes.
//!
//! Layer: fold. One pass writes or reads, so that both agree.

pub(crate) mod snapshot;
mod snapshot_members;
mod snapshot_packets;
pub(crate) mod snapshot_walk;
