//! Dragonfly and dragonfly+: groups of switches, and links between all pairs of groups.
//!
//! Layer: topology. Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008; Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling
//! Datacenters", HiPINEB 2017. If there are fewer groups than links of a group allow, the links are shared evenly among the other groups.

use super::builder::FabricBuilder;
use super::fabric::{Fabric, bad};
use crate::topology::{Network, NodeIdx, TopologyError};

/// Parameters of a dragonfly. 0 stands for a value that is derived from the others, in Kim's balance of `routers_per_group = 2 hosts = 2 global_links`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dragonfly {
    /// Most hosts of a router.
    pub hosts_per_router: u32,
    /// Routers of a group, each linked to each other one.
    pub routers_per_group: u32,
    /// Links of a router to other groups.
    pub global_links: u32,
    /// Number of groups. 0: as many as the hosts need.
    pub groups: u32,
}

/// Parameters of a dragonfly+, whose groups are leaves and spines. 0 stands for a value that is derived from the others: all four counts of a group are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DragonflyPlus {
    /// Most hosts of a leaf.
    pub hosts_per_leaf: u32,
    /// Leaves of a group, each linked to each spine of it.
    pub leaves_per_group: u32,
    /// Spines of a group.
    pub spines: u32,
    /// Links of a spine to other groups.
    pub global_links: u32,
    /// Number of groups. 0: as many as the hosts need.
    pub groups: u32,
}

/// Groups of a dragonfly, and how they are joined.
struct Groups {
    n: u32,
    /// Links between each pair of groups.
    links_of_pair: u32,
    /// Links to other groups of one switch.
    links_of_switch: u32,
}

impl Groups {
    /// The groups that `hosts` hosts need, or as many as are given. `channels` is the number of links of a group to others.
    fn new(
        hosts: u32,
        hosts_per_group: u64,
        channels: u64,
        links_of_switch: u32,
        given: u32,
    ) -> Result<Groups, TopologyError> {
        let needed = u64::from(hosts).div_ceil(hosts_per_group);
        let n = if given == 0 { needed } else { u64::from(given) };
        if n < needed {
            let problem = format!("{hosts} hosts at {hosts_per_group} a group need {needed} groups");
            return Err(bad("topology.groups", n, problem));
        }
        if n > channels + 1 {
            let problem = format!(
                "a group of {channels} global links reaches {channels} others; more hosts a switch, switches a group or global links would do"
            );
            return Err(bad("topology.groups", n, problem));
        }
        let links_of_pair = if n > 1 { (channels / (n - 1)) as u32 } else { 0 };
        Ok(Groups { n: n as u32, links_of_pair, links_of_switch })
    }

    fn n_links(&self) -> u64 {
        u64::from(self.n) * u64::from(self.n.saturating_sub(1)) / 2 * u64::from(self.links_of_pair)
    }

    /// Adds the links between groups. `switch(group, i)` is the `i`-th switch with such links of a group.
    ///
    /// Group `g` counts the others from its right neighbour on, once for each link of a pair, and its switches take the links in this order.
    fn join(&self, b: &mut FabricBuilder, switch: impl Fn(u32, u32) -> NodeIdx) {
        let port = |group: u32, distance: u32, copy: u32| {
            switch(group, (copy * (self.n - 1) + distance - 1) / self.links_of_switch)
        };
        for low in 0..self.n {
            for high in low + 1..self.n {
                for copy in 0..self.links_of_pair {
                    b.global_link(port(low, high - low, copy), port(high, self.n + low - high, copy));
                }
            }
        }
    }
}

/// The switch of a host, where so many hosts are shared out to so many switches.
fn spread(host: u32, hosts: u32, switches: u32) -> u32 {
    (u64::from(host) * u64::from(switches) / u64::from(hosts)) as u32
}

/// The value if it is given, else the one that is derived.
fn given_or(given: u32, derived: u32) -> u32 {
    if given == 0 { derived } else { given }
}

impl Dragonfly {
    /// Builds the network. Hosts are shared out evenly to all routers, in order.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let hosts = fabric.n_hosts();
        let Dragonfly { hosts_per_router: p, routers_per_group: a, global_links: h, groups } = self.balanced(hosts);
        let channels = u64::from(a) * u64::from(h);
        let groups = Groups::new(hosts, u64::from(p) * u64::from(a), channels, h, groups)?;
        let local = u64::from(groups.n) * u64::from(a) * u64::from(a - 1) / 2;
        let n_links = fabric.n_host_links().saturating_add(local).saturating_add(groups.n_links());
        let mut b = FabricBuilder::new(fabric, u64::from(groups.n) * u64::from(a), n_links)?;
        for host in 0..hosts {
            b.host_link(host, hosts + spread(host, hosts, groups.n * a));
        }
        for group in 0..groups.n {
            for low in 0..a {
                for high in low + 1..a {
                    b.uplink(hosts + group * a + low, hosts + group * a + high);
                }
            }
        }
        groups.join(&mut b, |group, router| hosts + group * a + router);
        b.build_named((0..groups.n * a).map(|r| format!("group{}.router{}", r / a, r % a)).collect())
    }

    /// The parameters with what was left out. One that is given decides the others by the balance; if none is, the smallest balanced network is taken.
    fn balanced(&self, hosts: u32) -> Dragonfly {
        let unit = [self.hosts_per_router, self.global_links, self.routers_per_group.div_ceil(2)]
            .into_iter()
            .find(|&n| n > 0)
            .unwrap_or_else(|| {
                let holds = |h: u64| 2 * h * h * (2 * h * h + 1);
                (1u32..).find(|&h| holds(u64::from(h)) >= u64::from(hosts)).unwrap_or(1)
            });
        Dragonfly {
            hosts_per_router: given_or(self.hosts_per_router, unit),
            routers_per_group: given_or(self.routers_per_group, 2 * unit),
            global_links: given_or(self.global_links, unit),
            groups: self.groups,
        }
    }
}

impl DragonflyPlus {
    /// Builds the network. Hosts are shared out evenly to all leaves, in order.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let hosts = fabric.n_hosts();
        let DragonflyPlus { hosts_per_leaf: p, leaves_per_group: l, spines: s, global_links: h, groups } =
            self.balanced(hosts);
        let groups = Groups::new(hosts, u64::from(p) * u64::from(l), u64::from(s) * u64::from(h), h, groups)?;
        let (n_leaves, n_spines) = (u64::from(groups.n) * u64::from(l), u64::from(groups.n) * u64::from(s));
        let local = n_leaves * u64::from(s);
        let n_links = fabric.n_host_links().saturating_add(local).saturating_add(groups.n_links());
        let mut b = FabricBuilder::new(fabric, n_leaves.saturating_add(n_spines), n_links)?;
        let spine_0 = hosts + n_leaves as u32;
        for host in 0..hosts {
            b.host_link(host, hosts + spread(host, hosts, n_leaves as u32));
        }
        for leaf in 0..n_leaves as u32 {
            for spine in 0..s {
                b.uplink(hosts + leaf, spine_0 + leaf / l * s + spine);
            }
        }
        groups.join(&mut b, |group, spine| spine_0 + group * s + spine);
        let leaves = (0..n_leaves as u32).map(|i| format!("group{}.leaf{}", i / l, i % l));
        b.build_named(leaves.chain((0..n_spines as u32).map(|i| format!("group{}.spine{}", i / s, i % s))).collect())
    }

    /// The parameters with what was left out: equal counts, of the smallest network if none is given.
    fn balanced(&self, hosts: u32) -> DragonflyPlus {
        let unit = [self.hosts_per_leaf, self.spines, self.leaves_per_group, self.global_links]
            .into_iter()
            .find(|&n| n > 0)
            .unwrap_or_else(|| {
                let holds = |r: u64| r * r * (r * r + 1);
                (1u32..).find(|&r| holds(u64::from(r)) >= u64::from(hosts)).unwrap_or(1)
            });
        DragonflyPlus {
            hosts_per_leaf: given_or(self.hosts_per_leaf, unit),
            leaves_per_group: given_or(self.leaves_per_group, unit),
            spines: given_or(self.spines, unit),
            global_links: given_or(self.global_links, unit),
            groups: self.groups,
        }
    }
}
