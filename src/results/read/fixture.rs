//! Folders of results without a run, for tests of this crate and of those that read results.

use std::fs;
use std::path::Path;

use crate::{Axis, ColumnSets, Finished, Outputs, csv_rows, parquet_file};

/// Writes the files of a finished run; experiments ascend by id. `flows.csv` and similar files are written if any experiment has such rows.
///
/// # Panics
/// A file cannot be written.
pub fn write(dir: &Path, axes: &[Axis], experiments: &[Finished], sweep: &str) {
    let n = experiments.len();
    let serving = experiments.iter().any(|f| f.record.serving.is_some());
    let sets = ColumnSets { serving, ..ColumnSets::default() };
    let manifest = serde_json::json!({
        "version": "1", "command_line": [], "outcome": "complete", "name": "n", "sweep": sweep, "sweep_path": "s.toml", "axes": axes, "replicas": 1,
        "inputs": [], "experiments": n, "selected": n, "ok": n, "oom": 0, "failed": 0, "engine": "cpu", "engine_reason": "", "adapters": [], "jobs": 1,
        "seconds": { "expanding": 0.0, "compiling": 0.0, "simulating": 0.0, "writing": 0.0 }, "warnings": [],
    });
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
    let file = |name: &str, header: Vec<u8>, text: &dyn Fn(&Finished) -> Vec<u8>| {
        let parts: Vec<Vec<u8>> = experiments.iter().map(text).collect();
        if name == "results.csv" || name == "stats.csv" || parts.iter().any(|p| !p.is_empty()) {
            fs::write(dir.join(name), [header, parts.concat()].concat()).unwrap();
        }
    };
    file("results.csv", csv_rows::header(csv_rows::results_header(axes, sets)), &|f| {
        let mut text = csv_rows::CollectedRows::default();
        text.push(csv_rows::results_row(&f.record, sets));
        text.into_bytes()
    });
    let outputs = Outputs::default();
    for companion in csv_rows::COMPANIONS {
        file(companion.name, companion.header(&outputs), &|f| (companion.text)(&outputs, f));
    }
    let records: Vec<_> = experiments.iter().map(|f| f.record.clone()).collect();
    parquet_file::write(fs::File::create(dir.join("results.parquet")).unwrap(), axes, sets, &records).unwrap();
}
