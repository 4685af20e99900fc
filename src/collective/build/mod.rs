//! Schedules: which transfers an algorithm makes of a collective, byte for byte.
//!
//! Layer: collective. Knows where members are (server, place in it), not how they are linked. NVLS and in-network reduction make no transfers between members: they are `cost`'s.
//! What may be sent when follows from the data alone: a piece waits for every delivery that its bytes are made of ([`writer`]), so chunks pipeline by themselves.

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

/// Where a communicator's members are: (server, place in the server), numbered as one likes; members of one place in different servers are on one rail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub members: Vec<(u32, u32)>,
}

impl Shape {
    /// `n` members, each in a server of its own.
    pub fn flat(n: u32) -> Shape {
        Shape { members: (0..n).map(|i| (i, 0)).collect() }
    }

    /// `servers` servers of `each` members, numbered server by server.
    pub fn servers(servers: u32, each: u32) -> Shape {
        Shape { members: (0..servers * each).map(|i| (i / each, i % each)).collect() }
    }

    /// Members.
    pub fn n(&self) -> u32 {
        self.members.len() as u32
    }

    /// Members of each server, servers in order of their first member, members by place.
    fn by_server(&self) -> Vec<Vec<u32>> {
        let mut order = std::collections::BTreeMap::new();
        let mut servers: Vec<Vec<u32>> = Vec::new();
        for (i, (server, _)) in self.members.iter().enumerate() {
            let at = *order.entry(*server).or_insert_with(|| {
                servers.push(Vec::new());
                servers.len() - 1
            });
            servers[at].push(i as u32);
        }
        for members in &mut servers {
            members.sort_by_key(|&m| self.members[m as usize].1);
        }
        servers
    }
}

/// How to carry a collective out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleOptions<'a> {
    /// Parallel copies of the pattern, each with its share of the bytes and its own connections.
    pub channels: u16,
    /// Payload of a message at most; 0: not cut.
    pub chunk_bytes: u64,
    /// Member that a broadcast comes from, a reduction goes to.
    pub root: u32,
    /// All-to-all: weights of the members as destinations; what a member sends is split in proportion.
    pub shares: Option<&'a [u64]>,
    /// Each pair of GPUs of one server has a link of its own.
    pub own_links: bool,
}

impl Default for ScheduleOptions<'_> {
    fn default() -> Self {
        ScheduleOptions { channels: 1, chunk_bytes: 0, root: 0, shares: None, own_links: false }
    }
}

/// Why there is no schedule.
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
        "{bytes} bytes among {n} GPUs in pieces of {chunk_bytes} become more than {MOST_TRANSFERS} transfers, the most that one collective has room for; fewer GPUs, a larger workload.chunk_kib or fewer workload.channels make them fewer"
    )]
    TooMany { bytes: u64, n: u32, chunk_bytes: u64 },
    #[error("a hierarchical {op:?} needs servers with the same places: server of member {member} differs")]
    Uneven { op: CollectiveOp, member: u32 },
}

/// Most transfers of one schedule: 2^24. Our choice: what a schedule and its tasks take stays within a few GB.
pub(super) const MOST_TRANSFERS: usize = 1 << 24;

/// Algorithms that `op` has schedules for.
pub const fn known(op: CollectiveOp) -> &'static str {
    match op {
        CollectiveOp::AllReduce | CollectiveOp::Barrier => "ring, tree, halving-doubling, direct, hierarchical",
        CollectiveOp::AllGather | CollectiveOp::ReduceScatter => "ring, halving-doubling, direct, hierarchical",
        CollectiveOp::AllToAll => "direct, hierarchical",
        CollectiveOp::Broadcast | CollectiveOp::Reduce => "ring (a chain), tree, direct, hierarchical",
    }
}

/// The transfers of `op` over `bytes` (as nccl-tests counts them) by `algorithm`. Sums over transfers are exact for any size; nobody sends to itself; empty pieces are left out.
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
    // A barrier is news of everybody's arrival: an all-reduce of one byte, or the exchange of tokens where everybody speaks for himself.
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
