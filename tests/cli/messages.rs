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
    // Who asks for colours gets them through a pipe, too, unless they are refused.
    let forced = hyperfold(root.path(), &["plan", "s.toml"], &[("CLICOLOR_FORCE", "1")]).stderr;
    assert!(forced.starts_with("\u{1b}[1m\u{1b}[31mhyperfold:\u{1b}[0m s.toml:1: "), "{forced:?}");
    let refused = hyperfold(root.path(), &["plan", "s.toml"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).stderr;
    assert!(refused.starts_with("hyperfold: s.toml:1: "), "{refused:?}");
}

/// `--jobs` is about planning as well as simulating.
#[test]
fn jobs_are_the_threads_of_a_run() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    for (jobs, threads) in [("1", "1 thread"), ("3", "3 threads")] {
        let args = ["run", "s.toml", "--quiet", "--engine", "cpu", "--jobs", jobs, "--out", jobs];
        let output = hyperfold(root.path(), &args, &[("RUST_LOG", "hyperfold::cli=info")]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(output.stderr.contains(&format!("planned on {threads} in ")), "{}", output.stderr);
        assert!(output.stderr.contains(&format!("; {jobs} CPU thread")), "{}", output.stderr);
    }
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
    let batch = run("d", "hyperfold_host=debug");
    assert!(
        batch.contains(" DEBUG hyperfold_host::batches::runner: batch: 1 experiments, ")
            && !batch.contains("hyperfold::cli"),
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
    // Nobody should have to guess what an exit code means.
    let quiet = hyperfold(root.path(), &["run", "s.toml", "--out", "q", "--quiet"], &[]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (1, ""));
    assert_eq!(quiet.stderr, "hyperfold: 1 of 1 experiment failed; q/failed.csv says why\n");
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
    let output = hyperfold(root.path(), &args, &[("RUST_LOG", "hyperfold_fold=debug")]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let ends: Vec<&str> = output.stderr.lines().filter(|line| line.contains(" was skipped from ")).collect();
    // The log tells as many skips as `steady_skips` says; the last one ends because the collective does.
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

/// A model of experts on eight GPUs; text before and after its keys.
fn experts(before: &str, after: &str) -> String {
    format!(
        "name = \"e\"\n{before}[base.cluster]\ngpus = 8\ngpus_per_server = 8\ngpu = \"h100\"\n[base.workload]\nkind = \"model\"\n\
         model = {{ name = \"m\", transformer = {{ layers = 2, hidden = 256, heads = 8, vocab = 512, seq = 128, moe = {{ experts = 8, top_k = 2 }} }} }}\n\
         dp = 8\nglobal_batch = 8\nanalytic = \"all\"\n{after}"
    )
}

#[test]
fn names_that_are_unknown_are_told_with_their_line() {
    let root = tempfile::tempdir().unwrap();
    let file = experts("", "");
    let shown = |file: &str| {
        fs::write(root.path().join("s.toml"), file).unwrap();
        let output = hyperfold(root.path(), &["plan", "s.toml"], &[]);
        assert_eq!(output.code, 2, "{file}");
        output.stderr
    };
    let model = file.lines().find(|l| l.starts_with("model")).unwrap();
    let unknown = shown(&file.replace(model, "model = \"gpt4\""));
    assert!(
        unknown.starts_with("hyperfold: s.toml:8: `workload.model = \"gpt4\"`: no model is called that; "),
        "{unknown}"
    );
    assert!(unknown.ends_with("\n8 | model = \"gpt4\"\n  | ^^^^^\n"), "{unknown}");
    let gpu = shown(&file.replace("\"h100\"", "\"h1000\""));
    assert!(gpu.starts_with("hyperfold: s.toml:5: `cluster.gpu = \"h1000\"`: ") && gpu.contains(" ^^^\n"), "{gpu}");
    let table = shown(&file.replace("\"h100\"", "{ like = \"h100\", memory = 3 }"));
    assert!(table.starts_with("hyperfold: s.toml:5: `cluster.gpu`: unknown field `memory`, "), "{table}");
    let shape = shown(&file.replace("hidden = 256", "hiden = 256"));
    assert!(shape.starts_with("hyperfold: s.toml:8: `workload.model`: unknown field `hiden`, "), "{shape}");
    let heads = shown(&file.replace("heads = 8", "heads = 3"));
    assert!(
        heads.starts_with("hyperfold: s.toml:8: `workload.model`: `transformer.heads = 3`: it must be "),
        "{heads}"
    );
    let modules = shown(&format!("{file}recompute = \"selective\"\nrecompute_modules = \"moe, act, core\"\n"));
    assert!(modules.contains("s.toml:13: ") && modules.contains("\"act\", \"core\" are no modules; "), "{modules}");
    let axis = shown(&format!("{file}[axes]\n\"workload.tp\" = [1, \"x\", 2, -5, 0]\n"));
    assert!(axis.contains("s.toml:13: `workload.tp = \"x\"`: ") && axis.contains("; -5, 0 are wrong, too\n"), "{axis}");
    let zero = shown("name = \"c\"\n[base]\nfidelity.mode = \"job\"\ncluster.gpus = 0\n");
    assert!(
        zero.starts_with("hyperfold: s.toml:4: `cluster.gpus = 0`: it is required") && zero.contains("at least 1"),
        "{zero}"
    );
}

#[test]
fn choices_of_kernels_that_change_nothing_or_do_not_exist_are_noted() {
    let root = tempfile::tempdir().unwrap();
    let told = |more: &[&str]| {
        fs::write(root.path().join("s.toml"), experts("", "")).unwrap();
        let mut args = vec!["plan", "s.toml"];
        more.iter().for_each(|set| args.extend(["--set", set]));
        let output = hyperfold(root.path(), &args, &[]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stdout + &output.stderr
    };
    let fused = "workload.fused_grouped_mlp=true";
    for more in [&[fused] as &[&str], &[fused, "workload.precision=fp8"], &[fused, "cluster.gpu=b200"]] {
        assert!(
            told(more)
                .contains("Transformer Engine has this kernel for workload.precision = \"mxfp8\" on Blackwell alone")
        );
    }
    assert!(!told(&[fused, "cluster.gpu=b200", "workload.precision=mxfp8"]).contains("alone"));
    let modules = |list: &str| told(&["workload.recompute=selective", &format!("workload.recompute_modules={list}")]);
    assert!(modules("moe,moe_act").contains("moe_act changes nothing beside moe"));
    assert!(!modules("moe").contains("changes nothing") && !modules("moe_act").contains("changes nothing"));
}

#[test]
fn failures_that_notes_told_are_not_told_again() {
    let root = tempfile::tempdir().unwrap();
    let file = experts("", "").replace("gpu = \"h100\"\n", "") + "[axes]\n\"cluster.gpu\" = [\"h100\", \"h1000\"]\n";
    fs::write(root.path().join("s.toml"), file).unwrap();
    let ran = hyperfold(root.path(), &["run", "s.toml", "--out", "o"], &[]);
    assert_eq!(
        ran.stderr.matches("h1000\\\" is not known").count() + ran.stderr.matches("\"h1000\" is not known").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("1 of 2 experiments failed"), "{}", ran.stdout);
}

#[test]
fn a_gpu_of_ones_own_is_in_all_like_the_one_it_names() {
    let root = tempfile::tempdir().unwrap();
    let file = "name = \"l\"\n[base]\ncluster = { gpus = 16, server = \"hgx-b200\" }\ncost = { gpu_usd = 1, gpu_watts = 1 }\n[base.workload]\nkind = \"model\"\nmodel = \"llama3-8b\"\n\
                tp = 8\ndp = 2\nglobal_batch = 16\nanalytic = \"all\"\n[axes]\n\"cluster.gpu\" = [\"b200\", { like = \"b200\" }, { like = \"h100\" }]\n";
    fs::write(root.path().join("s.toml"), file).unwrap();
    let ran = hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet"], &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let results = fs::read_to_string(root.path().join("o/results.csv")).unwrap();
    let mut lines = csv::Reader::from_reader(results.as_bytes());
    let column = lines.headers().unwrap().iter().position(|h| h == "iteration_time_ns").unwrap();
    let times: Vec<String> = lines.records().map(|r| r.unwrap()[column].to_string()).collect();
    assert_eq!(times[0], times[1]);
    assert_ne!(times[0], times[2]);
}
