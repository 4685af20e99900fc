//! Runs a sweep on a cluster: the command of each machine, and the files for a scheduler.
//!
//! Layer: submit, between results and cli. [`contract`] defines a shard for every scheduler; [`slurm`] and [`kubernetes`] render it. It only converts text:
//! it reads no files, starts no programs and contacts nothing.

pub mod contract;
mod error;
pub mod kubernetes;
pub mod quote;
pub mod slurm;

pub use contract::Shards;
pub use error::SubmitError;
pub use kubernetes::Kubernetes;
pub use slurm::Slurm;
