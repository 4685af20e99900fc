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
pub mod validation;

pub use cluster::Cluster;
pub use error::TrainingError;
pub use evaluate::Breakdown;
pub use job::{evaluate, evaluate_as, generate};
pub use machine::{CommCost, KernelCost, Machine};
pub use placement::{Coords, Placement, Purpose, Span};
pub use plan::Habits;

#[cfg(test)]
pub(crate) mod tests {
    use crate::model::{ElementBytes, Framework, Layout, PipelineSchedule, Recompute};

    /// One GPU, one micro-batch, nothing clever.
    pub fn layout() -> Layout {
        Layout {
            tp: 1,
            pp: 1,
            dp: 1,
            ep: 1,
            cp: 1,
            vpp: 1,
            microbatch: 1,
            global_batch: 1,
            seq: 1024,
            sequence_parallel: false,
            schedule: PipelineSchedule::OneFOneB,
            recompute: Recompute::None,
            zero: 0,
            framework: Framework::Megatron,
            bytes: ElementBytes { params: 2, grads: 4, activations: 2, optimizer: 12 },
            fp8: false,
            flash_attention: true,
            overlap_grad: false,
            overlap_param: false,
            tp_overlap_pieces: 1,
            overlap_p2p: false,
            bucket_bytes: 40_000_000,
            expert_skew: 1.0,
            order: "tp-cp-ep-dp-pp".to_string(),
        }
    }
}
