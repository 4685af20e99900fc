//! Training jobs: makes a graph of every rank from a model and its parallel layout, or an analytic estimate without a graph.
//!
//! Layer: workload. `plan` describes a layer on a rank, `placement` the coordinates of ranks. Passes have the order of `model::pipeline`. `graph` writes
//! programs, `evaluate` adds up times. Knows no network; [`CommCost`] gives the time of each communication alone.

mod aligned;
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
mod sharded;
mod step;

pub use cluster::{Cluster, KernelScales};
pub use error::TrainingError;
pub use evaluate::IterationBreakdown;
pub use job::{evaluate, generate, generate_matched, generate_with, min_ops};
pub use machine::{CommCost, KernelCost, Machine};
pub use placement::{Coords, Purpose, RankPlacement, ServerSpan};

#[cfg(test)]
pub(crate) mod tests {
    use crate::model::Layout;

    /// A layout of one GPU and one micro-batch, without optimisations.
    pub(crate) fn layout() -> Layout {
        Layout { seq: 1024, flash_attention: true, bucket_bytes: 40_000_000, ..Layout::one_gpu() }
    }
}
