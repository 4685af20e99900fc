//! Index of all rows of an experiment: their partitions, and their places in them.
//!
//! Layer: fold/rows.

use hyperfold_columns::{FlowIdx, NEVER, NONE, NicIdx, PortIdx, Tables};

/// Number of a partition of a folded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartitionIdx(u32);

impl PartitionIdx {
    /// No partition.
    pub(crate) const NONE: PartitionIdx = PartitionIdx(NONE);

    pub(crate) fn new(place: usize) -> PartitionIdx {
        PartitionIdx(place as u32)
    }

    pub(crate) fn usize(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_some(self) -> bool {
        self != PartitionIdx::NONE
    }

    pub(crate) fn is_none(self) -> bool {
        self == PartitionIdx::NONE
    }
}

/// For every row of an experiment, its partition and its local number there.
#[derive(Clone)]
pub(crate) struct RowIndex {
    /// The partition of each NIC and port; `NONE` while it is idle.
    pub nic_partition: Vec<PartitionIdx>,
    pub port_partition: Vec<PartitionIdx>,
    /// The partition of each coupled switch; `NONE` while nothing crosses it.
    pub switch_partition: Vec<PartitionIdx>,
    /// Time since which each NIC and port has been active, in ps.
    pub nic_active_since: Vec<u64>,
    pub port_active_since: Vec<u64>,
    pub nic_local: Vec<u32>,
    pub port_local: Vec<u32>,
    /// For each switch port, its place among the link ends of the partition that it receives from.
    pub end_local: Vec<u32>,
    /// For each queue pair, its place among the members.
    pub member: Vec<u32>,
    /// The queue pair with each flow number.
    pub flow: Vec<FlowIdx>,
}

impl RowIndex {
    /// An index in which all rows of `t` are idle.
    pub(crate) fn new(t: &Tables) -> RowIndex {
        RowIndex {
            nic_partition: vec![PartitionIdx::NONE; t.nics.len()],
            port_partition: vec![PartitionIdx::NONE; t.ports.len()],
            switch_partition: vec![PartitionIdx::NONE; t.switches.len()],
            nic_active_since: vec![NEVER; t.nics.len()],
            port_active_since: vec![NEVER; t.ports.len()],
            nic_local: vec![NONE; t.nics.len()],
            port_local: vec![NONE; t.ports.len()],
            end_local: vec![NONE; t.ports.len()],
            member: vec![NONE; t.flow_tx.len()],
            flow: by_number(t),
        }
    }

    /// The local number of NIC `n` in partition `p`; `NONE` if it is elsewhere.
    pub(crate) fn local_nic(&self, p: PartitionIdx, n: NicIdx) -> u32 {
        if self.nic_partition[n.usize()] == p { self.nic_local[n.usize()] } else { NONE }
    }

    /// The local number of port `q` in partition `p`; `NONE` if it is elsewhere.
    pub(crate) fn local_port(&self, p: PartitionIdx, q: PortIdx) -> u32 {
        if self.port_partition[q.usize()] == p { self.port_local[q.usize()] } else { NONE }
    }
}

/// The queue pair of each flow number; `NONE` if there is none.
fn by_number(t: &Tables) -> Vec<FlowIdx> {
    let mut flow = vec![FlowIdx::NONE; t.flow_tx.iter().map(|tx| tx.flow_id as usize + 1).max().unwrap_or(0)];
    for (f, tx) in t.flow_tx.iter().enumerate() {
        flow[tx.flow_id as usize] = FlowIdx::new(f);
    }
    flow
}
