//! Builds schedules: the transfers that an algorithm makes of a collective, byte for byte.
//!
//! Layer: collective. It knows where members are (server, place in it), not how they are linked. NVLS and reduction in the network have schedules where
//! the caller names the switches that reduce, else a cost alone. When a transfer may be sent follows from the data alone: a piece waits for every delivery that its bytes depend on
//! ([`writer`]), so chunks pipeline without further rules.

mod direct;
mod error;
mod experts;
mod halving;
mod hierarchical;
mod options;
mod pat;
mod reducing;
mod ring;
mod shape;
mod switches;
mod tree;
mod writer;

#[cfg(test)]
mod proof;
#[cfg(test)]
mod tests;

use super::{Algorithm, CollectiveOp, Schedule};
pub use error::ScheduleError;
pub use options::ScheduleOptions;
pub use reducing::{ReducingSwitches, SwitchTree};
pub(super) use ring::order as ring_order;
pub use shape::Shape;

use writer::ScheduleWriter;

/// Names of the algorithms that have schedules for `op`, for messages.
pub const fn known(op: CollectiveOp) -> &'static str {
    match op {
        CollectiveOp::AllReduce | CollectiveOp::Barrier => {
            "ring, tree, halving-doubling, direct, hierarchical, nvls, in-network, collnet-chain"
        }
        CollectiveOp::AllGather | CollectiveOp::ReduceScatter => {
            "ring, halving-doubling, pat, direct, hierarchical, nvls, in-network"
        }
        CollectiveOp::AllToAll => "direct, hierarchical",
        CollectiveOp::Experts(_) => "the algorithm of their dispatcher alone",
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
        Algorithm::Nvls | Algorithm::InNetwork | Algorithm::CollnetChain if options.switches.is_none() => {
            return Err(ScheduleError::Analytic { algorithm });
        }
        _ => {}
    }
    if options.root >= n.max(1) {
        return Err(ScheduleError::Root { root: options.root, n });
    }
    let n_switches = options.switches.map_or(0, |switches| switches.n);
    let mut w = ScheduleWriter::with_switches(n, n_switches, options.chunk_bytes);
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
        (CollectiveOp::Experts(e), Algorithm::Direct) if !e.is_once_a_server() => {
            experts::once_an_expert(&mut w, bytes, shape, options)?
        }
        (CollectiveOp::Experts(e), Algorithm::Hierarchical) if e.is_once_a_server() => {
            experts::once_a_server(&mut w, &e, bytes, shape, options)?
        }
        (CollectiveOp::AllToAll, Algorithm::Direct | Algorithm::Hierarchical) => {
            let shares = direct::Shares::new(bytes, n, options.shares)?;
            match algorithm {
                Algorithm::Direct => direct::all_to_all(&mut w, &shares, channels),
                _ => hierarchical::all_to_all(&mut w, &shares, shape, channels),
            }
        }
        (
            CollectiveOp::AllReduce | CollectiveOp::AllGather | CollectiveOp::ReduceScatter,
            Algorithm::Nvls | Algorithm::InNetwork,
        ) => {
            let switches = options.switches.ok_or(ScheduleError::Analytic { algorithm })?;
            switches::write(&mut w, op, bytes, shape, channels, switches)?
        }
        (CollectiveOp::AllReduce, Algorithm::CollnetChain) => {
            let switches = options.switches.ok_or(ScheduleError::Analytic { algorithm })?;
            switches::write_chains(&mut w, bytes, shape, switches)?
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
        (CollectiveOp::AllGather | CollectiveOp::ReduceScatter, Algorithm::Pat) => {
            pat::write(&mut w, op, bytes, channels)
        }
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
