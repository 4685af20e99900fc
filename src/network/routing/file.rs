//! Explicit routes from a file.
//!
//! Layer: routing. One line per flow: `flow_id src dst sport dport | data path node ids | ack path node ids`. Without an ACK path, it is the reverse of the
//! data path. Everything is checked against the network and the flows when the file is read.

use super::error::RouteError;
use super::hash::{EcmpKey, FlowKey};
use super::path::FlowPaths;
use super::table::SwitchGraph;
use crate::topology::text::{Line, Lines, shown};
use crate::topology::{ArcIdx, FileError, Network, NodeIdx, NodeKind};

/// The form of a line.
const SHAPE: &str = "flow_id src dst sport dport | data path | ack path";

/// Routes of flows, by flow id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteFile {
    path: String,
    /// Paths by flow id, ascending.
    routes: Vec<(u32, FlowPaths)>,
}

impl RouteFile {
    /// Parses a route file for these flows over this network; `path` is for messages.
    pub fn parse<K: Into<FlowKey>>(
        path: &str,
        text: &str,
        net: &Network,
        flows: impl IntoIterator<Item = K>,
    ) -> Result<RouteFile, RouteError> {
        let mut flows: Vec<FlowKey> = flows.into_iter().map(Into::into).collect();
        flows.sort_unstable_by_key(|f| f.id);
        let graph = SwitchGraph::new(net);
        let mut lines = Lines::new(path, text);
        let mut routes: Vec<(u32, FlowPaths, usize)> = Vec::new();
        while let Some(line) = lines.next_line() {
            let (id, paths) = parse_line(&line, net, &graph, &flows)?;
            routes.push((id, paths, line.number));
        }
        routes.sort_by_key(|(id, _, number)| (*id, *number));
        if let Some(w) = routes.windows(2).find(|w| w[0].0 == w[1].0) {
            let problem = format!("flow {} has a route already, on line {}", w[1].0, w[0].2);
            return Err(FileError::Line { path: path.to_string(), line: w[1].2, problem }.into());
        }
        let routes = routes.into_iter().map(|(id, paths, _)| (id, paths)).collect();
        Ok(RouteFile { path: path.to_string(), routes })
    }

    /// Paths of a flow.
    pub(super) fn listed(&self, flow: &FlowKey) -> Result<FlowPaths, RouteError> {
        match self.routes.binary_search_by_key(&flow.id, |(id, _)| *id) {
            Ok(i) => Ok(self.routes[i].1.clone()),
            Err(_) => Err(RouteError::NotInFile {
                path: self.path.clone(),
                flow: flow.id,
                src_rank: flow.src_rank,
                dst_rank: flow.dst_rank,
            }),
        }
    }
}

fn parse_line(
    line: &Line,
    net: &Network,
    graph: &SwitchGraph,
    flows: &[FlowKey],
) -> Result<(u32, FlowPaths), FileError> {
    let mut parts = line.text.split('|');
    let head = Line { text: parts.next().unwrap_or("").trim(), ..*line };
    let (Some(data), ack, None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(line.error(format!("expected `{SHAPE}`, with one or two `|`")));
    };
    let [id, src, dst, sport, dport] = head.exactly(SHAPE)?;
    let id = line.number("flow id", id, 0, u32::MAX)?;
    let Ok(flow_idx) = flows.binary_search_by_key(&id, |f| f.id) else {
        return Err(line.error(match flows.last() {
            Some(last) => format!("there is no flow {id}; flows are numbered 0 to {}", last.id),
            None => format!("there is no flow {id}; there are no flows at all"),
        }));
    };
    let flow = &flows[flow_idx];
    let node = |rank: u32| net.host_of(rank);
    for (field_name, field, rank) in [("source", src, flow.src_rank), ("destination", dst, flow.dst_rank)] {
        let id_of = node(rank).map(|n| net.nodes[n as usize].id);
        if field.parse().ok() != id_of {
            let right = id_of.map_or("not a host of this network".to_string(), |i| format!("host {i}"));
            return Err(line.error(format!("{field_name} `{}` of flow {id}: the flow's is {right}", shown(field))));
        }
    }
    for (field_name, field, port) in [("source port", sport, flow.sport), ("destination port", dport, flow.dport)] {
        if field.parse() != Ok(port) {
            return Err(line.error(format!("{field_name} `{}` of flow {id}: the flow's is {port}", shown(field))));
        }
    }
    let (Some(src), Some(dst)) = (node(flow.src_rank), node(flow.dst_rank)) else {
        return Err(line.error(format!("flow {id} has no hosts in this network")));
    };
    let ids = |n: NodeIdx| net.nodes[n as usize].id;
    let key = EcmpKey::new(ids(src), ids(dst), flow.sport, flow.dport);
    let data = resolve(line, net, graph, "data path", data, (src, dst), key)?;
    let ack = match ack {
        None => data.iter().rev().map(|arc| arc ^ 1).collect(),
        Some(text) => {
            let key = EcmpKey::new(ids(dst), ids(src), flow.dport, flow.sport);
            let mut ack = resolve(line, net, graph, "ACK path", text, (dst, src), key)?;
            pin(line, net, &data, &mut ack)?;
            ack
        }
    };
    Ok((id, FlowPaths { data: vec![data], ack: vec![ack] }))
}

/// Converts node ids to arcs. If parallel links join two nodes, the flow's hash picks one.
fn resolve(
    line: &Line,
    net: &Network,
    graph: &SwitchGraph,
    path_name: &str,
    text: &str,
    (src, dst): (NodeIdx, NodeIdx),
    key: EcmpKey,
) -> Result<Vec<ArcIdx>, FileError> {
    let id = |n: NodeIdx| net.nodes[n as usize].id;
    let mut nodes: Vec<NodeIdx> = Vec::new();
    for field in text.split_whitespace() {
        let found = field.parse::<u32>().ok().and_then(|i| net.nodes.binary_search_by_key(&i, |n| n.id).ok());
        let Some(node) = found else {
            return Err(line.error(format!("{path_name}: `{}` is not a node of the topology", shown(field))));
        };
        let node = node as NodeIdx;
        if nodes.contains(&node) {
            return Err(line.error(format!("{path_name}: node {} comes twice, which is a loop", id(node))));
        }
        nodes.push(node);
    }
    if nodes.first() != Some(&src) || nodes.last() != Some(&dst) || nodes.len() < 2 {
        return Err(line.error(format!("{path_name}: it must run from host {} to host {}", id(src), id(dst))));
    }
    for &n in &nodes[1..nodes.len() - 1] {
        if net.nodes[n as usize].kind != NodeKind::Switch {
            return Err(line.error(format!("{path_name}: node {} is not a switch and does not forward", id(n))));
        }
    }
    let mut arcs = Vec::with_capacity(nodes.len() - 1);
    for pair in nodes.windows(2) {
        let neighbours = graph.neighbours(pair[0]);
        let begin = neighbours.partition_point(|&n| n < pair[1]);
        let n = neighbours[begin..].iter().take_while(|&&n| n == pair[1]).count();
        if n == 0 {
            return Err(line.error(format!("{path_name}: no link joins nodes {} and {}", id(pair[0]), id(pair[1]))));
        }
        let pick = if n == 1 { 0 } else { key.hash(id(pair[0])) as usize % n };
        arcs.push(graph.arcs(pair[0])[begin + pick]);
    }
    Ok(arcs)
}

/// Moves the ends of the ACK path to the two NICs of the data path, because a queue pair is pinned to one NIC at either end.
fn pin(line: &Line, net: &Network, data: &[ArcIdx], ack: &mut [ArcIdx]) -> Result<(), FileError> {
    let pairs = [(0, data[data.len() - 1] ^ 1), (ack.len() - 1, data[0] ^ 1)];
    for (i, nic) in pairs {
        if (net.arc_from(ack[i]), net.arc_to(ack[i])) != (net.arc_from(nic), net.arc_to(nic)) {
            let id = |n: NodeIdx| net.nodes[n as usize].id;
            return Err(line.error(format!(
                "ACK path: it uses the link {} - {}, the data path uses {} - {}; a queue pair is pinned to one NIC at either end",
                id(net.arc_from(ack[i])),
                id(net.arc_to(ack[i])),
                id(net.arc_from(nic)),
                id(net.arc_to(nic))
            )));
        }
        ack[i] = nic;
    }
    Ok(())
}
