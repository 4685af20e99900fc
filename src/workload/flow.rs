//! A flow: one message on one queue pair.
//!
//! Layer: workload. What flow files and generators produce and the engine's tables are filled from.

use crate::routing::FlowKey;

/// What the packet engine is asked to carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Position in the flow file, or in the generator's order; from 0.
    pub id: u32,
    /// GPU ranks (for a flow file: positions of its host ids in `Network::ranks`).
    pub src_rank: u32,
    pub dst_rank: u32,
    /// Payload, at least 1.
    pub bytes: u64,
    pub start_ps: u64,
    /// UDP ports, only for ECMP's hash. The k-th flow of a (src, dst) pair has source port 10000 + k.
    pub sport: u16,
    pub dport: u16,
    /// Priority group as written. One class is modelled: all flows of an experiment must agree.
    pub priority: u8,
}

impl From<&Flow> for FlowKey {
    fn from(f: &Flow) -> FlowKey {
        FlowKey { id: f.id, src_rank: f.src_rank, dst_rank: f.dst_rank, sport: f.sport, dport: f.dport }
    }
}
