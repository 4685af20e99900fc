//! How to simulate: engine, devices, threads, memo.
//!
//! Layer: session. None of it changes a result.

use std::path::{Component, Path, PathBuf};

use crate::batch::memo_store::somebody_elses;
use crate::engine::gpu::DeviceChoice;

use super::error::SessionError;
use super::interrupt::Interrupt;

/// Which engine simulates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// A real GPU when the batch is large enough to pay for it, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU; a software adapter where there is nothing else.
    Gpu,
}

/// How the host dispatches steps to a GPU. Changes no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuDispatch {
    /// Whichever fits the size of the experiments.
    #[default]
    Auto,
    /// A workgroup an experiment.
    Fused,
    /// A dispatch a system.
    PerSystem,
}

/// Where what was simulated is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoChoice {
    /// Nowhere.
    Off,
    /// In memory, as long as the run lasts.
    #[default]
    Run,
    /// On disk as well.
    Kept {
        /// The file, or a folder that gets one.
        path: PathBuf,
        /// Most that the file may have; what was used longest ago goes first.
        limit_bytes: u64,
    },
}

impl MemoChoice {
    /// Keeps it in a file, which need not exist yet, or in a folder.
    ///
    /// # Errors
    /// The file is something else.
    pub fn kept(path: &Path, limit_bytes: u64) -> Result<MemoChoice, SessionError> {
        match somebody_elses(path) {
            Some(file) => Err(SessionError::Input(format!(
                "--memo {}: this file is no memo; name another one, which need not exist yet, or a folder",
                file.display()
            ))),
            None => Ok(MemoChoice::Kept { path: path.into(), limit_bytes }),
        }
    }

    /// Refuses a memo inside the folder `results`: that folder holds what one run writes and nothing else, and a memo outlives runs.
    ///
    /// # Errors
    /// The memo lies in there.
    pub(crate) fn check_outside(&self, results: &Path) -> Result<(), SessionError> {
        match self {
            MemoChoice::Kept { path, .. } if resolved(path).starts_with(resolved(results)) => {
                Err(SessionError::Input(format!(
                    "--memo {}: it lies in the folder of the results, {}; name a place outside of it, because a memo is for later runs as well",
                    path.display(),
                    results.display()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// A path that need not exist, absolute and without links as far as it does exist.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let mut found = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
        // A link leads elsewhere before what follows it counts.
        if let Ok(real) = found.canonicalize() {
            found = real;
        }
    }
    found
}

/// How to simulate.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Which engine.
    pub engine: EngineChoice,
    /// GPUs to take; none named: the first that is usable.
    pub devices: Vec<DeviceChoice>,
    /// How steps reach a GPU.
    pub gpu_dispatch: GpuDispatch,
    /// CPU threads, at least 1.
    pub jobs: usize,
    /// What is remembered where.
    pub memo: MemoChoice,
    /// Asks the run to stop.
    pub interrupt: Interrupt,
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings {
            engine: EngineChoice::Auto,
            devices: Vec::new(),
            gpu_dispatch: GpuDispatch::Auto,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            memo: MemoChoice::Run,
            interrupt: Interrupt::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_is_not_kept_among_results() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let memo = |path: &str| MemoChoice::Kept { path: root.path().join(path), limit_bytes: 1 };
        let refused = |path: &str| memo(path).check_outside(&out).is_err();
        for inside in ["out", "out/memo", "out/a/../m", "x/../out/m", "out/../out/m"] {
            assert!(refused(inside), "{inside}");
        }
        for outside in ["memo", "out-memo", "out/../memo", "x/out/m"] {
            assert!(!refused(outside), "{outside}");
        }
        assert!(MemoChoice::Off.check_outside(&out).is_ok());
        #[cfg(unix)]
        {
            std::fs::create_dir(&out).unwrap();
            std::os::unix::fs::symlink(&out, root.path().join("link")).unwrap();
            assert!(refused("link/m"));
        }
        let why = memo("out/m").check_outside(&out).unwrap_err().to_string();
        assert!(why.contains("--memo") && why.contains("outside"), "{why}");
    }
}
