//! Measured tables: a sweep file and a CSV file of the same name, from the program itself or from a folder.
//!
//! Layer: validation.

use std::path::{Path, PathBuf};

use super::measured::{self, MeasuredRow};
use hyperfold_base::input;
use hyperfold_config::sweep::Sweep;

/// A sweep, and measured values of its experiments.
#[derive(Clone)]
pub struct MeasuredTable {
    /// Name of the two files without their extensions.
    pub name: String,
    /// Sweep of the table, expanded.
    pub sweep: Sweep,
    /// Measured values of its experiments, in the order of the file.
    pub rows: Vec<MeasuredRow>,
}

/// A fault in the files of a table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A file cannot be read, or is no CSV with the columns of measured values.
    #[error("{file}: {why}")]
    File {
        /// Path of the file.
        file: String,
        /// The fault, in words for the user.
        why: String,
    },
    /// A row names no experiment of the sweep, or has a value that cannot be.
    #[error("{file}: {why}")]
    Row {
        /// Path of the file.
        file: String,
        /// The fault, and the row that it is in.
        why: String,
    },
    /// The sweep file is wrong.
    #[error(transparent)]
    Sweep(#[from] hyperfold_config::spec::SpecError),
}

/// Embeds files of `experiments/validation`: suite, name, sweep, and measured values.
macro_rules! embedded {
    ($($suite:literal $name:literal),* $(,)?) => {
        &[$((
            $suite,
            $name,
            include_str!(concat!("../../experiments/validation/", $suite, "/", $name, ".toml")),
            include_str!(concat!("../../experiments/validation/", $suite, "/", $name, ".csv")),
        )),*]
    };
}

const EMBEDDED: &[(&str, &str, &str, &str)] = embedded![
    "collectives" "a100-1",
    "collectives" "aws-p4de-2",
    "collectives" "aws-p5-1",
    "collectives" "aws-p5-2",
    "collectives" "aws-p5-2-k8s",
    "collectives" "aws-p5-2-large",
    "collectives" "azure-a100-1",
    "collectives" "azure-h100-1",
    "collectives" "deepep-v1",
    "collectives" "deepep-v1-low-latency",
    "collectives" "deepep-v2",
    "collectives" "doubtful-points",
    "collectives" "gb200-1-rack",
    "collectives" "gb200-20-racks",
    "collectives" "gke-2",
    "collectives" "mscclpp-a100",
    "collectives" "rtx6000d-16",
    "collectives" "rtx6000d-16-large",
    "collectives" "single-points",
    "collectives" "uccl-ep",
    "memory" "simumax-b200",
    "serving" "gpustack-vllm-qwen3",
    "serving" "nim-llama-70b",
    "serving" "trtllm-061-llama2",
    "serving" "trtllm-llama-70b",
    "serving" "vllm-llama-8b",
    "training" "dgxc-nemo",
    "training" "megatron-a100-2021",
    "training" "megatron-a100-2022",
    "training" "megatron-core-h100",
    "training" "mlperf-gpt3",
    "training" "mpt-fsdp-a100",
    "training" "mpt-fsdp-a100-40g",
    "training" "mpt-fsdp-h100",
    "training" "nemo-llama-qwen",
    "training" "simumax-b200",
    "training" "torchtitan-llama3",
];

/// Tables of a suite: those of the program, or those in `folder/suite`.
///
/// # Errors
/// A file cannot be read, or is not in the right form.
pub(super) fn tables(suite: &str, folder: Option<&Path>) -> Result<Vec<MeasuredTable>, TableError> {
    let Some(folder) = folder else {
        let of_suite = EMBEDDED.iter().filter(|t| t.0 == suite);
        return of_suite
            .map(|(suite, name, sweep, rows)| {
                let path = Path::new("experiments/validation").join(suite).join(name);
                table(&path.with_extension("toml"), sweep, &path.with_extension("csv"), rows)
            })
            .collect();
    };
    let dir = folder.join(suite);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let failed =
        |file: &Path, e: std::io::Error| TableError::File { file: file.display().to_string(), why: e.to_string() };
    let entries = std::fs::read_dir(&dir).map_err(|e| failed(&dir, e))?;
    let mut sweeps: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|x| x == "toml"))
        .collect();
    // Sorted by stem, as the program's own tables are: `a` before `a-2`.
    sweeps.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let read = |file: &Path| input::read_table(file).map_err(|e| failed(file, e));
    sweeps
        .iter()
        .map(|sweep| {
            let rows = sweep.with_extension("csv");
            table(sweep, &read(sweep)?, &rows, &read(&rows)?)
        })
        .collect()
}

fn table(sweep_file: &Path, sweep: &str, rows_file: &Path, rows: &str) -> Result<MeasuredTable, TableError> {
    let bad = |why: String| TableError::Row { file: rows_file.display().to_string(), why };
    let sweep = Sweep::parse(sweep, sweep_file)?;
    let rows = measured::parse(rows).map_err(bad)?;
    if let Some(row) = rows.iter().find(|r| r.experiment >= sweep.n_experiments) {
        return Err(bad(format!(
            "experiment = {}: {} has experiments 0 to {}",
            row.experiment,
            sweep_file.display(),
            sweep.n_experiments.saturating_sub(1)
        )));
    }
    let name = sweep_file.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    Ok(MeasuredTable { name, sweep, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_every_table_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/validation");
        let suites: Vec<PathBuf> =
            std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
        assert!(!suites.is_empty());
        for suite in suites {
            let suite = suite.file_name().unwrap().to_str().unwrap();
            let names = |t: Vec<MeasuredTable>| t.into_iter().map(|t| t.name).collect::<Vec<_>>();
            assert_eq!(names(tables(suite, None).unwrap()), names(tables(suite, Some(&folder)).unwrap()), "{suite}");
        }
    }

    #[test]
    fn every_experiment_is_measured() {
        for suite in EMBEDDED.iter().map(|t| t.0) {
            for table in tables(suite, None).unwrap() {
                for id in 0..table.sweep.n_experiments {
                    assert!(table.rows.iter().any(|r| r.experiment == id), "{}: experiment {id}", table.name);
                }
            }
        }
    }
}
