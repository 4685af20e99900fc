//! Schedule of the turns of partitions, idle NICs and gates.
//!
//! Layer: fold/run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hyperfold_columns::NicIdx;

/// Order of turns at one instant: idle NICs, whose rows may join; then simulated partitions; then looked-up ones, which may need what was just
/// simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TurnRank {
    Idle,
    Simulate,
    LookUp,
}

/// Queues of what happens next. All times are in ps.
#[derive(Clone, Default)]
pub(crate) struct TurnSchedule {
    /// (time, rank, NIC): an idle NIC, or the first NIC of a partition. An entry is void if it no longer agrees with the row.
    pub heap: BinaryHeap<Reverse<(u64, TurnRank, NicIdx)>>,
    /// (time, first NIC): samplings of simulated partitions. An entry is void if it no longer agrees with the partition.
    pub samplings: BinaryHeap<Reverse<(u64, NicIdx)>>,
    /// Gates whose signals have all arrived, by time and number.
    pub fired: BinaryHeap<Reverse<(u64, u32)>>,
    /// The time in `heap` of each idle NIC.
    pub idle_at: Vec<u64>,
}
