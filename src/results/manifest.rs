//! `manifest.json`: what was run, on which hardware, and how long it took.
//!
//! Layer: results. Written when a run starts and again when it ends; not among the deterministic files.

use serde::{Deserialize, Serialize};

use super::value::Axis;
use super::{ResultDir, ResultsError};

/// An input file with the hash of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path of the file, as the sweep writes it.
    pub path: String,
    /// Hash in hexadecimal.
    pub sha256: String,
}

/// Wall-clock seconds of a run's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Reading and expanding the sweep.
    pub expanding: f64,
    /// Compiling GPU kernels; 0 on the CPU engine.
    pub compiling: f64,
    /// Simulating, from the first experiment to the last.
    pub simulating: f64,
    /// Writing the files of results.
    pub writing: f64,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Still running, or killed.
    Running,
    /// All experiments have a result.
    Complete,
    /// Interrupted by Ctrl-C; complete results are written.
    Interrupted,
    /// The run itself broke off (not one of its experiments).
    Aborted,
}

/// The adapter that a GPU run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterUsed {
    /// Name of the device, as its driver gives it.
    pub name: String,
    /// Interface to it: `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// Name of the driver.
    pub driver: String,
    /// The driver's version as it describes itself.
    pub driver_info: String,
}

/// An axis whose values are not compared, because their times come from different models or from hardware that was not modelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompared {
    /// Dotted name of the axis.
    pub key: String,
    /// The reason, as a clause.
    pub why: String,
}

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of hyperfold.
    pub version: String,
    /// Arguments of the program; for a run from code, of the caller's program.
    pub command_line: Vec<String>,
    /// How the run ended.
    pub outcome: Outcome,
    /// Name of the sweep.
    pub name: String,
    /// The sweep file with every key resolved, as TOML.
    pub sweep: String,
    /// Absolute path of the sweep file. Paths in `sweep` are relative to its folder. Empty in manifests without this field.
    #[serde(default)]
    pub sweep_path: String,
    /// The result columns that are axes, with their kinds.
    #[serde(default)]
    pub axes: Vec<Axis>,
    /// Number of repeats of every configuration with other seeds; 0 in manifests without this field.
    #[serde(default)]
    pub replicas: u64,
    /// Files that the sweep reads, with their hashes.
    pub inputs: Vec<InputFile>,
    /// Number of experiments of the sweep after constraints.
    pub experiments: u64,
    /// Number of experiments in this run (after `--limit` and `--shard`).
    pub selected: u64,
    /// Number of experiments that ended well.
    pub ok: u64,
    /// Number of experiments that do not fit a GPU's memory.
    pub oom: u64,
    /// Number of experiments that failed.
    pub failed: u64,
    /// Number of them that come from the journal of an earlier run (`--resume`) or of shards (`merge`).
    #[serde(default)]
    pub from_journal: u64,
    /// `cpu` or `gpu`; empty until it is chosen.
    pub engine: String,
    /// Why this engine was chosen.
    pub engine_reason: String,
    /// GPUs that were used; empty on the CPU.
    pub adapters: Vec<AdapterUsed>,
    /// CPU threads.
    pub jobs: u64,
    /// Wall time by what it was spent on.
    pub seconds: Seconds,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Axes whose values are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
}

impl Manifest {
    /// Writes the manifest, replacing an earlier one as a whole.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, dir: &ResultDir) -> Result<(), ResultsError> {
        let path = dir.path().join("manifest.json");
        let mut text = serde_json::to_vec_pretty(self).map_err(|source| ResultsError::Json { path, source })?;
        text.push(b'\n');
        dir.replace("manifest.json", &text)
    }
}
