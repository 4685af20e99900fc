//! The number of parameters that one rank holds of each kind of layer, which gives the size of its gradients and optimizer state.
//!
//! Layer: workload. Tensor-parallel ranks share out matrices and the biases of column-parallel ones. They copy norms, routers and the biases of row-parallel
//! ones.

use super::compose::{ATTENTION, DOWN, PROJECTION, SHARED, UP};
use super::plan::{Held, Module};
use crate::model::{Layout, Mla, Moe, Transformer};

/// Size of the vocabulary in the embedding. Megatron pads it to a multiple of 128 for each tensor-parallel rank.
pub(super) fn padded_vocab(model: &Transformer, layout: &Layout) -> u64 {
    let multiple = 128 * layout.tp as u64;
    (model.vocab as u64).div_ceil(multiple) * multiple
}

/// Parameters of one norm: a scale, and a shift in LayerNorm.
fn norm(model: &Transformer, width: u64) -> u64 {
    if model.rms_norm { width } else { 2 * width }
}

/// Parameters of the attention and its norm.
fn attention(model: &Transformer, layout: &Layout) -> Held {
    let (t, h) = (layout.tp as u64, model.hidden as u64);
    if let Some(mla) = &model.mla {
        return latent_attention(model, mla, t, h);
    }
    let q = model.heads as u64 * model.head_dim as u64;
    let kv = model.kv_heads as u64 * model.head_dim as u64;
    let columns = q + 2 * kv;
    let biases = if model.biases { columns / t + h } else { 0 };
    let copied = norm(model, h) + if model.biases { h } else { 0 };
    Held { dense: (h * columns + q * h) / t + biases + sinks(model, t) + norm(model, h), expert: 0, sequence: copied }
}

/// Attention sinks of a rank's heads.
fn sinks(model: &Transformer, t: u64) -> u64 {
    if model.attention_sink { u64::from(model.heads) / t } else { 0 }
}

fn latent_attention(model: &Transformer, mla: &Mla, t: u64, h: u64) -> Held {
    let heads = model.heads as u64;
    let (q_rank, kv_rank, rope) = (mla.q_rank as u64, mla.kv_rank as u64, mla.rope_dim as u64);
    let (nope, v) = (mla.nope_dim as u64, mla.v_dim as u64);
    // Down projections are copied. Without a rank, queries are projected directly.
    let down = h * q_rank + h * (kv_rank + rope);
    let q_in = if q_rank > 0 { q_rank } else { h };
    let up = q_in * heads * (nope + rope) + kv_rank * heads * (nope + v) + heads * v * h;
    let copied = down + norm(model, h) + norm(model, q_rank) + norm(model, kv_rank);
    Held { dense: up / t + sinks(model, t) + copied, expert: 0, sequence: copied }
}

/// Parameters of a feed-forward part with inner size `ffn`, without its norm.
fn feed_forward(model: &Transformer, layout: &Layout, ffn: u64) -> Held {
    let (t, h) = (layout.tp as u64, model.hidden as u64);
    let up = if model.gated { 2 } else { 1 };
    let copied = if model.biases { h } else { 0 };
    let biases = if model.biases { up * ffn / t } else { 0 };
    Held { dense: (up + 1) * h * ffn / t + biases + copied, expert: 0, sequence: copied }
}

/// Parameters of a dense layer.
pub(super) fn dense_layer(model: &Transformer, layout: &Layout) -> Held {
    let mut held = attention(model, layout);
    held.add(&feed_forward(model, layout, model.ffn as u64));
    held.add(&norm_held(model));
    held
}

/// Parameters of a layer with experts.
pub(super) fn moe_layer(model: &Transformer, moe: &Moe, layout: &Layout) -> Held {
    let mut held = attention(model, layout);
    held.add(&norm_held(model));
    let router = model.router_params(moe);
    held.add(&Held { dense: router, expert: 0, sequence: router });
    if moe.shared_experts > 0 {
        held.add(&feed_forward(model, layout, moe.expert_ffn as u64 * moe.shared_experts as u64));
    }
    let expert_layout = Layout { tp: layout.expert_tp(), ..layout.clone() };
    let one = feed_forward(model, &expert_layout, moe.expert_ffn as u64).dense;
    held.add(&Held { dense: 0, expert: one * (moe.experts / layout.ep.max(1)) as u64, sequence: 0 });
    held
}

/// The modules of a layer whose parameters DeepSpeed gathers one by one, each with the name of the steps that use it. Vectors and the router are not there:
/// vectors are below `stage3_param_persistence_threshold`, and a router is hardly larger.
pub(super) fn modules(model: &Transformer, layout: &Layout, moe: Option<&Moe>) -> Vec<Module> {
    let (t, h) = (layout.tp as u64, model.hidden as u64);
    let dense = |name, dense| Module { name, held: Held { dense, ..Held::default() } };
    let output = match &model.mla {
        Some(mla) => model.heads as u64 * mla.v_dim as u64 * h,
        None => model.heads as u64 * model.head_dim as u64 * h,
    };
    let columns = (model.heads + 2 * model.kv_heads) as u64 * model.head_dim as u64;
    let biases = if model.biases && model.mla.is_none() { columns / t + h } else { 0 };
    let all = attention(model, layout).dense.saturating_sub(biases + norm(model, h));
    let up = if model.gated { 2 } else { 1 };
    let mut modules = vec![dense(ATTENTION, all - (output / t).min(all)), dense(PROJECTION, output / t)];
    let Some(moe) = moe else {
        let one = h * model.ffn as u64 / t;
        modules.extend([dense(UP, up * one), dense(DOWN, one)]);
        return modules;
    };
    if moe.shared_experts > 0 {
        modules.push(dense(SHARED, (up + 1) * h * (moe.expert_ffn * moe.shared_experts) as u64 / t));
    }
    let one = h * moe.expert_ffn as u64 / layout.expert_tp() as u64 * (moe.experts / layout.ep.max(1)) as u64;
    let expert = |name, expert| Module { name, held: Held { expert, ..Held::default() } };
    modules.extend([expert(UP, up * one), expert(DOWN, one)]);
    modules
}

/// Parameters of a norm of the hidden size, which every tensor-parallel rank copies.
fn norm_held(model: &Transformer) -> Held {
    let n = norm(model, model.hidden as u64);
    Held { dense: n, expert: 0, sequence: n }
}

/// Parameters of a module that predicts a further token: norms of both hidden states, a column-parallel projection of both, a layer like the last one, and a
/// final norm.
pub(super) fn prediction(model: &Transformer, layout: &Layout) -> Held {
    let h = model.hidden as u64;
    let mut held = match &model.moe {
        Some(moe) if model.is_moe(model.layers - 1) => moe_layer(model, moe, layout),
        _ => dense_layer(model, layout),
    };
    (0..3).for_each(|_| held.add(&norm_held(model)));
    held.add(&Held { dense: 2 * h * h / layout.tp as u64, expert: 0, sequence: 0 });
    held
}

/// Parameters of the input embedding with learned positions.
pub(super) fn embedding(model: &Transformer, layout: &Layout) -> Held {
    let h = model.hidden as u64;
    let positions = if model.learned_positions { layout.seq as u64 * h } else { 0 };
    Held { dense: vocab_matrix(model, layout) + positions, expert: 0, sequence: 0 }
}

/// Parameters of the final norm and the output matrix. If the output matrix is tied to the embedding on the same rank, it has no weights of its own. With
/// modules that predict further tokens, the embedding is added once more, unless it is on the same rank.
pub(super) fn head(model: &Transformer, layout: &Layout) -> Held {
    let own = if model.tied && layout.ends_on_one_rank() { 0 } else { vocab_matrix(model, layout) };
    let again =
        if model.mtp > 0 && !model.tied && !layout.ends_on_one_rank() { vocab_matrix(model, layout) } else { 0 };
    let matrix = own + again;
    let mut held = norm_held(model);
    held.add(&Held { dense: matrix, expert: 0, sequence: 0 });
    held
}

/// Elements of a rank's share of the embedding.
pub(super) fn vocab_matrix(model: &Transformer, layout: &Layout) -> u64 {
    padded_vocab(model, layout) * model.hidden as u64 / layout.tp as u64
}
