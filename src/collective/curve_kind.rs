//! What decides which curve of measured runs corrects a cost: the kind of operation, algorithm and machine.
//!
//! Layer: collective.

use super::system::{Arch, Placement};
use super::{Algorithm, Op};

/// What shares a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveKind {
    /// All-reduce; all-gather and what is like it; all-to-all.
    pub(super) group: u8,
    pub(super) algorithm: Algorithm,
    pub(super) across: bool,
    pub(super) large_domain: bool,
    pub(super) arch: Arch,
}

impl CurveKind {
    pub fn new(op: Op, algorithm: Algorithm, at: &Placement, arch: Arch) -> CurveKind {
        let group = match op {
            Op::AllReduce | Op::Barrier => 0,
            Op::AllToAll => 2,
            _ => 1,
        };
        // All-to-all loads the same links whether by rails or not.
        let algorithm = if op == Op::AllToAll { Algorithm::Direct } else { algorithm };
        CurveKind {
            group,
            algorithm,
            across: at.nodes() > 1,
            large_domain: at.ranks_per_node >= super::physics::LARGE_DOMAIN,
            arch,
        }
    }
}
