//! Golden cases: folders of an independent reference's inputs and results, read into the shared types.
//!
//! A small reader for well-formed files; it panics with file and line otherwise. It takes the paths from `routes.txt` and the
//! base RTT from `timing.json`, so nothing here depends on the project's own readers, routing or unit conversion.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeKind};
use hyperfold_network::transport::{Cc, EcnThresholds, LossRecovery, Nscc, PortWeights, RttWindow, Swift, Transport};

use super::Case;

/// A golden case and what the reference made of it.
#[derive(Clone, Debug)]
pub struct Golden {
    /// The folder's name, for example `c2_incast8_1M_hpcc`.
    pub name: String,
    pub case: Case,
    /// Flow completion times of the reference, ns, by flow.
    pub fct_ns: Vec<u64>,
    /// Pause frames received (not resumes), hosts and switches.
    pub pauses: u64,
    /// Pause and resume frames received.
    pub pfc_frames: u64,
    /// Data and ACK packets leaving a port, where the case tells.
    pub packet_hops: Option<u64>,
    /// Repeats of the reference with other marking seeds: a row a repeat, a column a flow, ns. Empty if there are none.
    pub fct_seeds: Vec<Vec<u64>>,
    /// Repeats with start jitter of 0..100 ns; as above.
    pub fct_jitter: Vec<Vec<u64>>,
}

impl Golden {
    /// Whether the reference can be met flow by flow (DCQCN with sloping thresholds marks at random).
    pub fn deterministic(&self) -> bool {
        !self.name.ends_with("_dcqcn")
    }

    pub fn has_cc(&self) -> bool {
        self.case.transport.cc != Cc::None
    }
}

/// The folder of golden cases: under `HYPERFOLD_SHARED`, else `../shared` beside the crate. `None` where it is absent.
pub fn root() -> Option<PathBuf> {
    let shared = match std::env::var_os("HYPERFOLD_SHARED") {
        Some(dir) => PathBuf::from(dir),
        None => beside_the_crate()?,
    };
    let dir = shared.join("golden");
    dir.is_dir().then_some(dir)
}

/// `../shared` of the crate, or of a folder that holds worktrees of it.
fn beside_the_crate() -> Option<PathBuf> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.ancestors().skip(1).take(2).map(|d| d.join("shared")).find(|d| d.is_dir())
}

/// The folders of cases that are there: the golden ones, and further ones from the reference's executable model.
fn folders() -> Vec<PathBuf> {
    let Some(dir) = root() else { return Vec::new() };
    let more = dir.with_file_name("golden-random");
    [dir, more].into_iter().filter(|dir| dir.is_dir()).collect()
}

/// The folder of the case called `name`.
pub fn folder(name: &str) -> PathBuf {
    let all = folders();
    all.iter().map(|dir| dir.join(name)).find(|dir| dir.is_dir()).unwrap_or_else(|| panic!("{name}: no such case"))
}

/// Names of all cases, sorted. Empty where the folder is absent.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = folders()
        .iter()
        .flat_map(|dir| fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())))
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("config.txt").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Loads the case called `name`. Panics if it is not there or malformed.
pub fn load(name: &str) -> Golden {
    let dir = folder(name);
    let config = config(&dir.join("config.txt"));
    let timing: serde_json::Value = serde_json::from_str(&text(&dir.join("timing.json"))).unwrap();
    let number = |key: &str| timing[key].as_u64().unwrap_or_else(|| panic!("{name}/timing.json: no `{key}`"));
    let hops = |key: &str| timing[key].as_u64();
    let transport = transport(&config);
    let network = network(&dir.join("topology.txt"));
    let (flows, paths) = flows(&dir, &network);
    let rtt = RttWindow { rtt_ps: number("maxRtt_ns") * 1000, window_bytes: number("maxBdp_bytes") };
    let mut fct_ns = vec![0; flows.len()];
    for row in rows(&dir.join("fct.txt")) {
        fct_ns[parse::<usize>(&row[0])] = parse(&row[7]);
    }
    assert!(fct_ns.iter().all(|&t| t > 0), "{name}/fct.txt: a flow is missing");
    let pfc = dir.join("pfc.txt");
    let pauses = match pfc.is_file() {
        true => rows(&pfc).iter().filter(|r| r[4] == "1").count() as u64,
        // The executable model counts pauses only.
        false => number("pfc_frames_received"),
    };
    Golden {
        name: name.to_string(),
        case: Case { rtt: vec![rtt; flows.len()], network, flows, paths, transport, changes: Vec::new() },
        fct_ns,
        pauses,
        pfc_frames: number("pfc_frames_received"),
        packet_hops: hops("data_packet_hops").zip(hops("ack_packet_hops")).map(|(data, acks)| data + acks),
        fct_seeds: repeats(&dir.join("fct_seeds.txt")),
        fct_jitter: repeats(&dir.join("fct_jitter.txt")),
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The file's rows of words, without comments and empty lines.
fn rows(path: &Path) -> Vec<Vec<String>> {
    text(path)
        .lines()
        .filter(|l| !l.starts_with('#') && !l.trim().is_empty())
        .map(|l| l.split_whitespace().map(str::to_string).collect())
        .collect()
}

fn parse<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is not a number"))
}

fn repeats(path: &Path) -> Vec<Vec<u64>> {
    if !path.is_file() {
        return Vec::new();
    }
    rows(path).iter().map(|r| r.iter().map(|w| parse(w)).collect()).collect()
}

fn network(path: &Path) -> Network {
    let rows = rows(path);
    let n_nodes: u32 = parse(&rows[0][0]);
    let n_switches: usize = parse(&rows[0][1]);
    let n_links: usize = parse(&rows[0][2]);
    let mut kinds = vec![NodeKind::Host; n_nodes as usize];
    // The list of switch ids may be wrapped over lines; links start where it is complete.
    let mut seen = 0;
    let mut line = 1;
    while seen < n_switches {
        for word in &rows[line] {
            kinds[parse::<usize>(word)] = NodeKind::Switch;
            seen += 1;
        }
        line += 1;
    }
    let ranks: Vec<u32> = (0..n_nodes).filter(|&i| kinds[i as usize] == NodeKind::Host).collect();
    let nodes = (0..n_nodes)
        .map(|id| Node {
            kind: kinds[id as usize],
            id,
            server: ranks.binary_search(&id).map_or(u32::MAX, |rank| rank as u32),
        })
        .collect();
    let links: Vec<Link> = rows[line..]
        .iter()
        .map(|r| Link { a: parse(&r[0]), b: parse(&r[1]), rate_bps: rate(&r[2]), delay_ps: delay(&r[3]) })
        .collect();
    assert_eq!(links.len(), n_links, "{}: number of links", path.display());
    Network { nodes, links, ranks, nvlink: None, ..Network::default() }
}

fn rate(word: &str) -> u64 {
    let (digits, scale) = match (word.strip_suffix("Gbps"), word.strip_suffix("Mb/s")) {
        (Some(d), _) => (d, 1_000_000_000),
        (_, Some(d)) => (d, 1_000_000),
        _ => panic!("`{word}` is not a rate in Gbps or Mb/s"),
    };
    parse::<u64>(digits) * scale
}

fn delay(word: &str) -> u64 {
    let (digits, scale) = match (word.strip_suffix("us"), word.strip_suffix("ns")) {
        (Some(d), _) => (d, 1_000_000),
        (_, Some(d)) => (d, 1_000),
        _ => panic!("`{word}` is not a delay in us or ns"),
    };
    parse::<u64>(digits) * scale
}

fn flows(dir: &Path, network: &Network) -> (Vec<Flow>, Vec<FlowPaths>) {
    let arcs: HashMap<(u32, u32), ArcIdx> = network
        .links
        .iter()
        .enumerate()
        .rev()
        .flat_map(|(i, l)| [((l.a, l.b), 2 * i as ArcIdx), ((l.b, l.a), 2 * i as ArcIdx + 1)])
        .collect();
    let path = |words: &str| -> Vec<ArcIdx> {
        let nodes: Vec<u32> = words.split_whitespace().map(parse).collect();
        nodes.windows(2).map(|w| arcs[&(w[0], w[1])]).collect()
    };
    let rank = |id: &str| network.ranks.binary_search(&parse(id)).expect("flows run between hosts") as u32;
    let routes = text(&dir.join("routes.txt"));
    let routes = routes.lines().filter(|l| !l.starts_with('#'));
    let mut flows = Vec::new();
    let mut paths = Vec::new();
    for (i, (row, route)) in rows(&dir.join("flows.txt"))[1..].iter().zip(routes).enumerate() {
        let parts: Vec<&str> = route.split('|').collect();
        let head: Vec<&str> = parts[0].split_whitespace().collect();
        assert_eq!((head[0], head[1], head[2]), (i.to_string().as_str(), row[0].as_str(), row[1].as_str()));
        flows.push(Flow {
            id: i as u32,
            src_rank: rank(&row[0]),
            dst_rank: rank(&row[1]),
            bytes: parse(&row[4]),
            start_ps: parse::<u64>(&row[5]) * 1000,
            sport: parse(head[3]),
            dport: parse(head[4]),
            class: parse(&row[2]),
        });
        paths.push(FlowPaths { data: vec![path(parts[1])], ack: vec![path(parts[2])] });
    }
    (flows, paths)
}

fn config(path: &Path) -> HashMap<String, String> {
    text(path)
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| l.split_once(' '))
        .map(|(k, v)| (k.to_string(), v.trim().to_string()))
        .collect()
}

/// `x` with `bits` fraction bits, rounded.
pub fn fixed(x: f64, bits: i32) -> u64 {
    (x * 2f64.powi(bits)).round() as u64
}

fn transport(config: &HashMap<String, String>) -> Transport {
    let word = |key: &str| config.get(key).unwrap_or_else(|| panic!("config.txt: no `{key}`")).as_str();
    let int = |key: &str| parse::<u64>(word(key));
    let flag = |key: &str| int(key) != 0;
    let real = |key: &str| parse::<f64>(word(key));
    let us = |key: &str| (real(key) * 1e6).round() as u64;
    // The maps are `count`, then `rate value` pairs.
    let map = |key: &str| -> Vec<(u64, f64)> {
        let words: Vec<&str> = word(key).split_whitespace().skip(1).collect();
        words.chunks(2).map(|c| (parse(c[0]), parse(c[1]))).collect()
    };
    let kb = |x: f64| (x * 1000.0).round() as u64;
    let (cc, data_overhead, ack_bytes) = match int("CC_MODE") {
        0 => (Cc::None, 48, 60),
        1 => (Cc::Dcqcn, 48, 60),
        3 => (Cc::Hpcc, 90, 88),
        7 => (Cc::Timely, 56, 60),
        8 => (Cc::Dctcp, 48, 60),
        other => panic!("CC_MODE {other} has no model"),
    };
    let ecn_by_rate = map("KMIN_MAP")
        .into_iter()
        .zip(map("KMAX_MAP"))
        .zip(map("PMAX_MAP"))
        .map(|(((r, kmin), (_, kmax)), (_, pmax))| {
            (r, EcnThresholds { kmin_bytes: kb(kmin), kmax_bytes: kb(kmax), pmax_q32: fixed(pmax, 32) })
        })
        .collect();
    Transport {
        cc,
        clock_ps: 1000,
        seed: int("RNG_RUN") as u32,
        routing_seed: 1,
        payload: int("PACKET_PAYLOAD_SIZE") as u32,
        data_overhead,
        ack_bytes,
        ack_interval: int("L2_ACK_INTERVAL"),
        chunk: int("L2_CHUNK_SIZE"),
        loss_recovery: LossRecovery::Ns3,
        nack_interval_ps: 500_000_000,
        spray_in_turn: false,
        recycles_paths: false,
        grade_packets: None,
        port_weights: PortWeights::None,
        remote_queues_ps: 0,
        flowlet_gap_ps: 0,
        psn_range: 0,
        packet_threshold: 0,
        cnp_interval_ps: 0,
        // The reference has no retransmission timer; a second is longer than any case.
        rto_ps: 1_000_000_000_000,
        rto_retries: 7,
        ack_high_prio: flag("ACK_HIGH_PRIO"),
        rate_bound: flag("RATE_BOUND"),
        window: flag("HAS_WIN"),
        var_window: flag("VAR_WIN"),
        min_rate: rate(word("MIN_RATE")),
        rai: rate(word(if cc == Cc::Dctcp { "DCTCP_RATE_AI" } else { "RATE_AI" })),
        rhai: rate(word("RATE_HAI")),
        g_q32: fixed(real("EWMA_GAIN"), 32),
        dcqcn_alpha_ps: us("ALPHA_RESUME_INTERVAL"),
        dcqcn_decrease_ps: us("RATE_DECREASE_INTERVAL"),
        dcqcn_increase_ps: us("RP_TIMER"),
        dcqcn_fast_recovery: int("FAST_RECOVERY_TIMES") as u32,
        dcqcn_clamp: flag("CLAMP_TARGET_RATE"),
        eta_q40: fixed(real("U_TARGET"), 40),
        eta_q48: fixed(real("U_TARGET"), 48),
        mi_thresh: int("MI_THRESH") as u32,
        int_multi: int("INT_MULTI") as u32,
        fast_react: flag("FAST_REACT"),
        timely_alpha_q32: fixed(real("TIMELY_ALPHA"), 32),
        timely_beta_q32: fixed(real("TIMELY_BETA"), 32),
        timely_tlow_ps: int("TIMELY_TLOW") * 1000,
        timely_thigh_ps: int("TIMELY_THIGH") * 1000,
        timely_min_rtt_ps: int("TIMELY_MINRTT") * 1000,
        swift: Swift::default(),
        nscc: Nscc::default(),
        credit: None,
        cut_through_bytes: 0,
        watchdog: None,
        ecn_average_weight: 0,
        wred_drops: false,
        ecn: flag("ENABLE_QCN"),
        pfc: flag("PFC_ENABLED"),
        buffer_bytes: int("BUFFER_SIZE") << 20,
        port_queue_per_100g: 0,
        trimming: false,
        tier_buffers: None,
        reserve_bytes: 4096,
        resume_offset_bytes: 3072,
        pfc_alpha_shift: int("PFC_ALPHA_SHIFT") as u32,
        ecn_by_rate,
        ecn_per_100g: EcnThresholds { kmin_bytes: 400_000, kmax_bytes: 1_600_000, pmax_q32: fixed(0.2, 32) },
        global_rtt: true,
        classes: Vec::new(),
    }
}
