//! An experiment gives the same bytes whatever runs beside it, on however many threads, in however many pieces, and with whatever step.

use std::path::Path;

use crate::support::program::Folder;
use crate::support::{Case, engine, golden, random};
use hyperfold_columns::{FlowRx, FlowTx, Nic, OwnedTables, PacketIdx, Port, RttSample, status};
use hyperfold_config::sweep::{self, SetOverrides, Sweep};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_host::tables::build_tables::{BuildOptions, Built};
use hyperfold_host::{Ending, ExperimentOutcome, QueuedExperiment, RunEvent, RunOptions};

/// Ways to run a sweep that must write the same bytes as the first.
const WAYS: &[(&str, &[&str])] = &[
    ("one thread", &["--engine", "cpu", "--jobs", "1"]),
    ("two threads", &["--engine", "cpu", "--jobs", "2"]),
    ("two threads again", &["--engine", "cpu", "--jobs", "2"]),
];

/// Ways that need an adapter, a real one or one in software; without any they fail, as every GPU test does.
const WAYS_ON_A_GPU: &[(&str, &[&str])] = &[
    ("GPU, fused", &["--engine", "gpu", "--gpu-dispatch", "fused"]),
    ("GPU, system by system, one thread", &["--engine", "gpu", "--gpu-dispatch", "per-system", "--jobs", "1"]),
];

/// Files that must be the same, byte by byte.
const FILES: [&str; 7] =
    ["results.csv", "results.parquet", "flows.csv", "links.csv", "rtt.csv", "series_links.csv", "series_flows.csv"];

/// 16 hosts below two leaves. A leaf's 16 ports need 0.64 MiB for headroom and reserves, so 0.75 MiB means storms, or losses without PFC.
/// Every congestion control meets both; then spraying, servers, random arrivals, other packets, a failure. Two replicas of each.
const SWEEP: &str = r#"
name = "determinism"
seed = 7

[base]
cluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 8, spines = 8, link_gbps = 100, uplink_gbps = 100, buffer_mib = 0.75 }
workload = { kind = "traffic", pattern = "incast", fan_in = 12, receivers = 2, bytes = 120000 }
output = { flows = true, links = true, rtt = true, series = ["links", "flows"], series_cap = 50 }
transport = { ecn_kmin_kb = 40, ecn_kmax_kb = 200, rto_us = 200 }

[sweep]
method = "list"
replicas = 2
"#;

fn sweep_text() -> String {
    let mut text = SWEEP.to_string();
    for pfc in [true, false] {
        for cc in ["none", "dcqcn", "hpcc", "timely", "dctcp"] {
            text += &format!("[[experiment]]\ntransport.cc = \"{cc}\"\ntransport.pfc = {pfc}\n");
        }
    }
    for more in [
        "routing.policy = \"spray\"\nworkload.pattern = \"all-to-all\"\nworkload.bytes = 20000\ntransport.cc = \"dcqcn\"",
        "routing.policy = \"spray\"\nworkload.pattern = \"permutation\"\ntransport.payload_bytes = 4096\ntransport.clock = \"ns\"",
        "topology.kind = \"rail-optimized\"\ncluster.gpus_per_server = 4\ncluster.nics_per_server = 4\nworkload.pattern = \"ring\"\nworkload.stride = 3",
        "topology.kind = \"fat-tree\"\ntopology.buffer_mib = 4\nworkload.pattern = \"poisson\"\nworkload.duration_ns = 300000\ntransport.cc = \"timely\"",
        "limits.packet_hops = 3000\ntransport.cc = \"dctcp\"",
    ] {
        text += &format!("[[experiment]]\n{more}\n");
    }
    text
}

/// Runs the sweep into `out`. The experiments with a limit fail, so the exit code is 1 wherever they are among those selected.
fn run(folder: &Folder, out: &str, args: &[&str]) {
    let ran = folder.run(&[&["run", "s.toml", "--out", out, "--quiet"], args].concat());
    let failed = folder.file(&format!("{out}/failed.csv")).exists();
    assert_eq!(ran.code, i32::from(failed), "{args:?}: {}", ran.stderr);
}

/// Runs the sweep in every way, the results in folders 0, 1 ...
fn same_bytes(folder: &Folder, ways: &[(&str, &[&str])]) {
    for (i, (name, args)) in ways.iter().enumerate() {
        run(folder, &i.to_string(), args);
        for file in FILES {
            assert!(
                folder.bytes(&format!("{i}/{file}")) == folder.bytes(&format!("0/{file}")),
                "{file} differs: {name}"
            );
        }
    }
}

#[test]
fn the_gpu_writes_the_same_bytes() {
    let folder = Folder::new(&[("s.toml", &sweep_text())]);
    same_bytes(&folder, &[&WAYS[..1], WAYS_ON_A_GPU].concat());
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("1/manifest.json")).unwrap();
    assert_eq!(manifest["engine"], "gpu");
}

#[test]
fn threads_and_repeats_change_no_byte() {
    let folder = Folder::new(&[("s.toml", &sweep_text())]);
    same_bytes(&folder, WAYS);
    // That the sweep reaches what it is about.
    let sum = |column: &str| -> u64 {
        folder.column("0/results.csv", column).iter().filter_map(|v| v.parse::<u64>().ok()).sum()
    };
    assert!(sum("pfc_pauses") > 100 && sum("drops") > 100 && sum("ecn_marks") > 100, "no storm, no loss or no marks");
    let failed = folder.column("0/results.csv", "status").iter().filter(|s| *s == "failed").count();
    assert_eq!(failed, 2, "the two replicas with a limit fail, nothing else: {}", folder.text("0/failed.csv"));
    assert_eq!(folder.column("0/results.csv", "exp_id").len(), 30);
}

#[test]
fn pieces_make_up_the_whole() {
    let folder = Folder::new(&[("s.toml", &sweep_text())]);
    run(&folder, "whole", &[]);
    let mut pieces = Vec::new();
    for (i, args) in [
        &["--shard", "0/3"][..],
        &["--shard", "1/3"],
        &["--shard", "2/3"],
        &["--limit", "5"],
        &["--limit", "9", "--shard", "1/2"],
    ]
    .iter()
    .enumerate()
    {
        run(&folder, &i.to_string(), args);
        pieces.push(i.to_string());
    }
    // Rows of a file without its header, each with its experiment.
    let rows = |file: String| -> Vec<(u64, String)> {
        let text = folder.text(&file);
        let header = folder
            .text(&format!("whole/{}", file.rsplit('/').next().expect("a path has a last part")))
            .lines()
            .next()
            .map(str::to_string);
        assert_eq!(text.lines().next().map(str::to_string), header, "{file}: header");
        text.lines()
            .skip(1)
            .map(|l| (l.split(',').next().expect("a line has a first field").parse().expect("exp_id"), l.to_string()))
            .collect()
    };
    for file in
        ["results.csv", "flows.csv", "links.csv", "rtt.csv", "series_links.csv", "series_flows.csv", "failed.csv"]
    {
        let whole = rows(format!("whole/{file}"));
        let of = |i: usize| {
            if folder.file(&format!("{}/{file}", pieces[i])).exists() {
                rows(format!("{}/{file}", pieces[i]))
            } else {
                Vec::new()
            }
        };
        let mut joined: Vec<(u64, String)> = (0..3).flat_map(of).collect();
        joined.sort_by_key(|r| r.0);
        assert!(joined == whole, "{file}: three shards are not the whole");
        let only = |keep: &dyn Fn(u64) -> bool| whole.iter().filter(|r| keep(r.0)).cloned().collect::<Vec<_>>();
        assert!(of(3) == only(&|id| id < 5), "{file}: --limit 5");
        assert!(of(4) == only(&|id| id < 9 && id % 2 == 1), "{file}: --limit 9 --shard 1/2");
    }
}

/// Outcomes of the experiments whose places in the sweep are `places`, as experiments 0, 1, 2 ... of a run in batches of `batch`; by place.
fn outcomes(sweep: &Sweep, places: &[usize], batch: usize) -> Vec<(usize, Result<ExperimentOutcome, Ending>)> {
    let task = |(id, &place): (usize, &usize)| QueuedExperiment {
        exp_id: id as u64,
        config: sweep.config(&sweep.experiments[place]).unwrap(),
    };
    let options = RunOptions { batch, ..RunOptions::default() };
    let mut found = Vec::new();
    hyperfold_host::run::<EngineError>(
        places.iter().enumerate().map(task),
        Box::new(CpuEngine),
        &options,
        || false,
        &mut |news| {
            if let RunEvent::Ended(ended) = news {
                found.push((places[ended.exp_id as usize], ended.result));
            }
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(found.len(), places.len(), "every experiment ends");
    found.sort_by_key(|f| f.0);
    found
}

#[test]
fn neighbours_in_a_batch_change_nothing() {
    let sweep = sweep::parse(&sweep_text(), Path::new("s.toml"), &SetOverrides::default()).unwrap();
    let n = sweep.experiments.len();
    let in_order: Vec<usize> = (0..n).collect();
    let alone = outcomes(&sweep, &in_order, 1);
    assert_eq!(alone.iter().filter(|o| o.1.is_ok()).count(), n - 2);
    let backwards: Vec<usize> = (0..n).rev().collect();
    // 7 has no factor in common with 30.
    let shuffled: Vec<usize> = (0..n).map(|i| i * 7 % n).collect();
    let with_itself: Vec<usize> = vec![3; 5];
    for (order, batch) in [
        (&in_order, 3),
        (&in_order, 512),
        (&backwards, 3),
        (&backwards, 512),
        (&shuffled, 1),
        (&shuffled, 4),
        (&shuffled, 512),
    ] {
        let got = outcomes(&sweep, order, batch);
        for (a, b) in got.iter().zip(&alone) {
            assert_eq!(a, b, "batches of {batch}, order {:?} ...", &order[..5]);
        }
    }
    for (place, outcome) in outcomes(&sweep, &with_itself, 512) {
        assert_eq!(outcome, alone[place].1, "beside copies of itself");
    }
}

/// What an experiment has come to, in every table, without what only says where things lie in memory or how far a step may go.
#[derive(Debug, PartialEq)]
pub(crate) struct Rows {
    pub(crate) status: u32,
    nics: Vec<Nic>,
    ports: Vec<Port>,
    tx: Vec<FlowTx>,
    rx: Vec<FlowRx>,
    rtts: Vec<RttSample>,
}

pub(crate) fn rows(t: &OwnedTables) -> Rows {
    let nic = |n: &Nic| Nic {
        worst: 0,
        free_head: PacketIdx(0),
        free_n: 0,
        to_return: PacketIdx(0),
        ack_head: PacketIdx(0),
        ack_tail: PacketIdx(0),
        ..*n
    };
    let port = |p: &Port| Port {
        q_head: PacketIdx(0),
        q_tail: PacketIdx(0),
        frame_head: PacketIdx(0),
        frame_tail: PacketIdx(0),
        in_frames: PacketIdx(0),
        merged: PacketIdx(0),
        to_return: PacketIdx(0),
        arr_bytes: 0,
        arr_n: 0,
        ..*p
    };
    Rows {
        status: t.exps[0].status,
        nics: t.nics.iter().map(nic).collect(),
        ports: t.ports.iter().map(port).collect(),
        tx: t.flow_tx.clone(),
        rx: t.flow_rx.iter().map(|r| FlowRx { held: PacketIdx(0), ..*r }).collect(),
        rtts: t.rtts.clone(),
    }
}

/// Runs a case with its step cut into `divisor`.
fn cut(case: &Case, divisor: u64) -> Built {
    let options = BuildOptions { step_divisor: divisor, links: true, rtt_cap: 64, ..BuildOptions::default() };
    let mut built = engine::tables(case, options);
    engine::run_cpu(&mut built.tables);
    built
}

/// Compares half and a third of the step with the whole one. Returns whether the case came to its end.
fn steps_agree(name: &str, case: &Case) -> bool {
    let whole = cut(case, 1);
    let expected = rows(&whole.tables);
    for divisor in [2, 3] {
        let other = cut(case, divisor);
        assert_eq!(other.tables.exps[0].step, whole.tables.exps[0].step / divisor);
        let got = rows(&other.tables);
        if expected.status == status::GAVE_UP {
            // It stops at the end of the step in which a flow gave up; what else happened by then depends on the step.
            assert_eq!(got.status, status::GAVE_UP, "{name}: step / {divisor}");
            continue;
        }
        assert_eq!(got.status, expected.status, "{name}: step / {divisor}");
        same(name, divisor, "nic", &got.nics, &expected.nics);
        same(name, divisor, "port", &got.ports, &expected.ports);
        same(name, divisor, "flow_tx", &got.tx, &expected.tx);
        same(name, divisor, "flow_rx", &got.rx, &expected.rx);
        same(name, divisor, "rtt", &got.rtts, &expected.rtts);
    }
    expected.status == status::DONE
}

/// Names the first row that differs.
fn same<T: PartialEq + std::fmt::Debug>(name: &str, divisor: u64, table: &str, got: &[T], expected: &[T]) {
    assert_eq!(got.len(), expected.len(), "{name}: table {table}");
    for (row, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!(a == b, "{name}: step / {divisor}: table {table}, row {row}:\n     got {a:?}\nexpected {b:?}");
    }
}

#[test]
fn shorter_steps_change_nothing() {
    let (mut n, mut done, mut paused, mut lost) = (0, 0, 0, 0);
    let seeds = (2_000..2_300).chain(random::ADAPTIVE..random::ADAPTIVE + 60);
    let seeds = seeds.chain(random::CLASSES..random::CLASSES + 60).chain(random::IMPAIRED..random::IMPAIRED + 60);
    let seeds = seeds.chain(random::WATCHED..random::WATCHED + 60).chain(random::AVERAGED..random::AVERAGED + 40);
    let seeds = seeds.chain(random::CUT_THROUGH..random::CUT_THROUGH + 60);
    let seeds = seeds.chain(random::CLASSES_BY_CHOICE..random::CLASSES_BY_CHOICE + 40);
    for seed in seeds.chain(random::MOVING..random::MOVING + 60) {
        let case = random::case(seed);
        done += u32::from(steps_agree(&format!("seed {seed}"), &case));
        let t = cut(&case, 1).tables;
        paused += u32::from(engine::pauses(&t) > 0);
        lost += u32::from(t.ports.iter().any(|p| p.drops > 0));
        n += 1;
    }
    println!(
        "{n} random cases, {done} to their end, {paused} with pauses, {lost} with losses: same rows with a half and a third of the step"
    );
    assert!(paused > 40 && lost > 10 && done > 250, "the random cases no longer reach storms and losses");
}

#[test]
fn shorter_steps_change_no_golden_case() {
    let mut n = 0;
    for name in golden::names() {
        // The largest ones take most of the time and are like the others.
        if name.starts_with("c8_") || name.contains("a2a") || name.contains("_10M_") {
            continue;
        }
        assert!(steps_agree(&name, &golden::load(&name).case), "{name} did not end");
        n += 1;
    }
    match n {
        0 => println!("no ../shared/golden here: nothing to compare with"),
        _ => println!("{n} golden cases: same rows with a half and a third of the step"),
    }
}
