//! `hyperfold compare` and `hyperfold trace` as a user meets them, on runs of the program itself.

use std::fs;
use std::path::Path;

use crate::support::program::{Folder, Ran, hyperfold};
use serde_json::Value;

const SWEEP: &str = r#"name = "c"
[base.cluster]
gpus = 8
gpus_per_server = 1
nics_per_server = 1
[base.workload]
kind = "traffic"
pattern = "incast"
fan_in = 4
bytes = 50000
[base.output]
flows = true
links = true
[sweep]
replicas = 2
[axes]
"transport.cc" = ["dcqcn", "hpcc"]
"topology.link_gbps" = [100, 200]
"#;

fn run(root: &Path, out: &str, set: &[&str]) {
    fs::write(root.join("s.toml"), SWEEP).unwrap();
    let mut args = vec!["run", "s.toml", "--out", out, "--quiet", "--engine", "cpu"];
    set.iter().for_each(|s| args.extend(["--set", s]));
    let output = hyperfold(root, &args);
    assert_eq!(output.code, 0, "{}", output.stderr);
}

fn lines(output: &Ran, kind: &str) -> Vec<Value> {
    let all = &output.stdout;
    let objects = all.lines().map(|l| serde_json::from_str::<Value>(l).expect("one object a line"));
    objects.filter(|o| o["kind"] == kind).collect()
}

#[test]
fn the_best_configuration_is_what_the_rows_say() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "a", &[]);
    let output =
        hyperfold(root.path(), &["compare", "a", "--json", "--top", "3", "--pareto", "makespan_ns,max_queue_bytes"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let ranking = lines(&output, "ranking");
    assert_eq!(ranking.len(), 3);
    // The means by hand, from the CSV file.
    let mut reader = csv::Reader::from_path(root.path().join("a/results.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|h| h == name).unwrap();
    let mut means: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
    for row in reader.records() {
        let row = row.unwrap();
        means
            .entry(format!("{} {}", &row[at("transport.cc")], &row[at("topology.link_gbps")]))
            .or_default()
            .push(row[at("makespan_ns")].parse().unwrap());
    }
    let mean = |v: &Vec<f64>| v.iter().sum::<f64>() / v.len() as f64;
    let best = means.values().map(mean).fold(f64::INFINITY, f64::min);
    let found = ranking[0]["makespan_ns"].as_f64().unwrap();
    assert!((found - best).abs() < 1e-6, "{found} {best}");
    let of_best =
        &means[&format!("{} {}", ranking[0]["transport.cc"].as_str().unwrap(), ranking[0]["topology.link_gbps"])
            .trim_end_matches(".0")
            .to_string()];
    assert!((mean(of_best) - best).abs() < 1e-6);
    let axes = lines(&output, "axis");
    assert_eq!(axes.len(), 4, "two values of two axes");
    assert_eq!(axes[0]["axis"], "topology.link_gbps", "the strongest first");
    assert!(!lines(&output, "pareto").is_empty());
}

#[test]
fn gates_exit_with_3_and_mistakes_with_2() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "base", &[]);
    run(root.path(), "same", &[]);
    run(root.path(), "other", &["workload.bytes=60000"]);
    let compare = |args: &[&str]| hyperfold(root.path(), &[&["compare"], args].concat());

    let passes = compare(&["base", "same", "--fail-if", "makespan_ns > 1.02 * base"]);
    assert_eq!(passes.code, 0, "{}", passes.stdout);
    assert!(passes.stdout.contains("exactly as in the base: 4 of 4 shared configurations"));
    let fails = compare(&[
        "base",
        "same",
        "--fail-if",
        "makespan_ns > 2 * base",
        "--fail-if",
        "makespan_ns >= base.makespan_ns",
        "--json",
    ]);
    assert_eq!(fails.code, 3);
    let gates = lines(&fails, "gates");
    assert_eq!(
        (gates[0]["passed"].as_bool(), gates[1]["passed"].as_bool(), gates[1]["hits"].as_u64()),
        (Some(true), Some(false), Some(8))
    );
    assert_eq!(lines(&fails, "fail_if").len(), 8);
    assert_eq!(compare(&["base", "--fail-if", "drops > 0 && transport.cc == \"hpcc\""]).code, 0);

    for (args, named) in [
        (&["base", "other", "--fail-if", "makespan_ns > base"][..], "no experiment has a partner"),
        (&["base", "same", "--allow-unmatched"], "--fail-if"),
        (&["base", "same", "--fail-if", "makespam_ns > base"], "did you mean `makespan_ns`?"),
        (&["base", "same", "--fail-if", "iteration_time_ns > base"], "has a value of `iteration_time_ns`"),
        (&["base", "--fail-if", "makespan_ns > base"], "first of several folders"),
        (&["base", "--metric", "duration"], "those with values are"),
        (&["base", "--metric", "makespan"], "did you mean `makespan_ns`?"),
        (&["base", "--pareto", "makespan_ns"], "name two metrics"),
        (&["base", "--explain", "0", "99"], "no experiment 99"),
        (&["base", "base"], "given twice"),
        (&["absent"], "no such folder"),
        (&["."], "no manifest.json"),
        (&[], "DIR"),
    ] {
        let output = compare(args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stdout);
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_gate_sees_the_change_it_gates() {
    let root = tempfile::tempdir().unwrap();
    let long = "workload.bytes=1000000";
    run(root.path(), "main", &[long]);
    run(root.path(), "pr", &[long, "transport.hpcc.eta=0.05"]);
    let compare = |args: &[&str]| hyperfold(root.path(), &[&["compare", "main"], args].concat());
    let gate = compare(&["pr", "--fail-if", "makespan_ns > 1.02 * base", "--json"]);
    assert_eq!(gate.code, 3, "{}", gate.stdout);
    assert!(
        lines(&gate, "fail_if").iter().all(|h| h["transport.cc"] == "hpcc") && lines(&gate, "fail_if").len() == 4,
        "{}",
        gate.stdout
    );
    assert!(gate.stdout.contains("transport.hpcc.eta 0.95 -> 0.05"), "{}", gate.stdout);
    assert_eq!(lines(&gate, "gates")[0]["checked"], 8);

    // A base of which only a part is there.
    let limited = hyperfold(
        root.path(),
        &["run", "s.toml", "--out", "part", "--quiet", "--engine", "cpu", "--limit", "6", "--set", long],
    );
    assert_eq!(limited.code, 0, "{}", limited.stderr);
    let part = compare(&["part", "--fail-if", "makespan_ns > 1.02 * base", "--json"]);
    assert_eq!((part.code, lines(&part, "unmatched").len()), (3, 2), "{}", part.stdout);
    assert_eq!(
        (&lines(&part, "gates")[0]["passed"], &lines(&part, "gates")[0]["hits"]),
        (&Value::Bool(false), &Value::from(0))
    );
    assert_eq!(compare(&["part", "--fail-if", "makespan_ns > 1.02 * base", "--allow-unmatched"]).code, 0);
    assert_eq!(
        compare(&["part", "--fail-if", "makespan_ns > 1e12"]).code,
        0,
        "a condition without a base needs no partner"
    );
}

#[test]
fn a_run_names_the_best_as_compare_does() {
    let root = tempfile::tempdir().unwrap();
    fs::write(
        root.path().join("s.toml"),
        SWEEP.replace("fan_in = 4\n", "").replace("[axes]", "[axes]\n\"workload.fan_in\" = [2, 4]"),
    )
    .unwrap();
    let ran = hyperfold(root.path(), &["run", "s.toml", "--out", "a", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said: Vec<&str> = ran.stdout.lines().filter(|l| l.starts_with("best of fan_in ")).collect();
    assert_eq!(said.len(), 2, "one for each width, by its name: {}", ran.stdout);
    let ranking = lines(&hyperfold(root.path(), &["compare", "a", "--json"]), "ranking");
    for (line, fan_in) in said.iter().zip([2, 4]) {
        let best = ranking.iter().find(|r| r["workload.fan_in"] == fan_in).expect("each width is ranked");
        let expected = format!(
            "best of fan_in {fan_in}: experiment {} (cc {}, ",
            best["exp_id"],
            best["transport.cc"].as_str().unwrap()
        );
        assert!(line.starts_with(&expected) && line.contains(", mean of 2 replicas"), "{line}: {expected}");
        let mean = format!("makespan {:.3} us", best["makespan_ns"].as_f64().unwrap() / 1e3);
        assert!(line.contains(&mean[..mean.len() - 5]), "{line}: {mean}");
    }
    let merged = hyperfold(root.path(), &["merge", "a", "--out", "m"]);
    assert!(
        said.iter().all(|line| merged.stdout.lines().any(|l| l == *line)),
        "a merge says the same: {}",
        merged.stdout
    );
}

#[test]
fn what_the_work_grows_with_is_ranked_apart() {
    let root = tempfile::tempdir().unwrap();
    let poisson =
        "kind = \"traffic\"\npattern = \"poisson\"\nload = 0.1\nduration_ns = 20000\ncdf = \"GoogleRPC2008\"\n";
    let sweep = SWEEP.replace("kind = \"traffic\"\npattern = \"incast\"\nfan_in = 4\nbytes = 50000\n", poisson);
    fs::write(root.path().join("s.toml"), sweep).unwrap();
    let ran = hyperfold(root.path(), &["run", "s.toml", "--out", "a", "--quiet", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let output = hyperfold(root.path(), &["compare", "a", "--json"]);
    assert!(
        output.stdout.contains("2 groups that do different work (topology.link_gbps) are ranked apart"),
        "{}",
        output.stdout
    );
    assert!(
        lines(&output, "axis").iter().all(|l| l["axis"] != "topology.link_gbps"),
        "another load is no better answer"
    );
    assert!(fs::read_to_string(root.path().join("a/report.html")).unwrap().contains("\"groups\":[\"link_gbps 100"));
}

#[test]
fn replicas_that_nothing_varies_in_make_no_error_bars() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("flows.txt"), "2\n0 1 3 100 100000 0\n2 1 3 100 100000 0\n").unwrap();
    let sweep = "name = \"f\"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\nnics_per_server = 1\n[base.workload]\nkind = \"flows\"\npath = \"flows.txt\"\nformat = \"ns3\"\n\
                 start_unit = \"ns\"\n[base.transport]\ncc = \"hpcc\"\n[sweep]\nreplicas = 2\n[axes]\n\"topology.link_gbps\" = [100, 400]\n";
    fs::write(root.path().join("s.toml"), sweep).unwrap();
    let output = hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let axes = lines(&hyperfold(root.path(), &["compare", "o", "--json"]), "axis");
    assert!(axes.len() == 2 && axes.iter().all(|a| a["low %"].is_null()), "{axes:?}");
    let text = hyperfold(root.path(), &["compare", "o"]).stdout;
    assert!(!text.contains("low %") && !text.contains("-0.00"), "{text}");
    assert!(fs::read_to_string(root.path().join("o/report.html")).unwrap().contains("\"constant\":true"));
}

#[test]
fn an_interrupted_run_is_compared_by_its_csv() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "a", &[]);
    let whole = hyperfold(root.path(), &["compare", "a"]);
    fs::remove_file(root.path().join("a/results.parquet")).unwrap();
    assert_eq!(hyperfold(root.path(), &["compare", "a"]).stdout, whole.stdout);
}

#[test]
fn differences_are_explained_as_text_and_markdown() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "a", &[]);
    let output =
        hyperfold(root.path(), &["compare", "a", "--explain", "0", "a:2", "--format", "markdown", "--top", "2"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let text = output.stdout;
    assert!(text.contains("| topology.link_gbps | 100 | 200 |"), "{text}");
    assert!(
        text.contains("### links whose use differs most")
            && text.contains("### pairs of ranks whose flows differ most")
    );
}

#[test]
fn a_trace_is_the_same_from_a_run_and_from_its_results() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "a", &["output.trace=true"]);
    let mut names: Vec<String> = fs::read_dir(root.path().join("a/trace"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, (0..8).map(|id| format!("{id}.pftrace")).collect::<Vec<_>>());
    let of_run = fs::read(root.path().join("a/trace/3.pftrace")).unwrap();
    // From elsewhere: the manifest knows where the sweep's files are.
    fs::create_dir(root.path().join("elsewhere")).unwrap();
    let output = hyperfold(&root.path().join("elsewhere"), &["trace", "../a", "3", "--out", "t.pftrace"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(fs::read(root.path().join("elsewhere/t.pftrace")).unwrap(), of_run);
    assert!(!output.stdout.contains("folded"), "{}", output.stdout);
    fs::remove_dir_all(root.path().join("a/trace")).unwrap();
    assert_eq!(hyperfold(root.path(), &["trace", "a", "3"]).code, 0);
    assert_eq!(fs::read(root.path().join("a/trace/3.pftrace")).unwrap(), of_run);
    for (args, named) in [
        (&["trace", "a", "8"][..], "no experiment 8"),
        (&["trace", "absent", "0"], "no such folder"),
        (&["trace", "a", "0", "--from-ns", "5", "--to-ns", "5"], "must be after"),
        (&["trace", "a", "0", "--limit", "0"], "--limit"),
    ] {
        let output = hyperfold(root.path(), args);
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn what_changed_since_a_run_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("flows.txt"), "2\n0 1 3 100 1000 0\n1 0 3 100 1000 0\n").unwrap();
    let sweep = "name = \"f\"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\nnics_per_server = 1\n[base.workload]\nkind = \"flows\"\npath = \"flows.txt\"\nformat = \"ns3\"\nstart_unit = \"ns\"\n";
    fs::write(root.path().join("s.toml"), sweep).unwrap();
    let output = hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(hyperfold(root.path(), &["trace", "o", "0"]).code, 0);
    fs::write(root.path().join("flows.txt"), "1\n0 1 3 100 2000 0\n").unwrap();
    let output = hyperfold(root.path(), &["trace", "o", "0"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("changed since: ") && output.stderr.contains("flows.txt"), "{}", output.stderr);
}

#[test]
fn a_front_is_of_different_metrics() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "a", &[]);
    let ran = hyperfold(root.path(), &["compare", "a", "--pareto", "makespan_ns,makespan_ns"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("--pareto: makespan_ns,makespan_ns names a metric twice"),
        "{}",
        ran.stderr
    );
}

/// Links with queues are more than a small limit's samples, and --ops asks for no samples at all.
#[test]
fn timelines_of_crowded_networks_have_no_least_limit() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "a", &["workload.pattern='all-to-all'"]);
    for limit in ["1", "10", "100", "1000"] {
        let ran = hyperfold(root.path(), &["trace", "a", "0", "--limit", limit]);
        assert_eq!(ran.code, 0, "{limit}: {}", ran.stderr);
    }
    assert_eq!(hyperfold(root.path(), &["compare", "a", "--explain", "0", "4", "--ops"]).code, 0);
}

const STRAGGLERS: &str = r#"name = "s"
[base.cluster]
gpus = 8
gpus_per_server = 4
[base.workload]
kind = "model"
dp = 8
global_batch = 8
straggler_slowdown = 2.0
[base.workload.model]
name = "small"
source = "our choice"
transformer = { layers = 2, hidden = 128, heads = 8, vocab = 1024, seq = 64 }
[axes]
"workload.straggler_ranks" = ["0", "3"]
"#;

/// The straggler ends last; which one that is, is what differs.
#[test]
fn the_same_rank_of_both_is_compared_down_to_its_operations() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), STRAGGLERS).unwrap();
    let ran = hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = hyperfold(root.path(), &["compare", "o", "--explain", "0", "1", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told: Vec<Value> = lines(&ran, "note").into_iter().filter(|n| n["about"] == "explain_time").collect();
    assert!(
        told.iter().any(|n| n["text"].as_str().unwrap().starts_with("rank 0 ends last in a, rank 3 in b")),
        "{told:?}"
    );
    let parts = lines(&ran, "explain_time");
    let part = |name: &str, of: &str| parts.iter().find(|p| p["part"] == name).map_or(0.0, |p| p[of].as_f64().unwrap());
    // Rank 0 computes twice as long where it is the straggler, and waits for the other where it is not.
    assert!((part("compute_ns", "a") / part("compute_ns", "b") - 2.0).abs() < 0.01, "{parts:?}");
    assert!(part("bubble_ns", "b") > part("bubble_ns", "a"), "{parts:?}");
    let whole: f64 = parts[..parts.len() - 1].iter().map(|p| p["b"].as_f64().unwrap()).sum();
    assert!((whole - part("iteration_time_ns", "b")).abs() < 0.01, "{parts:?}");
    // Over all ranks they are the same, without being asked for.
    assert!(lines(&ran, "note").iter().any(|n| n["about"] == "explain_ops"), "{}", ran.stdout);
}

#[test]
fn a_summary_is_a_screen_of_markdown() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "base", &[]);
    run(root.path(), "worse", &["topology.link_delay_ns=5000"]);
    let ran =
        hyperfold(root.path(), &["compare", "base", "worse", "--summary", "--fail-if", "makespan_ns > 1.5 * base"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let said: Vec<&str> = ran.stdout.lines().collect();
    assert!(said.len() <= 25, "{} lines\n{}", said.len(), ran.stdout);
    assert_eq!(said[0], "### worse against base");
    for told in [
        "**recommended:** ",
        "by makespan_ns: of 4 configurations, 4 worse, 0 better, 0 as before.",
        "**Failed:** none of 8 experiments.",
        "Gate `makespan_ns > 1.5 * base`: **hit** by ",
    ] {
        assert!(ran.stdout.contains(told), "{told}\n{}", ran.stdout);
    }
    assert_eq!(said.iter().filter(|l| l.starts_with("| ") && l.contains(" us | ")).count(), 4, "{}", ran.stdout);
    let alone = hyperfold(root.path(), &["compare", "base", "--summary"]);
    assert!(
        alone.code == 0 && alone.stdout.starts_with("### base\n") && !alone.stdout.contains("Against"),
        "{}",
        alone.stdout
    );
}

#[test]
fn an_axis_goes_before_a_result_of_the_same_name_in_series() {
    let sweep = "name = \"a\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1, nics_per_server = 1 }\n\
                 workload = { kind = \"collective\", op = \"all-reduce\" }\n[axes]\n\
                 \"workload.algorithm\" = [\"auto\", \"tree\"]\n\"workload.bytes\" = [100000, 200000]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]).code, 0);
    let plot = ["plot", "o", "--x", "bytes", "--y", "busbw_gbps", "--by", "algorithm", "-o", "f.svg"];
    assert_eq!(folder.run(&plot).code, 0);
    let figure = folder.text("f.svg");
    assert!(figure.contains(">auto<") && figure.contains(">tree<"), "{figure}");
}

/// The page's data, as `report.html` has them.
fn payload(folder: &Folder, page: &str) -> Value {
    let text = folder.text(page);
    let data = text.split_once("id=\"data\"").expect("the page has data").1;
    let (data, _) = data.split_once('>').unwrap().1.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Four networks by closed form alone: one time each, so that nothing is said of them, in either place.
#[test]
fn what_closed_forms_do_not_simulate_is_not_recommended() {
    let sweep = "name = \"a\"\n[base]\ncluster = { gpus = 32 }\n\
                 workload = { kind = \"model\", model = \"gpt3-1.7b\", tp = 8, global_batch = 16, analytic = \"all\" }\n[axes]\n\
                 \"topology.kind\" = [\"rail-optimized\", \"fat-tree\", \"clos\", \"rail-only\"]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for words in ["nothing is recommended: ", "not simulated: topology.kind; no packet and no flow crossed the network"]
    {
        assert!(ran.stdout.contains(words), "{words}\n{}", ran.stdout);
    }
    for words in ["\nrecommended", "does not matter"] {
        assert!(!ran.stdout.contains(words), "{words}\n{}", ran.stdout);
    }
    let page = payload(&folder, "o/report.html");
    assert!(page["design"]["axes"][0]["notSimulated"].is_string() && page["recommendations"][0].is_null());
    let compared = folder.run(&["compare", "o"]).stdout;
    assert!(compared.contains("not simulated") && !compared.contains("does not matter here"), "{compared}");
    // Beside an axis that closed forms do know, that one alone is recommended.
    folder.write("t.toml", &(sweep.replace("tp = 8, ", "") + "\"workload.tp\" = [4, 8]\n"));
    let both = folder.run(&["run", "t.toml", "--out", "t", "--engine", "cpu"]).stdout;
    let line = both.lines().find(|l| l.starts_with("recommended: ")).unwrap_or_else(|| panic!("{both}"));
    assert!(line.starts_with("recommended: tp ") && !line.contains("fat-tree"), "{both}");
    assert!(both.contains("not simulated: topology.kind"), "{both}");
}

/// Days without iterations say nothing of networks and GPUs, and flows say nothing of spraying.
#[test]
fn levels_that_leave_an_axis_out_recommend_nothing_of_it() {
    let days = "name = \"d\"\n[base]\ncluster = { gpus = 64 }\nfidelity = { mode = \"job\" }\njobs = { count = 30, max_gpus = 32 }\n[axes]\n\
                \"topology.kind\" = [\"fat-tree\", \"clos\"]\n\"cluster.gpu\" = [\"h100\", \"a100\"]\n\
                \"scheduler.policy\" = [\"fcfs\", \"backfill\"]\n";
    let flows = "name = \"f\"\n[base]\ncluster = { gpus = 16, gpus_per_server = 2 }\nfidelity = { mode = \"flow\" }\n\
                 workload = { kind = \"traffic\", pattern = \"all-to-all\", bytes = 100000 }\n[axes]\n\
                 \"topology.kind\" = [\"fat-tree\", \"clos\"]\n\"routing.policy\" = [\"ecmp\", \"spray\"]\n";
    let folder = Folder::new(&[("d.toml", days), ("f.toml", flows)]);
    let said = folder.run(&["run", "d.toml", "--out", "d", "--engine", "cpu"]).stdout;
    for words in ["recommended: backfill", "not simulated: topology.kind and cluster.gpu; jobs took the time"] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    let said = folder.run(&["run", "f.toml", "--out", "f", "--engine", "cpu"]).stdout;
    let line = said.lines().find(|l| l.starts_with("recommended: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(!line.contains("spray") && said.contains("not simulated: routing.policy; flows have no packets"), "{said}");
    let compared = folder.run(&["compare", "f"]).stdout;
    assert!(compared.contains("so nothing is said of it: routing.policy"), "{compared}");
}

/// The terminal and the page have one figure for what another value costs.
#[test]
fn the_terminal_and_the_page_have_one_figure() {
    let sweep = "name = \"a\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1, nics_per_server = 1 }\n\
                 workload = { kind = \"traffic\", bytes = 200000, fan_in = 4 }\n[axes]\n\
                 \"workload.pattern\" = [\"ring\", \"incast\"]\n\"transport.cc\" = [\"dcqcn\", \"timely\"]\n\"topology.link_gbps\" = [100, 400]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let said = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]).stdout;
    let page = payload(&folder, "o/report.html");
    let best = &page["recommendations"][0];
    assert!(said.contains("with all else the same, averaged over the 2 workloads:"), "{said}");
    assert!(said.contains("  price: $") && best["cost"].as_f64().unwrap() > 0.0, "{said}");
    let mut compared = 0;
    for axis in best["axes"].as_array().unwrap() {
        let key = page["design"]["axes"][axis["axis"].as_u64().unwrap() as usize]["key"].as_str().unwrap();
        let Some(line) = said.lines().find(|l| l.starts_with(&format!("  {key} "))) else { continue };
        for other in axis["others"].as_array().unwrap().iter().filter(|o| o["tied"] == false) {
            let percent: f64 = format!("{:.2e}", other["worse"].as_f64().unwrap() * 100.0).parse().unwrap();
            assert!(line.contains(&format!("{percent} %")), "{percent}: {line}");
            compared += 1;
        }
    }
    assert!(compared > 0, "{said}");
}

/// What stands in for packets is no design: its values are ranked apart.
#[test]
fn choices_of_model_are_not_recommended() {
    let sweep = "name = \"a\"\n[base]\ncluster = { gpus = 16, server = \"dgx-h100\" }\n\
                 workload = { kind = \"collective\", op = \"all-reduce\", bytes = 1000000 }\n[axes]\n\
                 \"workload.collective_overhead\" = [\"measured\", \"none\"]\n\"workload.algorithm\" = [\"ring\", \"tree\"]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let said = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu"]).stdout;
    let line = said.lines().find(|l| l.starts_with("recommended")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.starts_with("recommended for all 2 ways of simulating: "), "{said}");
    assert!(!line.contains("measured") && !line.contains("none"), "{said}");
}

#[test]
fn an_incomplete_folder_recommends_nothing_yet() {
    let sweep = "name = \"a\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1, nics_per_server = 1 }\n\
                 workload = { kind = \"traffic\", pattern = \"permutation\" }\n[axes]\n\
                 \"transport.cc\" = [\"dcqcn\", \"hpcc\"]\n\"topology.link_gbps\" = [100, 400]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    for shard in ["0/2", "1/2"] {
        let out = &shard[..1];
        assert_eq!(
            folder.run(&["run", "s.toml", "--out", out, "--engine", "cpu", "--shard", shard, "--quiet"]).code,
            0
        );
    }
    let part = folder.run(&["merge", "0", "--out", "part"]).stdout;
    assert!(part.contains("nothing is recommended yet") && !part.contains("recommended: "), "{part}");
    assert!(folder.run(&["merge", "0", "1", "--out", "whole"]).stdout.contains("recommended: "));
}

/// How closely the simulator looked is what such folders are compared for.
#[test]
fn folders_that_differ_in_accuracy_are_compared() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "off", &["fidelity.fast_forward=off"]);
    run(root.path(), "exact", &["fidelity.fast_forward=exact"]);
    let gate = ["compare", "off", "exact", "--fail-if", "makespan_ns > base * 1.01"];
    let output = hyperfold(root.path(), &gate);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(!output.stdout.contains("different work"), "{}", output.stdout);
}
