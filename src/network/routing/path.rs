//! The paths of a flow, as lists of arcs.

use crate::topology::ArcIdx;

/// All paths that a flow's packets may take. A data path is the arcs from the source host's NIC to the destination host; an ACK path is the arcs from the
/// destination's NIC back. INVARIANT: all data paths start at the same NIC and end at the same NIC, and the ACK paths run between the same two NICs (a queue
/// pair is pinned to one NIC).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FlowPaths {
    /// One path, or with packet spraying all of them. Packet number `n` (counted per flow and direction from 0) takes path `hash32(flow_id, n, direction,
    /// routing seed) mod len`, with direction 0 for data and 1 for ACKs; or they take them in turn.
    pub data: Vec<Vec<ArcIdx>>,
    /// Paths of the answers, by the same rule.
    pub ack: Vec<Vec<ArcIdx>>,
}

impl FlowPaths {
    /// The directions of links on which data and their answers leave their hosts. PRECONDITION: there are paths.
    pub fn ports(&self) -> (ArcIdx, ArcIdx) {
        (self.data[0][0], self.ack[0][0])
    }
}
