//! Clusters over days, from the command line: files with the same bytes on any threads and shards, what is wrong with input, the report.

use crate::support::program::Folder;

const SWEEP: &str = r#"
name = "cluster"
seed = 3
[base]
fidelity.mode = "job"
cluster.gpus = 64
topology = { kind = "rail-optimized", servers_per_pod = 2, oversubscription = 2 }
jobs = { count = 60, min_gpus = 2, max_gpus = 32, min_hours = 0.5, max_hours = 12.0, high_share = 0.2 }
failures = { host_mtbf_h = 200.0, straggler_mtbf_h = 300.0 }
output.cluster_jobs = true
[axes]
"scheduler.policy" = ["fcfs", "backfill", "sjf", "priority"]
"failures.hot_spares" = [0, 1]
[sweep]
replicas = 2
"#;
const FILES: [&str; 4] = ["results.csv", "results.parquet", "cluster_timeline.csv", "cluster_jobs.csv"];

fn ran(folder: &Folder, out: &str, more: &[&str]) {
    let done = folder.run(&[&["run", "s.toml", "--out", out, "--quiet"], more].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn threads_shards_and_resumes_change_no_byte() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    ran(&folder, "one", &["--jobs", "1"]);
    ran(&folder, "four", &["--jobs", "4"]);
    ran(&folder, "s0", &["--shard", "0/2"]);
    ran(&folder, "s1", &["--shard", "1/2"]);
    assert_eq!(folder.run(&["merge", "s1", "s0", "--out", "merged"]).code, 0);
    // A run that has lost the end of its journal.
    ran(&folder, "cut", &[]);
    let journal = folder.bytes("cut/journal.bin");
    std::fs::write(folder.file("cut/journal.bin"), &journal[..journal.len() * 2 / 3]).unwrap();
    ran(&folder, "cut", &["--resume"]);
    for file in FILES {
        for other in ["four", "merged", "cut"] {
            assert!(folder.bytes(&format!("one/{file}")) == folder.bytes(&format!("{other}/{file}")), "{other}/{file}");
        }
    }
    let page = folder.text("one/report.html");
    assert!(page.contains("\"cluster\":{"), "the report has the timeline");
    for command in
        [vec!["compare", "one"], vec!["plot", "one", "--x", "scheduler.policy", "--y", "goodput", "--out", "p.svg"]]
    {
        let done = folder.run(&command);
        assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
    }
}

#[test]
fn a_trace_of_jobs_is_the_same_from_a_run_and_from_its_results() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let done = folder.run(&["run", "s.toml", "--out", "o", "--set", "output.trace=true", "--jobs", "2"]);
    assert!(done.code == 0 && !done.stderr.contains("no effect"), "{}", done.stderr);
    ran(&folder, "plain", &[]);
    let of_run = folder.bytes("o/trace/3.pftrace");
    let done = folder.run(&["trace", "plain", "3"]);
    assert!(done.code == 0 && done.stdout.contains("states of jobs and servers"), "{}{}", done.stdout, done.stderr);
    assert!(folder.bytes("plain/trace/3.pftrace") == of_run, "the same bytes");
    for file in FILES {
        assert!(folder.bytes(&format!("o/{file}")) == folder.bytes(&format!("plain/{file}")), "{file}");
    }
    assert_eq!(std::fs::read_dir(folder.file("o/trace")).unwrap().count(), 16);
}

#[test]
fn shares_of_gpu_time_add_up_and_every_job_has_its_row() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    ran(&folder, "o", &[]);
    let parts = [
        "goodput",
        "slowdown_share",
        "checkpoint_share",
        "restart_share",
        "rollback_share",
        "idle_share",
        "down_share",
        "drained_share",
        "spare_share",
    ];
    let columns: Vec<Vec<f64>> =
        parts.iter().map(|p| folder.column("o/results.csv", p).iter().map(|x| x.parse().unwrap()).collect()).collect();
    for row in 0..16 {
        let sum: f64 = columns.iter().map(|c| c[row]).sum();
        assert!((sum - 1.0).abs() < 1e-9, "experiment {row}: {sum}");
    }
    assert_eq!(folder.column("o/cluster_jobs.csv", "job").len(), 16 * 60);
    assert!(folder.column("o/cluster_jobs.csv", "ended").iter().all(|e| e == "done"));
    assert!(folder.column("o/results.csv", "restarts").iter().any(|n| n != "0"));
}

#[test]
fn assumed_speeds_and_what_jobs_share_are_in_the_files() {
    // Two racks of two servers, 2 : 1; both jobs span both.
    let sweep = "name = \"c\"\n[base]\nfidelity.mode = \"job\"\ncluster.gpus = 32\n\
        topology = { kind = \"rail-optimized\", servers_per_pod = 2, oversubscription = 2 }\n\
        jobs = { source = \"trace\", path = \"t.csv\", comm_share = 0.5 }\n\
        scheduler = { placement = \"spread\" }\noutput.cluster_jobs = true\n\
        checkpoint = { gib_per_gpu = 8.0, storage_gbps = 100.0 }\n\
        [axes]\n\"checkpoint.writes_share\" = [\"nothing\", \"storage\"]\n";
    let jobs = "job,submit_s,gpus,duration_s\none,0,8,7200\ntwo,0,24,7200\n";
    let folder = Folder::new(&[("s.toml", sweep), ("t.csv", jobs)]);
    ran(&folder, "o", &[]);
    let of = |column: &str| folder.column("o/cluster_jobs.csv", column);
    // Alone, job `one` has a quarter of each rack, so room enough on the way out, and `two` three quarters; together they have twice too much.
    let slowdown: Vec<f64> = of("slowdown").iter().map(|s| s.parse().unwrap()).collect();
    assert!(slowdown[0] == 1.5 && (1.4..=1.5).contains(&slowdown[1]), "{slowdown:?}");
    let (company, worst) = (of("company_slowdown"), of("worst_company_slowdown"));
    assert_eq!((company[0].as_str(), worst[0].as_str(), worst[1].as_str()), ("1.5", "1.5", "1.2"));
    assert_eq!(of("worst_beside")[..2], ["two", "one"]);
    assert_eq!(of("worst_link")[0], "rack 0");
    let of = |column: &str| folder.column("o/results.csv", column);
    let (writes, checkpoints) = (of("write_slowdown"), of("checkpoint_share"));
    assert!(writes[0].is_empty() && writes[1].parse::<f64>().unwrap() > 1.2, "{writes:?}");
    assert!(checkpoints[1].parse::<f64>().unwrap() > checkpoints[0].parse::<f64>().unwrap(), "{checkpoints:?}");
    assert_eq!(folder.column("o/cluster_timeline.csv", "slowed_gpus")[0], "32");
}

#[test]
fn a_job_shrinks_after_a_failure_and_grows_back() {
    let sweep = "name = \"c\"\n[base]\nfidelity.mode = \"job\"\ncluster.gpus = 16\n\
        jobs = { source = \"trace\", path = \"t.csv\", min_share = 0.5 }\n\
        failures = { model = \"trace\", path = \"f.csv\" }\n\
        checkpoint = { cost_s = 0.0, restart_s = 0.0, interval_s = 600.0 }\n\
        [axes]\n\"jobs.grow\" = [\"never\", \"checkpoint\", \"at-once\"]\n";
    let files = [
        ("s.toml", sweep),
        ("t.csv", "submit_s,gpus,duration_s\n0,16,6000\n"),
        ("f.csv", "time_s,part,index,repair_s\n3600,host,1,600\n"),
    ];
    let folder = Folder::new(&files);
    ran(&folder, "o", &[]);
    assert_eq!(folder.column("o/results.csv", "shrinks"), ["1", "1", "1"]);
    assert_eq!(folder.column("o/results.csv", "grows"), ["0", "1", "1"]);
    // 2,400 s of work are left: all on half; 600 of them on half until their checkpoint; 300 until the server is back.
    let hours = folder.column("o/results.csv", "cluster_hours");
    let seconds: Vec<f64> = hours.iter().map(|h| (h.parse::<f64>().unwrap() * 3600.0).round()).collect();
    assert_eq!(seconds, [8400.0, 6600.0, 6300.0]);
    let none = folder.run(&["plan", "s.toml", "--set", "checkpoint.policy=none"]);
    assert!(none.stdout.contains("a job saves its state before it grows"), "{}{}", none.stdout, none.stderr);
}

#[test]
fn an_experiment_may_not_take_more_memory_than_is_said() {
    let many = SWEEP.replace("count = 60", "count = 100000");
    let folder = Folder::new(&[("s.toml", &many)]);
    let done = folder.run(&["run", "s.toml", "--out", "o", "--limit", "1", "--set", "limits.memory_gib=0.01"]);
    assert!(done.code == 1 && done.stderr.contains("may take 10 MiB"), "{}", done.stderr);
    assert!(!done.stderr.contains("no effect"), "{}", done.stderr);
}

#[test]
fn a_long_job_with_many_checkpoints_takes_no_time_to_simulate() {
    // A million hours, a checkpoint every second: 3,600 million of them.
    let sweep = "name = \"c\"\nbase.fidelity.mode = \"job\"\nbase.cluster.gpus = 8\nbase.jobs = { source = \"trace\", path = \"t.csv\" }\n\
        base.checkpoint = { interval_s = 1.0, cost_s = 1.0 }\nbase.limits.wall_s = 60.0\n";
    let folder = Folder::new(&[("s.toml", sweep), ("t.csv", "submit_s,gpus,duration_s\n0,8,3600000000\n")]);
    ran(&folder, "o", &[]);
    let goodput: f64 = folder.column("o/results.csv", "goodput")[0].parse().unwrap();
    assert!((goodput - 0.5).abs() < 1e-9, "{goodput}");
    // Writes that share the storage each begin and end by themselves: that takes most of an hour or more, and `plan` says so.
    let sets = ["--set", "checkpoint.gib_per_gpu=0.001", "--set", "checkpoint.writes_share=storage"];
    let done = folder.run(&[&["plan", "s.toml"], &sets[..]].concat());
    let time = done.stdout.lines().find(|line| line.starts_with("estimated time")).expect("it says how long");
    assert!(done.code == 0 && [" min", " h"].iter().any(|unit| time.contains(unit)), "{time}");
}

#[test]
fn sweeps_of_packets_have_no_columns_of_clusters() {
    let packets = "name = \"p\"\nbase.cluster = { gpus = 16 }\nbase.workload = { kind = \"collective\", op = \"all-reduce\", bytes = 10000 }\n";
    let folder = Folder::new(&[("s.toml", packets)]);
    ran(&folder, "o", &[]);
    assert!(!folder.text("o/results.csv").contains("goodput") && !folder.file("o/cluster_timeline.csv").exists());
}

#[test]
fn what_is_wrong_says_where_and_what_would_be_right() {
    let base = "name = \"c\"\nbase.fidelity.mode = \"job\"\n";
    let jobs = "submit_s,gpus,duration_s\n0,8,60\n";
    let says = |sweep: &str, trace: &str, failures: &str, part: &str| {
        let folder = Folder::new(&[("s.toml", &format!("{base}{sweep}")), ("t.csv", trace), ("f.csv", failures)]);
        let done = folder.run(&["run", "s.toml", "--out", "o"]);
        assert!(done.code == 2 && done.stderr.contains(part), "{sweep}: {}", done.stderr);
    };
    let on = "base.cluster.gpus = 16\nbase.jobs = { source = \"trace\", path = \"t.csv\" }\n";
    says("", jobs, "", "how many GPUs the cluster has");
    says(on, "submit_s,gpu,duration_s\n0,8,60\n", "", "t.csv:1: column `gpu` is unknown; did you mean `gpus`?");
    says(on, "submit_s,gpus,gpus,duration_s\n0,8,9,60\n", "", "t.csv:1: column `gpus` is there twice");
    says(on, "submit_s,gpus\n0,8\n", "", "column `duration_s` is missing");
    says(on, "submit_s,gpus,duration_s\n0,8,60\n5,eight,60\n", "", "t.csv:3: gpus is `eight`");
    says(on, "submit_s,gpus,duration_s\n0,24,60\n", "", "job 0 asks for 24 GPUs; 16 run jobs; give it fewer");
    says(on, "submit_s,gpus,duration_s\n", "", "there are no jobs below the header");
    let fails = format!("{on}base.failures = {{ model = \"trace\", path = \"f.csv\" }}\n");
    says(
        &fails,
        jobs,
        "time_s,part,index,repair_s\n5,disk,0,60\n",
        "f.csv:2: part is `disk`; it must be one of gpu, host",
    );
    says(&fails, jobs, "time_s,part,index,repair_s\n5,host,2,60\n", "there are 2 parts of kind host");
    let young = format!("{fails}base.checkpoint.policy = \"young\"\n");
    says(&young, jobs, "time_s,part,index,repair_s\n5,host,0,60\n", "Young's optimum needs mean times");
    for slowdown in ["2:1.1 1:1", "2:1.5", "1:2"] {
        says(&format!("{on}base.scheduler.slowdown = \"{slowdown}\"\n"), jobs, "", "racks ascending, the first `1:1`");
    }
    let twice = "job,submit_s,gpus,duration_s\na,0,8,60\nb,0,8,60\na,5,8,60\n";
    says(on, twice, "", "t.csv:4: job is `a`, as of an earlier line");
    says(on, "submit_s,gpus,duration_s\n0,8,1e10\n", "", "t.csv:2: duration_s is `1e10`");
    says(&format!("{on}base.scheduler.quotas = \"*:4\"\n"), jobs, "", "scheduler.quotas gives user 0 4 (as `*`)");
    says(&format!("{on}base.scheduler.quotas = \"0:8 1:8 0:16\"\n"), jobs, "", "user `0` has two quotas");
    let sizes = "base.cluster.gpus = 16\nbase.jobs = { count = 5, min_gpus = 32, max_gpus = 64 }\n";
    says(sizes, jobs, "", "job 0 asks for 32 GPUs; 16 run jobs; give it fewer");
    says(&format!("{on}base.failures.hot_spares = 2\n"), jobs, "", "one at least has to run jobs");
    let search =
        "base.cluster.gpus = 16\n[sweep]\nmethod = \"optimize\"\n[axes]\n\"scheduler.policy\" = [\"fcfs\", \"sjf\"]\n";
    says(search, jobs, "", "method = \"optimize\" knows experiments of packets");
}
