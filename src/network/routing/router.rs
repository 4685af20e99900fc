//! The shortest paths of a network, among which policies choose: the path of the reference's hash, and all paths by number.
//!
//! Layer: routing. A table is built when its destination is first needed, and shared by all hosts behind the same switch.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::error::RouteError;
use super::hash::{EcmpKey, FlowKey, node_seed};
use super::path::FlowPaths;
use super::table::{NextHopTable, SwitchGraph, UNREACHED};
use crate::topology::{ArcIdx, Network, NodeIdx};

/// Chooses the paths of flows.
pub trait RoutingPolicy: Send + Sync + std::fmt::Debug {
    /// The paths of a flow between two hosts, and those of its acknowledgements. `link` is the link of its NICs that a queue pair is pinned to, modulo their
    /// number; `None` for any.
    ///
    /// # Errors
    /// There is no path between the hosts.
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError>;

    /// Whether flows have several paths, so that their packets overtake each other.
    fn sprays(&self) -> bool {
        false
    }

    /// Whether packets take the paths of a flow in turn. Else each takes one at random.
    fn takes_turns(&self) -> bool {
        false
    }

    /// Whether its paths are those of entropies: header values that switches hash.
    fn has_entropies(&self) -> bool {
        false
    }

    /// Whether senders choose paths again on which packets arrived without a mark. If packets take paths in turn too, that is where none is kept: they skip
    /// paths with a penalty, for packets that were marked, trimmed or late.
    fn recycles(&self) -> bool {
        false
    }

    /// Whether switches choose among the paths of a data packet, by their queues.
    fn is_adaptive(&self) -> bool {
        false
    }
}

/// Routes over one network. Cheap to make: next hops are searched per destination switch, when first needed.
pub struct Router<'a> {
    pub(super) net: &'a Network,
    known: Arc<Known>,
    /// The directions on which every path leaves its first host and reaches its last one; `None`: any.
    between: Option<(ArcIdx, ArcIdx)>,
}

/// What a router knows of its network.
struct Known {
    graph: SwitchGraph,
    /// Class of every node that is a host and attached to a switch; `u32::MAX` for others.
    class_of: Vec<u32>,
    /// Class of the hosts that are attached to one switch only, by switch number.
    edge_class: Vec<u32>,
    /// Attachment switches of every class, by switch number, ascending.
    roots: Vec<Vec<u32>>,
    tables: Vec<OnceLock<NextHopTable>>,
}

impl<'a> Router<'a> {
    /// A router over `net`, which has searched no routes yet.
    pub fn new(net: &'a Network) -> Router<'a> {
        Router::avoiding(net, &|_| false)
    }

    /// A router over `net` without the links of which `is_down` holds, by their index.
    pub fn avoiding(net: &'a Network, is_down: &dyn Fn(u32) -> bool) -> Router<'a> {
        let graph = SwitchGraph::without(net, is_down);
        let mut edge_class = vec![u32::MAX; graph.switches.len()];
        let mut class_of = vec![u32::MAX; net.nodes.len()];
        let mut roots: Vec<Vec<u32>> = Vec::new();
        let mut several: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut attached = Vec::new();
        for (i, _) in net.nodes.iter().enumerate().filter(|(_, n)| n.is_end()) {
            attached.clear();
            attached.extend(
                graph.neighbours(i as NodeIdx).iter().map(|&v| graph.switch_of[v as usize]).filter(|&s| s != u32::MAX),
            );
            attached.dedup();
            // Paths back are pinned to one NIC, so every attachment switch has a class of its own.
            for &s in &attached {
                if edge_class[s as usize] == u32::MAX {
                    edge_class[s as usize] = roots.len() as u32;
                    roots.push(vec![s]);
                }
            }
            class_of[i] = match attached[..] {
                [] => u32::MAX,
                [s] => edge_class[s as usize],
                _ => *several.entry(attached.clone()).or_insert_with(|| {
                    roots.push(attached.clone());
                    roots.len() as u32 - 1
                }),
            };
        }
        let tables = roots.iter().map(|_| OnceLock::new()).collect();
        Router { net, known: Arc::new(Known { graph, class_of, edge_class, roots, tables }), between: None }
    }

    /// A router that knows the same, for a flow whose paths begin on the direction `first` and end on `last`.
    pub fn between(&self, first: ArcIdx, last: ArcIdx) -> Router<'a> {
        Router { net: self.net, known: Arc::clone(&self.known), between: Some((first, last)) }
    }

    /// The switches, and how they are linked.
    pub(super) fn graph(&self) -> &SwitchGraph {
        &self.known.graph
    }

    /// Returns the network whose paths it knows.
    pub fn network(&self) -> &Network {
        self.net
    }

    /// The paths of a flow. PRECONDITION: [`is_intra_server`] does not hold, since such flows are not routed.
    pub fn paths(&self, flow: impl Into<FlowKey>, policy: &dyn RoutingPolicy) -> Result<FlowPaths, RouteError> {
        policy.paths(self, &flow.into(), None)
    }

    /// The paths of a queue pair that is pinned to one of the links that its two hosts may use, modulo their number; with `None` the hash chooses.
    pub fn paths_from(
        &self,
        flow: impl Into<FlowKey>,
        policy: &dyn RoutingPolicy,
        link: Option<u32>,
    ) -> Result<FlowPaths, RouteError> {
        policy.paths(self, &flow.into(), link)
    }

    /// The hash of a flow's addresses and ports.
    pub fn hash(&self, flow: &FlowKey, seed: u32) -> Result<u32, RouteError> {
        let (src, dst) = self.ends(flow)?;
        let id = |node: NodeIdx| self.net.nodes[node as usize].id;
        Ok(EcmpKey::new(id(src), id(dst), flow.sport, flow.dport).hash(seed))
    }

    /// Bytes of all next-hop tables built so far.
    pub fn table_bytes(&self) -> usize {
        self.known.tables.iter().filter_map(|t| t.get()).map(NextHopTable::bytes).sum()
    }

    /// The directions on which a flow can leave its first host, and those on which it can reach its last one; none if it has no hosts.
    pub fn ports_of_hosts(&self, flow: &FlowKey) -> (Vec<ArcIdx>, Vec<ArcIdx>) {
        let Ok((src, dst)) = self.ends(flow) else { return (Vec::new(), Vec::new()) };
        let graph = &self.known.graph;
        (graph.arcs(src).to_vec(), graph.arcs(dst).iter().map(|&arc| arc ^ 1).collect())
    }

    /// The host nodes of a flow.
    fn ends(&self, flow: &FlowKey) -> Result<(NodeIdx, NodeIdx), RouteError> {
        let host = |rank: u32| {
            self.net.host_of(rank).ok_or(RouteError::NoSuchRank {
                flow: flow.id,
                rank,
                last: self.net.ranks.len().saturating_sub(1),
            })
        };
        Ok((host(flow.src_rank)?, host(flow.dst_rank)?))
    }

    /// The table towards a class.
    fn table(&self, class: u32) -> &NextHopTable {
        self.known.tables[class as usize]
            .get_or_init(|| NextHopTable::build(&self.known.graph, &self.known.roots[class as usize]))
    }

    /// The table towards all attachment switches of a host; `None` if it has none.
    pub(super) fn host_table(&self, host: NodeIdx) -> Option<&NextHopTable> {
        let class = self.known.class_of[host as usize];
        (class != u32::MAX).then(|| self.table(class))
    }

    /// Switch number of the far end of an arc; `u32::MAX` if that is a host.
    pub(super) fn switch_at(&self, arc: ArcIdx) -> u32 {
        self.known.graph.switch_of[self.net.arc_to(arc) as usize]
    }

    /// The arcs from `host` that begin a shortest path to `dst`, in the order in which the search from `dst` visits their far ends.
    pub(super) fn first_arcs(&self, host: NodeIdx, dst: NodeIdx) -> Vec<ArcIdx> {
        let arcs = self.known.graph.arcs(host);
        let direct: Vec<ArcIdx> = arcs.iter().copied().filter(|&a| self.net.arc_to(a) == dst).collect();
        if !direct.is_empty() {
            return direct;
        }
        let Some(table) = self.host_table(dst) else { return Vec::new() };
        let dist = |arc: ArcIdx| match self.switch_at(arc) {
            u32::MAX => UNREACHED,
            s => table.dist(s),
        };
        let min_dist = arcs.iter().map(|&a| dist(a)).min().unwrap_or(UNREACHED);
        if min_dist == UNREACHED {
            return Vec::new();
        }
        let mut first: Vec<ArcIdx> = arcs.iter().copied().filter(|&a| dist(a) == min_dist).collect();
        // With several NICs: a switch is found by its first next hop, so earlier parents come first, then smaller ids.
        if first.len() > 1 {
            first.sort_by_cached_key(|&arc| (self.discovery(table, self.switch_at(arc)), arc));
        }
        first
    }

    /// Sort key of switches with equal distance, in the order in which the search met them: the chain of first next hops from the class, then the switch.
    fn discovery(&self, table: &NextHopTable, mut switch: u32) -> Vec<u32> {
        let mut chain = vec![switch];
        while table.n_next(switch) > 0 {
            switch = self.switch_at(self.next_arc(table, switch, 0));
            chain.push(switch);
        }
        chain.reverse();
        chain
    }

    /// The `i`-th next hop of a switch (by number).
    pub(super) fn next_arc(&self, table: &NextHopTable, switch: u32, i: u32) -> ArcIdx {
        self.known.graph.arcs(self.known.graph.switches[switch as usize])[table.next(switch, i) as usize]
    }

    /// Arcs from an attachment switch to a host. There are several only with parallel links.
    pub(super) fn last_arcs(&self, switch: u32, host: NodeIdx) -> impl Iterator<Item = ArcIdx> + Clone + '_ {
        let node = self.known.graph.switches[switch as usize];
        self.known.graph.arcs(host).iter().map(|&a| a ^ 1).filter(move |&a| self.net.arc_from(a) == node)
    }

    /// The hash's choice among `n` options at a node.
    fn choose(&self, key: EcmpKey, node: NodeIdx, seed: u32, n: u32) -> u32 {
        if n <= 1 { 0 } else { key.hash(node_seed(self.net.nodes[node as usize].id, seed)) % n }
    }

    /// Follows the hash from `switch` to an attachment switch of the table's class, and returns that switch.
    fn walk(&self, table: &NextHopTable, mut switch: u32, key: EcmpKey, seed: u32, path: &mut Vec<ArcIdx>) -> u32 {
        loop {
            let n = table.n_next(switch);
            if n == 0 {
                return switch;
            }
            let pick = self.choose(key, self.known.graph.switches[switch as usize], seed, n);
            let arc = self.next_arc(table, switch, pick);
            path.push(arc);
            switch = self.switch_at(arc);
        }
    }

    /// Whether a path leads from NIC arc `first` to NIC arc `last`.
    fn reaches(&self, first: ArcIdx, last: ArcIdx) -> bool {
        let (start, end) = (self.switch_at(first), self.switch_at(last ^ 1));
        let class = if end == u32::MAX { u32::MAX } else { self.known.edge_class[end as usize] };
        first == last || (start != u32::MAX && class != u32::MAX && self.table(class).dist(start) != UNREACHED)
    }

    /// The shortest path from NIC arc `first` to NIC arc `last` that the hash chooses for packets with these UDP ports, source and destination.
    pub fn path_of_ports(&self, first: ArcIdx, last: ArcIdx, ports: (u16, u16), seed: u32) -> Vec<ArcIdx> {
        let mut path = vec![first];
        if first == last {
            return path;
        }
        let id = |node: NodeIdx| self.net.nodes[node as usize].id;
        let key = EcmpKey::new(id(self.net.arc_from(first)), id(self.net.arc_to(last)), ports.0, ports.1);
        let table = self.table(self.known.edge_class[self.switch_at(last ^ 1) as usize]);
        self.walk(table, self.switch_at(first), key, seed, &mut path);
        path.push(last);
        path
    }

    /// The shortest path that the hash chooses, hop by hop. `link` selects one of the links that the hosts may use; with `None` the hash chooses.
    pub fn hashed_path(&self, flow: &FlowKey, seed: u32, link: Option<u32>) -> Result<Vec<ArcIdx>, RouteError> {
        let (src, dst) = self.ends(flow)?;
        let id = |node: NodeIdx| self.net.nodes[node as usize].id;
        let (src_rank, dst_rank) = (flow.src_rank, flow.dst_rank);
        if src == dst {
            return Err(RouteError::SameHost { flow: flow.id, src_rank, dst_rank, host: id(src) });
        }
        let no_route = || {
            let (src_host, dst_host) = (id(src), id(dst));
            RouteError::NoRoute { flow: flow.id, src_rank, src_host, dst_rank, dst_host }
        };
        if let Some((first, last)) = self.between {
            return match self.reaches(first, last) {
                true => Ok(self.path_of_ports(first, last, (flow.sport, flow.dport), seed)),
                false => Err(no_route()),
            };
        }
        let first = self.first_arcs(src, dst);
        if first.is_empty() {
            return Err(no_route());
        }
        let key = EcmpKey::new(id(src), id(dst), flow.sport, flow.dport);
        let pinned = |node: NodeIdx, n: u32| link.map_or_else(|| self.choose(key, node, seed, n), |l| l % n.max(1));
        let arc = first[pinned(src, first.len() as u32) as usize];
        let mut path = Vec::with_capacity(6);
        path.push(arc);
        if self.net.arc_to(arc) == dst {
            return Ok(path);
        }
        let table = self.host_table(dst).expect("a first arc to a switch was found in this table");
        let edge = self.walk(table, self.switch_at(arc), key, seed, &mut path);
        let mut last = self.last_arcs(edge, dst);
        let n = last.clone().count() as u32;
        let pick = pinned(self.known.graph.switches[edge as usize], n);
        path.push(last.nth(pick as usize).expect("the class's switches are those the host is attached to"));
        Ok(path)
    }

    /// The path back between the two NICs of a data path, chosen by the ACK's own key.
    pub fn hashed_way_back(&self, flow: &FlowKey, data: &[ArcIdx], seed: u32) -> Vec<ArcIdx> {
        let (first, last) = (data[0], data[data.len() - 1]);
        if data.len() == 1 {
            return vec![last ^ 1];
        }
        let (src, dst) = (self.net.arc_from(first), self.net.arc_to(last));
        let id = |node: NodeIdx| self.net.nodes[node as usize].id;
        let key = EcmpKey::new(id(dst), id(src), flow.dport, flow.sport);
        let mut path = Vec::with_capacity(data.len());
        path.push(last ^ 1);
        let table = self.table(self.known.edge_class[self.switch_at(first) as usize]);
        self.walk(table, self.switch_at(last ^ 1), key, seed, &mut path);
        path.push(first ^ 1);
        path
    }

    /// All shortest paths that begin with NIC arc `first` and end with NIC arc `last`, in the order of next hops. If there are more than `max_paths`, they are
    /// sampled evenly, beginning with the `offset`-th and wrapping around.
    pub fn shortest_paths(&self, first: ArcIdx, last: ArcIdx, max_paths: u32, offset: u32) -> Vec<Vec<ArcIdx>> {
        if first == last {
            return vec![vec![first]];
        }
        let table = self.table(self.known.edge_class[self.switch_at(last ^ 1) as usize]);
        let start = self.switch_at(first);
        let mut counts = HashMap::new();
        let total = self.count_paths(table, start, &mut counts);
        let n = total.min(u64::from(max_paths.max(1)));
        let offset = if n < total { u64::from(offset) % total } else { 0 };
        let nth = |i: u64| {
            // The i-th of n samples of `total` paths. A path is identified by the number of paths that come before it at each hop.
            let mut rank = ((u128::from(i) * u128::from(total) / u128::from(n)) as u64 + offset) % total;
            let mut path = vec![first];
            let mut switch = start;
            while table.n_next(switch) > 0 {
                for k in 0..table.n_next(switch) {
                    let arc = self.next_arc(table, switch, k);
                    let below = counts[&self.switch_at(arc)];
                    if rank < below {
                        path.push(arc);
                        switch = self.switch_at(arc);
                        break;
                    }
                    rank -= below;
                }
            }
            path.push(last);
            path
        };
        (0..n).map(nth).collect()
    }

    /// One of these paths, selected by a number. Its remainder chooses among the next hops of the first switch. The quotient by the number of these hops
    /// chooses at the second switch, and so on.
    pub fn shortest_path(&self, first: ArcIdx, last: ArcIdx, mut number: u64) -> Vec<ArcIdx> {
        let mut path = vec![first];
        if first == last {
            return path;
        }
        let table = self.table(self.known.edge_class[self.switch_at(last ^ 1) as usize]);
        let mut switch = self.switch_at(first);
        loop {
            let n = u64::from(table.n_next(switch));
            if n == 0 {
                break;
            }
            let arc = self.next_arc(table, switch, (number % n) as u32);
            number /= n;
            path.push(arc);
            switch = self.switch_at(arc);
        }
        path.push(last);
        path
    }

    /// Number of shortest paths from a switch, at most 2^48; `counts` caches them.
    fn count_paths(&self, table: &NextHopTable, start: u32, counts: &mut HashMap<u32, u64>) -> u64 {
        // Depth first with an explicit stack, since a chain of switches in a file may be very long.
        let mut stack = vec![start];
        while let Some(&switch) = stack.last() {
            let n = table.n_next(switch);
            let before = stack.len();
            let mut sum = u64::from(n == 0);
            for k in 0..n {
                let next = self.switch_at(self.next_arc(table, switch, k));
                match counts.get(&next) {
                    Some(c) => sum += c,
                    None => stack.push(next),
                }
            }
            if stack.len() == before {
                counts.insert(switch, sum.min(1 << 48));
                stack.pop();
            }
        }
        counts[&start]
    }
}

/// Whether a flow stays inside a server that has NVLink. Such a flow is analytical and has no packet path.
pub fn is_intra_server(net: &Network, flow: impl Into<FlowKey>) -> bool {
    let flow = flow.into();
    let server = |rank: u32| net.ranks.get(rank as usize).map(|&n| net.nodes[n as usize].server);
    net.nvlink.is_some() && server(flow.src_rank).is_some() && server(flow.src_rank) == server(flow.dst_rank)
}
