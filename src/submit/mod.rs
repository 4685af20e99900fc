//! A sweep on a cluster: what each machine runs, and the files that tell a scheduler so.
//!
//! Layer: submit, between results and cli. [`contract`] says what a shard is, for every scheduler; [`slurm`] and [`kubernetes`] render it. Text in, text
//! out: nothing here reads files, starts programs or contacts anything.

pub mod contract;
pub mod kubernetes;
pub mod quote;
pub mod slurm;

use thiserror::Error;

pub use contract::Shards;
pub use kubernetes::Kubernetes;
pub use slurm::Slurm;

/// Why a submission cannot be written down.
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
