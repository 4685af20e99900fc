//! Where each row of an experiment is: its partition, and its place in it.
//!
//! Layer: fold/rows.

use crate::columns::{NEVER, NONE, Tables};

/// Of every row of an experiment: its partition, and its local number there.
pub struct RowIndex {
    /// The partition of each NIC and port, `NONE` while it is idle.
    pub nic_partition: Vec<u32>,
    pub port_partition: Vec<u32>,
    /// When each NIC and port last became active, ps.
    pub nic_active_since: Vec<u64>,
    pub port_active_since: Vec<u64>,
    pub nic_local: Vec<u32>,
    pub port_local: Vec<u32>,
    /// Of each switch port: its place among the link ends of the partition that it receives from.
    pub end_local: Vec<u32>,
    /// Of each queue pair: its place among the members.
    pub member: Vec<u32>,
    /// The queue pair of each flow number.
    pub flow: Vec<u32>,
}

impl RowIndex {
    /// All rows of `t` are idle.
    pub fn new(t: &Tables) -> RowIndex {
        RowIndex {
            nic_partition: vec![NONE; t.nics.len()],
            port_partition: vec![NONE; t.ports.len()],
            nic_active_since: vec![NEVER; t.nics.len()],
            port_active_since: vec![NEVER; t.ports.len()],
            nic_local: vec![NONE; t.nics.len()],
            port_local: vec![NONE; t.ports.len()],
            end_local: vec![NONE; t.ports.len()],
            member: vec![NONE; t.flow_tx.len()],
            flow: by_number(t),
        }
    }

    /// The local number of NIC `n` in partition `p`, `NONE` if it is elsewhere.
    pub fn local_nic(&self, p: u32, n: u32) -> u32 {
        if self.nic_partition[n as usize] == p { self.nic_local[n as usize] } else { NONE }
    }

    /// The local number of port `q` in partition `p`, `NONE` if it is elsewhere.
    pub fn local_port(&self, p: u32, q: u32) -> u32 {
        if self.port_partition[q as usize] == p { self.port_local[q as usize] } else { NONE }
    }
}

/// The queue pair of each flow number; `NONE` where there is none.
fn by_number(t: &Tables) -> Vec<u32> {
    let mut flow = vec![NONE; t.flow_tx.iter().map(|tx| tx.flow_id as usize + 1).max().unwrap_or(0)];
    for (f, tx) in t.flow_tx.iter().enumerate() {
        flow[tx.flow_id as usize] = f as u32;
    }
    flow
}
