//! One folded experiment on several threads: rows, counters and the memo are what they are on one.
//!
//! In debug builds each thread's accesses are checked meanwhile: a row that two threads have in one phase, one of them to write, is a panic.

use std::time::Duration;

use crate::graphs::{OPTIONS, made_steady, same};
use crate::support::engine::is_final;
use crate::support::{engine, gpu_graphs};
use hyperfold_columns::{OwnedTables, mode, status};
use hyperfold_engine::FoldStats;
use hyperfold_fold::FoldEngine;

/// Seeds take these by turns.
const THREADS: [usize; 3] = [2, 3, 4];

/// Runs `t` folded, each window on all of `threads` threads. Returns what folding did, without times.
fn run_on(engine: &mut FoldEngine, t: &OwnedTables, threads: usize) -> (OwnedTables, FoldStats) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut batch = [t.clone()];
    let mut stats = FoldStats::default();
    while !is_final(&batch[0]) {
        let slice = pool.install(|| engine::advance(engine, &mut batch, u64::from(u32::MAX) / 2, &|| false)).unwrap();
        assert!(slice.failures.is_empty(), "{:?}", slice.failures);
        stats = slice.folds[0];
    }
    let none = Duration::ZERO;
    let [done] = batch;
    (done, FoldStats { simulating: none, looking_up: none, checkpointing: none, auditing: none, ..stats })
}

/// Cold, then warm.
fn twice(t: &OwnedTables, threads: usize, hops: u64) -> [(OwnedTables, FoldStats); 2] {
    let mut engine = FoldEngine::checkpointing_every(hops).side_by_side_from(Duration::ZERO);
    [(); 2].map(|()| run_on(&mut engine, t, threads))
}

/// Compares threads with one thread, cold and warm. Returns how many packet-hops were simulated, cold.
fn threads_agree(name: &str, t: &OwnedTables, threads: usize, hops: u64) -> u64 {
    let (one, several) = (twice(t, 1, hops), twice(t, threads, hops));
    for ((want, did), (got, does)) in one.iter().zip(&several) {
        assert_eq!(got.tasks, want.tasks, "{name}: {threads} threads");
        assert!(got == want, "{name}: {threads} threads: tables differ");
        assert_eq!(does, did, "{name}: {threads} threads");
    }
    several[0].1.hops_simulated
}

#[test]
fn threads_change_nothing_that_is_folded() {
    let (mut compared, mut simulated) = (0, 0);
    let cut_through = (0..9).map(|seed| (seed, gpu_graphs::cut_through(seed)));
    for (seed, g) in (0..15).map(|seed| (seed, gpu_graphs::case(seed))).chain(cut_through) {
        let mut t = gpu_graphs::tables(&g, OPTIONS).tables;
        let mut plain = t.clone();
        if engine::run_cpu(&mut plain) == status::GAVE_UP {
            continue;
        }
        t.exps[0].modes |= mode::FOLD | if seed % 4 == 0 { 0 } else { mode::MEMO };
        let (threads, hops) = (THREADS[seed as usize % 3], [40, 2_048][seed as usize % 2]);
        same(&g.name, &twice(&t, threads, hops)[1].0, &plain);
        simulated += threads_agree(&g.name, &t, threads, hops);
        compared += 1;
    }
    assert!(compared > 18 && simulated > 9_000, "{compared} compared, {simulated} packet-hops");
}

/// A case with a skip and its audit.
#[test]
fn threads_change_nothing_that_is_skipped() {
    let (name, mut t) = made_steady(gpu_graphs::case(13));
    t.exps[0].modes |= mode::MEMO;
    t.exps[0].audit_ppm = 200_000;
    for threads in THREADS {
        threads_agree(&name, &t, threads, 10);
    }
    assert!(twice(&t, 2, 10)[0].1.skips > 0, "{name}: nothing is skipped");
}
