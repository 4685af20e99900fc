//! Workloads: what is sent, when.
//!
//! Layer: workload. Flow files and traffic patterns end in [`Flow`]s; how they travel is `routing`'s and `engine`'s.

mod cdf;
mod decimal;
mod error;
pub mod export;
pub mod flow;
mod flow_file;
pub mod import;
pub mod inspect;
pub mod program;
pub mod progress;
mod random;
pub mod repeat;
pub mod rescale;
mod traffic;

pub use cdf::Cdf;
pub use error::WorkloadError;
pub use flow::Flow;
pub use flow_file::{FIRST_SPORT, FlowFile, MAX_FLOW_BYTES, MAX_FLOWS, StartUnit, parse_flows, read_flows};
pub use traffic::{AllToAll, Incast, Permutation, Poisson, Ring};
