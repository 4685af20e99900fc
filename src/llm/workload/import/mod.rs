//! Importers: workload files of other tools become a [`Workload`](crate::workload::program::Workload).
//!
//! Layer: workload. Each format has a module with `read(path, &Options)`. Importers read, check and translate; they do not know what a program costs on a
//! network. Whatever a format says that a program cannot express is an error or a note. Nothing is dropped silently.

pub mod chakra;
mod check;
mod error;
pub(crate) mod et;
pub mod goal;
mod graph;
pub mod htsim;
mod imported;
pub mod kineto;
mod limits;
pub mod simai;
mod simai_file;
mod simai_program;
pub(crate) mod wire;

use std::path::Path;

use hyperfold_base::input;

pub use error::ImportError;
pub use imported::{ImportOptions, Imported};
pub use limits::{MAX_BYTES, MAX_OPS, MAX_PS, MAX_RANKS};

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
    /// Traces of PyTorch's profiler: a folder, or one `.json` file.
    Kineto,
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
        WorkloadFormat::Kineto => kineto::read(path, options),
    }
}

/// Guesses the format of a file from its name, then from its first line. The result is `None` if no format matches.
pub fn guess(path: &Path) -> Option<WorkloadFormat> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("et") => return Some(WorkloadFormat::Chakra),
        Some("cm") => return Some(WorkloadFormat::Htsim),
        Some("goal") => return Some(WorkloadFormat::Goal),
        Some("json") => return Some(WorkloadFormat::Kineto),
        _ => {}
    }
    if !input::is_file(path) {
        // The path may be the prefix of `.et` files; then no file has that name.
        let has = |files: Result<Vec<_>, ImportError>| files.is_ok_and(|files| !files.is_empty());
        let is_kineto = || input::is_folder(path) && kineto::files(path).is_ok_and(|files| !files.is_empty());
        return has(chakra::files(path))
            .then_some(WorkloadFormat::Chakra)
            .or_else(|| is_kineto().then_some(WorkloadFormat::Kineto));
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
