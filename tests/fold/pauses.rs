//! Pauses and drops end no folding: switches where they come within reach are coupled, everything else stays folded, and no bit changes.

use crate::graphs::{OPTIONS, made_steady, run, same, same_remembered, together};
use crate::support::random::{self, Rng};
use crate::support::{Case, engine, gpu_graphs, transports};
use hyperfold_columns::{NEVER, OwnedTables, mode, status};
use hyperfold_engine::FoldStats;
use hyperfold_fold::FoldEngine;
use hyperfold_llm::workload::Flow;
use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::tasks::{Edge, EdgeMoment, QueuePair, Target, TaskGraph, Work};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{Link, Network, Node, NodeKind, SwitchNames};
use hyperfold_network::transport::Cc;

const GBPS: u64 = 1_000_000_000;
const US: u64 = 1_000_000;

/// The random graph of `seed` with messages `longer` times as long and small buffers: half of them pause, the others drop.
fn congested(seed: u64, longer: u64) -> gpu_graphs::Graph {
    let mut g = gpu_graphs::case(seed);
    let mut rng = Rng::new(seed ^ 0x0070_6663);
    for task in &mut g.graph.tasks {
        if let Work::Message { bytes, .. } = &mut task.work {
            *bytes *= longer;
        }
    }
    let tr = &mut g.case.transport;
    tr.pfc = seed.is_multiple_of(2);
    tr.ecn = rng.chance(50);
    tr.rto_retries = 7;
    // Without headroom a large packet needs a share of the buffer.
    let least = if tr.pfc { 0 } else { 5_000 };
    tr.buffer_bytes = random::fixed_part(&g.case.network, (tr.payload + tr.data_overhead).max(tr.ack_bytes), tr.pfc)
        + rng.pick(&[least, 10_000, 50_000, 200_000]);
    g.name = format!("congested {}", g.name);
    g
}

/// Pauses and drops of an experiment that has ended.
fn pauses_and_drops(t: &OwnedTables) -> [u64; 2] {
    let pauses = t.nics.iter().map(|r| r.pauses).chain(t.ports.iter().map(|r| r.pauses)).map(u64::from).sum();
    [pauses, t.ports.iter().map(|r| u64::from(r.drops)).sum()]
}

#[test]
fn pauses_change_nothing() {
    let mut engines = [40, 2048].map(FoldEngine::checkpointing_every);
    let (mut sum, mut coupled, mut less, mut hits) = ([0, 0], 0, 0, 0);
    for seed in (0..30).chain(0..30) {
        let g = congested(seed, 4);
        let mut plain = gpu_graphs::tables(&g, OPTIONS).tables;
        let start = plain.clone();
        if engine::run_cpu(&mut plain) != status::DONE {
            continue;
        }
        let [pauses, drops] = pauses_and_drops(&plain);
        sum = [sum[0] + pauses, sum[1] + drops];
        for (modes, engine) in [mode::FOLD | mode::MEMO; 2]
            .into_iter()
            .zip(&mut engines)
            .chain([(mode::FOLD, &mut FoldEngine::forgetful())])
        {
            let mut got = start.clone();
            got.exps[0].modes |= modes;
            let stats = run(&g.name, engine, &mut got);
            same(&g.name, &got, &plain);
            assert_eq!(stats.restarts, 0, "{}: it started over unfolded", g.name);
            assert!(pauses + drops == 0 || stats.coupled > 0, "{}: it paused or dropped", g.name);
            coupled += u32::from(stats.coupled > 0);
            hits += stats.hits;
            less += u32::from(stats.coupled > 0 && stats.hops_simulated < engine::packet_hops(&plain));
        }
    }
    println!("{sum:?} pauses and drops, {coupled} with coupled switches, {less} with less to simulate, {hits} hits");
    assert!(
        sum[0] > 1_000 && sum[1] > 500 && coupled > 60 && less > 3 && hits > 200,
        "{sum:?} pauses and drops, {coupled} with coupled switches, {less} with less to simulate, {hits} hits"
    );
}

/// Which switches are coupled, and from which attempt on, depends on the experiment alone, also where steady phases are skipped.
#[test]
fn couplings_depend_only_on_the_past() {
    let mut engine = FoldEngine::checkpointing_every(10);
    let mut sum = FoldStats::default();
    for seed in (0..30).chain(0..30) {
        let (name, t) = made_steady(congested(seed, 1));
        let mut plain = t.clone();
        if engine::run_cpu(&mut plain) != status::DONE {
            continue;
        }
        let stats = same_remembered(&name, &mut engine, 10, &t);
        sum.coupled += stats.coupled;
        sum.couplings += stats.couplings;
        sum.hits += stats.hits;
    }
    assert!(sum.coupled > 10 && sum.couplings > 10 && sum.hits > 30, "{sum:?}");
}

/// Three rails of four hosts on a switch each, and six hosts behind a trunk of two hops, which all send to host 12:
/// the switch there pauses the trunk, the one before it pauses the hosts. Ports share `shared` bytes of each buffer.
fn incast_beside_rails(cc: Cc, pfc: bool, shared: u64) -> gpu_graphs::Graph {
    const HOSTS: u32 = 12 + 1 + 6;
    let link = |a, b, gbps: u64| Link { a, b, rate_bps: gbps * GBPS, delay_ps: US };
    let mut links: Vec<Link> = (0..12).map(|h| link(h, HOSTS + h / 4, 100)).collect();
    links.extend([link(12, HOSTS + 3, 25), link(HOSTS + 3, HOSTS + 4, 100)]);
    links.extend((13..HOSTS).map(|h| link(h, HOSTS + 4, 100)));
    let nodes = (0..HOSTS + 5)
        .map(|id| Node {
            kind: if id < HOSTS { NodeKind::Host } else { NodeKind::Switch },
            id,
            server: if id < HOSTS { id } else { u32::MAX },
        })
        .collect();
    let network = Network {
        nodes,
        links,
        ranks: (0..HOSTS).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    };
    let mut graph = TaskGraph::default();
    let post = |graph: &mut TaskGraph, qp: u32, bytes: u64, after: Option<u32>| {
        let task = graph.task(graph.qps[qp as usize].src, 0, Work::Message { qp, bytes });
        graph.edges.extend(after.map(|from| Edge { from, when: EdgeMoment::Got, to: Target::Task(task) }));
        task
    };
    for src in 13..HOSTS {
        graph.qps.push(QueuePair { src, dst: 12, lane: 0, dim: Dim::Other });
        (0..6).for_each(|_| _ = post(&mut graph, src - 13, 600_000, None));
    }
    for rail in 0..3 {
        let first = graph.qps.len() as u32;
        graph.qps.extend((0..4).map(|r| QueuePair {
            src: 4 * rail + r,
            dst: 4 * rail + (r + 1) % 4,
            lane: 0,
            dim: Dim::Other,
        }));
        let mut before: Vec<Option<u32>> = vec![None; 4];
        for _ in 0..40 {
            let now: Vec<Option<u32>> =
                (0..4).map(|r| Some(post(&mut graph, first + r, 20_000, before[(r as usize + 3) % 4]))).collect();
            before = now;
        }
    }
    let mut transport = transports::transport(cc);
    transport.pfc = pfc;
    transport.ecn = false;
    transport.rto_ps = if pfc { 20_000 * US } else { 200 * US };
    transport.buffer_bytes = random::fixed_part(&network, 1200, pfc) + shared;
    let flows: Vec<Flow> = graph
        .qps
        .iter()
        .zip(0..)
        .map(|(pair, id)| Flow {
            id,
            src_rank: pair.src,
            dst_rank: pair.dst,
            bytes: 0,
            start_ps: NEVER,
            sport: 20_000,
            dport: 100,
            class: 3,
        })
        .collect();
    let path = |src, dst| random::shortest_paths(&network, src, dst);
    let paths: Vec<FlowPaths> = flows
        .iter()
        .map(|f| FlowPaths { data: path(f.src_rank, f.dst_rank), ack: path(f.dst_rank, f.src_rank) })
        .collect();
    let rtt = random::rtt(&network, &paths, &transport);
    let name = format!("incast beside rails, {cc:?}, {}", if pfc { "pauses" } else { "drops" });
    gpu_graphs::Graph {
        case: Case { network, flows, paths, transport, rtt, changes: Vec::new() },
        graph,
        first_qp: 0,
        release_ps: US,
        fresh_qp: false,
        name,
    }
}

#[test]
fn incasts_leave_rails_folded() {
    for (cc, pfc) in [(Cc::None, true), (Cc::Dcqcn, true), (Cc::Hpcc, true), (Cc::None, false)] {
        let g = incast_beside_rails(cc, pfc, 20_000);
        let start = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = start.clone();
        assert_eq!(engine::run_cpu(&mut plain), status::DONE, "{}", g.name);
        let [pauses, drops] = pauses_and_drops(&plain);
        println!("{}: {pauses} pauses, {drops} drops", g.name);
        if cc == Cc::None && pfc {
            // The trunk's sending port, which the far switch pauses, and hosts behind it.
            assert!(pauses > 1000 && plain.ports.iter().any(|r| r.pauses > 100), "{pauses} pauses");
            assert!(plain.nics[13].pauses > 100, "{} pauses of a host two hops away", plain.nics[13].pauses);
        }
        assert!(pfc || drops > 100, "{drops} drops");
        let on_rails: u64 = plain.nics[..12].iter().map(|r| r.hops).sum::<u64>()
            + plain.ports.iter().filter(|r| r.switch_idx.0 < 3).map(|r| r.hops).sum::<u64>();
        for threads in [1, 4] {
            let mut engine = FoldEngine::default();
            for known in [false, true] {
                let mut batch = vec![start.clone(); threads];
                let folds = together(&mut engine, threads, &mut batch);
                for (got, stats) in batch.iter().zip(&folds) {
                    same(&g.name, got, &plain);
                    assert_eq!(stats.restarts, 0, "{}", g.name);
                    assert!(stats.coupled <= 2, "{}: {} switches coupled", g.name, stats.coupled);
                }
                let all = engine::packet_hops(&plain);
                // One of three equal rails is simulated, and little of that one, because it repeats itself.
                let most = (all - on_rails) * (1 + folds[0].couplings) + on_rails / 3;
                let simulated = folds.iter().map(|s| s.hops_simulated).min().unwrap();
                println!(
                    "{threads} threads, known {known}: {simulated} of {all}, {on_rails} on rails, {:?}",
                    folds[0].couplings
                );
                assert!(simulated < most, "{}: {simulated} simulated, at most {most}", g.name);
            }
        }
    }
}

/// Buffers of the usual size fill up slowly enough: nothing goes back, and nothing is simulated twice.
#[test]
fn switches_are_coupled_before_they_pause() {
    for cc in [Cc::None, Cc::Dcqcn] {
        let g = incast_beside_rails(cc, true, 4 << 20);
        let start = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = start.clone();
        assert_eq!(engine::run_cpu(&mut plain), status::DONE, "{}", g.name);
        let [pauses, _] = pauses_and_drops(&plain);
        assert!(pauses > 100, "{}: {pauses} pauses", g.name);
        for modes in [mode::FOLD | mode::MEMO, mode::FOLD] {
            let mut got = start.clone();
            got.exps[0].modes |= modes;
            let stats = run(&g.name, &mut FoldEngine::default(), &mut got);
            same(&g.name, &got, &plain);
            assert!((1..=2).contains(&stats.coupled), "{}: {} switches coupled", g.name, stats.coupled);
            assert_eq!((stats.restarts, stats.couplings), (0, 0), "{}: it went back", g.name);
            let (simulated, all) = (stats.hops_simulated, engine::packet_hops(&plain));
            assert!(simulated <= all, "{}: {simulated} simulated of {all}", g.name);
        }
    }
}
