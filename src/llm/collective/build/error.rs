//! Reasons why no schedule can be built, and the limit of its size.
//!
//! Layer: collective. Builds nothing.

use super::super::{Algorithm, CollectiveOp};

/// Maximum number of transfers of one schedule: 2^24. Our choice: a schedule and its tasks then stay within a few GB.
pub(super) const MAX_TRANSFERS: usize = 1 << 24;

/// Why no schedule can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The algorithm is still to be chosen.
    #[error("algorithm auto has to be chosen (by collective::choose) before a schedule is made of it")]
    Unchosen,
    /// The algorithm needs switches that reduce, and none is named.
    #[error(
        "{algorithm:?} reduces in switches, and none is named (ScheduleOptions::switches): it is analytic (collective::cost_ps)"
    )]
    Analytic {
        /// Algorithm that reduces in switches.
        algorithm: Algorithm,
    },
    /// The operation cannot be carried out so.
    #[error("{} by {} does not exist; it is carried out by {known}", .op.name(), .algorithm.name())]
    NoSuch {
        /// Operation that was asked for.
        op: CollectiveOp,
        /// Algorithm that the operation does not have.
        algorithm: Algorithm,
        /// Algorithms of this operation, in words.
        known: &'static str,
    },
    /// The root is no member.
    #[error("root {root} of a communicator of {n} members; it must be below {n}")]
    Root {
        /// Member that was named as root.
        root: u32,
        /// Number of members.
        n: u32,
    },
    /// The weights of an all-to-all are wrong.
    #[error(
        "{given} shares for {n} members of an all-to-all, their sum {sum}; one weight a member is needed, not all of them 0"
    )]
    Shares {
        /// Number of weights.
        given: usize,
        /// Number of members.
        n: u32,
        /// Sum of the weights.
        sum: u128,
    },
    /// The schedule would have too many transfers.
    #[error(
        "{bytes} bytes among {n} GPUs in pieces of {chunk_bytes} become more than {MAX_TRANSFERS} transfers, the most that one collective has room for; fewer GPUs, a larger workload.chunk_kib or fewer workload.channels make them fewer"
    )]
    TooMany {
        /// Bytes of the operation.
        bytes: u64,
        /// Number of members.
        n: u32,
        /// Bytes of a piece.
        chunk_bytes: u64,
    },
    /// Members of one server have other places than those of another.
    #[error("a hierarchical {op:?} needs servers with the same places: server of member {member} differs")]
    Uneven {
        /// Operation that was to be hierarchical.
        op: CollectiveOp,
        /// The first member whose server differs.
        member: u32,
    },
}
