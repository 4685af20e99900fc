//! Errors of planning, running, merging or tracing a sweep.
//!
//! Layer: session. Says what is wrong; the command line decides the exit code.

use std::error::Error;
use std::path::PathBuf;

use thiserror::Error;

use hyperfold_config::spec::SpecError;
use hyperfold_engine::EngineError;
use hyperfold_engine::gpu::GpuError;
use hyperfold_host::PrepareError;
use hyperfold_results::{ReadError, ResultsError};

/// A reason why a session cannot go on. A bad experiment is no such error: its record says `failed`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The sweep file, one of its keys, or a file that it names is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The options or inputs are impossible; the text says what would be right.
    #[error("{0}")]
    Input(String),
    /// Inputs made in code could not be written.
    #[error("cannot write {}", .path.display())]
    Inputs {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The input of an experiment is wrong.
    #[error("{}{experiment}", .path.display())]
    Prepare {
        /// Path of the sweep file.
        path: PathBuf,
        /// The experiment, in words; empty if there is only one.
        experiment: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An experiment cannot be simulated again.
    #[error(transparent)]
    Again(#[from] PrepareError),
    /// An objective of a search is no column of numbers.
    #[error("{place}: `sweep.objectives`")]
    Objective {
        /// Place of the objective in the sweep file.
        place: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The sweep in a folder's manifest cannot be expanded.
    #[error("{}: the sweep in manifest.json cannot be expanded any more", .path.display())]
    Manifest {
        /// Path of the folder.
        path: PathBuf,
        /// The cause.
        source: Box<SpecError>,
    },
    /// No GPU is available.
    #[error(transparent)]
    Adapter(#[from] GpuError),
    /// An available GPU cannot run the engine.
    #[error("{name}")]
    Device {
        /// The GPU, in words.
        name: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A folder of results cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A folder of results cannot be used, or is not of the expected kind.
    #[error(transparent)]
    Results(ResultsError),
    /// Results could not be written during the run.
    #[error(transparent)]
    Writing(ResultsError),
    /// The threads of the CPU engine could not be started.
    #[error("cannot start threads")]
    Threads(#[source] rayon::ThreadPoolBuildError),
    /// The engine cannot go on, and no other is left.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A bug: a state that cannot occur.
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
