//! Decides which curve of measured runs corrects a cost: the kind of operation, algorithm and machine.
//!
//! Layer: collective.

use super::system::{Arch, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// Costs with equal kinds share a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CurveKind {
    /// 0: all-reduce; 1: all-gather and similar; 2: all-to-all.
    pub(super) group: u8,
    pub(super) algorithm: Algorithm,
    /// Whether the communicator spans several servers.
    pub(super) across: bool,
    /// Whether the NVLink domain is large.
    pub(super) large_domain: bool,
    pub(super) arch: Arch,
}

impl CurveKind {
    pub(super) fn new(op: CollectiveOp, algorithm: Algorithm, placement: &MemberPlacement, arch: Arch) -> CurveKind {
        let group = match op {
            CollectiveOp::AllReduce | CollectiveOp::Barrier => 0,
            CollectiveOp::AllToAll => 2,
            _ => 1,
        };
        // All-to-all loads the same links with or without rails.
        let algorithm = if op == CollectiveOp::AllToAll { Algorithm::Direct } else { algorithm };
        CurveKind {
            group,
            algorithm,
            across: placement.nodes() > 1,
            large_domain: placement.ranks_per_node >= super::physics::LARGE_DOMAIN,
            arch,
        }
    }
}
