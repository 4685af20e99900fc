//! A flow: one message on one queue pair.
//!
//! Layer: workload. Flow files and generators produce flows; the engine's tables are filled from them.

use hyperfold_network::routing::FlowKey;

/// A message that the packet engine carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Position in the flow file, or in the generator's order; from 0.
    pub id: u32,
    /// Rank of the sending GPU (for a flow file: position of its host id in `Network::ranks`).
    pub src_rank: u32,
    /// Rank of the receiving GPU, numbered as `src_rank`.
    pub dst_rank: u32,
    /// Payload in bytes, at least 1.
    pub bytes: u64,
    /// Time of its start, ps.
    pub start_ps: u64,
    /// UDP source port, used only for ECMP's hash. The k-th flow of a (src, dst) pair has source port 10000 + k.
    pub sport: u16,
    /// UDP destination port, used only for ECMP's hash.
    pub dport: u16,
    /// Traffic class. Files of ns-3 call it the priority group. Where one class is modelled, all flows of an experiment have the same number here.
    pub class: u8,
}

impl From<&Flow> for FlowKey {
    fn from(f: &Flow) -> FlowKey {
        FlowKey { id: f.id, src_rank: f.src_rank, dst_rank: f.dst_rank, sport: f.sport, dport: f.dport }
    }
}
