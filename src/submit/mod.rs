//! Runs a sweep on a cluster: the command of each machine, and the files for a scheduler.
//!
//! Layer: submit, between results and cli. [`contract`] defines a shard for every scheduler; [`slurm`] and [`kubernetes`] render it. It only converts text:
//! it reads no files, starts no programs and contacts nothing.

pub mod contract;
pub mod kubernetes;
pub mod quote;
pub mod slurm;

use thiserror::Error;

pub use contract::Shards;
pub use kubernetes::Kubernetes;
pub use slurm::Slurm;

/// Why a submission cannot be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SubmitError {
    #[error("{option} {shown}: {why}", shown = quote::shown(.value))]
    BadValue { option: &'static str, value: String, why: String },
}

impl SubmitError {
    fn bad(option: &'static str, value: &str, why: impl Into<String>) -> SubmitError {
        SubmitError::BadValue { option, value: value.into(), why: why.into() }
    }
}
