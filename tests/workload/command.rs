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
    let times = |sweep: &str, more: &[&str]| {
        let ran = program::hyperfold(
            root.path(),
            &[&["run", sweep, "--out", "o", "--engine", "cpu", "--quiet"], more].concat(),
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let text = fs::read_to_string(root.path().join("o/results.csv")).unwrap();
        let mut rows = text.lines().map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>());
        let at = rows.next().unwrap().iter().position(|name| name == "iteration_time_ns").unwrap();
        let times = rows.map(|row| row[at].parse::<f64>().unwrap()).collect::<Vec<_>>();
        fs::remove_dir_all(root.path().join("o")).unwrap();
        times
    };
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
