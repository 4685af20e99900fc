//! The rate between two halves of a network's servers.
//!
//! Layer: topology. Dinic's algorithm for maximum flows, on links in whole Mb/s.

use super::network::{Network, NodeKind};

/// An arc of the flow network. Its reverse is at the index with the last bit flipped.
struct FlowArc {
    to: u32,
    /// Rate that is left, in Mb/s.
    left: u64,
}

/// A network of flows from a source to a sink.
struct FlowNetwork {
    arcs: Vec<FlowArc>,
    out: Vec<Vec<u32>>,
}

impl FlowNetwork {
    fn new(n_nodes: usize) -> FlowNetwork {
        FlowNetwork { arcs: Vec::new(), out: vec![Vec::new(); n_nodes] }
    }

    /// Adds an arc and its reverse, with the rate of each.
    fn join(&mut self, a: u32, b: u32, forth: u64, back: u64) {
        self.out[a as usize].push(self.arcs.len() as u32);
        self.arcs.push(FlowArc { to: b, left: forth });
        self.out[b as usize].push(self.arcs.len() as u32);
        self.arcs.push(FlowArc { to: a, left: back });
    }

    /// Distance of each node from the source over arcs with rate left; `u32::MAX` where none leads.
    fn levels(&self, source: u32) -> Vec<u32> {
        let mut level = vec![u32::MAX; self.out.len()];
        level[source as usize] = 0;
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for &arc in &self.out[node as usize] {
                let FlowArc { to, left } = self.arcs[arc as usize];
                if left > 0 && level[to as usize] == u32::MAX {
                    level[to as usize] = level[node as usize] + 1;
                    queue.push_back(to);
                }
            }
        }
        level
    }

    /// Sends as much as fits along one shortest path, and returns how much; 0 if nothing is left. `next` is the next arc to try of each node.
    fn send(&mut self, source: u32, sink: u32, level: &[u32], next: &mut [usize]) -> u64 {
        let mut path: Vec<u32> = Vec::new();
        let mut node = source;
        while node != sink {
            let found = loop {
                let Some(&arc) = self.out[node as usize].get(next[node as usize]) else { break None };
                let FlowArc { to, left } = self.arcs[arc as usize];
                if left > 0 && level[to as usize] == level[node as usize].saturating_add(1) {
                    break Some(arc);
                }
                next[node as usize] += 1;
            };
            match (found, path.pop()) {
                (Some(arc), before) => {
                    path.extend(before);
                    path.push(arc);
                    node = self.arcs[arc as usize].to;
                }
                (None, Some(before)) => {
                    // The node leads nowhere, so the arc to it is passed over too.
                    node = self.arcs[(before ^ 1) as usize].to;
                    next[node as usize] += 1;
                }
                (None, None) => return 0,
            }
        }
        let fits = path.iter().map(|&arc| self.arcs[arc as usize].left).min().unwrap_or(0);
        for arc in path {
            self.arcs[arc as usize].left -= fits;
            self.arcs[(arc ^ 1) as usize].left += fits;
        }
        fits
    }

    fn maximum(&mut self, source: u32, sink: u32) -> u64 {
        let mut sum = 0;
        loop {
            let level = self.levels(source);
            if level[sink as usize] == u32::MAX {
                return sum;
            }
            let mut next = vec![0; self.out.len()];
            loop {
                match self.send(source, sink, &level, &mut next) {
                    0 => break,
                    sent => sum += sent,
                }
            }
        }
    }
}

/// The highest rate in bps at which the first half of the servers can send to the others, over any paths: a maximum flow. With an odd number of servers the
/// first half is the smaller one. No routing can do better; shortest paths may do worse.
pub fn bisection_bps(net: &Network) -> u64 {
    const MBPS: u64 = 1_000_000;
    let n = net.nodes.len() as u32;
    let (source, sink) = (n, n + 1);
    let hosts = || net.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    let servers = hosts().map(|node| node.server).max().map_or(0, |last| last + 1);
    let mut flow = FlowNetwork::new(net.nodes.len() + 2);
    for link in net.links.iter().filter(|l| net.is_packet_link(l)) {
        flow.join(link.a, link.b, link.rate_bps / MBPS, link.rate_bps / MBPS);
    }
    // More than all links together carry.
    const UNLIMITED: u64 = 1 << 62;
    for (i, node) in (0..).zip(&net.nodes).filter(|(_, node)| node.kind == NodeKind::Host) {
        match node.server < servers / 2 {
            true => flow.join(source, i, UNLIMITED, 0),
            false => flow.join(i, sink, UNLIMITED, 0),
        }
    }
    flow.maximum(source, sink).saturating_mul(MBPS)
}
