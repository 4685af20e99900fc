//! The converter: what one rank computes for a submodule of a model, as kernels, with the exchanges between them.
//!
//! Part of compute. It knows degrees of parallelism, not schedules: which layer runs when, and on whom, is the workload's.

mod attention;
mod ends;
mod mlp;
mod moe;
mod operations;
mod optimizer;
mod other;
mod part;
mod shape;
mod shards;
#[cfg(test)]
mod tests;

pub use moe::expert_loads;
pub use optimizer::optimizer_kernels;
pub use other::{DlrmPart, dlrm_kernels, list_layer_kernels};
pub use part::{Among, KernelRole, LayerPart, LayerStep, Site};
pub use shards::shard_kernels;

use super::Kernel;
use crate::model::{Layout, Recompute, Transformer};
use shape::Builder;

/// Submodules of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerKind {
    /// Before the first layer.
    Embedding,
    /// A layer with one feed-forward part.
    Dense,
    /// A layer with experts; as `Dense` where the model has none.
    Moe,
    /// After the last layer: final norm, logits, loss.
    Logits,
}

/// Directions of computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    Forward,
    /// Gradients of inputs and weights; without what must be recomputed first.
    Backward,
    /// What `Layout::recompute` computes again before the backward pass: nothing, the attention core, or the layer from its input.
    Recompute,
}

/// The kind of layer number `layer`, counted from 0.
pub fn kind_of(model: &Transformer, layer: u32) -> LayerKind {
    match model.moe {
        Some(moe) if layer >= moe.dense_layers && (layer - moe.dense_layers + 1).is_multiple_of(moe.every.max(1)) => {
            LayerKind::Moe
        }
        _ => LayerKind::Dense,
    }
}

/// Everything one rank does for one micro-batch in one submodule, in order: kernels, and exchanges with tensor-, expert- and context-parallel ranks.
pub fn layer_steps(model: &Transformer, layout: &Layout, kind: LayerKind, pass: Pass) -> Vec<LayerStep> {
    let mut b =
        Builder::new(model, layout, if pass == Pass::Recompute { KernelRole::Recompute } else { KernelRole::Forward });
    let layer = matches!(kind, LayerKind::Dense | LayerKind::Moe);
    let moe = model.moe.as_ref().filter(|_| kind == LayerKind::Moe);
    match (pass, kind) {
        (Pass::Recompute, _) if !layer || layout.recompute == Recompute::None => {}
        (Pass::Recompute, _) if layout.recompute == Recompute::Selective => attention::core_forward(&mut b),
        (Pass::Recompute, _) if layout.recompute == Recompute::Operations => operations::again(&mut b, moe),
        (Pass::Forward, LayerKind::Embedding) => ends::embedding_forward(&mut b),
        (Pass::Forward, LayerKind::Logits) => ends::logits_forward(&mut b),
        (Pass::Backward, LayerKind::Embedding) => ends::embedding_backward(&mut b),
        (Pass::Backward, LayerKind::Logits) => ends::logits_backward(&mut b),
        (Pass::Backward, _) => {
            match moe {
                Some(moe) => moe::backward(&mut b, moe),
                None => mlp::backward(&mut b),
            }
            attention::backward(&mut b);
        }
        (Pass::Forward | Pass::Recompute, _) => {
            attention::forward(&mut b);
            match moe {
                Some(moe) => moe::forward(&mut b, moe),
                None => mlp::forward(&mut b),
            }
        }
    }
    b.steps
}

/// The kernels of [`layer_steps`] alone.
pub fn layer_kernels(model: &Transformer, layout: &Layout, kind: LayerKind, pass: Pass) -> Vec<(LayerPart, Kernel)> {
    let kernel = |step| match step {
        LayerStep::Kernel { part, kernel } => Some((part, kernel)),
        LayerStep::Exchange { .. } => None,
    };
    layer_steps(model, layout, kind, pass).into_iter().filter_map(kernel).collect()
}
