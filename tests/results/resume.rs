//! Runs that do not come to their end at once: killed, stopped, out of time. The files end as those of a run that did.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::small_runs::{MINUTES, SWEEP, arguments, folder, run, same_as_whole, started, two};
use crate::support::program::{Folder, command, seen};
use hyperfold_results::JournalReader;

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bytes() {
    let folder = folder();
    let mut killed = 0;
    for round in 0..5 {
        let jobs = if round % 2 == 0 { "1" } else { "2" };
        let done = std::fs::read_to_string(folder.file("o/results.csv")).map_or(0, |t| t.lines().count());
        let mut child = started(&folder, "s.toml", "o", &["--resume", "--jobs", jobs], done);
        // Another moment each time.
        sleep(Duration::from_millis(7 * round));
        child.kill().expect("it can be killed");
        killed += usize::from(child.wait().expect("it ends").code().is_none());
    }
    assert!(killed > 0, "it was always over before it could be killed");
    let ran = run(&folder, "o", &["--resume"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    same_as_whole(&folder, "o");
    let left: Vec<_> = std::fs::read_dir(folder.file("o"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .filter(|n| n.to_string_lossy().contains("part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let log = folder.text("o/events.jsonl");
    let events = log.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    assert!(events.filter(|e| e["event"] == "run_started").count() > 1, "the log goes on");
}

#[test]
fn resume_runs_what_is_new_and_writes_again_what_is_complete() {
    let folder = folder();
    std::fs::create_dir(folder.file("empty")).unwrap();
    for out in ["absent", "empty"] {
        assert_eq!(run(&folder, out, &["--resume"]).code, 1);
        same_as_whole(&folder, out);
    }
    std::fs::remove_file(folder.file("empty/results.csv")).unwrap();
    folder.write("empty/flows.csv", "nonsense");
    let again = run(&folder, "empty", &["--resume"]);
    assert_eq!(again.code, 1, "as the run itself");
    assert!(again.stderr.contains("all 72 experiments are complete; the files are written again"), "{}", again.stderr);
    same_as_whole(&folder, "empty");
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("empty/manifest.json")).unwrap();
    assert_eq!((&manifest["from_journal"], &manifest["outcome"]), (&72.into(), &"complete".into()));
}

#[test]
fn another_run_is_refused_with_what_differs() {
    let folder = folder();
    let before = folder.bytes("whole/journal.bin");
    let cases: &[(&[&str], &str)] = &[
        (&["--set", "topology.buffer_mib=8"], "base.topology.buffer_mib: 4.0 there, 8.0 here"),
        (&["--limit", "10"], "--limit: none there, 10 here"),
        (&["--shard", "1/2"], "--shard: none there, 1/2 here"),
    ];
    for (args, told) in cases {
        let ran = run(&folder, "whole", &[&["--resume"], *args].concat());
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(
            ran.stderr.contains(told) && ran.stderr.contains("whole: the folder holds another run"),
            "{args:?}: {}",
            ran.stderr
        );
    }
    let ran = run(&folder, "whole", &[]);
    assert!(ran.code == 2 && ran.stderr.contains("--resume"), "{}", ran.stderr);
    folder.write("s.toml", &SWEEP.replace("[100, 200, 400]", "[100, 200]"));
    let ran = run(&folder, "whole", &["--resume"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("axes.\"topology.link_gbps\": [100, 200, 400] there, [100, 200] here"),
        "{}",
        ran.stderr
    );
    std::fs::create_dir(folder.file("mine")).unwrap();
    folder.write("mine/x", "x");
    let ran = run(&folder, "mine", &["--resume"]);
    assert!(ran.code == 2 && ran.stderr.contains("no journal.bin"), "{}", ran.stderr);
    assert!(folder.bytes("whole/journal.bin") == before);
    same_as_whole(&folder, "whole");
}

#[test]
fn the_limit_of_time_is_run_again() {
    let folder = Folder::new(&[("two.toml", &two(20_000_000))]);
    let start = |out: &str, more: &[&str]| folder.run(&arguments("two.toml", out, more));
    assert_eq!(start("whole", &[]).code, 0);
    assert_eq!(start("o", &["--set", "limits.wall_s=0.001"]).code, 1);
    assert!(folder.column("o/failed.csv", "error")[0].starts_with("limit: wall_s = 0.001 reached"));
    let ran = start("o", &["--resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("run again, after a limit of time (limits.wall_s) or memory: 1 experiment"),
        "{}",
        ran.stderr
    );
    for file in ["results.csv", "results.parquet"] {
        assert!(folder.bytes(&format!("o/{file}")) == folder.bytes(&format!("whole/{file}")), "{file}");
    }
    assert!(!folder.file("o/failed.csv").exists(), "it did not fail any more");
}

#[test]
fn two_runs_cannot_share_a_folder_and_a_dead_one_holds_none() {
    let folder = Folder::new(&[("two.toml", &two(MINUTES))]);
    let mut child = started(&folder, "two.toml", "o", &[], 1);
    for more in [&[][..], &["--resume"]] {
        let ran = folder.run(&arguments("two.toml", "o", more));
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("another hyperfold is writing to this folder"), "{}", ran.stderr);
    }
    let merge = folder.run(&["merge", "o", "--out", "m"]);
    assert!(merge.code == 2 && merge.stderr.contains("another hyperfold"), "{}", merge.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    let merge = folder.run(&["merge", "o", "--out", "m", "--quiet"]);
    assert_eq!(merge.code, 1, "now it can be read, though it is not complete: {}", merge.stderr);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_cleanly_and_twice_at_once() {
    let folder = Folder::new(&[("two.toml", &two(MINUTES))]);
    for times in [1, 2] {
        let out = format!("o{times}");
        let child = started(&folder, "two.toml", &out, &[], 1);
        for _ in 0..times {
            let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
            assert!(sent.success());
            sleep(Duration::from_millis(5));
        }
        let ran = seen(&["run"], child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        assert!(ran.stderr.contains("stopping"), "{}", ran.stderr);
        let reader = JournalReader::open(&folder.file(&out)).expect("the folder is free again");
        assert!(!reader.parts().is_empty(), "what was complete is in the journal");
    }
}

/// The small one of two finishes while the large one, which has the first row, goes on.
#[cfg(unix)]
#[test]
fn what_has_finished_is_seen_before_the_run_ends_and_after_it_was_killed() {
    let large_first = two(MINUTES).replace(&format!("[20000, {MINUTES}]"), &format!("[{MINUTES}, 20000]"));
    let folder = Folder::new(&[("two.toml", &large_first)]);
    for (signal, more) in [("-KILL", &[][..]), ("-TERM", &["--resume"])] {
        let mut child = started(&folder, "two.toml", "o", more, 0);
        let from = Instant::now();
        while !std::fs::read_to_string(folder.file("o/events.jsonl")).is_ok_and(|t| t.contains("\"finished\"")) {
            assert!(from.elapsed() < Duration::from_secs(120), "nothing has finished");
            sleep(Duration::from_millis(5));
        }
        // It has begun to run, with all its files open.
        sleep(Duration::from_millis(200));
        let report = |state: &str| {
            assert_eq!(folder.run(&["report", "o"]).code, 0);
            let page = folder.text("o/report.html");
            assert!(page.contains(&format!("{state}: 1 of 2 experiments has no result")), "{state} {signal}");
        };
        report("the run is still going on");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
        let status = child.wait().expect("it ends");
        if signal == "-TERM" {
            assert_eq!(status.code(), Some(130));
            assert!(
                folder.text("o/manifest.json").contains("\"outcome\": \"interrupted\"")
                    && folder.text("o/results.csv").lines().count() == 2
            );
            report("the run is incomplete");
        } else {
            assert_eq!(folder.text("o/results.csv").lines().count(), 1, "its turn has not come");
            report("the run was killed");
        }
        let compare = folder.run(&["compare", "o", "--fail-if", "makespan_ns < 0"]);
        assert_eq!(compare.code, 3, "one of two passes, the other is not there: {}", compare.stdout);
        assert!(
            compare.stdout.contains("1 of 2 experiments has no result") && compare.stdout.contains("20000"),
            "{}",
            compare.stdout
        );
        assert_eq!(folder.run(&["compare", "o"]).code, 0);
    }
}

/// One signal is enough, whatever the run is doing: reading, preparing, simulating without folding.
#[cfg(unix)]
#[test]
fn one_signal_ends_a_large_run_soon() {
    let simulating = "workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 100000000 }\nfidelity.fast_forward = \"off\"";
    let preparing = "workload = { kind = \"traffic\", pattern = \"all-to-all\", ranks = 2048, bytes = 1000 }";
    for (what, signal) in [(simulating, "-TERM"), (simulating, "-INT"), (preparing, "-TERM"), (preparing, "-INT")] {
        let sweep = format!("name = \"large\"\n[base]\ncluster = {{ gpus = 4096, gpus_per_server = 1 }}\n{what}\n");
        let folder = Folder::new(&[("s.toml", &sweep)]);
        for after in [100, 1500] {
            let args = arguments("s.toml", "o", &["--resume"]);
            let child = command(folder.path(), &args)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts");
            if what == simulating && after == 1500 {
                let from = Instant::now();
                while !std::fs::read_to_string(folder.file("o/events.jsonl"))
                    .is_ok_and(|t| t.contains("\"run_started\""))
                {
                    assert!(from.elapsed() < Duration::from_secs(120), "it does not begin");
                    sleep(Duration::from_millis(5));
                }
            }
            sleep(Duration::from_millis(after));
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill is there");
            assert!(sent.success());
            let asked = Instant::now();
            let ran = seen(&args, child.wait_with_output().expect("it ends"));
            assert!(asked.elapsed() < Duration::from_secs(5), "{signal} after {after} ms: {:?}", asked.elapsed());
            assert_eq!(ran.code, 130, "{signal} after {after} ms: {}", ran.stderr);
            assert!(!folder.file("o/failed.csv").exists(), "what was stopped has not failed");
        }
    }
}

/// Processor seconds of the children that this process has waited for: fields 16 and 17 of its status line, in hundredths.
#[cfg(target_os = "linux")]
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    // The name, in parentheses, may have spaces; what follows begins with field 3.
    let fields: Vec<&str> = stat.rsplit(')').next().expect("it has a name").split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
}

/// What the product costs beside the simulation: expanding, preparing, batching, the journal, every file. Processor time, so that neighbours on
/// the machine do not count. Alone, because other tests' children would.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "soak: processor time must be this test's alone; scripts/test.sh --soak and CI run it"]
fn soak_ten_thousand_small_experiments_cost_little() {
    const SMALL: &str = "name = \"small\"\n[base]\ncluster = { gpus = 16 }\nworkload = { kind = \"traffic\", pattern = \"ring\", stride = 8, bytes = 2000 }\n\
                         [axes]\n\"topology.link_delay_ns\" = { start = 500, stop = 10499, step = 1 }\n";
    let folder = Folder::new(&[("s.toml", SMALL)]);
    let before = children_cpu_s();
    assert_eq!(run(&folder, "o", &["--quiet", "--jobs", "2"]).code, 0);
    let cpu_s = children_cpu_s() - before;
    assert_eq!(folder.column("o/results.csv", "exp_id").len(), 10_000);
    let cost_ms = cpu_s / 10_000.0 * 1e3;
    println!("{cost_ms:.3} ms of processor time an experiment, simulation included");
    // A loose bound, because a slow machine takes twice the time of another: 0.3 to 1.1 ms were measured. The case `many-small` of scripts/ledger.py counts
    // instructions.
    assert!(cost_ms < 4.0, "{cost_ms} ms of processor time an experiment");

    // Nothing is simulated again. What is left, expanding, planning and writing every file, is about a third of such a run, and machines differ. The case
    // `resume` of scripts/ledger.py counts instructions.
    let before = children_cpu_s();
    assert_eq!(run(&folder, "o", &["--quiet", "--resume"]).code, 0);
    let again_ms = (children_cpu_s() - before) / 10_000.0 * 1e3;
    println!("{again_ms:.3} ms of processor time to carry on with an experiment that is complete");
    assert!(
        again_ms < cost_ms * 0.6,
        "{again_ms} ms of processor time to carry on with a complete experiment, {cost_ms} ms to run it"
    );
}
