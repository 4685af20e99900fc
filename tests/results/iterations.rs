//! Speeds of jobs beside each other in job mode, by their iterations: as the flow level has them, alone where they are alone, and the same bytes always.

use super::job_rows::{near, of_job, run};
use crate::support::program::Folder;

/// Two leaves of four servers, one uplink each.
const TWO_LEAVES: &str = r#"
cluster = { gpus = 8, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 1, oversubscription = 4, link_gbps = 100, uplink_gbps = 100 }
"#;

/// `one` gets servers 2 to 5 and `two` gets 0, 1, 6 and 7: both cross the uplinks once each way.
const TRACE: &str = "job,submit_s,gpus,duration_s,compute_s,comm_mib
small,0,2,60,0.05,1
one,0,4,3600,0.05,1024
two,60,4,3600,0.05,1024
";

fn cluster(scheduler: &str) -> String {
    format!(
        "name = \"beside\"\n[base]\nfidelity.mode = \"job\"\n{TWO_LEAVES}\njobs = {{ source = \"trace\", path = \"t.csv\" }}\n\
         checkpoint.policy = \"none\"\noutput.cluster_jobs = true\n\
         scheduler = {{ policy = \"fcfs\", placement = \"packed\", iterations_at = \"flow\", {scheduler} }}\n"
    )
}

#[test]
fn jobs_that_share_an_uplink_are_as_slow_as_the_flow_level_says() {
    // The flow level runs the same two jobs as task graphs, together and alone, and one of them under one leaf.
    let graph = "id,ranks,kind,duration_ns,bytes,deps\nforward,all,compute,50000000,,\nreduce,all,all-reduce,,1073741824,forward\n";
    let job = |name: &str, gpus: &str| {
        format!("\n[[job]]\nname = \"{name}\"\nkind = \"dag\"\npath = \"g.csv\"\nplacement = {gpus}\n")
    };
    let flows = format!(
        "name = \"flows\"\n[base]\nfidelity.mode = \"flow\"\n{TWO_LEAVES}\noutput.alone = true\n\
         workload = {{ algorithm = \"ring\", protocol = \"Simple\", channels = 1, iterations = 4 }}\n"
    );
    let together = format!("{flows}{}{}", job("one", "[2, 3, 4, 5]"), job("two", "[0, 1, 6, 7]"));
    let in_rack = format!("{flows}{}", job("one", "[0, 1, 2, 3]"));
    let folder = Folder::new(&[
        ("s.toml", &cluster("iterations_audit = 1.0")),
        ("t.csv", TRACE),
        ("g.csv", graph),
        ("together.toml", &together),
        ("rack.toml", &in_rack),
    ]);
    run(&folder, "s.toml", "o", &[]);
    run(&folder, "together.toml", "together", &[]);
    run(&folder, "rack.toml", "rack", &[]);
    let rack_ns = of_job(&folder, "rack/jobs.csv", "one", "iteration_time_ns");
    let jobs = "o/cluster_jobs.csv";
    for name in ["one", "two"] {
        let ns = of_job(&folder, "together/jobs.csv", name, "iteration_time_ns");
        let alone_ns = of_job(&folder, "together/jobs.csv", name, "alone_iteration_time_ns");
        near(of_job(&folder, jobs, name, "worst_company_slowdown"), ns / alone_ns, 0.001);
        near(alone_ns, rack_ns, 0.001);
    }
    // Both take as long together as they say.
    let worst = of_job(&folder, jobs, "two", "worst_company_slowdown");
    assert!(worst > 1.5, "{worst}");
    near(of_job(&folder, jobs, "two", "company_slowdown"), of_job(&folder, jobs, "one", "company_slowdown"), 0.05);
    assert_eq!(folder.column(jobs, "worst_beside"), ["", "two", "one"]);
    let link = &folder.column(jobs, "worst_link")[1];
    assert!(link.contains("leaf") && link.contains("spine"), "{link}");
    // Both cannot fill their NICs from the second's start to the first's end, and it is the second that began it.
    let of = |column: &str| folder.column("o/cluster_congestion.csv", column);
    assert_eq!(
        (of("job"), of("set_off_by")),
        (vec!["one".to_string(), "two".into()], vec!["two".to_string(), "two".into()])
    );
    assert_eq!((of("sharing"), of("from_s")), (vec!["two".to_string(), "one".into()], vec!["60".to_string(); 2]));
    assert_eq!(of("to_s")[0], folder.column(jobs, "end_s")[1]);
    assert_eq!(of("link")[0], *link);
    assert_eq!(of("worst_slowdown")[1].parse::<f64>().unwrap(), worst);
    let nic: Vec<f64> = of("nic_share").iter().map(|s| s.parse().unwrap()).collect();
    assert!(nic.iter().all(|share| (0.4..0.65).contains(share)), "{nic:?}");
    // Two jobs with one length of iterations are steady at once.
    assert_eq!(folder.column("o/results.csv", "iteration_error_max"), ["0"]);
    let share: f64 = folder.column("o/results.csv", "company_share")[0].parse().unwrap();
    assert!(share > 0.1, "{share}");
    assert!(folder.column("o/cluster_timeline.csv", "slowed_gpus").iter().any(|n| n == "8"));
}

#[test]
fn what_writes_of_checkpoints_leave_to_iterations_is_told() {
    let sweep =
        cluster("").replace("checkpoint.policy = \"none\"", "checkpoint = { interval_s = 300.0, cost_s = 0.0 }");
    let folder = Folder::new(&[("s.toml", &sweep), ("t.csv", TRACE)]);
    let said = |out: &str, sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|key| ["--set", key]).collect();
        let done = folder.run(&[&["run", "s.toml", "--out", out], &sets[..]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let share = |column: &str| folder.column(&format!("{out}/results.csv"), column)[0].clone();
        (share("beside_writes_share"), share("checkpoint_share"), done.stderr.contains("could have cost up to"))
    };
    // 2 GPUs of each job write 2 x 100 GiB over an uplink of 100 Gb/s. That takes 17 s, in which the other job works.
    let shared = "checkpoint.writes_share=fabric";
    let (beside, checkpoints, told) = said("fills", &["checkpoint.gib_per_gpu=100", shared]);
    let (beside, checkpoints): (f64, f64) = (beside.parse().unwrap(), checkpoints.parse().unwrap());
    assert!(told && beside > 0.02);
    // Most writes of each job are beside the other, which has as many GPUs, and take all of the uplink.
    assert!((0.8..=1.0).contains(&(beside / checkpoints)), "{beside} of {checkpoints}");
    // A twentieth of the data at a twentieth of the rate takes a twentieth of the uplink, for the same time.
    let (slow, ..) = said("slow", &["checkpoint.gib_per_gpu=5", shared, "checkpoint.storage_gbps=10"]);
    near(slow.parse().unwrap(), beside / 20.0, 0.1);
    // Little is not told, and without shared writes nothing is known.
    let (little, _, told) = said("little", &["checkpoint.gib_per_gpu=1", shared]);
    assert!(!told && little.parse::<f64>().unwrap() < 0.01);
    assert_eq!(said("nothing", &["checkpoint.gib_per_gpu=100"]).0, "");
}

#[test]
fn jobs_apart_run_as_alone() {
    // Four servers a job, a leaf each; then with room on the uplinks.
    let apart = "job,submit_s,gpus,duration_s,compute_s,comm_mib\none,0,4,3600,0.05,1024\ntwo,0,4,1800,0.05,512\n";
    let folder = Folder::new(&[("s.toml", &cluster("iterations_audit = 1.0")), ("t.csv", apart), ("u.csv", TRACE)]);
    run(&folder, "s.toml", "o", &[]);
    assert_eq!(folder.column("o/cluster_jobs.csv", "slowdown"), ["1", "1"]);
    assert_eq!(folder.column("o/cluster_jobs.csv", "end_s"), ["3600", "1800"]);
    let roomy = ["--set", "jobs.path=u.csv", "--set", "topology.uplink_gbps=400"];
    run(&folder, "s.toml", "roomy", &roomy);
    assert_eq!(folder.column("roomy/cluster_jobs.csv", "company_slowdown"), ["1", "1", "1"]);
}

#[test]
fn memo_threads_and_resumes_change_no_byte() {
    let sweep = r#"
name = "many"
[base]
fidelity.mode = "job"
cluster = { gpus = 64, gpus_per_server = 4 }
topology = { kind = "rail-optimized", servers_per_pod = 4, oversubscription = 4 }
jobs = { count = 16, min_gpus = 4, max_gpus = 32, load = 1.2, compute_s = "4:0.1", comm_mib = "4:1000 64:4000" }
failures = { host_mtbf_h = 300.0, straggler_mtbf_h = 500.0 }
scheduler = { iterations_at = "flow", iterations_audit = 0.3, iterations_audit_bound = 0.0001 }
output.cluster_jobs = true
[axes]
"scheduler.placement" = ["topology", "random"]
"fidelity.memo" = [true, false]
"#;
    let folder = Folder::new(&[("s.toml", sweep)]);
    run(&folder, "s.toml", "one", &["--jobs", "1"]);
    run(&folder, "s.toml", "four", &["--jobs", "4"]);
    run(&folder, "s.toml", "cut", &[]);
    let journal = folder.bytes("cut/journal.bin");
    std::fs::write(folder.file("cut/journal.bin"), &journal[..journal.len() * 2 / 3]).unwrap();
    run(&folder, "s.toml", "cut", &["--resume"]);
    for file in ["results.csv", "results.parquet", "cluster_timeline.csv", "cluster_jobs.csv"] {
        for other in ["four", "cut"] {
            assert!(folder.bytes(&format!("one/{file}")) == folder.bytes(&format!("{other}/{file}")), "{other}/{file}");
        }
    }
    // What is remembered changes nothing but the identity.
    let columns =
        ["goodput", "slowdown_share", "company_share", "iteration_sets", "iteration_error_mean", "iteration_error_max"];
    for column in columns {
        let of = folder.column("one/results.csv", column);
        assert!(of[0] == of[1] && of[2] == of[3], "{column}: {of:?}");
    }
    let jobs = folder.column("one/cluster_jobs.csv", "slowdown");
    assert!(jobs[..16] == jobs[16..32] && jobs[32..48] == jobs[48..]);
    assert!(jobs.iter().any(|x| x.parse::<f64>().unwrap() > 1.05), "{jobs:?}");
    // Jobs that differ are audited with some difference, which is told.
    let audits = folder.column("one/results.csv", "iteration_audits");
    assert!(audits.iter().all(|n| n.parse::<u64>().unwrap() > 0), "{audits:?}");
    let told = folder.run(&["run", "s.toml", "--out", "told", "--limit", "3"]).stderr;
    assert!(told.contains("scheduler.iterations_audit_bound"), "{told}");
}

#[test]
fn packets_are_slowed_down_about_as_flows_are() {
    // Both levels run the same few iterations: after more, packets have found phases in which the jobs take turns, which equal rates never do.
    let trace = TRACE.replace(",0.05,1024", ",0.0001,2");
    let keys = "iterations_audit = 0.0, iterations_within = 1000.0";
    let folder = Folder::new(&[("s.toml", &cluster(keys)), ("t.csv", &trace)]);
    let as_packets = [
        "--set",
        "scheduler.iterations_at=packet",
        "--set",
        "transport.cc=none",
        "--set",
        "transport.payload_bytes=4000",
    ];
    run(&folder, "s.toml", "flow", &["--set", "transport.cc=none", "--set", "transport.payload_bytes=4000"]);
    run(&folder, "s.toml", "packet", &as_packets);
    run(&folder, "s.toml", "unfolded", &[&as_packets[..], &["--set", "fidelity.fast_forward=exact"]].concat());
    for name in ["one", "two"] {
        let of = |out: &str| of_job(&folder, &format!("{out}/cluster_jobs.csv"), name, "worst_company_slowdown");
        near(of("packet"), of("flow"), 0.05);
        near(of("packet"), of("unfolded"), 0.02);
    }
}

#[test]
fn keys_of_iterations_say_what_would_be_right() {
    let says = |scheduler: &str, more: &[&str], part: &str| {
        let folder = Folder::new(&[("s.toml", &cluster(scheduler)), ("t.csv", TRACE), ("r.txt", "")]);
        let done = folder.run(&[&["run", "s.toml", "--out", "o"], more].concat());
        assert!(done.code == 2 && done.stderr.contains(part), "{more:?}: {}", done.stderr);
    };
    says("", &["--set", "jobs.compute_s=\"8\""], "points `gpus:value` with GPUs ascending");
    says("", &["--set", "jobs.comm_mib=8:1 4:2"], "points `gpus:value` with GPUs ascending");
    says("", &["--set", "routing.policy=file", "--set", "routing.path=r.txt"], "scheduler.iterations_at needs");
}
