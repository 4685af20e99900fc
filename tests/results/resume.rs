//! Runs that do not come to their end at once: killed, stopped, out of disk, cut into shards. The files end as those of a run that did.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::program::{Folder, Ran, command, seen};
use hyperfold::results::{JournalReader, Ps, ResultDir, ResultWriter};

/// Files that must be the same, byte by byte.
const FILES: [&str; 6] = ["results.csv", "results.parquet", "flows.csv", "links.csv", "rtt.csv", "failed.csv"];

/// 72 experiments of milliseconds, in which all files have rows: the largest fail of their limit.
const SWEEP: &str = r#"
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
fn folder() -> Folder {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let ran = run(&folder, "whole", &[]);
    assert_eq!(ran.code, 1, "some experiments fail: {}", ran.stderr);
    for file in FILES {
        assert!(folder.bytes(&format!("whole/{file}")).split(|b| *b == b'\n').count() > 2, "{file} has no rows");
    }
    folder
}

fn arguments<'a>(sweep: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", sweep, "--engine", "cpu", "--out", out], more].concat()
}

fn run(folder: &Folder, out: &str, more: &[&str]) -> Ran {
    folder.run(&arguments("s.toml", out, more))
}

fn same_as_whole(folder: &Folder, out: &str) {
    for file in FILES {
        assert!(
            folder.bytes(&format!("{out}/{file}")) == folder.bytes(&format!("whole/{file}")),
            "{file} of {out} differs"
        );
    }
}

/// Starts a run and gives it once `results.csv` has more than so many lines, or the run has ended.
fn started(folder: &Folder, sweep: &str, out: &str, more: &[&str], results: usize) -> Child {
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
fn two(bytes: u64) -> String {
    let incast = "kind = \"traffic\", pattern = \"incast\", fan_in = 12, receivers = 2";
    let cluster = "gpus = 16, gpus_per_server = 1, nics_per_server = 1";
    format!(
        "name = \"two\"\n[base]\ncluster = {{ {cluster} }}\ntopology = {{ kind = \"clos\", hosts_per_leaf = 8, spines = 8 }}\n\
         workload = {{ {incast} }}\n[axes]\n\"workload.bytes\" = [20000, {bytes}]\n"
    )
}

/// Of this many it takes minutes, if nobody stops it.
const MINUTES: u64 = 4_000_000_000;

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

#[test]
fn a_journal_whose_beginning_is_damaged_is_mended() {
    let folder = folder();
    let whole = folder.bytes("whole/journal.bin");
    // The name, and for each of the two records that say whose it is a mark, a length, a number, a checksum, and its bytes.
    let first = 16 + 40 + u64::from_le_bytes(whole[24..32].try_into().unwrap()) as usize;
    for at in [0, 7, 15, 16, 23, 24, 32, 40, 55, 56, 100, first - 1, first, first + 30, 2 * first - 17] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x15;
        std::fs::write(folder.file("whole/journal.bin"), damaged).unwrap();
        let merge = folder.run(&["merge", "whole", "--out", &format!("m{at}")]);
        assert!(merge.code < 2 && merge.stderr.contains("it is damaged"), "byte {at}: {}", merge.stderr);
        assert_eq!(run(&folder, "whole", &["--resume", "--limit", "10"]).code, 2, "byte {at}");
        let ran = run(&folder, "whole", &["--resume"]);
        assert!(ran.stderr.contains("its beginning is mended"), "byte {at}: {}", ran.stderr);
        assert!(ran.stderr.contains("all 72 experiments are complete"), "byte {at}: {}", ran.stderr);
        assert!(folder.bytes("whole/journal.bin") == whole, "byte {at}");
    }
    same_as_whole(&folder, "whole");
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

/// A limit on the length of files is how a full disk is had without one: writing fails in the middle of a run.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_and_the_run_goes_on_when_there_is_room() {
    let folder = folder();
    // In blocks of 1 KiB for bash; what exceeds it is an error for a program that ignores the signal, as this shell makes it do.
    let script = format!(
        "trap '' XFSZ; ulimit -f 600; exec {} run s.toml --engine cpu --out o",
        env!("CARGO_BIN_EXE_hyperfold")
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().expect("bash is there");
    let ran = seen(&["run"], output);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot write o/") && ran.stderr.contains("File too large"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("of 72 experiments are safe in o; run the same command with --resume"),
        "{}",
        ran.stderr
    );
    let ran = run(&folder, "o", &["--resume"]);
    assert!(ran.code == 1 && ran.stderr.contains("of 72 experiments are complete"), "{}", ran.stderr);
    same_as_whole(&folder, "o");

    // The disk may be the one that messages go to.
    if cfg!(target_os = "linux") {
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        for (stdout, stderr) in [(Stdio::null(), full().into()), (full().into(), Stdio::null())] {
            let status =
                command(folder.path(), &arguments("s.toml", "o", &["--resume"])).stdout(stdout).stderr(stderr).status();
            assert_eq!(status.expect("the program starts").code(), Some(1));
        }
        same_as_whole(&folder, "o");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_bad_input() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    // Nobody can make a folder there, not even the superuser.
    let ran = run(&folder, "/proc/results", &[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("/proc/results: the folder cannot be created"), "{}", ran.stderr);
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
    // Half a millisecond is for optimised builds; overflow checks and debug assertions cost what they cost.
    let bound = if cfg!(debug_assertions) { 1.0 } else { 0.5 };
    assert!(cost_ms < bound, "{cost_ms} ms of processor time an experiment");

    let before = children_cpu_s();
    assert_eq!(run(&folder, "o", &["--quiet", "--resume"]).code, 0);
    let again_ms = (children_cpu_s() - before) / 10_000.0 * 1e3;
    assert!(again_ms < bound / 5.0, "{again_ms} ms of processor time to carry on with an experiment that is complete");
}

/// Three shards, on different numbers of threads.
fn shards(folder: &Folder) {
    for (i, jobs) in ["1", "2", "3"].iter().enumerate() {
        let shard = format!("{i}/3");
        run(folder, &format!("shard{i}"), &["--shard", &shard, "--jobs", jobs, "--quiet"]);
    }
}

#[test]
fn shards_merge_in_any_order_to_the_whole() {
    let folder = folder();
    shards(&folder);
    let orders: [&[&str]; 3] =
        [&["shard0", "shard1", "shard2"], &["shard2", "shard0", "shard1", "shard0"], &["m0", "shard1", "m1", "whole"]];
    for (i, order) in orders.iter().enumerate() {
        let out = format!("m{i}");
        let ran = folder.run(&[&["merge"], *order, &["--out", &out]].concat());
        assert_eq!(ran.code, 1, "some failed, as in the whole: {}", ran.stderr);
        assert!(!ran.stderr.contains("missing"), "{}", ran.stderr);
        same_as_whole(&folder, &out);
        let counts = |m: &str| {
            let m: serde_json::Value = serde_json::from_slice(&folder.bytes(&format!("{m}/manifest.json"))).unwrap();
            ["name", "sweep", "experiments", "selected", "ok", "oom", "failed", "outcome", "engine"]
                .map(|k| m[k].clone())
        };
        assert_eq!(counts(&out), counts("whole"));
        assert_eq!(folder.column(&format!("{out}/stats.csv"), "exp_id"), folder.column("whole/stats.csv", "exp_id"));
    }
    assert!(folder.bytes("m0/stats.csv") == folder.bytes("m1/stats.csv"), "nor does the order decide statistics");
    // What was merged is a run like any other.
    assert!(run(&folder, "m0", &["--resume"]).stderr.contains("all 72 experiments are complete"));
    same_as_whole(&folder, "m0");
}

#[test]
fn what_is_missing_is_named_and_can_be_merged_or_run_later() {
    let folder = folder();
    shards(&folder);
    let ran = folder.run(&["merge", "shard0", "shard2", "--out", "m", "--quiet"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("24 of 72 experiments are missing: 1, 4, 7, 10"), "{}", ran.stderr);
    let rows = folder.column("m/results.csv", "exp_id");
    assert_eq!(rows, (0..72).filter(|i| i % 3 != 1).map(|i| i.to_string()).collect::<Vec<_>>());
    let gate = ["--fail-if", "status == \"nonsense\""];
    let compare = folder.run(&[&["compare", "m"][..], &gate].concat());
    assert!(compare.code == 3 && compare.stdout.contains("24 of 72 experiments have no result"), "{}", compare.stdout);
    assert!(folder.text("m/report.html").contains("24 of 72 experiments have no result"));
    let ran = folder.run(&["merge", "shard1", "--out", "m", "--quiet"]);
    assert!(ran.code == 1 && !ran.stderr.contains("missing"), "{}", ran.stderr);
    same_as_whole(&folder, "m");
    assert_eq!(folder.run(&[&["compare", "m"][..], &gate].concat()).code, 0, "now all are there");
    assert!(folder.text("m/report.html").contains("The run is complete."));

    folder.run(&["merge", "shard1", "--out", "n", "--quiet"]);
    let ran = run(&folder, "n", &["--resume"]);
    assert!(ran.stderr.contains("24 of 72 experiments are complete; running the other 48"), "{}", ran.stderr);
    same_as_whole(&folder, "n");
}

#[test]
fn timelines_of_shards_are_merged_too() {
    let traced = ["--set", "output.trace=true", "--limit", "7", "--quiet"];
    let folder = Folder::new(&[("s.toml", &SWEEP.replace("[20000, 50000]", "[2000]"))]);
    run(&folder, "whole", &traced);
    for shard in ["0/2", "1/2"] {
        run(&folder, &format!("shard{}", &shard[..1]), &[&traced[..], &["--shard", shard]].concat());
    }
    let timelines = |out: &str| -> Vec<(String, Vec<u8>)> {
        let Ok(files) = std::fs::read_dir(folder.file(&format!("{out}/trace"))) else { return Vec::new() };
        let mut all: Vec<_> = files
            .map(|f| f.unwrap())
            .map(|f| (f.file_name().into_string().unwrap(), std::fs::read(f.path()).unwrap()))
            .collect();
        all.sort();
        all
    };
    let whole = timelines("whole");
    assert_eq!((whole.len(), timelines("shard0").len(), timelines("shard1").len()), (7, 4, 3));
    assert_eq!(folder.run(&["merge", "shard1", "--out", "m", "--quiet"]).code, 1, "the other shard is missing");
    assert_eq!(timelines("m").len(), 3);
    // One that was taken away is none, wherever its experiment comes from.
    std::fs::remove_file(folder.file("shard0/trace/2.pftrace")).unwrap();
    assert_eq!(folder.run(&["merge", "shard0", "whole", "--out", "m", "--quiet"]).code, 0);
    assert!(timelines("m") == whole);
}

/// A folder with one experiment of `from`, changed.
fn forged(folder: &Folder, from: &str, out: &str) {
    let reader = JournalReader::open(&folder.file(from)).unwrap();
    let (&exp_id, &part) = reader.parts().iter().next().unwrap();
    let mut finished = reader.read(part).unwrap();
    finished.record.makespan = Some(Ps(1));
    let (mut writer, _) =
        ResultWriter::open(ResultDir::create(&folder.file(out)).unwrap(), reader.run(), vec![exp_id]).unwrap();
    writer.add(finished).unwrap();
    writer.finish().unwrap();
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let folder = folder();
    run(&folder, "other", &["--set", "topology.buffer_mib=8", "--quiet"]);
    forged(&folder, "whole", "forged");
    std::fs::create_dir(folder.file("empty")).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["whole", "other"], "base.topology.buffer_mib: 4.0 there, 8.0 here"),
        (&["forged", "whole"], "experiment 0 differs between forged and whole: makespan_ns is `0.001` and `"),
        (&["whole", "forged"], "experiment 0 differs between whole and forged: makespan_ns is `"),
        (&["whole", "empty"], "empty: there is no run here"),
        (&["whole", "absent"], "absent: there is no run here"),
    ];
    for (dirs, told) in cases {
        let ran = folder.run(&[&["merge"], *dirs, &["--out", "m"]].concat());
        assert_eq!(ran.code, 2, "{dirs:?}");
        assert!(ran.stderr.contains(told), "{dirs:?}: {}", ran.stderr);
        assert!(!folder.file("m").exists(), "{dirs:?} left something");
    }
    for (args, told) in [
        (&["whole", "--out", "whole"][..], "is the folder to merge"),
        (&["whole", "--out", "other"], "holds another run"),
    ] {
        let ran = folder.run(&[&["merge"], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(told), "{}", ran.stderr);
    }
    // A kill has cut the forged one's only experiment off: then it only lacks it.
    let journal = folder.bytes("forged/journal.bin");
    std::fs::write(folder.file("forged/journal.bin"), &journal[..journal.len() - 1]).unwrap();
    let ran = folder.run(&["merge", "forged", "whole", "--out", "m", "--quiet"]);
    assert!(ran.code == 1 && ran.stderr.contains("ends within a record"), "{}", ran.stderr);
    same_as_whole(&folder, "m");
}

/// Needs an adapter, a real one or one in software; without any it fails, as every GPU test does.
#[test]
fn shards_of_different_engines_merge_to_the_whole() {
    let folder = folder();
    run(&folder, "cpu", &["--shard", "0/2", "--quiet"]);
    let gpu = folder.run(&["run", "s.toml", "--engine", "gpu", "--out", "gpu", "--shard", "1/2", "--quiet"]);
    assert!(gpu.code < 2, "{}", gpu.stderr);
    folder.run(&["merge", "gpu", "cpu", "--out", "m", "--quiet"]);
    same_as_whole(&folder, "m");
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("m/manifest.json")).unwrap();
    assert_eq!(manifest["engine"], "cpu, gpu");
}

/// Results went on into a folder that nobody could see, and the run called them safe.
#[cfg(unix)]
#[test]
fn a_folder_that_is_removed_or_replaced_during_the_run_is_told() {
    for replaced in [false, true] {
        let folder = Folder::new(&[("two.toml", &two(MINUTES))]);
        let child = started(&folder, "two.toml", "o", &[], 1);
        std::fs::rename(folder.file("o"), folder.file("elsewhere")).unwrap();
        if replaced {
            std::fs::create_dir(folder.file("o")).unwrap();
        }
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let ran = seen(&["run"], child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("the folder was removed or replaced"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("safe"), "{}", ran.stderr);
    }
}

#[test]
fn what_a_damaged_folder_holds_is_recovered() {
    let folder = folder();
    let mut journal = folder.bytes("whole/journal.bin");
    let middle = journal.len() / 2;
    journal[middle] ^= 4;
    std::fs::create_dir(folder.file("damaged")).unwrap();
    std::fs::write(folder.file("damaged/journal.bin"), &journal).unwrap();
    let ran = folder.run(&["recover", "damaged"]);
    assert_eq!(ran.code, 1, "one is missing: {}", ran.stderr);
    assert!(
        ran.stderr.contains("it is damaged: bytes") && ran.stdout.contains("recovered: 71 experiments"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    assert!(folder.bytes("damaged/journal.bin") == journal, "it is only read");
    let resumed = run(&folder, "damaged-recovered", &["--resume"]);
    // The sweep has an experiment that fails.
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    same_as_whole(&folder, "damaged-recovered");
}

/// A file that may not grow is an error with its remedy, not a signal that ends the process.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_file_sizes_is_told() {
    let folder = folder();
    let program = env!("CARGO_BIN_EXE_hyperfold");
    let sweep = arguments("s.toml", "o", &[]).join(" ");
    let script = format!("ulimit -f 100; exec {program} {sweep}");
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("ulimit -f") && text.contains("--resume"), "{text}");
}

/// Loss is told by everyone who reads the folder, and with `--quiet`.
#[test]
fn what_a_journal_has_lost_is_told_by_every_command() {
    let folder = folder();
    let whole = folder.bytes("whole/journal.bin");
    let readers: [(&[&str], i32); 5] = [
        (&["compare", "whole"], 0),
        (&["compare", "whole", "--json"], 0),
        (&["report", "whole"], 0),
        (&["trace", "whole", "0"], 0),
        (&["merge", "whole", "--out", "m", "--quiet"], 1),
    ];
    let tells = |what: &str| {
        for (args, _) in readers {
            let ran = folder.run(args);
            assert!(ran.stderr.contains("warning:") && ran.stderr.contains(what), "{args:?}: {}", ran.stderr);
            let _ = std::fs::remove_dir_all(folder.file("m"));
        }
    };
    for (args, code) in readers {
        let ran = folder.run(args);
        assert!(ran.code == code && !ran.stderr.contains("journal"), "{args:?}: {}", ran.stderr);
        let _ = std::fs::remove_dir_all(folder.file("m"));
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    std::fs::write(folder.file("whole/journal.bin"), &flipped).unwrap();
    tells("it is damaged: bytes");
    std::fs::write(folder.file("whole/journal.bin"), &whole[..whole.len() - 9]).unwrap();
    tells("it ends within a record");
    let quiet = run(&folder, "whole", &["--resume", "--quiet"]);
    assert!(quiet.stderr.contains("warning:") && quiet.stderr.contains("it ends within a record"), "{}", quiet.stderr);
    assert!(folder.file("whole/journal-damaged.bin").exists());
    tells("journal-damaged.bin: it keeps ");
    let again = run(&folder, "whole", &["--resume", "--quiet"]);
    assert!(again.stderr.contains("journal-damaged.bin: it keeps "), "{}", again.stderr);
    same_as_whole(&folder, "whole");
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
