//! Which trace belongs to which rank.
//!
//! Layer: workload.

use super::events::KinetoTrace;
use super::rank_program::RankProgram;
use crate::workload::import::torch::files::{OfRank, rank_in_name};

/// The rank of a trace: what it says itself, else what its file's name says.
pub(super) fn rank_of(path: &str, trace: &KinetoTrace) -> Option<u32> {
    trace.rank.or_else(|| rank_in_name(path))
}

impl OfRank for RankProgram {
    const WHAT: &'static str = "trace";
    const NAMES_RANK: &'static str = "distributedInfo.rank, or a name that ends in the rank,";

    fn path(&self) -> &str {
        &self.path
    }

    fn rank(&self) -> Option<u32> {
        self.rank
    }

    fn world_size(&self) -> Option<u32> {
        self.world_size
    }
}
