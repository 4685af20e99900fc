//! `method = "optimize"` against the whole grid, as a user runs it: the best is among the few that were run, the same seed gives the same bytes, and every candidate's end is told.

use std::collections::BTreeMap;
use std::fs;

use crate::support::program::{Folder, command, hyperfold};

/// All-reduces of sixteen GPUs: 200 combinations of fabric, congestion control, algorithm, channels and chunk.
const COLLECTIVES: &str = r#"
name = "all-reduce"
[base]
cluster = { gpus = 16, gpus_per_server = 2 }
topology = { link_gbps = 100, uplink_gbps = 100 }
workload = { kind = "collective", op = "all-reduce", bytes = 200000 }
[axes]
"topology.kind" = ["rail-optimized", "clos"]
"transport.cc" = ["hpcc", "dcqcn"]
"workload.algorithm" = ["ring", "tree", "halving-doubling", "hierarchical", "direct"]
"workload.channels" = [1, 2, 4, 8, 16]
"workload.chunk_kib" = [16, 64]
"#;

/// A small language model on sixteen GPUs: 270 layouts, congestion controls and fabrics.
const LAYOUTS: &str = r#"
name = "layouts"
[base]
cluster = { gpus = 16, gpus_per_server = 4, gpu = "a100", nvlink_gbps = 2400 }
topology = { link_gbps = 100, uplink_gbps = 100 }
transport = { payload_bytes = 4000 }
[base.workload]
kind = "model"
global_batch = 16
memory_check = false
model = { name = "small", transformer = { layers = 4, hidden = 128, heads = 8, seq = 128, vocab = 1024 } }
[axes]
"workload.tp" = [1, 2, 4]
"workload.pp" = [1, 2, 4]
"workload.microbatch" = [1, 2, 4]
"workload.zero" = [0, 1]
"transport.cc" = ["hpcc", "dcqcn"]
"topology.kind" = ["rail-optimized", "fat-tree", "clos"]
[[constraints]]
where = "workload.tp * workload.pp * workload.dp == cluster.gpus && workload.dp > 1 && workload.dp * workload.microbatch <= 16"
"#;

fn searched(grid: &str, more: &str) -> String {
    grid.replacen("[axes]", &format!("[sweep]\nmethod = \"optimize\"\n{more}\n[axes]"), 1)
}

/// `exp_id` and a column of a run's results.
fn values(folder: &Folder, run: &str, column: &str) -> BTreeMap<String, f64> {
    let file = format!("{run}/results.csv");
    let ids = folder.column(&file, "exp_id");
    ids.into_iter().zip(folder.column(&file, column)).map(|(id, v)| (id, v.parse().unwrap_or(f64::INFINITY))).collect()
}

fn run(folder: &Folder, sweep: &str, out: &str, more: &[&str]) {
    let ran = hyperfold(folder.path(), &[&["run", sweep, "--out", out, "--quiet"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Ten seeds against the grid: in how many the best of all is among at most a twentieth that was run; and the mean factor that estimates are off by. `drawn`: traffic or marking depends on the
/// seed, so each has a grid of its own.
fn hits(grid: &str, column: &str, drawn: bool) -> (usize, f64) {
    let folder = Folder::new(&[("grid.toml", grid), ("search.toml", &searched(grid, ""))]);
    let (mut hits, mut all, mut best) = (0, BTreeMap::new(), f64::INFINITY);
    for seed in 1..=10 {
        let set = format!("seed={seed}");
        if all.is_empty() || drawn {
            let out = format!("grid{seed}");
            run(&folder, "grid.toml", &out, &["--set", &set]);
            all = values(&folder, &out, column);
            best = all.values().copied().fold(f64::INFINITY, f64::min);
        }
        let out = format!("search{seed}");
        run(&folder, "search.toml", &out, &["--set", &set]);
        let found = values(&folder, &out, column);
        assert!(found.len() * 20 <= all.len(), "{} of {} were run", found.len(), all.len());
        assert!(found.iter().all(|(id, v)| all[id] == *v), "seed {seed}: a full run of a search is the grid's");
        hits += usize::from(found.values().any(|v| *v == best));
    }
    let ids = folder.column("search10/optimize.csv", "exp_id");
    let estimates = folder.column("search10/optimize.csv", &format!("estimate_{column}"));
    let off = |(id, e): (&String, &String)| (e.parse::<f64>().unwrap() / all[id]).ln().abs();
    let off = (ids.iter().zip(&estimates).map(off).sum::<f64>() / ids.len() as f64).exp();
    println!("{} candidates, the best in {hits} of 10 seeds; estimates are off by a factor of {off:.2}", all.len());
    (hits, off)
}

#[test]
fn the_best_collective_is_among_one_in_twenty() {
    let (hits, off) = hits(COLLECTIVES, "iteration_time_ns", false);
    assert!(hits >= 9 && off < 1.3, "{hits} hits, estimates off by {off}");
}

#[test]
fn the_best_layout_is_among_one_in_twenty() {
    let (hits, off) = hits(LAYOUTS, "iteration_time_ns", true);
    assert!(hits >= 9 && off < 2.0, "{hits} hits, estimates off by {off}");
}

/// Permutations of 32 GPUs: 288 combinations of fabric, uplinks, buffers, routing, congestion control and packet size.
const PERMUTATIONS: &str = r#"
name = "permutations"
[base]
cluster = { gpus = 32, gpus_per_server = 2, nvlink_gbps = 0 }
topology = { link_gbps = 100 }
workload = { kind = "traffic", pattern = "permutation", bytes = 500000 }
[axes]
"topology.kind" = ["rail-optimized", "fat-tree", "clos"]
"topology.uplink_gbps" = [50, 100, 200]
"topology.buffer_mib" = [4, 32]
"routing.policy" = ["ecmp", "spray"]
"transport.cc" = ["hpcc", "dcqcn", "dctcp", "timely"]
"transport.payload_bytes" = [1000, 4000]
"#;

#[test]
#[ignore = "soak: three grids of hundreds of experiments, one of them for each seed; scripts/test.sh --soak and CI run it"]
fn soak_the_best_of_larger_grids_is_among_one_in_twenty() {
    let collectives = COLLECTIVES
        .replace("200000", "400000")
        .replace("\"clos\"]", "\"fat-tree\", \"clos\"]")
        .replace("\"dcqcn\"]", "\"dcqcn\", \"dctcp\"]");
    let layouts = LAYOUTS
        .replace("hidden = 128", "hidden = 256")
        .replace("seq = 128, vocab = 1024", "seq = 256, vocab = 2048")
        .replace("\"dcqcn\"]", "\"dcqcn\", \"dctcp\"]");
    for (grid, column, drawn) in [
        (collectives.as_str(), "iteration_time_ns", false),
        (&layouts, "iteration_time_ns", true),
        (PERMUTATIONS, "makespan_ns", true),
    ] {
        let (hits, _) = hits(grid, column, drawn);
        assert!(hits >= 9, "{hits} hits: {grid}");
    }
}

#[test]
fn a_search_is_told_as_one_and_by_what_it_was_for() {
    let grid = PERMUTATIONS
        .replace("gpus = 32", "gpus = 8")
        .replace("500000", "20000")
        .replace("\"routing.policy\" = [\"ecmp\", \"spray\"]\n", "");
    let sweep = searched(&grid, "objectives = [\"max_queue_bytes\", \"cost_usd\"]\nsamples = 6");
    let folder = Folder::new(&[("s.toml", &sweep)]);
    let ran = hyperfold(folder.path(), &["run", "s.toml", "--out", "a"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("a search: 6 of 144 experiments were run in full"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nPareto front of max queue, cost usd: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("), max queue "), "the best by the first objective: {}", ran.stdout);
    let compared = hyperfold(folder.path(), &["compare", "a"]);
    assert!(
        compared.stdout.contains("ranking by max_queue_bytes")
            && compared.stdout.contains("Pareto front of max_queue_bytes"),
        "{}",
        compared.stdout
    );
    let page = folder.text("a/report.html");
    assert!(page.contains("\"objectives\":[\"max_queue_bytes\",\"cost_usd\"]") && page.contains("\"of\":144"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let sweep =
        searched(&PERMUTATIONS.replace("500000", "50000"), "objectives = [\"fct_p99_ns\", \"cost_usd\"]\nreplicas = 2");
    let folder = Folder::new(&[("s.toml", &sweep)]);
    for (out, jobs) in [("a", "1"), ("b", "2")] {
        run(&folder, "s.toml", out, &["--jobs", jobs]);
    }
    for file in ["results.csv", "results.parquet", "optimize.csv"] {
        assert_eq!(
            fs::read(folder.file(&format!("a/{file}"))).unwrap(),
            fs::read(folder.file(&format!("b/{file}"))).unwrap(),
            "{file}"
        );
    }
    // Both replicas of each of the fourteen points run.
    let replicas = folder.column("a/results.csv", "replica");
    assert_eq!((replicas.len(), replicas.iter().filter(|r| *r == "1").count()), (28, 14));
    // With two objectives cheap fabrics and fast ones are both looked at.
    let kinds = folder.column("a/results.csv", "topology.kind");
    assert!(kinds.iter().any(|k| *k != kinds[0]), "{kinds:?}");
}

#[test]
fn every_candidate_is_told_and_the_plan_tells_the_budget() {
    let folder = Folder::new(&[("s.toml", &searched(COLLECTIVES, "samples = 5"))]);
    let plan = hyperfold(folder.path(), &["plan", "s.toml"]);
    let line = "search: 200 candidates estimated, at most 20 simulated with coarse packets, 5 experiments run in full; by iteration_time_ns";
    assert!(plan.code == 0 && plan.stdout.contains(line), "{}{}", plan.stdout, plan.stderr);
    run(&folder, "s.toml", "o", &[]);
    let reached = folder.column("o/optimize.csv", "reached");
    let at = |level: &str| reached.iter().filter(|r| *r == level).count();
    assert_eq!((reached.len(), at("full"), at("coarse"), at("estimate")), (200, 5, 15, 180));
    assert_eq!(folder.column("o/results.csv", "exp_id").len(), 5);
    assert_eq!(folder.column("o/optimize.csv", "exp_id").len(), 200);
}

#[test]
fn what_does_not_fit_is_left_out_and_ranges_are_sampled() {
    let sweep = r#"
name = "t"
[base]
cluster = { gpus = 8, gpu_memory_gib = 3 }
workload = { kind = "model", model = "gpt2", global_batch = 8, analytic = "all" }
[sweep]
method = "optimize"
samples = 2
[axes]
"workload.tp" = [1, 2, 4]
"topology.link_gbps" = { min = 100, max = 400 }
"#;
    let folder = Folder::new(&[("s.toml", sweep)]);
    run(&folder, "s.toml", "o", &[]);
    let why = folder.column("o/optimize.csv", "why");
    assert_eq!(why.len(), 40);
    assert!(why.iter().any(|w| w.starts_with("oom: ")), "{why:?}");
    assert_eq!(folder.column("o/results.csv", "status"), ["ok", "ok"]);
}

#[test]
fn a_search_keeps_to_its_limits() {
    let objectives = "objectives = [\"iteration_time_ns\"]\nsamples = 6";
    let folder = Folder::new(&[("free.toml", &searched(COLLECTIVES, objectives))]);
    run(&folder, "free.toml", "free", &[]);
    let prices = |out: &str| values(&folder, out, "cost_usd");
    let dearest = prices("free").values().copied().fold(0.0, f64::max);
    // What it would choose without a limit is too dear.
    let limit = format!("{objectives}\nlimits = [\"cost_usd < {dearest}\"]");
    fs::write(folder.file("held.toml"), searched(COLLECTIVES, &limit)).unwrap();
    let plan = hyperfold(folder.path(), &["plan", "held.toml"]);
    assert!(plan.stdout.contains(&format!("by iteration_time_ns; within cost_usd < {dearest}")), "{}", plan.stdout);
    run(&folder, "held.toml", "held", &[]);
    let chosen = prices("held");
    assert!(chosen.len() == 6 && chosen.values().all(|price| *price < dearest), "{chosen:?}");
    let why = folder.column("held/optimize.csv", "why");
    assert!(
        why.iter().any(|w| w.starts_with(&format!("beyond the limit cost_usd < {dearest}: cost_usd = "))),
        "{why:?}"
    );
    assert!(folder.column("held/optimize.csv", "estimate_iteration_time_ns").len() == 200);
    // A measured column: the fastest are left out by what coarse simulations show.
    let times = values(&folder, "free", "iteration_time_ns");
    let best = times.values().copied().fold(f64::INFINITY, f64::min);
    let limit = format!("{objectives}\nlimits = [\"iteration_time_ns >= {}\"]", 2.0 * best);
    fs::write(folder.file("slow.toml"), searched(COLLECTIVES, &limit)).unwrap();
    run(&folder, "slow.toml", "slow", &[]);
    assert!(values(&folder, "slow", "iteration_time_ns").values().all(|t| *t > 1.5 * best));
    // None is that cheap.
    fs::write(folder.file("none.toml"), searched(COLLECTIVES, "limits = [\"cost_usd < 1\"]")).unwrap();
    let none = hyperfold(folder.path(), &["run", "none.toml", "--out", "none"]);
    assert!(none.code == 2 && none.stderr.contains("none of 200 candidates is within them"), "{}", none.stderr);
}

#[test]
fn what_a_search_cannot_do_is_refused() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("objectives = [\"iteration_time_s\"]", &[], "did you mean `iteration_time_ns`?"),
        ("objectives = [\"status\"]", &[], "no column of results.csv with numbers"),
        ("objectives = []", &[], "it must be a list of one or more column names"),
        ("objectives = [\"mfu\", \"mfu\"]", &[], "it must be a list of one or more column names"),
        (
            "objectives = [\"mfu\"]",
            &[],
            "`mfu` is empty for every experiment of this sweep; it needs workload.kind = \"model\"",
        ),
        ("limits = [\"cost_us <= 3\"]", &[], "did you mean `cost_usd`?"),
        ("limits = [\"cost_usd\"]", &[], "it gives a number, and must give true or false"),
        ("limits = [\"mfu >= 0.5\"]", &[], "`mfu` is empty for every experiment of this sweep"),
        ("limits = []", &[], "it must be a list of one or more conditions"),
        ("samples = 0", &[], "sweep.samples"),
        ("", &["--shard", "0/2"], "cannot be cut into shards"),
    ];
    let folder = Folder::new(&[("s.toml", &searched(COLLECTIVES, ""))]);
    let args = ["submit", "s.toml", "--shards", "2", "--out", "o", "--dry-run"];
    for scheduler in [&["--slurm"][..], &["--kubernetes", "--image", "i", "--claim", "c"]] {
        let ran = hyperfold(folder.path(), &[&args[..], scheduler].concat());
        assert!(ran.code == 2 && ran.stderr.contains("cannot be cut into shards"), "{}", ran.stderr);
    }
    for (more, args, message) in cases {
        let folder = Folder::new(&[("s.toml", &searched(COLLECTIVES, more))]);
        let ran = hyperfold(folder.path(), &[&["run", "s.toml", "--out", "o"], *args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(message), "{more} {args:?}: {}", ran.stderr);
        assert!(!folder.file("o").exists());
    }
}

/// Offsets at which the records of a journal end. Sixteen bytes come first. A record is a mark, a length, a number, a checksum of sixteen bytes, and as many
/// bytes as the length says.
fn record_ends(journal: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 16;
    while at < journal.len() {
        at += 40 + u64::from_le_bytes(journal[at + 8..at + 16].try_into().unwrap()) as usize;
        ends.push(at);
    }
    ends
}

#[test]
fn a_search_that_broke_off_is_resumed_to_the_same_bytes() {
    let sweep = searched(COLLECTIVES, "samples = 6\nobjectives = [\"iteration_time_ns\", \"cost_usd\"]");
    let folder = Folder::new(&[
        ("s.toml", &sweep),
        ("grid.toml", COLLECTIVES),
        ("other.toml", &sweep.replace("samples = 6", "samples = 7")),
    ]);
    run(&folder, "s.toml", "whole", &[]);
    let journal = folder.bytes("whole/journal.bin");
    let ends = record_ends(&journal);
    // Whose it is twice, 200 estimates, 24 coarse estimates and simulations, six experiments in full.
    assert_eq!(ends.len(), 2 + 200 + 2 * 24 + 6);
    let same = |out: &str| {
        for file in ["results.csv", "results.parquet", "optimize.csv"] {
            assert!(
                folder.bytes(&format!("{out}/{file}")) == folder.bytes(&format!("whole/{file}")),
                "{file} of {out} differs"
            );
        }
        let length = folder.bytes(&format!("{out}/journal.bin")).len();
        assert_eq!(length, journal.len(), "{out}: what was found before is not found again");
    };
    // A kill leaves the journal cut within a record: during the estimates, the coarse simulations, the full runs, and at the end.
    for records in [0, 1, 2, 101, 202, 221, 241, 250, 253, 255, 256] {
        let out = format!("o{records}");
        fs::create_dir(folder.file(&out)).unwrap();
        if records > 0 {
            let cut = (ends[records - 1] + 30).min(journal.len());
            fs::write(folder.file(&format!("{out}/journal.bin")), &journal[..cut]).unwrap();
            fs::write(folder.file(&format!("{out}/optimize.csv")), "nonsense").unwrap();
        }
        run(&folder, "s.toml", &out, &["--resume"]);
        same(&out);
        let events: Vec<serde_json::Value> =
            folder.text(&format!("{out}/events.jsonl")).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let known = events.iter().find(|e| e["event"] == "run_started").and_then(|e| e["known"].as_u64()).unwrap();
        let again = events.iter().filter(|e| e["event"] == "finished").count() as u64;
        assert_eq!(
            (known, again),
            (records.saturating_sub(250) as u64, 6 - records.saturating_sub(250) as u64),
            "what is known is not run again"
        );
        let told = |n: usize| {
            events
                .iter()
                .filter(|e| e["text"].as_str().is_some_and(|t| t.contains(&format!("; {n} of them by an earlier run"))))
                .count()
        };
        assert_eq!(told(200), usize::from(records >= 202), "estimates of {records} records");
    }

    let other = hyperfold(folder.path(), &["run", "other.toml", "--out", "whole", "--resume"]);
    assert!(other.code == 2 && other.stderr.contains("sweep.samples: 6 there, 7 here"), "{}", other.stderr);
    let grid = hyperfold(folder.path(), &["run", "grid.toml", "--out", "whole", "--resume"]);
    assert!(
        grid.code == 2 && grid.stderr.contains("sweep.method: \"optimize\" there, \"grid\" here"),
        "{}",
        grid.stderr
    );
    same("whole");
    let merged = hyperfold(folder.path(), &["merge", "whole", "--out", "m"]);
    assert!(
        merged.code == 2 && merged.stderr.contains("has no parts to merge") && !folder.file("m").exists(),
        "{}",
        merged.stderr
    );
    // What reads a folder reads that of a search.
    for command in [
        &["compare", "whole"][..],
        &["report", "whole"],
        &["compare", "whole", "o255", "--fail-if", "iteration_time_ns > 1.02 * base"],
    ] {
        let ran = hyperfold(folder.path(), command);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_search_that_is_killed_ends_with_the_same_bytes() {
    let folder = Folder::new(&[("s.toml", &searched(COLLECTIVES, "samples = 6"))]);
    run(&folder, "s.toml", "whole", &[]);
    for round in 0..4 {
        let mut child = command(folder.path(), &["run", "s.toml", "--out", "o", "--resume", "--jobs", "1", "--quiet"])
            .spawn()
            .expect("the program starts");
        // Another moment each time: while it estimates, looks coarsely, runs in full.
        std::thread::sleep(std::time::Duration::from_millis(40 << round));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    run(&folder, "s.toml", "o", &["--resume"]);
    for file in ["results.csv", "results.parquet", "optimize.csv"] {
        assert!(folder.bytes(&format!("o/{file}")) == folder.bytes(&format!("whole/{file}")), "{file} differs");
    }
    assert_eq!(
        folder.bytes("o/journal.bin").len(),
        folder.bytes("whole/journal.bin").len(),
        "nothing was looked at twice"
    );
}
