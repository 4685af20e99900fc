//! Importers: workload files of other tools become a [`Workload`].
//!
//! Layer: workload. Each format has a module with `read(path, &Options)`. Importers read, check and translate; they do not know what a program costs on a
//! network. Whatever a format says that a program cannot express is an error or a note. Nothing is dropped silently.

pub mod chakra;
mod check;
pub(crate) mod et;
pub mod goal;
mod graph;
pub mod htsim;
pub mod simai;
mod simai_file;
mod simai_program;
pub(crate) mod wire;

use std::path::Path;

use crate::workload::Flow;
use crate::workload::program::Workload;
use hyperfold_base::input;
use hyperfold_network::topology::FileError;

/// The most ranks of a workload, as many as a network may have nodes. The limit keeps a typing error in a header from exhausting the memory.
pub const MAX_RANKS: u32 = hyperfold_network::topology::MAX_NODES;
/// The most operations of all distinct programs of a workload together.
pub const MAX_OPS: usize = 1 << 28;
/// The most bytes of one message or collective: a petabyte, as in flow files.
pub const MAX_BYTES: u64 = crate::workload::MAX_FLOW_BYTES;
/// The longest single duration: a million seconds.
pub const MAX_PS: u64 = 1_000_000 * hyperfold_base::units::PS_PER_S;

/// Options of the importers: values that a file may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// Number of ranks, for formats that may not give it: SimAI files without `all_gpus`, traces of one rank. For `None` see each reader.
    pub ranks: Option<u32>,
    /// FLOP/s for trace nodes that give `num_ops` and no duration; 0: such nodes are an error.
    pub flops_per_s: u64,
    /// Memory bandwidth in bytes/s for trace nodes that give `tensor_size` and no duration; 0 means that it does not limit anything.
    pub memory_bytes_per_s: u64,
}

/// The result of reading a workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The programs.
    pub workload: Workload,
    /// The workload as flows, if the file has nothing but flows with start times (htsim without triggers).
    pub flows: Option<Vec<Flow>>,
    /// Notices for the user: what was read differently from what the file says literally.
    pub notes: Vec<String>,
}

/// Formats of workload files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkloadFormat {
    /// SimAI and AICB text.
    Simai,
    /// Chakra execution traces: a folder, a prefix, or one `.et` file.
    Chakra,
    /// htsim connection matrices.
    Htsim,
    /// GOAL text of LogGOPSim.
    Goal,
}

/// An error in a workload file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read, or a line of it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A path names no file that can be imported.
    #[error("{path}: {problem}")]
    Path {
        /// Path of the file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A binary file is damaged.
    #[error("{path}: byte {at}: {problem}")]
    Encoding {
        /// Path of the file.
        path: String,
        /// Position of the fault, in bytes from 0.
        at: usize,
        /// What is wrong.
        problem: String,
    },
    /// A node of a trace is wrong.
    #[error("{path}: node {node}: {problem}")]
    Node {
        /// Path of the file.
        path: String,
        /// Id of the node.
        node: u64,
        /// What is wrong.
        problem: String,
    },
    /// The file as a whole is wrong.
    #[error("{path}: {problem}")]
    Graph {
        /// Path of the file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The file does not fit the number of ranks.
    #[error("{path}: the number of ranks, {ranks}: {problem}")]
    Ranks {
        /// Path of the file.
        path: String,
        /// Number of ranks.
        ranks: u32,
        /// What is wrong.
        problem: String,
    },
}

impl ImportError {
    fn path(path: &str, problem: impl Into<String>) -> ImportError {
        ImportError::Path { path: path.to_string(), problem: problem.into() }
    }

    fn graph(path: &str, problem: impl Into<String>) -> ImportError {
        ImportError::Graph { path: path.to_string(), problem: problem.into() }
    }
}

/// Reads a workload file of a known format.
///
/// # Errors
/// The errors of the format's reader.
pub fn read(path: &Path, format: WorkloadFormat, options: &ImportOptions) -> Result<Imported, ImportError> {
    match format {
        WorkloadFormat::Simai => simai::read(path, options),
        WorkloadFormat::Chakra => chakra::read(path, options),
        WorkloadFormat::Htsim => htsim::read(path, options),
        WorkloadFormat::Goal => goal::read(path, options),
    }
}

/// Guesses the format of a file from its name, then from its first line. The result is `None` if no format matches.
pub fn guess(path: &Path) -> Option<WorkloadFormat> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("et") => return Some(WorkloadFormat::Chakra),
        Some("cm") => return Some(WorkloadFormat::Htsim),
        Some("goal") => return Some(WorkloadFormat::Goal),
        _ => {}
    }
    if !input::is_file(path) {
        // The path may be the prefix of `.et` files; then no file has that name.
        return chakra::files(path).is_ok_and(|files| !files.is_empty()).then_some(WorkloadFormat::Chakra);
    }
    let bytes = input::read(path).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("//"))?;
    match first.split_whitespace().next()? {
        "Nodes" => Some(WorkloadFormat::Htsim),
        "num_ranks" => Some(WorkloadFormat::Goal),
        word if simai::KINDS.contains(&word) => Some(WorkloadFormat::Simai),
        _ => None,
    }
}
