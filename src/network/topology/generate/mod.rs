//! Generated topologies: fat-tree, Clos, rail-optimized, rail-only.
//!
//! Layer: topology. Parameters are plain integers; `spec` handles users' units and defaults. The order of nodes is fixed: hosts (one per NIC, server by
//! server), then leaves, then upper tiers. Links are in the order of their lower ends.

mod clos;
mod fat_tree;
mod rail;

pub use clos::Clos;
pub use fat_tree::FatTree;
pub use rail::{RailOnly, RailOptimized};

use super::network::{Link, Network, Node, NodeIdx, NodeKind, NvLink};
use super::validate::{MAX_LINKS, MAX_NODES, TopologyError, check_delay, check_rate};

/// Parameters that every generated fabric needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Number of GPU ranks. Servers are filled: it is a multiple of `gpus_per_server`.
    pub gpus: u32,
    /// Number of GPUs in a server.
    pub gpus_per_server: u32,
    /// NICs of a server, each a host node. If there are fewer than GPUs, neighbouring ranks share one.
    pub nics_per_server: u32,
    /// Number of links of a NIC to its leaf.
    pub nic_ports: u32,
    /// Rate of a NIC in bps, all its links together.
    pub link_bps: u64,
    /// Rate of links between switches in bps.
    pub uplink_bps: u64,
    /// One-way propagation delay of every link in ps.
    pub link_delay_ps: u64,
    /// Latency of a switch in ps. A link has one delay, so a switch's two links on a path each include half of its latency: a link between switches includes
    /// the full latency, a link to a host half of it. A path over n switches takes n times this longer.
    pub switch_latency_ps: u64,
    /// Path between the GPUs of a server. `None`: they have none.
    pub nvlink: Option<NvLink>,
}

/// Oversubscription in thousandths: 1000 is 1:1, 3000 is 3:1 (three times more host than uplink capacity at a leaf).
pub type OversubscriptionMilli = u32;

fn bad(key: &'static str, value: impl ToString, problem: impl Into<String>) -> TopologyError {
    TopologyError::Parameter { key, value: value.to_string(), problem: problem.into() }
}

impl Fabric {
    /// Checks the parameters that all kinds share.
    fn check(&self) -> Result<(), TopologyError> {
        if self.gpus == 0 || self.gpus > MAX_NODES {
            return Err(bad("cluster.gpus", self.gpus, format!("it must be from 1 to {MAX_NODES}")));
        }
        if self.gpus_per_server == 0 {
            return Err(bad("cluster.gpus_per_server", 0, "it must be at least 1"));
        }
        if !self.gpus.is_multiple_of(self.gpus_per_server) {
            let (per, gpus) = (self.gpus_per_server, self.gpus);
            let fix = match gpus / per {
                0 => format!("set cluster.gpus_per_server = {gpus} for one server"),
                n => format!("cluster.gpus = {} or {} would fit", n * per, (n + 1) * per),
            };
            return Err(bad("cluster.gpus", gpus, format!("servers of {per} GPUs are not filled; {fix}")));
        }
        if self.nics_per_server == 0 || self.nics_per_server > self.gpus_per_server {
            let problem = format!("it must be from 1 to gpus_per_server = {}", self.gpus_per_server);
            return Err(bad("cluster.nics_per_server", self.nics_per_server, problem));
        }
        if self.nic_ports == 0 || !self.link_bps.is_multiple_of(u64::from(self.nic_ports) * 1_000_000) {
            let problem = format!("topology.link_gbps, {} bps, must divide by it into whole Mb/s", self.link_bps);
            return Err(bad("cluster.nic_ports", self.nic_ports, problem));
        }
        for (key, rate) in [("topology.link_gbps", self.link_bps), ("topology.uplink_gbps", self.uplink_bps)] {
            check_rate(rate).map_err(|e| bad(key, format!("{} bps", rate), e))?;
        }
        check_delay(self.link_delay_ps)
            .map_err(|e| bad("topology.link_delay_ns", format!("{} ps", self.link_delay_ps), e))?;
        check_delay(self.link_delay_ps.saturating_add(self.switch_latency_ps))
            .map_err(|e| bad("topology.switch_latency_ns", format!("{} ps", self.switch_latency_ps), e))
    }

    fn n_servers(&self) -> u32 {
        self.gpus / self.gpus_per_server
    }

    /// Number of host nodes: one per NIC.
    fn n_hosts(&self) -> u32 {
        self.n_servers() * self.nics_per_server
    }

    /// Number of links of all hosts.
    fn n_host_links(&self) -> u64 {
        u64::from(self.n_hosts()) * u64::from(self.nic_ports)
    }

    /// Number of uplinks that a leaf with `n_hosts` hosts needs for an oversubscription, rounded up.
    fn uplinks_for(&self, n_hosts: u32, oversubscription: OversubscriptionMilli) -> u32 {
        let down = u128::from(n_hosts) * u128::from(self.link_bps) * 1000;
        let up = u128::from(self.uplink_bps) * u128::from(oversubscription);
        u32::try_from(down.div_ceil(up)).unwrap_or(u32::MAX).max(1)
    }
}

/// Number of uplinks of a leaf. The oversubscription must be in range, and must agree with the given number of uplinks if both are set.
fn uplinks(
    fabric: &Fabric,
    n_hosts: u32,
    given: u32,
    oversubscription: OversubscriptionMilli,
) -> Result<u32, TopologyError> {
    if !(1..=1_000_000).contains(&oversubscription) {
        return Err(bad("topology.oversubscription", shown_milli(oversubscription), "it must be from 0.001 to 1000"));
    }
    let derived = fabric.uplinks_for(n_hosts, oversubscription);
    if given == 0 {
        return Ok(derived);
    }
    if oversubscription != 1000 && derived != given {
        let problem = format!(
            "an oversubscription of {} needs {derived} above leaves of {n_hosts} hosts; leave one of the two out",
            shown_milli(oversubscription)
        );
        return Err(bad("topology.spines", given, problem));
    }
    Ok(given)
}

/// Formats thousandths as a decimal number.
fn shown_milli(milli: OversubscriptionMilli) -> String {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A network under construction. Counts are checked before memory of that size is allocated.
struct Builder<'a> {
    fabric: &'a Fabric,
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl<'a> Builder<'a> {
    /// Starts a network with hosts first, then `n_switches` switches; `n_links` is the total number of links.
    fn new(fabric: &'a Fabric, n_switches: u64, n_links: u64) -> Result<Builder<'a>, TopologyError> {
        let n_hosts = fabric.n_hosts();
        let n = u64::from(n_hosts) + n_switches;
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
        Ok(Builder { fabric, nodes, links: Vec::with_capacity(n_links as usize) })
    }

    fn host_link(&mut self, host: NodeIdx, leaf: NodeIdx) {
        let f = self.fabric;
        let delay_ps = f.link_delay_ps + f.switch_latency_ps.div_ceil(2);
        for _ in 0..f.nic_ports {
            self.links.push(Link { a: host, b: leaf, rate_bps: f.link_bps / u64::from(f.nic_ports), delay_ps });
        }
    }

    fn uplink(&mut self, lower: NodeIdx, upper: NodeIdx) {
        let f = self.fabric;
        let delay_ps = f.link_delay_ps + f.switch_latency_ps;
        self.links.push(Link { a: lower, b: upper, rate_bps: f.uplink_bps, delay_ps });
    }

    fn build(self) -> Result<Network, TopologyError> {
        let f = self.fabric;
        let (gpus, nics) = (f.gpus_per_server, f.nics_per_server);
        let ranks = (0..f.gpus).map(|r| r / gpus * nics + r % gpus * nics / gpus).collect();
        Ok(Network { tiered: true, ..Network::new(self.nodes, self.links, ranks, f.nvlink)? })
    }
}

/// Smallest power of two `x` with `x^power >= n`.
fn power_of_two_root(n: u32, power: u32) -> u32 {
    let mut x = 1u32;
    while u64::from(x).pow(power) < u64::from(n) {
        x *= 2;
    }
    x
}
