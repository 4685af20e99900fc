//! The cluster as its jobs see it: servers, racks, the oversubscription of the rack uplinks, and the cost.
//!
//! Layer: cluster. It is read off the network that packets would cross.

use hyperfold_config::spec::Config;
use hyperfold_host::cluster_network;
use hyperfold_host::cost::Bill;
use hyperfold_network::topology::{Network, NodeKind};

use super::error::ClusterError;

/// Servers, racks and rates of the cluster.
#[derive(Clone, Debug)]
pub(super) struct ClusterMachine {
    pub per_server: u32,
    /// Network links of one server.
    pub links_per_server: u32,
    /// Rack of each server. Servers whose first NIC is on the same leaf switch are in one rack.
    pub rack: Vec<u32>,
    pub racks: u32,
    /// Rate from servers into the first rack's leaf over its rate to other switches, in millionths; at least 1,000,000.
    pub oversubscription_ppm: u64,
    /// Rate of all links of a server together, in bps.
    pub server_bps: u64,
    /// Rate of all uplinks of each rack together, in bps, in proportion to its servers.
    pub rack_out_bps: Vec<u64>,
    pub bill: Bill,
}

impl ClusterMachine {
    /// Builds the network of a configuration and derives the machine from it. Returns both.
    ///
    /// # Errors
    /// The network cannot be built, or a part of it has no price.
    pub(super) fn new(config: &Config) -> Result<(ClusterMachine, Network), ClusterError> {
        let (net, bill) = cluster_network(config)?;
        let n_servers =
            net.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| n.server + 1).max().unwrap_or(0) as usize;
        let mut leaf: Vec<Option<u32>> = vec![None; n_servers];
        let mut links = vec![0u32; n_servers];
        let mut server_bps = vec![0u64; n_servers];
        // For each node, the rates of its links to servers and to switches, in bps.
        let mut rates = vec![(0u64, 0u64); net.nodes.len()];
        for link in net.links.iter().filter(|l| net.is_packet_link(l)) {
            for (host, other) in [(link.a, link.b), (link.b, link.a)] {
                let [node, far] = [host, other].map(|v| &net.nodes[v as usize]);
                if node.kind == NodeKind::Switch {
                    let rate = &mut rates[host as usize];
                    *(if far.kind == NodeKind::Host { &mut rate.0 } else { &mut rate.1 }) += link.rate_bps;
                    continue;
                }
                links[node.server as usize] += 1;
                server_bps[node.server as usize] += link.rate_bps;
                leaf[node.server as usize].get_or_insert(other);
            }
        }
        let mut leaves: Vec<u32> = leaf.iter().flatten().copied().collect();
        leaves.sort_unstable();
        leaves.dedup();
        let rack_of = |leaf: Option<u32>| leaf.and_then(|l| leaves.binary_search(&l).ok()).unwrap_or(0) as u32;
        let oversubscription_ppm = leaves.first().map_or(1_000_000, |&l| {
            let (down, up) = rates[l as usize];
            if up == 0 { 1_000_000 } else { ((u128::from(down) * 1_000_000) / u128::from(up)).max(1_000_000) as u64 }
        });
        let rack: Vec<u32> = leaf.into_iter().map(rack_of).collect();
        let racks = leaves.len().max(1) as u32;
        let server_bps = server_bps.into_iter().max().unwrap_or(0);
        let mut rack_out_bps = vec![0u64; racks as usize];
        for &rack_idx in &rack {
            let out = u128::from(server_bps) * 1_000_000 / u128::from(oversubscription_ppm);
            rack_out_bps[rack_idx as usize] = rack_out_bps[rack_idx as usize].saturating_add(out as u64);
        }
        let machine = ClusterMachine {
            per_server: (net.ranks.len() / n_servers.max(1)).max(1) as u32,
            links_per_server: links.iter().copied().max().unwrap_or(0),
            rack,
            racks,
            oversubscription_ppm,
            server_bps,
            rack_out_bps,
            bill,
        };
        Ok((machine, net))
    }

    /// Number of servers.
    pub(super) fn servers(&self) -> u32 {
        self.rack.len() as u32
    }

    /// Number of GPUs.
    pub(super) fn gpus(&self) -> u64 {
        u64::from(self.servers()) * u64::from(self.per_server)
    }
}
