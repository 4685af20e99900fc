//! `manifest.json`: what was run, on what, and how long it took.
//!
//! Layer: results. Written when a run starts and again when it ends; not among the deterministic files.

use serde::{Deserialize, Serialize};

use super::value::Axis;
use super::{ResultDir, ResultsError};

/// An input file and its contents' hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    pub path: String,
    /// Hexadecimal.
    pub sha256: String,
}

/// Wall seconds of a run's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    pub expanding: f64,
    /// GPU kernels; 0 on the CPU engine.
    pub compiling: f64,
    pub simulating: f64,
    pub writing: f64,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Still running, or killed.
    Running,
    Complete,
    /// By Ctrl-C; what was complete is written.
    Interrupted,
    /// The run itself broke off (not an experiment of it).
    Aborted,
}

/// The adapter a GPU run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterUsed {
    pub name: String,
    pub backend: String,
    pub driver: String,
    pub driver_info: String,
}

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of hyperfold.
    pub version: String,
    pub command_line: Vec<String>,
    pub outcome: Outcome,
    /// The sweep's name.
    pub name: String,
    /// The sweep file with every key resolved, TOML.
    pub sweep: String,
    /// Where the sweep file was, absolute: its folder is what paths in `sweep` are relative to. Empty in manifests that do not say.
    #[serde(default)]
    pub sweep_path: String,
    /// The columns of the results that are axes, with their kinds.
    #[serde(default)]
    pub axes: Vec<Axis>,
    /// Repeats of every configuration with other seeds; 0 in manifests that do not say.
    #[serde(default)]
    pub replicas: u64,
    pub inputs: Vec<InputFile>,
    /// Experiments of the sweep after constraints.
    pub experiments: u64,
    /// Of these, in this run (after `--limit` and `--shard`).
    pub selected: u64,
    pub ok: u64,
    pub oom: u64,
    pub failed: u64,
    /// Of all these, taken from the journal of an earlier run (`--resume`) or of shards (`merge`).
    #[serde(default)]
    pub from_journal: u64,
    /// `cpu` or `gpu`; empty until it is chosen.
    pub engine: String,
    /// Why that one.
    pub engine_reason: String,
    pub adapters: Vec<AdapterUsed>,
    /// CPU threads.
    pub jobs: u64,
    pub seconds: Seconds,
    pub warnings: Vec<String>,
}

impl Manifest {
    /// Writes it, replacing an earlier one as a whole.
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
