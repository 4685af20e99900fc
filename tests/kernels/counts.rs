//! What a packet-hop costs on a device: accesses of memory, operations, and the longest way through a step. The figures stand in `benches/kernels.txt`.

use std::fmt::Write;
use std::path::Path;

use crate::executed::{Kernels, with_view};
use hyperfold_columns::{OwnedTables, TABLES, cc, status};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::gpu::KernelParts;
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_engine::{grow, packet_hops};
use hyperfold_host::kernel_check::difference::difference;
use hyperfold_interpreter::{KernelCounts, KernelDispatch};

/// Lanes that go in lockstep, and lanes of a workgroup, for which the longest way is counted.
const WARP: usize = 32;
const LANES: u32 = 128;

/// Workloads: name, steps that are counted, cluster and topology, workload, congestion controls.
const WORKLOADS: [(&str, u64, &str, &str, &[&str]); 5] = [
    (
        "ring on rails",
        30,
        RAILS,
        "kind = \"traffic\", pattern = \"ring\", stride = 8, bytes = 1000000",
        &["dcqcn", "hpcc"],
    ),
    (
        "permutation on a fat tree",
        24,
        FAT_TREE_128,
        "kind = \"traffic\", pattern = \"permutation\", bytes = 300000",
        &["dcqcn", "hpcc"],
    ),
    (
        "all-to-all on a fat tree",
        20,
        FAT_TREE_128,
        "kind = \"traffic\", pattern = \"all-to-all\", bytes = 8000",
        &["dcqcn"],
    ),
    (
        "all-reduce on a fat tree",
        60,
        FAT_TREE_64,
        "kind = \"collective\", op = \"all-reduce\", algorithm = \"ring\", bytes = 16000000",
        &["dcqcn", "timely"],
    ),
    (
        "incast with pauses",
        120,
        STAR,
        "kind = \"traffic\", pattern = \"incast\", fan_in = 32, bytes = 100000",
        &["none"],
    ),
];

const RAILS: &str = "cluster.gpus = 128\ntopology = { kind = \"rail-optimized\", pods = 2, spines = 8, link_gbps = 100, uplink_gbps = 100 }";
const FAT_TREE_128: &str = "cluster = { gpus = 128, gpus_per_server = 1, nics_per_server = 1 }\ntopology = { kind = \"fat-tree\", k = 8, link_gbps = 100, uplink_gbps = 100 }";
const FAT_TREE_64: &str = "cluster = { gpus = 64, gpus_per_server = 1, nics_per_server = 1 }\ntopology = { kind = \"fat-tree\", k = 8, link_gbps = 100, uplink_gbps = 100 }";
const STAR: &str = "cluster = { gpus = 33, gpus_per_server = 1, nics_per_server = 1 }\ntopology = { kind = \"clos\", tiers = 2, hosts_per_leaf = 33, spines = 1, link_gbps = 100, uplink_gbps = 100, buffer_mib = 4 }";

/// The tables of a workload before its first step.
fn tables(cluster: &str, workload: &str, cc: &str) -> OwnedTables {
    let text = format!("name = \"counted\"\n[base]\n{cluster}\nworkload = {{ {workload} }}\ntransport.cc = \"{cc}\"\n");
    let sweep =
        sweep::parse(&text, Path::new("counted.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let config = sweep.config(&sweep.experiments[0]).unwrap_or_else(|e| panic!("{e:?}"));
    hyperfold_host::prepare(&config, 0).unwrap_or_else(|e| panic!("{e}")).built.tables
}

/// Sums over the steps of a workload.
#[derive(Default)]
struct Sums {
    steps: u64,
    hops: u64,
    /// What the fused kernel does.
    counts: KernelCounts,
    /// Loads and operations of the slowest warp of each system, summed over systems and steps.
    longest: [u64; 2],
    /// Operations of all systems, and those that all warps together have time for.
    operations: u64,
    room: u64,
}

/// Counts `steps` steps of `t`: by the fused kernel, and system by system for the longest way. Both must leave the same bytes.
fn count(kernels: &Kernels, mut t: OwnedTables, steps: u64) -> Sums {
    let mut sums = Sums::default();
    let mut fused = t.clone();
    while goes_on(&mut fused, steps) {
        let left = steps - fused.exps[0].steps;
        let done = with_view(&mut fused, |t| kernels.run_fused(left as u32, t, KernelDispatch::of([1; 3])));
        sums.counts.add(&done.counts);
    }
    while goes_on(&mut t, steps) {
        for (k, system) in SYSTEMS.iter().enumerate() {
            if !system.when.holds(&t.view()) {
                continue;
            }
            let rows = system.rows.count(&t.exps[0]) as usize;
            let options = KernelDispatch { by_invocation: true, ..KernelDispatch::of([1; 3]) };
            let done = with_view(&mut t, |t| kernels.run_system(k, t, options));
            sums.operations += done.counts.operations;
            sums.add_longest(&done.by_invocation[..rows]);
        }
    }
    assert_eq!(difference(&fused, &t), None, "the fused kernel and the single systems differ");
    sums.steps = t.exps[0].steps;
    sums.hops = packet_hops(&t.view());
    sums
}

/// Whether `t` has taken fewer than `steps` steps and is not over. It gets the packet records that it asks for.
fn goes_on(t: &mut OwnedTables, steps: u64) -> bool {
    if t.exps[0].status == status::NEEDS_PACKETS {
        grow::grow(&mut t.view(), u64::from(u32::MAX)).unwrap_or_else(|e| panic!("{e}"));
    }
    t.exps[0].status == status::RUNNING && t.exps[0].steps < steps
}

impl Sums {
    /// Adds the longest way through a system. Rows go to lanes in turn. A warp takes as long as the slowest of its lanes in each turn.
    fn add_longest(&mut self, rows: &[[u64; 2]]) {
        let mut warps = [[0; 2]; LANES as usize / WARP];
        for turn in rows.chunks(LANES as usize) {
            for (warp, lanes) in warps.iter_mut().zip(turn.chunks(WARP)) {
                for (k, sum) in warp.iter_mut().enumerate() {
                    *sum += lanes.iter().map(|lane| lane[k]).max().unwrap_or(0);
                }
            }
        }
        for (k, longest) in self.longest.iter_mut().enumerate() {
            *longest += warps.iter().map(|warp| warp[k]).max().unwrap_or(0);
        }
        self.room += warps.iter().map(|warp| warp[1] * WARP as u64).sum::<u64>();
    }

    fn line(&self, name: &str) -> String {
        let sum =
            |what: fn(&hyperfold_interpreter::BufferCounts) -> u64| self.counts.buffers.iter().map(what).sum::<u64>();
        let per_hop = |n: u64| n as f64 / self.hops as f64;
        let per_step = |n: u64| n as f64 / self.steps as f64;
        format!(
            "{name:<34} {:>7} {:>6.2} {:>6.2} {:>6.2} {:>8.2} {:>7.2} {:>7.1} {:>7.1} {:>9.1} {:>10.0} {:>6.1}\n",
            self.hops,
            per_hop(sum(|b| b.loads)),
            per_hop(sum(|b| b.stores)),
            per_hop(sum(|b| b.atomics)),
            per_hop(self.counts.accesses()),
            per_hop(sum(|b| b.pieces + b.atomics)),
            per_hop(sum(|b| b.load_bytes + b.store_bytes)),
            per_hop(self.counts.operations),
            per_step(self.longest[0]),
            per_step(self.longest[1]),
            100.0 * self.operations as f64 / self.room.max(1) as f64,
        )
    }
}

const HEADER: &str = "workload                              hops  loads stores atomic accesses  pieces   bytes    work     waits    longest lanes%";

/// Accesses a packet-hop of each table, a column a workload.
fn by_table(all: &[Sums]) -> String {
    let mut out = String::from("accesses by table\n");
    for (k, table) in TABLES.iter().enumerate() {
        let accesses = |sums: &Sums| {
            let of_table = sums.counts.buffers[k];
            (of_table.loads + of_table.stores + of_table.atomics) as f64 / sums.hops as f64
        };
        let columns: String = all.iter().map(|sums| format!(" {:>6.2}", accesses(sums))).collect();
        let _ = writeln!(out, "{:<20}{columns}", table.name);
    }
    out
}

/// Instructions of the fused kernel, and how many they are when all calls are inlined: with all parts, with each control alone, and with every other part beside DCQCN.
fn instructions() -> String {
    let mut out = format!("{:<32} {:>6} {:>8}\n", "instructions of the fused kernel", "code", "inlined");
    let mut line = |name: &str, parts: KernelParts| {
        let kernel = Kernels::with(parts, LANES).fused;
        let _ = writeln!(out, "{name:<32} {:>6} {:>8}", kernel.n_instructions(), kernel.n_inlined_instructions());
    };
    line("all parts", KernelParts::ALL);
    let singles = KernelParts::singles();
    let is_control = |name: &str| cc::ALL.iter().any(|(control, _)| *control == name);
    let dcqcn = singles.iter().find(|(name, _)| name == "dcqcn").expect("a control").1;
    let controls = singles.iter().filter(|(name, _)| is_control(name));
    let all_controls = controls.clone().fold(KernelParts::NONE, |sum, (_, part)| sum.and(*part));
    line("all controls", all_controls);
    controls.for_each(|(name, part)| line(name, *part));
    for (name, part) in singles.iter().filter(|(name, _)| !is_control(name)) {
        line(&format!("dcqcn, {name}"), dcqcn.and(*part));
    }
    out
}

/// All figures: a line a workload, a line a table, then sizes of the code.
fn figures() -> String {
    let mut out = format!("{HEADER}\n");
    let mut all = Vec::new();
    for (name, steps, cluster, workload, controls) in WORKLOADS {
        for cc in controls {
            let t = tables(cluster, workload, cc);
            let kernels = Kernels::with(KernelParts::needed_by(t.exps.iter()), LANES);
            let sums = count(&kernels, t, steps);
            assert!(sums.hops > 1000, "{name}: {} packet-hops", sums.hops);
            out.push_str(&sums.line(&format!("{name}, {cc}")));
            all.push(sums);
        }
    }
    out.push_str(&by_table(&all));
    out.push_str(&instructions());
    out
}

/// Compares the figures with the file. `HYPERFOLD_RECORD_KERNELS=1` writes them into it.
#[test]
fn what_a_packet_hop_costs_is_on_record() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels.txt");
    let file = std::fs::read_to_string(&path).unwrap_or_default();
    let comments: String = file.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let figures = figures();
    if std::env::var_os("HYPERFOLD_RECORD_KERNELS").is_some() {
        std::fs::write(&path, format!("{comments}{figures}")).unwrap();
        return;
    }
    let recorded: String = file.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert!(
        recorded == figures,
        "benches/kernels.txt says\n{recorded}\nnow it is\n{figures}\nHYPERFOLD_RECORD_KERNELS=1 writes these; say in a comment of the file why a figure rose"
    );
}
