//! Reliability of a result: the class of experiments that it belongs to, and the error of the nearest measured class.
//!
//! Layer: validated, below the layers that run sweeps. The numbers are an asset that `hyperfold validate --write-classes` writes. Nothing is simulated here.

#![forbid(unsafe_code)]

mod changed;
mod class;
mod error;
mod hardware;

pub use class::{ExperimentClass, NetworkClass, Parallelism, PrecisionClass, SizeClass, WorkloadClass};
pub use error::{ClassError, ClassErrors, NOT_VALIDATED, NearestClass, Use, Worth, nearest_rank_90};
pub use hardware::{notes, takes_links_of_another};
