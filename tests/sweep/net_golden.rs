//! Topologies, flows, routes and base RTTs against the reference's golden cases and real files, where `shared` lies beside the project.

use std::fs;
use std::path::{Path, PathBuf};

use hyperfold_base::units::PS_PER_NS;
use hyperfold_llm::workload::{Flow, StartUnit, read_flows};
use hyperfold_network::routing::{Ecmp, PayloadClock, RouteFile, Router, global_rtt_window};
use hyperfold_network::topology::{Network, NodeKind, TopologyFormat, parse_ns3, read_topology, to_ns3};

/// The folder of references, beside the checkout or one further up (a git worktree).
fn shared() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = ["../shared", "../../shared"].iter().map(|p| here.join(p)).find(|p| p.join("golden").is_dir());
    if found.is_none() {
        println!("no ../shared/golden here: nothing to compare with");
    }
    found
}

fn golden_cases() -> Vec<PathBuf> {
    let Some(shared) = shared() else { return Vec::new() };
    let mut cases: Vec<PathBuf> = fs::read_dir(shared.join("golden"))
        .expect("golden folder can be listed")
        .map(|e| e.expect("entry can be read").path())
        .filter(|p| p.join("routes.txt").is_file())
        .collect();
    cases.sort();
    assert!(cases.len() > 50, "golden cases are missing: {}", cases.len());
    cases
}

fn load(case: &Path) -> (Network, Vec<Flow>) {
    let topology = read_topology(&case.join("topology.txt"), TopologyFormat::Ns3).unwrap();
    assert_eq!(topology.left_out, 0);
    let flows = read_flows(&case.join("flows.txt"), &topology.network, Some(StartUnit::Ns)).unwrap();
    assert_eq!(flows.left_out, 0);
    (topology.network, flows.flows)
}

/// A path as the node ids of a route file.
fn ids(net: &Network, path: &[u32]) -> String {
    let mut out = net.nodes[net.arc_from(path[0]) as usize].id.to_string();
    for &arc in path {
        out += &format!(" {}", net.nodes[net.arc_to(arc) as usize].id);
    }
    out
}

#[test]
fn ecmp_takes_the_reference_s_path_for_every_golden_flow() {
    let mut n = 0;
    for case in golden_cases() {
        let (net, flows) = load(&case);
        let router = Router::new(&net);
        let mut lines = vec!["# flow_id src dst sport dport | data path node ids | ack path node ids".to_string()];
        for f in &flows {
            let paths = router.paths(f, &Ecmp { seed: 1 }).unwrap();
            let host = |rank: u32| net.nodes[net.ranks[rank as usize] as usize].id;
            lines.push(format!(
                "{} {} {} {} {} | {} | {}",
                f.id,
                host(f.src_rank),
                host(f.dst_rank),
                f.sport,
                f.dport,
                ids(&net, &paths.data[0]),
                ids(&net, &paths.ack[0])
            ));
            n += 1;
        }
        let expected = fs::read_to_string(case.join("routes.txt")).unwrap();
        assert_eq!(lines.join("\n"), expected.trim_end(), "{}", case.display());
    }
    println!("{n} flows routed as in the reference");
}

#[test]
fn golden_route_files_read_to_the_same_paths() {
    for case in golden_cases() {
        let (net, flows) = load(&case);
        let text = fs::read_to_string(case.join("routes.txt")).unwrap();
        let file = RouteFile::parse("routes.txt", &text, &net, &flows).unwrap();
        let router = Router::new(&net);
        for f in &flows {
            let read = router.paths(f, &file).unwrap();
            assert_eq!(read, router.paths(f, &Ecmp { seed: 1 }).unwrap(), "{} flow {}", case.display(), f.id);
        }
    }
}

#[test]
fn base_rtt_and_window_are_the_reference_s() {
    for case in golden_cases() {
        let (net, _) = load(&case);
        let timing = fs::read_to_string(case.join("timing.json")).unwrap();
        let timing: serde_json::Value = serde_json::from_str(&timing).unwrap();
        let ours = global_rtt_window(&Router::new(&net), PayloadClock::ps(1000));
        assert_eq!(Some(ours.rtt_ps), timing["maxRtt_ns"].as_u64().map(|ns| ns * PS_PER_NS), "{}", case.display());
        assert_eq!(Some(ours.window_bytes), timing["maxBdp_bytes"].as_u64(), "{}", case.display());
    }
}

#[test]
fn golden_topologies_survive_being_written_and_read() {
    for case in golden_cases() {
        let (net, _) = load(&case);
        assert_eq!(parse_ns3("written", &to_ns3(&net).unwrap()).unwrap().network, net);
    }
}

#[test]
fn real_topologies_and_flows_of_others_read() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("inputs/topology");
    let count = |net: &Network, kind| net.nodes.iter().filter(|n| n.kind == kind).count();
    let mut rows = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        let format = if name.starts_with("simai") { TopologyFormat::Simai } else { TopologyFormat::Ns3 };
        let file = read_topology(&path, format).unwrap_or_else(|e| panic!("{e}"));
        let net = &file.network;
        // Every host reaches the last one.
        let router = Router::new(net);
        let last = net.ranks.len() as u32 - 1;
        for src in 0..last {
            let flow = Flow {
                id: src,
                src_rank: src,
                dst_rank: last,
                bytes: 1,
                start_ps: 0,
                sport: 10_000,
                dport: 100,
                class: 3,
            };
            let paths = router.paths(&flow, &Ecmp { seed: 1 }).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(paths.data[0][0] ^ 1, *paths.ack[0].last().unwrap(), "{name}: one NIC at the source");
            assert_eq!(*paths.data[0].last().unwrap() ^ 1, paths.ack[0][0], "{name}: one NIC at the destination");
        }
        rows.push((
            name,
            count(net, NodeKind::Host),
            count(net, NodeKind::Switch),
            count(net, NodeKind::NvSwitch),
            net.nvlink.map(|n| (n.rate_bps / 1_000_000_000, n.latency_ps)),
            file.left_out,
        ));
    }
    rows.sort();
    insta::assert_debug_snapshot!(rows);

    let hpcc = read_topology(&folder.join("hpcc_topology.txt"), TopologyFormat::Ns3).unwrap().network;
    let path = shared.join("inputs/traffic/hpcc_flow.txt");
    let ambiguous = read_flows(&path, &hpcc, None).unwrap_err().to_string();
    assert!(ambiguous.contains("start_unit"), "{ambiguous}");
    let flows = read_flows(&path, &hpcc, Some(StartUnit::S)).unwrap();
    assert_eq!((flows.flows.len(), flows.flows[1].start_ps), (2, 2_000_000_000_000));
    assert_eq!(
        (flows.flows[1].src_rank, flows.flows[1].dst_rank),
        (2, 0),
        "host 1 is the first rank: the switch is node 0"
    );
}
