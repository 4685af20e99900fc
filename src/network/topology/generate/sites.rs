//! Several clusters of one shape, joined by long links between their border switches.
//!
//! Layer: topology.

use super::fabric::{Fabric, bad};
use super::shape::FabricShape;
use crate::topology::network::{Link, Network, Node, NodeIdx, NodeKind, SwitchNames};
use crate::topology::validate::{MAX_NODES, TopologyError, check_delay, check_rate};

/// Clusters that are joined, and the links between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sites {
    /// Number of clusters, at least 2. Each has an equal share of the servers, in order.
    pub n: u32,
    /// Links between the border switches of each pair of clusters.
    pub links: u32,
    /// Rate of such a link in bps.
    pub link_bps: u64,
    /// One-way propagation delay of such a link in ps: about 5,000,000 a kilometre of fibre.
    pub delay_ps: u64,
}

impl Sites {
    /// Builds a network of this shape at each site. A border switch of each site is linked once, at the rate of uplinks, to each switch of its highest tier.
    ///
    /// # Errors
    /// A parameter is out of range, or the servers do not divide among the sites.
    pub fn build(&self, shape: &FabricShape, fabric: &Fabric) -> Result<Network, TopologyError> {
        let servers = fabric.n_servers();
        if self.n < 2 || !servers.is_multiple_of(self.n) {
            return Err(bad("topology.sites", self.n, format!("{servers} servers do not divide among the sites")));
        }
        check_rate(self.link_bps).map_err(|e| bad("topology.site_gbps", format!("{} bps", self.link_bps), e))?;
        check_delay(self.delay_ps.saturating_add(fabric.switch_latency_ps))
            .map_err(|e| bad("topology.site_delay_ns", format!("{} ps", self.delay_ps), e))?;
        if self.links == 0 {
            return Err(bad("topology.site_links", 0, "it must be at least 1"));
        }
        if matches!(shape, FabricShape::Optical(optical) if optical.plan.changes()) {
            return Err(bad(
                "topology.sites",
                self.n,
                "circuits that change are in one cluster; write topology.circuits = \"mesh\"",
            ));
        }
        let site = shape.build(&Fabric { gpus: fabric.gpus / self.n, ..fabric.clone() })?;
        self.join(&site, fabric)
    }

    /// As many copies of a site as there are, hosts first, and the links between them.
    fn join(&self, site: &Network, fabric: &Fabric) -> Result<Network, TopologyError> {
        let hosts = site.nodes.iter().filter(|n| n.kind == NodeKind::Host).count() as u32;
        let switches = site.nodes.len() as u32 - hosts;
        let n = u64::from(self.n) * (site.nodes.len() as u64 + 1);
        if n > u64::from(MAX_NODES) {
            return Err(TopologyError::TooManyNodes { n });
        }
        let servers = fabric.n_servers() / self.n;
        // A site has its switches, then its border switch.
        let border = |s: u32| self.n * hosts + s * (switches + 1) + switches;
        let moved = |s: u32, node: NodeIdx| {
            if node < hosts { s * hosts + node } else { self.n * hosts + s * (switches + 1) + node - hosts }
        };
        let n_nodes = self.n * (hosts + switches + 1);
        let mut nodes: Vec<Node> =
            (0..n_nodes).map(|id| Node { kind: NodeKind::Switch, id, server: u32::MAX }).collect();
        let (mut links, mut ranks, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let own_names = site.names();
        let tiers = site.tiers();
        let top = tiers.iter().copied().max().unwrap_or(0);
        let up_delay_ps = fabric.uplink_delay_ps + fabric.switch_latency_ps;
        for s in 0..self.n {
            for (node, own) in (0..).zip(&site.nodes) {
                let copy = &mut nodes[moved(s, node) as usize];
                copy.kind = own.kind;
                copy.server = if own.server == u32::MAX { u32::MAX } else { s * servers + own.server };
            }
            links.extend(site.links.iter().map(|l| Link { a: moved(s, l.a), b: moved(s, l.b), ..l.clone() }));
            let highest = (0..).zip(&tiers).filter(|(_, tier)| **tier == top).map(|(node, _)| moved(s, node));
            let uplink = |a| Link { a, b: border(s), rate_bps: fabric.uplink_bps, delay_ps: up_delay_ps };
            links.extend(highest.map(uplink));
            ranks.extend(site.ranks.iter().map(|&host| moved(s, host)));
            names.extend(own_names[hosts as usize..].iter().map(|name| format!("site{s}.{name}")));
            names.push(format!("site{s}.border"));
        }
        let delay_ps = self.delay_ps + fabric.switch_latency_ps;
        for low in 0..self.n {
            for high in low + 1..self.n {
                let link = Link { a: border(low), b: border(high), rate_bps: self.link_bps, delay_ps };
                links.extend((0..self.links).map(|_| link.clone()));
            }
        }
        let network = Network::new(nodes, links, ranks, site.nvlink)?;
        Ok(Network { switch_names: SwitchNames::Given(names), ..network })
    }
}
