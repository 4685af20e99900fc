//! Generated fabrics of segments, planes, groups and dimensions: counts, distances, halves and paths as their formulas say.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS, PS_PER_US};
use hyperfold_network::routing::{Distances, Ecmp, FlowKey, Router, RoutingPolicy};
use hyperfold_network::topology::{
    BCube, Clos, Dragonfly, DragonflyPlus, Fabric, FabricShape, FatTree, GridFabric, GridLinks, Network, NodeKind,
    RailOptimized, SegmentPods, Segments, Sites, SlimFly, TopologyFormat, bisection_bps, read_topology,
};

/// One host a server, 100 Gb/s everywhere.
pub fn flat(hosts: u32) -> Fabric {
    let bps = 100 * BPS_PER_GBPS;
    Fabric {
        gpus: hosts,
        gpus_per_server: 1,
        nics_per_server: 1,
        nic_ports: 1,
        link_bps: bps,
        uplink_bps: bps,
        core_bps: bps,
        global_bps: bps,
        link_delay_ps: PS_PER_US,
        uplink_delay_ps: PS_PER_US,
        core_delay_ps: PS_PER_US,
        global_delay_ps: PS_PER_US,
        switch_latency_ps: 0,
        nvlink: None,
    }
}

/// Servers of eight GPUs and NICs, links of 400 Gb/s and 500 ns, as SimAI's generator has them.
pub fn simai(gpus: u32, nic_ports: u32, link_gbps: u64) -> Fabric {
    let delay = 500 * PS_PER_NS;
    Fabric {
        gpus_per_server: 8,
        nics_per_server: 8,
        nic_ports,
        link_bps: link_gbps * BPS_PER_GBPS,
        uplink_bps: 400 * BPS_PER_GBPS,
        link_delay_ps: delay,
        uplink_delay_ps: delay,
        core_delay_ps: delay,
        global_delay_ps: delay,
        ..flat(gpus)
    }
}

pub fn distances(net: &Network) -> Distances {
    Router::new(net).distances()
}

/// Links to other switches of each switch, and how many switches have so many.
fn degrees(net: &Network) -> BTreeMap<usize, usize> {
    let is_switch = |v: u32| net.nodes[v as usize].kind == NodeKind::Switch;
    let mut degree = BTreeMap::<u32, usize>::new();
    for link in net.links.iter().filter(|l| is_switch(l.a) && is_switch(l.b)) {
        *degree.entry(link.a).or_default() += 1;
        *degree.entry(link.b).or_default() += 1;
    }
    let mut counts = BTreeMap::new();
    degree.into_values().for_each(|d| *counts.entry(d).or_default() += 1);
    counts
}

/// What a network looks like whatever its switches are called: each switch by its hosts, and each upper switch by what the lower ones look like.
pub fn canonical(net: &Network) -> Vec<String> {
    let mut looks: Vec<String> = net.nodes.iter().map(|_| "switch".to_string()).collect();
    // Hosts are told apart by their number, NVSwitches are not part of the comparison.
    for (i, node) in net.nodes.iter().enumerate().filter(|(_, n)| n.kind == NodeKind::Host) {
        looks[i] = format!("host{}", node.id);
    }
    for _ in 0..3 {
        let mut seen: Vec<Vec<String>> = vec![Vec::new(); looks.len()];
        for l in net.links.iter().filter(|l| net.is_packet_link(l)) {
            for (v, far) in [(l.a, l.b), (l.b, l.a)] {
                seen[v as usize].push(format!("{} {} {}", l.rate_bps, l.delay_ps, looks[far as usize]));
            }
        }
        for (i, mut seen) in seen.into_iter().enumerate() {
            if net.nodes[i].kind == NodeKind::Switch {
                seen.sort_unstable();
                // A hash keeps the text of the next round short.
                looks[i] = format!("{:016x}", seen.iter().fold(0u64, |h, s| fold(h, s)));
            }
        }
    }
    let mut all: Vec<String> =
        looks.into_iter().zip(&net.nodes).filter(|(_, n)| n.kind == NodeKind::Switch).map(|(l, _)| l).collect();
    all.sort_unstable();
    all
}

fn fold(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash.wrapping_mul(31).wrapping_add(7), |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

pub fn shared(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = ["../shared", "../../shared"].iter().map(|p| here.join(p).join("inputs/topology").join(name));
    found.into_iter().find(|p| p.is_file())
}

#[test]
fn segments_are_those_of_simais_generator() {
    let segments = |servers, by_rail, planes, spines| {
        FabricShape::Segments(Segments {
            servers_per_segment: servers,
            by_rail,
            planes,
            spines,
            oversubscription: 1000,
            pods: None,
        })
    };
    let cases = [
        ("simai_spectrum-x_128g_400g_h100.txt", segments(64, true, 1, 64), simai(128, 1, 400)),
        ("simai_spectrum-x_8g_400g_h100.txt", segments(64, true, 1, 1), simai(8, 1, 400)),
        ("simai_dcn-plus_single-tor_128g_200g_a100.txt", segments(8, false, 1, 8), simai(128, 1, 200)),
        ("simai_hpn_dual-tor_dual-plane_64g_200g_h100.txt", segments(16, true, 2, 8), simai(64, 2, 400)),
    ];
    for (name, shape, fabric) in cases {
        let Some(path) = shared(name) else {
            println!("no ../shared/inputs/topology/{name} here: nothing to compare with");
            continue;
        };
        let theirs = read_topology(&path, TopologyFormat::Simai).unwrap().network;
        let ours = shape.build(&fabric).unwrap();
        assert_eq!(theirs.ranks.len(), ours.ranks.len(), "{name}");
        assert_eq!(canonical(&theirs), canonical(&ours), "{name}");
    }
    let wrong = segments(64, true, 1, 63).build(&simai(128, 1, 400)).unwrap();
    let right = segments(64, true, 1, 64).build(&simai(128, 1, 400)).unwrap();
    assert_ne!(canonical(&wrong), canonical(&right), "the comparison sees one spine");
}

#[test]
fn a_port_stays_in_its_plane() {
    let hpn =
        Segments { servers_per_segment: 4, by_rail: true, planes: 2, spines: 3, oversubscription: 1000, pods: None };
    let joined = Segments { pods: Some(pods_of(2, 0, 0)), servers_per_segment: 2, ..hpn };
    let planes = Clos { planes: 4, hosts_per_leaf: 4, spines: 2, ..Clos::default() };
    let three = Clos { planes: 2, tiers: 3, hosts_per_leaf: 4, spines: 2, pods: 3, ..Clos::default() };
    for (net, ports) in [
        (hpn.build(&simai(64, 2, 400)).unwrap(), 2),
        (joined.build(&simai(64, 2, 400)).unwrap(), 2),
        (planes.build(&simai(64, 4, 400)).unwrap(), 4),
        (three.build(&simai(64, 2, 400)).unwrap(), 2),
    ] {
        let (names, router) = (net.names(), Router::new(&net));
        let plane_of = |node: u32| {
            let name = &names[node as usize];
            match name.split_once("plane") {
                Some((_, rest)) => rest.split('.').next().unwrap().to_string(),
                None => name.rsplit("tor").next().unwrap().to_string(),
            }
        };
        for port in 0..ports {
            for (src_rank, dst_rank) in [(0, 63), (5, 40), (33, 2)] {
                let key = FlowKey { id: 0, src_rank, dst_rank, sport: 10_000, dport: 100 };
                let paths = router.paths_from(key, &Ecmp { seed: 1 }, Some(port)).unwrap();
                for path in paths.data.iter().chain(&paths.ack) {
                    let inner = &path[..path.len() - 1];
                    let planes: Vec<String> = inner.iter().map(|&arc| plane_of(net.arc_to(arc))).collect();
                    assert!(planes.windows(2).all(|p| p[0] == p[1]), "port {port}: {planes:?}");
                }
            }
        }
        assert_eq!(distances(&net).unreached_pairs, 0);
        assert!(Router::new(&net).waiting_ring().is_none());
    }
}

/// Pods of HPN: up to 15 segments, 15 to 1 above the aggregation switches where `cores` is 0.
pub fn pods_of(segments_per_pod: u32, pods: u32, cores: u32) -> SegmentPods {
    SegmentPods { pods, segments_per_pod, cores, oversubscription: 15_000 }
}

/// How many switches have names with this word in them.
fn n_named(net: &Network, word: &str) -> usize {
    net.names().iter().filter(|name| name.contains(word)).count()
}

/// Numbers of links by their rate and delay.
pub fn kinds_of_links(net: &Network) -> BTreeMap<(u64, u64), usize> {
    let mut kinds = BTreeMap::new();
    net.links.iter().for_each(|link| *kinds.entry((link.rate_bps, link.delay_ps)).or_default() += 1);
    kinds
}

#[test]
fn cores_join_pods_of_segments() {
    // Two whole pods of HPN 7.0: 30 segments of 1,024 GPUs. A leaf has 128 ports of 200 Gb/s and 60 links of 400 upward, an aggregation switch 120 down and 8 up.
    let bps = 400 * BPS_PER_GBPS;
    let (up, core) = (2 * PS_PER_US, 5 * PS_PER_US);
    let fabric = |gpus| Fabric { uplink_delay_ps: up, core_delay_ps: core, core_bps: bps, ..simai(gpus, 2, 400) };
    let hpn = Segments {
        servers_per_segment: 128,
        by_rail: true,
        planes: 2,
        spines: 60,
        oversubscription: 1000,
        pods: Some(pods_of(15, 0, 0)),
    };
    let net = hpn.build(&fabric(30_720)).unwrap();
    let (leaves, aggs) = (30 * 8 * 2, 2 * 2 * 60);
    assert_eq!((n_named(&net, "tor"), n_named(&net, "agg"), n_named(&net, "core")), (leaves, aggs, 2 * 60 * 8));
    assert_eq!(
        kinds_of_links(&net),
        BTreeMap::from([
            ((200 * BPS_PER_GBPS, 500 * PS_PER_NS), 30_720 * 2),
            ((bps, up), leaves * 60),
            ((bps, core), aggs * 8)
        ])
    );
    let tiers = net.tiers();
    let in_tier = |tier: u32| tiers.iter().filter(|&&t| t == tier).count();
    assert_eq!([1, 2, 3].map(in_tier), [leaves, aggs, 2 * 60 * 8], "leaves, aggregation switches, cores");
    // The halves are the pods, whose aggregation switches have 8 links of 400 Gb/s to cores each.
    assert_eq!(bisection_bps(&net), 2 * 60 * 8 * bps);
    for (name, at) in [
        ("pod0.segment0.rail0.tor0", 0),
        ("pod1.segment0.rail0.tor0", 15 * 16),
        ("pod1.segment14.rail7.tor1", leaves - 1),
        ("pod0.plane1.agg3", leaves + 63),
        ("pod1.plane0.agg0", leaves + 120),
        ("plane1.core0", leaves + aggs + 480),
    ] {
        assert_eq!(net.names()[30_720 + at], name);
    }

    // DCN+ without oversubscription: 8 segments of 128 GPUs in pods of 4. Any half of the GPUs reaches the other at the rate of its NICs.
    let dcn_pods = SegmentPods { oversubscription: 1000, ..pods_of(4, 0, 0) };
    let dcn = Segments {
        servers_per_segment: 16,
        by_rail: false,
        planes: 1,
        spines: 0,
        oversubscription: 1000,
        pods: Some(dcn_pods),
    };
    let net = dcn.build(&fabric(1024)).unwrap();
    // A leaf has 128 ports of 200 Gb/s, so 64 uplinks; an aggregation switch 8 leaves below, so 8 cores above.
    assert_eq!((n_named(&net, "tor"), n_named(&net, "agg"), n_named(&net, "core")), (16, 2 * 64, 64 * 8));
    assert_eq!(bisection_bps(&net), 512 * bps);
    let d = distances(&net);
    assert_eq!((d.diameter, d.unreached_pairs), (6, 0), "leaf, aggregation, core, aggregation, leaf");
    assert_eq!((d.min_paths, d.max_paths), (2, 2 * 2 * 64 * 8), "between pods over every port, leaf and core");
    assert!(Router::new(&net).waiting_ring().is_none());

    // Pods are equal but for the last one, which may have fewer segments, and the last segment fewer servers.
    let uneven = Segments { servers_per_segment: 2, spines: 4, pods: Some(pods_of(3, 0, 0)), ..hpn };
    let net = uneven.build(&fabric(8 * 13)).unwrap();
    assert_eq!(
        (n_named(&net, "pod0.segment"), n_named(&net, "pod1.segment"), n_named(&net, "pod2.segment")),
        (48, 48, 16)
    );
    assert_eq!(n_named(&net, "pod2.plane0.agg"), 4);
    assert_eq!(distances(&net).unreached_pairs, 0);
    let counted = |pods: SegmentPods| Segments { pods: Some(pods), ..uneven }.build(&fabric(8 * 13)).unwrap();
    assert_eq!(n_named(&counted(pods_of(3, 2, 0)), "pod1.segment"), 48);
    assert_eq!(n_named(&counted(pods_of(3, 0, 12)), "core"), 2 * 12, "cores of each plane");

    for (pods, servers, key, problem) in [
        (pods_of(3, 8, 0), 2, "topology.pods = 8", "there are 7 segments of 2 servers"),
        (pods_of(3, 1, 0), 2, "topology.pods = 1", "at least 2 pods"),
        (pods_of(3, 0, 6), 2, "topology.cores = 6", "a multiple of the 4 aggregation switches"),
        (pods_of(3, 0, 0), 13, "topology.tiers = 3", "one segment of 13 servers"),
    ] {
        let shape = Segments { pods: Some(pods), servers_per_segment: servers, ..uneven };
        let message = shape.build(&fabric(8 * 13)).unwrap_err().to_string();
        assert!(message.starts_with(key) && message.contains(problem), "{message}");
    }
}

/// Without a third tier, names and links are those of one pod, in the order that they always had.
#[test]
fn segments_without_pods_are_under_the_same_spines() {
    let hpn =
        Segments { servers_per_segment: 4, by_rail: true, planes: 2, spines: 3, oversubscription: 1000, pods: None };
    let net = hpn.build(&simai(64, 2, 400)).unwrap();
    let (names, hosts) = (net.names(), 64);
    let leaf = |segment: u32, rail: u32, tor: u32| hosts + (segment * 8 + rail) * 2 + tor;
    let spine = |plane: u32, s: u32| hosts + 32 + plane * 3 + s;
    let mut expected = Vec::new();
    for host in 0..hosts {
        expected.extend((0..2).map(|port| (host, leaf(host / 32, host % 8, port))));
    }
    for (segment, rail, tor) in (0..32).map(|i| (i / 16, i / 2 % 8, i % 2)) {
        assert_eq!(names[leaf(segment, rail, tor) as usize], format!("segment{segment}.rail{rail}.tor{tor}"));
        expected.extend((0..3).map(|s| (leaf(segment, rail, tor), spine(tor, s))));
    }
    assert_eq!(net.links.iter().map(|l| (l.a, l.b)).collect::<Vec<_>>(), expected);
    assert_eq!(names[spine(1, 2) as usize], "plane1.spine2");
    assert_eq!(net.nodes.len() as u32, spine(1, 2) + 1);
}

#[test]
fn one_plane_of_ports_is_the_network_without_planes() {
    let f = simai(64, 2, 400);
    let clos = |planes| Clos { planes, hosts_per_leaf: 16, spines: 4, ..Clos::default() }.build(&f).unwrap();
    assert_eq!((clos(1).nodes.len(), clos(2).nodes.len()), (64 + 8, 64 + 16));
    assert_eq!(bisection_bps(&clos(1)) * 2, bisection_bps(&clos(2)), "each plane has all spines");
    let message = Clos { planes: 3, ..Clos::default() }.build(&f).unwrap_err().to_string();
    assert!(message.contains("topology.planes = 3") && message.contains("cluster.nic_ports"), "{message}");
}

#[test]
fn balanced_dragonflies_have_the_published_sizes() {
    // a = 2 p = 2 h: 72 hosts on 36 routers in 9 groups, 1,056 on 264 in 33 (Kim et al., 2008).
    for (hosts, h) in [(72u32, 2u32), (1056, 4)] {
        let net = Dragonfly::default().build(&flat(hosts)).unwrap();
        let groups = 2 * h * h + 1;
        let routers = groups * 2 * h;
        assert_eq!(net.nodes.len() as u32, hosts + routers);
        assert_eq!(degrees(&net), BTreeMap::from([((2 * h - 1 + h) as usize, routers as usize)]));
        // Three links between routers at most, and the hosts' own two.
        let d = distances(&net);
        assert_eq!((d.diameter, d.unreached_pairs), (5, 0));
        // Every pair of groups has one link, so the cut of the first half of the hosts has at least that of whole groups.
        let half = u64::from(groups / 2);
        let whole_groups = half * (u64::from(groups) - half) * 100 * BPS_PER_GBPS;
        assert!(bisection_bps(&net) >= whole_groups, "{} {whole_groups}", bisection_bps(&net));
        assert!(Router::new(&net).waiting_ring().is_some(), "minimal routes of a dragonfly need virtual channels");
    }
    // With fewer groups the links are shared: 4 groups of 8 channels have 2 links a pair.
    let net = Dragonfly { hosts_per_router: 2, groups: 4, ..Dragonfly::default() }.build(&flat(32)).unwrap();
    let names = net.names();
    let group = |v: u32| names[v as usize].split('.').next().unwrap().to_string();
    let between = net.links.iter().filter(|l| l.a >= 32 && group(l.a) != group(l.b)).count();
    assert_eq!(between, 6 * 2);
    let message = Dragonfly { groups: 12, hosts_per_router: 2, ..Dragonfly::default() }.build(&flat(72)).unwrap_err();
    assert!(
        message.to_string().starts_with("topology.groups = 12: a group of 8 global links reaches 8 others"),
        "{message}"
    );
    let message = Dragonfly { groups: 2, hosts_per_router: 2, ..Dragonfly::default() }.build(&flat(72)).unwrap_err();
    assert!(message.to_string().contains("need 9 groups"), "{message}");
}

#[test]
fn a_dragonfly_plus_has_leaves_and_spines_in_groups() {
    // All counts 4: groups of 4 leaves and 4 spines, 17 groups, 272 hosts.
    let net = DragonflyPlus::default().build(&flat(272)).unwrap();
    assert_eq!(net.nodes.len(), 272 + 17 * 8);
    assert_eq!(degrees(&net), BTreeMap::from([(4, 68), (8, 68)]));
    // Leaf, spine, spine, leaf.
    let d = distances(&net);
    assert_eq!((d.diameter, d.unreached_pairs), (5, 0));
    assert!(net.names().contains(&"group16.spine3".to_string()));
}

/// The prime powers from 3 to 32: what slim flies are made of.
const PRIME_POWERS: [u32; 17] = [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32];

/// Links of a router of a slim fly, by the paper: q is 4 w + d.
fn slim_fly_degree(q: u32) -> usize {
    let d = [0, 1, 2, -1][q as usize % 4];
    ((3 * q as i32 - d) / 2) as usize
}

#[test]
fn slim_flies_have_diameter_two() {
    for q in PRIME_POWERS {
        let routers = 2 * q * q;
        let net = SlimFly { q, hosts_per_router: 1 }.build(&flat(routers)).unwrap();
        assert_eq!(net.nodes.len() as u32, 2 * routers, "q = {q}: a host each");
        assert_eq!(degrees(&net), BTreeMap::from([(slim_fly_degree(q), routers as usize)]), "q = {q}");
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); routers as usize];
        for link in net.links.iter().filter(|l| l.a >= routers) {
            let (a, b) = (link.a - routers, link.b - routers);
            assert!(a != b && !neighbours[a as usize].contains(&b), "q = {q}: no two routers have two links");
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        for router in 0..routers {
            let mut steps = vec![u32::MAX; routers as usize];
            steps[router as usize] = 0;
            let mut queue = VecDeque::from([router]);
            while let Some(near) = queue.pop_front() {
                for &far in &neighbours[near as usize] {
                    if steps[far as usize] == u32::MAX {
                        steps[far as usize] = steps[near as usize] + 1;
                        queue.push_back(far);
                    }
                }
            }
            assert_eq!(steps.iter().max(), Some(&2), "q = {q}, from router {router}");
        }
    }
    // Half of its links, rounded up, are the hosts of a router: q = 5 is the Hoffman-Singleton graph, of 50 routers with 7 links.
    for (hosts, q) in [(54u32, 3u32), (55, 4), (96, 4), (97, 5), (200, 5), (768, 8), (769, 9), (23_750, 25)] {
        let nodes = SlimFly::default().build(&flat(hosts)).unwrap().nodes.len() as u32;
        assert_eq!(nodes, hosts + 2 * q * q, "{hosts} hosts need q = {q}");
    }
    for (q, problem) in [(6, "a power of a prime"), (15, "a power of a prime"), (3, "q = 5 holds 200"), (2, "power")] {
        let message = SlimFly { q, hosts_per_router: 0 }.build(&flat(100)).unwrap_err().to_string();
        assert!(message.starts_with(&format!("topology.q = {q}")) && message.contains(problem), "{message}");
    }
}

/// For primes the field is the numbers modulo q, so the graph follows from the least primitive root by arithmetic alone.
#[test]
fn slim_flies_of_primes_follow_from_numbers_modulo_the_prime() {
    for q in [3u32, 5, 7, 11, 13, 17, 19, 23, 29, 31] {
        let order = |root: u32| {
            1 + std::iter::successors(Some(root), |x| Some(x * root % q)).position(|x| x == 1).unwrap() as u32
        };
        let root = (2..q).find(|&root| order(root) == q - 1).unwrap();
        let power = |e: u32| (0..e % (q - 1)).fold(1, |x, _| x * root % q);
        let w = q.div_ceil(4);
        let exponents: [Vec<u32>; 2] = if q % 4 == 1 {
            [(0..q - 1).step_by(2).collect(), (1..q - 1).step_by(2).collect()]
        } else {
            [
                (0..w).map(|i| 2 * i).chain((0..w).map(|i| 2 * w - 1 + 2 * i)).collect(),
                (0..w).map(|i| 2 * i + 1).chain((0..w).map(|i| 2 * w + 2 * i)).collect(),
            ]
        };
        let routers = 2 * q * q;
        let router = |half: u32, x: u32, y: u32| routers + (half * q + x) * q + y;
        let mut expected = Vec::new();
        for (half, x, y) in (0..routers).map(|i| (i / (q * q), i / q % q, i % q)) {
            let sums = exponents[half as usize].iter().map(|&e| (y + power(e)) % q).filter(|&far| far > y);
            expected.extend(sums.map(|far| (router(half, x, y), router(half, x, far))));
            if half == 0 {
                expected.extend((0..q).map(|m| (router(0, x, y), router(1, m, (y + q * q - m * x) % q))));
            }
        }
        let net = SlimFly { q, hosts_per_router: 1 }.build(&flat(routers)).unwrap();
        let built: Vec<(u32, u32)> = net.links.iter().skip(routers as usize).map(|l| (l.a, l.b)).collect();
        assert_eq!(built, expected, "q = {q}");
    }
}

pub fn grid(links: GridLinks, dims: &[u32]) -> Network {
    let hosts = dims.iter().product();
    let shape = GridFabric { links, dims: dims.to_vec(), dim_bps: Vec::new(), hosts_per_switch: 0 };
    shape.build(&flat(hosts)).unwrap()
}

#[test]
fn distances_and_halves_over_coordinates_are_those_of_the_formulas() {
    let halves = |dims: &[u32]| dims.iter().map(|d| d / 2).sum::<u32>();
    for dims in [&[4u32, 4, 4][..], &[8, 8], &[4, 6, 2, 3], &[16], &[5, 3]] {
        let n: u64 = dims.iter().map(|d| u64::from(*d)).product();
        let last = u64::from(dims[dims.len() - 1]);
        let (torus, mesh, all) = (grid(GridLinks::Ring, dims), grid(GridLinks::Line, dims), grid(GridLinks::All, dims));
        assert_eq!(distances(&torus).diameter, 2 + halves(dims), "{dims:?}");
        assert_eq!(distances(&mesh).diameter, 2 + dims.iter().map(|d| d - 1).sum::<u32>(), "{dims:?}");
        let longer_than_one = dims.iter().filter(|d| **d > 1).count() as u32;
        assert_eq!(distances(&all).diameter, 2 + longer_than_one, "{dims:?}");
        if last % 2 == 0 {
            // The halves are cut across the last dimension. A host sends at most the rate of its own link.
            let lines = n / last;
            let rate = |cut: u64| (lines * cut).min(n / 2) * 100 * BPS_PER_GBPS;
            assert_eq!(bisection_bps(&torus), rate(if last > 2 { 2 } else { 1 }), "{dims:?}");
            assert_eq!(bisection_bps(&mesh), rate(1), "{dims:?}");
            assert_eq!(bisection_bps(&all), rate(last * last / 4), "{dims:?}");
        }
    }
    // From corner to corner of a mesh there are as many shortest paths as orders of its steps: 6! / (3! 3!) and 6! / (2! 2! 2!).
    assert_eq!(distances(&grid(GridLinks::Line, &[4, 4])).max_paths, 20);
    assert_eq!(distances(&grid(GridLinks::Line, &[3, 3, 3])).max_paths, 90);
    // Opposite switches of a 4 x 4 torus have both ways round in each dimension: 4 * 4! / (2! 2!).
    assert_eq!(distances(&grid(GridLinks::Ring, &[4, 4])).max_paths, 24);
}

#[test]
fn only_networks_with_rings_of_waiting_ports_are_said_to_have_one() {
    let ring = |net: &Network| Router::new(net).waiting_ring().is_some();
    let f = flat(64);
    assert!(!ring(&FatTree { k: 0 }.build(&f).unwrap()));
    assert!(!ring(&Clos { tiers: 3, ..Clos::default() }.build(&f).unwrap()));
    assert!(!ring(&RailOptimized::default().build(&simai(64, 1, 400)).unwrap()));
    assert!(!ring(&DragonflyPlus { groups: 1, ..DragonflyPlus::default() }.build(&flat(4)).unwrap()));
    assert!(ring(&grid(GridLinks::Ring, &[5])), "round a ring of five");
    assert!(!ring(&grid(GridLinks::Ring, &[3])), "a ring of three is a full mesh");
    assert!(!ring(&grid(GridLinks::All, &[6])));
    assert!(!ring(&grid(GridLinks::Line, &[8])), "a line has two ends");
    assert!(ring(&grid(GridLinks::Line, &[4, 4])), "shortest paths of a mesh turn both ways");
    let found = Router::new(&grid(GridLinks::Ring, &[6])).waiting_ring().unwrap();
    assert_eq!(found.len(), 6);
}

#[test]
fn dims_are_chosen_nearly_cubic() {
    let chosen = |links, hosts| {
        let shape = GridFabric { links, dims: Vec::new(), dim_bps: Vec::new(), hosts_per_switch: 0 };
        let names = shape.build(&flat(hosts)).unwrap().names();
        names.last().unwrap().clone()
    };
    assert_eq!(chosen(GridLinks::Ring, 64), "switch3.3.3");
    assert_eq!(chosen(GridLinks::Ring, 128), "switch3.3.7");
    assert_eq!(chosen(GridLinks::Line, 7), "switch0.0.6");
    assert_eq!(chosen(GridLinks::All, 64), "switch7.7");
    assert_eq!(chosen(GridLinks::Ring, 1), "switch0.0.0");
    let small = GridFabric { links: GridLinks::Ring, dims: vec![2, 3], dim_bps: Vec::new(), hosts_per_switch: 0 };
    let message = small.build(&flat(7)).unwrap_err().to_string();
    assert_eq!(message, "topology.dims = 2x3: these are 6 switches; the NICs of all servers at 1 a switch need 7");
    let rates = GridFabric { dim_bps: vec![BPS_PER_GBPS], dims: vec![4, 2], ..small };
    let message = rates.build(&flat(7)).unwrap_err().to_string();
    assert!(message.contains("topology.dim_gbps = 1: 1 rate for 2 dimensions"), "{message}");
}

#[test]
fn a_bcube_joins_servers_that_differ_in_one_digit() {
    // BCube of two levels of switches with four ports: 16 servers, 4 switches a level.
    let net = BCube { ports: 4, levels: 2 }.build(&flat(16)).unwrap();
    assert_eq!(net.nodes.len(), 16 + 16 + 8);
    assert_eq!(degrees(&net), BTreeMap::from([(2, 16), (4, 8)]));
    // At most one switch a digit, and between two a server that forwards: host, server, switch, server, switch, server, host.
    let d = distances(&net);
    assert_eq!((d.diameter, d.max_paths, d.unreached_pairs), (6, 2, 0));
    let partial = BCube { ports: 4, levels: 2 }.build(&flat(11)).unwrap();
    assert_eq!(distances(&partial).unreached_pairs, 0);
    let eight = BCube { ports: 0, levels: 2 }.build(&simai(72, 1, 400)).unwrap();
    assert_eq!(eight.nodes.len(), 72 + 9 + 6, "nine servers need three ports");
    assert_eq!(degrees(&eight), BTreeMap::from([(8, 9), (12, 6)]), "four NICs of a server on each level");
    let message = BCube { ports: 0, levels: 3 }.build(&simai(64, 1, 400)).unwrap_err().to_string();
    assert!(message.starts_with("cluster.nics_per_server = 8: they must divide among the 3 levels"), "{message}");
}

#[test]
fn sites_are_joined_by_their_borders_only() {
    let sites = Sites { n: 2, links: 3, link_bps: 800 * BPS_PER_GBPS, delay_ps: 500 * PS_PER_US };
    let fabric = simai(128, 1, 400);
    let net = sites.build(&FabricShape::RailOptimized(RailOptimized::default()), &fabric).unwrap();
    let names = net.names();
    let site = |v: u32| names[v as usize].split('.').next().unwrap().to_string();
    let long: Vec<_> = net.links.iter().filter(|l| l.delay_ps == 500 * PS_PER_US).collect();
    assert_eq!(long.len(), 3);
    assert!(long.iter().all(|l| names[l.a as usize] == "site0.border" && names[l.b as usize] == "site1.border"));
    let crossing = net.links.iter().filter(|l| l.a >= 128 && site(l.a) != site(l.b)).count();
    assert_eq!(crossing, 3);
    // The first half of the servers is one site. Eight spines to the border carry 3.2 Tb/s, the long links 2.4.
    assert_eq!(bisection_bps(&net), 2400 * BPS_PER_GBPS);
    let (servers, ranks) = (net.nodes[127].server, net.ranks.clone());
    assert_eq!((servers, ranks), (15, (0..128).collect()));
    let message =
        Sites { n: 3, ..sites }.build(&FabricShape::FatTree(FatTree { k: 0 }), &fabric).unwrap_err().to_string();
    assert!(message.contains("16 servers do not divide"), "{message}");
}

#[test]
fn every_policy_finds_ways_over_every_shape() {
    let grids = [GridLinks::Ring, GridLinks::Line, GridLinks::All].map(|links| {
        FabricShape::Grid(GridFabric { links, dims: Vec::new(), dim_bps: Vec::new(), hosts_per_switch: 2 })
    });
    let shapes = [
        FabricShape::Dragonfly(Dragonfly::default()),
        FabricShape::DragonflyPlus(DragonflyPlus::default()),
        FabricShape::SlimFly(SlimFly::default()),
        FabricShape::BCube(BCube { ports: 0, levels: 2 }),
    ];
    for shape in shapes.into_iter().chain(grids) {
        let net = shape.build(&simai(64, 1, 400)).unwrap();
        let router = Router::new(&net);
        for name in ["ecmp", "spray", "destination"] {
            let keys = hyperfold_network::routing::PolicyKeys { seed: 3, max_paths: 8 };
            let policy = hyperfold_network::routing::routing_policy(name, keys).unwrap();
            for (src_rank, dst_rank) in [(0, 63), (17, 40), (63, 1)] {
                let key = FlowKey { id: 0, src_rank, dst_rank, sport: 10_000, dport: 100 };
                let paths = RoutingPolicy::paths(&*policy, &router, &key, None).unwrap();
                for path in paths.data {
                    assert_eq!(net.arc_from(path[0]), net.ranks[src_rank as usize]);
                    assert_eq!(net.arc_to(*path.last().unwrap()), net.ranks[dst_rank as usize]);
                    assert!(path.windows(2).all(|w| net.arc_to(w[0]) == net.arc_from(w[1])), "{shape:?} {name}");
                }
            }
        }
    }
}

#[test]
fn halves_of_tiers_are_those_of_their_spines() {
    let gbps = |net: Network| bisection_bps(&net) / BPS_PER_GBPS;
    let f = flat(64);
    assert_eq!(gbps(FatTree { k: 0 }.build(&f).unwrap()), 32 * 100);
    let clos = |oversubscription| Clos { hosts_per_leaf: 8, oversubscription, ..Clos::default() }.build(&f).unwrap();
    assert_eq!([1000, 2000, 4000, 8000].map(|o| gbps(clos(o))), [3200, 1600, 800, 400]);
}

/// Three tiers, each of whose links have a rate and a delay of their own.
#[test]
fn tiers_have_rates_and_delays_of_their_own() {
    let bps = 100 * BPS_PER_GBPS;
    let fabric = Fabric { core_bps: 4 * bps, uplink_delay_ps: 2 * PS_PER_US, core_delay_ps: 3 * PS_PER_US, ..flat(64) };
    let clos = Clos { tiers: 3, hosts_per_leaf: 4, ..Clos::default() };
    let links = |net: &Network| {
        let mut kinds = BTreeMap::<(u64, u64), usize>::new();
        net.links.iter().for_each(|link| *kinds.entry((link.rate_bps, link.delay_ps)).or_default() += 1);
        kinds
    };
    let of_tiers = |n_core| {
        BTreeMap::from([((bps, PS_PER_US), 64), ((bps, 2 * PS_PER_US), 64), ((4 * bps, 3 * PS_PER_US), n_core)])
    };
    // Four pods of four leaves and four switches above them, whose four links downward are worth one of the third tier.
    assert_eq!(links(&clos.build(&fabric).unwrap()), of_tiers(16));
    assert_eq!(links(&Clos { cores: 8, ..clos }.build(&fabric).unwrap()), of_tiers(32));
    assert_eq!(
        links(&FatTree { k: 8 }.build(&Fabric { gpus: 128, ..fabric.clone() }).unwrap())[&(4 * bps, 3 * PS_PER_US)],
        128
    );
    assert_eq!(clos.build(&flat(64)).unwrap().links.len(), 64 + 64 + 64, "as many upward as downward at equal rates");
}
