//! No parser panics, whatever it is given; and routes over random graphs are those of a plain search.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use hyperfold_llm::workload::{Cdf, StartUnit, parse_flows};
use hyperfold_network::routing::{
    Ecmp, EcmpKey, FlowKey, PayloadClock, RouteFile, Router, Spray, global_rtt_window, path_rtt_window,
};
use hyperfold_network::topology::text::text_of;
use hyperfold_network::topology::{
    Link, Network, Node, NodeIdx, NodeKind, parse_htsim, parse_infragraph, parse_ns3, parse_simai, to_htsim,
    to_infragraph, to_ns3, to_simai,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn corpus(file: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(file)).unwrap()
}

/// Gives the bytes to every parser; what reads must be usable.
fn parse_all(bytes: Vec<u8>) {
    let Ok(text) = text_of("fuzz", bytes) else { return };
    if let Ok(file) = parse_htsim("fuzz", &text) {
        let written = to_htsim(&file.network).expect("what the form has said, it can say again");
        assert_eq!(parse_htsim("written", &written).unwrap().network, file.network);
    }
    for read in [parse_ns3, parse_simai, parse_infragraph] {
        if let Ok(file) = read("fuzz", &text) {
            file.network.validate().unwrap();
            global_rtt_window(&Router::new(&file.network), PayloadClock::ps(1000));
            if let Ok(written) = to_ns3(&file.network) {
                parse_ns3("written", &written).unwrap();
            }
            if let Ok(written) = to_simai(&file.network, "GPU") {
                parse_simai("written", &written).unwrap();
            }
            if let Ok(written) = to_htsim(&file.network) {
                parse_htsim("written", &written).unwrap();
            }
            if let Ok(written) = to_infragraph(&file.network) {
                parse_infragraph("written", &written).unwrap();
            }
        }
    }
    if let Ok(cdf) = Cdf::parse("fuzz", &text) {
        assert!(cdf.mean() >= 0.0 && cdf.quantile(0.3) >= 1 && cdf.quantile(1.0) >= cdf.quantile(0.3));
    }
    let star = String::from_utf8(corpus("topology/ok-star.ns3")).unwrap();
    let net = parse_ns3("star", &star).unwrap().network;
    let router = Router::new(&net);
    for unit in [None, Some(StartUnit::Ns), Some(StartUnit::S)] {
        if let Ok(file) = parse_flows("fuzz", &text, &net, unit) {
            assert!(!file.flows.is_empty());
            for f in &file.flows {
                assert!(f.bytes > 0);
                router.paths(f, &Ecmp { seed: 1 }).unwrap();
            }
        }
    }
    let flows = String::from_utf8(corpus("flows/ok-ns.txt")).unwrap();
    let flows = parse_flows("flows", &flows, &net, Some(StartUnit::Ns)).unwrap().flows;
    if let Ok(routes) = RouteFile::parse("fuzz", &text, &net, &flows) {
        for f in &flows {
            if let Ok(paths) = router.paths(f, &routes) {
                assert_eq!(net.arc_from(paths.data[0][0]), net.ranks[f.src_rank as usize]);
            }
        }
    }
}

const VALID: [&str; 10] = [
    "topology/ok-infragraph.infragraph",
    "topology/ok-star.ns3",
    "topology/ok-parallel-and-notes.ns3",
    "topology/ok-two-servers.simai",
    "flows/ok-ns.txt",
    "flows/ok-seconds.txt",
    "routes/ok.txt",
    "cdf/ok.csv",
    "topo/ok-leaf-spine.topo",
    "topo/ok-three-tiers.topo",
];

/// What a mutation puts in.
const TOKENS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "4294967295",
    "18446744073709551616",
    "1e308",
    "1e-400",
    "nan",
    "\n",
    " ",
    "|",
    "#",
    "\u{feff}",
    "é",
    ".",
    "1us",
];

/// So many cases, times HYPERFOLD_SOAK where a soak sets it.
fn cases(n: u32) -> ProptestConfig {
    let factor = std::env::var("HYPERFOLD_SOAK").map_or(1, |v| v.parse().expect("HYPERFOLD_SOAK is a whole number"));
    let n = n.saturating_mul(factor);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n) }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        parse_all(bytes);
    }

    #[test]
    fn arbitrary_fields(fields in vec((0usize..TOKENS.len(), any::<bool>()), 0..60)) {
        let text: String = fields.iter().map(|&(t, space)| format!("{}{}", TOKENS[t], if space { " " } else { "\n" })).collect();
        parse_all(text.into_bytes());
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn mutated_files(file in 0usize..VALID.len(), edits in vec((any::<Index>(), any::<Index>(), 0usize..TOKENS.len() + 2), 1..4)) {
        let mut bytes = corpus(VALID[file]);
        for (from, to, what) in edits {
            let (a, b) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
            match TOKENS.get(what) {
                // Over a few bytes, a token; else cut a piece out, or repeat one.
                Some(t) => { bytes.splice(a..(a + 3).min(bytes.len()), t.bytes()); }
                None if what % 2 == 0 => { bytes.drain(a.min(b)..a.max(b)); }
                None => { let piece = bytes[a.min(b)..a.max(b)].to_vec(); bytes.splice(a..a, piece); }
            }
        }
        parse_all(bytes);
    }
}

/// A connected network: a random tree of switches with extra links, a host per entry of `hosts`. Host ids lie anywhere among the switches'.
fn network(parents: &[Index], extra: &[(Index, Index)], hosts: &[Index], hosts_first: bool) -> Network {
    let (n_switches, n_hosts) = (parents.len() + 1, hosts.len());
    let (host_0, switch_0) = if hosts_first { (0, n_hosts) } else { (n_switches, 0) };
    let link = |a: usize, b: usize, i: usize| Link {
        a: a as NodeIdx,
        b: b as NodeIdx,
        rate_bps: [25, 100, 400][i % 3] * 1_000_000_000,
        delay_ps: 1000 * (1 + i as u64 % 7),
    };
    let mut links = Vec::new();
    for (i, p) in parents.iter().enumerate() {
        links.push(link(switch_0 + i + 1, switch_0 + p.index(i + 1), i));
    }
    for (i, (a, b)) in extra.iter().enumerate() {
        let (a, b) = (a.index(n_switches), b.index(n_switches));
        if a != b {
            links.push(link(switch_0 + a, switch_0 + b, i));
        }
    }
    for (i, at) in hosts.iter().enumerate() {
        links.push(link(host_0 + i, switch_0 + at.index(n_switches), i));
    }
    let nodes = (0..n_switches + n_hosts).map(|i| {
        let host = i >= host_0 && i < host_0 + n_hosts;
        let (kind, server) = if host { (NodeKind::Host, (i - host_0) as u32) } else { (NodeKind::Switch, u32::MAX) };
        Node { kind, id: 3 * i as u32, server }
    });
    let ranks = (host_0..host_0 + n_hosts).map(|i| i as NodeIdx).collect();
    Network::new(nodes.collect(), links, ranks, None).unwrap()
}

/// Next hops of every node towards `dst` in the order in which a breadth-first search from it leaves them, as the reference does; a
/// parallel link is a next hop of its own.
fn plain_next_hops(net: &Network, dst: NodeIdx) -> Vec<Vec<u32>> {
    let mut arcs = net.out_arcs();
    for (v, list) in arcs.iter_mut().enumerate() {
        list.sort_by_key(|&a| (net.arc_to(a), a));
        assert!(list.iter().all(|&a| net.arc_from(a) == v as NodeIdx));
    }
    let mut dist = vec![usize::MAX; net.nodes.len()];
    let mut next = vec![Vec::new(); net.nodes.len()];
    dist[dst as usize] = 0;
    let mut queue = VecDeque::from([dst]);
    while let Some(u) = queue.pop_front() {
        if u != dst && net.nodes[u as usize].kind == NodeKind::Host {
            continue;
        }
        for &arc in &arcs[u as usize] {
            let v = net.arc_to(arc) as usize;
            if dist[v] == usize::MAX {
                dist[v] = dist[u as usize] + 1;
                queue.push_back(v as NodeIdx);
            }
            if dist[v] == dist[u as usize] + 1 {
                next[v].push(arc ^ 1);
            }
        }
    }
    next
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn routes_over_random_graphs_are_those_of_a_plain_search(
        parents in vec(any::<Index>(), 0..12),
        extra in vec((any::<Index>(), any::<Index>()), 0..20),
        hosts in vec(any::<Index>(), 2..6),
        hosts_first in any::<bool>(),
        sport in 10_000u16..10_100,
    ) {
        let net = network(&parents, &extra, &hosts, hosts_first);
        let router = Router::new(&net);
        let mut rtt_ps = 0;
        for dst in 0..hosts.len() as u32 {
            let next = plain_next_hops(&net, net.ranks[dst as usize]);
            let follow = |src: u32, key: Option<EcmpKey>| {
                let (mut at, end) = (net.ranks[src as usize], net.ranks[dst as usize]);
                let mut path = Vec::new();
                while at != end {
                    let hops = &next[at as usize];
                    let pick = key.map_or(0, |k| k.hash(net.nodes[at as usize].id) as usize % hops.len());
                    path.push(hops[pick]);
                    at = net.arc_to(hops[pick]);
                }
                path
            };
            for src in (0..hosts.len() as u32).filter(|&s| s != dst) {
                let id = |rank: u32| net.nodes[net.ranks[rank as usize] as usize].id;
                let flow = FlowKey { id: 0, src_rank: src, dst_rank: dst, sport, dport: 100 };
                let paths = router.paths(flow, &Ecmp { seed: 1 }).unwrap();
                prop_assert_eq!(&paths.data[0], &follow(src, Some(EcmpKey::new(id(src), id(dst), sport, 100))));
                // The way back from dst to src is the ACK path of the flow from src to dst: ports swapped.
                let back = FlowKey { id: 0, src_rank: dst, dst_rank: src, sport: 100, dport: sport };
                prop_assert_eq!(&paths.ack[0], &router.paths(back, &Ecmp { seed: 1 }).unwrap().data[0]);
                rtt_ps = rtt_ps.max(path_rtt_window(&net, &follow(src, None), PayloadClock::ps(1000)).rtt_ps);
                let all = router.paths(flow, &Spray { seed: 1, max_paths: 10_000 }).unwrap();
                prop_assert!(all.data.contains(&paths.data[0]) && all.ack.contains(&paths.ack[0]));
            }
        }
        prop_assert_eq!(global_rtt_window(&router, PayloadClock::ps(1000)).rtt_ps, rtt_ps);
    }
}
