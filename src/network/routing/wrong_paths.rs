//! Checks paths that come from code of somebody else.
//!
//! Layer: routing. Built-in policies make paths from next hops, and routes of a file are checked while they are read.

use super::hash::FlowKey;
use super::path::FlowPaths;
use crate::topology::{ArcIdx, Network, NodeIdx, NodeKind};

/// Maximum number of paths of a flow in one direction: the range of `routing.max_paths`.
const MAX_PATHS: usize = 65_536;

/// Says why packets of a flow cannot take these paths; `None` if they can.
pub fn wrong_paths(net: &Network, flow: &FlowKey, paths: &FlowPaths) -> Option<String> {
    let host = |rank: u32| net.host_of(rank);
    let (Some(src), Some(dst)) = (host(flow.src_rank), host(flow.dst_rank)) else {
        return Some("its ranks are not in the network".to_string());
    };
    for (name, listed, from, to) in [("data", &paths.data, src, dst), ("ACK", &paths.ack, dst, src)] {
        if listed.is_empty() || listed.len() > MAX_PATHS {
            return Some(format!("it gave {} {name} paths; a flow has 1 to {MAX_PATHS}", listed.len()));
        }
        if let Some(why) = listed.iter().find_map(|path| wrong_path(net, path, from, to)) {
            return Some(format!("a {name} path {why}"));
        }
    }
    // A queue pair is pinned to one NIC at either end.
    let ends = |path: &Vec<ArcIdx>| (path[0], path[path.len() - 1]);
    let (first, last) = ends(&paths.data[0]);
    let pinned = paths.data.iter().all(|path| ends(path) == (first, last))
        && paths.ack.iter().all(|path| ends(path) == (last ^ 1, first ^ 1));
    (!pinned).then(|| {
        "its paths use several links at one end; all data and ACK paths of a flow share a link at the source and one at the destination"
            .to_string()
    })
}

/// Says why a path does not lead from one host to another; `None` if it does.
fn wrong_path(net: &Network, path: &[ArcIdx], from: NodeIdx, to: NodeIdx) -> Option<String> {
    let id = |node: NodeIdx| net.nodes[node as usize].id;
    let mut passed = vec![from];
    for &arc in path {
        let here = passed[passed.len() - 1];
        if (arc / 2) as usize >= net.links.len() {
            return Some(format!("has arc {arc}; there are {}, counted from 0", 2 * net.links.len()));
        }
        if net.arc_from(arc) != here {
            return Some(format!(
                "does not connect: after node {} comes arc {arc}, from node {} to node {}",
                id(here),
                id(net.arc_from(arc)),
                id(net.arc_to(arc))
            ));
        }
        if !net.is_packet_link(net.arc_link(arc)) {
            return Some(format!("has arc {arc}, which carries no packets"));
        }
        if here != from && net.nodes[here as usize].kind != NodeKind::Switch {
            return Some(format!("goes through node {}, which is no switch", id(here)));
        }
        let next = net.arc_to(arc);
        if passed.contains(&next) {
            return Some(format!("passes node {} twice, which is a loop", id(next)));
        }
        passed.push(next);
    }
    let end = passed[passed.len() - 1];
    (end != to || path.is_empty())
        .then(|| format!("ends at node {}; the flow goes from host {} to host {}", id(end), id(from), id(to)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{Ecmp, Router, Spray};
    use crate::topology::parse_ns3;

    fn net() -> Network {
        // Nodes 0 and 1 are hosts, 2 and 3 their leaves, 4 and 5 spines.
        let links = ["0 2", "1 3", "2 4", "2 5", "3 4", "3 5"].map(|ends| format!("{ends} 100Gbps 1us 0\n")).concat();
        parse_ns3("example", &format!("6 4 6\n2 3 4 5\n{links}")).unwrap().network
    }

    #[test]
    fn paths_of_built_in_policies_are_right() {
        let net = net();
        let router = Router::new(&net);
        let flow = FlowKey { id: 0, src_rank: 0, dst_rank: 1, sport: 10_000, dport: 100 };
        assert_eq!(wrong_paths(&net, &flow, &router.paths(flow, &Ecmp { seed: 1 }).unwrap()), None);
        let sprayed = router.paths(flow, &Spray { seed: 1, max_paths: 2 }).unwrap();
        assert_eq!((sprayed.data.len(), wrong_paths(&net, &flow, &sprayed)), (2, None));
    }

    #[test]
    fn impossible_paths_are_named() {
        let net = net();
        let flow = FlowKey { id: 0, src_rank: 0, dst_rank: 1, sport: 10_000, dport: 100 };
        // Links are numbered as they are written; arc 2 i leads from the first node of link i.
        let (data, ack) = (vec![0, 4, 9, 3], vec![2, 8, 5, 1]);
        let why = |data: Vec<Vec<ArcIdx>>, ack: Vec<Vec<ArcIdx>>| {
            wrong_paths(&net, &flow, &FlowPaths { data, ack }).unwrap_or_default()
        };
        assert_eq!(why(vec![data.clone()], vec![ack.clone()]), "");
        for (given, part) in [
            (vec![], "gave 0 data paths"),
            (vec![vec![]], "ends at node 0"),
            (vec![vec![0, 4]], "ends at node 4"),
            (vec![vec![0, 4, 11, 3]], "does not connect: after node 4 comes arc 11"),
            (vec![vec![0, 4, 5, 4, 9, 3]], "passes node 2 twice"),
            (vec![vec![0, 99]], "has arc 99; there are 12"),
            (vec![data.clone(), vec![0, 1, 0, 4, 9, 3]], "passes node 0 twice"),
        ] {
            let text = why(given.clone(), vec![ack.clone()]);
            assert!(text.contains(part), "{given:?}: {text}");
        }
        assert!(why(vec![data.clone()], vec![data]).contains("ACK path does not connect"));
    }
}
