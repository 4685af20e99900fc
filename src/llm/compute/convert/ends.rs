//! The parts before the first layer and after the last: embedding, final norm, logits, cross-entropy.

use crate::collective::CollectiveOp;
use crate::model::Framework;

use super::super::Kernel;
use super::attention::{norm_backward, norm_forward};
use super::part::{Among, KernelRole, LayerPart, Site};
use super::shape::Builder;

/// Adds the embedding. The vocabulary is split over tensor-parallel ranks: each looks up its own rows, other rows are zero, and the sum over ranks is the
/// result.
pub(super) fn embedding_forward(b: &mut Builder) {
    let (role, bytes) = (b.forward, b.bytes);
    b.memory(Site::Embedding, role, "embedding", b.tokens * b.hidden * 2 * bytes);
    b.leave_forward(b.tokens, None);
    let local = b.local_tokens * b.hidden;
    if b.model.learned_positions {
        b.memory(Site::Embedding, role, "add", local * 3 * bytes);
    }
    if b.model.dropout {
        b.memory(Site::Embedding, role, "dropout", local * (2 * bytes + 1));
    }
}

/// Adds the gradient of the embedding. Gradients of tokens are scattered into a gradient as large as the table, which is then added to the accumulated one.
pub(super) fn embedding_backward(b: &mut Builder) {
    let bytes = b.bytes;
    if b.model.dropout {
        b.memory(
            Site::Embedding,
            KernelRole::InputGrad,
            "dropout-backward",
            b.local_tokens * b.hidden * (2 * bytes + 1),
        );
    }
    b.leave_backward(LayerPart { site: Site::Embedding, role: KernelRole::WeightGrad }, b.tokens);
    let table = (b.model.vocab as u64).div_ceil(b.tp) * b.hidden;
    let kept = b.layout.bytes.grads as u64;
    b.memory(
        Site::Embedding,
        KernelRole::WeightGrad,
        "embedding-backward",
        b.tokens * b.hidden * 3 * bytes + table * bytes,
    );
    if !b.layout.fsdp() {
        b.memory(Site::Embedding, KernelRole::WeightGrad, "gradient-accumulate", table * (bytes + 2 * kept));
    }
}

/// Adds the logits and their loss. Ranks exchange each token's maximum, its own logit and the sum of exponentials, in FP32.
pub(super) fn logits_forward(b: &mut Builder) {
    let (role, tokens, columns) = (b.forward, b.tokens, (b.model.vocab as u64).div_ceil(b.tp));
    norm_forward(b, Site::FinalNorm);
    b.enter_forward(Site::Logits, tokens);
    b.kernel(Site::Logits, role, Kernel::gemm(tokens, columns, b.hidden, b.dtype));
    let logits = tokens * columns;
    let part = LayerPart { site: Site::CrossEntropy, role };
    let [max, exp, normalise] = loss_bytes(b);
    b.memory(Site::CrossEntropy, role, "cross-entropy-max", logits * max);
    let scalars = |b: &mut Builder| {
        if b.tp > 1 {
            b.exchange(Among::Tp, CollectiveOp::AllReduce, tokens * 4, Some(part));
        }
    };
    scalars(b);
    b.memory(Site::CrossEntropy, role, "cross-entropy-exp", logits * exp);
    scalars(b);
    scalars(b);
    b.memory(Site::CrossEntropy, role, "cross-entropy-normalise", logits * normalise);
}

/// Bytes that each of the loss's forward kernels reads and writes per logit.
fn loss_bytes(b: &Builder) -> [u64; 3] {
    match (b.layout.fused_loss, b.layout.framework) {
        // One pass for the maximum and the sum of exponentials, one for the loss.
        (true, _) => [0, b.bytes, b.bytes],
        // Conversion to FP32 and the maximum; subtraction, exponentials and their sum; division, for the backward pass.
        (false, Framework::Megatron) => [b.bytes + 4 + 4, 8 + 8 + 4, 8],
        (false, _) => pytorch_loss(b.bytes),
    }
}

/// Bytes that PyTorch's loss reads and writes per logit, forward: conversion to FP32; the logarithm of the softmax, which reads twice.
fn pytorch_loss(bytes: u64) -> [u64; 3] {
    [bytes + 4, 4 + 4, 4]
}

/// Adds the backward pass from the loss to the final norm.
pub(super) fn logits_backward(b: &mut Builder) {
    let (tokens, columns) = (b.tokens, (b.model.vocab as u64).div_ceil(b.tp));
    let logits = tokens * columns;
    let bytes = match (b.layout.fused_loss, b.layout.framework) {
        (true, _) => 2 * b.bytes,
        (false, Framework::Megatron) => 8 + 4 + b.bytes,
        // A gradient of the logarithms is cleared; it gives the gradient of the logits, which is converted.
        (false, _) => 4 + 12 + 4 + b.bytes,
    };
    b.memory(Site::CrossEntropy, KernelRole::InputGrad, "cross-entropy-backward", logits * bytes);
    // Metrics are computed after the backward pass, where the logits are freed.
    let metric = pytorch_loss(b.bytes).iter().sum::<u64>();
    b.memory(Site::CrossEntropy, KernelRole::InputGrad, "metric", b.layout.loss_metrics as u64 * logits * metric);
    // Logits stay in the activations' type, even if layers compute in FP8.
    b.linear = b.dtype;
    b.column_backward(Site::Logits, tokens, columns, b.hidden, Site::FinalNorm);
    norm_backward(b, Site::FinalNorm);
}

/// Adds the norms of the hidden state and of the next token's embedding, their concatenation, and its projection to one hidden state.
pub(super) fn prediction_forward(b: &mut Builder) {
    let (tokens, hidden) = (b.tokens, b.hidden);
    norm_forward(b, Site::Prediction);
    norm_forward(b, Site::Prediction);
    b.memory(Site::Prediction, b.forward, "concatenate", b.local_tokens * hidden * 4 * b.bytes);
    b.enter_forward(Site::Prediction, tokens);
    b.linear_forward(Site::Prediction, tokens, hidden.div_ceil(b.tp), 2 * hidden, 1);
}

/// Adds the backward pass from that projection to the norms.
pub(super) fn prediction_backward(b: &mut Builder) {
    let (tokens, hidden) = (b.tokens, b.hidden);
    b.column_backward(Site::Prediction, tokens, hidden.div_ceil(b.tp), 2 * hidden, Site::Prediction);
    b.memory(Site::Prediction, KernelRole::InputGrad, "split", b.local_tokens * hidden * 4 * b.bytes);
    norm_backward(b, Site::Prediction);
    norm_backward(b, Site::Prediction);
}
