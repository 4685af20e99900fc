//! Settings of a simulation: engine, devices, threads, memo.
//!
//! Layer: session. None of them changes a result.

use std::path::{Component, Path, PathBuf};

use hyperfold_engine::gpu::DeviceChoice;
use hyperfold_host::memo_file::memo_store::somebody_elses;

use crate::error::SessionError;
use crate::running::interrupt::Interrupt;

/// The engine that simulates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// A real GPU if the batch is large enough to pay for it, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU; a software adapter if there is no real one.
    Gpu,
}

/// The way in which the host dispatches steps to a GPU. Changes no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuDispatch {
    /// The way that suits the size of the experiments.
    #[default]
    Auto,
    /// One workgroup for each experiment.
    Fused,
    /// One dispatch for each system.
    PerSystem,
}

/// The place where simulated episodes are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoChoice {
    /// Nothing is remembered.
    Off,
    /// In memory, as long as the run lasts.
    #[default]
    Run,
    /// On disk as well.
    Kept {
        /// The file, or a folder in which the file is created.
        path: PathBuf,
        /// Most bytes of the file; the least recently used records go first.
        limit_bytes: u64,
    },
}

impl MemoChoice {
    /// Chooses a memo in a file, which need not exist yet, or in a folder.
    ///
    /// # Errors
    /// The file is no memo.
    pub fn kept(path: &Path, limit_bytes: u64) -> Result<MemoChoice, SessionError> {
        match somebody_elses(path) {
            Some(file) => Err(SessionError::Input(format!(
                "--memo {}: this file is no memo; name another one, which need not exist yet, or a folder",
                file.display()
            ))),
            None => Ok(MemoChoice::Kept { path: path.into(), limit_bytes }),
        }
    }

    /// Refuses a memo inside the folder `results`: that folder holds only what one run writes, but a memo outlives runs.
    ///
    /// # Errors
    /// The memo is in the folder.
    pub fn check_outside(&self, results: &Path) -> Result<(), SessionError> {
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

/// Returns a path that need not exist as absolute, with links resolved as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let mut found = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
        // A link must be resolved before the components that follow it.
        if let Ok(real) = found.canonicalize() {
            found = real;
        }
    }
    found
}

/// Settings of a simulation.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The engine.
    pub engine: EngineChoice,
    /// GPUs to use; if empty, the first usable one.
    pub devices: Vec<DeviceChoice>,
    /// The way in which steps reach a GPU.
    pub gpu_dispatch: GpuDispatch,
    /// CPU threads, at least 1.
    pub threads: usize,
    /// Place in which simulated episodes are remembered.
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
            threads: std::thread::available_parallelism().map_or(1, usize::from),
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
