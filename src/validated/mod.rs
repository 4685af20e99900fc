//! What a result is worth: the class of experiments it belongs to, and how far results of the nearest class were off measured machines.
//!
//! Layer: validated, below what runs sweeps. The figures are an asset that `hyperfold validate --write-classes` writes; nothing is simulated here.

mod changed;
mod class;
mod error;
mod hardware;

pub use class::{ExperimentClass, NetworkClass, Parallelism, PrecisionClass, SizeClass, WorkloadClass};
pub use error::{ClassError, ClassErrors, NOT_VALIDATED, NearestClass, Use, Worth, nearest_rank_90};
pub use hardware::notes;
