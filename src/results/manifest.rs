//! `manifest.json`: what was run, on what, and how long it took.
//!
//! Layer: results. Written when a run starts and again when it ends; not among the deterministic files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ResultDir, ResultsError};

/// An input file and its contents' hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// As the sweep names it.
    pub path: String,
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

impl InputFile {
    /// Hashes a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<InputFile, ResultsError> {
        let mut file = File::open(path).map_err(ResultsError::io(path))?;
        let (mut hash, mut bytes, mut block) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            let n = file.read(&mut block).map_err(ResultsError::io(path))?;
            if n == 0 {
                break;
            }
            hash.update(&block[..n]);
            bytes += n as u64;
        }
        let sha256 = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        Ok(InputFile { path: path.display().to_string(), bytes, sha256 })
    }
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
    pub inputs: Vec<InputFile>,
    /// Experiments of the sweep after constraints.
    pub experiments: u64,
    /// Of these, in this run (after `--limit` and `--shard`).
    pub selected: u64,
    pub ok: u64,
    pub oom: u64,
    pub failed: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_hashed_as_sha256sum_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "abc").unwrap();
        let input = InputFile::read(&path).unwrap();
        assert_eq!(input.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(input.bytes, 3);
        let missing = InputFile::read(&dir.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("none"), "{missing}");
    }
}
