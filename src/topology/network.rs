//! The network as a graph: nodes, links and the directed arcs over them.
//!
//! Layer: topology. What generators and file readers produce and everything below consumes.

/// Index of a node in [`Network::nodes`].
pub type NodeIdx = u32;

/// A directed use of a link: `2 * link` from `a` to `b`, `2 * link + 1` from `b` to `a`.
/// An arc names its transmitting port (and the receiving port at its far end) at once.
pub type ArcIdx = u32;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Sends and receives; never forwards. Each of its links is one NIC.
    Host,
    /// Stores and forwards.
    Switch,
    /// A switch inside a server (NVSwitch). Its links are analytical: no packet path crosses it.
    NvSwitch,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: NodeKind,
    /// The id users know: the file's id, or the position for generated topologies. Unique, ascending in `Network::nodes`.
    pub id: u32,
    /// The server this host belongs to (dense from 0); `u32::MAX` for switches. Flows between hosts of one server
    /// are analytical where `Network::nvlink` is given.
    pub server: u32,
}

/// One bidirectional link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub a: NodeIdx,
    pub b: NodeIdx,
    /// Bits per second, a whole number of Mb/s, in each direction.
    pub rate_bps: u64,
    /// One-way propagation delay plus the receiving switch's latency, picoseconds, at least 1.
    pub delay_ps: u64,
}

/// How two GPUs of one server reach each other, analytically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLink {
    pub rate_bps: u64,
    /// One way, both hops.
    pub latency_ps: u64,
}

/// A validated network. INVARIANT (checked by `Network::new` in `topology::validate`): node indices are in range, no self-links, every host has a link to a
/// switch or host, node ids are unique and ascending, rates and delays are in range.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Network {
    pub nodes: Vec<Node>,
    /// In the order of the file or generator. Ports of a node are numbered in this order.
    pub links: Vec<Link>,
    /// Host node of each GPU rank. For a file: the hosts in ascending id.
    pub ranks: Vec<NodeIdx>,
    pub nvlink: Option<NvLink>,
    /// Whether switches are called by their tier (generated fabrics) rather than by their id (files).
    pub tiered: bool,
}

impl Network {
    /// What people call each node: `host12`, `leaf3`, `spine0`; of a file `host12` and `switch70`, by the file's ids.
    ///
    /// A host of a generated fabric has the number of its GPU's rank, or of its NIC where servers have fewer NICs than GPUs. Switches count
    /// within their tier, from 0: leaves have hosts, above them are spines, or aggregation switches (`agg`) and cores.
    pub fn names(&self) -> Vec<String> {
        let tiers = if self.tiered { self.tiers() } else { Vec::new() };
        let top = tiers.iter().copied().max().unwrap_or(0);
        let mut counts = vec![0u32; top as usize + 1];
        let name = |(at, node): (usize, &Node)| {
            let tier = tiers.get(at).copied().unwrap_or(0);
            let word = match (node.kind, tier, top) {
                (NodeKind::Host, ..) => "host",
                (NodeKind::NvSwitch, ..) => "nvswitch",
                (NodeKind::Switch, 1, _) => "leaf",
                (NodeKind::Switch, 2, 2) => "spine",
                (NodeKind::Switch, 2, 3) => "agg",
                (NodeKind::Switch, 3, 3) => "core",
                (NodeKind::Switch, ..) => return format!("switch{}", node.id),
            };
            if tier == 0 {
                return format!("{word}{}", node.id);
            }
            let count = &mut counts[tier as usize];
            *count += 1;
            format!("{word}{}", *count - 1)
        };
        self.nodes.iter().enumerate().map(name).collect()
    }

    /// How many links each node is from the nearest host, packet links alone; 0 for hosts and what no host reaches.
    pub fn tiers(&self) -> Vec<u32> {
        let out = self.out_arcs();
        let mut tiers = vec![0u32; self.nodes.len()];
        let is_host = |n: &NodeIdx| self.nodes[*n as usize].kind == NodeKind::Host;
        let mut reached: Vec<NodeIdx> = (0..self.nodes.len() as NodeIdx).filter(is_host).collect();
        for tier in 1.. {
            let mut next = Vec::new();
            for &node in &reached {
                for &arc in &out[node as usize] {
                    let to = self.arc_to(arc);
                    if tiers[to as usize] == 0 && !is_host(&to) && self.is_packet_link(self.arc_link(arc)) {
                        tiers[to as usize] = tier;
                        next.push(to);
                    }
                }
            }
            if next.is_empty() {
                return tiers;
            }
            reached = next;
        }
        tiers
    }

    /// The transmitting node of an arc.
    pub fn arc_from(&self, arc: ArcIdx) -> NodeIdx {
        let l = &self.links[(arc / 2) as usize];
        if arc.is_multiple_of(2) { l.a } else { l.b }
    }

    /// The receiving node of an arc.
    pub fn arc_to(&self, arc: ArcIdx) -> NodeIdx {
        self.arc_from(arc ^ 1)
    }

    /// The link under an arc.
    pub fn arc_link(&self, arc: ArcIdx) -> &Link {
        &self.links[(arc / 2) as usize]
    }

    /// Outgoing arcs of every node, in port order (the order of `links`). NvSwitch links are included.
    pub fn out_arcs(&self) -> Vec<Vec<ArcIdx>> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for (i, l) in self.links.iter().enumerate() {
            out[l.a as usize].push(2 * i as ArcIdx);
            out[l.b as usize].push(2 * i as ArcIdx + 1);
        }
        out
    }

    /// Ids of switches that no link joins to anything: nothing crosses them.
    pub fn isolated_switches(&self) -> Vec<u32> {
        let mut linked = vec![false; self.nodes.len()];
        for link in &self.links {
            linked[link.a as usize] = true;
            linked[link.b as usize] = true;
        }
        let isolated = self.nodes.iter().zip(linked).filter(|(node, linked)| node.kind != NodeKind::Host && !linked);
        isolated.map(|(node, _)| node.id).collect()
    }

    /// Whether the link crosses at packet level (neither end is an NVSwitch).
    pub fn is_packet_link(&self, link: &Link) -> bool {
        self.nodes[link.a as usize].kind != NodeKind::NvSwitch && self.nodes[link.b as usize].kind != NodeKind::NvSwitch
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::{Clos, Fabric, RailOptimized, parse_ns3, to_ns3};

    fn fabric() -> Fabric {
        Fabric {
            gpus: 8,
            gpus_per_server: 2,
            nics_per_server: 2,
            nic_ports: 1,
            link_bps: 100_000_000_000,
            uplink_bps: 100_000_000_000,
            link_delay_ps: 1000,
            switch_latency_ps: 0,
            nvlink: None,
        }
    }

    #[test]
    fn nodes_are_called_by_what_they_are() {
        let rail = RailOptimized::default().build(&fabric()).unwrap();
        assert_eq!(rail.names()[6..12], ["host6", "host7", "leaf0", "leaf1", "spine0", "spine1"].map(String::from));
        let clos = Clos { tiers: 3, hosts_per_leaf: 2, ..Clos::default() }.build(&fabric()).unwrap();
        let names = clos.names();
        assert_eq!(names[8..12], ["leaf0", "leaf1", "leaf2", "leaf3"].map(String::from));
        assert!(names[12] == "agg0" && names.iter().any(|n| n == "core0"), "{names:?}");
        let file = parse_ns3("t", &to_ns3(&rail).unwrap()).unwrap().network;
        assert_eq!(file.names()[7..9], ["host7", "switch8"].map(String::from), "a file's ids are its own");
    }
}
