//! Training jobs: from a model and its parallel layout to a graph of every rank, and to an analytic estimate without one.
//!
//! Layer: workload. `plan` says what a layer is on a rank, `placement` who is whom; passes come in the order of `model::pipeline`; `graph` writes programs from them,
//! `evaluate` adds up times. Knows no network: what a communication takes alone is asked of [`CommCost`].

mod cluster;
mod compose;
mod error;
mod evaluate;
mod graph;
mod job;
mod machine;
mod other;
mod placement;
mod plan;
mod shard;
mod step;

pub use cluster::Cluster;
pub use error::TrainingError;
pub use evaluate::IterationBreakdown;
pub use job::{evaluate, generate, generate_matched, generate_with, least_ops};
pub use machine::{CommCost, KernelCost, Machine};
pub use placement::{Coords, Purpose, RankPlacement, ServerSpan};

#[cfg(test)]
pub(crate) mod tests {
    use crate::model::Layout;

    /// One GPU, one micro-batch, nothing clever.
    pub(crate) fn layout() -> Layout {
        Layout { seq: 1024, flash_attention: true, bucket_bytes: 40_000_000, ..Layout::one_gpu() }
    }
}
