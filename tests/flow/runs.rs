//! Runs at flow level by the program: the same bytes however they are made, and what packets alone have is empty.

use crate::support::program::Folder;

/// Traffic, a collective, a model and several jobs on one fabric, at both levels of detail.
const SWEEP: &str = r#"
name = "flow"

[base]
cluster = { gpus = 16, gpus_per_server = 4 }
topology = { kind = "rail-optimized", link_gbps = 100, uplink_gbps = 100, oversubscription = 2.0 }
workload = { kind = "traffic", pattern = "all-to-all", bytes = 100000 }
fidelity.mode = "flow"
output = { flows = true, links = true }

[sweep]
method = "list"

[[experiment]]
[[experiment]]
routing.policy = "spray"
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 4000000, algorithm = "ring" }
[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 4000000 }
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 4000000, algorithm = "tree" }
fidelity.mode = "packet"
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 4000000, algorithm = "ring" }
fidelity = { mode = "flow", join = "collectives" }
[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 4000000, algorithm = "direct" }
fidelity = { mode = "flow", join = "ranks" }
"#;

const FILES: [&str; 4] = ["results.csv", "results.parquet", "flows.csv", "links.csv"];

#[test]
fn bytes_are_the_same_over_threads_shards_and_resumed_runs() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let run = |args: &[&str]| {
        let ran = folder.run(&[&["run", "s.toml", "--quiet"], args].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    };
    run(&["--out", "one", "--jobs", "1"]);
    run(&["--out", "two", "--jobs", "2"]);
    run(&["--out", "again", "--jobs", "2", "--memo", "off"]);
    for part in ["0/2", "1/2"] {
        run(&["--out", &format!("shard{}", &part[..1]), "--shard", part]);
    }
    let ran = folder.run(&["merge", "shard0", "shard1", "--out", "merged"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for other in ["two", "again", "merged"] {
        for file in FILES {
            assert!(folder.bytes(&format!("{other}/{file}")) == folder.bytes(&format!("one/{file}")), "{other}/{file}");
        }
    }
}

#[test]
fn what_packets_alone_have_is_empty() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for name in ["packet_hops", "ecn_marks", "pfc_pauses", "drops", "max_queue_bytes"] {
        let cells = folder.column("out/results.csv", name);
        assert!(cells[..4].iter().all(String::is_empty) && !cells[4].is_empty(), "{name}: {cells:?}");
    }
    for name in ["makespan_ns", "fct_p99_ns", "max_link_utilisation"] {
        assert!(folder.column("out/results.csv", name).iter().all(|cell| !cell.is_empty()), "{name}");
    }
    let (ids, queues) = (folder.column("out/links.csv", "exp_id"), folder.column("out/links.csv", "max_queue_bytes"));
    assert!(ids.iter().zip(&queues).all(|(id, queue)| queue.is_empty() == (id != "4")), "{queues:?}");
}

#[test]
fn a_key_of_packets_as_an_axis_is_said_to_change_nothing() {
    let sweep = "name = \"t\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology.kind = \"clos\"\nbase.workload = { kind = \"traffic\", pattern = \"ring\" }\n\
                 base.fidelity.mode = \"flow\"\naxes.\"transport.pfc\" = [true, false]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let ran = folder.run(&["plan", "s.toml"]);
    assert!(ran.code == 2 && ran.stderr.contains("nothing reads the axis `transport.pfc`"), "{}", ran.stderr);
}

#[test]
fn a_sweep_of_packets_runs_as_flows_too() {
    let sweep = "name = \"t\"\nbase.cluster = { gpus = 4, gpus_per_server = 1 }\nbase.topology.kind = \"clos\"\nbase.workload = { kind = \"traffic\", pattern = \"ring\" }\n\
                 [axes]\n\"transport.pfc\" = [true, false]\n\"topology.link_gbps\" = [100, 400]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let ran = folder.run(&["run", "s.toml", "--out", "out", "--quiet", "--set", "fidelity.mode=flow"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let planned = folder.run(&["plan", "s.toml", "--set", "fidelity.mode=flow"]).stdout;
    assert!(planned.contains("the axis `transport.pfc` has no effect with what --set has set"), "{planned}");
    let times = folder.column("out/results.csv", "makespan_ns");
    assert!(times.len() == 4 && times[0] == times[2] && times[1] == times[3] && times[0] != times[1], "{times:?}");
    // A set value that has nothing to do with a mistake in the file does not hide it.
    let ran = folder.run(&["plan", "s.toml", "--set", "fidelity.mode=flow", "--set", "workload.bytse=3"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let mistaken = sweep.replace("base.topology", "base.fidelity.mode = \"flow\"\nbase.topology");
    let folder = Folder::new(&[("s.toml", &mistaken)]);
    let ran = folder.run(&["plan", "s.toml", "--set", "workload.bytes=3000"]);
    assert!(ran.code == 2 && ran.stderr.contains("nothing reads the axis `transport.pfc`"), "{}", ran.stderr);
}

#[test]
fn compare_says_how_far_flows_are_from_packets() {
    let sweep = "name = \"t\"\nbase.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology.kind = \"clos\"\nbase.workload = { kind = \"traffic\", bytes = 100000 }\n\
                 [axes]\n\"workload.pattern\" = [\"ring\", \"all-to-all\"]\n\"fidelity.mode\" = [\"packet\", \"flow\"]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "out", "--quiet"]).code, 0);
    let ran = folder.run(&["compare", "out"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("flow level beside packets") && ran.stdout.contains("packets met"), "{}", ran.stdout);
}

/// Two jobs of two servers each that swap 100 MB over one uplink.
const SWAP: &str = r#"
name = "swap"
[base]
fidelity.mode = "flow"
cluster = { gpus = 8, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 1, oversubscription = 4, link_gbps = 100, uplink_gbps = 100 }
[[job]]
name = "a"
kind = "collective"
op = "send-recv"
bytes = 100000000
placement = [0, 4]
[[job]]
name = "b"
kind = "collective"
op = "send-recv"
bytes = 100000000
placement = [1, 5]
"#;

#[test]
fn weights_share_a_full_link_and_leave_an_empty_one_alone() {
    let folder = Folder::new(&[("s.toml", SWAP)]);
    let times = |out: &str, set: &[&str]| -> [f64; 2] {
        let ran = folder.run(&[&["run", "s.toml", "--quiet", "--out", out], set].concat());
        assert_eq!(ran.code, 0, "{set:?}: {}", ran.stderr);
        let of = folder.column(&format!("{out}/jobs.csv"), "iteration_time_ns");
        [0, 1].map(|job| of[job].parse().unwrap())
    };
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
    let [equal, other] = times("equal", &[]);
    near(equal, other);
    // Three of four parts, then the rest of the other has the link to itself.
    let [first, second] = times("weighted", &["--set", "job.a.flow_weights=other:3"]);
    near(first / equal, 2.0 / 3.0);
    near(second, equal);
    // Weights say how flows stand to each other.
    let both = times("both", &["--set", "workload.flow_weights=other:8"]);
    near(both[0], equal);
    near(both[1], equal);
    // Weights change nothing if nobody else sends.
    let apart = ["--set", "job.b.placement=[2,3]"];
    let [plain, _] = times("plain", &apart);
    let [alone, _] = times("alone", &[&apart[..], &["--set", "job.a.flow_weights=other:64"]].concat());
    near(plain, equal / 2.0);
    near(alone, plain);
    let ran = folder.run(&["run", "s.toml", "--quiet", "--out", "x", "--set", "job.a.flow_weights=other:65"]);
    assert!(ran.code == 2 && ran.stderr.contains("a whole number from 1 to 64"), "{}", ran.stderr);
}

#[test]
fn what_takes_longer_than_times_can_be_is_said() {
    let sweep = "name = \"slow\"\n[base]\nfidelity.mode = \"flow\"\ncluster = { gpus = 16, gpus_per_server = 1 }\n\
        topology = { kind = \"clos\", hosts_per_leaf = 8, link_gbps = 0.001, uplink_gbps = 0.001 }\n\
        workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 15, receivers = 1, bytes = 1000000000000 }\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let done = folder.run(&["run", "s.toml", "--out", "o"]);
    assert!(done.code == 1 && done.stderr.contains("more than 107 days of simulated time"), "{}", done.stderr);
    // A hundredth of that takes 15 days.
    let done = folder.run(&["run", "s.toml", "--out", "p", "--quiet", "--set", "workload.bytes=10000000000"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let seconds = folder.column("p/results.csv", "makespan_ns")[0].parse::<f64>().unwrap() / 1e9;
    assert!((seconds / 86_400.0 - 15.14).abs() < 0.1, "{seconds}");
}

#[test]
fn flows_are_no_judge_of_spraying() {
    let axes = "[axes]\n\"routing.policy\" = [\"ecmp\", \"spray\", \"destination\"]\n";
    let sweep = format!("{}{axes}", &SWEEP[..SWEEP.find("[sweep]").unwrap()]);
    let folder = Folder::new(&[("s.toml", &sweep)]);
    let told = |out: &str, sets: &[&str]| {
        let done = folder.run(&[&["run", "s.toml", "--out", out], sets].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr.contains("it is no judge between a routing.policy that sprays")
    };
    assert!(told("flows", &[]));
    assert!(!told("packets", &["--set", "fidelity.mode=packet"]));
}

/// Experts over all GPUs of servers, whose messages NCCL relays inside servers.
const RELAYED: &str = r#"
name = "relayed"
[base]
fidelity = { mode = "flow", join = "ranks" }
cluster = { gpus = 512, server = "dgx-h100" }
topology = { kind = "rail-optimized", servers_per_pod = 16 }
workload = { kind = "model", model = "deepseek-v3", algorithm = "ring", tp = 8, pp = 4, ep = 64, etp = 1, zero = 1, recompute = "full", global_batch = 64 }
"#;

#[test]
fn relayed_experts_that_do_not_fit_are_told_what_fits() {
    let folder = Folder::new(&[("s.toml", RELAYED)]);
    let plan = |more: &[&str]| folder.run(&[&["plan", "s.toml", "--memory", "0.5"], more].concat());
    let refused = plan(&[]);
    assert!(
        refused.stdout.contains("cannot fit: 1") && refused.stdout.contains("set workload.pxn = false"),
        "{}",
        refused.stdout
    );
    let fits = plan(&["--set", "workload.pxn=false"]);
    assert!(fits.code == 0 && fits.stdout.contains("cannot fit: 0"), "{}{}", fits.stdout, fits.stderr);
    let apart = plan(&["--set", "fidelity.join=collectives"]);
    assert!(
        apart.stdout.contains("set fidelity.join = \"ranks\"") && apart.stdout.contains("and workload.pxn = false"),
        "{}",
        apart.stdout
    );
}

#[test]
fn a_ring_of_all_ranks_for_a_few_bytes_is_noted_with_its_time() {
    let folder = Folder::new(&[("s.toml", RELAYED)]);
    let said = |more: &[&str]| folder.run(&[&["plan", "s.toml", "--set", "workload.pxn=false"], more].concat()).stdout;
    let ring = said(&[]);
    assert!(
        ring.contains("workload.algorithm = \"ring\" holds for small collectives too")
            && ring.contains("all-reduce of 4 bytes among 512 ranks"),
        "{ring}"
    );
    let free =
        said(&["--set", "workload.algorithm=auto", "--set", "fidelity.join=none", "--set", "workload.analytic=all"]);
    assert!(!free.contains("holds for small collectives"), "{free}");
}

#[test]
fn flows_are_not_called_packets_where_errors_are_stated() {
    let sweep = "name = \"t\"\n[base]\nfidelity.mode = \"flow\"\ncluster = { gpus = 16, server = \"dgx-h100\" }\n\
                 workload = { kind = \"model\", model = \"gpt2-medium\", global_batch = 16, microbatch = 1 }\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "out", "--quiet"]).code, 0);
    let error = folder.column("out/results.csv", "validated_error").remove(0);
    assert!(error.contains("network flows") && !error.contains("packets"), "{error}");
}
