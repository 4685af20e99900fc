//! Rail-optimized and rail-only fabrics: NIC i of every server of a pod is on the leaf of rail i.
//!
//! Layer: topology. Rail-only has no spine, so ranks of different rails and servers have no packet path; routing reports that as an error.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, OversubscriptionMilli, bad, equal_pods};
use crate::topology::{Network, TopologyError};

/// Servers per pod if the number of pods is not given: as in NVIDIA's scalable unit of 32 DGX H100, whose leaves have 32 host ports.
const SERVERS_PER_POD: u32 = 32;

/// Parameters of a rail-optimized fabric. 0 stands for a value that is derived from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailOptimized {
    /// Leaves per pod. 0: one per NIC of a server. With fewer, NIC i is on rail i mod rails.
    pub rails: u32,
    /// Number of pods. 0: as `servers_per_pod` says.
    pub pods: u32,
    /// Servers of a pod, where `pods` is 0. 0: up to 32.
    pub servers_per_pod: u32,
    /// Number of spines, each linked once to every leaf. 0: derived from the oversubscription.
    pub spines: u32,
    /// Host capacity over uplink capacity at a leaf, in thousandths, where `spines` is 0.
    pub oversubscription: OversubscriptionMilli,
}

impl Default for RailOptimized {
    fn default() -> RailOptimized {
        RailOptimized { rails: 0, pods: 0, servers_per_pod: 0, spines: 0, oversubscription: 1000 }
    }
}

/// Parameters of a rail-only fabric, which has one switch per rail for all servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RailOnly {
    /// Number of rails. 0: one per NIC of a server. With fewer, NIC i is on rail i mod rails.
    pub rails: u32,
}

fn n_rails(fabric: &Fabric, given: u32) -> Result<u32, TopologyError> {
    let nics = fabric.nics_per_server;
    match given {
        0 => Ok(nics),
        r if r <= nics => Ok(r),
        r => Err(bad(
            "topology.rails",
            r,
            format!("servers have {nics} NICs (cluster.nics_per_server), so at most {nics} rails"),
        )),
    }
}

impl RailOptimized {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let rails = n_rails(fabric, self.rails)?;
        let servers = fabric.n_servers();
        let (pods, servers_per_pod) = match (self.pods, self.servers_per_pod) {
            (0, given) => {
                let at_most = if given == 0 { SERVERS_PER_POD } else { given };
                let servers_per_pod = servers.div_ceil(servers.div_ceil(at_most));
                (servers.div_ceil(servers_per_pod), servers_per_pod)
            }
            (pods, _) => equal_pods(pods, servers, "servers")?,
        };
        let hosts_per_leaf = servers_per_pod * fabric.nics_per_server.div_ceil(rails);
        let n_leaves = pods * rails;
        let n_spines = match (n_leaves, self.spines) {
            // A single leaf needs no spine.
            (1, 0) => 0,
            _ => fabric.uplinks(hosts_per_leaf, 1, self.spines, self.oversubscription)?,
        };
        let hosts = fabric.n_hosts();
        let n_links = fabric.n_host_links() + u64::from(n_leaves) * u64::from(n_spines);
        let mut b = FabricBuilder::new(fabric, u64::from(n_leaves) + u64::from(n_spines), n_links)?;
        let (leaf_0, spine_0) = (hosts, hosts + n_leaves);
        for h in 0..hosts {
            let (server, nic) = (h / fabric.nics_per_server, h % fabric.nics_per_server);
            b.host_link(h, leaf_0 + server / servers_per_pod * rails + nic % rails);
        }
        for leaf in 0..n_leaves {
            for s in 0..n_spines {
                b.uplink(leaf_0 + leaf, spine_0 + s);
            }
        }
        b.build()
    }
}

impl RailOnly {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let rails = n_rails(fabric, self.rails)?;
        let hosts = fabric.n_hosts();
        let mut b = FabricBuilder::new(fabric, u64::from(rails), fabric.n_host_links())?;
        for h in 0..hosts {
            b.host_link(h, hosts + h % fabric.nics_per_server % rails);
        }
        b.build()
    }
}
