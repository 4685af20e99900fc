//! The network as a graph: nodes, links and the directed arcs over them.
//!
//! Layer: topology. Generators and file readers produce it, and all layers below use it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hyperfold_base::units::{BPS_PER_MBPS, MAX_RATE_BPS};

/// Index of a node in [`Network::nodes`].
pub type NodeIdx = u32;

/// A directed use of a link: `2 * link` from `a` to `b`, `2 * link + 1` from `b` to `a`. So an arc identifies its transmitting port, and the receiving port at
/// its far end.
pub type ArcIdx = u32;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Sends and receives; never forwards. Each of its links is one NIC.
    Host,
    /// Stores and forwards.
    Switch,
    /// A switch inside a server (NVSwitch). Its links are analytical: no packet path crosses it.
    NvSwitch,
    /// The part of a switch that reduces: see [`Reducer`]. It sends and receives as a host does, and belongs to no GPU.
    Reducer,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Host, switch, or switch inside a server.
    pub kind: NodeKind,
    /// The id that users know: the file's id, or the position in generated topologies. Ids are unique and ascending in `Network::nodes`.
    pub id: u32,
    /// The server of this host, or of a switch inside a server (dense from 0); `u32::MAX` for other switches. Flows between hosts of one server are analytical if `Network::nvlink` is given.
    pub server: u32,
}

impl Node {
    /// Whether packets begin and end here: it is a host or a reducer.
    pub fn is_end(&self) -> bool {
        matches!(self.kind, NodeKind::Host | NodeKind::Reducer)
    }
}

/// One bidirectional link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Node at one end; even arcs lead away from it.
    pub a: NodeIdx,
    /// Node at the other end; odd arcs lead away from it.
    pub b: NodeIdx,
    /// Rate in each direction in bits per second, a whole number of Mb/s. [`Network::arc_rate`] knows directions that are slower.
    pub rate_bps: u64,
    /// One-way propagation delay in ps, at least 1. It includes the links' shares of switch latencies.
    pub delay_ps: u64,
}

/// A direction of a link that runs at less than the link's rate for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowArc {
    /// The direction.
    pub arc: ArcIdx,
    /// Its rate in bits per second, a whole number of Mb/s.
    pub rate_bps: u64,
}

/// A time at which a circuit of an optical network does not carry data, as its schedule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DarkSpan {
    /// Index of the link that the circuit is.
    pub link: u32,
    /// Time in ps at which it goes dark; `None`: it is dark at the beginning.
    pub down_ps: Option<u64>,
    /// Time in ps at which it carries data; `None`: it does not come back.
    pub up_ps: Option<u64>,
    /// Time in ps before it goes dark from which paths avoid it.
    pub drain_ps: u64,
}

/// The analytical path between two GPUs of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLink {
    /// Rate of a GPU in each direction.
    pub rate_bps: u64,
    /// One-way latency over both hops.
    pub latency_ps: u64,
}

/// The part of a switch that reduces what one neighbour sends, and sends what this neighbour gets.
///
/// A switch forwards packets and computes nothing. What it reduces goes to nodes of its own, one for each neighbour that takes part, at the rate of the links
/// to that neighbour. So packets load the fabric's links as they do where a switch reduces, and no reducer slows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reducer {
    /// The switch.
    pub switch: NodeIdx,
    /// Host or switch that is linked to it.
    pub neighbour: NodeIdx,
}

/// What stands in the name of a reducer between its switch and its neighbour.
pub const REDUCER_WORD: &str = ".reducer.";

/// A validated network. INVARIANT (checked by `Network::new` in `topology::validate`): node indices are in range; there are no self-links; every host has a
/// link to a switch or host; node ids are unique and ascending; rates and delays are in range.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Network {
    /// Nodes in ascending order of their ids.
    pub nodes: Vec<Node>,
    /// Links in the order of the file or generator. Ports of a node are numbered in this order.
    pub links: Vec<Link>,
    /// Host node of each GPU rank. For a file: the hosts in ascending id.
    pub ranks: Vec<NodeIdx>,
    /// Path between the GPUs of a server. `None`: they have none.
    pub nvlink: Option<NvLink>,
    /// How switches are named.
    pub switch_names: SwitchNames,
    /// Directions of packet links at a reduced rate, ascending by arc. Neither routing nor senders know of them.
    pub slow_arcs: Vec<SlowArc>,
    /// Links that lose packets for the whole run, as the network's file says: index of the link, ascending, and the share of packets in units of 2^-32, not 0.
    pub lossy_links: Vec<(u32, u32)>,
    /// Whether switches may reduce what is simulated packet by packet. Then reducers are added where collectives need them.
    pub may_reduce: bool,
    /// Links that have failed before the experiment begins, by index. Trees of switches that reduce avoid them.
    pub failed: BTreeSet<u32>,
    /// Times at which links are dark because they are circuits that come and go, ordered by link and time.
    pub dark: Vec<DarkSpan>,
    /// Nodes of reducers, in the order in which they were added, with the switches that they belong to.
    pub reducers: Vec<(NodeIdx, Reducer)>,
}

/// How the switches of a network are named for users.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SwitchNames {
    /// `switch` and the id, as the file of the network has it.
    #[default]
    ById,
    /// The tier above the hosts, and the position in it: `leaf3`.
    ByTier,
    /// These names, in the order of the switches: `group0.router3`. Switches beyond the last name are named by id.
    Given(Vec<String>),
}

impl Network {
    /// Name of each node for users: `host12`, `leaf3`, `spine0`; for a file `host12` and `switch70`, by the file's ids. Fabrics with groups, planes or dimensions
    /// name switches by these: `group0.router3`.
    ///
    /// A reducer has the names of its switch and its neighbour: `leaf3.reducer.host12`. A host of a generated fabric has the number of its GPU's rank, or of its NIC if servers have fewer NICs than GPUs. Switches are counted within their
    /// tier, from 0: leaves have hosts; above them are spines, or aggregation switches (`agg`) and cores.
    pub fn names(&self) -> Vec<String> {
        let tiers = match self.switch_names {
            SwitchNames::ByTier => self.tiers(),
            _ => Vec::new(),
        };
        let mut given = match &self.switch_names {
            SwitchNames::Given(names) => names.as_slice(),
            _ => &[],
        }
        .iter();
        let top = tiers.iter().copied().max().unwrap_or(0);
        let mut counts = vec![0u32; top as usize + 1];
        let name = |(node_idx, node): (usize, &Node)| {
            let tier = tiers.get(node_idx).copied().unwrap_or(0);
            let word = match (node.kind, tier, top) {
                (NodeKind::Host, ..) => "host",
                (NodeKind::NvSwitch, ..) => "nvswitch",
                (NodeKind::Reducer, ..) => "reducer",
                (NodeKind::Switch, 1, _) => "leaf",
                (NodeKind::Switch, 2, 2) => "spine",
                (NodeKind::Switch, 2, 3) => "agg",
                (NodeKind::Switch, 3, 3) => "core",
                (NodeKind::Switch, ..) => {
                    return given.next().cloned().unwrap_or_else(|| format!("switch{}", node.id));
                }
            };
            if tier == 0 {
                return format!("{word}{}", node.id);
            }
            let count = &mut counts[tier as usize];
            *count += 1;
            format!("{word}{}", *count - 1)
        };
        let mut names: Vec<String> = self.nodes.iter().enumerate().map(name).collect();
        for &(node, Reducer { switch, neighbour }) in &self.reducers {
            names[node as usize] = format!("{}{REDUCER_WORD}{}", names[switch as usize], names[neighbour as usize]);
        }
        names
    }

    /// The distance of each node from the nearest host in packet links; 0 for hosts, reducers, and nodes that no host reaches.
    pub fn tiers(&self) -> Vec<u32> {
        let out = self.out_arcs();
        let mut tiers = vec![0u32; self.nodes.len()];
        let is_host = |n: &NodeIdx| self.nodes[*n as usize].kind == NodeKind::Host;
        let is_end = |n: NodeIdx| self.nodes[n as usize].is_end();
        let mut reached: Vec<NodeIdx> = (0..self.nodes.len() as NodeIdx).filter(is_host).collect();
        for tier in 1.. {
            let mut next = Vec::new();
            for &node in &reached {
                for &arc in &out[node as usize] {
                    let neighbour = self.arc_to(arc);
                    if tiers[neighbour as usize] == 0 && !is_end(neighbour) && self.is_packet_link(self.arc_link(arc)) {
                        tiers[neighbour as usize] = tier;
                        next.push(neighbour);
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

    /// Host of a rank. Ranks of GPUs come first, then reducers in the order in which they were added.
    pub fn host_of(&self, rank: u32) -> Option<NodeIdx> {
        let rank = rank as usize;
        self.ranks.get(rank).copied().or_else(|| self.reducers.get(rank - self.ranks.len()).map(|&(node, _)| node))
    }

    /// A rank for messages: `rank 3`, or the name of a reducer.
    pub fn rank_name(&self, rank: u32) -> String {
        match self.host_of(rank) {
            Some(node) if rank as usize >= self.ranks.len() => self.names()[node as usize].clone(),
            _ => format!("rank {rank}"),
        }
    }

    /// Smallest delay of a link that packets cross, in ps; 1 if there is none.
    pub fn min_delay_ps(&self) -> u64 {
        self.links.iter().filter(|l| self.is_packet_link(l)).map(|l| l.delay_ps).min().unwrap_or(1)
    }

    /// Adds a host for each reducer. Its link is as fast as all links between switch and neighbour together, and as short as the shortest of the network.
    pub fn add_reducers(&mut self, reducers: &[Reducer]) {
        let delay_ps = self.min_delay_ps();
        let mut rates_bps: BTreeMap<(NodeIdx, NodeIdx), u64> = BTreeMap::new();
        for link in self.links.iter().filter(|l| self.is_packet_link(l)) {
            *rates_bps.entry((link.a.min(link.b), link.a.max(link.b))).or_default() += link.rate_bps;
        }
        for reducer in reducers {
            let pair = (reducer.switch.min(reducer.neighbour), reducer.switch.max(reducer.neighbour));
            let sum_bps = rates_bps.get(&pair).copied().unwrap_or(0);
            let rate_bps = sum_bps.min(MAX_RATE_BPS / BPS_PER_MBPS * BPS_PER_MBPS);
            let node = self.nodes.len() as NodeIdx;
            let id = self.nodes.last().map_or(0, |last| last.id + 1);
            self.nodes.push(Node { kind: NodeKind::Reducer, id, server: u32::MAX });
            self.links.push(Link { a: node, b: reducer.switch, rate_bps, delay_ps });
            self.reducers.push((node, *reducer));
        }
    }

    /// The network as it is at the beginning, without circuits that come later. PRECONDITION: no link is known by its index yet, as slow or failed.
    pub fn at_beginning(&self) -> Cow<'_, Network> {
        if self.dark.is_empty() {
            return Cow::Borrowed(self);
        }
        let dark: BTreeSet<u32> = self.dark.iter().filter(|d| d.down_ps.is_none()).map(|d| d.link).collect();
        let lit = (0u32..).zip(&self.links).filter(|(link, _)| !dark.contains(link));
        let links = lit.map(|(_, link)| link.clone()).collect();
        Cow::Owned(Network { links, dark: Vec::new(), ..self.clone() })
    }

    /// The switch inside a server, over which packets between its GPUs go; `None`: there is none.
    pub fn switch_inside(&self, server: u32) -> Option<NodeIdx> {
        let is_it = |node: &Node| node.kind == NodeKind::Switch && node.server == server;
        self.nodes.iter().position(is_it).map(|node| node as NodeIdx)
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

    /// The link of an arc.
    pub fn arc_link(&self, arc: ArcIdx) -> &Link {
        &self.links[(arc / 2) as usize]
    }

    /// Rate at which an arc's port transmits, in bits per second: the link's own, or a reduced one.
    pub fn arc_rate(&self, arc: ArcIdx) -> u64 {
        match self.slow_arcs.binary_search_by_key(&arc, |slow| slow.arc) {
            Ok(place) => self.slow_arcs[place].rate_bps,
            Err(_) => self.arc_link(arc).rate_bps,
        }
    }

    /// Share of packets that a link loses for the whole run as the network's file says, in units of 2^-32.
    pub fn loss_q32(&self, link: u32) -> u32 {
        let place = self.lossy_links.binary_search_by_key(&link, |&(lossy, _)| lossy);
        place.map_or(0, |place| self.lossy_links[place].1)
    }

    /// Outgoing arcs of every node, in port order (the order of `links`), including links of NVSwitches.
    pub fn out_arcs(&self) -> Vec<Vec<ArcIdx>> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for (i, l) in self.links.iter().enumerate() {
            out[l.a as usize].push(2 * i as ArcIdx);
            out[l.b as usize].push(2 * i as ArcIdx + 1);
        }
        out
    }

    /// Like [`Network::out_arcs`], without those of links that have failed.
    pub fn working_arcs(&self) -> Vec<Vec<ArcIdx>> {
        let mut out = self.out_arcs();
        out.iter_mut().for_each(|arcs| arcs.retain(|arc| !self.failed.contains(&(arc / 2))));
        out
    }

    /// Ids of switches without any link, which no path crosses.
    pub fn isolated_switches(&self) -> Vec<u32> {
        let mut linked = vec![false; self.nodes.len()];
        for link in &self.links {
            linked[link.a as usize] = true;
            linked[link.b as usize] = true;
        }
        let isolated = self.nodes.iter().zip(linked).filter(|(node, linked)| node.kind != NodeKind::Host && !linked);
        isolated.map(|(node, _)| node.id).collect()
    }

    /// Whether packets cross the link (neither end is an NVSwitch).
    pub fn is_packet_link(&self, link: &Link) -> bool {
        self.nodes[link.a as usize].kind != NodeKind::NvSwitch && self.nodes[link.b as usize].kind != NodeKind::NvSwitch
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::{Clos, Fabric, RailOptimized, SlowArc, parse_ns3, to_ns3};

    #[test]
    fn nodes_are_called_by_what_they_are() {
        let rail = RailOptimized::default().build(&Fabric::uniform(8, 2, 1)).unwrap();
        assert_eq!(rail.names()[6..12], ["host6", "host7", "leaf0", "leaf1", "spine0", "spine1"].map(String::from));
        let clos = Clos { tiers: 3, hosts_per_leaf: 2, ..Clos::default() }.build(&Fabric::uniform(8, 2, 1)).unwrap();
        let names = clos.names();
        assert_eq!(names[8..12], ["leaf0", "leaf1", "leaf2", "leaf3"].map(String::from));
        assert!(names[12] == "agg0" && names.iter().any(|n| n == "core0"), "{names:?}");
        let file = parse_ns3("t", &to_ns3(&rail).unwrap()).unwrap().network;
        assert_eq!(file.names()[7..9], ["host7", "switch8"].map(String::from), "a file's ids are its own");
    }

    #[test]
    fn a_direction_may_be_slower_than_its_link() {
        let mut net = RailOptimized::default().build(&Fabric::uniform(8, 2, 1)).unwrap();
        net.slow_arcs = vec![SlowArc { arc: 3, rate_bps: 25_000_000_000 }, SlowArc { arc: 8, rate_bps: 1_000_000 }];
        let rates = [2, 3, 4, 8, 9].map(|arc| net.arc_rate(arc));
        assert_eq!(rates, [400_000_000_000, 25_000_000_000, 400_000_000_000, 1_000_000, 400_000_000_000]);
        assert_eq!(net.arc_link(3).rate_bps, 400_000_000_000);
    }
}
