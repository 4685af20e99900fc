//! Published measurements: a row has one number, whoever runs its sweep, and the errors are those that the pages state.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::program::{Folder, hyperfold};
use hyperfold::validated::{ClassErrors, WorkloadClass};
use hyperfold::validation::{SUITES, classes};

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

/// The summaries of `validate SUITE --markdown`, without their header.
fn summaries(suite: &str) -> Vec<String> {
    let folder = Folder::new(&[]);
    let printed = hyperfold(folder.path(), &["validate", suite, "--markdown"]).stdout;
    printed.lines().filter(|l| l.starts_with("| ")).skip(2).map(str::to_string).collect()
}

#[test]
fn the_pages_state_the_errors_that_validate_prints() {
    let fidelity =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/explanation/fidelity.md")).unwrap();
    let lines = summaries("training");
    assert!(!lines.is_empty());
    for line in lines {
        assert!(
            fidelity.contains(&line),
            "docs/explanation/fidelity.md lacks the line that `validate` prints:\n{line}"
        );
    }
}

/// Classes of the asset whose workload is `workload`, as text.
fn asset_classes(workload: WorkloadClass) -> Vec<String> {
    let built_in = &ClassErrors::built_in().classes;
    built_in.iter().filter(|c| c.class.workload == workload).map(|c| format!("{c:?}")).collect()
}

#[test]
fn results_state_the_errors_that_validate_computes() {
    let suite = SUITES.iter().find(|s| s.name == "training").unwrap();
    let computed = classes(&suite.rows(None).unwrap());
    let computed: Vec<String> = computed.classes.iter().map(|c| format!("{c:?}")).collect();
    assert!(!computed.is_empty());
    assert_eq!(
        asset_classes(WorkloadClass::Training),
        computed,
        "write it anew: hyperfold validate --write-classes assets/validation/classes.toml"
    );
}
