//! Importers: workload files of other tools become a [`Workload`](crate::workload::program::Workload).
//!
//! Layer: workload. Each format has a module with `read(path, &Options)`. Importers read, check and translate; they do not know what a program costs on a
//! network. Whatever a format says that a program cannot express is an error or a note. Nothing is dropped silently.

pub mod chakra;
mod check;
mod error;
pub(crate) mod et;
pub mod flight_recorder;
pub mod goal;
mod graph;
pub mod htsim;
mod imported;
pub mod kineto;
mod limits;
pub mod simai;
mod simai_file;
mod simai_program;
mod torch;
pub(crate) mod wire;

use std::io::Read;
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
    /// Dumps of PyTorch's flight recorder: a folder, or one `.json` file.
    FlightRecorder,
}

impl WorkloadFormat {
    /// Name of the format, as `workload.kind` has it.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadFormat::Simai => "simai",
            WorkloadFormat::Chakra => "chakra",
            WorkloadFormat::Htsim => "htsim",
            WorkloadFormat::Goal => "goal",
            WorkloadFormat::Kineto => "kineto",
            WorkloadFormat::FlightRecorder => "flight-recorder",
        }
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
        WorkloadFormat::Kineto => kineto::read(path, options),
        WorkloadFormat::FlightRecorder => flight_recorder::read(path, options),
    }
}

/// Guesses the format of a file from its name, then from its first line. The result is `None` if no format matches.
pub fn guess(path: &Path) -> Option<WorkloadFormat> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("et") => return Some(WorkloadFormat::Chakra),
        Some("cm") => return Some(WorkloadFormat::Htsim),
        Some("goal") => return Some(WorkloadFormat::Goal),
        Some("json") => return Some(of_json(path)),
        _ => {}
    }
    if !input::is_file(path) {
        // The path may be the prefix of `.et` files; then no file has that name.
        let has = |files: Result<Vec<_>, ImportError>| files.is_ok_and(|files| !files.is_empty());
        if has(chakra::files(path)) {
            return Some(WorkloadFormat::Chakra);
        }
        let json = if input::is_folder(path) { torch::files::json_files(path).ok()? } else { Vec::new() };
        return json.first().map(|file| of_json(file));
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

/// The format of a `.json` file: a dump of the flight recorder if it begins as one, else a trace of the profiler.
fn of_json(path: &Path) -> WorkloadFormat {
    let mut beginning = Vec::new();
    let read = input::open(path).and_then(|file| file.take(1 << 16).read_to_end(&mut beginning));
    if read.is_ok() && flight_recorder::looks_like(&beginning) {
        WorkloadFormat::FlightRecorder
    } else {
        WorkloadFormat::Kineto
    }
}
