//! Runs of a small sweep in which every file has rows, for tests of what ends early.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::program::{Folder, Ran, command};

/// Files that must be the same, byte by byte.
pub const FILES: [&str; 6] = ["results.csv", "results.parquet", "flows.csv", "links.csv", "rtt.csv", "failed.csv"];

/// 72 experiments of milliseconds, in which all files have rows: the largest fail of their limit.
pub const SWEEP: &str = r#"
name = "resumed"
[base]
cluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 8, spines = 8, buffer_mib = 4 }
workload = { kind = "traffic", fan_in = 12, receivers = 2 }
output = { flows = true, links = true, rtt = true }
limits = { packet_hops = 60000 }
[axes]
"transport.cc" = ["dcqcn", "hpcc", "timely", "dctcp"]
"workload.pattern" = ["ring", "all-to-all", "incast"]
"topology.link_gbps" = [100, 200, 400]
"workload.bytes" = [20000, 50000]
"#;

/// The sweep's folder, with what an undisturbed run has written in `whole`.
pub fn folder() -> Folder {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let ran = run(&folder, "whole", &[]);
    assert_eq!(ran.code, 1, "some experiments fail: {}", ran.stderr);
    for file in FILES {
        assert!(folder.bytes(&format!("whole/{file}")).split(|b| *b == b'\n').count() > 2, "{file} has no rows");
    }
    folder
}

pub fn arguments<'a>(sweep: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", sweep, "--engine", "cpu", "--out", out], more].concat()
}

pub fn run(folder: &Folder, out: &str, more: &[&str]) -> Ran {
    folder.run(&arguments("s.toml", out, more))
}

pub fn same_as_whole(folder: &Folder, out: &str) {
    for file in FILES {
        assert!(
            folder.bytes(&format!("{out}/{file}")) == folder.bytes(&format!("whole/{file}")),
            "{file} of {out} differs"
        );
    }
}

/// Starts a run and gives it once `results.csv` has more than so many lines, or the run has ended.
pub fn started(folder: &Folder, sweep: &str, out: &str, more: &[&str], results: usize) -> Child {
    let args = arguments(sweep, out, more);
    let mut child = command(folder.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let from = Instant::now();
    while std::fs::read_to_string(folder.file(&format!("{out}/results.csv"))).map_or(0, |t| t.lines().count())
        <= results
    {
        if child.try_wait().expect("it can be waited for").is_some() {
            break;
        }
        assert!(from.elapsed() < Duration::from_secs(120), "no {results} results in two minutes");
        sleep(Duration::from_millis(1));
    }
    child
}

/// A sweep of two experiments, a short one and one that takes `bytes`.
pub fn two(bytes: u64) -> String {
    let incast = "kind = \"traffic\", pattern = \"incast\", fan_in = 12, receivers = 2";
    let cluster = "gpus = 16, gpus_per_server = 1, nics_per_server = 1";
    format!(
        "name = \"two\"\n[base]\ncluster = {{ {cluster} }}\ntopology = {{ kind = \"clos\", hosts_per_leaf = 8, spines = 8 }}\n\
         workload = {{ {incast} }}\n[axes]\n\"workload.bytes\" = [20000, {bytes}]\n"
    )
}

/// Bytes that take minutes to simulate, if nobody stops it.
pub const MINUTES: u64 = 4_000_000_000;
