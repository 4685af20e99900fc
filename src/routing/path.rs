//! The paths of a flow, as arcs.

use crate::topology::ArcIdx;

/// All the paths a flow's packets may take. Data path: arcs from the source host's NIC to the destination host.
/// ACK path: arcs from the destination's NIC back. INVARIANT: every data path starts at one and the same NIC and ends at one
/// and the same NIC, and the ACK paths run between the same two NICs (a queue pair is pinned to one NIC).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FlowPaths {
    /// One path, or with packet spraying all of them; packet number `n` (counted per flow and direction from 0) takes path
    /// `hash32(flow_id, n, direction, routing seed) mod len` with direction 0 for data and 1 for ACKs.
    pub data: Vec<Vec<ArcIdx>>,
    pub ack: Vec<Vec<ArcIdx>>,
}
