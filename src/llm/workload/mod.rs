//! Workloads: what is sent, and when.
//!
//! Layer: workload. Flow files and traffic patterns become [`Flow`]s; training jobs and graphs become [`program::Workload`]s. How their data travels is decided
//! in `routing` and `engine`.

mod cdf;
pub mod check;
pub mod check_error;
mod classes;
pub mod critical_path;
pub mod dag;
mod decimal;
mod error;
pub mod export;
pub mod flow;
mod flow_file;
pub mod import;
pub mod inspect;
pub mod lower;
pub mod program;
mod progress;
pub mod random;
pub mod repeat;
pub mod rescale;
pub mod rules;
pub mod serving;
mod storage;
pub mod tasks;
mod traffic;
pub mod training;

pub use cdf::Cdf;
pub use check_error::CheckError;
pub use classes::Representatives;
pub use error::WorkloadError;
pub use flow::Flow;
pub use flow_file::{FIRST_SPORT, FlowFile, MAX_FLOW_BYTES, MAX_FLOWS, StartUnit, parse_flows, read_flows};
pub use storage::StorageTraffic;
pub use traffic::{AllToAll, BYTES_A_FLOW, Incast, Permutation, Poisson, Ring};
