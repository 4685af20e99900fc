//! A network under construction, as generators fill it.
//!
//! Layer: topology. Hosts come first, one per NIC, server by server; then the switches in the order of their generator.

use super::fabric::Fabric;
use crate::topology::network::{Link, Network, Node, NodeIdx, NodeKind, SwitchNames};
use crate::topology::validate::{MAX_LINKS, MAX_NODES, TopologyError};

/// A network under construction. Counts are checked before memory of that size is allocated.
pub(super) struct FabricBuilder<'a> {
    fabric: &'a Fabric,
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl<'a> FabricBuilder<'a> {
    /// Starts a network with hosts first, then `n_switches` switches; `n_links` is the total number of links.
    pub(super) fn new(fabric: &'a Fabric, n_switches: u64, n_links: u64) -> Result<FabricBuilder<'a>, TopologyError> {
        let n_hosts = fabric.n_hosts();
        let n = u64::from(n_hosts).saturating_add(n_switches);
        if n > u64::from(MAX_NODES) {
            return Err(TopologyError::TooManyNodes { n });
        }
        if n_links > u64::from(MAX_LINKS) {
            return Err(TopologyError::TooManyLinks { n: n_links });
        }
        let mut nodes = Vec::with_capacity(n as usize);
        for id in 0..n_hosts {
            nodes.push(Node { kind: NodeKind::Host, id, server: id / fabric.nics_per_server });
        }
        for id in n_hosts..n as u32 {
            nodes.push(Node { kind: NodeKind::Switch, id, server: u32::MAX });
        }
        Ok(FabricBuilder { fabric, nodes, links: Vec::with_capacity(n_links as usize) })
    }

    /// Joins all ports of a NIC to one leaf.
    pub(super) fn host_link(&mut self, host: NodeIdx, leaf: NodeIdx) {
        for _ in 0..self.fabric.nic_ports {
            self.port_link(host, leaf);
        }
    }

    /// Joins one port of a NIC to a leaf. A port has its share of the NIC's rate.
    pub(super) fn port_link(&mut self, host: NodeIdx, leaf: NodeIdx) {
        let f = self.fabric;
        let delay_ps = f.link_delay_ps + f.switch_latency_ps.div_ceil(2);
        self.links.push(Link { a: host, b: leaf, rate_bps: f.link_bps / u64::from(f.nic_ports), delay_ps });
    }

    /// Joins two switches at the rate of uplinks.
    pub(super) fn uplink(&mut self, lower: NodeIdx, upper: NodeIdx) {
        self.switch_link(lower, upper, self.fabric.uplink_bps, self.fabric.uplink_delay_ps);
    }

    /// Joins a switch to one of the third tier.
    pub(super) fn core_link(&mut self, lower: NodeIdx, core: NodeIdx) {
        self.switch_link(lower, core, self.fabric.core_bps, self.fabric.core_delay_ps);
    }

    /// Joins switches of two groups at the rate and delay of global links.
    pub(super) fn global_link(&mut self, a: NodeIdx, b: NodeIdx) {
        self.switch_link(a, b, self.fabric.global_bps, self.fabric.global_delay_ps);
    }

    /// Joins two switches. The delay becomes that of propagation and one switch.
    pub(super) fn switch_link(&mut self, a: NodeIdx, b: NodeIdx, rate_bps: u64, propagation_ps: u64) {
        self.links.push(Link { a, b, rate_bps, delay_ps: propagation_ps + self.fabric.switch_latency_ps });
    }

    /// Marks a switch as a part of a server.
    pub(super) fn put_in_server(&mut self, switch: NodeIdx, server: u32) {
        self.nodes[switch as usize].server = server;
    }

    /// Finishes a network whose switches are named by their tiers.
    pub(super) fn build(self) -> Result<Network, TopologyError> {
        self.finish(SwitchNames::ByTier)
    }

    /// Finishes a network whose switches have these names, in their order.
    pub(super) fn build_named(self, names: Vec<String>) -> Result<Network, TopologyError> {
        self.finish(SwitchNames::Given(names))
    }

    fn finish(self, switch_names: SwitchNames) -> Result<Network, TopologyError> {
        let f = self.fabric;
        let (gpus, nics) = (f.gpus_per_server, f.nics_per_server);
        let ranks = (0..f.gpus).map(|r| r / gpus * nics + r % gpus * nics / gpus).collect();
        Ok(Network { switch_names, ..Network::new(self.nodes, self.links, ranks, f.nvlink)? })
    }
}
