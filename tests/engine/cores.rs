//! One experiment on several threads: every table has the bytes that it has on one.
//!
//! In debug builds each thread's accesses are checked meanwhile: a row that two threads have in one phase, one of them to write, is a panic.

use std::ops::Range;
use std::time::Duration;

use crate::support::program::Folder;
use crate::support::{engine, gpu_graphs, random};
use hyperfold_columns::{OwnedTables, status};
use hyperfold_engine::cpu::parallel::cores;
use hyperfold_engine::cpu::parallel::switch_groups::SwitchGroups;
use hyperfold_engine::{cpu, go_on, is_final};
use hyperfold_fold::FoldEngine;
use hyperfold_host::tables::build_tables::BuildOptions;

/// Everything is recorded, so that everything is compared.
const OPTIONS: BuildOptions = BuildOptions { links: true, rtt_cap: 8, ..BuildOptions::PACKETS };

/// Number of threads for a seed. More threads than cores wait for each other most of the time, so every fifth seed has three or four.
fn threads_of(seed: u64) -> usize {
    if seed.is_multiple_of(5) { more_threads(seed) } else { 2 }
}

/// Three threads or four.
fn more_threads(seed: u64) -> usize {
    3 + (seed / 5 % 2) as usize
}

/// Runs `t` on `threads` threads until it stops for good. Returns how often it stood in the middle of a step.
fn run_on(t: &mut OwnedTables, threads: usize) -> u32 {
    let t = &mut *t.view();
    let groups = SwitchGroups::of(t).expect("few groups are enough");
    let mut waited = 0;
    loop {
        match t.exps[0].status {
            status::RUNNING if t.exps[0].phase != 0 => {
                waited += 1;
                cpu::run(t, 1);
            }
            // A few steps at a time: threads come and go.
            status::RUNNING => {
                let until = t.exps[0].steps + 100;
                cores::run(t, &groups, threads, &mut |t| t.exps[0].steps < until);
            }
            _ if is_final(t) => return waited,
            _ => go_on(t, u64::from(u32::MAX)).unwrap(),
        }
    }
}

/// Compares some threads with one. Returns how often a step waited for pause frames.
fn threads_agree(name: &str, t: &OwnedTables, threads: usize) -> u32 {
    let mut want = t.clone();
    engine::run_cpu(&mut want);
    let mut got = t.clone();
    let waited = run_on(&mut got, threads);
    assert_eq!(got.exps, want.exps, "{name}: {threads} threads");
    assert_eq!(got.tasks, want.tasks, "{name}: {threads} threads");
    assert!(got == want, "{name}: {threads} threads: tables differ");
    waited
}

#[test]
fn threads_change_no_table_of_task_graphs() {
    let mut waited = 0;
    for seed in [3_000, random::SELECTIVE, random::CHANGES, random::CLASSES, random::IMPAIRED, random::MOVING]
        .into_iter()
        .flat_map(|first| first..first + 12)
    {
        let g = gpu_graphs::case(seed);
        waited += threads_agree(&g.name, &gpu_graphs::tables(&g, OPTIONS).tables, threads_of(seed));
    }
    println!("{waited} steps waited for pause frames");
    assert!(waited > 0, "no switch ever lacked pause frames");
}

/// Compares threads with one over cases of every kind: those with the numbers `nth`.
fn threads_change_no_table_of_random_cases(nth: Range<u64>, threads: fn(u64) -> usize) {
    for seed in [
        3_000,
        random::SELECTIVE,
        random::CHANGES,
        random::UEC,
        random::ADAPTIVE,
        random::CLASSES,
        random::IMPAIRED,
        random::MOVING,
        random::WATCHED,
        random::AVERAGED,
        random::CUT_THROUGH,
        random::CLASSES_BY_CHOICE,
        random::REPORTS,
        random::EARLY_DROPS,
    ]
    .into_iter()
    .flat_map(|first| first + nth.start..first + nth.end)
    {
        let t = engine::tables(&random::case(seed), OPTIONS).tables;
        threads_agree(&format!("random {seed}"), &t, threads(seed));
    }
}

#[test]
fn threads_change_no_table_of_flows() {
    threads_change_no_table_of_random_cases(0..10, threads_of);
}

#[test]
#[ignore = "soak: more threads than cores; scripts/test.sh --soak and CI run it"]
fn soak_more_threads_change_no_table_of_flows() {
    threads_change_no_table_of_random_cases(10..12, more_threads);
}

/// A permutation of 54 hosts on a fat-tree, and an incast beside it: marks, pauses, and windows that close.
const SWEEP: &str = r#"
name = "cores"
seed = 7

[base]
cluster = { gpus = 54, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "fat-tree", k = 6, link_gbps = 100, uplink_gbps = 100, buffer_mib = 0.5 }
workload = { kind = "traffic", pattern = "permutation", bytes = 30000, fan_in = 30 }
transport = { cc = "dcqcn" }
output = { flows = true, links = true }

[sweep]
method = "list"

[[experiment]]
fidelity.fast_forward = "off"

[[experiment]]
workload.pattern = "incast"
transport.cc = "none"
fidelity.fast_forward = "off"

[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 200000 }
transport.cc = "hpcc"
fidelity.fast_forward = "exact"

[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 200000 }
fidelity.fast_forward = "off"
"#;

#[test]
fn one_experiment_uses_several_threads_and_writes_the_same() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    for (out, jobs) in [("1", "1"), ("2", "2"), ("4", "4")] {
        let ran = folder.run(&["run", "s.toml", "--out", out, "--quiet", "--engine", "cpu", "--jobs", jobs]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for file in ["results.csv", "flows.csv", "links.csv"] {
            assert!(
                folder.bytes(&format!("{out}/{file}")) == folder.bytes(&format!("1/{file}")),
                "{file}: {jobs} jobs"
            );
        }
    }
}

/// The engine itself shares the steps of an experiment, however short they are, where threads are spare.
#[test]
fn the_engine_takes_spare_threads() {
    for seed in [3_100, 3_101] {
        let tables = engine::tables(&random::case(seed), OPTIONS).tables;
        let mut want = tables.clone();
        engine::run_cpu(&mut want);
        for threads in [1, 2, 4] {
            let mut batch = [tables.clone()];
            let mut fold = FoldEngine::forgetful().side_by_side_from(Duration::ZERO);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            while !engine::is_final(&batch[0]) {
                pool.install(|| engine::advance(&mut fold, &mut batch, u64::from(u32::MAX), &|| false)).unwrap();
            }
            assert!(batch[0] == want, "{threads} threads");
        }
    }
}
