//! Reliability of a result: the class of experiments that it belongs to, and the error of the nearest class that was measured on machines.
//!
//! | part | content |
//! |---|---|
//! | `class` | what decides the class of an experiment |
//! | `error` | errors of classes, and which class is nearest |
//! | `changed`, `hardware` | what an experiment has otherwise than the machine it names, and notes on that |
//!
//! The errors are an asset, `assets/validation/classes.toml`, which `hyperfold validate --write-classes` writes. Nothing is computed or simulated here.
//! `docs/explanation/fidelity.md` says what a class is worth. Start with `class.rs`.

#![forbid(unsafe_code)]

mod changed;
mod class;
mod error;
mod hardware;

pub use class::{ExperimentClass, NetworkClass, Parallelism, PrecisionClass, SizeClass, WorkloadClass};
pub use error::{ClassError, ClassErrors, NOT_VALIDATED, NearestClass, Use, Worth, nearest_rank_90};
pub use hardware::{notes, takes_links_of_another};
