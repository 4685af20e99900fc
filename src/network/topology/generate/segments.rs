//! Segments of servers under one tier of spines, with one leaf for each port of a NIC: HPN, DCN+ and Spectrum-X.
//!
//! Layer: topology. HPN: Qian et al., "Alibaba HPN: A Data Center Network for Large Language Model Training", SIGCOMM 2024. Its third tier, which joins pods of
//! 15 segments, is not modelled: one pod has 15,360 GPUs. DCN+ is the network that it replaced.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, OversubscriptionMilli, bad};
use crate::topology::{Network, TopologyError};

/// Parameters of a fabric of segments. Every port of a NIC is on a leaf of its own: two ports are a dual ToR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Servers of a segment, at least 1. The last segment may have fewer.
    pub servers_per_segment: u32,
    /// Whether each NIC of a server has leaves of its own rail. Else the NICs of a segment share its leaves.
    pub by_rail: bool,
    /// 1: every leaf is linked to every spine. Else the number of ports of a NIC: leaves of port `p` are linked to spines of plane `p` alone.
    pub planes: u32,
    /// Spines of one plane, each linked once to every leaf of its plane. 0: derived from the oversubscription.
    pub spines: u32,
    /// Host capacity over uplink capacity at a leaf, in thousandths, where `spines` is 0.
    pub oversubscription: OversubscriptionMilli,
}

impl Segments {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let (ports, nics) = (fabric.nic_ports, fabric.nics_per_server);
        if self.planes != 1 && self.planes != ports {
            let problem = format!("it must be 1, or the ports of a NIC: cluster.nic_ports = {ports}");
            return Err(bad("topology.planes", self.planes, problem));
        }
        if self.servers_per_segment == 0 {
            return Err(bad("topology.servers_per_pod", 0, "it must be at least 1"));
        }
        let per_segment = self.servers_per_segment.min(fabric.n_servers());
        let n_segments = fabric.n_servers().div_ceil(per_segment);
        let (rails, hosts_per_leaf) = if self.by_rail { (nics, per_segment) } else { (1, per_segment * nics) };
        let leaves = u64::from(n_segments) * u64::from(rails) * u64::from(ports);
        let spines = match (n_segments * rails, self.spines) {
            // All NICs are on the same leaves.
            (1, 0) => 0,
            _ => fabric.uplinks(hosts_per_leaf, ports, self.spines, self.oversubscription)?,
        };
        let n_spines = u64::from(self.planes) * u64::from(spines);
        let n_links = fabric.n_host_links() + leaves * u64::from(spines);
        let mut b = FabricBuilder::new(fabric, leaves + n_spines, n_links)?;
        let hosts = fabric.n_hosts();
        let (leaf_0, spine_0) = (hosts, hosts + leaves as u32);
        for h in 0..hosts {
            let (server, nic) = (h / nics, h % nics);
            let group = server / per_segment * rails + if self.by_rail { nic } else { 0 };
            for port in 0..ports {
                b.port_link(h, leaf_0 + group * ports + port);
            }
        }
        for leaf in 0..leaves as u32 {
            let plane = if self.planes == 1 { 0 } else { leaf % ports };
            for s in 0..spines {
                b.uplink(leaf_0 + leaf, spine_0 + plane * spines + s);
            }
        }
        b.build_named(self.names(n_segments, rails, ports, spines))
    }

    /// Names of the leaves, then of the spines.
    fn names(&self, n_segments: u32, rails: u32, ports: u32, spines: u32) -> Vec<String> {
        let rail = |r: u32| if self.by_rail { format!(".rail{r}") } else { String::new() };
        let tor = |t: u32| if ports > 1 || !self.by_rail { format!(".tor{t}") } else { String::new() };
        let plane = |p: u32| if self.planes > 1 { format!("plane{p}.") } else { String::new() };
        let groups = (0..n_segments).flat_map(|s| (0..rails).map(move |r| (s, r)));
        let leaves = groups.flat_map(|(s, r)| (0..ports).map(move |t| (s, r, t)));
        let spines = (0..self.planes).flat_map(|p| (0..spines).map(move |s| (p, s)));
        leaves
            .map(|(s, r, t)| format!("segment{s}{}{}", rail(r), tor(t)))
            .chain(spines.map(|(p, s)| format!("{}spine{s}", plane(p))))
            .collect()
    }
}
