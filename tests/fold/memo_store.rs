//! The memo on disk changes no result, whatever it holds and whoever shares it.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use crate::memo_cases::{OPTIONS, ROOMY, WAIT, cases, outcome, prepared, run, run_with, session, set_aside};
use crate::support::engine::is_final;
use crate::support::{engine, gpu_graphs};
use hyperfold_columns::mode;
use hyperfold_engine::FoldStats;
use hyperfold_fold::{BackingStore, FoldEngine, Memo, MemoNodeId, SEMANTICS, version};
use hyperfold_host::memo_file::memo_store::MemoStore;
use hyperfold_llm::workload::tasks::Work;
use hyperfold_network::transport::Cc;
use sha2::{Digest, Sha256};

/// Runs a case of longer messages with what is steady skipped; gives what was done, and what it came to.
fn run_steady(seed: u64, mut engine: FoldEngine) -> (FoldStats, String) {
    let mut g = gpu_graphs::case(seed);
    for task in &mut g.graph.tasks {
        if let Work::Message { bytes, .. } = &mut task.work {
            *bytes *= 40;
        }
    }
    g.fresh_qp = false;
    let mut tables = gpu_graphs::tables(&g, OPTIONS).tables;
    let e = &mut tables.exps[0];
    e.modes |= mode::FOLD | mode::MEMO | mode::STEADY;
    (e.theta_ppm, e.samples, e.interval_ns) = (300_000, 4, 2000);
    let mut batch = [tables];
    let mut stats = FoldStats::default();
    while !is_final(&batch[0]) {
        stats = engine::advance(&mut engine, &mut batch, u64::from(u32::MAX) / 2, &|| false).unwrap().folds[0];
    }
    // Beyond fast recovery all stages are alike.
    let fast = batch[0].exps[0].fast_recovery;
    batch[0].flow_tx.iter_mut().for_each(|tx| tx.stage = tx.stage.min(fast));
    (stats, outcome(&batch[0]))
}

#[test]
fn cold_warm_and_partly_evicted_memos_change_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let cases = cases(0..120);
    let (cold_hits, cold, warnings) = session(&path, &cases, ROOMY);
    assert!(cold > 50 && warnings.is_empty(), "{cold} {warnings:?}");
    let size = fs::metadata(&path).unwrap().len();
    let (hits, misses, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > cold_hits + 50 && misses < cold / 2 && warnings.is_empty(), "{hits} {misses} {warnings:?}");
    println!("cold {cold_hits} hits {cold} misses, warm {hits} hits {misses} misses, {size} bytes");
    let again = session(&path, &cases, ROOMY);
    assert!(again.0 >= hits && again.1 <= misses, "{} {}", again.0, again.1);
    // A third of the room: much goes.
    let limit = size / 3;
    session(&path, &cases[..1], limit);
    assert!(fs::metadata(&path).unwrap().len() <= limit);
    let (some, more, warnings) = session(&path, &cases, ROOMY);
    assert!(some < hits && more > misses && warnings.is_empty(), "{some} {more} {warnings:?}");
    assert!(set_aside(&path).is_empty());
}

/// A shelf that lacks some of what another has.
struct Without {
    store: Arc<MemoStore>,
    lacks: fn(&MemoNodeId) -> bool,
}

impl BackingStore for Without {
    fn fetch(&self, root: &MemoNodeId) -> Vec<Vec<u8>> {
        if (self.lacks)(root) { Vec::new() } else { self.store.fetch(root) }
    }
}

#[test]
fn states_that_are_looked_up_every_few_packets_are_kept_as_well() {
    let root = tempfile::tempdir().unwrap();
    let cases = cases(0..80);
    for every in [1, 7, 40] {
        let path = root.path().join(format!("m-{every}.db"));
        let pass = |memo: &Arc<Memo>| {
            run_with(&cases, FoldEngine::remembering(Arc::clone(memo)).with_checkpoints_every(every))
        };
        let open = || Arc::new(MemoStore::open(&path, ROOMY));
        let store = open();
        let memo = Arc::new(Memo::on(store.clone()));
        let cold = pass(&memo);
        assert!(store.publish(&memo, WAIT, true));
        memo.each_unsaved(|unsaved| panic!("{:?} is not saved", unsaved.root));
        let again = pass(&memo);
        let warm = pass(&Arc::new(Memo::on(open())));
        println!("every {every}: cold {cold:?}, again {again:?}, warm {warm:?}");
        assert!(again.hits > cold.hits && again.hops_simulated < cold.hops_simulated, "cold {cold:?}, again {again:?}");
        assert_eq!(warm, again, "every {every}: what is on disk is as good as what was in memory");
        // Cuts that lead to what is not there are found anew, and what was found may be added to what there is.
        for lacks in [
            |id: &MemoNodeId| id[0].is_multiple_of(3),
            |id: &MemoNodeId| id[0] % 3 == 1,
            |id: &MemoNodeId| !id[0].is_multiple_of(4),
        ] {
            let store = open();
            let memo = Arc::new(Memo::on(Arc::new(Without { store: store.clone(), lacks })));
            let some = pass(&memo);
            assert!(some.hits > cold.hits / 4 && some.hops_simulated > warm.hops_simulated, "every {every}: {some:?}");
            assert!(store.publish(&memo, WAIT, true));
            let whole = pass(&Arc::new(Memo::on(open())));
            // Looking a partition up cuts it there, so that it may meet another in a state that nobody has seen. That happens in one case of 80, which then
            // simulates more; the other 79 find all that they found before.
            assert!(
                whole.hops_simulated <= warm.hops_simulated + warm.hops_simulated / 100,
                "every {every}: {some:?} added, {whole:?}"
            );
        }
    }
}

/// What the memo has no room for is simulated, be it because it is full or because nothing of it came before.
#[test]
fn a_memo_with_little_room_changes_nothing() {
    let cases = cases(0..80);
    let all = Arc::new(Memo::default());
    let engine = |memo: &Arc<Memo>, every: u64| FoldEngine::remembering(Arc::clone(memo)).with_checkpoints_every(every);
    let roomy = run_with(&cases, engine(&all, 7));
    let mut hits = Vec::new();
    for most in [0, 20_000, 200_000, 1_000_000, 5_000_000] {
        for every in [1, 7, 2048] {
            let memo = Arc::new(Memo::default().at_most(most));
            let (first, again) = (run_with(&cases, engine(&memo, every)), run_with(&cases, engine(&memo, every)));
            assert_eq!((first.restarts, again.restarts), (roomy.restarts, roomy.restarts));
            assert!(memo.bytes() <= most);
            if every == 7 {
                hits.push(again.hits);
            }
        }
    }
    println!("{} bytes and {} hits with room, {hits:?} hits with less", all.bytes(), roomy.hits);
    assert!(hits[0] == 0 && hits[2] > 0 && hits[4] > hits[2], "{hits:?}");
}

/// Many experiments that find nothing come first. Those that come again and again afterwards still find room.
#[test]
fn what_never_repeats_leaves_room_for_what_does() {
    let (never, again) = (cases(0..80), cases(80..90));
    let engine = |memo: &Arc<Memo>| FoldEngine::remembering(Arc::clone(memo)).with_checkpoints_every(7);
    let all = Arc::new(Memo::default());
    run_with(&never, engine(&all));
    let most = all.bytes() / 4;
    let memo = Arc::new(Memo::default().at_most(most));
    run_with(&never, engine(&memo));
    assert!(memo.bytes() < most * 4 / 5, "{} of {most} bytes", memo.bytes());
    let alone = Arc::new(Memo::default());
    let mut hits = Vec::new();
    for _ in 0..3 {
        hits.push((run_with(&again, engine(&memo)).hits, run_with(&again, engine(&alone)).hits));
    }
    println!("hits in what is left of {most} bytes, and alone: {hits:?}");
    // Had the others filled the memo, nothing of these would ever be known.
    assert!(hits[0].0 == 0 && hits[2].0 > 10, "{hits:?}");
}

/// With skips, checkpoints are part of what is decided: they must not depend on whether the memo takes anything in.
#[test]
fn skips_do_not_depend_on_the_room_of_the_memo() {
    let decided =
        |s: &FoldStats| (s.skips, s.hops_skipped, s.skipped_ps, s.rounded, s.wander_ps, s.exactly, s.couplings);
    let (mut skips, mut hits) = (0, [0; 3]);
    let memos = [0, 2_000_000, u64::MAX].map(|most| Arc::new(Memo::default().at_most(most)));
    for seed in 0..30 {
        let (alone, want) = run_steady(seed, FoldEngine::forgetful().with_checkpoints_every(7));
        // Few cases skip anything. Of the others the first ones do.
        if seed >= 8 && alone.skips == 0 {
            continue;
        }
        skips += alone.skips;
        for (memo, hits) in memos.iter().zip(&mut hits) {
            for _ in 0..2 {
                let engine = FoldEngine::remembering(Arc::clone(memo)).with_checkpoints_every(7);
                let (stats, got) = run_steady(seed, engine);
                assert!(got == want, "case {seed}: not what it comes to without a memo");
                assert_eq!(decided(&stats), decided(&alone), "case {seed}");
                *hits += stats.hits;
            }
        }
    }
    println!("{skips} skips, {hits:?} hits");
    assert!(skips > 0 && hits[0] == 0 && hits[1] > 0 && hits[2] > hits[1], "{skips} {hits:?}");
}

const SWEEP: &str = r#"
name = "remembered"
[base]
cluster = { gpus = 16, gpus_per_server = 8, nics_per_server = 8 }
topology = { kind = "rail-optimized", pods = 1, spines = 2, link_gbps = 100, uplink_gbps = 100 }
workload = { kind = "collective", op = "all-reduce", bytes = 2000000, iterations = 3 }
transport = { cc = "dcqcn" }
output = { flows = true, links = true }
[axes]
"transport.cc" = ["dcqcn", "hpcc"]
"workload.bytes" = [1000000, 6000000]
"#;

#[test]
fn runs_give_the_same_bytes_whatever_the_memo_holds() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let run = |out: &str, more: &[&str]| -> u64 {
        let args = [&["run", "s.toml", "--engine", "cpu", "--quiet", "--out", out], more].concat();
        let output =
            Command::new(env!("CARGO_BIN_EXE_hyperfold")).current_dir(root.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{out}: {}", String::from_utf8_lossy(&output.stderr));
        let stats = fs::read_to_string(root.path().join(out).join("stats.csv")).unwrap();
        stats.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse::<u64>().unwrap()).sum()
    };
    let none = run("none", &["--memo", "off"]);
    let alone = run("alone", &[]);
    let cold = run("cold", &["--memo", "m.db", "--shard", "0/2"]);
    // A shard has filled a part of it.
    let part = run("part", &["--memo", "m.db"]);
    let warm = run("warm", &["--memo", "m.db"]);
    let known = fs::read(root.path().join("m.db")).unwrap();
    run("again", &["--memo", "m.db"]);
    assert!(fs::read(root.path().join("m.db")).unwrap() == known, "what is known is not written again");
    fs::OpenOptions::new().write(true).open(root.path().join("m.db")).unwrap().set_len(3000).unwrap();
    let cut = run("cut", &["--memo", "m.db"]);
    println!("misses: {alone} alone, {cold} in a shard, {part} after it, {warm} warm, {cut} cut off");
    assert!(none == 0 && alone > part && part > warm && cut > warm);
    for file in ["results.csv", "results.parquet", "flows.csv", "links.csv"] {
        let of = |out: &str| fs::read(root.path().join(out).join(file)).unwrap();
        for out in ["alone", "part", "warm", "again", "cut"] {
            assert!(of(out) == of("none"), "{file} of the run {out}");
        }
    }
    assert!(set_aside(&root.path().join("m.db")).len() == 1);
}

#[test]
fn threads_and_runs_share_one_memo() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let cases = cases(0..40);
    std::thread::scope(|scope| {
        for part in cases.chunks(12) {
            scope.spawn(|| {
                let (_, _, warnings) = session(&path, part, ROOMY);
                assert!(warnings.is_empty(), "{warnings:?}");
            });
        }
    });
    let (separate_hits, alone, _) = session(&root.path().join("other.db"), &cases, ROOMY);
    let (hits, misses, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > separate_hits && misses < alone && warnings.is_empty(), "{hits} {misses} {warnings:?}");
}

/// What the memo holds after some cases, as a digest. It changes with the packet model, with canonical forms, with what is recorded: then entries on disk
/// must not be taken for those of this version. The version itself is that of memos which release 0.1.0 wrote: they are read as long as it stays.
/// PRECONDITION of a new digest here: [`SEMANTICS`] was raised.
#[test]
fn what_is_remembered_and_its_version_change_together() {
    let memo = Arc::new(Memo::default());
    let cases = cases(0..60);
    run(&cases, &memo);
    // Few of these are long enough for a checkpoint otherwise.
    run_with(&cases, FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(7));
    let (mut skips, mut rounded) = (0, 0);
    for seed in 0..30 {
        let (stats, _) = run_steady(seed, FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(7));
        (skips, rounded) = (skips + stats.skips, rounded + stats.rounded);
    }
    assert!(skips > 0 && rounded > 0, "{skips} skips, {rounded} roundings");
    let mut hash = Sha256::new();
    let mut n = 0;
    memo.each_unsaved(|unsaved| {
        hash.update(unsaved.root);
        hash.update(&unsaved.record);
        n += 1;
    });
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert!(n > 30, "{n} roots");
    assert_eq!(
        (SEMANTICS, hex(&hash.finalize()[..8]), hex(&version())),
        (29, "0c21c9f4ada9a777".into(), "61f3403a31931097a88532526ab60a8a".into()),
        "raise hyperfold_fold::SEMANTICS, then put the new digests here; the changelog says that earlier memos are not read"
    );
}

/// A looked-up partition that is simulated again has reported a message whose post is at the very instant of a checkpoint, and its rows do not contain
/// that message yet. A snapshot of these rows would not be the whole state. One of these cases meets it where the memo lacks a part of what it knew.
#[test]
fn a_checkpoint_waits_for_posts_of_its_instant() {
    let root = tempfile::tempdir().unwrap();
    let controls = [Cc::None, Cc::Dcqcn, Cc::Hpcc, Cc::Timely, Cc::Dctcp, Cc::Swift];
    let graph = |seed: u64| gpu_graphs::case_of(seed, controls[(seed % 6) as usize], (seed / 6) as usize);
    let cases: Vec<_> = (72..79).map(graph).filter_map(prepared).collect();
    for every in [1, 7, 40] {
        let path = root.path().join(format!("m-{every}.db"));
        let pass = |memo: &Arc<Memo>| {
            run_with(&cases, FoldEngine::remembering(Arc::clone(memo)).with_checkpoints_every(every))
        };
        let store = Arc::new(MemoStore::open(&path, ROOMY));
        let memo = Arc::new(Memo::on(store.clone()));
        pass(&memo);
        assert!(store.publish(&memo, WAIT, true));
        for lacks in [
            |id: &MemoNodeId| id[0].is_multiple_of(3),
            |id: &MemoNodeId| id[0] % 3 == 1,
            |id: &MemoNodeId| !id[0].is_multiple_of(4),
            |id: &MemoNodeId| id[0].is_multiple_of(2),
        ] {
            let store = Arc::new(MemoStore::open(&path, ROOMY));
            pass(&Arc::new(Memo::on(Arc::new(Without { store, lacks }))));
        }
    }
}
