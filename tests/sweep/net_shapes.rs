//! Generated fabrics: shapes, parameters that cannot be, routes over them, and the largest one.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS, PS_PER_US};
use hyperfold_llm::workload::{AllToAll, Permutation};
use hyperfold_network::routing::{
    Ecmp, FlowKey, FlowPaths, PayloadClock, PolicyKeys, RouteError, RouteFile, Router, Spray, flow_rtt_window,
    global_rtt_window, is_intra_server, routing_policy,
};
use hyperfold_network::topology::{
    Clos, Fabric, FatTree, Network, NodeKind, NvLink, RailOnly, RailOptimized, SwitchNames, TopologyError, parse_ns3,
    to_ns3,
};

/// Servers of eight GPUs with as many NICs, 100 Gb/s everywhere, 1 us: the golden cases' links.
fn fabric(gpus: u32) -> Fabric {
    Fabric {
        gpus,
        gpus_per_server: 8,
        nics_per_server: 8,
        nic_ports: 1,
        link_bps: 100 * BPS_PER_GBPS,
        uplink_bps: 100 * BPS_PER_GBPS,
        core_bps: 100 * BPS_PER_GBPS,
        global_bps: 100 * BPS_PER_GBPS,
        link_delay_ps: PS_PER_US,
        uplink_delay_ps: PS_PER_US,
        core_delay_ps: PS_PER_US,
        global_delay_ps: PS_PER_US,
        switch_latency_ps: 0,
        nvlink: None,
    }
}

/// A fabric in which each host is a server, as in the reference.
fn flat(hosts: u32) -> Fabric {
    Fabric { gpus_per_server: 1, nics_per_server: 1, ..fabric(hosts) }
}

fn key(src_rank: u32, dst_rank: u32) -> FlowKey {
    FlowKey { id: 0, src_rank, dst_rank, sport: 10_000, dport: 100 }
}

const ECMP: &Ecmp = &Ecmp { seed: 1 };

/// Counts, then each kind of link once: how many, between what, at which rate and delay.
fn shape(net: &Network) -> String {
    let mut groups: Vec<(String, u32)> = Vec::new();
    for l in &net.links {
        let host = net.nodes[l.a as usize].kind == NodeKind::Host;
        let what = if host { "host" } else { "switch" };
        let text = format!("{what} links of {} Mb/s and {} ns", l.rate_bps / 1_000_000, l.delay_ps / PS_PER_NS);
        match groups.iter_mut().find(|(t, _)| *t == text) {
            Some((_, n)) => *n += 1,
            None => groups.push((text, 1)),
        }
    }
    let hosts = net.nodes.iter().filter(|n| n.kind == NodeKind::Host).count();
    let rtt = global_rtt_window(&Router::new(net), PayloadClock::ps(1000));
    let groups: Vec<String> = groups.iter().map(|(t, n)| format!("{n} {t}")).collect();
    format!(
        "{} ranks on {hosts} hosts, {} switches, {}; rtt {} ns",
        net.ranks.len(),
        net.nodes.len() - hosts,
        groups.join(", "),
        rtt.rtt_ps / PS_PER_NS
    )
}

#[test]
fn golden_fabrics_are_reproduced_from_parameters() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = ["../shared", "../../shared"].iter().map(|p| here.join(p).join("golden")).find(|p| p.is_dir());
    let Some(golden) = found else {
        println!("no ../shared/golden here: nothing to compare with");
        return;
    };
    let read = |case: &str| {
        let text = fs::read_to_string(golden.join(case).join("topology.txt")).unwrap();
        let mut net = parse_ns3(case, &text).unwrap().network;
        // The ns-3 form knows no servers.
        net.nodes.iter_mut().for_each(|n| n.server = 0);
        net
    };
    let ours = |net: Result<Network, TopologyError>| {
        let mut net = net.unwrap();
        net.nodes.iter_mut().for_each(|n| n.server = 0);
        // Nor does it know tiers.
        net.switch_names = SwitchNames::ById;
        net
    };
    let rail = RailOptimized { pods: 2, ..RailOptimized::default() };
    assert_eq!(ours(rail.build(&fabric(128))), read("c8_rail128_ring_hpcc"));
    assert_eq!(ours(FatTree { k: 4 }.build(&flat(16))), read("c6_ft4_ring_hpcc"));
    assert_eq!(ours(FatTree { k: 0 }.build(&flat(128))), read("c7_ft8_ring_hpcc"));
    let star = Clos { hosts_per_leaf: 17, ..Clos::default() };
    assert_eq!(ours(star.build(&flat(17))), read("c2_incast16_1M_hpcc"));
}

#[test]
fn shapes() {
    let h100 = Fabric {
        link_bps: 400 * BPS_PER_GBPS,
        uplink_bps: 800 * BPS_PER_GBPS,
        switch_latency_ps: 500 * PS_PER_NS,
        nvlink: Some(NvLink { rate_bps: 3600 * BPS_PER_GBPS, latency_ps: 50_000 }),
        ..fabric(512)
    };
    let shared_nics = Fabric { nics_per_server: 2, ..fabric(64) };
    let (clos, rail) = (Clos::default(), RailOptimized::default());
    let rows = [
        ("fat-tree, smallest for 64", FatTree { k: 0 }.build(&fabric(64))),
        ("fat-tree, k = 8 for 24: two pods", FatTree { k: 8 }.build(&fabric(24))),
        ("fat-tree, k = 8 for 8: one pod", FatTree { k: 8 }.build(&fabric(8))),
        ("fat-tree, k = 2", FatTree { k: 2 }.build(&flat(2))),
        ("fat-tree, k = 16 for 4: one switch", FatTree { k: 16 }.build(&flat(4))),
        ("clos 64", clos.build(&fabric(64))),
        ("clos 64, 2 to 1", Clos { oversubscription: 2000, ..clos }.build(&fabric(64))),
        ("clos 64, 3 spines", Clos { spines: 3, ..clos }.build(&fabric(64))),
        ("clos 64, a NIC for four GPUs", clos.build(&shared_nics)),
        ("clos 1024, 3 tiers", Clos { tiers: 3, ..clos }.build(&fabric(1024))),
        ("clos 1024, 3 tiers, 4 to 1", Clos { tiers: 3, oversubscription: 4000, ..clos }.build(&fabric(1024))),
        ("clos 512, 3 tiers, 2 pods, 16 cores", Clos { tiers: 3, pods: 2, cores: 16, ..clos }.build(&fabric(512))),
        ("rail-optimized 64", rail.build(&fabric(64))),
        ("rail-optimized 512, faster uplinks", rail.build(&h100)),
        ("rail-optimized 512, 4 pods, 4 rails", RailOptimized { pods: 4, rails: 4, ..rail }.build(&h100)),
        ("rail-only 64", RailOnly { rails: 0 }.build(&fabric(64))),
    ];
    let rows: Vec<String> = rows.into_iter().map(|(name, net)| format!("{name}: {}", shape(&net.unwrap()))).collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn small_fabrics_link_by_link() {
    let small = Fabric { gpus_per_server: 2, nics_per_server: 2, ..fabric(8) };
    let texts = [
        FatTree { k: 4 }.build(&small),
        Clos { spines: 1, ..Clos::default() }.build(&small),
        RailOptimized { pods: 2, ..RailOptimized::default() }.build(&small),
        RailOnly { rails: 0 }.build(&small),
    ]
    .map(|net| to_ns3(&net.unwrap()).unwrap());
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn parameters_that_cannot_be_say_what_would_do() {
    let (f, clos, rail) = (fabric(64), Clos::default(), RailOptimized::default());
    let errors = [
        FatTree { k: 0 }.build(&Fabric { gpus: 0, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { gpus: 12, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { gpus: 4, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { gpus_per_server: 0, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { nics_per_server: 16, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { nics_per_server: 0, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { link_bps: 0, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { uplink_bps: 1 << 44, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { link_delay_ps: 0, ..f.clone() }),
        FatTree { k: 0 }.build(&Fabric { switch_latency_ps: u64::MAX, ..f.clone() }),
        FatTree { k: 5 }.build(&f),
        FatTree { k: 4 }.build(&f),
        FatTree { k: 1000 }.build(&f),
        Clos { tiers: 4, ..clos }.build(&f),
        Clos { pods: 2, ..clos }.build(&f),
        Clos { cores: 2, ..clos }.build(&f),
        Clos { oversubscription: 0, ..clos }.build(&f),
        Clos { spines: 3, oversubscription: 2000, ..clos }.build(&f),
        Clos { spines: u32::MAX, ..clos }.build(&f),
        Clos { tiers: 3, pods: 65, ..clos }.build(&f),
        Clos { tiers: 3, pods: 9, ..clos }.build(&f),
        Clos { tiers: 3, cores: 5, ..clos }.build(&f),
        Clos { tiers: 3, spines: 1 << 20, ..clos }.build(&f),
        RailOptimized { rails: 9, ..rail }.build(&f),
        RailOptimized { pods: 9, ..rail }.build(&f),
        RailOptimized { pods: 5, ..rail }.build(&f),
        RailOnly { rails: 9 }.build(&f),
    ];
    let errors: Vec<String> = errors.into_iter().map(|e| e.unwrap_err().to_string()).collect();
    insta::assert_snapshot!(errors.join("\n"));
}

/// Data and ACK paths run between the same two NICs, shortest, without a loop.
fn check(net: &Network, src: u32, dst: u32, paths: &FlowPaths) {
    let (first, last) = (paths.data[0][0], *paths.data[0].last().unwrap());
    for (list, from, to) in [(&paths.data, first, last), (&paths.ack, last ^ 1, first ^ 1)] {
        for p in list {
            assert_eq!((p[0], p[p.len() - 1]), (from, to));
            assert_eq!(p.len(), paths.data[0].len());
            assert!(p.windows(2).all(|w| net.arc_to(w[0]) == net.arc_from(w[1])));
        }
        assert_eq!(list.iter().collect::<HashSet<_>>().len(), list.len(), "paths are distinct");
    }
    assert_eq!(net.arc_from(first), net.ranks[src as usize]);
    assert_eq!(net.arc_to(last), net.ranks[dst as usize]);
}

#[test]
fn spray_takes_all_equal_cost_paths_or_an_even_sample() {
    let net = FatTree { k: 4 }.build(&flat(16)).unwrap();
    let router = Router::new(&net);
    let mut rows = Vec::new();
    for (dst, max_paths) in [(1, 64), (2, 64), (15, 64), (15, 3), (15, 1), (15, 0)] {
        let paths = router.paths(key(0, dst), &Spray { seed: 1, max_paths }).unwrap();
        check(&net, 0, dst, &paths);
        let ids = |p: &Vec<u32>| p.iter().map(|&a| net.arc_to(a).to_string()).collect::<Vec<_>>().join(" ");
        let text: Vec<String> = paths.data.iter().map(ids).collect();
        rows.push(format!("0 to {dst}, at most {max_paths}: {}", text.join(" | ")));
    }
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn by_destination_shifts_collide_nowhere_in_a_fat_tree() {
    let keys = PolicyKeys { seed: 1, max_paths: 64 };
    let policy = routing_policy("destination", keys).unwrap();
    for (k, hosts) in [(4, 16), (8, 128)] {
        let net = FatTree { k }.build(&flat(hosts)).unwrap();
        let router = Router::new(&net);
        for stride in 1..hosts {
            let mut used = HashSet::new();
            for src in 0..hosts {
                let dst = (src + stride) % hosts;
                let paths = router.paths(key(src, dst), &*policy).unwrap();
                check(&net, src, dst, &paths);
                // Whoever sends to a host takes the same way from where they meet; so do acknowledgements.
                let other = router.paths(FlowKey { sport: 7, ..key(src, dst) }, &*policy).unwrap();
                assert_eq!(paths, other);
                assert!(paths.data[0].iter().all(|arc| used.insert(*arc)), "k {k}, stride {stride}, from {src}");
            }
        }
    }
}

#[test]
fn another_routing_seed_chooses_other_paths() {
    let net = FatTree { k: 8 }.build(&flat(128)).unwrap();
    let router = Router::new(&net);
    let all =
        |seed| -> Vec<FlowPaths> { (0..64).map(|i| router.paths(key(i, 127 - i), &Ecmp { seed }).unwrap()).collect() };
    let (one, two) = (all(1), all(2));
    let same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
    assert!(same < 16, "{same} of 64 flows kept both paths");
}

#[test]
fn rail_only_has_routes_on_a_rail_and_says_so_elsewhere() {
    let nvlink = Some(NvLink { rate_bps: 3600 * BPS_PER_GBPS, latency_ps: 50_000 });
    let net = RailOnly { rails: 0 }.build(&Fabric { nvlink, ..fabric(64) }).unwrap();
    let router = Router::new(&net);
    let paths = router.paths(key(3, 59), ECMP).unwrap();
    check(&net, 3, 59, &paths);
    assert_eq!(paths.data[0].len(), 2);
    assert!(is_intra_server(&net, key(0, 7)) && !is_intra_server(&net, key(0, 8)));
    insta::assert_snapshot!(router.paths(key(3, 60), ECMP).unwrap_err());
    assert!(matches!(router.paths(key(3, 99), ECMP), Err(RouteError::NoSuchRank { rank: 99, .. })));
}

#[test]
fn ranks_that_share_a_nic_have_no_packet_path() {
    let net = Clos::default().build(&Fabric { nics_per_server: 2, ..fabric(64) }).unwrap();
    assert_eq!(&net.ranks[..9], [0, 0, 0, 0, 1, 1, 1, 1, 2]);
    let router = Router::new(&net);
    assert!(!is_intra_server(&net, key(0, 3)), "without NVLink nothing is analytical");
    insta::assert_snapshot!(router.paths(key(0, 3), ECMP).unwrap_err());
    check(&net, 0, 4, &router.paths(key(0, 4), ECMP).unwrap());
}

#[test]
fn hosts_with_several_nics_parallel_links_and_direct_links() {
    // Hosts 0 and 1 on both of switches 2 and 3, host 0 twice on 2; hosts 4 and 5 on switch 3 and directly linked.
    let text = "6 2 9\n2 3\n0 2 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 100Gbps 1us 0\n1 2 100Gbps 1us 0\n1 3 100Gbps 1us 0\n\
                2 3 100Gbps 1us 0\n4 3 100Gbps 1us 0\n5 3 100Gbps 1us 0\n4 5 50Gbps 3us 0\n";
    let net = parse_ns3("t", text).unwrap().network;
    let router = Router::new(&net);
    let (mut nics, mut n) = (HashSet::new(), 0);
    for src in 0..4 {
        for dst in (0..4).filter(|&d| d != src) {
            for sport in 10_000..10_050 {
                let flow = FlowKey { sport, ..key(src, dst) };
                let paths = router.paths(flow, ECMP).unwrap();
                check(&net, src, dst, &paths);
                let sprayed = router.paths(flow, &Spray { seed: 1, max_paths: 8 }).unwrap();
                check(&net, src, dst, &sprayed);
                assert_eq!((paths.data[0][0], paths.data[0].last()), (sprayed.data[0][0], sprayed.data[0].last()));
                if (src, dst) == (0, 1) {
                    nics.insert((paths.data[0][0], *paths.data[0].last().unwrap()));
                }
                n += 1;
            }
        }
    }
    assert_eq!(n, 600);
    assert_eq!(nics, HashSet::from([(0, 7), (2, 7), (4, 9)]), "all of host 0's NICs, each by its own switch");
    // A queue pair is pinned to one NIC at either end, also where a file says where it goes.
    let flow = [FlowKey { sport: 10_000, ..key(0, 1) }];
    let pinned = RouteFile::parse("routes", "0 0 1 10000 100 | 0 2 1 | 1 2 0", &net, flow).unwrap();
    check(&net, 0, 1, &router.paths(flow[0], &pinned).unwrap());
    insta::assert_snapshot!(RouteFile::parse("routes", "0 0 1 10000 100 | 0 2 1 | 1 3 0", &net, flow).unwrap_err());
    let direct = router.paths(key(2, 3), ECMP).unwrap();
    assert_eq!((direct.data[0].as_slice(), direct.ack[0].as_slice()), (&[16][..], &[17][..]));
    assert_eq!(flow_rtt_window(&net, &direct, PayloadClock::ps(1000)).rtt_ps, 6_160_000);
    // Everything else crosses at most three links of 1 us, 80 ns each: 6,240 ns would be more, but no pair needs three.
    assert_eq!(global_rtt_window(&router, PayloadClock::ps(1000)).rtt_ps, 6_160_000);
}

#[test]
fn an_experiment_of_128_hosts_is_set_up_in_no_time() {
    let best = |what: &str, f: &mut dyn FnMut()| {
        let seconds = (0..20).map(|_| {
            let t = Instant::now();
            f();
            t.elapsed().as_secs_f64()
        });
        let best = seconds.fold(f64::MAX, f64::min);
        println!("{what}: {:.3} ms", best * 1e3);
        best
    };
    let rail = RailOptimized { pods: 2, ..RailOptimized::default() };
    let permutation = Permutation { bytes: 1_000_000, seed: 1 };
    let t = best("network, router, 128 permutation flows and global RTT on 128 hosts", &mut || {
        let net = rail.build(&fabric(128)).unwrap();
        let router = Router::new(&net);
        for f in permutation.flows(128).unwrap() {
            router.paths(&f, ECMP).unwrap();
        }
        assert!(global_rtt_window(&router, PayloadClock::ps(1000)).rtt_ps > 0);
    });
    assert!(t < 0.05, "{t} s");
    let t = best("the same with 4,032 flows of an all-to-all on 64 hosts", &mut || {
        let net = Clos::default().build(&fabric(64)).unwrap();
        let router = Router::new(&net);
        for f in (AllToAll { bytes: 1000 }).flows(64).unwrap() {
            router.paths(&f, ECMP).unwrap();
        }
        assert!(global_rtt_window(&router, PayloadClock::ps(1000)).rtt_ps > 0);
    });
    assert!(t < 0.1, "{t} s");
}

#[test]
fn the_largest_fat_tree_routes_in_seconds() {
    for (k, seconds, megabytes) in [(40, 5.0, 64), (64, 30.0, 256)] {
        let t = Instant::now();
        let hosts = k * k * k / 4;
        let net = FatTree { k }.build(&flat(hosts)).unwrap();
        let built = t.elapsed().as_secs_f64();
        let router = Router::new(&net);
        for f in (Permutation { bytes: 1, seed: 1 }).flows(hosts).unwrap() {
            let paths = router.paths(&f, ECMP).unwrap();
            assert!(paths.data[0].len() <= 6 && paths.data[0].len() == paths.ack[0].len());
        }
        let routed = t.elapsed().as_secs_f64();
        let rtt = global_rtt_window(&router, PayloadClock::ps(1000));
        assert_eq!(rtt.rtt_ps, 12_480 * PS_PER_NS);
        let took = t.elapsed().as_secs_f64();
        let table_mb = router.table_bytes() >> 20;
        println!(
            "{hosts} hosts, {} switches: built in {built:.2} s, a permutation routed by {routed:.2} s, RTT by {took:.2} s; tables {table_mb} MiB",
            net.nodes.len() as u32 - hosts
        );
        assert!(took < seconds && table_mb < megabytes, "{took} s, {table_mb} MiB");
    }
}
