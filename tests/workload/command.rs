//! `hyperfold workload` as a user meets it.

use crate::support::program;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::program::Ran;

fn hyperfold(dir: &Path, args: &[&str]) -> Ran {
    program::hyperfold(dir, &[&["workload"], args].concat())
}

fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(file)
}

/// A folder with the file in it.
fn with(file: &str, name: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::copy(corpus(file), root.path().join(name)).unwrap();
    root
}

#[test]
fn inspect_says_what_is_in_a_file() {
    let root = with("simai/ok-pipeline.txt", "w.txt");
    let told = hyperfold(root.path(), &["inspect", "w.txt"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    insta::assert_snapshot!(told.stdout);
    let told = hyperfold(root.path(), &["inspect", "w.txt", "--json", "--ranks", "8"]);
    let json: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&json["ranks"], &json["format"], &json["sends"]), (&8.into(), &"simai".into(), &16.into()));
    assert_eq!(json["communication"].as_array().unwrap().len(), 2);
}

#[test]
fn convert_writes_where_out_says_and_nothing_over_what_is_there() {
    let root = with("simai/ok-new-header.txt", "w.txt");
    let to_chakra = ["convert", "w.txt", "--to", "chakra", "--out", "traces"];
    let done = hyperfold(root.path(), &to_chakra);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(root.path().join("traces/traces.3.et").is_file() && root.path().join("traces/comm_group.json").is_file());
    let refused = hyperfold(root.path(), &to_chakra);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("exists already") && refused.stderr.contains("--force"), "{}", refused.stderr);
    let forced = hyperfold(root.path(), &[&to_chakra[..], &["--force"]].concat());
    assert_eq!(forced.code, 0, "{}", forced.stderr);
    let compute = |path: &str| {
        let told = hyperfold(root.path(), &["inspect", path, "--json"]).stdout;
        let json: serde_json::Value = serde_json::from_str(&told).unwrap();
        (json["compute_ps"].clone(), json["communication"].clone(), json["free_makespan_ps"].clone())
    };
    assert_eq!(compute("traces"), compute("w.txt"));
    assert_eq!(compute("traces/traces"), compute("w.txt"), "by prefix");
}

#[test]
fn a_folder_with_one_trace_is_that_trace_whatever_its_name() {
    let root = with("simai/ok-new-header.txt", "w.txt");
    let done = hyperfold(root.path(), &["convert", "w.txt", "--to", "chakra", "--out", "traces"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let sweep = "name = \"c\"\n[base]\ncluster = { gpus = 4, gpus_per_server = 4 }\n[base.workload]\nkind = \"chakra\"\npath = \"one\"\n";
    fs::write(root.path().join("c.toml"), sweep).unwrap();
    fs::create_dir(root.path().join("one")).unwrap();
    for name in ["traces.3.et", "step.et"] {
        let file = root.path().join("one").join(name);
        fs::copy(root.path().join("traces/traces.3.et"), &file).unwrap();
        let told = |path: &str| {
            let told = hyperfold(root.path(), &["inspect", path, "--ranks", "4"]);
            assert_eq!(told.code, 0, "{path}: {}", told.stderr);
            told.stdout
        };
        assert_eq!(told("one"), told(&format!("one/{name}")));
        let plan = program::hyperfold(root.path(), &["plan", "c.toml"]);
        assert!(
            plan.code == 0 && plan.stdout.contains("one trace stands for 4 ranks"),
            "{}{}",
            plan.stdout,
            plan.stderr
        );
        fs::remove_file(file).unwrap();
    }
    // Below subfolders, as archives of traces come; `inspect` without ranks says what a run does with one.
    fs::create_dir_all(root.path().join("one/run/data")).unwrap();
    fs::copy(root.path().join("traces/traces.3.et"), root.path().join("one/run/data/a.et")).unwrap();
    let told = hyperfold(root.path(), &["inspect", "one"]);
    assert!(told.code == 0 && told.stderr.contains("repeats it on each GPU"), "{}{}", told.stdout, told.stderr);
    let plan = program::hyperfold(root.path(), &["plan", "c.toml"]);
    assert!(plan.code == 0 && plan.stdout.contains("one trace stands for 4 ranks"), "{}{}", plan.stdout, plan.stderr);
}

#[test]
fn rescale_multiplies() {
    let root = with("htsim/ok-flows.cm", "m.cm");
    let done = hyperfold(
        root.path(),
        &["rescale", "m.cm", "--bytes", "3", "--compute", "1/2", "--to", "ns3", "--out", "f.txt"],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        fs::read_to_string(root.path().join("f.txt")).unwrap(),
        "2\n0 1 3 100 3000 0.000000000000\n1 2 3 100 6000 0.000000750000\n"
    );
}

#[test]
fn what_cannot_be_is_exit_2_and_says_why() {
    let root = with("htsim/ok-triggers.cm", "m.cm");
    fs::write(root.path().join("notes.txt"), "nothing\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["inspect", "absent"], "no such file"),
        (&["inspect", "notes.txt"], "--format simai|chakra|htsim|goal"),
        (&["inspect", "notes.txt", "--format", "goal"], "notes.txt:1: `nothing` is outside of a block"),
        (&["inspect", "m.cm", "--ranks", "5"], "the file says Nodes 4"),
        (&["convert", "m.cm", "--to", "ns3", "--out", "f"], "a flow file cannot say it"),
        (&["convert", "m.cm", "--to", "simai", "--out", "f"], "SimAI's workload text cannot say it"),
        (&["convert", "m.cm", "--to", "chakra"], "--out"),
        (&["rescale", "m.cm", "--to", "chakra", "--out", "f"], "--bytes, --compute or --ranks"),
        (&["rescale", "m.cm", "--bytes", "0", "--to", "chakra", "--out", "f"], "is not a factor"),
    ];
    for (args, named) in cases {
        let output = hyperfold(root.path(), args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
    }
    assert!(!root.path().join("f").exists());
}

#[test]
fn a_simai_file_runs_on_as_many_ranks_as_it_says() {
    let root = tempfile::tempdir().unwrap();
    let file = fs::read_to_string(corpus("simai/ok-pipeline.txt")).unwrap();
    for (all_gpus, cluster, code, part) in [
        (4, "", 0, "w.txt: all_gpus is 4, so the first 4 of 8 GPUs run it"),
        (12, "", 0, "all_gpus is 12, so the first 12 of 16 GPUs run it"),
        (12, "gpus = 16", 0, "all_gpus is 12, so the first 12 of 16 GPUs run it"),
        (4, "gpus = 4", 0, "experiments: 1"),
        (4, "gpus = 16", 0, "w.txt: all_gpus is 4, so the first 4 of 16 GPUs run it"),
        (12, "gpus = 8", 0, "all_gpus is 12, but 8 GPUs are there and run it"),
        (13, "", 2, "the number of ranks, 13"),
    ] {
        fs::write(root.path().join("w.txt"), file.replace("all_gpus: 4", &format!("all_gpus: {all_gpus}"))).unwrap();
        let sweep =
            format!("name = \"s\"\n[base.cluster]\n{cluster}\n[base.workload]\nkind = \"simai\"\npath = \"w.txt\"\n");
        fs::write(root.path().join("s.toml"), sweep).unwrap();
        let plan = program::hyperfold(root.path(), &["plan", "s.toml"]);
        let told = format!("{}{}", plan.stdout, plan.stderr);
        assert!(plan.code == code && told.contains(part), "{all_gpus} {cluster}: {told}");
    }
}

#[test]
fn a_sweep_runs_on_a_topology_of_htsim() {
    let root = with("topo/ok-leaf-spine.topo", "net.topo");
    let sweep = "name = \"htsim\"\n[base.topology]\nkind = \"file\"\npath = \"net.topo\"\nformat = \"htsim\"\n\
                 [base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 100000\n";
    fs::write(root.path().join("s.toml"), sweep).unwrap();
    let run = program::hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--engine", "cpu"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let results = fs::read_to_string(root.path().join("o/results.csv")).unwrap();
    assert!(results.lines().nth(1).unwrap().contains(",ok,"), "{results}");
}

/// Two traces, made by hand: kernels of 10 and 5 us with 1 us between them; an all-reduce 2 us later, beside a kernel of 20 us; a kernel of 4 us, 1 us after it.
#[test]
fn traces_of_pytorch_take_the_time_that_can_be_worked_out() {
    let root = tempfile::TempDir::new().unwrap();
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    fs::create_dir(root.path().join("kineto")).unwrap();
    for file in ["kineto/rank0.json", "kineto/rank1.json"] {
        fs::copy(experiments.join(file), root.path().join(file)).unwrap();
    }
    let sweep = fs::read_to_string(experiments.join("studies/kineto.toml")).unwrap();
    fs::write(root.path().join("kineto.toml"), sweep.replace("../kineto", "kineto")).unwrap();
    let alone = "name = \"c\"\n[base]\ncluster = { gpus = 2, gpus_per_server = 1 }\nworkload = { kind = \"collective\", op = \"all-reduce\", bytes = 4000000 }\n[axes]\n\"topology.link_gbps\" = [100, 400]\n";
    fs::write(root.path().join("c.toml"), alone).unwrap();
    let times = |sweep: &str, more: &[&str]| iteration_times(root.path(), sweep, more);
    // What is simulated alone and in the step: 16 us of kernels and 2 of the host before it, 5 us after it.
    let exact = ["--set", "fidelity.fast_forward=off"];
    let (step, collective) = (times("kineto.toml", &exact), times("c.toml", &exact));
    for (step, collective) in step.iter().zip(&collective) {
        assert!((step - collective - 23_000.0).abs() < 0.01, "{step} {collective}");
    }
    assert!(step[0] > 3.0 * step[1]);
    // An all-reduce of 4 bytes hides behind the kernel beside it: 16 + 20 us, and the last kernel 5 us after the later of the two.
    let tiny = times("kineto.toml", &["--set", "workload.bytes_scale=0.000001"]);
    assert!(tiny.iter().all(|t| (41_000.0..60_000.0).contains(t)), "{tiny:?}");
    for (name, text, why) in [
        (
            "rank2.json",
            "{\"distributedInfo\": {\"rank\": 2}, \"traceEvents\": []}",
            "profile with ProfilerActivity.CUDA",
        ),
        ("rank1.json", "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\"}]}", "has no number as `ts`"),
    ] {
        fs::write(root.path().join("kineto").join(name), text).unwrap();
        let ran = program::hyperfold(root.path(), &["plan", "kineto.toml"]);
        assert!(ran.code == 2 && ran.stderr.contains(why) && ran.stderr.contains(name), "{}", ran.stderr);
        fs::remove_file(root.path().join("kineto").join(name)).unwrap();
    }
    let ran = program::hyperfold(root.path(), &["plan", "kineto.toml", "--set", "cluster.gpus=4"]);
    // What is left is the trace of rank 0, whose group has all ranks.
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.code == 0 && told.contains("one trace stands for 4 ranks"), "{told}");
}

/// Three all-reduces of 4 MB that the host made at 0, 100 and 600 us, and that took 300, 120 and 120 us.
#[test]
fn dumps_of_the_flight_recorder_take_the_time_that_can_be_worked_out() {
    let root = tempfile::TempDir::new().unwrap();
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    fs::create_dir(root.path().join("flight-recorder")).unwrap();
    for file in ["flight-recorder/rank0.json", "flight-recorder/rank1.json"] {
        fs::copy(experiments.join(file), root.path().join(file)).unwrap();
    }
    let sweep = fs::read_to_string(experiments.join("studies/flight-recorder.toml")).unwrap();
    fs::write(root.path().join("dumps.toml"), sweep.replace("../flight-recorder", "flight-recorder")).unwrap();
    let alone = "name = \"c\"\n[base]\ncluster = { gpus = 2, gpus_per_server = 1 }\ntransport = { cc = \"dcqcn\" }\nworkload = { kind = \"collective\", op = \"all-reduce\", bytes = 4000000 }\n[axes]\n\"topology.link_gbps\" = [100, 400]\n";
    fs::write(root.path().join("c.toml"), alone).unwrap();
    let exact = ["--set", "fidelity.fast_forward=off"];
    let collective = iteration_times(root.path(), "c.toml", &exact);
    let times = iteration_times(root.path(), "dumps.toml", &exact);
    let (slow, fast) = (collective[0], collective[1]);
    assert!(slow > 300_000.0 && fast < 120_000.0, "{collective:?}");
    // By link rate, without and with waiting. On slow links each call waits for the one before it; on fast links the third is made when the others have ended.
    let expected = [3.0 * slow, 3.0 * slow + 180_000.0, 600_000.0 + fast, 3.0 * fast + 180_000.0];
    for (time, expected) in times.iter().zip(expected) {
        assert!((time - expected).abs() < 0.01, "{times:?} {expected}");
    }
    // A rank that lacks a call is named where a sweep is planned, too, and the others are simulated.
    let dump = fs::read_to_string(root.path().join("flight-recorder/rank1.json")).unwrap();
    let first = dump.find("{\"collective_seq_id\": 3").unwrap();
    let last = first + dump[first..].find('}').unwrap() + 1;
    let lacks = dump[..first].trim_end().trim_end_matches(',').to_string() + &dump[last..];
    fs::write(root.path().join("flight-recorder/rank1.json"), lacks).unwrap();
    let ran = program::hyperfold(root.path(), &["plan", "dumps.toml"]);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    let why = "group `0` (default_pg): rank 1 did not make collective 3, AllReduce of 4000000 bytes, which rank 0 made";
    assert!(ran.code == 0 && told.contains(why), "{told}");
    let inspected = program::hyperfold(root.path(), &["workload", "inspect", "flight-recorder"]);
    assert!(inspected.code == 0 && inspected.stderr.contains(why), "{}", inspected.stderr);
    assert!(inspected.stdout.contains("form           flight-recorder"), "{}", inspected.stdout);
    let left = iteration_times(root.path(), "dumps.toml", &exact);
    assert!((left[0] - 2.0 * slow).abs() < 0.01, "{left:?}");
    // Without durations ranks cannot wait.
    let untimed = dump.replace("duration_ms", "d");
    fs::write(root.path().join("flight-recorder/rank1.json"), untimed).unwrap();
    let ran = program::hyperfold(root.path(), &["run", "dumps.toml", "--out", "o", "--set", "topology.link_gbps=100"]);
    assert!(ran.code != 0, "{}", ran.stdout);
    let waiting = ["workload", "inspect", "flight-recorder", "--wait-for-calls"];
    let ran = program::hyperfold(root.path(), &waiting);
    assert!(ran.code == 2 && ran.stderr.contains("2 of 2 calls have no duration_ms"), "{}", ran.stderr);
    fs::write(root.path().join("flight-recorder/rank1.json"), b"\x80\x02}").unwrap();
    let ran = program::hyperfold(root.path(), &["plan", "dumps.toml"]);
    assert!(ran.code == 2 && ran.stderr.contains("rank1.json: it is a pickle"), "{}", ran.stderr);
}

/// Times of a sweep's experiments, simulated on the CPU.
fn iteration_times(root: &Path, sweep: &str, more: &[&str]) -> Vec<f64> {
    let ran = program::hyperfold(root, &[&["run", sweep, "--out", "o", "--engine", "cpu", "--quiet"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(root.join("o/results.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>());
    let at = rows.next().unwrap().iter().position(|name| name == "iteration_time_ns").unwrap();
    let times = rows.map(|row| row[at].parse::<f64>().unwrap()).collect::<Vec<_>>();
    fs::remove_dir_all(root.join("o")).unwrap();
    times
}
