//! Clos networks of two tiers (leaf, spine) and three (leaf, aggregation, core), with oversubscription at the leaves.
//!
//! Layer: topology. Leaves take hosts in order, regardless of servers; `rail` has one leaf per rail.

use super::{Builder, Fabric, OversubscriptionMilli, bad, power_of_two_root, uplinks};
use crate::topology::{Network, TopologyError};

/// Parameters of a Clos network. 0 stands for a value that is derived from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
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
        Clos { tiers: 2, hosts_per_leaf: 0, spines: 0, pods: 0, cores: 0, oversubscription: 1000 }
    }
}

impl Clos {
    /// Builds the network.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
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
            _ => uplinks(fabric, per_leaf, self.spines, self.oversubscription)?,
        };
        let n_links = fabric.n_host_links() + u64::from(n_leaves) * u64::from(n_spines);
        let mut b = Builder::new(fabric, u64::from(n_leaves) + u64::from(n_spines), n_links)?;
        let (leaf_0, spine_0) = (hosts, hosts + n_leaves);
        for h in 0..hosts {
            b.host_link(h, leaf_0 + h / per_leaf);
        }
        for leaf in 0..n_leaves {
            for s in 0..n_spines {
                b.uplink(leaf_0 + leaf, spine_0 + s);
            }
        }
        b.build()
    }

    fn three_tiers(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        let hosts = fabric.n_hosts();
        let per_leaf = self.hosts_per_leaf(hosts);
        let n_leaves = hosts.div_ceil(per_leaf);
        let pods = match self.pods {
            0 => n_leaves.div_ceil(per_leaf).max(2).min(n_leaves),
            p if p > n_leaves => {
                let problem = format!("{hosts} hosts at {per_leaf} a leaf make {n_leaves} leaves, fewer than pods");
                return Err(bad("topology.pods", p, problem));
            }
            p => p,
        };
        let leaves_per_pod = n_leaves.div_ceil(pods);
        let pods = n_leaves.div_ceil(leaves_per_pod);
        let aggs = uplinks(fabric, per_leaf, self.spines, self.oversubscription)?;
        // Aggregation switch j of every pod is linked to the j-th group of cores.
        let group = match self.cores {
            0 => leaves_per_pod,
            c if c % aggs != 0 => {
                let problem = format!("it must be a multiple of the {aggs} aggregation switches of a pod");
                return Err(bad("topology.cores", c, problem));
            }
            c => c / aggs,
        };
        let n_aggs = u64::from(pods) * u64::from(aggs);
        let n_cores = u64::from(aggs) * u64::from(group);
        let lower = fabric.n_host_links() + u64::from(n_leaves) * u64::from(aggs);
        let n_links = n_aggs.saturating_mul(u64::from(group)).saturating_add(lower);
        let mut b = Builder::new(fabric, u64::from(n_leaves) + n_aggs + n_cores, n_links)?;
        let (leaf_0, agg_0) = (hosts, hosts + n_leaves);
        let core_0 = agg_0 + pods * aggs;
        for h in 0..hosts {
            b.host_link(h, leaf_0 + h / per_leaf);
        }
        for leaf in 0..n_leaves {
            for j in 0..aggs {
                b.uplink(leaf_0 + leaf, agg_0 + leaf / leaves_per_pod * aggs + j);
            }
        }
        for a in 0..pods * aggs {
            for c in 0..group {
                b.uplink(agg_0 + a, core_0 + a % aggs * group + c);
            }
        }
        b.build()
    }
}
