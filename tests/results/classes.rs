//! Jobs of a cluster that run models: classes of jobs, whose iterations are the task graphs that `[[job]]` tables have in flow and packet mode.

use super::job_rows::{near, of_job, run};
use crate::support::program::Folder;

/// Two leaves of four servers with one GPU each, one uplink each.
const TWO_LEAVES: &str = r#"
cluster = { gpus = 8, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 1, oversubscription = 4, link_gbps = 100, uplink_gbps = 100 }
"#;

/// `one` gets servers 2 to 5 and `two` gets 0, 1, 6 and 7: both cross the uplinks.
const TRACE: &str = "job,submit_s,gpus,duration_s,class,iterations
small,0,2,60,,
one,0,,,a,100000
two,60,4,,b,100000
";

const MODEL: &str =
    "{ name = \"tiny\", transformer = { layers = 8, hidden = 1024, heads = 8, vocab = 8192, seq = 512 } }";

/// A job that trains the model by data parallel replicas of pipelines.
fn job(name: &str, keys: &str) -> String {
    format!(
        "\n[[job]]\nname = \"{name}\"\nkind = \"model\"\nmodel = {MODEL}\ntp = 1\nlaunch_us = 0.0\nalgorithm = \"ring\"\n{}\n",
        keys.replace(", ", "\n")
    )
}

fn classes(a: &str, b: &str) -> String {
    format!("{}{}", job("a", a), job("b", b))
}

fn cluster(scheduler: &str, classes: &str) -> String {
    format!(
        "name = \"classes\"\n[base]\nfidelity.mode = \"job\"\n{TWO_LEAVES}\njobs = {{ source = \"trace\", path = \"t.csv\" }}\n\
         checkpoint.policy = \"none\"\noutput.cluster_jobs = true\n\
         scheduler = {{ policy = \"fcfs\", placement = \"packed\", iterations_at = \"flow\", {scheduler} }}\n{classes}"
    )
}

/// The two jobs as an experiment of flows or packets, on the GPUs that the cluster gives them.
fn beside(mode: &str, classes: &str) -> String {
    let placed = classes
        .replace("name = \"a\"", "name = \"a\"\nplacement = [2, 3, 4, 5]")
        .replace("name = \"b\"", "name = \"b\"\nplacement = [0, 1, 6, 7]")
        .replace("tp = 1", "tp = 1\nwarmup = 2\niterations = 4");
    format!("name = \"beside\"\n[base]\nfidelity.mode = \"{mode}\"\n{TWO_LEAVES}\noutput.alone = true\n{placed}")
}

const EQUAL: [&str; 2] = ["dp = 4, global_batch = 8", "dp = 4, global_batch = 8"];

#[test]
fn models_that_share_an_uplink_are_as_slow_as_the_flow_level_says() {
    let classes = classes(EQUAL[0], EQUAL[1]);
    // A rack of one job: what its duration is measured in.
    let rack = beside("flow", &job("a", EQUAL[0])).replace("[2, 3, 4, 5]", "[0, 1, 2, 3]");
    let folder = Folder::new(&[
        ("s.toml", &cluster("iterations_audit = 1.0", &classes)),
        ("t.csv", TRACE),
        ("flow.toml", &beside("flow", &classes)),
        ("rack.toml", &rack),
    ]);
    for (out, join) in [("plain", "fidelity.join=none"), ("joined", "fidelity.join=collectives")] {
        let set = ["--set", join];
        run(&folder, "s.toml", out, &set);
        let (flow, rack) = (format!("flow-{out}"), format!("rack-{out}"));
        run(&folder, "flow.toml", &flow, &set);
        run(&folder, "rack.toml", &rack, &set);
        let jobs = format!("{out}/cluster_jobs.csv");
        let rack_s = of_job(&folder, &format!("{rack}/jobs.csv"), "a", "iteration_time_ns") / 1e9;
        for (name, class) in [("one", "a"), ("two", "b")] {
            let ns = of_job(&folder, &format!("{flow}/jobs.csv"), class, "iteration_time_ns");
            let alone_ns = of_job(&folder, &format!("{flow}/jobs.csv"), class, "alone_iteration_time_ns");
            // Traffic that nobody simulated would slow nobody down.
            assert!(ns / alone_ns > 1.2, "{ns} {alone_ns}");
            near(of_job(&folder, &jobs, name, "worst_company_slowdown"), ns / alone_ns, 0.001);
            // A hundred thousand iterations in one rack.
            near(of_job(&folder, &jobs, name, "duration_s"), 1e5 * rack_s, 0.001);
            let slowdown = of_job(&folder, &jobs, name, "slowdown");
            near(of_job(&folder, &jobs, name, "iteration_s"), rack_s * slowdown, 0.001);
        }
        assert_eq!(folder.column(&jobs, "class"), ["", "a", "b"]);
        assert_eq!(folder.column(&jobs, "worst_beside"), ["", "two", "one"]);
        let link = &folder.column(&jobs, "worst_link")[1];
        assert!(link.contains("leaf") && link.contains("spine"), "{link}");
        // Equal iterations are steady at once.
        let error: f64 = folder.column(&format!("{out}/results.csv"), "iteration_error_max")[0].parse().unwrap();
        assert!(error < 0.001, "{error}");
    }
}

#[test]
fn models_as_packets_are_slowed_down_as_packets_are() {
    let small =
        |classes: String| classes.replace("hidden = 1024", "hidden = 128").replace("vocab = 8192", "vocab = 512");
    let classes = small(classes(EQUAL[0], EQUAL[1]));
    let keys = "iterations_audit = 0.0, iterations = 4, iterations_within = 1000.0";
    let at_packet = cluster(keys, &classes).replace("iterations_at = \"flow\"", "iterations_at = \"packet\"");
    let folder = Folder::new(&[("s.toml", &at_packet), ("t.csv", TRACE), ("packet.toml", &beside("packet", &classes))]);
    run(&folder, "s.toml", "o", &[]);
    run(&folder, "packet.toml", "packet", &[]);
    for (name, class) in [("one", "a"), ("two", "b")] {
        let ns = of_job(&folder, "packet/jobs.csv", class, "iteration_time_ns");
        let alone_ns = of_job(&folder, "packet/jobs.csv", class, "alone_iteration_time_ns");
        assert!(ns / alone_ns > 1.1, "{ns} {alone_ns}");
        near(of_job(&folder, "o/cluster_jobs.csv", name, "worst_company_slowdown"), ns / alone_ns, 0.05);
    }
}

#[test]
fn a_layout_that_lies_badly_is_slower_without_company() {
    // Tensor parallel pairs: in one server, or over the network.
    let pairs = "\n[[job]]\nname = \"a\"\nkind = \"model\"\nmodel = \"gpt2\"\ntp = 2\ndp = 2\nglobal_batch = 4\n";
    let sweep = cluster("iterations_audit = 0.0", pairs).replace("gpus_per_server = 1", "gpus_per_server = 2");
    let sweep = sweep
        .replace("packed", "PLACE")
        .replace("hosts_per_leaf = 4, spines = 1, oversubscription = 4", "hosts_per_leaf = 8");
    let trace = "job,submit_s,class,duration_s\none,0,a,1000\n";
    let folder = Folder::new(&[
        ("packed.toml", &sweep.replace("PLACE", "packed")),
        ("spread.toml", &sweep.replace("PLACE", "spread")),
        ("t.csv", trace),
    ]);
    run(&folder, "packed.toml", "packed", &[]);
    run(&folder, "spread.toml", "spread", &[]);
    assert_eq!(folder.column("packed/cluster_jobs.csv", "slowdown"), ["1"]);
    let slowdown = of_job(&folder, "spread/cluster_jobs.csv", "one", "slowdown");
    assert!(slowdown > 1.03, "{slowdown}");
    assert_eq!(folder.column("spread/cluster_jobs.csv", "company_slowdown"), ["1"]);
}

/// Classes by weights, some jobs of which share uplinks.
const DRAWN: &str = r#"
name = "drawn"
[base]
fidelity = { mode = "job", join = "collectives" }
cluster = { gpus = 32, gpus_per_server = 2 }
topology = { kind = "rail-optimized", servers_per_pod = 4, oversubscription = 4, link_gbps = 100, uplink_gbps = 100 }
jobs = { source = "classes", count = 5, load = 0.0, min_hours = 0.5, max_hours = 4.0 }
scheduler = { iterations_at = "flow", iterations = 2, iterations_within = 1000.0, iterations_audit = 0.1, iterations_audit_bound = 10.0 }
output.cluster_jobs = true
[axes]
"scheduler.placement" = ["topology", "random"]
"fidelity.memo" = [true, false]
"#;

#[test]
fn memo_threads_and_resumes_change_no_byte() {
    let large = job("b", "pp = 2, dp = 4, global_batch = 8").replace("name = \"b\"", "name = \"b\"\nweight = 0.5");
    let sweep = format!("{DRAWN}{}{large}", job("a", "dp = 4, global_batch = 4"));
    let folder = Folder::new(&[("s.toml", &sweep)]);
    let plan = folder.run(&["plan", "s.toml"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
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
    for column in ["goodput", "slowdown_share", "company_share", "iteration_sets", "iteration_error_mean"] {
        let of = folder.column("one/results.csv", column);
        assert!(of[0] == of[1] && of[2] == of[3], "{column}: {of:?}");
    }
    let (classes, gpus) =
        (folder.column("one/cluster_jobs.csv", "class"), folder.column("one/cluster_jobs.csv", "gpus"));
    assert!(classes.iter().zip(&gpus).all(|(class, gpus)| (class == "a") == (gpus == "4")), "{classes:?} {gpus:?}");
    // Half the weight: a third of the jobs.
    let larger = classes[..5].iter().filter(|class| *class == "b").count();
    assert!((1..=4).contains(&larger), "{larger}");
    let company = folder.column("one/cluster_jobs.csv", "worst_company_slowdown");
    assert!(company.iter().any(|x| x.parse::<f64>().is_ok_and(|x| x > 1.05)), "{company:?}");
}

#[test]
fn jobs_of_classes_slow_those_down_that_are_of_none() {
    let trace = "job,submit_s,gpus,duration_s,class,compute_s,comm_mib\nsmall,0,2,60,,0.05,1\none,0,4,36000,a,,\ntwo,60,4,36000,,0.02,256\n";
    let folder = Folder::new(&[("s.toml", &cluster("iterations_audit = 0.0", &job("a", EQUAL[0]))), ("t.csv", trace)]);
    run(&folder, "s.toml", "o", &[]);
    for name in ["one", "two"] {
        let slowdown = of_job(&folder, "o/cluster_jobs.csv", name, "worst_company_slowdown");
        assert!(slowdown > 1.1, "{name}: {slowdown}");
    }
    assert_eq!(folder.column("o/cluster_jobs.csv", "worst_beside"), ["", "two", "one"]);
}

/// Four servers with a GPU each, under one leaf.
const ONE_LEAF: &str = "cluster = { gpus = 4, gpus_per_server = 1 }\ntopology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100 }\n";

#[test]
fn a_model_goes_on_with_the_replicas_that_take_whole_micro_batches_and_grows_back() {
    let class = job("a", "dp = 4, global_batch = 256");
    let sweep = format!(
        "name = \"elastic\"\n[base]\nfidelity.mode = \"job\"\n{ONE_LEAF}\njobs = {{ source = \"trace\", path = \"t.csv\", min_share = 0.5 }}\n\
         failures = {{ model = \"trace\", path = \"f.csv\" }}\ncheckpoint = {{ policy = \"interval\", interval_s = 500.0, cost_s = 0.0, restart_s = 10.0 }}\n\
         scheduler = {{ policy = \"fcfs\", placement = \"packed\", iterations_at = \"flow\" }}\noutput.cluster_jobs = true\n{class}\n\
         [axes]\n\"jobs.grow\" = [\"never\", \"at-once\", \"checkpoint\"]\n"
    );
    let alone = |dp: u32| {
        let own =
            job("a", &format!("dp = {dp}, global_batch = 256")).replace("tp = 1", "tp = 1\nwarmup = 2\niterations = 4");
        format!("name = \"alone\"\n[base]\nfidelity.mode = \"flow\"\n{ONE_LEAF}{own}")
    };
    // Three of four GPUs are left; two or four replicas can share 256 sequences.
    let folder = Folder::new(&[
        ("s.toml", &sweep),
        ("t.csv", "job,submit_s,class,duration_s\nx,0,a,100000\n"),
        ("f.csv", "time_s,part,index,repair_s\n1,host,1,20000\n"),
        ("two.toml", &alone(2)),
        ("four.toml", &alone(4)),
    ]);
    for name in ["two", "four", "s"] {
        run(&folder, &format!("{name}.toml"), name, &[]);
    }
    run(&folder, "s.toml", "again", &["--jobs", "1", "--memo", "off"]);
    let ns = |name: &str| of_job(&folder, &format!("{name}/jobs.csv"), "a", "iteration_time_ns");
    let slower = ns("two") / ns("four");
    assert!((1.3..2.5).contains(&slower), "{slower}");
    let results = |column: &str| folder.column("s/results.csv", column);
    assert_eq!(
        (results("shrinks"), results("grows")),
        (["1"; 3].map(String::from).to_vec(), ["0", "1", "1"].map(String::from).to_vec())
    );
    // All of its work in all of the time: 256 sequences an iteration.
    let hours: f64 = results("cluster_hours")[0].parse().unwrap();
    near(
        results("samples_per_s")[0].parse().unwrap(),
        256.0 * 100_000.0 / (ns("four") / 1e9) / (hours * 3600.0),
        0.001,
    );
    let slowdown = |at: usize| folder.column("s/cluster_jobs.csv", "slowdown")[at].parse::<f64>().unwrap();
    near(slowdown(0), slower, 0.001);
    assert!(slowdown(1) < slowdown(0) && slowdown(2) < slowdown(0), "{} {}", slowdown(1), slowdown(2));
    let share = |column: &str| results(column)[0].parse::<f64>().unwrap();
    let shares = [
        "goodput",
        "slowdown_share",
        "checkpoint_share",
        "restart_share",
        "rollback_share",
        "idle_share",
        "down_share",
    ];
    near(shares.into_iter().map(share).sum(), 1.0, 1e-5);
    for file in ["results.csv", "cluster_jobs.csv", "cluster_timeline.csv"] {
        assert!(folder.bytes(&format!("s/{file}")) == folder.bytes(&format!("again/{file}")), "{file}");
    }
}

#[test]
fn what_cannot_be_says_what_would_be_right() {
    let says = |sweep: &str, trace: &str, code: i32, part: &str| {
        let folder = Folder::new(&[("s.toml", sweep), ("t.csv", trace)]);
        let done = folder.run(&["run", "s.toml", "--out", "o"]);
        assert!(done.code == code && done.stderr.contains(part), "{part}: {} {}", done.code, done.stderr);
    };
    let classes = classes(EQUAL[0], EQUAL[1]);
    let sweep = cluster("iterations_audit = 0.0", &classes);
    let row = |row: &str| format!("job,submit_s,gpus,duration_s,class,iterations,min_gpus\n{row}\n");
    says(&sweep, &row("x,0,,100,c,,"), 2, "t.csv:2: class is `c`; [[job]] tables are a, b");
    says(&sweep, &row("x,0,8,100,a,,"), 2, "gpus is 8; jobs of class a have 4");
    says(&sweep, &row("x,0,4,100,a,5,"), 2, "say the same; leave one empty");
    says(&sweep, &row("x,0,4,,a,,"), 2, "duration_s and iterations are empty");
    says(&sweep, &row("x,0,4,,,5,"), 2, "iterations are those of a class");
    let rings = "\n[[job]]\nname = \"a\"\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = 1000000\ngpus = 4\n";
    says(&cluster("", rings), &row("x,0,,100,a,,2"), 2, "jobs of class a run on all of their 4 GPUs");
    let long = rings.replace("1000000", "1000000000");
    says(&cluster("", &long), &row("x,0,,,a,1000000000000,"), 1, "a job has a million at most: give it fewer");
    let drawn =
        cluster("", rings).replace("source = \"trace\", path = \"t.csv\"", "source = \"classes\", min_share = 0.5");
    says(&drawn, "", 2, "no class can go on with fewer GPUs");
    says(&sweep, "job,submit_s\nx,0\n", 2, "column `gpus` is missing");
    // A layout for more GPUs than the class has, and a class for more than the cluster.
    let of = |keys: &str| cluster("", &job("a", keys));
    says(
        &of("tp = 2, pp = 3, dp = 2").replace("tp = 1\n", ""),
        TRACE,
        2,
        "jobs of class a have 12 GPUs; it must be at least that",
    );
    let fewer = of("dp = 4").replace("name = \"a\"", "name = \"a\"\ngpus = 2");
    says(&fewer, TRACE, 2, "job.a.");
    says(&sweep.replace("iterations_at = \"flow\",", ""), TRACE, 2, "[[job]] tables are classes of jobs");
    let traffic = "\n[[job]]\nname = \"a\"\ngpus = 4\nkind = \"traffic\"\n";
    says(&cluster("", traffic), TRACE, 2, "repeats an iteration, which \"traffic\" does not");
    let serves = format!("\n[[job]]\nname = \"a\"\nkind = \"inference\"\nmodel = {MODEL}\ntp = 2\n");
    says(&cluster("", &serves), TRACE, 2, "its requests wait, and no work of it ends later");
    says(
        &cluster("", "").replace("source = \"trace\", path = \"t.csv\"", "source = \"classes\""),
        "",
        2,
        "it needs classes",
    );
    // A model that does not fit its GPUs is told as it is elsewhere.
    let large = cluster("", "\n[[job]]\nname = \"a\"\nkind = \"model\"\nmodel = \"gpt3-13b\"\ntp = 1\ndp = 4\n");
    let folder = Folder::new(&[("s.toml", &large), ("t.csv", &row("x,0,,100,a,,"))]);
    folder.run(&["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(folder.column("o/results.csv", "status"), ["oom"]);
}
