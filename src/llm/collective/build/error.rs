//! Reasons why no schedule can be built, and the limit of its size.
//!
//! Layer: collective. Builds nothing.

use super::super::{Algorithm, CollectiveOp};

/// Maximum number of transfers of one schedule: 2^24. Our choice: a schedule and its tasks then stay within a few GB.
pub(super) const MAX_TRANSFERS: usize = 1 << 24;

/// Why no schedule can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("algorithm auto has to be chosen (by collective::choose) before a schedule is made of it")]
    Unchosen,
    #[error(
        "{algorithm:?} reduces in switches and makes no transfers between members: it is analytic (collective::cost_ps)"
    )]
    Analytic { algorithm: Algorithm },
    #[error("{op:?} by {algorithm:?} does not exist; {op:?} knows {known}")]
    NoSuch { op: CollectiveOp, algorithm: Algorithm, known: &'static str },
    #[error("root {root} of a communicator of {n} members; it must be below {n}")]
    Root { root: u32, n: u32 },
    #[error(
        "{given} shares for {n} members of an all-to-all, their sum {sum}; one weight a member is needed, not all of them 0"
    )]
    Shares { given: usize, n: u32, sum: u128 },
    #[error(
        "{bytes} bytes among {n} GPUs in pieces of {chunk_bytes} become more than {MAX_TRANSFERS} transfers, the most that one collective has room for; fewer GPUs, a larger workload.chunk_kib or fewer workload.channels make them fewer"
    )]
    TooMany { bytes: u64, n: u32, chunk_bytes: u64 },
    #[error("a hierarchical {op:?} needs servers with the same places: server of member {member} differs")]
    Uneven { op: CollectiveOp, member: u32 },
}
