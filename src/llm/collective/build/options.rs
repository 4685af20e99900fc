//! Options of a schedule: channels, pieces, root and weights.
//!
//! Layer: collective. Builds nothing.

use super::reducing::ReducingSwitches;

/// Options of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleOptions<'a> {
    /// Number of parallel copies of the pattern, each with its share of the bytes and its own connections.
    pub channels: u16,
    /// Maximum payload of a message in bytes; 0 if messages are not cut.
    pub chunk_bytes: u64,
    /// Source of a broadcast, or destination of a reduction.
    pub root: u32,
    /// Weights of the members as destinations of an all-to-all. What a member sends is split in proportion.
    pub shares: Option<&'a [u64]>,
    /// Whether each pair of GPUs of a server has a link of its own.
    pub own_links: bool,
    /// Whether rings cross from rail to rail between servers, as with NCCL_CROSS_NIC = 1.
    pub cross_nic: bool,
    /// Switches that reduce; `None`: none do.
    pub switches: Option<&'a ReducingSwitches>,
}

impl Default for ScheduleOptions<'_> {
    fn default() -> Self {
        ScheduleOptions {
            channels: 1,
            chunk_bytes: 0,
            root: 0,
            shares: None,
            own_links: false,
            cross_nic: false,
            switches: None,
        }
    }
}
