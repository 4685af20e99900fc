//! Rows of a grid that equal others, and rows that cannot be: as a user runs such a sweep, in shards, resumed, merged and compared.

use crate::support::program::{Folder, hyperfold};

/// Uplinks, which rail-only networks lack.
const UPLINKS: &str = r#"
name = "uplinks"
base.cluster = { gpus = 8, gpus_per_server = 2 }
base.workload = { kind = "traffic", pattern = "ring", stride = 2, bytes = 20000 }
base.output = { flows = true, links = true }
[axes]
"topology.kind" = ["rail-only", "clos"]
"topology.uplink_gbps" = [100, 200, 400]
"#;

const NOTE: &str =
    "2 rows are simulated once each with another: `topology.uplink_gbps` has no effect where topology.kind = rail-only";

/// A model under Megatron, which has no ZeRO-3.
const ZERO: &str = r#"
name = "zero"
base.cluster = { gpus = 8, gpus_per_server = 4, gpu = "a100" }
[base.workload]
kind = "model"
tp = 2
global_batch = 8
analytic = "all"
framework = "megatron"
model = { name = "small", transformer = { layers = 4, hidden = 128, heads = 8, seq = 128, vocab = 1024 } }
[axes]
"workload.zero" = [0, 1, 3]
"workload.microbatch" = [1, 2]
"#;

const FILES: [&str; 4] = ["results.csv", "results.parquet", "flows.csv", "links.csv"];

fn rows(folder: &Folder, name: &str) -> Vec<Vec<String>> {
    folder.text(name).lines().skip(1).map(|l| l.split(',').map(String::from).collect()).collect()
}

#[test]
fn equal_rows_are_simulated_once_and_each_is_written() {
    let folder = Folder::new(&[("s.toml", UPLINKS)]);
    let planned = folder.run(&["plan", "s.toml"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(planned.stdout.contains(&format!("duplicates: 2\n  {NOTE}\n")), "{}", planned.stdout);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--strict"]);
    assert_eq!(ran.code, 0, "a note is no warning: {}", ran.stderr);
    assert!(ran.stderr.contains(&format!("note: {NOTE}")), "{}", ran.stderr);
    let results = rows(&folder, "o/results.csv");
    assert_eq!(results.len(), 6);
    // exp_id, config_key, exp_key, replica, seed, kind, uplink, what was measured.
    assert!(results[0][1..6] == results[1][1..6] && results[0][7..] == results[2][7..]);
    assert_eq!([0, 1, 2].map(|r: usize| results[r][6].as_str()), ["100", "200", "400"]);
    assert!(results[3][1] != results[4][1] && results[3][1] != results[0][1]);
    let simulated = folder.column("o/stats.csv", "packet_hops_simulated");
    assert!(simulated[0] != "0" && simulated[1] == "0" && simulated[2] == "0" && simulated[3] != "0", "{simulated:?}");
    let flows = folder.column("o/flows.csv", "exp_id");
    assert_eq!(flows.len(), 6 * 8);

    // The bytes are the same with --memo off, in shards that are merged, and resumed where rows are missing whose equals are there.
    let off = folder.run(&["run", "s.toml", "--out", "off", "--memo", "off", "--quiet"]);
    assert_eq!(off.code, 0, "{}", off.stderr);
    for shard in ["0/2", "1/2"] {
        let out = format!("s{}", &shard[..1]);
        let ran = folder.run(&["run", "s.toml", "--out", &out, "--shard", shard, "--quiet"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let merged = folder.run(&["merge", "s1", "s0", "--out", "m"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    // A kill leaves the journal cut within a record.
    let journal = folder.bytes("o/journal.bin");
    std::fs::create_dir(folder.file("r")).unwrap();
    std::fs::write(folder.file("r/journal.bin"), &journal[..journal.len() / 2]).unwrap();
    let resumed = folder.run(&["run", "s.toml", "--out", "r", "--resume", "--quiet"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    for file in FILES {
        for out in ["off", "m", "r"] {
            let same = folder.bytes(&format!("o/{file}")) == folder.bytes(&format!("{out}/{file}"));
            assert!(same, "{file} of {out} differs");
        }
    }
    let gate = folder.run(&["compare", "o", "m", "--fail-if", "makespan_ns > base"]);
    assert_eq!(gate.code, 0, "{}{}", gate.stdout, gate.stderr);
    assert!(!gate.stdout.contains("without a partner"), "{}", gate.stdout);
}

#[test]
fn what_cannot_be_is_a_failed_row_with_its_reason() {
    let folder = Folder::new(&[("s.toml", ZERO)]);
    let planned = folder.run(&["plan", "s.toml"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(planned.stdout.contains("cannot run: 2\n  workload.zero = 3: all 2; "), "{}", planned.stdout);
    let ran = folder.run(&["run", "s.toml", "--out", "o"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("note: 2 experiments cannot run: workload.zero = 3: all 2; "), "{}", ran.stderr);
    let status = folder.column("o/results.csv", "status");
    assert_eq!(status, ["ok", "ok", "ok", "ok", "failed", "failed"]);
    let error = folder.column("o/results.csv", "error");
    assert!(error[4].contains("zero") && error[4].contains("megatron"), "{error:?}");
    assert_eq!(folder.column("o/failed.csv", "exp_id"), ["4", "5"]);
    // A shard of nothing but such rows has its rows, so that shards merge.
    let shard = folder.run(&["run", "s.toml", "--out", "last", "--shard", "5/6"]);
    assert_eq!(shard.code, 1, "{}", shard.stderr);
    assert_eq!(folder.column("last/results.csv", "status"), ["failed"]);
    // A file of which nothing can run is wrong.
    let none = ZERO.replace("[0, 1, 3]", "[3]");
    let folder = Folder::new(&[("s.toml", &none)]);
    let ran = hyperfold(folder.path(), &["run", "s.toml", "--out", "o"]);
    assert!(ran.code == 2 && ran.stderr.contains("zero") && !folder.file("o").exists(), "{}", ran.stderr);
}

#[test]
fn a_run_tells_some_reasons_and_plan_all() {
    // Eight global batches that no data parallel degree divides, each with a reason of its own.
    let text = ZERO
        .replace("\"workload.zero\" = [0, 1, 3]", "\"workload.global_batch\" = [8, 9, 10, 11, 13, 14, 15, 17, 18, 19]");
    let folder = Folder::new(&[("s.toml", &text)]);
    let plan = folder.run(&["plan", "s.toml"]);
    let reasons = plan.stdout.lines().filter(|l| l.starts_with("  ") && l.contains("global_batch")).count();
    assert!(plan.code == 0 && reasons > 3, "{}{}", plan.stdout, plan.stderr);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
    let note = ran.stderr.lines().find(|l| l.starts_with("note: ") && l.contains(" cannot run: ")).expect("a note");
    assert!(note.ends_with("; ... (`hyperfold plan` has all reasons)"), "{note}");
    assert_eq!(note.matches("must").count().min(4), 3, "{note}");
}

#[test]
fn what_was_not_prepared_is_foreseen_like_what_was() {
    let text = "name = \"many\"\nbase.cluster.gpus = 16\nbase.workload = { kind = \"traffic\", pattern = \"permutation\" }\n\
                [axes]\n\"workload.bytes\" = { start = 10000000, stop = 10000899, step = 1 }\n";
    let folder = Folder::new(&[("s.toml", text)]);
    let seconds = |args: &[&str]| {
        let plan = folder.run(&[&["plan", "s.toml", "--json"], args].concat());
        let json: serde_json::Value =
            serde_json::from_str(&plan.stdout).unwrap_or_else(|e| panic!("{e}: {}", plan.stderr));
        json["seconds"].as_f64().unwrap()
    };
    let (some, all) = (seconds(&["--limit", "300"]), seconds(&[]));
    assert!((2.0..4.0).contains(&(all / some)), "{all} {some}");
}
