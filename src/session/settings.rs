//! How to simulate: engine, devices, threads, memo.
//!
//! Layer: session. None of it changes a result.

use std::path::{Path, PathBuf};

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
