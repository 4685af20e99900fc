//! A backward pass in two parts: gradients of inputs, and gradients of the weights of linear layers.
//!
//! Part of compute. Schedules that split backward passes run the second part later. As in their reference implementation (a queue of the products of weights'
//! gradients), gradients of norms, biases of attention and embeddings stay in the first part.

use super::super::Kernel;
use super::part::{KernelRole, LayerStep, Site};

/// Kernels that belong to the product of a weight's gradient.
const BESIDE_PRODUCTS: [&str; 4] = ["quantise", "fp8-transpose", "bias-grad", "gradient-accumulate"];

/// The steps of a backward pass in two parts: gradients of inputs, then gradients of weights. Both keep the order of the whole. Where ranks gather the input of
/// a product of the second part, they do so in that part.
pub fn split_backward(steps: Vec<LayerStep>) -> (Vec<LayerStep>, Vec<LayerStep>) {
    let (weights, inputs) = steps.into_iter().partition(is_weight_grad);
    (inputs, weights)
}

fn is_weight_grad(step: &LayerStep) -> bool {
    let part = match step {
        LayerStep::Kernel { part, kernel: Kernel::Memory { name, .. } } if BESIDE_PRODUCTS.contains(name) => *part,
        LayerStep::Kernel { part, kernel: Kernel::Gemm { .. } } => *part,
        LayerStep::Kernel { .. } | LayerStep::Exchange { needed_by: None, .. } => return false,
        LayerStep::Exchange { needed_by: Some(part), .. } => *part,
    };
    part.role == KernelRole::WeightGrad && !matches!(part.site, Site::Embedding | Site::AttnResidual)
}
