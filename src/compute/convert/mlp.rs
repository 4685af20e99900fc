//! The feed-forward half of a dense layer.

use crate::model::Framework;

use super::attention::{norm_backward, norm_forward, residual_backward, residual_forward};
use super::part::{KernelRole, LayerPart, Site};
use super::shape::Builder;

/// Reads and writes of an activation function, in activations of its inner size: a gate doubles what is read. Eager, the gate is an operation of its own.
pub(super) fn activation_forward(b: &mut Builder, site: Site, tokens: u64, inner: u64) {
    let (role, each) = (b.forward, tokens * inner * b.bytes);
    if b.model.activation_clamp {
        clamp_forward(b, site, each);
    }
    match (b.model.gated, b.layout.eager()) {
        (true, true) => {
            b.memory(site, role, "silu", 2 * each);
            b.memory(site, role, "multiply", 3 * each);
        }
        (true, false) => b.memory(site, role, "swiglu", 3 * each),
        (false, _) => b.memory(site, role, "gelu", 2 * each),
    }
}

pub(super) fn activation_backward(b: &mut Builder, site: Site, tokens: u64, inner: u64) {
    let (role, each) = (KernelRole::InputGrad, tokens * inner * b.bytes);
    match (b.model.gated, b.layout.eager()) {
        (true, true) => {
            b.memory(site, role, "multiply", 3 * each);
            b.memory(site, role, "multiply", 3 * each);
            b.memory(site, role, "silu-backward", 3 * each);
        }
        (true, false) => b.memory(site, role, "swiglu-backward", 5 * each),
        (false, _) => b.memory(site, role, "gelu-backward", 3 * each),
    }
    if b.model.activation_clamp {
        clamp_backward(b, site, tokens * inner);
    }
}

/// The kernel before which the host has copied one number to the GPU, and waited for that.
pub const LINEAR_OFFSET: &str = "linear-offset";

/// Clamps in front of a gated activation function: `each` bytes of its inner size. Megatron's are operations of their own (`weighted_bias_quick_geglu_impl` of Megatron-Core): both
/// halves clamped, and put side by side. What it adds to one half it copies to the GPU with `torch.tensor`, which waits for the GPU. Elsewhere the function's kernel clamps;
/// eager, each clamp is an operation, and so are the factor in the gate's exponent and the one that is added.
fn clamp_forward(b: &mut Builder, site: Site, each: u64) {
    let role = b.forward;
    if b.layout.framework == Framework::Megatron {
        b.memory(site, role, "clamp", 2 * each);
        b.memory(site, role, "clamp", 2 * each);
        b.memory(site, role, "concatenate", 4 * each);
        b.memory(site, role, LINEAR_OFFSET, b.bytes);
    } else if b.layout.eager() {
        for name in ["clamp", "clamp", "scale", "add"] {
            b.memory(site, role, name, 2 * each);
        }
        // The gate times its sigmoid is two operations.
        b.memory(site, role, "multiply", 3 * each);
    }
}

/// Gradients of the clamps, of each of `elements` of the inner size: where it was within its bounds. The half with one bound takes a comparison and a choice, the other two
/// comparisons, their conjunction and a choice.
fn clamp_backward(b: &mut Builder, site: Site, elements: u64) {
    let role = KernelRole::InputGrad;
    let (compare, both, choose) = (b.bytes + 1, 3, 1 + 2 * b.bytes);
    let own = b.layout.framework == Framework::Megatron;
    if !own && !b.layout.eager() {
        return;
    }
    if !own {
        // Products of the gate with its sigmoid, its factor, and the sum of both paths to the gate.
        for (name, each) in [("multiply", 3), ("multiply", 3), ("scale", 2), ("add", 3)] {
            b.memory(site, role, name, elements * each * b.bytes);
        }
    }
    b.memory(site, role, "compare", elements * compare);
    b.memory(site, role, "choose", elements * choose);
    b.memory(site, role, "compare", elements * compare);
    b.memory(site, role, "compare", elements * compare);
    b.memory(site, role, "both", elements * both);
    b.memory(site, role, "choose", elements * choose);
    b.memory(site, role, "concatenate", elements * 4 * b.bytes);
}

/// Columns of the first matrix: two of the inner size where gated.
pub(super) fn up_columns(b: &Builder, inner: u64) -> u64 {
    if b.model.gated { 2 * inner } else { inner }
}

/// Norm to residual, forward.
pub(super) fn forward(b: &mut Builder) {
    norm_forward(b, Site::MlpNorm);
    products_forward(b);
    residual_forward(b, Site::MlpResidual);
}

/// Both products and what is between them.
pub(super) fn products_forward(b: &mut Builder) {
    part_forward(b, [Site::Up, Site::Activation, Site::Down], (b.model.ffn as u64).div_ceil(b.tp));
}

/// The same of a part that every token visits, with this inner size on each rank: its first product, activation function and second product are at these sites.
pub(super) fn part_forward(b: &mut Builder, [up, activation, down]: [Site; 3], inner: u64) {
    let (tokens, hidden, role) = (b.tokens, b.hidden, b.forward);
    b.enter_forward(up, tokens);
    b.linear_forward(up, tokens, up_columns(b, inner), hidden, 1);
    activation_forward(b, activation, tokens, inner);
    b.cast_activation(down, role, tokens * inner);
    b.linear_forward(down, tokens, hidden, inner, 1);
    b.leave_forward(tokens, Some(LayerPart { site: Site::MlpResidual, role }));
}

/// Residual to norm, backward.
pub(super) fn backward(b: &mut Builder) {
    let (tokens, hidden, inner) = (b.tokens, b.hidden, (b.model.ffn as u64).div_ceil(b.tp));
    residual_backward(b, Site::MlpResidual);
    b.leave_backward(LayerPart { site: Site::Down, role: KernelRole::InputGrad }, tokens);
    b.cast(Site::Down, KernelRole::InputGrad, tokens * hidden);
    b.input_grad(Site::Down, tokens, hidden, inner, 1);
    b.weight_grad(Site::Down, tokens, hidden, inner, 1);
    activation_backward(b, Site::Activation, tokens, inner);
    b.cast_activation(Site::Up, KernelRole::InputGrad, tokens * up_columns(b, inner));
    b.column_backward(Site::Up, tokens, up_columns(b, inner), hidden, Site::MlpNorm);
    norm_backward(b, Site::MlpNorm);
}
