//! What decides which curve of measured runs corrects a cost: the kind of operation, algorithm and machine.
//!
//! Layer: collective.

use super::system::{Arch, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// What shares a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CurveKind {
    /// All-reduce; all-gather and what is like it; all-to-all.
    pub(super) group: u8,
    pub(super) algorithm: Algorithm,
    pub(super) across: bool,
    pub(super) large_domain: bool,
    pub(super) arch: Arch,
}

impl CurveKind {
    pub(super) fn new(op: CollectiveOp, algorithm: Algorithm, at: &MemberPlacement, arch: Arch) -> CurveKind {
        let group = match op {
            CollectiveOp::AllReduce | CollectiveOp::Barrier => 0,
            CollectiveOp::AllToAll => 2,
            _ => 1,
        };
        // All-to-all loads the same links whether by rails or not.
        let algorithm = if op == CollectiveOp::AllToAll { Algorithm::Direct } else { algorithm };
        CurveKind {
            group,
            algorithm,
            across: at.nodes() > 1,
            large_domain: at.ranks_per_node >= super::physics::LARGE_DOMAIN,
            arch,
        }
    }
}
