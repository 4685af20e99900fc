//! The converter: what one rank computes for a submodule of a model, as kernels, with the exchanges between them.
//!
//! Part of compute. It knows degrees of parallelism, not schedules. The workload decides which layer runs when and on which ranks.

mod attention;
mod ends;
mod mlp;
mod modules;
mod moe;
#[cfg(test)]
mod narrow_tests;
mod operations;
mod optimizer;
mod other;
mod part;
mod shape;
mod shards;
mod split;
#[cfg(test)]
mod tests;

pub use attention::UNPAD;
pub use mlp::LINEAR_OFFSET;
pub use moe::expert_loads;
pub use optimizer::optimizer_kernels;
pub use other::{DlrmPart, dlrm_kernels, list_layer_kernels};
pub use part::{Among, KernelRole, LayerPart, LayerStep, Site};
pub use shards::shard_kernels;
pub use split::split_backward;

use super::Kernel;
use crate::model::{Layout, Moe, Recompute, RecomputeModules, Transformer};
use shape::Builder;

/// Submodules of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerKind {
    /// The part before the first layer.
    Embedding,
    /// A layer with one feed-forward part.
    Dense,
    /// A layer with experts. It equals `Dense` if the model has none.
    Moe,
    /// A `Dense` layer whose attention sees only a window of tokens.
    WindowedDense,
    /// A `Moe` layer whose attention sees only a window of tokens.
    WindowedMoe,
    /// A module that predicts a further token: `Transformer::mtp`.
    Prediction,
    /// The part after the last layer: final norm, logits, loss.
    Logits,
}

impl LayerKind {
    /// Whether this kind is one of the model's layers, not a part at its ends.
    pub fn is_layer(self) -> bool {
        matches!(self, LayerKind::Dense | LayerKind::Moe | LayerKind::WindowedDense | LayerKind::WindowedMoe)
    }

    /// Whether tokens go to experts.
    pub fn has_experts(self, model: &Transformer) -> bool {
        match self {
            LayerKind::Moe | LayerKind::WindowedMoe => true,
            LayerKind::Prediction => model.is_moe(model.layers - 1),
            _ => false,
        }
    }

    /// Whether attention sees only a window.
    pub fn is_windowed(self, model: &Transformer) -> bool {
        match self {
            LayerKind::WindowedDense | LayerKind::WindowedMoe => true,
            LayerKind::Prediction => model.is_windowed(model.layers - 1),
            _ => false,
        }
    }
}

/// Directions of computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    /// From inputs to the loss.
    Forward,
    /// Gradients of inputs and weights, without recomputation.
    Backward,
    /// The part that `Layout::recompute` computes again before the backward pass: nothing, modules, or the layer from its input.
    Recompute,
}

/// The kind of layer number `layer`, counted from 0.
pub fn kind_of(model: &Transformer, layer: u32) -> LayerKind {
    match (model.is_moe(layer), model.is_windowed(layer)) {
        (false, false) => LayerKind::Dense,
        (true, false) => LayerKind::Moe,
        (false, true) => LayerKind::WindowedDense,
        (true, true) => LayerKind::WindowedMoe,
    }
}

/// Everything that one rank does for one micro-batch in one submodule, in order: kernels, and exchanges with tensor-, expert- and context-parallel ranks.
pub fn layer_steps(model: &Transformer, layout: &Layout, kind: LayerKind, pass: Pass) -> Vec<LayerStep> {
    let mut b =
        Builder::new(model, layout, if pass == Pass::Recompute { KernelRole::Recompute } else { KernelRole::Forward });
    b.windowed = kind.is_windowed(model);
    let layer = kind.is_layer() || kind == LayerKind::Prediction;
    let moe = model.moe.as_ref().filter(|_| kind.has_experts(model));
    match (pass, kind) {
        (Pass::Recompute, _) if !layer || layout.recompute == Recompute::None => {}
        (Pass::Recompute, _) if layout.recompute.modules() != RecomputeModules::NONE => modules::again(&mut b, moe),
        (Pass::Recompute, _) if layout.recompute == Recompute::Operations => operations::again(&mut b, moe),
        (Pass::Forward, LayerKind::Embedding) => ends::embedding_forward(&mut b),
        (Pass::Forward, LayerKind::Logits) => ends::logits_forward(&mut b),
        (Pass::Backward, LayerKind::Embedding) => ends::embedding_backward(&mut b),
        (Pass::Backward, LayerKind::Logits) => ends::logits_backward(&mut b),
        (Pass::Backward, LayerKind::Prediction) => {
            ends::logits_backward(&mut b);
            b.linear = b.layer_dtype();
            layer_backward(&mut b, moe);
            ends::prediction_backward(&mut b);
        }
        (Pass::Backward, _) => layer_backward(&mut b, moe),
        (Pass::Forward, LayerKind::Prediction) => {
            ends::prediction_forward(&mut b);
            layer_forward(&mut b, moe);
            ends::logits_forward(&mut b);
        }
        (Pass::Recompute, LayerKind::Prediction) => {
            ends::prediction_forward(&mut b);
            layer_forward(&mut b, moe);
        }
        (Pass::Forward | Pass::Recompute, _) => layer_forward(&mut b, moe),
    }
    b.steps
}

fn layer_forward(b: &mut Builder, moe: Option<&Moe>) {
    attention::forward(b);
    match moe {
        Some(moe) => moe::forward(b, moe),
        None => mlp::forward(b),
    }
}

fn layer_backward(b: &mut Builder, moe: Option<&Moe>) {
    match moe {
        Some(moe) => moe::backward(b, moe),
        None => mlp::backward(b),
    }
    attention::backward(b);
}

/// The kernels of [`layer_steps`] without the exchanges.
pub fn layer_kernels(model: &Transformer, layout: &Layout, kind: LayerKind, pass: Pass) -> Vec<(LayerPart, Kernel)> {
    let kernel = |step| match step {
        LayerStep::Kernel { part, kernel } => Some((part, kernel)),
        LayerStep::Exchange { .. } => None,
    };
    layer_steps(model, layout, kind, pass).into_iter().filter_map(kernel).collect()
}
