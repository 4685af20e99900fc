//! The feed-forward half of a dense layer.

use crate::model::Framework;

use super::attention::{norm_backward, norm_forward, residual_backward, residual_forward};
use super::part::{KernelRole, LayerPart, Site};
use super::shape::Builder;

/// Adds an activation function on `inner` elements per token. With a gate, twice as much is read. In eager mode the gate is a separate operation.
pub(super) fn activation_forward(b: &mut Builder, site: Site, tokens: u64, inner: u64) {
    let (role, inner_bytes) = (b.forward, tokens * inner * b.bytes);
    if b.model.activation_clamp {
        clamp_forward(b, site, inner_bytes);
    }
    match (b.model.gated, b.layout.eager()) {
        (true, true) => {
            b.memory(site, role, "silu", 2 * inner_bytes);
            b.memory(site, role, "multiply", 3 * inner_bytes);
        }
        (true, false) => b.memory(site, role, "swiglu", 3 * inner_bytes),
        (false, _) => b.memory(site, role, "gelu", 2 * inner_bytes),
    }
}

/// Adds the gradient of an activation function.
pub(super) fn activation_backward(b: &mut Builder, site: Site, tokens: u64, inner: u64) {
    let (role, inner_bytes) = (KernelRole::InputGrad, tokens * inner * b.bytes);
    match (b.model.gated, b.layout.eager()) {
        (true, true) => {
            b.memory(site, role, "multiply", 3 * inner_bytes);
            b.memory(site, role, "multiply", 3 * inner_bytes);
            b.memory(site, role, "silu-backward", 3 * inner_bytes);
        }
        (true, false) => b.memory(site, role, "swiglu-backward", 5 * inner_bytes),
        (false, _) => b.memory(site, role, "gelu-backward", 3 * inner_bytes),
    }
    if b.model.activation_clamp {
        clamp_backward(b, site, tokens * inner);
    }
}

/// Name of the kernel before which the host copies one number to the GPU and waits for the copy.
pub const LINEAR_OFFSET: &str = "linear-offset";

/// Adds the clamps before a gated activation function, on `inner_bytes` bytes of its inner size. Megatron's clamps are separate operations
/// (`weighted_bias_quick_geglu_impl` of Megatron-Core): both halves are clamped and concatenated. It copies the offset of one half to the GPU with
/// `torch.tensor`, which waits for the GPU. In other frameworks the function's kernel clamps. In eager mode each clamp is an operation, and so are the factor
/// in the gate's exponent and the offset.
fn clamp_forward(b: &mut Builder, site: Site, inner_bytes: u64) {
    let role = b.forward;
    if b.layout.framework == Framework::Megatron {
        b.memory(site, role, "clamp", 2 * inner_bytes);
        b.memory(site, role, "clamp", 2 * inner_bytes);
        b.memory(site, role, "concatenate", 4 * inner_bytes);
        b.memory(site, role, LINEAR_OFFSET, b.bytes);
    } else if b.layout.eager() {
        for name in ["clamp", "clamp", "scale", "add"] {
            b.memory(site, role, name, 2 * inner_bytes);
        }
        // The product of the gate and its sigmoid is two operations.
        b.memory(site, role, "multiply", 3 * inner_bytes);
    }
}

/// Adds the gradients of the clamps, for each of `elements` elements of the inner size: the gradient passes if the element was within its bounds. The half with
/// one bound takes a comparison and a selection. The other half takes two comparisons, their conjunction and a selection.
fn clamp_backward(b: &mut Builder, site: Site, elements: u64) {
    let role = KernelRole::InputGrad;
    let (compare, conjunction, choose) = (b.bytes + 1, 3, 1 + 2 * b.bytes);
    let is_megatron = b.layout.framework == Framework::Megatron;
    if !is_megatron && !b.layout.eager() {
        return;
    }
    if !is_megatron {
        // Products of the gate with its sigmoid, its factor, and the sum of both paths to the gate.
        for (name, each) in [("multiply", 3), ("multiply", 3), ("scale", 2), ("add", 3)] {
            b.memory(site, role, name, elements * each * b.bytes);
        }
    }
    b.memory(site, role, "compare", elements * compare);
    b.memory(site, role, "choose", elements * choose);
    b.memory(site, role, "compare", elements * compare);
    b.memory(site, role, "compare", elements * compare);
    b.memory(site, role, "both", elements * conjunction);
    b.memory(site, role, "choose", elements * choose);
    b.memory(site, role, "concatenate", elements * 4 * b.bytes);
}

/// Columns of the first matrix: twice the inner size if there is a gate.
pub(super) fn up_columns(b: &Builder, inner: u64) -> u64 {
    if b.model.gated { 2 * inner } else { inner }
}

/// Adds the forward pass from the norm to the residual.
pub(super) fn forward(b: &mut Builder) {
    norm_forward(b, Site::MlpNorm);
    b.convert_norm(Site::MlpNorm);
    products_forward(b);
    residual_forward(b, Site::MlpResidual);
}

/// Adds both products and the activation function between them.
pub(super) fn products_forward(b: &mut Builder) {
    part_forward(b, [Site::Up, Site::Activation, Site::Down], (b.model.ffn as u64).div_ceil(b.tp));
}

/// Adds a feed-forward part that every token passes, with this inner size on each rank. The sites are those of its first product, activation function and
/// second product.
pub(super) fn part_forward(b: &mut Builder, [up, activation, down]: [Site; 3], inner: u64) {
    let (tokens, hidden, role) = (b.tokens, b.hidden, b.forward);
    b.enter_forward(up, tokens);
    b.linear_forward(up, tokens, up_columns(b, inner), hidden, 1);
    activation_forward(b, activation, tokens, inner);
    if !b.layout.fused_activation_cast {
        b.cast_row_input(down, tokens * inner);
    }
    b.linear_forward(down, tokens, hidden, inner, 1);
    b.leave_forward(tokens, Some(LayerPart { site: Site::MlpResidual, role }));
}

/// Adds the backward pass from the residual to the norm.
pub(super) fn backward(b: &mut Builder) {
    let (tokens, hidden, inner) = (b.tokens, b.hidden, (b.model.ffn as u64).div_ceil(b.tp));
    residual_backward(b, Site::MlpResidual);
    b.row_backward(Site::Down, tokens, inner);
    activation_backward(b, Site::Activation, tokens, inner);
    b.cast_activation(Site::Up, KernelRole::InputGrad, tokens * up_columns(b, inner));
    b.column_backward(Site::Up, tokens, up_columns(b, inner), hidden, Site::MlpNorm);
    norm_backward(b, Site::MlpNorm);
}
