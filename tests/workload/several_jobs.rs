//! Several jobs on one network: alone and together, fair shares, the same bytes whatever runs them, and what is refused.

use crate::support::program::Folder;

/// Two leaves of four GPUs, an uplink each.
const TWO_LEAVES: &str = r#"
[base]
cluster = { gpus = 8, gpus_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 1, oversubscription = 4, link_gbps = 100, uplink_gbps = 100 }
transport.payload_bytes = 4000
output.flows = true
"#;

/// Collectives of two GPUs under one leaf and of four across the leaves, which share nothing.
const APART: &str = r#"
[[job]]
name = "a"
kind = "collective"
op = "all-reduce"
bytes = 2000000
placement = [0, 1]
iterations = 2
warmup = 1

[[job]]
name = "b"
kind = "collective"
op = "all-to-all"
bytes = 1000000
placement = [3, 7, 2, 6]
start_us = 30
"#;

/// A collective, a model that starts later, and traffic on the GPUs of both.
const MIXED: &str = r#"
[[job]]
name = "a"
kind = "collective"
op = "all-reduce"
bytes = 300000
gpus = 4
placement = "spread"
iterations = 2

[[job]]
name = "b"
kind = "model"
model = { name = "small", transformer = { layers = 2, hidden = 256, heads = 8, vocab = 1000, seq = 128 } }
tp = 2
dp = 2
global_batch = 4
start_us = 20

[[job]]
name = "noise"
kind = "traffic"
pattern = "poisson"
load = 0.5
duration_ns = 500000
background = true
"#;

fn sweep(name: &str, parts: &[&str]) -> String {
    format!("name = \"{name}\"\n{}", parts.concat())
}

/// Runs a sweep file of the folder into `out`.
fn run(folder: &Folder, file: &str, out: &str, more: &[&str]) {
    let args: Vec<&str> =
        ["run", file, "--out", out, "--engine", "cpu", "--quiet"].into_iter().chain(more.iter().copied()).collect();
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{file}: {}", ran.stderr);
}

/// A file of results without some of its columns, row by row.
fn rows(folder: &Folder, file: &str, without: &[&str]) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(folder.file(file)).unwrap();
    let headers = reader.headers().unwrap().clone();
    let keep: Vec<usize> = (0..headers.len()).filter(|at| !without.contains(&&headers[*at])).collect();
    let row = |r: csv::StringRecord| keep.iter().map(|at| r[*at].to_string()).collect();
    reader.records().map(|r| row(r.unwrap())).collect()
}

/// A job's table out of several.
fn table_of(jobs: &str, name: &str) -> String {
    let tables =
        jobs.split("[[job]]").find(|t| t.contains(&format!("name = \"{name}\""))).expect("there is such a job");
    format!("[[job]]{tables}")
}

#[test]
fn placements_that_overlap_at_some_points_alone_stop_these_alone() {
    let job = |name: &str| format!("[[job]]\nname = \"{name}\"\nkind = \"traffic\"\npattern = \"ring\"\ngpus = 4\n");
    let sweep = format!(
        "name = \"p\"\n[base.cluster]\ngpus = 16\ngpus_per_server = 4\n{}{}[axes]\n\"job.a.placement\" = [\"0-3\", \"4-7\"]\n\"job.b.placement\" = [\"0-3\", \"packed\"]\n",
        job("a"),
        job("b")
    );
    let folder = Folder::new(&[("s.toml", &sweep)]);
    let plan = folder.run(&["plan", "s.toml"]);
    assert!(plan.stdout.contains("cannot run: 1\n"), "{}{}", plan.stdout, plan.stderr);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]).code, 1);
    assert_eq!(folder.column("o/results.csv", "status"), ["failed", "ok", "ok", "ok"]);
}

#[test]
fn jobs_placed_apart_have_the_bytes_of_the_jobs_alone() {
    let axes = "\n[axes]\n\"transport.cc\" = [\"dcqcn\", \"hpcc\"]\n\"fidelity.fast_forward\" = [\"exact\", \"off\"]\n";
    let folder = Folder::new(&[
        ("both.toml", &sweep("both", &[TWO_LEAVES, "output.alone = true\n", APART, axes])),
        ("a.toml", &sweep("a", &[TWO_LEAVES, &table_of(APART, "a"), axes])),
        ("b.toml", &sweep("b", &[TWO_LEAVES, &table_of(APART, "b"), axes])),
    ]);
    for name in ["both", "a", "b"] {
        run(&folder, &format!("{name}.toml"), name, &[]);
    }
    // Flows are numbered over all jobs; nothing else may differ.
    let jobs =
        rows(&folder, "both/jobs.csv", &["first_flow", "alone_makespan_ns", "alone_iteration_time_ns", "slowdown"]);
    let flows = rows(&folder, "both/flows.csv", &["flow_id", "job"]);
    let mut alone = (Vec::new(), Vec::new());
    for exp in ["0", "1", "2", "3"] {
        for name in ["a", "b"] {
            let of = |file: &str, without: &[&str]| {
                rows(&folder, &format!("{name}/{file}"), without).into_iter().filter(|row| row[0] == exp)
            };
            let without = ["first_flow", "alone_makespan_ns", "alone_iteration_time_ns", "slowdown"];
            alone.0.extend(of("jobs.csv", &without));
            alone.1.extend(of("flows.csv", &["flow_id"]));
        }
    }
    assert_eq!((jobs, flows), alone);
    // Only where there are several does a flow name its job.
    let mut of_flows = folder.column("both/flows.csv", "src").into_iter().zip(folder.column("both/flows.csv", "job"));
    assert!(of_flows.all(|(src, job)| job == if ["0", "1"].contains(&&*src) { "a" } else { "b" }));
    let header = String::from_utf8(folder.bytes("a/flows.csv")).unwrap();
    assert_eq!(header.lines().next(), Some("exp_id,flow_id,src,dst,bytes,start_ns,fct_ns,slowdown,retransmissions"));
    assert_eq!(folder.column("both/jobs.csv", "slowdown"), ["1"; 8]);
    assert_eq!(folder.column("both/jobs.csv", "shares_with"), [""; 8]);
    // Folding changes no byte of them.
    let pairs = rows(&folder, "both/jobs.csv", &["exp_id"]);
    assert_eq!((&pairs[0..2], &pairs[4..6]), (&pairs[2..4], &pairs[6..8]));
}

#[test]
fn a_job_on_the_first_gpus_is_what_the_workload_alone_is() {
    let head = TWO_LEAVES.to_string() + "transport.cc = \"dcqcn\"\n";
    let table = "kind = \"collective\"\nop = \"all-reduce\"\nbytes = 500000\nalgorithm = \"ring\"\n";
    let folder = Folder::new(&[
        ("job.toml", &sweep("job", &[&head, "[[job]]\nname = \"a\"\ngpus = 6\n", table])),
        ("workload.toml", &sweep("workload", &[&head, "[base.workload]\nranks = 6\n", table])),
    ]);
    run(&folder, "job.toml", "job", &[]);
    run(&folder, "workload.toml", "workload", &[]);
    assert_eq!(folder.bytes("job/flows.csv"), folder.bytes("workload/flows.csv"));
    for column in ["makespan_ns", "iteration_time_ns", "busbw_gbps", "packet_hops", "algorithm"] {
        let of = |out: &str| folder.column(&format!("{out}/results.csv"), column);
        assert_eq!(of("job"), of("workload"), "{column}");
    }
}

#[test]
fn a_start_moves_a_job_and_changes_nothing_else() {
    let axes = "\n[axes]\n\"job.a.start_us\" = [0, 123.456789]\n";
    let folder = Folder::new(&[("s.toml", &sweep("s", &[TWO_LEAVES, &table_of(APART, "a"), axes]))]);
    // Not HPCC: what its telemetry counts depends on when.
    run(&folder, "s.toml", "o", &["--set", "transport.cc=dcqcn"]);
    let moved = ["exp_id", "start_ns", "end_ns"];
    let jobs = rows(&folder, "o/jobs.csv", &moved);
    assert_eq!(jobs[0], jobs[1]);
    assert_eq!(folder.column("o/jobs.csv", "start_ns"), ["0", "123456.789"]);
    let first = |exp: &str| -> f64 {
        let of = |row: &&Vec<String>| row[0] == exp;
        let starts = rows(&folder, "o/flows.csv", &[]);
        starts.iter().filter(of).map(|row| row[5].parse::<f64>().unwrap()).fold(f64::INFINITY, f64::min)
    };
    assert!((first("1") - first("0") - 123_456.789).abs() < 1e-6, "{} {}", first("0"), first("1"));
}

#[test]
fn jobs_arrive_at_random_by_their_seed() {
    let job = |n: u32| {
        let gpus = format!("[{}, {}]", 2 * n, 2 * n + 1);
        format!(
            "[[job]]\nname = \"j{n}\"\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 2000\nplacement = {gpus}\narrival_us = 100\n"
        )
    };
    let network = "[base]\ncluster = { gpus = 64, gpus_per_server = 1 }\ntopology.kind = \"clos\"\n";
    let jobs: String = (0..32).map(job).collect();
    let folder = Folder::new(&[("s.toml", &sweep("s", &[network, &jobs, "[sweep]\nreplicas = 24\n"]))]);
    run(&folder, "s.toml", "o", &[]);
    run(&folder, "s.toml", "again", &["--jobs", "1"]);
    assert_eq!(folder.bytes("o/jobs.csv"), folder.bytes("again/jobs.csv"));
    let starts: Vec<f64> = folder.column("o/jobs.csv", "start_ns").iter().map(|ns| ns.parse().unwrap()).collect();
    let replicas: Vec<&[f64]> = starts.chunks(32).collect();
    assert!(replicas.iter().all(|of| of.is_sorted() && of[0] > 0.0), "{starts:?}");
    assert!(replicas[0] != replicas[1]);
    // 768 gaps of 100 us: their mean is within three times a twenty-eighth.
    let mean = replicas.iter().map(|of| of[31]).sum::<f64>() / 768.0;
    assert!((90_000.0..110_000.0).contains(&mean), "{mean}");
    // What start_us says is added; another job's key changes nobody else's draw.
    let later = ["--set", "job.j31.start_us=7", "--set", "job.j30.arrival_us=0"];
    run(&folder, "s.toml", "later", &later);
    let moved: Vec<f64> = folder.column("later/jobs.csv", "start_ns").iter().map(|ns| ns.parse().unwrap()).collect();
    assert_eq!((&moved[..30], moved[30]), (&starts[..30], 0.0));
    let gap = starts[31] - starts[30];
    assert!((moved[31] - (starts[29] + gap + 7_000.0)).abs() < 0.01, "{} {}", moved[31], starts[29] + gap);
}

#[test]
fn storage_slows_down_a_job_beside_it_and_all_its_bytes_arrive() {
    let storage = "[[job]]\nname = \"s\"\nkind = \"traffic\"\npattern = \"storage\"\nbytes = 600000\nstorage_ranks = 2\nplacement = \"0-3,6,7\"\n\
                   every_us = 200\nduration_ns = 500000\nbackground = true\n";
    let job = "[[job]]\nname = \"a\"\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 4000000\nplacement = \"0-3\"\n";
    let text = sweep("s", &[TWO_LEAVES, "output.alone = true\n", job, storage]);
    let folder = Folder::new(&[("s.toml", &text)]);
    run(&folder, "s.toml", "o", &[]);
    // Three bursts of four clients.
    assert_eq!(folder.column("o/jobs.csv", "bytes"), ["16000000", "7200000"]);
    let slowdown: f64 = folder.column("o/jobs.csv", "slowdown")[0].parse().unwrap();
    assert!(slowdown > 1.05, "{slowdown}");
}

#[test]
fn two_jobs_on_one_uplink_get_fair_shares() {
    // One pair of flows each, over an uplink that is half of what their NICs could fill.
    let job = |name: &str, gpus: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 300000000\nplacement = {gpus}\n"
        )
    };
    let axes = "[axes]\n\"transport.cc\" = [\"dcqcn\", \"hpcc\"]\n";
    let text = sweep("fair", &[TWO_LEAVES, "output.alone = true\n", &job("a", "[0, 4]"), &job("b", "[1, 5]"), axes]);
    let folder = Folder::new(&[("s.toml", &text)]);
    run(&folder, "s.toml", "o", &[]);
    let number = |column: &str| -> Vec<f64> {
        folder.column("o/jobs.csv", column).iter().map(|cell| cell.parse().unwrap()).collect()
    };
    let (times, slowdowns) = (number("makespan_ns"), number("slowdown"));
    for (cc, at) in [("dcqcn", 0), ("hpcc", 2)] {
        let rates = [1.0 / times[at], 1.0 / times[at + 1]];
        let share = rates[0] / (rates[0] + rates[1]);
        println!("{cc}: share {share:.4}, slowdowns {:?}", &slowdowns[at..at + 2]);
        assert!((share / 0.5 - 1.0).abs() < 0.03, "{cc}: the first job has {share} of the uplink");
        // Both together cannot have more than the uplink carries, and should leave little of it.
        assert!(slowdowns[at..at + 2].iter().all(|s| (1.85..2.3).contains(s)), "{cc}: {slowdowns:?}");
    }
    assert_eq!(folder.column("o/jobs.csv", "shares_with"), ["b:4", "a:4", "b:4", "a:4"]);
    assert_eq!(folder.column("o/jobs.csv", "shared_links"), ["4"; 4]);
    assert_eq!(folder.column("o/jobs.csv", "busiest_shared_link")[0], "leaf0->spine0");
}

#[test]
fn shared_links_say_who_sends_how_much_over_which() {
    // Each sends both ways over the one uplink; c sends under leaf 0 only, over the link to the GPU that b has there, too.
    let job = |name: &str, gpus: &str, bytes: u32, more: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nkind = \"traffic\"\npattern = \"ring\"\nbytes = {bytes}\nplacement = {gpus}\n{more}"
        )
    };
    let jobs =
        [job("a", "[0, 4]", 9000, ""), job("b", "[1, 5]", 5000, ""), job("c", "[1, 2]", 300, "background = true\n")]
            .concat();
    let axes = "[axes]\n\"fidelity.mode\" = [\"packet\", \"flow\"]\n\"job.b.placement\" = [[1, 5], [6, 7]]\n";
    let text = sweep("shared", &[TWO_LEAVES, "output.shared_links = true\n", &jobs, axes]);
    let folder = Folder::new(&[("s.toml", &text)]);
    run(&folder, "s.toml", "o", &[]);
    run(&folder, "s.toml", "one", &["--jobs", "1", "--memo", "off"]);
    run(&folder, "s.toml", "s0", &["--shard", "0/2"]);
    run(&folder, "s.toml", "s1", &["--shard", "1/2"]);
    assert_eq!(folder.run(&["merge", "s1", "s0", "--out", "merged"]).code, 0);
    run(&folder, "s.toml", "cut", &[]);
    let journal = folder.bytes("cut/journal.bin");
    std::fs::write(folder.file("cut/journal.bin"), &journal[..journal.len() / 2]).unwrap();
    run(&folder, "s.toml", "cut", &["--resume"]);
    for out in ["one", "merged", "cut"] {
        assert!(folder.bytes("o/shared_links.csv") == folder.bytes(&format!("{out}/shared_links.csv")), "{out}");
    }
    let of_one = [
        "host1->leaf0,b,5000,300,c",
        "host1->leaf0,c,300,5000,b",
        "leaf0->host1,b,5000,300,c",
        "leaf0->host1,c,300,5000,b",
        "leaf0->spine0,a,9000,5000,b",
        "leaf0->spine0,b,5000,9000,a",
        "leaf1->spine0,a,9000,5000,b",
        "leaf1->spine0,b,5000,9000,a",
        "spine0->leaf0,a,9000,5000,b",
        "spine0->leaf0,b,5000,9000,a",
        "spine0->leaf1,a,9000,5000,b",
        "spine0->leaf1,b,5000,9000,a",
    ];
    let text = String::from_utf8(folder.bytes("o/shared_links.csv")).unwrap();
    let mut rows: Vec<&str> = text.lines().skip(1).collect();
    rows.sort_unstable();
    // Apart from each other, as in experiments 1 and 3, jobs have no row.
    let of_both: Vec<String> = ["0", "2"].iter().flat_map(|exp| of_one.map(|row| format!("{exp},{row}"))).collect();
    assert_eq!(rows, of_both);
    let explained = folder.run(&["compare", "o", "--explain", "0", "1"]);
    let told = "a: leaf0->spine0 carries most, 14000 bytes: a 64.3 %, b 35.7 %; shared_links.csv has every link";
    assert!(explained.stdout.contains(told), "{}{}", explained.stdout, explained.stderr);
    assert_eq!(folder.run(&["report", "o"]).code, 0);
    let page = String::from_utf8(folder.bytes("o/report.html")).unwrap();
    assert!(page.contains("spine0\",\"a\",\"9000\",\"5000\",\"b\"]"), "the page has the busiest links");
}

#[test]
fn shorter_flows_get_fair_shares_whatever_is_marked() {
    let job = |name: &str, gpus: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 50000000\nplacement = {gpus}\n"
        )
    };
    let axes = "[axes]\n\"transport.cc\" = [\"dcqcn\", \"hpcc\"]\n\"transport.seed\" = [1, 2, 3]\n";
    let text = sweep("fair", &[TWO_LEAVES, &job("a", "[0, 4]"), &job("b", "[1, 5]"), axes]);
    let folder = Folder::new(&[("s.toml", &text)]);
    for bytes in ["50000000", "100000000"] {
        let sizes = [format!("job.a.bytes={bytes}"), format!("job.b.bytes={bytes}")];
        run(&folder, "s.toml", bytes, &["--set", &sizes[0], "--set", &sizes[1]]);
        let times: Vec<f64> =
            folder.column(&format!("{bytes}/jobs.csv"), "makespan_ns").iter().map(|ns| ns.parse().unwrap()).collect();
        for pair in times.chunks(2) {
            let share = pair[1] / (pair[0] + pair[1]);
            assert!((share / 0.5 - 1.0).abs() < 0.03, "{bytes} bytes: the first job has {share} of the uplink");
        }
    }
}

#[test]
fn dcqcn_favours_no_job_over_many_draws_of_marks() {
    let job = |name: &str, gpus: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 50000000\nplacement = {gpus}\n"
        )
    };
    let axes = "transport.cc = \"dcqcn\"\n";
    let seeds = "[axes]\n\"transport.seed\" = { start = 1, stop = 24, step = 1 }\n";
    let text = sweep("fair", &[TWO_LEAVES, axes, &job("a", "[0, 4]"), &job("b", "[1, 5]"), seeds]);
    let folder = Folder::new(&[("s.toml", &text)]);
    run(&folder, "s.toml", "o", &[]);
    let times: Vec<f64> = folder.column("o/jobs.csv", "makespan_ns").iter().map(|ns| ns.parse().unwrap()).collect();
    let off: Vec<f64> = times.chunks(2).map(|pair| 2.0 * pair[1] / (pair[0] + pair[1]) - 1.0).collect();
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    let deviation = (off.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (off.len() - 1) as f64).sqrt();
    println!("mean {mean:.4}, standard deviation {deviation:.4}");
    // Three standard errors at most; a single draw is seldom off by more than 3 %.
    assert!(mean.abs() < 3.0 * deviation / (off.len() as f64).sqrt() && mean.abs() < 0.01, "{mean} {off:?}");
    assert!(deviation < 0.02, "{deviation}");
}

#[test]
fn bytes_do_not_depend_on_what_runs_the_jobs() {
    let axes = "\n[axes]\n\"transport.cc\" = [\"dcqcn\", \"hpcc\"]\n\"fidelity.fast_forward\" = [\"exact\", \"off\"]\n";
    let alone = "output.alone = true\noutput.rtt = true\noutput.shared_links = true\n";
    let folder = Folder::new(&[("s.toml", &sweep("mixed", &[TWO_LEAVES, alone, MIXED, axes]))]);
    run(&folder, "s.toml", "whole", &[]);
    run(&folder, "s.toml", "one", &["--jobs", "1"]);
    run(&folder, "s.toml", "s0", &["--shard", "0/2"]);
    run(&folder, "s.toml", "s1", &["--shard", "1/2"]);
    let merged = folder.run(&["merge", "s1", "s0", "--out", "merged"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    // A run that was cut off in its journal is carried on with.
    run(&folder, "s.toml", "cut", &[]);
    let journal = folder.bytes("cut/journal.bin");
    std::fs::write(folder.file("cut/journal.bin"), &journal[..journal.len() * 2 / 3]).unwrap();
    run(&folder, "s.toml", "cut", &["--resume"]);
    for out in ["one", "merged", "cut"] {
        for file in ["results.csv", "results.parquet", "jobs.csv", "shared_links.csv", "flows.csv", "rtt.csv"] {
            assert!(folder.bytes(&format!("whole/{file}")) == folder.bytes(&format!("{out}/{file}")), "{out}/{file}");
        }
    }
    let of = |file: &str| rows(&folder, &format!("whole/{file}"), &["exp_id"]);
    let jobs = of("jobs.csv");
    assert_eq!((&jobs[0..3], &jobs[6..9]), (&jobs[3..6], &jobs[9..12]));
    // The jobs meet, and background does not hold up the makespan.
    let slower = folder.column("whole/jobs.csv", "slowdown").iter().filter(|s| s.parse::<f64>().unwrap() > 1.0).count();
    assert!(slower >= 4, "{:?}", folder.column("whole/jobs.csv", "slowdown"));
    let ends = folder.column("whole/jobs.csv", "end_ns");
    let last = ends[0].parse::<f64>().unwrap().max(ends[1].parse().unwrap());
    assert_eq!(folder.column("whole/results.csv", "makespan_ns")[0].parse::<f64>().unwrap(), last);
    // Flows of a job follow one another.
    let first: Vec<usize> = folder.column("whole/jobs.csv", "first_flow").iter().map(|f| f.parse().unwrap()).collect();
    let n: Vec<usize> = folder.column("whole/jobs.csv", "flows").iter().map(|f| f.parse().unwrap()).collect();
    assert_eq!((first[2], first[0], first[1]), (0, n[2], n[2] + n[0]));
    let trace = folder.run(&["trace", "whole", "0"]);
    assert_eq!(trace.code, 0, "{}", trace.stderr);
}

#[test]
fn placements_are_axes_and_chance_is_the_seeds() {
    let axes = "\n[axes]\n\"job.a.placement\" = [\"packed\", \"spread\", \"rail\", \"random\", [7, 0]]\n";
    let job = "[[job]]\nname = \"a\"\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = 10000\ngpus = 2\n";
    let head = TWO_LEAVES.replace("gpus_per_server = 1", "gpus_per_server = 2");
    let folder = Folder::new(&[("s.toml", &sweep("s", &[&head, job, axes]))]);
    run(&folder, "s.toml", "o", &[]);
    run(&folder, "s.toml", "again", &[]);
    let gpus = folder.column("o/jobs.csv", "gpu_list");
    assert_eq!((&gpus[..3], &gpus[4..]), (&["0-1", "0,2", "0,2"].map(String::from)[..], &["7,0".to_string()][..]));
    assert_eq!(folder.bytes("o/jobs.csv"), folder.bytes("again/jobs.csv"));
    assert_eq!(folder.column("o/results.csv", "job.a.placement")[4], "7,0");
    // With other seeds of the sweep it lies elsewhere.
    let elsewhere = (2..8).any(|seed| {
        let out = format!("seed{seed}");
        run(&folder, "s.toml", &out, &["--set", &format!("seed={seed}")]);
        folder.column(&format!("{out}/jobs.csv"), "gpu_list")[3] != gpus[3]
    });
    assert!(elsewhere, "{gpus:?}");
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    let folder = Folder::new(&[("s.toml", &sweep("s", &[TWO_LEAVES, APART]))]);
    for (set, part) in [
        ("job.b.placement=[3, 1, 2, 6]", "jobs `a` and `b` share GPUs: 1; 6 of 8 GPUs are free"),
        ("job.b.placement=0-8", "`job.b.placement = \"0-8\"`: there is no GPU 8; cluster.gpus = 8"),
        ("job.b.gpus=3", "the list names 4 GPUs, but the job has 3"),
        ("cluster.gpus=4", "there is no GPU 7; cluster.gpus = 4, counted from 0"),
        ("job.b.placement=pakced", "it must be one of packed, spread, random, rail, or a list of GPUs"),
        ("job.b.placement=0,0", "GPU 0 is listed twice"),
        ("job.c.gpus=3", "there is no job `c`; the jobs are a, b"),
        ("job.a.gpsu=3", "did you mean `job.a.gpus`?"),
        ("job.a.link_gbps=3", "`topology.link_gbps` is the same for all jobs; write it in [base]"),
        ("job.a.workload.tp=2", "write `job.a.tp`"),
        ("job.a.background=true", "only workloads of kind traffic or flows can be background"),
        ("job.a.nccl.NCCL_P2P_DISABLE=1", "use cluster.nvlink_gbps = 0"),
        ("job.a.ranks=3", "it must be at most job.a.gpus = 2"),
        ("job.a.op=sum", "`job.a.op = sum`: it must be one of"),
        ("transport.rto_us=x", "`transport.rto_us = x`"),
    ] {
        let ran = folder.run(&["plan", "s.toml", "--set", set]);
        assert!(ran.code == 2 && ran.stderr.contains(part), "{set}: {} {}", ran.code, ran.stderr);
    }
    for (text, part) in [
        (
            "[[job]]\nname = \"a\"\nkind = \"traffic\"\npattern = \"ring\"\ngpus = 10\n",
            "the jobs have 10 GPUs together (a has 10), 2 too many",
        ),
        ("[[job]]\nkind = \"traffic\"\n", "`job.name` is missing"),
        ("[[job]]\nname = \"a b\"\n", "1 to 64 letters, digits, `-` and `_`"),
        ("[[job]]\nname = \"a\"\n[[job]]\nname = \"a\"\n", "another [[job]] has this name"),
        ("[[job]]\nname = \"a\"\ngpus = 2\n", "`job.a.kind` is missing; it is required"),
        (
            "[[job]]\nname = \"a\"\nkind = \"collective\"\nop = \"barrier\"\n",
            "`job.a.gpus` is missing; say how many GPUs",
        ),
        ("base.job.gpus = 2\n", "jobs are [[job]] tables"),
        ("job = 2\n", "write tables: [[job]]"),
    ] {
        let text = if text.starts_with('[') {
            format!("name = \"s\"\n{TWO_LEAVES}{text}")
        } else {
            format!("name = \"s\"\n{text}")
        };
        folder.write("bad.toml", &text);
        let ran = folder.run(&["plan", "bad.toml"]);
        assert!(ran.code == 2 && ran.stderr.contains(part), "{text}: {} {}", ran.code, ran.stderr);
    }
}

#[test]
fn flow_files_and_programs_of_other_tools_are_jobs() {
    let flows = "2\n0 1 3 100 50000 0\n1 0 3 100 60000 0.000001\n";
    let goal = "num_ranks 2\nrank 0 {\ns: send 40000b to 1 tag 1\n}\nrank 1 {\nr: recv 40000b from 0 tag 1\n}\n";
    let jobs = "[[job]]\nname = \"file\"\nkind = \"flows\"\npath = \"f.txt\"\nplacement = [6, 2]\n\
                [[job]]\nname = \"goal\"\nkind = \"goal\"\npath = \"p.goal\"\n";
    let folder = Folder::new(&[("f.txt", flows), ("p.goal", goal), ("s.toml", &sweep("s", &[TWO_LEAVES, jobs]))]);
    run(&folder, "s.toml", "o", &[]);
    assert_eq!(folder.column("o/flows.csv", "src"), ["6", "2", "0"]);
    assert_eq!(folder.column("o/flows.csv", "dst"), ["2", "6", "1"]);
    assert_eq!(folder.column("o/jobs.csv", "gpu_list"), ["6,2", "0-1"]);
    assert_eq!(folder.column("o/jobs.csv", "bytes"), ["110000", "40000"]);
}

#[test]
fn a_ranking_says_which_job_it_is_by() {
    let folder = Folder::new(&[(
        "s.toml",
        &format!("name = \"s\"\n{TWO_LEAVES}{APART}[axes]\n\"transport.cc\" = [\"dcqcn\", \"hpcc\"]\n"),
    )]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let note =
        "ranked by the iteration time of job a; by another: `hyperfold compare o --metric job.b.iteration_time_ns`";
    assert!(ran.stdout.lines().any(|l| l == note), "{}", ran.stdout);
    let ranking =
        |args: &[&str]| folder.run(&[&["compare", "o"], args].concat()).stdout.lines().next().unwrap().to_string();
    assert_eq!(ranking(&[]), "ranking by iteration_time_ns of job a (less is better)");
    assert_eq!(
        ranking(&["--metric", "job.b.iteration_time_ns"]),
        "ranking by job.b.iteration_time_ns (less is better)"
    );
    assert_eq!(ranking(&["--metric", "makespan_ns"]), "ranking by makespan_ns (less is better)");
    assert!(folder.text("o/report.html").contains("iteration time of job a"));
}

/// An all-reduce across the leaves, another one beside it, and one that stays under a leaf.
const CROSSING: &str = r#"
[[job]]
name = "a"
kind = "collective"
op = "all-reduce"
bytes = 400000
placement = [0, 4]

[[job]]
name = "b"
kind = "collective"
op = "all-reduce"
bytes = 400000
placement = [1, 5]

[[job]]
name = "c"
kind = "collective"
op = "all-reduce"
bytes = 400000
placement = [2, 3]
"#;

#[test]
fn leaving_each_job_out_says_who_slows_whom() {
    let apart = [TWO_LEAVES, &table_of(CROSSING, "a"), &table_of(CROSSING, "c")].concat();
    let folder = Folder::new(&[
        ("all.toml", &sweep("all", &[TWO_LEAVES, "output.leave_one_out = true\n", CROSSING])),
        ("without-b.toml", &sweep("without-b", &[&apart])),
    ]);
    run(&folder, "all.toml", "all", &[]);
    run(&folder, "without-b.toml", "without-b", &[]);
    let slowed_by = folder.column("all/jobs.csv", "slowed_by");
    let factors = |row: usize| -> Vec<(&str, f64)> {
        let cells = slowed_by[row].split(' ').filter_map(|cell| cell.split_once(':'));
        cells.map(|(job, factor)| (job, factor.parse().unwrap())).collect()
    };
    let of_a = factors(0);
    assert_eq!([of_a[0].0, of_a[1].0], ["b", "c"]);
    assert!(of_a[0].1 > 1.2, "b shares the uplinks of a: {slowed_by:?}");
    assert_eq!((of_a[1].1, factors(2)), (1.0, vec![("a", 1.0), ("b", 1.0)]), "c meets nobody");
    // The factor is that of a run in which b does not take part.
    let time = |out: &str| folder.column(&format!("{out}/jobs.csv"), "iteration_time_ns")[0].parse::<f64>().unwrap();
    assert!((time("all") / time("without-b") - of_a[0].1).abs() < 1e-5, "{slowed_by:?}");
}
