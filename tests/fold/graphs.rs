//! Folding changes no bit: random task graphs, beside plain flows or alone, with every congestion control, windows, pauses and losses.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::engine::is_final;
use crate::support::gpu_graphs::Graph;
use crate::support::{engine, gpu_graphs, random};
use hyperfold_columns::{
    FlowIdx, FlowRx, FlowTx, Gate, NONE, Nic, OwnedTables, PacketIdx, Port, Task, TaskIdx, cc, mode, qp, status,
};
use hyperfold_engine::cpu::cc::{dcqcn, timely};
use hyperfold_engine::{Engine, FoldStats};
use hyperfold_fold::{FoldEngine, Memo};
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_llm::workload::tasks::Work;

pub const OPTIONS: BuildOptions = BuildOptions { links: true, ..BuildOptions::PACKETS };

/// Tables of `g`, with round-trip times added up in every second case.
fn tables(g: &Graph) -> OwnedTables {
    let rtt_means = g.case.flows.len() % 2 == 1;
    gpu_graphs::tables(g, BuildOptions { rtt_means, ..OPTIONS }).tables
}

/// Runs `t` folded.
fn fold(name: &str, t: &mut OwnedTables, modes: u32) -> FoldStats {
    t.exps[0].modes |= modes;
    run(name, &mut FoldEngine::default(), t)
}

pub fn run(name: &str, engine: &mut dyn Engine, t: &mut OwnedTables) -> FoldStats {
    let mut batch = [std::mem::take(t)];
    let mut stats = FoldStats::default();
    while !is_final(&batch[0]) {
        let slice = engine::advance(engine, &mut batch, u64::from(u32::MAX) / 2, &|| false).unwrap();
        assert!(slice.failures.is_empty(), "{name}: {:?}", slice.failures);
        stats = slice.folds[0];
    }
    let [done] = batch;
    *t = done;
    stats
}

/// Status; tasks, gates, senders, receivers; counters of NICs and of ports; paused times.
type Ended = (u32, Vec<Task>, Vec<Gate>, Vec<FlowTx>, Vec<FlowRx>, Vec<[u64; 3]>, Vec<[u64; 8]>, Vec<u64>);

/// What an experiment came to, without lists and what idle rows keep in vain: times before which something might not have happened, among others.
fn rows(t: &OwnedTables) -> Ended {
    let nic = |r: &Nic| [r.tx_bytes, r.hops, u64::from(r.pauses)];
    let port = |r: &Port| {
        [r.tx_bytes, r.hops, u64::from(r.pauses), u64::from(r.drops), u64::from(r.max_q), r.draws, r.marks, r.q_area]
    };
    (
        t.exps[0].status,
        t.tasks.iter().map(|r| Task { next: TaskIdx::NONE, ..*r }).collect(),
        t.gates.iter().map(|r| Gate { next: NONE, ..*r }).collect(),
        t.flow_tx.iter().map(|r| FlowTx { flags: r.flags & !(qp::HELD | qp::QUEUED), next_avail: 0, ..*r }).collect(),
        t.flow_rx.iter().map(|r| FlowRx { held: PacketIdx::NONE, nack_t: 0, cnp_t: 0, ..*r }).collect(),
        t.nics.iter().map(nic).collect(),
        t.ports.iter().map(port).collect(),
        t.pause_ps.clone(),
    )
}

/// `t` with the timers of congestion control, which wait until somebody looks, run up to `now`; stages as far as they matter: beyond some number of increases all are alike.
fn caught_up(t: &OwnedTables, now: u64) -> OwnedTables {
    let mut t = t.clone();
    let e = t.exps[0];
    for f in 0..t.flow_tx.len() {
        if e.cc == cc::DCQCN {
            dcqcn::advance_until(&mut t.view(), FlowIdx::new(f), now);
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
pub fn same(name: &str, folded: &OwnedTables, plain: &OwnedTables) {
    engine::conserved(folded).unwrap_or_else(|e| panic!("{name}: {e}"));
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
    assert_eq!(got.7, want.7, "{name}: paused times");
}

#[test]
fn partitions_change_nothing() {
    let (mut folded, mut coupled) = (0, 0);
    for seed in (0..300).chain(random::SWIFT..random::SWIFT + 100).chain(random::SELECTIVE..random::SELECTIVE + 60) {
        let g = gpu_graphs::case(seed);
        let mut plain = tables(&g);
        let mut got = plain.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        let stats = fold(&g.name, &mut got, mode::FOLD);
        same(&g.name, &got, &plain);
        assert_eq!(stats.restarts, 0, "{}: it started over unfolded", g.name);
        folded += 1;
        coupled += u32::from(stats.coupled > 0);
    }
    println!("{folded} folded, {coupled} with coupled switches");
    assert!(folded > 250 && coupled > 100, "{folded} folded, {coupled} with coupled switches");
}

/// A case with the memo of `engine`, held against the unfolded run: what folding did, and whether it simulated less. `None`: a queue pair gives up.
fn remembered(engine: &mut FoldEngine, seed: u64) -> Option<(FoldStats, bool)> {
    remembered_graph(engine, &gpu_graphs::case(seed))
}

/// [`remembered`] for a graph at hand.
fn remembered_graph(engine: &mut FoldEngine, g: &Graph) -> Option<(FoldStats, bool)> {
    let mut plain = tables(g);
    let mut got = plain.clone();
    if engine::run_cpu(&mut plain) == status::GAVE_UP {
        return None;
    }
    got.exps[0].modes |= mode::FOLD | mode::MEMO;
    let stats = run(&g.name, engine, &mut got);
    same(&g.name, &got, &plain);
    Some((stats, stats.restarts == 0 && stats.hops_simulated < engine::packet_hops(&plain)))
}

/// Cases over switches that cut through, in one memo with the same cases over those that store and forward.
#[test]
fn cut_through_is_folded() {
    let (mut hits, mut fewer, mut coupled, mut matters) = (0, 0, 0, 0);
    let mut engine = FoldEngine::default();
    let seeds = (0..200).chain(random::SWIFT..random::SWIFT + 40);
    for seed in seeds.clone().chain(seeds) {
        let (g, stored) = (gpu_graphs::cut_through(seed), gpu_graphs::case(seed));
        let ends = |g: &Graph| {
            let mut t = gpu_graphs::tables(g, OPTIONS).tables;
            engine::run_cpu(&mut t);
            t.tasks.iter().map(|task| task.done).collect::<Vec<_>>()
        };
        matters += u32::from(ends(&g) != ends(&stored));
        for g in [&g, &stored] {
            let Some((stats, less)) = remembered_graph(&mut engine, g) else { continue };
            hits += stats.hits;
            fewer += u32::from(less);
            coupled += u32::from(stats.coupled > 0);
        }
        let mut plain = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut got = plain.clone();
        if engine::run_cpu(&mut plain) != status::GAVE_UP {
            fold(&g.name, &mut got, mode::FOLD);
            same(&g.name, &got, &plain);
        }
    }
    println!(
        "{hits} hits, {fewer} simulated less, {coupled} with coupled switches, {matters} end otherwise by cut-through"
    );
    assert!(hits > 100 && fewer > 100 && coupled > 100 && matters > 200, "{hits} {fewer} {coupled} {matters}");
}

#[test]
fn what_is_remembered_changes_nothing() {
    let (mut hits, mut misses, mut less) = (0, 0, 0);
    let mut engine = FoldEngine::default();
    for seed in (0..300)
        .chain(0..300)
        .chain(random::SWIFT..random::SWIFT + 100)
        .chain(random::SELECTIVE..random::SELECTIVE + 60)
    {
        if let Some((stats, fewer)) = remembered(&mut engine, seed) {
            hits += stats.hits;
            misses += stats.misses;
            less += u32::from(fewer);
        }
    }
    println!("{hits} hits, {misses} misses, {less} with less to simulate");
    assert!(hits > 250 && less > 70, "{hits} hits, {misses} misses, {less} with less to simulate");
}

#[test]
fn slow_links_change_nothing() {
    let (mut folded, mut slow, mut hits, mut less) = (0, 0, 0, 0);
    let mut engine = FoldEngine::default();
    for seed in (random::SLOW..random::SLOW + 150).chain(random::SLOW..random::SLOW + 150) {
        let g = gpu_graphs::case(seed);
        let mut plain = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut got = plain.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        fold(&g.name, &mut got, mode::FOLD);
        same(&g.name, &got, &plain);
        folded += 1;
        slow += u32::from(!g.case.network.slow_arcs.is_empty());
        if let Some((stats, fewer)) = remembered(&mut engine, seed) {
            hits += stats.hits;
            less += u32::from(fewer);
        }
    }
    println!("{folded} folded, {slow} with slow links, {hits} hits, {less} with less to simulate");
    assert!(folded > 200 && slow > 150 && hits > 100 && less > 30, "{folded}, {slow}, {hits} hits, {less} with less");
}

/// States are looked up every few packets, so that patterns that repeat, partitions that fall apart and rows that are read back are the rule.
#[test]
fn states_change_nothing() {
    let (mut hits, mut less) = (0, 0);
    for every in [1, 7, 40] {
        let mut engine = FoldEngine::checkpointing_every(every);
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

/// Long messages on queue pairs that are used again, sampled often: most of the time is skipped.
fn steady_case(seed: u64) -> (String, OwnedTables) {
    made_steady(gpu_graphs::case(seed))
}

pub fn made_steady(mut g: gpu_graphs::Graph) -> (String, OwnedTables) {
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
fn skips_depend_only_on_the_past() {
    let (skips, skipped, audited, hits) = skips_of(0..100);
    assert!(
        skips > 40 && skipped > 35_000 && audited > 15 && hits > 200,
        "{skips} skips, {skipped} packet-hops skipped, {audited} audited, {hits} hits"
    );
}

#[test]
#[ignore = "soak: further cases of two tests; scripts/test.sh --soak and CI run it"]
fn soak_skips_depend_only_on_the_past() {
    skips_of(100..200);
    skips_beside_others(48..96);
}

/// Runs cases alone, audited, remembered and looked up, and compares their tables. Returns numbers of skips, of packet-hops skipped, of audits and of hits.
fn skips_of(seeds: Range<u64>) -> (u64, u64, u64, u64) {
    let mut engine = FoldEngine::checkpointing_every(10);
    let told = |s: &FoldStats| (s.skips, s.hops_skipped, s.audit, s.audit_hops, s.wander_ps);
    let (mut skips, mut skipped, mut audited, mut hits) = (0, 0, 0, 0);
    // The cases alone, each with its tables at the end and what an audit told of it.
    let mut alone = Vec::new();
    for seed in seeds {
        let (name, mut plain) = steady_case(seed);
        let mut audit = plain.clone();
        let stats = run(&name, &mut FoldEngine::forgetful().with_checkpoints_every(10), &mut plain);
        if plain.exps[0].status == status::GAVE_UP {
            continue;
        }
        audit.exps[0].audit_ppm = 200_000;
        let audits = run(&name, &mut FoldEngine::forgetful().with_checkpoints_every(10), &mut audit);
        same(&format!("{name}, audited"), &audit, &plain);
        // Every experiment that skipped has an audit.
        assert_eq!(audits.skips > 0, audits.audit.skips > 0, "{name}: {audits:?}");
        audited += audits.audit.skips;
        gpu_graphs::complete(&name, &plain);
        skips += stats.skips;
        skipped += stats.hops_skipped;
        alone.push((seed, plain, told(&audits)));
    }
    // The second time, the memo has all of them.
    for (seed, plain, audit) in alone.iter().chain(&alone) {
        let (name, mut kept) = steady_case(*seed);
        kept.exps[0].modes |= mode::MEMO;
        kept.exps[0].audit_ppm = 200_000;
        let remembered = run(&name, &mut engine, &mut kept);
        hits += remembered.hits;
        same(&format!("{name}, remembered"), &kept, plain);
        // What is said of the error does not depend on the memo either.
        assert_eq!(told(&remembered), *audit, "{name}");
    }
    (skips, skipped, audited, hits)
}

/// A case of [`steady_case`] whose signals take `k` times 350 ns longer.
fn delayed(seed: u64, k: u64, steady: bool) -> (String, OwnedTables) {
    let g = gpu_graphs::case(seed);
    let (name, mut t) = made_steady(gpu_graphs::Graph { release_ps: g.release_ps + k * 350_000, ..g });
    if !steady {
        t.exps[0].modes &= !mode::STEADY;
    }
    (format!("{name}, {k}, {}", if steady { "steady" } else { "exact" }), t)
}

/// Checks that a run with the memo of `engine` gives the same as one without a memo; returns what folding did.
pub fn same_remembered(name: &str, engine: &mut FoldEngine, every: u64, t: &OwnedTables) -> FoldStats {
    let (mut plain, mut kept) = (t.clone(), t.clone());
    let alone = run(name, &mut FoldEngine::forgetful().with_checkpoints_every(every), &mut plain);
    kept.exps[0].modes |= mode::MEMO;
    let stats = run(name, engine, &mut kept);
    let coupled = |s: &FoldStats| (s.restarts, s.coupled, s.couplings);
    assert_eq!(coupled(&stats), coupled(&alone), "{name}: which switches are coupled");
    same(name, &kept, &plain);
    stats
}

/// After a timeout a sender goes back and sends again what had arrived: that flies on, and is answered, when nothing of its queue pair is outstanding any more.
#[test]
fn what_is_sent_again_in_vain_is_not_forgotten() {
    for steady in [false, true] {
        let mut engine = FoldEngine::checkpointing_every(7);
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
fn which_switches_are_coupled_is_no_matter_of_steps() {
    for seed in [254, 627] {
        let mut engine = FoldEngine::checkpointing_every(40);
        let stats = [0, 1, 2].map(|k| {
            let (name, t) = delayed(seed, k, true);
            same_remembered(&name, &mut engine, 40, &t)
        });
        assert!(stats.iter().all(|s| s.coupled == stats[0].coupled), "seed {seed}: {stats:?}");
    }
}

#[test]
fn threads_that_share_what_is_remembered_change_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let mut engine = FoldEngine::default();
    for first in [0, 20, 40, 60] {
        // Likes side by side, so that threads find each other's half-told episodes.
        let cases: Vec<_> = (first..first + 20).flat_map(|seed| [seed; 3]).map(gpu_graphs::case).collect();
        let mut plain: Vec<OwnedTables> = cases.iter().map(|g| gpu_graphs::tables(g, OPTIONS).tables).collect();
        let mut batch = plain.clone();
        batch.iter_mut().for_each(|t| t.exps[0].modes |= mode::FOLD | mode::MEMO);
        while !batch.iter().all(is_final) {
            let slice =
                pool.install(|| engine::advance(&mut engine, &mut batch, u64::from(u32::MAX) / 2, &|| false)).unwrap();
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
pub fn together(engine: &mut FoldEngine, threads: usize, batch: &mut [OwnedTables]) -> Vec<FoldStats> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    batch.iter_mut().for_each(|t| t.exps[0].modes |= mode::FOLD | mode::MEMO);
    let mut folds = Vec::new();
    while !batch.iter().all(is_final) {
        let slice = pool.install(|| engine::advance(engine, batch, u64::from(u32::MAX) / 2, &|| false)).unwrap();
        assert!(slice.failures.is_empty(), "{:?}", slice.failures);
        folds = slice.folds;
    }
    folds
}

/// Experiments that meet the same unknown at the same time: one finds out, the others wait for it.
#[test]
fn equal_experiments_side_by_side_are_simulated_once() {
    let mut compared = 0;
    for seed in 0..120 {
        let g = gpu_graphs::case(seed);
        let tables = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = tables.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        for (threads, n, every) in [(2, 6, 40), (4, 16, 7)] {
            let one = together(&mut FoldEngine::checkpointing_every(every), 1, &mut [tables.clone()]);
            let mut batch = vec![tables.clone(); n];
            let all = together(&mut FoldEngine::checkpointing_every(every), threads, &mut batch);
            for got in &batch {
                same(&g.name, got, &plain);
            }
            // Nothing is shared if marks are random, or if an experiment starts over.
            let again = together_twice(&tables, every);
            if one[0].restarts + one[0].couplings > 0 || again > 0 {
                continue;
            }
            let simulated: u64 = all.iter().map(|s| s.hops_simulated).sum();
            assert_eq!(
                simulated,
                one[0].hops_simulated,
                "{}: {n} on {threads} threads, {:?}",
                g.name,
                all.iter().map(|s| s.hops_simulated).collect::<Vec<_>>()
            );
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

/// What the second of two equal experiments simulates that run one after the other.
fn together_twice(tables: &OwnedTables, every: u64) -> u64 {
    let mut engine = FoldEngine::checkpointing_every(every);
    together(&mut engine, 1, &mut [tables.clone(), tables.clone()])[1].hops_simulated
}

/// Experiments that have some of their traffic in common. Signals take longer in some, so that equal partitions are out of step.
fn overlapping(first: u64) -> Vec<gpu_graphs::Graph> {
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
        let mut engine = FoldEngine::checkpointing_every(every);
        for first in (0..96).step_by(4) {
            let cases = overlapping(first);
            let mut plain: Vec<OwnedTables> = cases.iter().map(|g| gpu_graphs::tables(g, OPTIONS).tables).collect();
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

/// Nor where steady partitions are skipped: rates and length of a skip are the same for whoever goes first and whoever waits.
#[test]
fn whoever_waits_skips_the_same() {
    let (skips, hits) = skips_beside_others(0..48);
    assert!(skips > 5 && hits > 200, "{skips} skips, {hits} hits");
}

/// Runs cases twelve at a time on several threads, and compares each with its run alone. Returns numbers of skips and of hits.
fn skips_beside_others(cases: Range<u64>) -> (u64, u64) {
    let (mut skips, mut hits) = (0, 0);
    for (threads, every) in [(2, 7), (4, 40), (4, 2048)] {
        let mut engine = FoldEngine::checkpointing_every(every);
        for first in cases.clone().step_by(12) {
            let (names, mut plain): (Vec<String>, Vec<OwnedTables>) =
                overlapping(first).into_iter().map(made_steady).unzip();
            let mut batch = plain.clone();
            // Some skips are audited, which nobody waits for.
            batch.iter_mut().step_by(3).for_each(|t| t.exps[0].audit_ppm = 500_000);
            let folds = together(&mut engine, threads, &mut batch);
            hits += folds.iter().map(|f| f.hits).sum::<u64>();
            for ((name, got), want) in names.iter().zip(&batch).zip(&mut plain) {
                skips += run(name, &mut FoldEngine::forgetful().with_checkpoints_every(every), want).skips;
                if want.exps[0].status != status::GAVE_UP {
                    same(&format!("{name}, {threads} threads, checkpoints every {every}"), got, want);
                }
            }
        }
    }
    (skips, hits)
}

/// Partitions that meet in a turn of one of them, before either has sent anything, are not idle while the other has something due (found with DCTCP).
#[test]
fn a_partition_with_something_due_is_not_idle() {
    let mut engine = FoldEngine::checkpointing_every(7);
    let (name, t) = delayed(549, 0, true);
    for _ in 0..2 {
        same_remembered(&name, &mut engine, 7, &t);
    }
}

/// Two engines on one memo, by turns on one thread. `b` goes on alone wherever `a` is not done with what it records; `a` may yet skip at its next sample, so nobody
/// may take more than until then for known (found by chance, with threads).
#[test]
fn what_is_known_ends_at_the_next_sample() {
    let alternate = |mut batches: [[OwnedTables; 1]; 2], every: u64| {
        let memo = Arc::<Memo>::default();
        let mut engines = [0; 2].map(|_| FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(every));
        while !batches.iter().all(|b| is_final(&b[0])) {
            // A few turns each: how often they ask whether to stop.
            for ((engine, batch), most) in engines.iter_mut().zip(&mut batches).zip([2, 3]) {
                let asked = AtomicU32::new(0);
                let slice = engine::advance(engine, batch, u64::from(u32::MAX) / 2, &|| {
                    asked.fetch_add(1, Ordering::Relaxed) >= most
                })
                .unwrap();
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
        skips += run(&name, &mut FoldEngine::forgetful().with_checkpoints_every(every), &mut plain).skips;
        kept.exps[0].modes |= mode::MEMO;
        for [got] in pool.install(|| alternate([[kept.clone()], [kept]], every)) {
            same(&name, &got, &plain);
        }
    }
    assert!(skips > 0);
}
