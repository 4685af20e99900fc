//! Memory is a budget: what does not fit is one failed row, said beforehand by `plan`, and the rest of the sweep runs.

use std::time::{Duration, Instant};

use crate::support::program::Folder;

/// All-to-all between 4,096 GPUs has 16.8 million flows.
const AXIS: &str = "name = \"a\"\n[base]\ncluster.gpus_per_server = 8\nworkload = { kind = \"traffic\", pattern = \"all-to-all\", bytes = 1000 }\n\
                    [axes]\n\"cluster.gpus\" = [8, 16, 4096, 32768]\n";

fn model(more: &str) -> String {
    format!(
        "name = \"m\"\n[base]\ncluster.gpus = 16\n[base.workload]\nkind = \"model\"\nmodel = \"gpt3-13b\"\ntp = 8\n{more}\n"
    )
}

/// Rows of `failed.csv`, without its header.
fn failed(folder: &Folder, out: &str) -> Vec<String> {
    let text = String::from_utf8(folder.bytes(&format!("{out}/failed.csv"))).expect("text");
    text.lines().skip(1).map(str::to_string).collect()
}

#[test]
fn what_does_not_fit_fails_alone_and_plan_says_so() {
    let folder = Folder::new(&[("a.toml", AXIS)]);
    let plan = folder.run(&["plan", "a.toml", "--memory", "2"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    assert!(plan.stdout.contains("cannot fit: 2"), "{}", plan.stdout);
    assert!(plan.stdout.contains("experiment 2: memory: it needs at least "), "{}", plan.stdout);
    assert!(plan.stdout.contains(", for 16,773,120 flows, and may take 2.0 GiB, "), "{}", plan.stdout);
    assert!(plan.stdout.contains("experiment 3: 1073709056 flows"), "{}", plan.stdout);
    let ran = folder.run(&["run", "a.toml", "--out", "o", "--memory", "2"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let failed = failed(&folder, "o");
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[0].starts_with("2,") && failed[0].contains("--memory") && failed[0].contains("limits.memory_gib"));
    let rows = String::from_utf8(folder.bytes("o/results.csv")).unwrap();
    assert_eq!(rows.lines().filter(|row| row.contains(",ok,")).count(), 2, "{rows}");
}

#[test]
fn training_that_does_not_fit_is_stopped_while_it_is_prepared() {
    for (more, what) in
        [("global_batch = 2\niterations = 1000000", "operations"), ("global_batch = 1048576\npp = 2", "operations")]
    {
        let folder = Folder::new(&[("m.toml", &model(more))]);
        let plan = folder.run(&["plan", "m.toml", "--memory", "0.5"]);
        assert!(plan.code == 0 && plan.stdout.contains("cannot fit: 1"), "{more}: {} {}", plan.stdout, plan.stderr);
        let ran = folder.run(&["run", "m.toml", "--out", "o", "--memory", "0.5"]);
        let failed = failed(&folder, "o");
        assert!(ran.code == 1 && failed.len() == 1 && failed[0].contains(what), "{more}: {failed:?} {}", ran.stderr);
    }
}

#[test]
fn tasks_that_cannot_fit_are_refused_at_once_with_the_sum() {
    let text = "name = \"j\"\n[base]\ncluster.gpus = 64\nfidelity.mode = \"flow\"\n[base.workload]\nkind = \"collective\"\nop = \"all-to-all\"\n\
                algorithm = \"direct\"\nbytes = 1000000000\niterations = 160\n";
    let folder = Folder::new(&[("j.toml", text)]);
    let start = Instant::now();
    let plan = folder.run(&["plan", "j.toml", "--memory", "0.5"]);
    let took = start.elapsed();
    assert!(plan.code == 0 && plan.stdout.contains("cannot fit: 1"), "{} {}", plan.stdout, plan.stderr);
    for part in [" tasks of ", " messages among them, of ", "may take 512 MiB", "set fidelity.join = \"ranks\""] {
        assert!(plan.stdout.contains(part), "{part}: {}", plan.stdout);
    }
    assert!(took < Duration::from_secs(20), "{took:?}");
    // The cure that the message names.
    let joined = folder.run(&["plan", "j.toml", "--memory", "0.5", "--set", "fidelity.join=ranks"]);
    assert!(joined.code == 0 && joined.stdout.contains("cannot fit: 0"), "{} {}", joined.stdout, joined.stderr);
}

#[test]
fn closed_forms_need_no_memory_for_many_micro_batches() {
    let text = model("global_batch = 1048576\npp = 2\nanalytic = \"all\"");
    let folder = Folder::new(&[("m.toml", &text)]);
    let plan = folder.run(&["plan", "m.toml", "--memory", "0.5"]);
    assert!(plan.code == 0 && plan.stdout.contains("cannot fit: 0"), "{} {}", plan.stdout, plan.stderr);
}

#[test]
fn an_experiment_may_have_a_limit_of_its_own() {
    let text = model(
        "[sweep]\nmethod = \"list\"\n[[experiment]]\n\"limits.memory_gib\" = 0.01\n\"workload.global_batch\" = 64\n[[experiment]]\n\"workload.global_batch\" = 128",
    );
    let folder = Folder::new(&[("m.toml", &text)]);
    let ran = folder.run(&["run", "m.toml", "--out", "o"]);
    let failed = failed(&folder, "o");
    assert!(ran.code == 1 && failed.len() == 1 && failed[0].starts_with("0,"), "{failed:?} {}", ran.stderr);
    assert!(failed[0].contains("and may take 10 MiB"), "{failed:?}");
}

#[test]
fn with_more_memory_a_resumed_run_tries_again() {
    let folder = Folder::new(&[("m.toml", &model("global_batch = 64"))]);
    assert_eq!(folder.run(&["run", "m.toml", "--out", "whole"]).code, 0);
    let ran = folder.run(&["run", "m.toml", "--out", "o", "--memory", "0.01"]);
    assert!(ran.code == 1 && failed(&folder, "o").len() == 1, "{}", ran.stderr);
    let ran = folder.run(&["run", "m.toml", "--out", "o", "--resume"]);
    assert!(ran.code == 0 && ran.stderr.contains("limit of time (limits.wall_s) or memory: 1"), "{}", ran.stderr);
    assert!(folder.bytes("o/results.csv") == folder.bytes("whole/results.csv"));
}

#[test]
fn no_memory_is_no_number() {
    let folder = Folder::new(&[("a.toml", AXIS)]);
    let plan = folder.run(&["plan", "a.toml", "--memory", "much"]);
    assert!(plan.code == 2 && plan.stderr.contains("a number of GiB from 0.001"), "{}", plan.stderr);
}

/// `ulimit -v` leaves less than `--memory` would ask for; nothing is aborted.
#[cfg(target_os = "linux")]
#[test]
fn the_systems_limit_counts() {
    let folder = Folder::new(&[("a.toml", AXIS)]);
    let program = env!("CARGO_BIN_EXE_hyperfold");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("ulimit -v 2000000; exec {program} plan a.toml")]).current_dir(folder.path());
    let output = shell.output().expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("cannot fit: 2"), "{text} {output:?}");
}

#[test]
fn a_probe_estimates_time_by_simulating_some_experiments() {
    let sweep = "name = \"p\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }\n\
                 workload = { kind = \"traffic\", pattern = \"permutation\" }\n[axes]\n\
                 \"topology.kind\" = [\"clos\", \"fat-tree\"]\n\"workload.bytes\" = [100000, 200000, 400000]\n";
    let folder = Folder::new(&[("p.toml", sweep)]);
    let ran = folder.run(&["plan", "p.toml", "--probe", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let plan: serde_json::Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    let seconds = plan["seconds"].as_f64().unwrap();
    let range: Vec<f64> = plan["seconds_range"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    assert!(seconds > 0.0 && range[0] < seconds && seconds < range[1], "{plan}");
    // Loosely: machines that run tests are busy.
    assert!(seconds < 60.0, "{plan}");
    let said = folder.run(&["plan", "p.toml", "--probe"]).stdout;
    assert!(said.contains("estimated time: about ") && said.contains("simulating some experiments"), "{said}");
    assert!(!folder.file("out").exists(), "nothing is written");
}

/// A program of a million iterations or passes doubles its rows as it grows: the doubling must fit as well, and what surely comes is counted before it is made.
#[cfg(target_os = "linux")]
#[test]
fn rows_that_double_do_not_abort() {
    let job = "name = \"c\"\n[base]\nfidelity.mode = \"job\"\ncluster.gpus = 64\njobs.count = 10000000\n";
    let collective = "name = \"i\"\n[base]\ncluster.gpus = 8\nworkload = { kind = \"collective\", op = \"all-reduce\", bytes = 1000, iterations = 1000000 }\n";
    let cases = [
        (model("global_batch = 1048576\npp = 2\nmemory_check = false"), "operations"),
        (collective.to_string(), "tasks"),
        (job.to_string(), "the jobs"),
    ];
    for (text, what) in cases {
        let folder = Folder::new(&[("s.toml", &text)]);
        let program = env!("CARGO_BIN_EXE_hyperfold");
        for (command, ends) in [("plan s.toml", 0), ("run s.toml --engine cpu --out o", 1)] {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("ulimit -v 4000000; exec {program} {command}")]).current_dir(folder.path());
            let output = shell.output().expect("a shell");
            let said =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(ends), "{command}: {said}");
            assert!(said.contains("memory: it needs at least") && said.contains(what), "{command}: {said}");
        }
    }
}

#[test]
fn a_collective_with_more_transfers_than_there_may_be_is_refused_at_once() {
    let text = "name = \"a\"\nbase.cluster.gpus = 1000000\n\
                base.workload = { kind = \"collective\", op = \"all-to-all\", bytes = 1048576 }\n";
    let folder = Folder::new(&[("a.toml", text)]);
    let begin = std::time::Instant::now();
    let plan = folder.run(&["plan", "a.toml"]);
    assert!(plan.code == 2 && plan.stderr.contains("among 1000000 GPUs"), "{}{}", plan.stdout, plan.stderr);
    assert!(plan.stderr.contains("fewer GPUs"), "{}", plan.stderr);
    assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{:?}", begin.elapsed());
}

/// A layout by closed form takes little. Its timeline has tasks for every rank.
#[test]
fn a_timeline_that_does_not_fit_is_told_and_the_result_stays() {
    let text = "name = \"m\"\n[base]\ncluster.gpus = 1024\nlimits.memory_gib = 0.1\n[base.workload]\nkind = \"model\"\nmodel = \"gpt3-13b\"\ntp = 8\npp = 8\nglobal_batch = 1024\nanalytic = \"all\"\n";
    let folder = Folder::new(&[("m.toml", text)]);
    let ran = folder.run(&["run", "m.toml", "--out", "o", "--set", "output.trace=true"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("experiment 0 has no timeline: memory: it needs at least"), "{}", ran.stderr);
    let traced = folder.run(&["trace", "o", "0"]);
    assert!(traced.code == 2 && traced.stderr.contains("may take 102 MiB"), "{} {}", traced.code, traced.stderr);
}
