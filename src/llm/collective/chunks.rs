//! Moye's white-box model of collectives: passes of chunks around a ring or through a tree, added up (Section 5.3, Equations 2 to 5).
//!
//! Layer: collective. Moye profiles the parameters on a cluster. Here chunks take the rates of their links, and parts that do not depend on bytes are counted
//! once, so that the equations can be compared with packet simulation.

use super::communicator::Communicator;
use super::nccl::Choice;
use super::{Algorithm, CollectiveOp};

/// A collective as passes of chunks; times in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkPasses {
    /// The operation that the chunks carry out.
    pub op: CollectiveOp,
    /// A ring or a tree.
    pub algorithm: Algorithm,
    /// Number of members: N.
    pub ranks: f64,
    /// Number of servers: M.
    pub nodes: f64,
    /// Members per server: K.
    pub ranks_per_node: f64,
    /// Connection set-up and NCCL's latencies, counted once: alpha.
    pub setup_us: f64,
    /// Time of a chunk to a member of the same server: beta; 0 if the collective stays in one server.
    pub inside_us: f64,
    /// Time of a chunk to another server, or to the next member if there is only one server: gamma.
    pub edge_us: f64,
    /// Chunks of a channel; for a ring, chunks of a channel and member: eta.
    pub passes: f64,
}

impl ChunkPasses {
    /// Time of the collective in us. The term delta x tensor_size is left out: receiving, reducing and sending are one pass of NCCL's kernels, and the measured
    /// rates of links include it.
    pub fn time_us(&self) -> f64 {
        let steps = self.ranks - 1.0;
        let one = match (self.op, self.algorithm) {
            // Equation 5.
            (_, Algorithm::Tree) => {
                return self.setup_us
                    + self.edge_us * (self.passes - 1.0)
                    + 2.0 * self.inside_us * (self.ranks_per_node - 1.0)
                    + 2.0 * self.edge_us * libm::log2(self.nodes);
            }
            // Equations 3 and 4. In the text the first (N - 1) has no factor; beta is the only symbol that it can have lost.
            (CollectiveOp::AllReduce, _) => self.inside_us * steps + self.edge_us * 2.0 * steps,
            (CollectiveOp::ReduceScatter, _) => self.inside_us * steps + self.edge_us * steps,
            // Equation 2.
            _ => self.edge_us * steps,
        };
        self.setup_us + self.passes * one
    }
}

/// A collective by Moye's equations, with the channels and chunks of `choice`. `None` if the equations have no form for it.
pub fn chunk_passes(
    communicator: &Communicator,
    op: CollectiveOp,
    algorithm: Algorithm,
    choice: &Choice,
    bytes: u64,
) -> Option<ChunkPasses> {
    use CollectiveOp::{AllGather, AllReduce, ReduceScatter};
    let (placement, system) = (&communicator.placement, communicator.system);
    let across = placement.nodes() > 1;
    let in_ring = algorithm == Algorithm::Ring && matches!(op, AllReduce | AllGather | ReduceScatter);
    let in_tree = algorithm == Algorithm::Tree && op == AllReduce && across;
    if !(in_ring || in_tree) || placement.ranks <= 1 || bytes == 0 {
        return None;
    }
    let channels = f64::from(choice.channels.max(1));
    let (inside_gbps, net_gbps) = communicator.links.edge_gbps();
    // Bytes that one channel moves; for a ring, per member.
    let part = bytes as f64 / channels / if in_ring { f64::from(placement.ranks) } else { 1.0 };
    let passes = libm::ceil(part / choice.chunk_bytes.max(1) as f64).max(1.0);
    let kb = choice.protocol.wire_bytes(libm::ceil(part / passes) as u64) as f64 / 1000.0;
    let inside_us = kb * channels / inside_gbps;
    // A channel uses at most one NIC.
    let net_us = kb / (net_gbps / channels).min(system.nic_bps as f64 / 8e9);
    Some(ChunkPasses {
        op,
        algorithm,
        ranks: f64::from(placement.ranks),
        nodes: f64::from(placement.nodes()),
        ranks_per_node: f64::from(placement.ranks_per_node.min(placement.ranks)),
        setup_us: communicator.links.setup_us(op, algorithm, choice.protocol, bytes),
        inside_us: if across && placement.ranks_per_node > 1 { inside_us } else { 0.0 },
        edge_us: if across { net_us } else { inside_us },
        passes,
    })
}

/// Duration of an analytic collective in ps. It follows Moye's equations if `workload.analytic_cost` asks for them and they have a form for it, else
/// [`super::cost_with_ps`].
pub fn analytic_ps(
    communicator: &Communicator,
    op: CollectiveOp,
    algorithm: Algorithm,
    choice: &Choice,
    bytes: u64,
) -> u64 {
    let by_chunks = communicator.system.by_chunks;
    match by_chunks.then(|| chunk_passes(communicator, op, algorithm, choice, bytes)).flatten() {
        Some(passes) => (passes.time_us() * 1e6) as u64,
        None => communicator.cost_with_ps(op, algorithm, choice.protocol, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight members in two servers, two passes. The terms of an equation can be told apart by their sizes.
    fn passes(op: CollectiveOp, algorithm: Algorithm) -> ChunkPasses {
        let times = (1.0, 10.0, 1000.0);
        let (setup_us, inside_us, edge_us) = times;
        ChunkPasses {
            op,
            algorithm,
            ranks: 8.0,
            nodes: 2.0,
            ranks_per_node: 4.0,
            setup_us,
            inside_us,
            edge_us,
            passes: 2.0,
        }
    }

    #[test]
    fn equations_are_those_of_the_paper() {
        let us = |op, algorithm| passes(op, algorithm).time_us();
        assert_eq!(us(CollectiveOp::AllGather, Algorithm::Ring), 1.0 + 1000.0 * 2.0 * 7.0);
        assert_eq!(us(CollectiveOp::ReduceScatter, Algorithm::Ring), 1.0 + 2.0 * (10.0 * 7.0 + 1000.0 * 7.0));
        assert_eq!(us(CollectiveOp::AllReduce, Algorithm::Ring), 1.0 + 2.0 * (10.0 * 7.0 + 1000.0 * 14.0));
        assert_eq!(us(CollectiveOp::AllReduce, Algorithm::Tree), 1.0 + 1000.0 + 2.0 * 10.0 * 3.0 + 2.0 * 1000.0);
    }
}
