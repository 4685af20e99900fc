//! Reliability of a result: the class of experiments that it belongs to, and how far tables of measured machines were off.
//!
//! | part | content |
//! |---|---|
//! | `class`, `parts` | what decides the class of an experiment |
//! | `error` | recorded errors by table and class |
//! | `difference`, `stated` | what distinguishes an experiment from a measured class, and the error that is stated for it |
//! | `coverage` | whether stated errors hold for tables that are left out |
//! | `worth` | columns of results |
//! | `changed`, `hardware` | what an experiment has otherwise than the machine it names, and notes on that |
//!
//! The errors are an asset, `assets/validation/classes.toml`, which `hyperfold validate --write-classes` writes. Nothing is simulated here.
//! `docs/explanation/fidelity.md` says what a stated error is worth. Start with `class.rs`.

#![forbid(unsafe_code)]

mod changed;
mod class;
mod columns;
mod coverage;
mod difference;
mod error;
mod hardware;
mod parts;
mod stated;

pub use class::ExperimentClass;
pub use columns::{LatencyWorth, NOT_VALIDATED, Worth};
pub use coverage::{Coverage, MIN_COVERED, TableCoverage};
pub use error::{ByQuantity, ClassError, ClassErrors, Use, nearest_rank_90};
pub use hardware::{notes, takes_links_of_another};
pub use parts::{
    ErrorQuantity, MachineClass, NetworkClass, Parallelism, PrecisionClass, ScaleClass, SizeClass, WorkloadClass,
};
pub use stated::{MAX_WIDTH, StatedError};
