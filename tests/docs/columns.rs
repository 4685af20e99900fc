//! The page of results names every column that a run writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const SWEEP: &str = r#"
name = "columns"
base.cluster = { gpus = 2, gpus_per_server = 1 }
base.output = { flows = true, links = true, rtt = true, shared_links = true }

[[job]]
name = "one"
kind = "collective"
op = "broadcast"
bytes = 50000
gpus = 2

[[job]]
name = "two"
kind = "traffic"
pattern = "ring"
bytes = 50000
background = true
"#;

const CLUSTER: &str = r#"
name = "columns"
base.fidelity.mode = "job"
base.cluster = { gpus = 16, gpus_per_server = 8 }
base.jobs = { count = 2, max_gpus = 8 }
base.output = { cluster_jobs = true, cluster_map = true }
base.scheduler.iterations_at = "flow"
"#;

const INFERENCE: &str = r#"
name = "columns"
base.cluster = { gpus = 2, gpus_per_server = 1 }
base.output.requests = true

[base.workload]
kind = "inference"
tp = 2
request_count = 2
prompt_tokens = 20
output_tokens = 3
model = { name = "small", transformer = { layers = 2, hidden = 256, heads = 8, vocab = 1000, seq = 128 } }
"#;

#[test]
fn the_reference_of_results_names_every_column() {
    let of_packets = ["results.csv", "flows.csv", "links.csv", "rtt.csv", "jobs.csv", "shared_links.csv", "stats.csv"];
    names_every_column(SWEEP, &of_packets);
    names_every_column(
        CLUSTER,
        &["results.csv", "cluster_timeline.csv", "cluster_jobs.csv", "cluster_congestion.csv", "cluster_map.csv"],
    );
    names_every_column(INFERENCE, &["results.csv", "requests.csv"]);
}

fn names_every_column(sweep_text: &str, files: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (sweep, out) = (folder.path().join("sweep.toml"), folder.path().join("out"));
    fs::write(&sweep, sweep_text).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_hyperfold"))
        .arg("run")
        .arg(&sweep)
        .arg("--out")
        .arg(&out)
        .args(["--engine", "cpu", "--quiet"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/results.md")).unwrap();
    let named: BTreeSet<&str> =
        page.lines().flat_map(|l| l.split('`').skip(1).step_by(2)).flat_map(|s| s.split(", ")).collect();
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(out.join(file)).unwrap();
        for column in text.lines().next().unwrap().split(',') {
            if !named.contains(column) {
                wrong.push(format!("{file}: {column}"));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/reference/results.md does not name\n{}", wrong.join("\n"));
}
