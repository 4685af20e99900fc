//! The memo on disk: it changes no result, whatever it holds; and whatever happens to its file, nothing but what was hit is lost.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::support::engine::is_final;
use crate::support::{engine, gpu_graphs};
use hyperfold::batch::build::BuildOptions;
use hyperfold::batch::memo_store::MemoStore;
use hyperfold::columns::{FlowRx, FlowTx, NONE, Nic, OwnedTables, Port, Task, mode, qp, status};
use hyperfold::engine::fold::{BackingStore, FoldEngine, FoldStats, Memo, NodeId, Recorder, SEMANTICS, version};
use hyperfold::workload::tasks::Work;
use sha2::{Digest, Sha256};

const OPTIONS: BuildOptions =
    BuildOptions { exp_id: 0, links: true, rtt_cap: 0, step_divisor: 1, time_limit_ps: u64::MAX };
const ROOMY: u64 = 1 << 30;
const WAIT: Duration = Duration::from_secs(20);

/// Random task graphs that end well, before their first step, and what they come to unfolded.
fn cases(seeds: std::ops::Range<u64>) -> Vec<(String, OwnedTables, String)> {
    let case = |seed| {
        let g = gpu_graphs::case(seed);
        let mut folded = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = folded.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            return None;
        }
        folded.exps[0].modes |= mode::FOLD | mode::MEMO;
        Some((g.name, folded, outcome(&plain)))
    };
    seeds.filter_map(case).collect()
}

/// What an experiment came to, without what idle rows keep in vain.
fn outcome(t: &OwnedTables) -> String {
    let tasks: Vec<Task> = t.tasks.iter().map(|r| Task { next: NONE, ..*r }).collect();
    let tx: Vec<FlowTx> =
        t.flow_tx.iter().map(|r| FlowTx { flags: r.flags & !(qp::HELD | qp::QUEUED), next_avail: 0, ..*r }).collect();
    let rx: Vec<FlowRx> = t.flow_rx.iter().map(|r| FlowRx { held: NONE, nack_t: 0, cnp_t: 0, ..*r }).collect();
    let nics: Vec<[u64; 3]> = t.nics.iter().map(|r: &Nic| [r.tx_bytes, r.hops, u64::from(r.pauses)]).collect();
    let port = |r: &Port| {
        [r.tx_bytes, r.hops, u64::from(r.pauses), u64::from(r.drops), u64::from(r.max_q), r.draws, r.marks, r.q_area]
    };
    let ports: Vec<[u64; 8]> = t.ports.iter().map(port).collect();
    format!("{} {tasks:?} {tx:?} {rx:?} {nics:?} {ports:?}", t.exps[0].status)
}

/// Runs every case with `memo` and checks what it came to; gives hits and misses.
fn run(cases: &[(String, OwnedTables, String)], memo: &Arc<Memo>) -> (u64, u64) {
    let sum = run_with(cases, FoldEngine::remembering(Arc::clone(memo)));
    (sum.hits, sum.misses)
}

/// Runs every case and checks what it came to.
fn run_with(cases: &[(String, OwnedTables, String)], mut engine: FoldEngine) -> FoldStats {
    let mut sum = FoldStats::default();
    for (name, tables, want) in cases {
        let mut batch = [tables.clone()];
        let mut stats = FoldStats::default();
        while !is_final(&batch[0]) {
            let slice = engine::advance(&mut engine, &mut batch, u64::from(u32::MAX) / 2, &|| false).unwrap();
            assert!(slice.failures.is_empty(), "{name}: {:?}", slice.failures);
            stats = slice.folds[0];
        }
        assert!(outcome(&batch[0]) == *want, "{name}: not what it comes to unfolded");
        sum.hits += stats.hits;
        sum.misses += stats.misses;
        sum.hops_simulated += stats.hops_simulated;
        sum.restarts += stats.restarts;
    }
    sum
}

/// Runs a case of longer messages with what is steady skipped.
fn run_asleep(seed: u64, mut engine: FoldEngine) -> FoldStats {
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
    stats
}

/// A run of `cases` on the memo at `path`: hits, misses, warnings.
fn session(path: &Path, cases: &[(String, OwnedTables, String)], limit: u64) -> (u64, u64, Vec<String>) {
    let store = Arc::new(MemoStore::open(path, limit));
    let memo = Arc::new(Memo::on(store.clone()));
    let (hits, misses) = run(cases, &memo);
    store.publish(&memo, WAIT, true);
    (hits, misses, store.warnings())
}

fn set_aside(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().path());
    files.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with(&format!("{name}.corrupt"))).collect()
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
    lacks: fn(&NodeId) -> bool,
}

impl BackingStore for Without {
    fn fetch(&self, root: &NodeId) -> Vec<Vec<u8>> {
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
            |id: &NodeId| id[0].is_multiple_of(3),
            |id: &NodeId| id[0] % 3 == 1,
            |id: &NodeId| !id[0].is_multiple_of(4),
        ] {
            let store = open();
            let memo = Arc::new(Memo::on(Arc::new(Without { store: store.clone(), lacks })));
            let some = pass(&memo);
            assert!(some.hits > cold.hits / 4 && some.hops_simulated > warm.hops_simulated, "every {every}: {some:?}");
            assert!(store.publish(&memo, WAIT, true));
            let whole = pass(&Arc::new(Memo::on(open())));
            // Where a partition was looked up it is cut elsewhere, and then it may merge with another in a way that nobody has seen: a few packets.
            assert!(
                whole.hops_simulated <= warm.hops_simulated + warm.hops_simulated / 1000,
                "every {every}: {some:?} added, {whole:?}"
            );
        }
    }
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
    let (alone_hits, alone, _) = session(&root.path().join("other.db"), &cases, ROOMY);
    let (hits, misses, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > alone_hits && misses < alone && warnings.is_empty(), "{hits} {misses} {warnings:?}");
}

#[test]
fn a_file_that_was_cut_off_is_set_aside_and_the_rest_is_used() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let cases = cases(0..30);
    for part in cases.chunks(8) {
        session(&path, part, ROOMY);
    }
    let whole = fs::read(&path).unwrap();
    let (_, best, _) = session(&path, &cases, ROOMY);
    let mut kept = 0;
    for k in 0..60 {
        let dir = root.path().join(format!("cut-{k}"));
        fs::create_dir(&dir).unwrap();
        let path = dir.join("m.db");
        // All lengths near both ends matter, and some between.
        let len = if k < 20 {
            k
        } else if k < 40 {
            whole.len() - 1 - (k - 20)
        } else {
            whole.len() * (k - 40) / 20 + 11
        };
        fs::write(&path, &whole[..len]).unwrap();
        let store = MemoStore::open(&path, ROOMY);
        let warnings = store.warnings();
        assert_eq!(
            (warnings.len(), set_aside(&path).len()),
            if len == 0 { (0, 0) } else { (1, 1) },
            "{len} bytes: {warnings:?}"
        );
        if let Some(aside) = set_aside(&path).first() {
            assert!(warnings[0].contains("set aside") && warnings[0].contains("m.db"), "{warnings:?}");
            assert_eq!(fs::read(aside).unwrap(), whole[..len], "what is set aside is what was there");
        }
        kept += fs::metadata(&path).unwrap().len();
        if k % 5 == 0 {
            session(&path, &cases, ROOMY);
            let (_, misses, warnings) = session(&path, &cases, ROOMY);
            assert!(
                misses <= best && warnings.is_empty(),
                "{len} bytes: {misses} misses, {best} of the whole; {warnings:?}"
            );
        }
    }
    assert!(kept > 20 * (whole.len() as u64 * 2 / 3), "{kept} bytes kept of {}", whole.len());
}

#[test]
fn changed_bytes_are_found_out() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let cases = cases(0..16);
    for part in cases.chunks(4) {
        session(&path, part, ROOMY);
    }
    let whole = fs::read(&path).unwrap();
    let mut seed = 7u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut noticed = 0;
    for k in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random(4) {
            let at = random(bytes.len());
            bytes[at] ^= 1 << random(8);
        }
        if k % 10 == 0 {
            let (at, n) = (random(bytes.len()), random(3000));
            let end = (at + n).min(bytes.len());
            match k % 30 {
                0 => bytes[at..end].fill(0),
                10 => drop(bytes.drain(at..end)),
                _ => drop(bytes.splice(at..at, whole[..n.min(whole.len())].iter().copied())),
            }
        }
        if bytes == whole {
            continue;
        }
        let path = root.path().join(format!("m-{k}.db"));
        fs::write(&path, &bytes).unwrap();
        // Every outcome is compared with the unfolded one.
        let (_, _, warnings) = session(&path, if k % 8 == 0 { &cases } else { &cases[k % 12..k % 12 + 3] }, ROOMY);
        noticed += u32::from(!warnings.is_empty());
        assert!(warnings.len() <= 3, "{warnings:?}");
        if warnings.iter().any(|w| w.contains("set aside")) {
            assert!(MemoStore::open(&path, ROOMY).warnings().is_empty(), "what was made anew is whole");
        }
    }
    println!("{noticed} of 400 noticed by three cases or more");
    assert!(noticed > 100, "{noticed}");
}

#[test]
fn what_never_was_a_memo_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let cases = cases(0..4);
    for (k, bytes) in [
        &b"notes to myself\n"[..],
        b"redb\x1a\x0a\xa9\x0d\x0a and some tables of somebody else's, with pages and all",
        &[0; 5000],
    ]
    .iter()
    .enumerate()
    {
        let path = root.path().join(format!("file-{k}"));
        fs::write(&path, bytes).unwrap();
        let (_, _, warnings) = session(&path, &cases, ROOMY);
        assert!(warnings.len() == 2 && warnings.iter().all(|w| w.contains("it is no memo")), "{warnings:?}");
        assert_eq!(fs::read(&path).unwrap(), *bytes);
        assert_eq!(hyperfold::batch::memo_store::somebody_elses(&path), Some(path));
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3, "nothing is put beside it");
    // What begins as one has been one.
    let path = root.path().join("begun");
    fs::write(&path, b"hyperfold memo\r\n").unwrap();
    let (_, _, warnings) = session(&path, &cases, ROOMY);
    assert!(warnings.len() == 1 && warnings[0].contains("its beginning is damaged"), "{warnings:?}");
    assert_eq!(fs::read(&set_aside(&path)[0]).unwrap(), b"hyperfold memo\r\n");
    let (hits, _, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > 0 && warnings.is_empty(), "{warnings:?}");
    // What is whole behind a damaged beginning is kept.
    let whole = fs::read(&path).unwrap();
    let (hits, misses, _) = session(&path, &cases, ROOMY);
    for (k, damage) in [0..1, 5..9, 16..40, 0..40].into_iter().enumerate() {
        let path = root.path().join(format!("begins-{k}"));
        let mut bytes = whole.clone();
        bytes[damage].iter_mut().for_each(|b| *b ^= 0x55);
        fs::write(&path, &bytes).unwrap();
        let (hits_then, misses_then, warnings) = session(&path, &cases, ROOMY);
        assert!(
            warnings.len() == 1
                && warnings[0].contains("its beginning is damaged")
                && !warnings[0].contains(" 0 records")
                && !warnings[0].contains("lost"),
            "{warnings:?}"
        );
        assert!(
            (hits_then, misses_then) == (hits, misses),
            "{hits_then} hits and {misses_then} misses instead of {hits} and {misses}"
        );
        assert_eq!(fs::read(&set_aside(&path)[0]).unwrap(), bytes);
    }
    // In a folder it is a file of that folder, which may have to be made.
    let folder = root.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(session(&folder, &cases, ROOMY).2.is_empty());
    assert!(session(&folder, &cases, ROOMY).0 > 0 && folder.join("episodes.memo").exists());
    assert!(session(&root.path().join("a/b/m.db"), &cases, ROOMY).2.is_empty());
    assert!(root.path().join("a/b/m.db").exists());
}

#[test]
fn what_cannot_be_read_or_written_stops_nothing() {
    let root = tempfile::tempdir().unwrap();
    let cases = cases(0..4);
    // Its folder cannot be: a file is in the way.
    fs::write(root.path().join("file"), "x").unwrap();
    let (_, misses, warnings) = session(&root.path().join("file/m.db"), &cases, ROOMY);
    assert!(misses > 0 && warnings.iter().any(|w| w.contains("is not kept")), "{warnings:?}");
    // Where a folder is in the place of its lock, it can be read, not written.
    let cases = self::cases(0..30);
    let path = root.path().join("m.db");
    session(&path, &cases, ROOMY);
    fs::remove_file(root.path().join("m.db.lock")).unwrap();
    fs::create_dir(root.path().join("m.db.lock")).unwrap();
    let before = fs::read(&path).unwrap();
    let (hits, _, warnings) = session(&path, &cases, ROOMY);
    assert!(hits > 0 && warnings.iter().any(|w| w.contains("is not kept")), "{warnings:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn permissions_stop_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("dir");
    fs::create_dir(&dir).unwrap();
    let path = dir.join("m.db");
    let cases = cases(0..4);
    session(&path, &cases[..2], ROOMY);
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (file, folder) in [(0o444, 0o555), (0o000, 0o755), (0o000, 0o000)] {
        allow(&path, file);
        allow(&dir, folder);
        let (_, _, warnings) = session(&path, &cases, ROOMY);
        let is_refused = fs::OpenOptions::new().append(true).open(&path).is_err();
        allow(&dir, 0o755);
        allow(&path, 0o644);
        // Root may do everything.
        assert_eq!(!warnings.is_empty(), is_refused, "{file:o} {folder:o}: {warnings:?}");
    }
    assert!(session(&path, &cases, ROOMY).2.is_empty());
}

#[test]
fn other_versions_are_left_alone_while_there_is_room() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let keys = |from: u32| (from..from + 20).map(|k| vec![k as u8; 5000]).collect::<Vec<_>>();
    let add = |version, keys: Vec<Vec<u8>>, limit| {
        let store = Arc::new(MemoStore::open_as(&path, limit, version));
        let memo = Memo::on(store.clone());
        let found = keys.into_iter().filter(|key| memo.root(key.clone(), Recorder::default()).unwrap().1).count();
        assert!(store.publish(&memo, WAIT, true) && store.warnings().is_empty());
        found
    };
    let (old, new) = ([1; 16], version());
    assert_eq!(add(old, keys(0), ROOMY), 0);
    assert_eq!(add(new, keys(0), ROOMY), 0, "another version's are not found");
    assert_eq!((add(old, keys(0), ROOMY), add(new, keys(0), ROOMY)), (20, 20));
    // 40 records of 5,000 bytes: the older version's go first, then what was used longest ago.
    assert_eq!(add(new, keys(100), 250_000), 0);
    assert_eq!((add(new, keys(0), ROOMY), add(new, keys(100), ROOMY)), (17, 20));
    assert_eq!(add(old, keys(0), ROOMY), 0);
}

#[test]
fn what_was_used_last_stays() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let touch = |keys: std::ops::Range<u8>| {
        let store = Arc::new(MemoStore::open(&path, 130_000));
        let memo = Memo::on(store.clone());
        let found = keys.filter(|&k| memo.root(vec![k; 5000], Recorder::default()).unwrap().1).count();
        assert!(store.publish(&memo, WAIT, true));
        found
    };
    assert_eq!(touch(0..8), 0);
    assert_eq!(touch(8..16), 0);
    assert_eq!(touch(0..4), 4, "used again");
    assert_eq!(touch(16..28), 0, "more than there is room for");
    assert_eq!(touch(16..28), 12);
    assert_eq!(touch(0..4), 4);
    assert!(touch(4..16) < 12);
}

/// Adds until it is killed; says what is on disk. Only another test starts it, by a variable.
#[test]
fn writer() {
    let Ok(path) = std::env::var("HYPERFOLD_TEST_MEMO") else { return };
    let store = Arc::new(MemoStore::open(Path::new(&path), ROOMY));
    let memo = Memo::on(store.clone());
    for k in 0u32.. {
        let key = key(std::process::id(), k);
        let (root, _) = memo.root(key, Recorder::default()).unwrap();
        memo.child(&root, vec![1; 3000], 5, Recorder::default()).unwrap();
        if store.publish(&memo, WAIT, false) {
            writeln!(std::io::stdout(), "\nhas {} {k}", std::process::id()).unwrap();
        }
    }
}

fn key(process: u32, k: u32) -> Vec<u8> {
    let mut key = format!("{process} {k} ").into_bytes();
    key.resize(200 + 700 * (k as usize % 40), b'.');
    key
}

#[test]
fn processes_that_are_killed_while_they_write_lose_nothing_that_was_written() {
    // Rounds of the long run: HYPERFOLD_SOAK=200.
    let rounds: u64 = std::env::var("HYPERFOLD_SOAK").map_or(5, |n| n.parse().unwrap());
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.db");
    let mut has: HashSet<(u32, u32)> = HashSet::new();
    for round in 0..rounds {
        let mut writers: Vec<_> = (0..3)
            .map(|_| {
                let exe = std::env::current_exe().unwrap();
                let mut c = Command::new(exe);
                c.args(["--exact", "memo_store::writer", "--nocapture", "--test-threads=1"])
                    .env("HYPERFOLD_TEST_MEMO", &path)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null());
                c.spawn().unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_millis(120 + round * 37 % 200));
        for writer in &mut writers {
            writer.kill().unwrap();
        }
        for mut writer in writers {
            let out = BufReader::new(writer.stdout.take().unwrap());
            for line in out.lines().map_while(Result::ok) {
                let mut words = line.split(' ');
                if let (Some("has"), Some(process), Some(k)) = (words.next(), words.next(), words.next())
                    && let (Ok(process), Ok(k)) = (process.parse(), k.parse())
                {
                    has.insert((process, k));
                }
            }
            writer.wait().unwrap();
        }
    }
    assert!(has.len() > 20, "{} additions", has.len());
    let store = Arc::new(MemoStore::open(&path, ROOMY));
    println!(
        "{} additions by {} processes, {} set aside, {:?}",
        has.len(),
        rounds * 3,
        set_aside(&path).len(),
        store.warnings()
    );
    let memo = Memo::on(store.clone());
    for &(process, k) in &has {
        // The last line may have been cut.
        let whole = has.contains(&(process, k + 1)) || memo.root(key(process, k), Recorder::default()).unwrap().1;
        assert!(whole && memo.root(key(process, k), Recorder::default()).unwrap().1, "{process} {k}");
    }
    assert!(store.warnings().is_empty());
}

/// What the memo holds after some cases, as a digest. It changes with the packet model, with canonical forms, with what is recorded: then entries on disk
/// must not be taken for those of this version. PRECONDITION of a new digest here: [`SEMANTICS`] was raised.
#[test]
fn what_is_remembered_and_its_version_change_together() {
    let memo = Arc::new(Memo::default());
    let cases = cases(0..60);
    run(&cases, &memo);
    // Few of these are long enough for a cut otherwise.
    run_with(&cases, FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(7));
    let (mut skips, mut rounded) = (0, 0);
    for seed in 0..30 {
        let stats = run_asleep(seed, FoldEngine::remembering(Arc::clone(&memo)).with_checkpoints_every(7));
        (skips, rounded) = (skips + stats.skips, rounded + stats.rounded);
    }
    assert!(skips > 0 && rounded > 0, "{skips} naps, {rounded} roundings");
    let mut hash = Sha256::new();
    let mut n = 0;
    memo.each_unsaved(|unsaved| {
        hash.update(unsaved.root);
        hash.update(&unsaved.record);
        n += 1;
    });
    let digest: String = hash.finalize()[..8].iter().map(|b| format!("{b:02x}")).collect();
    assert!(n > 30, "{n} roots");
    assert_eq!(
        (SEMANTICS, digest.as_str()),
        (11, "279d70ad70957904"),
        "raise engine::fold::SEMANTICS, then put the new digest here"
    );
}
