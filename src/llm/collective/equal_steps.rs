//! Collectives whose steps are all equal, described as a whole: the edges, and the bytes of an edge in each step. They need no list of transfers.
//!
//! Layer: collective. These are operations around whole rings, and all-to-alls. Flow level makes one flow of each.

use super::build::{Shape, ring_order};
use super::nccl::Protocol;
use super::{Algorithm, CollectiveOp, ScheduleOptions};

/// The edges of one channel in order: (from, to).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EdgeRing {
    /// Number of the channel.
    pub channel: u16,
    /// Edges as (sending member, receiving member), each beginning where the one before ends.
    pub edges: Vec<(u32, u32)>,
}

/// A collective whose steps are all equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EqualSteps {
    /// In a ring, a member sends over its edge what it received over the edge before; the first edge follows the last.
    pub rings: Vec<EdgeRing>,
    /// Number of steps. In each step, every edge carries a block.
    pub steps: u64,
    /// Number of messages of a block.
    pub pieces: u64,
    /// Bytes of each message on the wire, without packet headers.
    pub piece_bytes: u64,
}

impl EqualSteps {
    /// Describes a collective with this algorithm. `None` if its steps differ.
    pub fn of(
        op: CollectiveOp,
        algorithm: Algorithm,
        bytes: u64,
        shape: &Shape,
        options: &ScheduleOptions,
        protocol: Protocol,
    ) -> Option<EqualSteps> {
        let n = shape.n();
        let channels = options.channels.max(1);
        let ring = |channel: u16| -> EdgeRing {
            let order = ring_order(shape, channel, options);
            let next = order.iter().cycle().skip(1);
            EdgeRing { channel, edges: order.iter().zip(next).map(|(&from, &to)| (from, to)).collect() }
        };
        let (steps, rings): (u32, Vec<EdgeRing>) = match (op, algorithm) {
            (CollectiveOp::AllReduce, Algorithm::Ring) => (2 * (n - 1), (0..channels).map(ring).collect()),
            (CollectiveOp::AllGather | CollectiveOp::ReduceScatter, Algorithm::Ring) => {
                (n - 1, (0..channels).map(ring).collect())
            }
            (CollectiveOp::AllToAll, Algorithm::Direct) if options.shares.is_none() => {
                // No member forwards what it receives, so any order of edges is right.
                let turn = |channel: u16, distance: u32| EdgeRing {
                    channel,
                    edges: (0..n).map(|from| (from, (from + distance) % n)).collect(),
                };
                (1, (0..channels).flat_map(|c| (1..n).map(move |distance| turn(c, distance))).collect())
            }
            _ => return None,
        };
        let block = bytes.div_ceil(u64::from(n) * u64::from(channels)).max(1);
        let pieces = if options.chunk_bytes == 0 { 1 } else { block.div_ceil(options.chunk_bytes) };
        let piece_bytes = protocol.wire_bytes(block.div_ceil(pieces)).max(1);
        Some(EqualSteps { rings, steps: steps.into(), pieces, piece_bytes })
    }

    /// Bytes that an edge carries in total, on the wire without packet headers.
    pub fn edge_bytes(&self) -> u64 {
        self.steps * self.pieces * self.piece_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::build;

    #[test]
    fn an_edge_carries_what_its_transfers_carry() {
        let shape = Shape::servers(4, 2);
        let options = ScheduleOptions { channels: 2, chunk_bytes: 3_000, ..ScheduleOptions::default() };
        for (op, algorithm) in [
            (CollectiveOp::AllReduce, Algorithm::Ring),
            (CollectiveOp::AllGather, Algorithm::Ring),
            (CollectiveOp::ReduceScatter, Algorithm::Ring),
            (CollectiveOp::AllToAll, Algorithm::Direct),
        ] {
            let steps =
                EqualSteps::of(op, algorithm, 1 << 20, &shape, &options, Protocol::Simple).expect("equal steps");
            let schedule = build(op, algorithm, 1 << 20, &shape, &options).expect("known");
            let edges: Vec<(u32, u32)> = steps.rings.iter().flat_map(|r| &r.edges).copied().collect();
            for &(from, to) in &edges {
                let of_edge = schedule.transfers.iter().filter(|t| (t.from, t.to) == (from, to));
                let (n, bytes) = of_edge.fold((0, 0), |(n, bytes), t| (n + 1, bytes + t.bytes));
                let times = edges.iter().filter(|e| **e == (from, to)).count() as u64;
                assert_eq!(n, times * steps.steps * steps.pieces, "{op:?}");
                // Pieces are rounded up to whole bytes.
                assert!((bytes..=bytes + n).contains(&(times * steps.edge_bytes())), "{op:?}: {bytes} {steps:?}");
            }
            let sent: u64 = schedule.transfers.len() as u64;
            assert_eq!(sent, edges.len() as u64 * steps.steps * steps.pieces, "{op:?}");
        }
        let broadcast = EqualSteps::of(CollectiveOp::Broadcast, Algorithm::Ring, 8, &shape, &options, Protocol::Simple);
        assert_eq!(broadcast, None);
    }
}
