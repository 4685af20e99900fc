//! What a person sees on standard error: errors with their line, the log on request, colours only where they are wanted; and warnings in the run's log.

use std::fs;
use std::path::Path;

use crate::support::program::{Ran, command, seen};

const SWEEP: &str = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nload = 0.5\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 1000\n";

fn hyperfold(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = command(dir, args);
    command.env_remove("RUST_LOG").envs(env.iter().copied());
    seen(args, command.output().expect("the program starts"))
}

#[test]
fn errors_show_the_line_and_mark_what_is_meant() {
    let root = tempfile::tempdir().unwrap();
    let shown = |file: &str| {
        fs::write(root.path().join("s.toml"), file).unwrap();
        let output = hyperfold(root.path(), &["plan", "s.toml"], &[]);
        assert_eq!(output.code, 2, "{file}");
        output.stderr
    };
    let value = shown(&format!("{SWEEP}[base.transport]\ncc = \"hpccc\" # the one\n"));
    assert!(value.starts_with("hyperfold: s.toml:10: `transport.cc = \"hpccc\"`: "), "{value}");
    assert!(
        value.ends_with("\n  --> s.toml:10:6\n   |\n10 | cc = \"hpccc\" # the one\n   |      ^^^^^^^\n"),
        "{value}"
    );
    let key = shown(&format!("{SWEEP}[axes]\n\"transport.cx\" = [1]\n"));
    assert!(key.ends_with("10 | \"transport.cx\" = [1]\n   | ^^^^^^^^^^^^^^\n"), "{key}");
    let syntax = shown("name = \"s\"\nseed = = 1\n");
    assert!(syntax.contains("\n2 | seed = = 1\n  |        ^"), "{syntax}");
    let constraint = shown(&format!("{SWEEP}[[constraints]]\nwhere = \"transport.cx == 1\"\n"));
    assert!(constraint.contains("^^^^^^^^^^^^^^^^^^^"), "{constraint}");
    // What was typed on the command line has no line in a file.
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let set = hyperfold(root.path(), &["plan", "s.toml", "--set", "transport.cc=x"], &[]).stderr;
    assert!(set.starts_with("hyperfold: --set transport.cc=x: ") && !set.contains("-->"), "{set}");
}

#[test]
fn nothing_is_coloured_where_nobody_looks() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), "nmae = 1\n").unwrap();
    let output = hyperfold(
        root.path(),
        &["plan", "s.toml"],
        &[("RUST_LOG", "trace"), ("TERM", "xterm-256color"), ("CLICOLOR", "1")],
    );
    assert!(!output.stderr.contains('\u{1b}') && !output.stdout.contains('\u{1b}'), "{}", output.stderr);
}

#[test]
fn the_log_is_off_until_it_is_asked_for() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let run = |out: &str, filter: &str| {
        let output = hyperfold(
            root.path(),
            &["run", "s.toml", "--quiet", "--engine", "cpu", "--out", out],
            &[("RUST_LOG", filter)],
        );
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stderr
    };
    assert_eq!(run("a", ""), "");
    assert_eq!(run("b", "off"), "");
    let info = run("c", "info");
    assert!(info.contains(" INFO  hyperfold::cli::run: engine cpu: as asked by --engine cpu"), "{info}");
    assert!(!info.contains("DEBUG"), "{info}");
    let batch = run("d", "hyperfold::batch=debug");
    assert!(
        batch.contains(" DEBUG hyperfold::batch::runner: batch: 1 experiments, ") && !batch.contains("hyperfold::cli"),
        "{batch}"
    );
}

#[test]
fn warnings_are_in_the_runs_log() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let output = hyperfold(root.path(), &["run", "s.toml", "--engine", "cpu", "--out", "o"], &[]);
    assert!(output.stderr.contains("warning: s.toml:5: `workload.load` has no effect"), "{}", output.stderr);
    let events = fs::read_to_string(root.path().join("o/events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        events.lines().map(|l| serde_json::from_str(l).expect("an object a line")).collect();
    let warnings: Vec<&str> =
        events.iter().filter(|e| e["event"] == "warning").map(|e| e["text"].as_str().unwrap()).collect();
    assert!(warnings.iter().any(|w| w.starts_with("s.toml:5: `workload.load` has no effect")), "{events:?}");
}

#[test]
fn other_peoples_files_are_not_written_over() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP.replace("load = 0.5\n", "")).unwrap();
    fs::write(root.path().join("flows.txt"), "1\n0 1 3 100 1000 0\n").unwrap();
    let hyperfold = |args: &[&str]| hyperfold(root.path(), args, &[]);
    let refused = hyperfold(&["run", "s.toml", "--out", "o", "--memo", "flows.txt"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("--memo flows.txt: this file is no memo"),
        "{}",
        refused.stderr
    );
    assert_eq!(hyperfold(&["run", "s.toml", "--out", "o", "--memo", "m", "--quiet"]).code, 0);
    assert_eq!(
        hyperfold(&["run", "s.toml", "--out", "p", "--memo", "m", "--quiet"]).code,
        0,
        "what the first has made is a memo"
    );
    let before = fs::read(root.path().join("o/results.csv")).unwrap();
    let refused = hyperfold(&["trace", "o", "0", "--out", "o/results.csv"]);
    assert!(refused.code == 2 && refused.stderr.contains("--out o/results.csv: exists already"), "{}", refused.stderr);
    assert_eq!(fs::read(root.path().join("o/results.csv")).unwrap(), before);
    for more in [&[][..], &["--force"]] {
        assert_eq!(hyperfold(&[&["trace", "o", "0", "--out", "t.pftrace"], more].concat()).code, 0);
    }
    let names: Vec<_> =
        fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(
        !names.iter().any(|n| n.contains("corrupt"))
            && fs::read_to_string(root.path().join("flows.txt")).unwrap().starts_with("1\n0 1"),
        "{names:?}"
    );
}

#[test]
fn quiet_runs_tell_warnings_where_they_decide() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let hyperfold = |args: &[&str]| hyperfold(root.path(), args, &[]);
    let quiet = hyperfold(&["run", "s.toml", "--out", "q", "--quiet"]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (0, "", ""));
    let strict = hyperfold(&["run", "s.toml", "--out", "s", "--quiet", "--strict"]);
    assert_eq!((strict.code, strict.stdout.as_str()), (3, ""));
    assert!(strict.stderr.contains("warning:") && strict.stderr.contains("workload.load"), "{}", strict.stderr);
}

#[test]
fn failures_are_told_once_as_they_happen_and_once_in_the_table() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), format!("{SWEEP}[base.limits]\npacket_hops = 10\n")).unwrap();
    let ran = hyperfold(root.path(), &["run", "s.toml", "--out", "o"], &[]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stderr.matches("experiment 0 failed: limit").count(), 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("1 of 1 experiment failed; failed.csv says why"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("limit: packet_hops = 10 reached").count(), 1, "{}", ran.stdout);
}

#[test]
fn a_sweep_of_a_manifest_has_no_line_of_the_users_file() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("f.txt"), "1\n0 1 3 100 1000 0\n").unwrap();
    let sweep = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"flows\"\npath = \"f.txt\"\n";
    fs::write(root.path().join("s.toml"), sweep).unwrap();
    assert_eq!(hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet"], &[]).code, 0);
    fs::remove_file(root.path().join("f.txt")).unwrap();
    let ran = hyperfold(root.path(), &["trace", "o", "0"], &[]);
    assert!(
        ran.code == 2 && ran.stderr.contains("the sweep in manifest.json cannot be expanded any more"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("s.toml: `workload.path") && !ran.stderr.contains("-->"), "{}", ran.stderr);
}

#[test]
fn the_log_says_why_a_steady_skip_ended() {
    let root = tempfile::tempdir().unwrap();
    let sweep = "name = \"s\"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\n\
                 [base.topology]\nlink_gbps = 100\nuplink_gbps = 100\n[base.transport]\ncc = \"dcqcn\"\n\
                 [base.workload]\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = 67108864\n";
    fs::write(root.path().join("s.toml"), sweep).unwrap();
    let args = ["run", "s.toml", "--quiet", "--engine", "cpu", "--out", "out"];
    let output = hyperfold(root.path(), &args, &[("RUST_LOG", "hyperfold::engine::fold=debug")]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let ends: Vec<&str> = output.stderr.lines().filter(|line| line.contains(" was skipped from ")).collect();
    // As many as `steady_skips` says; the last one ends because the collective does.
    let stats = fs::read_to_string(root.path().join("out/stats.csv")).unwrap();
    let [header, row] = stats.lines().collect::<Vec<_>>()[..] else { panic!("{stats}") };
    let skips = header.split(',').zip(row.split(',')).find(|cell| cell.0 == "steady_skips").unwrap().1;
    assert!(!ends.is_empty() && ends.len().to_string() == skips, "{skips} skips\n{}", output.stderr);
    assert!(ends[0].contains("folding: experiment 0: partition "), "{}", ends[0]);
    assert!(
        ends.iter().any(|line| line.ends_with("; it ends because a queue pair has sent all its bytes")),
        "{}",
        output.stderr
    );
}
