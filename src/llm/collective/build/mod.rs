//! Builds schedules: the transfers that an algorithm makes of a collective, byte for byte.
//!
//! Layer: collective. It knows where members are (server, place in it), not how they are linked. NVLS and in-network reduction make no transfers between
//! members; `cost` handles them. When a transfer may be sent follows from the data alone: a piece waits for every delivery that its bytes depend on
//! ([`writer`]), so chunks pipeline without further rules.

mod direct;
mod halving;
mod hierarchical;
mod ring;
mod tree;
mod writer;

#[cfg(test)]
mod proof;
#[cfg(test)]
mod tests;

use super::{Algorithm, CollectiveOp, Schedule};
pub(super) use ring::order as ring_order;
use writer::{How, Range, ScheduleWriter, span};

/// Places of a communicator's members: (server, place in the server), in any numbering. Members with the same place in different servers are on one rail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Server and place of each member, in the order of members.
    pub members: Vec<(u32, u32)>,
}

impl Shape {
    /// `n` members, each in a server of its own.
    pub fn flat(n: u32) -> Shape {
        Shape { members: (0..n).map(|i| (i, 0)).collect() }
    }

    /// `servers` servers of `per_server` members, numbered server by server.
    pub fn servers(servers: u32, per_server: u32) -> Shape {
        Shape { members: (0..servers * per_server).map(|i| (i / per_server, i % per_server)).collect() }
    }

    /// Number of members.
    pub fn n(&self) -> u32 {
        self.members.len() as u32
    }

    /// Members of each server. Servers are in order of their first member, members in order of their places.
    fn by_server(&self) -> Vec<Vec<u32>> {
        let mut order = std::collections::BTreeMap::new();
        let mut servers: Vec<Vec<u32>> = Vec::new();
        for (i, (server, _)) in self.members.iter().enumerate() {
            let server_idx = *order.entry(*server).or_insert_with(|| {
                servers.push(Vec::new());
                servers.len() - 1
            });
            servers[server_idx].push(i as u32);
        }
        for members in &mut servers {
            members.sort_by_key(|&m| self.members[m as usize].1);
        }
        servers
    }
}

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
}

impl Default for ScheduleOptions<'_> {
    fn default() -> Self {
        ScheduleOptions { channels: 1, chunk_bytes: 0, root: 0, shares: None, own_links: false }
    }
}

/// Why no schedule can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The algorithm is still to be chosen.
    #[error("algorithm auto has to be chosen (by collective::choose) before a schedule is made of it")]
    Unchosen,
    /// The algorithm has no transfers.
    #[error(
        "{algorithm:?} reduces in switches and makes no transfers between members: it is analytic (collective::cost_ps)"
    )]
    Analytic {
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The operation cannot be carried out so.
    #[error("{op:?} by {algorithm:?} does not exist; {op:?} knows {known}")]
    NoSuch {
        /// The operation.
        op: CollectiveOp,
        /// The algorithm.
        algorithm: Algorithm,
        /// Algorithms of this operation, in words.
        known: &'static str,
    },
    /// The root is no member.
    #[error("root {root} of a communicator of {n} members; it must be below {n}")]
    Root {
        /// The root.
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
        "{bytes} bytes among {n} GPUs in pieces of {chunk_bytes} become more than {MOST_TRANSFERS} transfers, the most that one collective has room for; fewer GPUs, a larger workload.chunk_kib or fewer workload.channels make them fewer"
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
        /// The operation.
        op: CollectiveOp,
        /// The first member whose server differs.
        member: u32,
    },
}

/// The most transfers of one schedule: 2^24. Our choice: a schedule and its tasks then stay within a few GB.
pub(super) const MOST_TRANSFERS: usize = 1 << 24;

/// Names of the algorithms that have schedules for `op`, for messages.
pub const fn known(op: CollectiveOp) -> &'static str {
    match op {
        CollectiveOp::AllReduce | CollectiveOp::Barrier => "ring, tree, halving-doubling, direct, hierarchical",
        CollectiveOp::AllGather | CollectiveOp::ReduceScatter => "ring, halving-doubling, direct, hierarchical",
        CollectiveOp::AllToAll => "direct, hierarchical",
        CollectiveOp::Broadcast | CollectiveOp::Reduce => "ring (a chain), tree, direct, hierarchical",
    }
}

/// The transfers of `op` over `bytes` (counted as in nccl-tests) with `algorithm`. Bytes sum exactly for any size. No member sends to itself. Empty pieces are
/// left out.
pub fn build(
    op: CollectiveOp,
    algorithm: Algorithm,
    bytes: u64,
    shape: &Shape,
    options: &ScheduleOptions,
) -> Result<Schedule, ScheduleError> {
    let w = write(op, algorithm, bytes, shape, options)?;
    if w.is_full() {
        return Err(ScheduleError::TooMany { bytes, n: w.n(), chunk_bytes: options.chunk_bytes });
    }
    Ok(w.finish())
}

fn write(
    op: CollectiveOp,
    algorithm: Algorithm,
    bytes: u64,
    shape: &Shape,
    options: &ScheduleOptions,
) -> Result<ScheduleWriter, ScheduleError> {
    let n = shape.n();
    match algorithm {
        Algorithm::Auto => return Err(ScheduleError::Unchosen),
        Algorithm::Nvls | Algorithm::InNetwork => return Err(ScheduleError::Analytic { algorithm }),
        _ => {}
    }
    if options.root >= n.max(1) {
        return Err(ScheduleError::Root { root: options.root, n });
    }
    let mut w = ScheduleWriter::new(n, options.chunk_bytes);
    if n <= 1 {
        return Ok(w);
    }
    // A barrier is an all-reduce of one byte, or an exchange of tokens if each member sends its own.
    let (op, bytes) = match (op, algorithm) {
        (CollectiveOp::Barrier, Algorithm::HalvingDoubling) => {
            halving::barrier(&mut w);
            return Ok(w);
        }
        (CollectiveOp::Barrier, Algorithm::Direct) => (CollectiveOp::AllGather, n as u64),
        (CollectiveOp::Barrier, _) => (CollectiveOp::AllReduce, 1),
        _ => (op, bytes),
    };
    let channels = options.channels.max(1);
    match (op, algorithm) {
        (CollectiveOp::AllToAll, Algorithm::Direct | Algorithm::Hierarchical) => {
            let shares = direct::Shares::new(bytes, n, options.shares)?;
            match algorithm {
                Algorithm::Direct => direct::all_to_all(&mut w, &shares, channels),
                _ => hierarchical::all_to_all(&mut w, &shares, shape, channels),
            }
        }
        (
            CollectiveOp::AllReduce
            | CollectiveOp::AllGather
            | CollectiveOp::ReduceScatter
            | CollectiveOp::Broadcast
            | CollectiveOp::Reduce,
            Algorithm::Ring,
        ) => ring::write(&mut w, op, bytes, shape, options),
        (CollectiveOp::AllReduce | CollectiveOp::Broadcast | CollectiveOp::Reduce, Algorithm::Tree) => {
            tree::write(&mut w, op, bytes, shape, channels, options.root)
        }
        (
            CollectiveOp::AllReduce | CollectiveOp::AllGather | CollectiveOp::ReduceScatter,
            Algorithm::HalvingDoubling,
        ) => halving::write(&mut w, op, bytes, channels),
        (
            CollectiveOp::AllReduce
            | CollectiveOp::AllGather
            | CollectiveOp::ReduceScatter
            | CollectiveOp::Broadcast
            | CollectiveOp::Reduce,
            Algorithm::Direct,
        ) => direct::write(&mut w, op, bytes, channels, options.root),
        (
            CollectiveOp::AllReduce
            | CollectiveOp::AllGather
            | CollectiveOp::ReduceScatter
            | CollectiveOp::Broadcast
            | CollectiveOp::Reduce,
            Algorithm::Hierarchical,
        ) => hierarchical::write(&mut w, op, bytes, shape, channels, options.root)?,
        _ => return Err(ScheduleError::NoSuch { op, algorithm, known: known(op) }),
    }
    Ok(w)
}
