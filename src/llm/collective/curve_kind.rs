//! Decides which curve of measured runs corrects a cost: the server, and the kind of operation on it.
//!
//! Layer: collective.

use super::CollectiveOp;
use super::system::{CollectiveSystem, MemberPlacement};

/// Costs with equal kinds share a curve. The algorithm is no part of it: what slows one down on a machine slows the others too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CurveKind {
    /// The server's place among its presets. A run says nothing of other servers.
    server_idx: u16,
    /// 0: all-reduce; 1: all-gather and similar; 2: all-to-all.
    group: u8,
    /// Whether the communicator spans several servers.
    across: bool,
    /// Whether the NVLink domain is large.
    large_domain: bool,
}

impl CurveKind {
    /// The kind of an operation. `None` for a machine that is no preset, and for exchanges with experts without NCCL, of which there are no runs.
    pub(super) fn new(op: CollectiveOp, placement: &MemberPlacement, system: &CollectiveSystem) -> Option<CurveKind> {
        let group = match op {
            CollectiveOp::AllReduce | CollectiveOp::Barrier => 0,
            CollectiveOp::AllToAll => 2,
            CollectiveOp::Experts(_) => return None,
            _ => 1,
        };
        Some(CurveKind {
            server_idx: system.server_idx?,
            group,
            across: placement.nodes() > 1,
            large_domain: placement.ranks_per_node >= super::link_times::LARGE_DOMAIN,
        })
    }
}
