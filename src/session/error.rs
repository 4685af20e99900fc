//! Why a sweep cannot be planned, run, merged or traced.
//!
//! Layer: session. Says what is wrong; which exit code that means is the command line's to say.

use std::error::Error;
use std::path::PathBuf;

use thiserror::Error;

use crate::batch::PrepareError;
use crate::engine::EngineError;
use crate::engine::gpu::GpuError;
use crate::results::{ReadError, ResultsError};
use crate::spec::SpecError;

/// Why a session cannot go on. One bad experiment is no such error: its record says `failed`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The sweep file, a key of it, or a file that it names.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// What was asked for cannot be; the text says what would be right.
    #[error("{0}")]
    Input(String),
    /// Inputs made in code that could not be written.
    #[error("cannot write {}", .path.display())]
    Inputs {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An experiment whose input is wrong.
    #[error("{}{experiment}", .path.display())]
    Prepare {
        /// The sweep file.
        path: PathBuf,
        /// Which experiment, in words; empty where there is but one.
        experiment: String,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An experiment that cannot be simulated once more.
    #[error(transparent)]
    Again(#[from] PrepareError),
    /// An objective of a search that is no column of numbers.
    #[error("{place}: `sweep.objectives`")]
    Objective {
        /// Where it is written.
        place: String,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The sweep that a folder's manifest holds.
    #[error("{}: the sweep in manifest.json cannot be expanded any more", .path.display())]
    Manifest {
        /// The folder.
        path: PathBuf,
        /// What is wrong with the sweep.
        source: Box<SpecError>,
    },
    /// There is no GPU to be had.
    #[error(transparent)]
    Adapter(#[from] GpuError),
    /// A GPU that is there cannot run the engine.
    #[error("{name}")]
    Device {
        /// Which one, in words.
        name: String,
        /// What it lacks or refuses.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A folder of results that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A folder of results that cannot be taken, or is not what it must be.
    #[error(transparent)]
    Results(ResultsError),
    /// Results that could not be written while the run went on.
    #[error(transparent)]
    Writing(ResultsError),
    /// Threads of the CPU engine.
    #[error("cannot start threads")]
    Threads(#[source] rayon::ThreadPoolBuildError),
    /// The engine cannot go on, and no other is left.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What cannot be, and is a bug.
    #[error("{0}")]
    Internal(&'static str),
}

impl SessionError {
    /// Whether the user's input, options, folder or machine are at fault, rather than the run itself.
    pub fn is_usage(&self) -> bool {
        use SessionError::{
            Adapter, Again, Device, Engine, Input, Inputs, Internal, Manifest, Objective, Prepare, Read, Results, Spec,
            Threads, Writing,
        };
        match self {
            Spec(_)
            | Input(_)
            | Inputs { .. }
            | Prepare { .. }
            | Again(_)
            | Objective { .. }
            | Manifest { .. }
            | Adapter(_)
            | Device { .. }
            | Read(_) => true,
            Results(e) => e.is_usage(),
            Writing(_) | Threads(_) | Engine(_) | Internal(_) => false,
        }
    }
}
