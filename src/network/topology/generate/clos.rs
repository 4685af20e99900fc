//! Clos networks of two tiers (leaf, spine) and three (leaf, aggregation, core), with oversubscription at the leaves, in one plane or several.
//!
//! Layer: topology. Leaves take hosts in order, regardless of servers; `rail` has one leaf per rail. Several planes are Clos networks side by side that meet at
//! the hosts only: each port of a NIC is in one of them.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, OversubscriptionMilli, bad, equal_pods};
use crate::topology::{Network, TopologyError};

/// Parameters of a Clos network. 0 stands for a value that is derived from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
    /// Number of planes: it divides the ports of a NIC. Counts of switches below are those of one plane.
    pub planes: u32,
    /// Number of tiers of switches: 2 or 3.
    pub tiers: u32,
    /// Hosts below one leaf. 0: the power of two that balances the tiers (about the square root of the hosts, or the cube root).
    pub hosts_per_leaf: u32,
    /// Number of spines; with three tiers, of aggregation switches per pod. Every leaf (of the pod) has one link to each. 0: derived from the oversubscription.
    pub spines: u32,
    /// Number of pods, for three tiers only. 0: as many as leaves of the balanced size need, at least 2.
    pub pods: u32,
    /// Total number of core switches, for three tiers only: a multiple of the aggregation switches per pod. 0: as many as make the upper tier 1:1.
    pub cores: u32,
    /// Host capacity over uplink capacity at a leaf, in thousandths, where `spines` is 0.
    pub oversubscription: OversubscriptionMilli,
}

impl Default for Clos {
    fn default() -> Clos {
        Clos { planes: 1, tiers: 2, hosts_per_leaf: 0, spines: 0, pods: 0, cores: 0, oversubscription: 1000 }
    }
}

impl Clos {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let ports = fabric.nic_ports;
        if self.planes == 0 || !ports.is_multiple_of(self.planes) {
            let problem = format!("the {ports} ports of a NIC (cluster.nic_ports) must divide among the planes");
            return Err(bad("topology.planes", self.planes, problem));
        }
        match self.tiers {
            2 => self.two_tiers(fabric),
            3 => self.three_tiers(fabric),
            t => Err(bad("topology.tiers", t, "a Clos network has 2 or 3 tiers")),
        }
    }

    fn hosts_per_leaf(&self, n_hosts: u32) -> u32 {
        match self.hosts_per_leaf {
            0 => power_of_two_root(n_hosts, self.tiers),
            n => n.min(n_hosts),
        }
    }

    fn two_tiers(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        for (key, value) in [("topology.pods", self.pods), ("topology.cores", self.cores)] {
            if value > 0 {
                return Err(bad(key, value, "a Clos network of two tiers has none; set topology.tiers = 3"));
            }
        }
        let hosts = fabric.n_hosts();
        let per_leaf = self.hosts_per_leaf(hosts);
        let n_leaves = hosts.div_ceil(per_leaf);
        let n_spines = match (n_leaves, self.spines) {
            // A single leaf needs no spine.
            (1, 0) => 0,
            _ => fabric.uplinks(per_leaf, self.planes, self.spines, self.oversubscription)?,
        };
        let planes = u64::from(self.planes);
        let n_links = fabric.n_host_links() + planes * u64::from(n_leaves) * u64::from(n_spines);
        let n_switches = planes * (u64::from(n_leaves) + u64::from(n_spines));
        let mut b = FabricBuilder::new(fabric, n_switches, n_links)?;
        let (leaf_0, spine_0) = (hosts, hosts + self.planes * n_leaves);
        self.host_links(&mut b, fabric, per_leaf, n_leaves);
        for plane in 0..self.planes {
            for leaf in 0..n_leaves {
                for s in 0..n_spines {
                    b.uplink(leaf_0 + plane * n_leaves + leaf, spine_0 + plane * n_spines + s);
                }
            }
        }
        self.finish(b, &[("leaf", n_leaves), ("spine", n_spines)])
    }

    /// Joins every port of every host to its leaf, in its plane.
    fn host_links(&self, b: &mut FabricBuilder, fabric: &Fabric, per_leaf: u32, n_leaves: u32) {
        let hosts = fabric.n_hosts();
        for h in 0..hosts {
            for port in 0..fabric.nic_ports {
                b.port_link(h, hosts + port % self.planes * n_leaves + h / per_leaf);
            }
        }
    }

    /// Finishes the network. Switches stand tier by tier, in each tier plane by plane; `tiers` has the name of a tier and its switches in one plane.
    fn finish(&self, b: FabricBuilder, tiers: &[(&str, u32)]) -> Result<Network, TopologyError> {
        if self.planes == 1 {
            return b.build();
        }
        let named = |&(tier, count): &(&str, u32)| {
            let tier = tier.to_string();
            (0..self.planes).flat_map(move |plane| {
                let tier = tier.clone();
                (0..count).map(move |i| format!("plane{plane}.{tier}{i}"))
            })
        };
        b.build_named(tiers.iter().flat_map(named).collect())
    }

    fn three_tiers(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        let hosts = fabric.n_hosts();
        let per_leaf = self.hosts_per_leaf(hosts);
        let n_leaves = hosts.div_ceil(per_leaf);
        let leaves = format!("leaves of {per_leaf} hosts");
        let (pods, leaves_per_pod) = match self.pods {
            0 => {
                let at_most = n_leaves.div_ceil(per_leaf).max(2).min(n_leaves);
                let leaves_per_pod = n_leaves.div_ceil(at_most);
                (n_leaves.div_ceil(leaves_per_pod), leaves_per_pod)
            }
            pods => equal_pods(pods, n_leaves, &leaves)?,
        };
        let aggs = fabric.uplinks(per_leaf, self.planes, self.spines, self.oversubscription)?;
        // Aggregation switch j of every pod is linked to the j-th group of cores.
        let group = match self.cores {
            // As much rate upward as downward.
            0 => (u64::from(leaves_per_pod) * fabric.uplink_bps).div_ceil(fabric.core_bps) as u32,
            c if c % aggs != 0 => {
                let problem = format!("it must be a multiple of the {aggs} aggregation switches of a pod");
                return Err(bad("topology.cores", c, problem));
            }
            c => c / aggs,
        };
        let planes = u64::from(self.planes);
        let n_aggs = u64::from(pods) * u64::from(aggs);
        let n_cores = u64::from(aggs) * u64::from(group);
        let lower = u64::from(n_leaves) * u64::from(aggs);
        let upper = n_aggs.saturating_mul(u64::from(group));
        let n_links = planes.saturating_mul(upper.saturating_add(lower)).saturating_add(fabric.n_host_links());
        let n_switches = planes.saturating_mul(u64::from(n_leaves) + n_aggs + n_cores);
        let mut b = FabricBuilder::new(fabric, n_switches, n_links)?;
        let (n_aggs, n_cores) = (n_aggs as u32, n_cores as u32);
        let (leaf_0, agg_0) = (hosts, hosts + self.planes * n_leaves);
        let core_0 = agg_0 + self.planes * n_aggs;
        self.host_links(&mut b, fabric, per_leaf, n_leaves);
        for plane in 0..self.planes {
            for leaf in 0..n_leaves {
                for j in 0..aggs {
                    b.uplink(
                        leaf_0 + plane * n_leaves + leaf,
                        agg_0 + plane * n_aggs + leaf / leaves_per_pod * aggs + j,
                    );
                }
            }
        }
        for plane in 0..self.planes {
            for a in 0..n_aggs {
                for c in 0..group {
                    b.core_link(agg_0 + plane * n_aggs + a, core_0 + plane * n_cores + a % aggs * group + c);
                }
            }
        }
        self.finish(b, &[("leaf", n_leaves), ("agg", n_aggs), ("core", n_cores)])
    }
}

/// Smallest power of two `x` with `x^power >= n`.
pub(super) fn power_of_two_root(n: u32, power: u32) -> u32 {
    let mut x = 1u32;
    while u64::from(x).pow(power) < u64::from(n) {
        x *= 2;
    }
    x
}
