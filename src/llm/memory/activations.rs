//! The activations that a transformer keeps of a micro-batch for its backward pass, on one rank.
//!
//! Layer: memory. Masks of dropout take one byte per element, the router's scores and logits four. Inputs of products in FP8 and FP4 take the bytes of these
//! types. Everything else takes the layout's bytes per activation.

use crate::model::{Framework, Layout, Mla, Moe, Recompute, Transformer, layer_products};

/// The tokens of a micro-batch on a context-parallel rank, and how their tensors are divided.
#[derive(Clone, Copy)]
pub(super) struct Tokens {
    /// Number of tokens.
    pub n: u64,
    /// Bytes per element.
    pub e: u64,
    /// Bytes of 32 elements of a matrix product's kept input. It is kept as it was multiplied (Transformer Engine keeps the order that the weights' gradient
    /// reads).
    pub input_32: u64,
    /// Number of ranks over which heads and inner sizes are divided.
    pub tp: u64,
    /// Number of ranks over which everything else is divided: `tp` with sequence parallelism, else 1.
    pub sp: u64,
}

impl Tokens {
    pub(super) fn new(layout: &Layout) -> Tokens {
        Tokens {
            n: layout.microbatch as u64 * (layout.seq / layout.cp) as u64,
            e: layout.bytes.activations as u64,
            input_32: if layout.quantised() {
                layout.precision.bytes_of_32()
            } else {
                32 * layout.bytes.activations as u64
            },
            tp: layout.tp as u64,
            sp: if layout.sequence_parallel { layout.tp as u64 } else { 1 },
        }
    }

    /// Bytes of a tensor with `width` elements per token, divided by sequence parallelism only.
    fn whole(&self, width: u64) -> u64 {
        self.e * self.n * width / self.sp
    }

    /// Bytes of a tensor with `width` elements per token, divided by tensor parallelism.
    fn split(&self, width: u64) -> u64 {
        self.e * self.n * width / self.tp
    }

    /// Bytes of a hidden state that is kept as a product's input.
    fn hidden_input(&self, t: &Transformer) -> u64 {
        self.input_32 * self.n * t.hidden as u64 / 32 / self.sp
    }

    /// Bytes of a tensor with `width` elements per token, divided by tensor parallelism, that is kept as a product's input.
    fn split_input(&self, width: u64) -> u64 {
        self.input_32 * self.n * width / 32 / self.tp
    }

    /// Bytes of one hidden state.
    pub(super) fn hidden(&self, t: &Transformer) -> u64 {
        self.whole(t.hidden as u64)
    }

    /// Bytes of a hidden state's share of columns on a tensor-parallel rank, for all of the sequence.
    pub(super) fn hidden_of_ranks(&self, t: &Transformer) -> u64 {
        self.split(t.hidden as u64)
    }

    /// Bytes of the gradient of a row-parallel product's result, as the product of the weights' gradient reads it. With sequence parallelism it was gathered,
    /// and stays so.
    fn gathered_grad(&self, t: &Transformer) -> u64 {
        self.input_32 * self.n * t.hidden as u64 / 32
    }

    /// Bytes of a dropout mask over hidden states.
    pub(super) fn mask(&self, t: &Transformer) -> u64 {
        t.dropout as u64 * self.n * t.hidden as u64 / self.sp
    }
}

/// Bytes that one layer would keep of one micro-batch without recomputation. `kept` is what it really keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerActivations {
    /// Inputs of both norms. The first is the layer's own input.
    pub norms: u64,
    /// The layer's own input.
    pub input: u64,
    /// Attention without its core: inputs of the projections, queries, keys, values, the dropout mask.
    pub attention: u64,
    /// The core: scores after softmax and dropout with their mask, or the row sums that fused attention keeps.
    pub core: u64,
    /// The feed-forward part, or router and experts.
    pub mlp: u64,
    /// The part of all this that is kept from the forward to the backward pass, by `Layout::recompute`.
    pub kept: u64,
    /// Bytes that gradients of the weights of linear layers need if they are computed after gradients of inputs: the input of each product and the gradient of
    /// its result, whether or not they were kept before.
    pub weights: u64,
    /// The largest single tensor. The backward pass holds its gradient and the gradient of its input at the same time.
    pub widest: u64,
}

impl LayerActivations {
    pub(super) fn new(t: &Transformer, layout: &Layout, moe: bool) -> LayerActivations {
        let tokens = Tokens::new(layout);
        let input = tokens.hidden(t);
        let (attention, core, widest_a) = attention(t, layout, &tokens);
        let (mlp, widest_m) = match t.moe {
            Some(m) if moe => experts(t, &m, layout, &tokens),
            _ => feed_forward(t, t.ffn as u64, &tokens),
        };
        let mut layer = LayerActivations {
            norms: 2 * input,
            input,
            attention,
            core,
            mlp,
            kept: 0,
            weights: weights(t, layout, moe, &tokens),
            widest: widest_a.max(widest_m).max(input),
        };
        layer.kept = match layout.recompute {
            Recompute::None => layer.all(),
            Recompute::Selective(_) => layer.all() - modules(t, layout, moe, &tokens, core),
            Recompute::Operations => operations(t, layout, moe, &tokens),
            Recompute::Full => input,
        };
        layer
    }

    /// Bytes of everything, as without recomputation.
    pub fn all(&self) -> u64 {
        self.norms + self.attention + self.core + self.mlp
    }

    /// Bytes that the layer's backward pass needs temporarily: what it computes again, and two gradients of the widest tensor.
    pub fn working(&self) -> u64 {
        self.all().saturating_sub(self.kept) + 2 * self.widest
    }
}

/// Bytes kept with recomputation by operation: the layer's input, results of attention and of products that are not computed again, and sums over
/// tensor-parallel ranks.
fn operations(t: &Transformer, layout: &Layout, moe: bool, tokens: &Tokens) -> u64 {
    let kept = layer_products(t, layout.tp, moe).into_iter().filter(|p| !p.recomputed).map(|p| p.columns).sum::<u64>();
    let (heads, out) = (t.heads as u64, t.mla.map_or(t.head_dim, |m| m.v_dim) as u64);
    let sums = if layout.tp > 1 { 2 * tokens.hidden(t) } else { 0 };
    tokens.hidden(t) + tokens.e * tokens.n * kept + tokens.split(heads * out) + 4 * tokens.n * heads / tokens.tp + sums
}

/// Bytes that a layer does not keep because modules are computed again, each from its own input, which is kept.
fn modules(t: &Transformer, layout: &Layout, moe: bool, tokens: &Tokens, core: u64) -> u64 {
    let chosen = layout.recompute.modules();
    let norms = layout.norms_alone(t, moe);
    let part = |chosen: bool, bytes: u64| if chosen { bytes } else { 0 };
    let up_projections = t.mla.map_or(0, |m| {
        // The normalised compressed vectors are not kept either. Attention in FP8 keeps its own copies.
        let vectors = if layout.fp8_attention { 0 } else { latent(&m, u64::from(t.heads), tokens).1 };
        vectors + tokens.whole(u64::from(m.q_rank + m.kv_rank))
    });
    let attention = part(chosen.core_attn, core)
        + part(chosen.mla_up_proj, up_projections)
        + part(chosen.layernorm && norms[0], tokens.hidden_input(t));
    let feed_forward = match t.moe {
        Some(m) if moe => {
            let input = tokens.hidden(t);
            let (whole_part, activated, shared) =
                (experts(t, &m, layout, tokens).0, activated(t, &m, layout, tokens), shared(t, &m, tokens));
            part(chosen.layernorm && norms[1], input)
                + part(chosen.moe, whole_part - input - tokens.mask(t))
                + part(chosen.moe_act && !chosen.moe, activated)
                + part(chosen.shared_experts && !chosen.moe, shared)
        }
        _ => {
            let (whole_part, _) = feed_forward(t, u64::from(t.ffn), tokens);
            let input = tokens.hidden_input(t);
            // If the norm is fused with the first product, the part's input is the norm's input, which is kept.
            part(chosen.layernorm && norms[1] || chosen.mlp && !norms[1], input)
                + part(chosen.mlp, whole_part - input - tokens.mask(t))
        }
    };
    attention + feed_forward
}

/// Bytes of attention without its core, of the core, and of the widest tensor.
fn attention(t: &Transformer, layout: &Layout, tokens: &Tokens) -> (u64, u64, u64) {
    let heads = t.heads as u64;
    let (compressed, query_key_value, out) = match t.mla {
        Some(m) => latent(&m, heads, tokens),
        None => (
            0,
            tokens.split((heads + 2 * t.kv_heads as u64) * t.head_dim as u64),
            tokens.split(heads * t.head_dim as u64),
        ),
    };
    // In FP8, attention keeps the operands that it multiplied.
    let query_key_value = if layout.fp8_attention { query_key_value / tokens.e } else { query_key_value };
    // Attention keeps its own result; a product in FP8 keeps another copy.
    let copy = if layout.quantised() { out / tokens.e * tokens.input_32 / 32 } else { 0 };
    let without_core = tokens.hidden_input(t) + compressed + query_key_value + out + copy + tokens.mask(t);
    let rows = tokens.n * heads / tokens.tp;
    if layout.flash_attention {
        // The logarithm of each row's sum, in fp32.
        return (without_core, 4 * rows, query_key_value);
    }
    let scores = rows * layout.seq as u64;
    let dropout = if t.dropout { 1 + tokens.e } else { 0 };
    (without_core, scores * (tokens.e + dropout), query_key_value.max(tokens.e * scores))
}

/// Bytes of latent attention: the compressed vectors before and after their norms (their projections are not divided), the vectors of each head, and the core's
/// output.
fn latent(m: &Mla, heads: u64, tokens: &Tokens) -> (u64, u64, u64) {
    let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(u64::from);
    (tokens.whole(2 * q + 2 * kv + rope), tokens.split(heads * (2 * (nope + rope) + v)), tokens.split(heads * v))
}

/// Bytes that a layer's gradients of weights need.
fn weights(t: &Transformer, layout: &Layout, moe: bool, tokens: &Tokens) -> u64 {
    let heads = t.heads as u64;
    let (compressed, grads, out) = match t.mla {
        Some(m) => {
            let [q, kv, rope, nope, v] = [m.q_rank, m.kv_rank, m.rope_dim, m.nope_dim, m.v_dim].map(u64::from);
            // Both compressed vectors are inputs of products; they and the vectors that are rotated for all heads are results of products.
            let compressed = tokens.whole(2 * q + 2 * kv + rope);
            (compressed, tokens.split_input(heads * (nope + rope + nope + v)), heads * v)
        }
        None => {
            let d = t.head_dim as u64;
            (0, tokens.split_input((heads + 2 * t.kv_heads as u64) * d), heads * d)
        }
    };
    let projection = tokens.split_input(out) + tokens.gathered_grad(t);
    let attention = tokens.hidden_input(t) + compressed + grads + projection;
    let feed_forward = |ffn: u64| {
        let up = tokens.split_input((1 + t.gated as u64) * ffn);
        tokens.hidden_input(t) + up + tokens.split_input(ffn) + tokens.gathered_grad(t)
    };
    match t.moe {
        Some(m) if moe => {
            let arrived = routed(&m, layout, tokens);
            let (h, f) = (t.hidden as u64, u64::from(m.expert_ffn));
            // Input and gradient of the result are whole on each tensor-parallel rank.
            let inner = (2 + u64::from(t.gated)) * f / u64::from(layout.expert_tp());
            let experts = tokens.input_32 * arrived * (2 * h + inner) / 32;
            // The router's input, which shared experts read too.
            let router = tokens.hidden(t) + tokens.e * tokens.n * m.experts as u64 / tokens.sp;
            let shared = m.shared_experts as u64 * f;
            let shared = if shared > 0 { feed_forward(shared) - tokens.hidden_input(t) } else { 0 };
            attention + experts + router + shared
        }
        _ => attention + feed_forward(u64::from(t.ffn)),
    }
}

/// Bytes of a feed-forward part with inner size `ffn` (its input, the activation function's input and output, the dropout mask), and of its widest tensor.
fn feed_forward(t: &Transformer, ffn: u64, tokens: &Tokens) -> (u64, u64) {
    let up = tokens.split((1 + t.gated as u64) * ffn);
    (tokens.hidden_input(t) + up + tokens.split_input(ffn) + tokens.mask(t), up)
}

/// Number of tokens of a rank's experts, on the busiest rank.
pub(super) fn routed(m: &Moe, layout: &Layout, tokens: &Tokens) -> u64 {
    // Ranks that share out whole experts receive as many tokens as they send, which is their share of the sequence.
    let own_tokens = if layout.folded_experts() { tokens.n / tokens.sp } else { tokens.n };
    let even = (own_tokens * m.top_k as u64) as f64;
    (even * layout.expert_skew) as u64
}

/// Bytes of a layer's experts, and of the widest tensor: the router and its input, tokens as received from the other ranks (each tensor-parallel rank holds all
/// of them and a slice of each expert), inner tensors, and the shared experts. The activation function multiplies by the router's scores, so results need not
/// be kept (Megatron-Core 0.12).
fn experts(t: &Transformer, m: &Moe, layout: &Layout, tokens: &Tokens) -> (u64, u64) {
    let (h, f, gate) = (t.hidden as u64, m.expert_ffn as u64, t.gated as u64);
    let slices = u64::from(layout.expert_tp());
    let arrived = routed(m, layout, tokens);
    let router = 2 * 4 * tokens.n * m.experts as u64 / tokens.sp;
    let input = tokens.input_32 * arrived * h / 32;
    let up = tokens.e * arrived * (1 + gate) * f / slices;
    let kept = tokens.hidden(t) + router + input + up + activated(t, m, layout, tokens) + shared(t, m, tokens);
    (kept + tokens.mask(t), up.max(tokens.e * arrived * h))
}

/// Bytes that the experts' activation function keeps: its results, and if Megatron clamps by separate operations, the clamped input, which the function keeps.
fn activated(t: &Transformer, m: &Moe, layout: &Layout, tokens: &Tokens) -> u64 {
    let separate_clamps = t.activation_clamp && layout.framework == Framework::Megatron && !layout.fused_grouped_mlp;
    let clamped = 2 * tokens.e * routed(m, layout, tokens) * u64::from(m.expert_ffn) / u64::from(layout.expert_tp());
    inner(m, layout, tokens) + if separate_clamps { clamped } else { 0 }
}

/// Bytes of the results of the experts' activation function, as the next product keeps them.
fn inner(m: &Moe, layout: &Layout, tokens: &Tokens) -> u64 {
    tokens.input_32 * routed(m, layout, tokens) * u64::from(m.expert_ffn) / 32 / u64::from(layout.expert_tp())
}

/// Bytes of the experts that every token visits.
fn shared(t: &Transformer, m: &Moe, tokens: &Tokens) -> u64 {
    let f = u64::from(m.expert_ffn);
    u64::from(m.shared_experts) * (tokens.split((1 + u64::from(t.gated)) * f) + tokens.split_input(f))
}
