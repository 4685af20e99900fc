//! Workloads: what is sent, and when.
//!
//! Layer: workload. Flow files and traffic patterns become [`Flow`]s; training jobs and graphs become [`program::Workload`]s. How their data travels is decided
//! in `routing` and `engine`.

pub mod checks;
mod classes;
pub mod critical_path;
pub mod dag;
mod error;
pub mod export;
pub mod flows;
pub mod import;
pub mod inspect;
pub mod lower;
pub mod program;
pub mod random;
pub mod repeat;
pub mod rescale;
pub mod rules;
pub mod serving;
pub mod tasks;
pub mod training;

pub use checks::check_error::CheckError;
pub use classes::Representatives;
pub use error::WorkloadError;
pub use flows::cdf::Cdf;
pub use flows::flow::Flow;
pub use flows::flow_file::{FIRST_SPORT, FlowFile, MAX_FLOW_BYTES, MAX_FLOWS, StartUnit, parse_flows, read_flows};
pub use flows::storage::StorageTraffic;
pub use flows::traffic::{AllToAll, BYTES_A_FLOW, Incast, Permutation, Poisson, Ring};
