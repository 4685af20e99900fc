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
}

impl Network {
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

    /// Whether the link crosses at packet level (neither end is an NVSwitch).
    pub fn is_packet_link(&self, link: &Link) -> bool {
        self.nodes[link.a as usize].kind != NodeKind::NvSwitch && self.nodes[link.b as usize].kind != NodeKind::NvSwitch
    }
}
