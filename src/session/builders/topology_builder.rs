//! Networks made in code.
//!
//! Layer: session. Writes a topology file; errors in the network are found when the file is read.

use std::fmt::Write;

/// A node of a network: its id in topology and route files, and in `links.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A network under construction: hosts, switches and links. GPU ranks are the hosts in the order in which they were added.
///
/// ```
/// use hyperfold_session::TopologyBuilder;
///
/// let mut net = TopologyBuilder::new();
/// let switch = net.switch();
/// for _ in 0..4 {
///     let host = net.host();
///     net.link(host, switch, 100, 1000);
/// }
/// assert!(net.to_text().starts_with("5 1 4\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct TopologyBuilder {
    nodes: u32,
    switches: Vec<u32>,
    /// Links as (one end, other end, Gb/s, delay in ns).
    links: Vec<(u32, u32, u32, u32)>,
}

impl TopologyBuilder {
    /// Creates a network without nodes.
    pub fn new() -> TopologyBuilder {
        TopologyBuilder::default()
    }

    /// Adds a host, which is a server with one GPU. Each of its links is a NIC.
    pub fn host(&mut self) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    /// Adds a switch.
    pub fn switch(&mut self) -> NodeId {
        let node = self.host();
        self.switches.push(node.0);
        node
    }

    /// Joins two nodes by a link of `gbps` in each direction, with `delay_ns` each way. Parallel links are allowed.
    pub fn link(&mut self, a: NodeId, b: NodeId, gbps: u32, delay_ns: u32) {
        self.links.push((a.0, b.0, gbps, delay_ns));
    }

    /// Returns the topology file, in the format of ns-3.
    pub fn to_text(&self) -> String {
        let switches: Vec<String> = self.switches.iter().map(u32::to_string).collect();
        let mut out = format!("{} {} {}\n{}\n", self.nodes, switches.len(), self.links.len(), switches.join(" "));
        for (a, b, gbps, delay_ns) in &self.links {
            writeln!(out, "{a} {b} {gbps}Gbps {delay_ns}ns 0").expect("writing to a string cannot fail");
        }
        out
    }
}
