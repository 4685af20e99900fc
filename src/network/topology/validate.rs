//! Validation of networks, and the errors of this module.
//!
//! Layer: topology. Readers and generators end here; later code does not check again.

use super::network::{Link, Network, Node, NodeIdx, NodeKind, NvLink, SwitchNames};
use super::text::FileError;
use hyperfold_base::units::{BPS_PER_MBPS, MAX_RATE_BPS, PS_PER_S};

/// Maximum number of nodes of a network: enough for the largest clusters. The limit keeps a typing error in a header from exhausting the memory.
pub const MAX_NODES: u32 = 1 << 20;
/// Maximum number of links of a network.
pub const MAX_LINKS: u32 = 1 << 23;

/// An error in a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// The file cannot be read, or a line of it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not of the form that it is read as, but begins as one of another form does.
    #[error(
        "{error}; the file begins as one of the form {form} does: write topology.format = \"{form}\", or --format {form}"
    )]
    OtherForm {
        /// What is wrong with it as it was read.
        error: Box<TopologyError>,
        /// The form that it seems to have, as users write it.
        form: &'static str,
    },
    /// Node ids are not unique and ascending.
    #[error("node ids must be unique and ascending: {id} follows {before}")]
    NodeOrder {
        /// Id of the node before it.
        before: u32,
        /// The id that is not above it.
        id: u32,
    },
    /// The network has more nodes than are supported.
    #[error("{n} nodes are more than the {MAX_NODES} that are supported")]
    TooManyNodes {
        /// Number of its nodes.
        n: u64,
    },
    /// The network has more links than are supported.
    #[error("{n} links are more than the {MAX_LINKS} that are supported")]
    TooManyLinks {
        /// Number of its links.
        n: u64,
    },
    /// A link ends at a node that there is not.
    #[error("link {link} names node index {node}, but there are {n_nodes} nodes")]
    LinkEnd {
        /// Position of the link, from 0.
        link: usize,
        /// Index of the node.
        node: u32,
        /// Number of nodes.
        n_nodes: usize,
    },
    /// A link joins a node to itself.
    #[error("link {link} joins node {id} to itself")]
    SelfLink {
        /// Position of the link, from 0.
        link: usize,
        /// Id of the node.
        id: u32,
    },
    /// A rate or a delay is out of range.
    #[error("link {link} between nodes {a} and {b}: {problem}")]
    LinkValue {
        /// Position of the link, from 0.
        link: usize,
        /// Id of the node at one end.
        a: u32,
        /// Id of the node at the other end.
        b: u32,
        /// The fault, in words for the user.
        problem: String,
    },
    /// The rate or the latency of NVLink is out of range.
    #[error("NVLink: {problem}")]
    NvLinkValue {
        /// The fault, in words for the user.
        problem: String,
    },
    /// Nothing can reach a host.
    #[error("host {id} has no link to a switch or another host, so nothing can reach it")]
    HostWithoutLink {
        /// Id of the host.
        id: u32,
    },
    /// No path joins two hosts.
    #[error("hosts {a} and {b} are not connected by any path; every host must be able to reach every other")]
    Disconnected {
        /// Id of one host.
        a: u32,
        /// Id of the other host.
        b: u32,
    },
    /// A rank stands for a node that is no host.
    #[error("rank {rank} stands for node index {node}, which is not a host")]
    RankNotHost {
        /// Rank that stands for it.
        rank: usize,
        /// Index of the node.
        node: u32,
    },
    /// The network has no host.
    #[error("a network needs at least one host")]
    NoHost,
    /// A parameter of a generator is wrong.
    #[error("{key} = {value}: {problem}")]
    Parameter {
        /// Key in the sweep file.
        key: &'static str,
        /// Value that the key has.
        value: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// A form cannot hold something of the network.
    #[error("{what} cannot be written in the {form} form")]
    NotWritable {
        /// Name of the form.
        form: &'static str,
        /// The part of the network that the form cannot hold.
        what: String,
    },
}

/// Checks a link's rate. The error is part of a sentence.
pub(crate) fn check_rate(rate_bps: u64) -> Result<(), String> {
    if rate_bps == 0 || rate_bps > MAX_RATE_BPS || !rate_bps.is_multiple_of(BPS_PER_MBPS) {
        return Err(format!("a rate of {rate_bps} bps is not a whole number of Mb/s from 1 Mb/s to 8 Tb/s"));
    }
    Ok(())
}

/// Checks NVLink's rate and latency, which is that of two links inside a server. The error is part of a sentence.
fn check_nvlink(nvlink: NvLink) -> Result<(), String> {
    check_rate(nvlink.rate_bps)?;
    if nvlink.latency_ps > 2 * PS_PER_S {
        return Err(format!("a latency of {} ps is longer than 2 s", nvlink.latency_ps));
    }
    Ok(())
}

/// Checks a link's delay. The error is part of a sentence.
pub(crate) fn check_delay(delay_ps: u64) -> Result<(), String> {
    if delay_ps == 0 || delay_ps > PS_PER_S {
        return Err(format!("a delay of {delay_ps} ps is not between 1 ps and 1 s"));
    }
    Ok(())
}

impl Network {
    /// A network from its parts, after validation.
    pub fn new(
        nodes: Vec<Node>,
        links: Vec<Link>,
        ranks: Vec<NodeIdx>,
        nvlink: Option<NvLink>,
    ) -> Result<Network, TopologyError> {
        let net = Network { nodes, links, ranks, nvlink, switch_names: SwitchNames::ById, ..Network::default() };
        net.validate()?;
        Ok(net)
    }

    /// Checks the invariants of [`Network`]. That all hosts reach each other is not one of them, since a rail-only fabric is split by design: see
    /// [`Network::check_connected`].
    pub fn validate(&self) -> Result<(), TopologyError> {
        if self.nodes.len() > MAX_NODES as usize {
            return Err(TopologyError::TooManyNodes { n: self.nodes.len() as u64 });
        }
        if self.links.len() > MAX_LINKS as usize {
            return Err(TopologyError::TooManyLinks { n: self.links.len() as u64 });
        }
        for pair in self.nodes.windows(2) {
            if pair[0].id >= pair[1].id {
                return Err(TopologyError::NodeOrder { before: pair[0].id, id: pair[1].id });
            }
        }
        let mut linked = vec![false; self.nodes.len()];
        for (i, l) in self.links.iter().enumerate() {
            for end in [l.a, l.b] {
                if end as usize >= self.nodes.len() {
                    return Err(TopologyError::LinkEnd { link: i, node: end, n_nodes: self.nodes.len() });
                }
            }
            let (a, b) = (self.nodes[l.a as usize].id, self.nodes[l.b as usize].id);
            if a == b {
                return Err(TopologyError::SelfLink { link: i, id: a });
            }
            if let Err(problem) = check_rate(l.rate_bps).and_then(|()| check_delay(l.delay_ps)) {
                return Err(TopologyError::LinkValue { link: i, a, b, problem });
            }
            if self.is_packet_link(l) {
                linked[l.a as usize] = true;
                linked[l.b as usize] = true;
            }
        }
        if let Some(nvlink) = self.nvlink {
            check_nvlink(nvlink).map_err(|problem| TopologyError::NvLinkValue { problem })?;
        }
        if !self.nodes.iter().any(|n| n.kind == NodeKind::Host) {
            return Err(TopologyError::NoHost);
        }
        for (n, linked) in self.nodes.iter().zip(linked) {
            if n.kind == NodeKind::Host && !linked {
                return Err(TopologyError::HostWithoutLink { id: n.id });
            }
        }
        for (rank, &node) in self.ranks.iter().enumerate() {
            if self.nodes.get(node as usize).map(|n| n.kind) != Some(NodeKind::Host) {
                return Err(TopologyError::RankNotHost { rank, node });
            }
        }
        Ok(())
    }

    /// Checks that every host can reach every other, over packet links, and NVLink if there is one.
    pub fn check_connected(&self) -> Result<(), TopologyError> {
        let mut root: Vec<u32> = (0..self.nodes.len() as u32).collect();
        for l in &self.links {
            let (a, b) = (find(&mut root, l.a), find(&mut root, l.b));
            root[a.max(b) as usize] = a.min(b);
        }
        let mut first: Option<(u32, u32)> = None;
        for (i, n) in self.nodes.iter().enumerate() {
            if n.kind != NodeKind::Host {
                continue;
            }
            let r = find(&mut root, i as u32);
            match first {
                None => first = Some((n.id, r)),
                Some((a, ra)) if ra != r => return Err(TopologyError::Disconnected { a, b: n.id }),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Representative of `x`. It shortens the path for the next search.
fn find(root: &mut [u32], mut x: u32) -> u32 {
    while root[x as usize] != x {
        root[x as usize] = root[root[x as usize] as usize];
        x = root[x as usize];
    }
    x
}
