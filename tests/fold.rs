//! Folding changes no bit: random task graphs, beside plain flows or alone, with every congestion control, windows, pauses and losses.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hyperfold::batch::build::BuildOptions;
use hyperfold::batch::conserve;
use hyperfold::columns::{FlowRx, FlowTx, Gate, NONE, Nic, Port, Tables, Task, cc, mode, qp, status};
use hyperfold::engine::cpu::cc::{dcqcn, timely};
use hyperfold::engine::fold::{FoldEngine, FoldStats, Memo};
use hyperfold::engine::{Engine, is_final};
use hyperfold::workload::tasks::Work;
use support::{engine, gpu_graphs};

const OPTIONS: BuildOptions = BuildOptions { exp_id: 0, links: true, rtt_cap: 0, step_divisor: 1, time_limit_ps: u64::MAX };

/// Runs `t` folded.
fn fold(name: &str, t: &mut Tables, modes: u32) -> FoldStats {
    t.exps[0].modes |= modes;
    run(name, &mut FoldEngine::default(), t)
}

fn run(name: &str, engine: &mut FoldEngine, t: &mut Tables) -> FoldStats {
    let mut batch = [std::mem::take(t)];
    let mut stats = FoldStats::default();
    while !is_final(&batch[0]) {
        let slice = engine.advance(&mut batch, u64::from(u32::MAX) / 2, &|| false).unwrap();
        assert!(slice.failures.is_empty(), "{name}: {:?}", slice.failures);
        stats = slice.folds[0];
    }
    let [done] = batch;
    *t = done;
    stats
}

/// Runs `sweep` with the program itself.
fn ran(sweep: &Path, out: &Path, more: &[&str]) {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfold"))
        .args(["run", "--quiet", "--engine", "cpu", "--out"])
        .args([out, sweep])
        .args(more)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// What an experiment came to, without lists and what idle rows keep in vain: times before which something might not have happened, among others.
fn rows(t: &Tables) -> (u32, Vec<Task>, Vec<Gate>, Vec<FlowTx>, Vec<FlowRx>, Vec<[u64; 3]>, Vec<[u64; 8]>) {
    let nic = |r: &Nic| [r.tx_bytes, r.hops, u64::from(r.pauses)];
    let port = |r: &Port| [r.tx_bytes, r.hops, u64::from(r.pauses), u64::from(r.drops), u64::from(r.max_q), r.draws, r.marks, r.q_area];
    (
        t.exps[0].status,
        t.tasks.iter().map(|r| Task { next: NONE, ..*r }).collect(),
        t.gates.iter().map(|r| Gate { next: NONE, ..*r }).collect(),
        t.flow_tx.iter().map(|r| FlowTx { flags: r.flags & !(qp::HELD | qp::QUEUED), next_avail: 0, ..*r }).collect(),
        t.flow_rx.iter().map(|r| FlowRx { held: NONE, nack_t: 0, cnp_t: 0, ..*r }).collect(),
        t.nics.iter().map(nic).collect(),
        t.ports.iter().map(port).collect(),
    )
}

/// `t` with the timers of congestion control, which wait until somebody looks, run up to `now`; stages as far as they matter: beyond some number of increases all are alike.
fn caught_up(t: &Tables, now: u64) -> Tables {
    let mut t = t.clone();
    let e = t.exps[0];
    for f in 0..t.flow_tx.len() {
        if e.cc == cc::DCQCN {
            dcqcn::advance_until(&mut t, f as u32, now);
        }
        let most = match e.cc {
            cc::DCQCN => e.fast_recovery + 1,
            cc::TIMELY => timely::HYPER_AFTER,
            _ => u32::MAX,
        };
        t.flow_tx[f].stage = t.flow_tx[f].stage.min(most);
    }
    t
}

/// Panics where folded and unfolded differ.
fn same(name: &str, folded: &Tables, plain: &Tables) {
    conserve::check(folded).unwrap_or_else(|e| panic!("{name}: {e}"));
    let now = folded.exps[0].now.max(plain.exps[0].now);
    let (got, want) = (rows(&caught_up(folded, now)), rows(&caught_up(plain, now)));
    assert_eq!(got.0, want.0, "{name}: status");
    for (i, (a, b)) in got.1.iter().zip(&want.1).enumerate() {
        assert_eq!(a, b, "{name}: task {i}");
    }
    for (i, (a, b)) in got.3.iter().zip(&want.3).enumerate() {
        assert_eq!(a, b, "{name}: sender {i}");
    }
    for (i, (a, b)) in got.4.iter().zip(&want.4).enumerate() {
        assert_eq!(a, b, "{name}: receiver {i}");
    }
    assert_eq!((&got.2, &got.5, &got.6), (&want.2, &want.5, &want.6), "{name}: gates, NICs or ports");
}

#[test]
fn partitions_change_nothing() {
    let (mut folded, mut abandoned) = (0, 0);
    for seed in 0..300 {
        let g = gpu_graphs::case(seed);
        let mut plain = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut got = plain.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        let stats = fold(&g.name, &mut got, mode::FOLD);
        same(&g.name, &got, &plain);
        folded += u32::from(stats.abandoned == 0);
        abandoned += u32::from(stats.abandoned > 0);
    }
    println!("{folded} folded, {abandoned} started over");
    assert!(folded > 150 && abandoned > 10, "{folded} folded, {abandoned} abandoned");
}

/// A case with the memo of `engine`, held against the unfolded run: what folding did, and whether it simulated less. `None`: a queue pair gives up.
fn remembered(engine: &mut FoldEngine, seed: u64) -> Option<(FoldStats, bool)> {
    let g = gpu_graphs::case(seed);
    let mut plain = gpu_graphs::tables(&g, OPTIONS).tables;
    let mut got = plain.clone();
    if engine::run_cpu(&mut plain) == status::GAVE_UP {
        return None;
    }
    got.exps[0].modes |= mode::FOLD | mode::MEMO;
    let stats = run(&g.name, engine, &mut got);
    same(&g.name, &got, &plain);
    Some((stats, stats.abandoned == 0 && stats.simulated < engine::packet_hops(&plain)))
}

#[test]
fn what_is_remembered_changes_nothing() {
    let (mut hits, mut misses, mut less) = (0, 0, 0);
    let mut engine = FoldEngine::default();
    for seed in (0..300).chain(0..300) {
        if let Some((stats, fewer)) = remembered(&mut engine, seed) {
            hits += stats.hits;
            misses += stats.misses;
            less += u32::from(fewer);
        }
    }
    println!("{hits} hits, {misses} misses, {less} with less to simulate");
    assert!(hits > 250 && less > 70, "{hits} hits, {misses} misses, {less} with less to simulate");
}

/// Where states are looked up every few packets, patterns that repeat, partitions that fall apart and rows that are read back are the rule.
#[test]
fn states_change_nothing() {
    let (mut hits, mut less) = (0, 0);
    for every in [1, 7, 40] {
        let mut engine = FoldEngine::cutting(every);
        for seed in (0..150).chain(0..150) {
            if let Some((stats, fewer)) = remembered(&mut engine, seed) {
                hits += stats.hits;
                less += u32::from(fewer);
            }
        }
    }
    println!("{hits} hits, {less} with less to simulate");
    assert!(hits > 2000 && less > 120, "{hits} hits, {less} with less to simulate");
}

/// Long messages, on queue pairs that stay what they are, watched closely: naps are the rule.
fn drowsy(seed: u64) -> (String, Tables) {
    asleep(gpu_graphs::case(seed))
}

fn asleep(mut g: gpu_graphs::Graph) -> (String, Tables) {
    for task in &mut g.graph.tasks {
        if let Work::Message { bytes, .. } = &mut task.work {
            *bytes *= 40;
        }
    }
    g.fresh_qp = false;
    let mut t = gpu_graphs::tables(&g, OPTIONS).tables;
    let e = &mut t.exps[0];
    e.modes |= mode::FOLD | mode::STEADY;
    (e.theta_ppm, e.samples, e.interval_ns) = (300_000, 4, 2000);
    (g.name, t)
}

/// What is skipped is decided by nothing but what happened to a partition: not by what is remembered, nor by audits, nor by who else runs.
#[test]
fn sleep_depends_on_the_past_alone() {
    let mut engine = FoldEngine::default();
    let (mut skips, mut slept, mut audited, mut hits) = (0, 0, 0, 0);
    for seed in (0..200).chain(0..200) {
        let (name, mut plain) = drowsy(seed);
        let (mut kept, mut audit) = (plain.clone(), plain.clone());
        let stats = run(&name, &mut FoldEngine::forgetful(), &mut plain);
        if plain.exps[0].status == status::GAVE_UP {
            continue;
        }
        kept.exps[0].modes |= mode::MEMO;
        hits += run(&name, &mut engine, &mut kept).hits;
        same(&format!("{name}, remembered"), &kept, &plain);
        audit.exps[0].audit_ppm = 1_000_000;
        audited += run(&name, &mut FoldEngine::forgetful(), &mut audit).audit.naps;
        same(&format!("{name}, audited"), &audit, &plain);
        gpu_graphs::complete(&name, &plain);
        skips += stats.skips;
        slept += stats.slept;
    }
    println!("{skips} naps, {slept} packet-hops slept, {audited} audited, {hits} hits");
    assert!(skips > 150 && slept > 100_000 && audited > 150 && hits > 200, "{skips} naps, {slept} packet-hops slept, {audited} audited, {hits} hits");
}

/// A case of [`drowsy`] whose signals take `k` times 350 ns longer.
fn delayed(seed: u64, k: u64, steady: bool) -> (String, Tables) {
    let g = gpu_graphs::case(seed);
    let (name, mut t) = asleep(gpu_graphs::Graph { release_ps: g.release_ps + k * 350_000, ..g });
    if !steady {
        t.exps[0].modes &= !mode::STEADY;
    }
    (format!("{name}, {k}, {}", if steady { "steady" } else { "exact" }), t)
}

/// The same with the memo of `engine` as without one.
fn same_remembered(name: &str, engine: &mut FoldEngine, every: u64, t: &Tables) -> FoldStats {
    let (mut plain, mut kept) = (t.clone(), t.clone());
    let alone = run(name, &mut FoldEngine::forgetful().with_cuts_every(every), &mut plain);
    kept.exps[0].modes |= mode::MEMO;
    let stats = run(name, engine, &mut kept);
    assert_eq!(stats.abandoned, alone.abandoned, "{name}: who starts over");
    same(name, &kept, &plain);
    stats
}

/// After a timeout a sender goes back and sends again what had arrived: that flies on, and is answered, when nothing of its queue pair is outstanding any more.
#[test]
fn what_is_sent_again_in_vain_is_not_forgotten() {
    for steady in [false, true] {
        let mut engine = FoldEngine::cutting(7);
        let mut hits = 0;
        for k in [0, 1, 1] {
            let (name, t) = delayed(366, k, steady);
            hits += same_remembered(&name, &mut engine, 7, &t).hits;
        }
        assert!(hits > 40, "{hits}");
    }
}

/// Likes whose steps are not as long find the same to be provable: what arrives within a step has not all been there at once.
#[test]
fn who_starts_over_is_no_matter_of_steps() {
    for seed in [254, 627] {
        let mut engine = FoldEngine::cutting(40);
        let stats = [0, 1, 2].map(|k| {
            let (name, t) = delayed(seed, k, true);
            same_remembered(&name, &mut engine, 40, &t)
        });
        assert!(stats.iter().all(|s| s.abandoned == stats[0].abandoned), "seed {seed}: {stats:?}");
    }
}

#[test]
fn threads_that_share_what_is_remembered_change_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let mut engine = FoldEngine::default();
    for first in [0, 20, 40, 60] {
        // Likes side by side, so that threads find each other's half-told episodes.
        let cases: Vec<_> = (first..first + 20).flat_map(|seed| [seed; 3]).map(gpu_graphs::case).collect();
        let mut plain: Vec<Tables> = cases.iter().map(|g| gpu_graphs::tables(g, OPTIONS).tables).collect();
        let mut batch = plain.clone();
        batch.iter_mut().for_each(|t| t.exps[0].modes |= mode::FOLD | mode::MEMO);
        while !batch.iter().all(is_final) {
            let slice = pool.install(|| engine.advance(&mut batch, u64::from(u32::MAX) / 2, &|| false)).unwrap();
            assert!(slice.failures.is_empty(), "{:?}", slice.failures);
        }
        for ((g, got), want) in cases.iter().zip(&batch).zip(&mut plain) {
            if engine::run_cpu(want) != status::GAVE_UP {
                same(&g.name, got, want);
            }
        }
    }
}

/// Runs experiments side by side on `threads` threads, all with the memo of `engine`; what folding did for each.
fn together(engine: &mut FoldEngine, threads: usize, batch: &mut [Tables]) -> Vec<FoldStats> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    batch.iter_mut().for_each(|t| t.exps[0].modes |= mode::FOLD | mode::MEMO);
    let mut folds = Vec::new();
    while !batch.iter().all(is_final) {
        let slice = pool.install(|| engine.advance(batch, u64::from(u32::MAX) / 2, &|| false)).unwrap();
        assert!(slice.failures.is_empty(), "{:?}", slice.failures);
        folds = slice.folds;
    }
    folds
}

/// Experiments that meet the same unknown at the same time: one finds out, the others wait for it.
#[test]
fn likes_side_by_side_are_simulated_once() {
    let mut compared = 0;
    for seed in 0..120 {
        let g = gpu_graphs::case(seed);
        let tables = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = tables.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        for (threads, n, every) in [(2, 6, 40), (4, 16, 7)] {
            let one = together(&mut FoldEngine::cutting(every), 1, &mut [tables.clone()]);
            let mut batch = vec![tables.clone(); n];
            let all = together(&mut FoldEngine::cutting(every), threads, &mut batch);
            for got in &batch {
                same(&g.name, got, &plain);
            }
            // Where marks are random, or an experiment starts over, nothing is shared.
            let again = together_twice(&tables, every);
            if one[0].abandoned > 0 || again > 0 {
                continue;
            }
            let simulated: u64 = all.iter().map(|s| s.simulated).sum();
            assert_eq!(simulated, one[0].simulated, "{}: {n} on {threads} threads, {:?}", g.name, all.iter().map(|s| s.simulated).collect::<Vec<_>>());
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

/// What the second of two likes simulates that run one after the other.
fn together_twice(tables: &Tables, every: u64) -> u64 {
    let mut engine = FoldEngine::cutting(every);
    together(&mut engine, 1, &mut [tables.clone(), tables.clone()])[1].simulated
}

/// Experiments that have some of their traffic in common. Signals take longer in some, so that likes are out of step.
fn kindred(first: u64) -> Vec<gpu_graphs::Graph> {
    let case = |(k, seed): (u64, u64)| {
        let g = gpu_graphs::case(seed);
        gpu_graphs::Graph { release_ps: g.release_ps + k * 350_000, ..g }
    };
    (0..4).flat_map(|k| (0..4).map(move |i| (k, first + (i + k) % 4))).map(case).collect()
}

/// They wait for each other now and then, and never in a circle.
#[test]
fn whoever_waits_changes_nothing() {
    for (threads, every) in [(2, 7), (4, 40), (4, 2048)] {
        let mut engine = FoldEngine::cutting(every);
        for first in (0..96).step_by(4) {
            let cases = kindred(first);
            let mut plain: Vec<Tables> = cases.iter().map(|g| gpu_graphs::tables(g, OPTIONS).tables).collect();
            let mut batch = plain.clone();
            together(&mut engine, threads, &mut batch);
            for ((g, got), want) in cases.iter().zip(&batch).zip(&mut plain) {
                if engine::run_cpu(want) != status::GAVE_UP {
                    same(&g.name, got, want);
                }
            }
        }
    }
}

/// Nor where steady partitions sleep: what they sleep with, and until when, is the same for whoever goes first and whoever waits.
#[test]
fn whoever_waits_sleeps_the_same() {
    let (mut skips, mut hits) = (0, 0);
    for (threads, every) in [(2, 7), (4, 40), (4, 2048)] {
        let mut engine = FoldEngine::cutting(every);
        for first in (0..96).step_by(12) {
            let (names, mut plain): (Vec<String>, Vec<Tables>) = kindred(first).into_iter().map(asleep).unzip();
            let mut batch = plain.clone();
            // Some are simulated all the same where they slept, which nobody waits for.
            batch.iter_mut().step_by(3).for_each(|t| t.exps[0].audit_ppm = 500_000);
            let folds = together(&mut engine, threads, &mut batch);
            hits += folds.iter().map(|f| f.hits).sum::<u64>();
            for ((name, got), want) in names.iter().zip(&batch).zip(&mut plain) {
                skips += run(name, &mut FoldEngine::forgetful().with_cuts_every(every), want).skips;
                if want.exps[0].status != status::GAVE_UP {
                    same(&format!("{name}, {threads} threads, cuts every {every}"), got, want);
                }
            }
        }
    }
    println!("{skips} naps, {hits} hits");
    assert!(skips > 50 && hits > 200, "{skips} naps, {hits} hits");
}

/// Partitions that meet in a turn of one of them, before either has sent anything, are not at rest while the other has something due (found with DCTCP).
#[test]
fn who_has_something_due_is_not_at_rest() {
    let mut engine = FoldEngine::cutting(7);
    let (name, t) = delayed(549, 0, true);
    for _ in 0..2 {
        same_remembered(&name, &mut engine, 7, &t);
    }
}

/// Two engines on one memo, by turns on one thread. `b` goes on alone wherever `a` is not done with what it records; `a` may yet fall asleep at its next look, so nobody
/// may take more than until then for known (found by chance, with threads).
#[test]
fn what_is_known_ends_at_the_next_look() {
    let alternate = |mut batches: [[Tables; 1]; 2], every: u64| {
        let memo = Arc::<Memo>::default();
        let mut engines = [0; 2].map(|_| FoldEngine::remembering(Arc::clone(&memo)).with_cuts_every(every));
        while !batches.iter().all(|b| is_final(&b[0])) {
            // A few turns each: how often they ask whether to stop.
            for ((engine, batch), most) in engines.iter_mut().zip(&mut batches).zip([2, 3]) {
                let asked = AtomicU32::new(0);
                let slice = engine.advance(batch, u64::from(u32::MAX) / 2, &|| asked.fetch_add(1, Ordering::Relaxed) >= most).unwrap();
                assert!(slice.failures.is_empty(), "{:?}", slice.failures);
            }
        }
        batches
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut skips = 0;
    for (seed, every) in [(241, 7), (241, 40)] {
        let (name, t) = delayed(seed, 0, true);
        let (mut plain, mut kept) = (t.clone(), t);
        skips += run(&name, &mut FoldEngine::forgetful().with_cuts_every(every), &mut plain).skips;
        kept.exps[0].modes |= mode::MEMO;
        for [got] in pool.install(|| alternate([[kept.clone()], [kept]], every)) {
            same(&name, &got, &plain);
        }
    }
    assert!(skips > 0);
}

/// Replicas with looked-up partitions that lag behind the one they meet: they have tasks of their own to see to first (found with a tree all-reduce under HPCC).
#[test]
fn partitions_that_lag_behind_catch_up() {
    let root = tempfile::tempdir().unwrap();
    let sweep = root.path().join("sweep.toml");
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 2 }\nbase.topology = { kind = \"clos\", link_gbps = 100, uplink_gbps = 100 }\nbase.transport.cc = \"hpcc\"\n\
        base.workload = { kind = \"collective\", op = \"all-reduce\", bytes = 200000, algorithm = \"tree\", channels = 2, chunk_kib = 16 }\nbase.output.flows = true\nsweep.replicas = 3\n";
    std::fs::write(&sweep, text).unwrap();
    let flows = |folding: &str| {
        let out = root.path().join(folding);
        ran(&sweep, &out, &["--jobs", "1", "--set", &format!("fidelity.fast_forward={folding}")]);
        std::fs::read(out.join("flows.csv")).unwrap()
    };
    assert!(flows("exact") == flows("off"), "flows differ");
}

/// Partitions that were looked up and merge are cut when those are that were simulated, or what sleeps by then would depend on the memo (found with DCQCN whose timers are fast).
#[test]
fn cuts_of_merged_partitions_depend_on_the_past_alone() {
    let root = tempfile::tempdir().unwrap();
    let graph = "id,ranks,kind,duration_ns,bytes,deps,peer\nn0,all,all-to-all,,200000,,\nn1,all,all-reduce,,800000,n0,\nn2,all,all-to-all,,200000,n1,\nn3,all,all-gather,,800000,n0 n1 n2,\n";
    std::fs::write(root.path().join("graph.csv"), graph).unwrap();
    let sweep = root.path().join("sweep.toml");
    let text = "name = \"m\"\nseed = 2\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 200 }\n\
        base.transport = { cc = \"dcqcn\", ecn_kmin_kb = 80, ecn_kmax_kb = 200, dcqcn = { increase_us = 3, rai_mbps = 500, decrease_us = 4 } }\n\
        base.workload = { kind = \"dag\", path = \"graph.csv\", iterations = 8 }\n[axes]\n\"cluster.gpu\" = [\"h100\", \"a100\"]\n";
    std::fs::write(&sweep, text).unwrap();
    let flows = |memo: &str| {
        let out = root.path().join(memo);
        ran(&sweep, &out, &["--jobs", "1", "--set", "output.flows=true", "--set", &format!("fidelity.memo={memo}")]);
        std::fs::read(out.join("flows.csv")).unwrap()
    };
    assert!(flows("true") == flows("false"), "flows differ");
}

/// HPCC moves the instant before which a queue pair does not send with every new rate, from where it is, also where that is past: a state must say it (found 1 ps late, in a
/// second run with a memo on disk).
#[test]
fn what_lies_in_the_past_may_still_move() {
    let root = tempfile::tempdir().unwrap();
    let graph = "id,ranks,kind,duration_ns,bytes,deps,peer\nn0,all,all-to-all,,30000,,\nn1,all,all-to-all,,30000,n0,\nn2,all,all-gather,,800000,n1,\nn3s,all,send,,1000,n0 n1,+1\n\
        n3r,all,recv,,1000,,-1\nn4,all,all-to-all,,2000,n0 n2,\nn5,all,reduce-scatter,,800000,n0 n2,\nn6,all,compute,1000,,n0 n2,\n";
    std::fs::write(root.path().join("graph.csv"), graph).unwrap();
    let sweep = root.path().join("sweep.toml");
    let text = "name = \"m\"\nseed = 9\nbase.cluster = { gpus = 16, gpus_per_server = 1 }\nbase.topology = { kind = \"fat-tree\", link_gbps = 200 }\nbase.transport.cc = \"hpcc\"\n\
        base.workload = { kind = \"dag\", path = \"graph.csv\" }\nbase.output.flows = true\n[axes]\n\"workload.iterations\" = [5, 9]\n";
    std::fs::write(&sweep, text).unwrap();
    let memo = root.path().join("memo.bin");
    let flows = |name: &str, shard: &str, memo: &str| {
        let out = root.path().join(name);
        ran(&sweep, &out, &["--jobs", "1", "--shard", shard, "--memo", memo]);
        std::fs::read(out.join("flows.csv")).unwrap()
    };
    flows("first", "0/2", memo.to_str().unwrap());
    flows("second", "1/2", memo.to_str().unwrap());
    assert!(flows("third", "1/2", memo.to_str().unwrap()) == flows("alone", "1/2", "off"), "flows differ");
}

/// Whoever joins a partition that is looked up does so after what is told at that instant, or nobody is ever told (found by a user whose second run on a memo started over).
#[test]
fn what_is_told_goes_before_whoever_joins() {
    let root = tempfile::tempdir().unwrap();
    let graph = "id,ranks,kind,duration_ns,bytes,group,peer,tag,stream,deps\na,0 1 2 6 7 8 11 15,compute,68434,,,,,,\nb,0 1 2 6 7 8 11 15,broadcast,,10942412,0 1 2 6 7 8 11 15,,,,a\n\
        c,3 4 5 9 10 12 13 14,compute,69933,,,,,,\nd,3 4 5 9 10 12 13 14,broadcast,,10942412,3 4 5 9 10 12 13 14,,,,c\ne,0 3 6 8 12 13 14 15,compute,9,,,,,,\n\
        f,0 3 6 8 12 13 14 15,reduce-scatter,,419,0 3 6 8 12 13 14 15,,,,e\n";
    std::fs::write(root.path().join("graph.csv"), graph).unwrap();
    let sweep = root.path().join("sweep.toml");
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 25, uplink_gbps = 25, link_delay_ns = 1500 }\n\
        base.transport.cc = \"dcqcn\"\nbase.workload = { kind = \"dag\", path = \"graph.csv\" }\nbase.output.flows = true\n";
    std::fs::write(&sweep, text).unwrap();
    let memo = root.path().join("memo.bin");
    let flows = |name: &str, memo: &str| {
        let out = root.path().join(name);
        ran(&sweep, &out, &["--jobs", "1", "--memo", memo]);
        std::fs::read(out.join("flows.csv")).unwrap()
    };
    let alone = flows("alone", "off");
    assert!(flows("cold", memo.to_str().unwrap()) == alone, "flows differ, cold");
    assert!(flows("warm", memo.to_str().unwrap()) == alone, "flows differ, warm");
}

/// Runs the sweep `text` with and without a memo, beside `files`; gives the folder with the latter's results after their flows were found the same.
fn same_with_a_memo(files: &[(&str, String)], text: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, file) in files {
        std::fs::write(root.path().join(name), file).unwrap();
    }
    let sweep = root.path().join("sweep.toml");
    std::fs::write(&sweep, text).unwrap();
    ran(&sweep, &root.path().join("without"), &["--jobs", "1", "--memo", "off"]);
    ran(&sweep, &root.path().join("with"), &["--jobs", "1"]);
    let flows = |name: &str| std::fs::read(root.path().join(name).join("flows.csv")).unwrap();
    assert!(flows("with") == flows("without"), "flows differ: {text}");
    root
}

/// A message behind unsent bytes is no input: it does not even make its NIC look for something else to send, which might be a paced queue pair whose time has come.
#[test]
fn what_waits_behind_unsent_bytes_changes_nothing() {
    let graph = |at: u32| {
        format!(
            "id,ranks,kind,duration_ns,bytes,peer,stream,deps\nb1,0,send,,300000,1,free,\nr1,1,recv,,300000,0,free,\ncb,0,compute,{at},,,free,\nb2,0,send,,1000,1,free,cb\n\
             r2,1,recv,,1000,0,free,\nca,0,compute,2000,,,free,\na,0,send,,1000,2,free,ca\nra,2,recv,,1000,0,free,\n"
        )
    };
    let files = [("early.csv", graph(1)), ("late.csv", graph(4867))];
    for fold in ["exact", "steady", "off"] {
        let text = format!(
            "name = \"m\"\nbase.cluster = {{ gpus = 4, gpus_per_server = 1 }}\nbase.transport.cc = \"hpcc\"\nbase.workload.kind = \"dag\"\nbase.output.flows = true\n\
             base.fidelity.fast_forward = \"{fold}\"\naxes.\"workload.path\" = [\"early.csv\", \"late.csv\"]\n"
        );
        same_with_a_memo(&files, &text);
    }
}

/// The last thing that happens may be the rest of a partition that is looked up, long after its messages have ended.
#[test]
fn packets_fly_on_after_the_last_message() {
    let text = "name = \"m\"\nbase.cluster = { gpus = 2, gpus_per_server = 1 }\nbase.topology.link_gbps = 8\nbase.transport = { cc = \"none\", payload_bytes = 9000, rto_us = 10 }\n\
        base.workload = { kind = \"collective\", op = \"all-reduce\", bytes = 1000000 }\nbase.output.flows = true\naxes.\"workload.rendezvous_ns\" = [1000, 2000]\n";
    same_with_a_memo(&[], text);
}

/// A state that is read takes packet records as it needs; the step after it finds as many as after any other step, and nothing starts over.
#[test]
fn a_state_that_is_read_leaves_records_for_what_follows() {
    let graph = |at: u32| {
        format!(
            "id,ranks,kind,duration_ns,bytes,peer,stream,deps\na,0,send,,1000000,1,free,\nb,1,recv,,1000000,0,free,\nc,2,send,,300000,1,free,\nd,1,recv,,300000,2,free,\n\
             e,0,compute,{at},,,,\nf,0,send,,20000,3,free,e\ng,3,recv,,20000,0,free,\n"
        )
    };
    let text = "name = \"m\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology.link_gbps = 8\nbase.transport = { cc = \"timely\", payload_bytes = 130, ecn = false }\n\
        base.workload.kind = \"dag\"\nbase.output.flows = true\nbase.fidelity = { steady_samples = 2, steady_interval_ns = 3000 }\naxes.\"workload.path\" = [\"a.csv\", \"b.csv\"]\n";
    same_with_a_memo(&[("a.csv", graph(130_000)), ("b.csv", graph(131_000))], text);
}

/// When a partition is laid down is a matter of steps, which are not as long in every experiment.
#[test]
fn experiments_of_other_steps_remember_other_things() {
    let graph = "id,ranks,kind,duration_ns,bytes,peer,stream,deps\ns0,0,send,,100000,2,free,\nr0,2,recv,,100000,0,free,\nc,0,compute,50,,,free,s0\ns1,0,send,,300000,2,free,c\n\
        r1,2,recv,,300000,0,free,\n";
    let text = "name = \"m\"\nbase.cluster = { gpus = 4, gpus_per_server = 2, nvlink = \"packet\" }\nbase.transport = { global_rtt = false, payload_bytes = 256 }\n\
        base.workload = { kind = \"dag\", path = \"g.csv\" }\nbase.output.flows = true\nbase.fidelity = { steady_samples = 4, steady_interval_ns = 500 }\n\
        axes.\"cluster.nvlink_latency_ns\" = [10, 1000]\n";
    same_with_a_memo(&[("g.csv", graph.into())], text);
}

/// Sleep ends, and errs by less than half a percent, where messages start fresh, where packets differ in length, and where one queue pair is done long before another.
#[test]
fn sleep_goes_by_what_is_on_the_wire() {
    let ring = "id,ranks,kind,duration_ns,bytes,peer,tag,stream,deps\nn0,0-3,send,,312500,+1,0,,\nn1,0-3,recv,,312500,-1,0,free,\nn2,1,send,,312500,2,2,free,\nn3,2,recv,,312500,1,2,free,\n";
    let cases = [
        "base.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.transport = { cc = \"none\", fresh_qp = true }\nbase.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 4000000 }\n",
        "base.cluster = { gpus = 8, gpus_per_server = 4 }\nbase.transport = { cc = \"none\", payload_bytes = 9000 }\nbase.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 64000000 }\n",
        "base.cluster.gpus = 16\nbase.topology.link_gbps = 10\nbase.transport.cc = \"none\"\nbase.workload = { kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 2000000 }\n",
        "base.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology.link_gbps = 25\nbase.transport.cc = \"none\"\nbase.workload = { kind = \"dag\", path = \"ring.csv\" }\n",
        "base.cluster = { gpus = 2, gpus_per_server = 1 }\nbase.topology.link_gbps = 100\nbase.transport.cc = \"hpcc\"\nbase.workload = { kind = \"collective\", op = \"broadcast\", bytes = 5000000 }\n",
    ];
    for (k, case) in cases.iter().enumerate() {
        let text = format!("name = \"m\"\nbase.output.flows = true\n{case}axes.\"fidelity.fast_forward\" = [\"off\", \"steady\"]\n");
        let root = same_with_a_memo(&[("ring.csv", ring.into())], &text);
        let column = |file: &str, name: &str| -> Vec<f64> {
            let mut rows = csv::Reader::from_path(root.path().join("with").join(file)).unwrap();
            let at = rows.headers().unwrap().iter().position(|h| h == name).unwrap();
            rows.records().map(|r| r.unwrap()[at].parse().unwrap()).collect()
        };
        // Of the ring nothing is skipped: what was seen before is forgotten when a queue pair is done.
        assert!(column("stats.csv", "steady_skips")[1] > 0.0 || k == 3, "{case}");
        for name in ["makespan_ns", "fct_mean_ns"] {
            let of = column("results.csv", name);
            assert!((of[1] / of[0] - 1.0).abs() < 0.005, "{name} {of:?}: {case}");
        }
    }
}

/// Who goes first at one instant may go back to a queue pair that has long had nothing to do and has left the partition. Halves of a cluster that do alike have other ones:
/// what was simulated in one half is looked up in the other, and ties there go by its own numbers.
#[test]
fn ties_go_by_queue_pairs_that_are_gone() {
    let root = tempfile::tempdir().unwrap();
    let graph = "id,ranks,kind,duration_ns,bytes,deps\nc,all,compute,60000,,\na,all,all-to-all,,2000,\nr,all,all-reduce,,100000,c a\n";
    std::fs::write(root.path().join("graph.csv"), graph).unwrap();
    let sweep = root.path().join("sweep.toml");
    let text = "name = \"m\"\nbase.cluster = { gpus = 16, gpus_per_server = 1 }\nbase.topology = { kind = \"rail-optimized\", link_gbps = 400 }\nbase.transport.cc = \"none\"\n\
        base.workload = { kind = \"dag\", path = \"graph.csv\" }\nbase.output.flows = true\n";
    std::fs::write(&sweep, text).unwrap();
    let flows = |fold: &str| {
        let out = root.path().join(fold);
        ran(&sweep, &out, &["--jobs", "1", "--set", &format!("fidelity.fast_forward={fold}")]);
        std::fs::read(out.join("flows.csv")).unwrap()
    };
    let exact = flows("exact");
    let mut stats = csv::Reader::from_path(root.path().join("exact/stats.csv")).unwrap();
    let known = stats.headers().unwrap().iter().position(|h| h == "episodes_known").unwrap();
    assert!(stats.records().next().unwrap().unwrap()[known].parse::<u64>().unwrap() > 0, "nothing was looked up");
    assert!(exact == flows("off"), "flows differ");
}

/// What comes after a random draw is not remembered, what came before it is: a message that is alone at first, then one of an incast with marks, then twice alone, side by
/// side. Of the last two one waits for what the other simulates, and has nothing left to simulate itself.
#[test]
fn a_draw_forgets_what_comes_after_it_alone() {
    let root = tempfile::tempdir().unwrap();
    let alone = "id,ranks,kind,duration_ns,bytes,group,peer,tag,stream,deps\na,0,send,,40000000,,3,1,,\nb,3,recv,,40000000,,0,1,,\n";
    let later = "w,1-2,compute,100000,,,,,,\nc,1,send,,2000000,,3,2,,w\nd,3,recv,,2000000,,1,2,free,\ne,2,send,,2000000,,3,3,,w\nf,3,recv,,2000000,,2,3,free,\n";
    for (name, text) in [("joined.csv", format!("{alone}{later}")), ("alone.csv", alone.into()), ("again.csv", format!("{alone}w,1,compute,5000,,,,,,\n"))] {
        std::fs::write(root.path().join(name), text).unwrap();
    }
    let sweep = root.path().join("sweep.toml");
    let text = "name = \"m\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", link_gbps = 100, uplink_gbps = 100 }\nbase.transport.cc = \"dcqcn\"\n\
        base.workload.kind = \"dag\"\nbase.fidelity.fast_forward = \"exact\"\naxes.\"workload.path\" = [\"joined.csv\", \"alone.csv\", \"again.csv\"]\n";
    std::fs::write(&sweep, text).unwrap();
    let out = root.path().join("out");
    ran(&sweep, &out, &["--jobs", "2"]);
    let column = |file: &str, name: &str| -> Vec<u64> {
        let mut rows = csv::Reader::from_path(out.join(file)).unwrap();
        let at = rows.headers().unwrap().iter().position(|h| h == name).unwrap();
        rows.records().map(|r| r.unwrap()[at].parse().unwrap()).collect()
    };
    let (marks, hops, simulated) = (column("results.csv", "ecn_marks"), column("results.csv", "packet_hops"), column("stats.csv", "packet_hops_simulated"));
    assert!(marks[0] > 0 && marks[1..] == [0, 0], "{marks:?}");
    assert!(simulated[0] == hops[0] && simulated[1] > 0 && simulated[1] < hops[1] && simulated[2] == 0, "simulated {simulated:?} of {hops:?}");
}

/// What the README says of skipped phases, on scaled-down GPT iterations under four congestion controls.
#[test]
fn steady_phases_are_skipped_within_half_a_percent() {
    let root = tempfile::tempdir().unwrap();
    let sweep = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/suites/wormhole-cc.toml");
    let column = |folding: &str, file: &str, name: &str| -> Vec<f64> {
        let mut rows = csv::Reader::from_path(root.path().join(folding).join(file)).unwrap();
        let at = rows.headers().unwrap().iter().position(|h| h == name).unwrap();
        rows.records().map(|r| r.unwrap()[at].parse().unwrap()).collect()
    };
    for folding in ["exact", "steady"] {
        ran(&sweep, &root.path().join(folding), &["--limit", "4", "--set", &format!("fidelity.fast_forward={folding}")]);
    }
    for name in ["iteration_time_ns", "fct_mean_ns"] {
        for (k, (exact, steady)) in column("exact", "results.csv", name).into_iter().zip(column("steady", "results.csv", name)).enumerate() {
            assert!((steady / exact - 1.0).abs() < 0.005, "experiment {k}: {name} {steady}, exactly {exact}");
        }
    }
    let [exact, steady] = ["exact", "steady"].map(|f| column(f, "stats.csv", "packet_hops_simulated"));
    assert!(exact.len() == 4 && exact.iter().zip(&steady).all(|(e, s)| s * 2.0 < *e), "simulated {steady:?}, exactly {exact:?}");
}

/// What congestion control carries over from one all-to-all to the next makes few of them new.
#[test]
fn what_is_carried_over_repeats() {
    let root = tempfile::tempdir().unwrap();
    let sweep = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/suites/wormhole-cc.toml");
    // A mixture of experts under DCQCN and TIMELY.
    for shard in ["5/8", "6/8"] {
        let out = root.path().join(&shard[..1]);
        ran(&sweep, &out, &["--jobs", "1", "--shard", shard]);
        let mut rows = csv::Reader::from_path(out.join("stats.csv")).unwrap();
        let header = rows.headers().unwrap().clone();
        let record = rows.records().next().unwrap().unwrap();
        let count = |name: &str| record[header.iter().position(|h| h == name).unwrap()].parse::<u64>().unwrap();
        let (episodes, known) = (count("episodes"), count("episodes_known"));
        assert!(episodes > 1000 && episodes - known < 20, "{shard}: {known} of {episodes} episodes known");
    }
}
