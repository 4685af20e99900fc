//! Published measurements: a row has one number, whoever runs its sweep, and the errors are those that the pages state.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::program::{Folder, hyperfold};
use hyperfold_validated::{ClassError, ClassErrors, NetworkClass};
use hyperfold_validation::{SUITES, ValidationRow, classes};

fn tables(suite: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/validation").join(suite);
    let mut sweeps: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|x| x == "toml"))
        .collect();
    sweeps.sort();
    sweeps
}

/// `results.csv` of a run of the sweep file, by `exp_id`: each row by column.
fn run(folder: &Folder, sweep: &Path) -> HashMap<u64, HashMap<String, String>> {
    let out = sweep.file_stem().unwrap().to_str().unwrap();
    // The code is 1 where an experiment failed, which its row says too.
    hyperfold(folder.path(), &["run", sweep.to_str().unwrap(), "--out", out, "--quiet"]);
    let mut reader = csv::Reader::from_path(folder.file(out).join("results.csv")).unwrap();
    let rows = reader.deserialize::<HashMap<String, String>>().map(Result::unwrap);
    rows.map(|row| (row["exp_id"].parse().unwrap(), row)).collect()
}

/// Column of `results.csv`, and how many of its units are one of the measured value's.
fn column(unit: &str) -> (&'static str, f64) {
    match unit {
        "s" => ("iteration_time_ns", 1e9),
        "us" => ("iteration_time_ns", 1e3),
        "tokens/s/GPU" => ("tokens_per_s_per_gpu", 1.0),
        "GB/s" => ("busbw_gbps", 8.0),
        "GiB" => ("peak_memory_bytes", 1_073_741_824.0),
        "output tokens/s" => ("output_tokens_per_s", 1.0),
        "ms to the first token" => ("ttft_mean_ns", 1e6),
        "ms to the first token (median)" => ("ttft_p50_ns", 1e6),
        "ms to the first token (p99)" => ("ttft_p99_ns", 1e6),
        "ms per output token" => ("tpot_mean_ns", 1e6),
        "ms per output token (median)" => ("tpot_p50_ns", 1e6),
        "ms per output token (p99)" => ("tpot_p99_ns", 1e6),
        "ms to the last token" => ("e2e_mean_ns", 1e6),
        other => panic!("the unit {other}"),
    }
}

/// The simulated value of a row as `validate --json` prints it. serde_json's quick reading of numbers may be off in the last digit.
fn simulated(line: &str) -> Option<f64> {
    let (_, after) = line.split_once("\"simulated\":").expect("every row has it");
    after.split(',').next().and_then(|number| number.parse().ok())
}

/// Every row of a suite: what `validate` says equals what `run` writes, to the last digit.
fn both_ways(suite: &str) {
    let folder = Folder::new(&[]);
    let validated = hyperfold(folder.path(), &["validate", suite, "--json"]).stdout;
    let validated: Vec<(Value, Option<f64>)> =
        validated.lines().map(|l| (serde_json::from_str(l).unwrap(), simulated(l))).collect();
    let mut compared = 0;
    for sweep in tables(suite) {
        let name = sweep.file_stem().unwrap().to_str().unwrap();
        let results = run(&folder, &sweep);
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(sweep.with_extension("csv")).unwrap();
        let measured: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        let of_table: Vec<&(Value, Option<f64>)> = validated.iter().filter(|v| v.0["table"] == name).collect();
        assert_eq!(of_table.len(), measured.len(), "{name}");
        for ((validated, simulated), measured) in of_table.iter().zip(&measured) {
            assert_eq!(validated["name"], measured["name"].as_str());
            let (column, per_unit) = column(&measured["unit"]);
            let run = &results[&measured["experiment"].parse().unwrap()];
            let run_value = run[column].parse::<f64>().ok().map(|v| v / per_unit);
            assert_eq!(*simulated, run_value, "{name}: {}", measured["name"]);
            compared += usize::from(run_value.is_some());
        }
    }
    assert!(compared > 0, "{suite}: no row has a result");
}

#[test]
fn run_and_validate_say_the_same_of_training() {
    both_ways("training");
}

#[test]
fn run_and_validate_say_the_same_of_serving() {
    both_ways("serving");
}

/// Rows of the memory suite are parts of what `run` estimates: a GPU that is too small makes it say them.
#[test]
fn run_and_validate_say_the_same_of_memory() {
    let folder = Folder::new(&[]);
    let printed = hyperfold(folder.path(), &["validate", "memory", "--json"]).stdout;
    let rows: Vec<(Value, Option<f64>)> =
        printed.lines().map(|l| (serde_json::from_str(l).unwrap(), simulated(l))).collect();
    for (name, tp, pp, vpp, microbatch, batch) in
        [("22B", 8, 1, 1, 4, 4), ("175B", 8, 8, 3, 1, 64), ("530B", 8, 35, 3, 1, 280), ("1T", 8, 64, 1, 1, 512)]
    {
        for (parallel, recompute, what) in [
            (false, "none", "activations, tensor parallel"),
            (true, "selective", "activations, sequence parallel and selective recomputation"),
        ] {
            let sweep = format!(
                "name = \"memory\"\n[base.cluster]\ngpus = {}\ngpu_memory_gib = 1\n[base.workload]\nkind = \"model\"\nanalytic = \"all\"\nmodel = \"gpt3-{}\"\nseq = 2048\ntp = {tp}\npp = {pp}\nvpp = {vpp}\nmicrobatch = {microbatch}\nglobal_batch = {batch}\nsequence_parallel = {parallel}\nflash_attention = false\nrecompute = \"{recompute}\"\n",
                tp * pp,
                name.to_lowercase(),
            );
            fs::write(folder.file("memory.toml"), sweep).unwrap();
            let out = format!("{name}-{parallel}");
            hyperfold(folder.path(), &["run", "memory.toml", "--out", &out, "--quiet"]);
            let said = fs::read_to_string(folder.file(&out).join("results.csv")).unwrap();
            let (_, after) = said.split_once("activations of layers ").expect("an experiment that is oom");
            let ran: f64 = after.split(',').next().unwrap().parse().unwrap();
            let row = format!("seqsel Fig. 1 {name}: {what}");
            let validated = rows.iter().find(|r| r.0["name"] == row.as_str()).and_then(|r| r.1).expect("a row");
            assert!((ran - validated).abs() <= 0.005 + 1e-9, "{row}: {ran} {validated}");
        }
    }
}

/// Collectives up to a size that tests have time for.
const LARGEST: u64 = 4 << 20;

/// A table as `FOLDER/collectives` has it, only with what is small enough.
fn small(folder: &Folder, name: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/validation/collectives").join(name);
    let sweep = fs::read_to_string(from.with_extension("toml")).unwrap();
    let (head, axis) = sweep.split_once("\"workload.bytes\" = [").expect("an axis of bytes");
    let sizes: Vec<&str> = axis.trim().trim_end_matches(']').split(", ").collect();
    let n = sizes.iter().filter(|b| b.parse::<u64>().unwrap() <= LARGEST).count();
    let to = folder.path().join("collectives").join(name);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::write(to.with_extension("toml"), format!("{head}\"workload.bytes\" = [{}]\n", sizes[..n].join(", "))).unwrap();
    let rows = fs::read_to_string(from.with_extension("csv")).unwrap();
    let lines = rows.lines().filter(|l| l.split(',').next().unwrap().parse::<usize>().is_ok_and(|id| id < n));
    let text: Vec<&str> = rows.lines().take(2).chain(lines).collect();
    fs::write(to.with_extension("csv"), text.join("\n") + "\n").unwrap();
}

#[test]
fn run_and_validate_say_the_same_of_collectives() {
    let folder = Folder::new(&[]);
    ["aws-p4de-2", "gke-2", "a100-1"].iter().for_each(|name| small(&folder, name));
    let tables = folder.path().display().to_string();
    let printed = hyperfold(folder.path(), &["validate", "collectives", "--folder", &tables, "--json"]).stdout;
    let rows: Vec<(Value, Option<f64>)> =
        printed.lines().map(|l| (serde_json::from_str(l).unwrap(), simulated(l))).collect();
    let mut compared = 0;
    for (name, run_name) in [("aws-p4de-2", ""), ("gke-2", "gke_gib_2n"), ("a100-1", "stas_a100_1n")] {
        for (carried, analytic) in [("packets", "intra"), ("closed form", "all")] {
            for left_out in [false, true].into_iter().filter(|out| !out || !run_name.is_empty()) {
                let out = format!("{name}-{analytic}-{left_out}");
                let set = [
                    format!("workload.analytic={analytic}"),
                    format!("workload.leave_out_run={}", if left_out { run_name } else { "none" }),
                ];
                let sweep = format!("collectives/{name}.toml");
                let args = ["run", &sweep, "--set", &set[0], "--set", &set[1], "--out", &out, "--quiet"];
                assert_eq!(hyperfold(folder.path(), &args).code, 0);
                let times = folder.column(&format!("{out}/results.csv"), "iteration_time_ns");
                let group = if left_out { format!("{carried}, without its run, ") } else { format!("{carried}, ") };
                let of_group = |r: &&(Value, Option<f64>)| {
                    let of = r.0["group"].as_str().unwrap();
                    let size = of.strip_prefix(group.as_str());
                    r.0["table"] == name && size.is_some_and(|s| ["up to 1 MiB", "above 1 MiB"].contains(&s))
                };
                let mut found: Vec<f64> = rows.iter().filter(of_group).filter_map(|r| r.1).collect();
                // What stays inside a server is no packet.
                if name == "a100-1" && carried == "packets" {
                    assert!(found.is_empty());
                    continue;
                }
                let mut expected: Vec<f64> = times.iter().map(|t| t.parse::<f64>().unwrap() / 1e3).collect();
                found.sort_by(f64::total_cmp);
                expected.sort_by(f64::total_cmp);
                assert_eq!(found, expected, "{name}, {group}");
                compared += found.len();
            }
        }
    }
    assert!(compared > 90, "{compared} rows");
}

/// The summaries of `validate SUITE --markdown`, without their header.
fn summaries(suite: &str) -> Vec<String> {
    let folder = Folder::new(&[]);
    // With `--closed-forms`, collectives take a second; `validate collectives` alone prints all of them.
    let printed = hyperfold(folder.path(), &["validate", suite, "--markdown", "--closed-forms"]).stdout;
    printed.lines().filter(|l| l.starts_with("| ")).skip(2).map(str::to_string).collect()
}

#[test]
fn the_pages_state_the_errors_that_validate_prints() {
    let fidelity =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/explanation/fidelity.md")).unwrap();
    let lines: Vec<String> = ["training", "collectives", "serving"].into_iter().flat_map(summaries).collect();
    assert!(lines.len() > 20);
    for line in lines {
        assert!(
            fidelity.contains(&line),
            "docs/explanation/fidelity.md lacks the line that `validate` prints:\n{line}"
        );
    }
}

/// Classes as text: those of training, and of collectives those by closed form.
fn of_closed_forms(errors: &ClassErrors) -> Vec<String> {
    let cheap = |c: &&ClassError| c.class.network == NetworkClass::ClosedForm;
    errors.classes.iter().filter(cheap).map(|c| format!("{c:?}")).collect()
}

/// The lines that `validate --coverage` prints of left-out tables stand on the page, and stated errors hold.
#[test]
fn the_page_states_how_stated_errors_hold() {
    let folder = Folder::new(&[]);
    let printed = hyperfold(folder.path(), &["validate", "--coverage", "--markdown"]);
    // Throughputs of inference do not hold, and the command says so.
    assert_eq!(printed.code, 3, "{}", printed.stdout);
    assert_eq!(printed.stdout.matches(": holds").count(), 3, "{}", printed.stdout);
    let fidelity =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/explanation/fidelity.md")).unwrap();
    let lines: Vec<&str> = printed
        .stdout
        .lines()
        .filter(|l| l.starts_with("| ") || l.contains(" of their rows covered on average "))
        .collect();
    assert!(lines.len() > 20, "{}", printed.stdout);
    for line in lines {
        assert!(fidelity.contains(line), "docs/explanation/fidelity.md lacks the line that `validate` prints:\n{line}");
    }
}

#[test]
fn results_state_the_errors_that_validate_computes() {
    let rows: Vec<ValidationRow> =
        SUITES.iter().filter(|s| s.has_classes()).flat_map(|s| s.rows(None, true).unwrap()).collect();
    let computed = of_closed_forms(&classes(&rows));
    assert!(computed.len() > 20);
    assert_eq!(
        of_closed_forms(ClassErrors::built_in()),
        computed,
        "write it anew: hyperfold validate --write-classes assets/validation/classes.toml"
    );
}
