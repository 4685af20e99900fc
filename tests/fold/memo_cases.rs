//! Cases for the tests of the memo on disk: random task graphs, what they come to, and runs with a memo.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::engine::is_final;
use crate::support::{engine, gpu_graphs};
use hyperfold_columns::{FlowRx, FlowTx, Nic, OwnedTables, PacketIdx, Port, Task, TaskIdx, mode, qp, status};
use hyperfold_engine::FoldStats;
use hyperfold_fold::{FoldEngine, Memo};
use hyperfold_host::memo_file::memo_store::MemoStore;
use hyperfold_host::tables::build_tables::BuildOptions;

pub const OPTIONS: BuildOptions = BuildOptions { links: true, ..BuildOptions::PACKETS };
pub const ROOMY: u64 = 1 << 30;
pub const WAIT: Duration = Duration::from_secs(20);

/// Random task graphs that end well, before their first step, and what they come to unfolded.
pub fn cases(seeds: std::ops::Range<u64>) -> Vec<(String, OwnedTables, String)> {
    seeds.map(gpu_graphs::case).filter_map(prepared).collect()
}

/// The name of a task graph, its tables before the first step, and what it comes to unfolded; `None` if it does not end well.
pub fn prepared(g: gpu_graphs::Graph) -> Option<(String, OwnedTables, String)> {
    let mut folded = gpu_graphs::tables(&g, OPTIONS).tables;
    let mut plain = folded.clone();
    if engine::run_cpu(&mut plain) == status::GAVE_UP {
        return None;
    }
    folded.exps[0].modes |= mode::FOLD | mode::MEMO;
    Some((g.name, folded, outcome(&plain)))
}

/// What an experiment came to, without what idle rows keep in vain.
pub fn outcome(t: &OwnedTables) -> String {
    let tasks: Vec<Task> = t.tasks.iter().map(|r| Task { next: TaskIdx::NONE, ..*r }).collect();
    let tx: Vec<FlowTx> =
        t.flow_tx.iter().map(|r| FlowTx { flags: r.flags & !(qp::HELD | qp::QUEUED), next_avail: 0, ..*r }).collect();
    let rx: Vec<FlowRx> =
        t.flow_rx.iter().map(|r| FlowRx { held: PacketIdx::NONE, nack_t: 0, cnp_t: 0, ..*r }).collect();
    let nics: Vec<[u64; 3]> = t.nics.iter().map(|r: &Nic| [r.tx_bytes, r.hops, u64::from(r.pauses)]).collect();
    let port = |r: &Port| {
        [r.tx_bytes, r.hops, u64::from(r.pauses), u64::from(r.drops), u64::from(r.max_q), r.draws, r.marks, r.q_area]
    };
    let ports: Vec<[u64; 8]> = t.ports.iter().map(port).collect();
    format!("{} {tasks:?} {tx:?} {rx:?} {nics:?} {ports:?} {:?}", t.exps[0].status, t.pause_ps)
}

/// Runs every case with `memo` and checks what it came to; gives hits and misses.
pub fn run(cases: &[(String, OwnedTables, String)], memo: &Arc<Memo>) -> (u64, u64) {
    let sum = run_with(cases, FoldEngine::remembering(Arc::clone(memo)));
    (sum.hits, sum.misses)
}

/// Runs every case and checks what it came to.
pub fn run_with(cases: &[(String, OwnedTables, String)], mut engine: FoldEngine) -> FoldStats {
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

/// A run of `cases` on the memo at `path`: hits, misses, warnings.
pub fn session(path: &Path, cases: &[(String, OwnedTables, String)], limit: u64) -> (u64, u64, Vec<String>) {
    let store = Arc::new(MemoStore::open(path, limit));
    let memo = Arc::new(Memo::on(store.clone()));
    let (hits, misses) = run(cases, &memo);
    store.publish(&memo, WAIT, true);
    (hits, misses, store.warnings())
}

pub fn set_aside(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().path());
    files.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with(&format!("{name}.corrupt"))).collect()
}
