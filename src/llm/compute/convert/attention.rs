//! The attention half of a layer: norm, projections, core, residual.

use crate::collective::CollectiveOp;
use crate::model::Framework;

use super::super::Kernel;
use super::part::{Among, KernelRole, LayerPart, Site};
use super::shape::Builder;

/// The attention heads of one rank.
struct Heads {
    heads: u64,
    kv_heads: u64,
    /// Elements of a head's query and key.
    qk: u64,
    /// Elements of a head's value.
    v: u64,
    batch: u64,
    seq_q: u64,
    seq_kv: u64,
    /// Keys that a block of queries is multiplied with, if attention sees only a window.
    window: Option<u64>,
}

/// Keys that kernels of fused attention process at a time. A block of queries is multiplied with the blocks of its window and the block in which its first
/// query begins (FlashAttention-2 and cuDNN skip blocks outside; their tiles have 64 to 128 keys).
const KEY_BLOCK: u64 = 128;

/// Name of the kernel that removes padding from queries, keys or values.
pub const UNPAD: &str = "unpad";

/// Time of PyTorch's indexed operations (`gather`, `scatter_`, `index`, `index_put_`) on elements of 16 bit over that of a copy of as many bytes. Up to PyTorch
/// 2.7 they move one element at a time. Moving four at a time was measured to give 2.5 times the bandwidth (PyTorch pull request 152376, of `index_select`).
const INDEXED_OVER_COPY: (u64, u64) = (5, 2);

fn heads(b: &Builder) -> Heads {
    let (m, l) = (b.model, b.layout);
    let heads = (m.heads as u64).div_ceil(b.tp);
    let (kv_heads, qk, v) = match m.mla {
        // In training, latent attention expands to a key and a value for each head.
        Some(mla) => (heads, (mla.nope_dim + mla.rope_dim) as u64, mla.v_dim as u64),
        None => ((m.kv_heads as u64).div_ceil(b.tp), m.head_dim as u64, m.head_dim as u64),
    };
    Heads {
        heads,
        kv_heads,
        qk,
        v,
        batch: l.microbatch as u64,
        seq_q: l.seq as u64 / l.cp as u64,
        seq_kv: l.seq as u64,
        window: b.windowed.then(|| u64::from(m.window).next_multiple_of(KEY_BLOCK) + KEY_BLOCK),
    }
}

impl Heads {
    /// Elements of the matrix of scores.
    fn scores(&self) -> u64 {
        self.batch * self.heads * self.seq_q * self.seq_kv
    }

    /// Bytes of the keys and values of the whole sequence that context-parallel ranks exchange. PyTorch's ring exchanges them for every head of queries,
    /// because models repeat them before it (torchtitan's `repeat_kv`).
    fn exchanged(&self, b: &Builder) -> u64 {
        let heads = if pytorch_ring(b) { self.heads } else { self.kv_heads };
        self.batch * heads * self.seq_kv * (self.qk + self.v) * b.bytes
    }

    /// Adds the memory traffic of PyTorch's ring besides its attention kernels. All of it is single operations in FP32
    /// (torch/distributed/tensor/experimental/_attention.py). Forward, keys and values are concatenated for every step, and a step's output is weighted and
    /// added to the sum. Backward, gradients are added, concatenated and sent on.
    fn ring(&self, b: &mut Builder, role: KernelRole, backward: bool) {
        if !pytorch_ring(b) {
            return;
        }
        let (elements, steps) = (self.batch * self.heads * self.seq_q * self.v, b.layout.cp as u64);
        let side_by_side = 4 * b.bytes;
        let (once, again) = (b.bytes + 4, 4 + b.bytes + 4);
        let (name, each) = if backward {
            // Cleared tensors; gradients of the first step; sums of later steps with a copy of half of the gradients; concatenation and sums of queries in
            // every step; conversion back to 16 bit.
            let later = side_by_side + 2 * (again / 2 + 8);
            ("ring-gradients", 3 * 4 + 2 * again + (steps - 1) * later + steps * (2 * 8 + again) + 3 * once)
        } else {
            // Conversion to FP32 in every step; difference, product and difference in every later step; conversion back to 16 bit.
            ("ring-merge", (steps + 1) * once + (steps - 1) * (12 + 8 + 12 + side_by_side))
        };
        b.memory(Site::Core, role, name, elements * each);
    }

    /// Adds the memory traffic of Transformer Engine's ring besides its attention kernels, on the rank that ends last: the one with the latest tokens
    /// (`AttnFuncWithCPAndKVP2P`, context_parallel.py at v2.5, causal).
    ///
    /// - Forward, keys and values are joined, and the earlier half of those from each other rank is copied. The first step's result is weighted, and those of later steps are weighted and added, in 16 bit.
    /// - Backward, keys and values are copied, and so are those halves. The first step's gradient of queries is copied, later ones are added. Gradients of keys and values are joined and added in every step, halves of them in all but one.
    fn engine_ring(&self, b: &mut Builder, role: KernelRole, backward: bool) {
        if b.layout.cp <= 1 || pytorch_ring(b) || !b.model.causal {
            return;
        }
        let (tokens, steps) = (self.batch * self.seq_q, b.layout.cp as u64);
        let results = tokens * self.heads * self.v * b.bytes * (2 + 3 * (steps - 1));
        let kv = tokens * self.kv_heads * (self.qk + self.v) * b.bytes;
        if backward {
            b.memory(Site::Core, role, "ring-gradients", results + kv * 7 * (steps + 1) / 2);
        } else {
            b.memory(Site::Core, role, "ring-merge", results + kv * (steps + 1));
        }
    }

    /// Adds the conversion of inputs of FP8 attention: read in 16 bit, written in 8.
    fn to_fp8(&self, b: &mut Builder, role: KernelRole, elements: u64) {
        if b.layout.fp8_attention {
            b.memory(Site::Core, role, "cast", elements * (b.bytes + 1));
        }
    }

    /// Adds the removal of padding from queries, keys and values: rows of tokens are read and written by index (flash_attn/bert_padding.py at v2.4.2,
    /// `index_first_axis`). The gradient is a cleared tensor into which rows are written.
    fn unpad(&self, b: &mut Builder, role: KernelRole, backward: bool) {
        if !b.layout.unpad_attention {
            return;
        }
        let tokens = self.batch * self.seq_q;
        for elements in [self.heads * self.qk, self.kv_heads * self.qk, self.kv_heads * self.v] {
            let bytes = tokens * elements * b.bytes;
            if backward {
                b.memory(Site::Core, role, "unpad-backward", bytes + indexed(2 * bytes));
            } else {
                b.memory(Site::Core, role, UNPAD, indexed(2 * bytes));
            }
        }
    }

    /// Adds the return of padding to the results (`pad_input`): a cleared tensor into which rows are written. The gradient reads rows and writes them.
    fn pad(&self, b: &mut Builder, role: KernelRole, backward: bool) {
        if !b.layout.unpad_attention {
            return;
        }
        let bytes = self.batch * self.seq_q * self.heads * self.v * b.bytes;
        let cleared = if backward { 0 } else { bytes };
        b.memory(Site::Core, role, if backward { "pad-backward" } else { "pad" }, cleared + indexed(2 * bytes));
    }

    fn fused(&self, b: &Builder, backward: bool) -> Kernel {
        // With a causal mask, half of the whole square is less work than a wide window.
        let square = if b.model.causal { self.seq_kv / 2 } else { self.seq_kv };
        let (seq_kv, causal) = match self.window {
            Some(window) if window < square => (window, false),
            _ => (self.seq_kv, b.model.causal),
        };
        Kernel::Attention {
            batch: self.batch,
            heads: self.heads,
            kv_heads: self.kv_heads,
            seq_q: self.seq_q,
            seq_kv,
            head_dim: (self.qk + self.v) / 2,
            causal,
            backward,
            dtype: b.dtype,
        }
    }
}

/// Bytes that a copy moves in the time in which an indexed operation of PyTorch moves these.
pub(super) fn indexed(bytes: u64) -> u64 {
    let (times, over) = INDEXED_OVER_COPY;
    bytes * times / over
}

/// Whether context-parallel ranks run PyTorch's ring rather than Transformer Engine's.
fn pytorch_ring(b: &Builder) -> bool {
    b.layout.cp > 1 && b.layout.flash_attention && b.layout.framework != Framework::Megatron
}

/// Matrices that make queries, keys and values: (outputs, inputs, whether tensor-parallel ranks split it), as sizes on this rank. Latent attention has narrow
/// ones that every tensor-parallel rank holds in full.
fn projections(b: &Builder, h: &Heads) -> Vec<(u64, u64, bool)> {
    match b.model.mla {
        None => vec![((h.heads + 2 * h.kv_heads) * h.qk, b.hidden, true)],
        Some(mla) => {
            let (q, kv, rope) = (mla.q_rank as u64, mla.kv_rank as u64, mla.rope_dim as u64);
            let queries = if q == 0 {
                vec![(h.heads * h.qk, b.hidden, true)]
            } else {
                vec![(q, b.hidden, false), (h.heads * h.qk, q, true)]
            };
            queries
                .into_iter()
                .chain([(kv + rope, b.hidden, false), (h.heads * (mla.nope_dim as u64 + h.v), kv, true)])
                .collect()
        }
    }
}

/// Adds the forward computation of the attention core, for the forward pass or for recomputation.
pub(super) fn core_forward(b: &mut Builder) {
    let (h, role) = (heads(b), b.forward);
    // With context parallelism, every rank needs the keys and values of the whole sequence.
    if b.layout.cp > 1 {
        b.exchange(Among::Cp, CollectiveOp::AllGather, h.exchanged(b), Some(LayerPart { site: Site::Core, role }));
    }
    if b.layout.flash_attention {
        h.to_fp8(b, role, h.batch * h.seq_q * (h.heads * h.qk + h.kv_heads * (h.qk + h.v)));
        h.unpad(b, role, false);
        let kernel = h.fused(b, false);
        b.kernel(Site::Core, role, kernel);
        h.pad(b, role, false);
        h.ring(b, role, false);
        h.engine_ring(b, role, false);
        return;
    }
    let (groups, scores) = (h.batch * h.heads, h.scores());
    b.kernel(
        Site::Core,
        role,
        Kernel::Gemm { m: h.seq_q, n: h.seq_kv, k: h.qk, batch: groups, kept: 0, apart: false, dtype: b.dtype },
    );
    softmax_forward(b, scores);
    if b.model.dropout {
        b.memory(Site::Core, role, "dropout", scores * (2 * b.bytes + 1));
    }
    b.kernel(
        Site::Core,
        role,
        Kernel::Gemm { m: h.seq_q, n: h.v, k: h.seq_kv, batch: groups, kept: 0, apart: false, dtype: b.dtype },
    );
    // The heads are concatenated again for the projection.
    b.memory(Site::Core, role, "transpose", groups * h.seq_q * h.v * 2 * b.bytes);
}

/// Adds scale, mask and softmax as one kernel: scores are read, probabilities written. Megatron's kernel does not support a sink. With a sink, PyTorch's
/// operations run in FP32 (`forward_torch_softmax` and `SoftmaxOne`): conversion to FP32, mask, concatenation of the sink, softmax, and conversion back.
fn softmax_forward(b: &mut Builder, scores: u64) {
    let role = b.forward;
    if !b.model.attention_sink {
        return b.memory(Site::Core, role, "softmax", scores * 2 * b.bytes);
    }
    b.memory(Site::Core, role, "upcast", scores * (b.bytes + 4));
    for name in ["mask", "concatenate", "softmax"] {
        b.memory(Site::Core, role, name, scores * 8);
    }
    b.memory(Site::Core, role, "downcast", scores * (4 + b.bytes));
}

/// Adds the gradient of the softmax, by the same operations. The slice that removes the sink has a gradient of a cleared tensor and a copy.
fn softmax_backward(b: &mut Builder, scores: u64) {
    let role = KernelRole::InputGrad;
    if !b.model.attention_sink {
        return b.memory(Site::Core, role, "softmax-backward", scores * 3 * b.bytes);
    }
    b.memory(Site::Core, role, "upcast", scores * (b.bytes + 4));
    for (name, each) in [("clear", 4), ("copy", 8), ("softmax-backward", 12), ("mask", 8)] {
        b.memory(Site::Core, role, name, scores * each);
    }
    b.memory(Site::Core, role, "downcast", scores * (4 + b.bytes));
}

fn core_backward(b: &mut Builder) {
    let (h, role) = (heads(b), KernelRole::InputGrad);
    let kv = h.exchanged(b);
    if b.layout.cp > 1 {
        b.exchange(Among::Cp, CollectiveOp::AllGather, kv, Some(LayerPart { site: Site::Core, role }));
    }
    if b.layout.flash_attention {
        h.to_fp8(b, role, h.batch * h.seq_q * h.heads * h.v);
        h.pad(b, role, true);
        let kernel = h.fused(b, true);
        b.kernel(Site::Core, role, kernel);
        h.unpad(b, role, true);
        h.ring(b, role, true);
        h.engine_ring(b, role, true);
    } else {
        let (groups, scores, dtype) = (h.batch * h.heads, h.scores(), b.dtype);
        let gemm = |m, n, k| Kernel::Gemm { m, n, k, batch: groups, kept: 0, apart: false, dtype };
        b.memory(Site::Core, role, "transpose", groups * h.seq_q * h.v * 2 * b.bytes);
        b.kernel(Site::Core, role, gemm(h.seq_q, h.seq_kv, h.v));
        b.kernel(Site::Core, role, gemm(h.seq_kv, h.v, h.seq_q));
        if b.model.dropout {
            b.memory(Site::Core, role, "dropout-backward", scores * (2 * b.bytes + 1));
        }
        softmax_backward(b, scores);
        b.kernel(Site::Core, role, gemm(h.seq_q, h.qk, h.seq_kv));
        b.kernel(Site::Core, role, gemm(h.seq_kv, h.qk, h.seq_q));
    }
    if b.layout.cp > 1 {
        b.exchange(Among::Cp, CollectiveOp::ReduceScatter, kv, Some(LayerPart { site: Site::Qkv, role }));
    }
}

/// Bytes of the rotary embedding of queries and keys: read and written.
fn rope_bytes(b: &Builder, h: &Heads) -> u64 {
    let rotated = b.model.mla.map_or(h.qk, |m| m.rope_dim as u64);
    b.tokens * (h.heads + h.kv_heads) * rotated * 2 * b.bytes
}

/// Adds the rotary embedding of queries and keys. In eager mode it is a conversion to FP32, a complex product, and a conversion back; the backward pass does
/// the same.
fn rope(b: &mut Builder, h: &Heads, role: KernelRole, name: &'static str) {
    let bytes = rope_bytes(b, h);
    if !b.layout.fused_rope && b.layout.framework == Framework::Megatron {
        return rope_operations(b, h, role);
    }
    if b.layout.eager() {
        let elements = bytes / (2 * b.bytes);
        b.memory(Site::Rope, role, "upcast", elements * (b.bytes + 4));
        b.memory(Site::Rope, role, name, elements * 8);
        b.memory(Site::Rope, role, "downcast", elements * (4 + b.bytes));
    } else {
        b.memory(Site::Rope, role, name, bytes);
    }
}

/// Forward operations of Megatron's rotary embedding (`_apply_rotary_pos_emb_bshd` of Megatron-Core), with the number of elements that each reads and writes
/// per rotated element. They multiply by the cosines, negate half, swap the halves, multiply by the sines, add, and concatenate with the unrotated rest, which
/// is empty.
const ROPE_FORWARD: [(&str, u64); 6] =
    [("multiply", 2), ("negate", 1), ("concatenate", 2), ("multiply", 2), ("add", 3), ("concatenate", 2)];

/// Backward operations, as autograd derives them: both products; half negated; halves concatenated; both paths added; the gradient of the empty rest in a
/// cleared tensor, and its addition.
const ROPE_BACKWARD: [(&str, u64); 7] =
    [("multiply", 2), ("multiply", 2), ("negate", 1), ("concatenate", 2), ("add", 3), ("clear", 1), ("add", 3)];

/// Adds the rotary embedding as Megatron's single operations, for queries, then for keys. The tables of cosines and sines are computed for each of them
/// separately, in FP32.
fn rope_operations(b: &mut Builder, h: &Heads, role: KernelRole) {
    let table = h.seq_q * h.qk;
    let backward = role == KernelRole::InputGrad;
    for heads in [h.heads, h.kv_heads] {
        if !backward {
            for name in ["cosine", "sine"] {
                b.memory(Site::Rope, role, name, table * 8);
                b.memory(Site::Rope, role, "scale", table * 8);
                b.memory(Site::Rope, role, "downcast", table * (4 + b.bytes));
            }
        }
        let elements = b.tokens * heads * h.qk;
        let operations: &[(&'static str, u64)] = if backward { &ROPE_BACKWARD } else { &ROPE_FORWARD };
        for (name, each) in operations {
            b.memory(Site::Rope, role, name, elements * each * b.bytes);
        }
    }
}

/// Adds the rotary embedding of queries and keys, forward.
pub(super) fn rope_forward(b: &mut Builder) {
    let (h, role) = (heads(b), b.forward);
    rope(b, &h, role, "rope");
}

/// Adds latent attention's projections from the compressed vectors to each head's, with their rotary embedding.
pub(super) fn up_projections_forward(b: &mut Builder) {
    let (h, tokens) = (heads(b), b.tokens);
    for (n, k, _) in projections(b, &h).into_iter().filter(|p| p.2) {
        b.linear_forward(Site::Qkv, tokens, n, k, 1);
    }
    rope_forward(b);
}

/// Adds the forward pass from the norm to the residual.
pub(super) fn forward(b: &mut Builder) {
    let (h, role, tokens) = (heads(b), b.forward, b.tokens);
    norm_forward(b, Site::AttnNorm);
    if b.model.mla.is_none() {
        b.convert_norm(Site::AttnNorm);
    }
    b.enter_forward(Site::Qkv, tokens);
    for (n, k, _) in projections(b, &h) {
        if b.model.mla.is_some() && k == b.hidden && !b.layout.fused_activation_cast {
            // The norm before latent attention is a kernel of its own, and each of its two projections converts its input (`MLASelfAttention`).
            b.cast(Site::Qkv, role, tokens * k);
        }
        b.linear_forward(Site::Qkv, tokens, n, k, 1);
    }
    if !b.model.learned_positions {
        rope_forward(b);
    }
    core_forward(b);
    b.cast_row_input(Site::Proj, tokens * h.heads * h.v);
    b.linear_forward(Site::Proj, tokens, b.hidden, h.heads * h.v, 1);
    b.leave_forward(tokens, Some(LayerPart { site: Site::AttnResidual, role }));
    bias_forward(b);
    residual_forward(b, Site::AttnResidual);
}

/// Adds the backward pass from the residual to the norm.
pub(super) fn backward(b: &mut Builder) {
    let (h, tokens) = (heads(b), b.tokens);
    residual_backward(b, Site::AttnResidual);
    bias_backward(b);
    b.row_backward(Site::Proj, tokens, h.heads * h.v);
    core_backward(b);
    if !b.model.learned_positions {
        rope(b, &h, KernelRole::InputGrad, "rope-backward");
    }
    if b.layout.eager() && b.model.mla.is_none() {
        // Queries, keys and values are views of the projection's output, and PyTorch puts their gradients together with a copy (`SplitWithSizesBackward`).
        let outputs = h.heads * h.qk + h.kv_heads * (h.qk + h.v);
        b.memory(Site::Rope, KernelRole::InputGrad, "concatenate", tokens * outputs * 2 * b.bytes);
    }
    let mut projections = projections(b, &h);
    let outputs = projections.iter().map(|p| p.0).sum::<u64>();
    b.cast(Site::Qkv, KernelRole::InputGrad, tokens * outputs);
    projections.reverse();
    let last = projections.pop().expect("attention has a projection");
    for (n, k, _) in projections {
        b.linear_backward(Site::Qkv, tokens, n, k, 1);
    }
    b.column_backward(Site::Qkv, tokens, last.0, last.1, Site::AttnNorm);
    norm_backward(b, Site::AttnNorm);
}

/// Adds the bias of the projection. Megatron does it by a separate operation if experts have biases, because it rejects `bias_dropout_fusion` then
/// (`TEGroupedMLP`).
fn bias_forward(b: &mut Builder) {
    if b.expert_biases() {
        b.memory(Site::AttnResidual, b.forward, "bias-add", b.local_tokens * b.hidden * 2 * b.bytes);
    }
}

/// Adds the gradient of that bias, a sum over tokens. In 16 bit it is counted with the weights' gradient.
fn bias_backward(b: &mut Builder) {
    if b.expert_biases() && b.layout.quantised() {
        b.memory(Site::AttnResidual, KernelRole::WeightGrad, "bias-grad", b.local_tokens * b.hidden * b.bytes);
    }
}

/// Adds a norm: activations are read and written. In FP8 training it writes two bytes of FP8 instead of one activation, which is the same number of bytes.
pub(super) fn norm_forward(b: &mut Builder, site: Site) {
    if b.layout.eager() && b.model.rms_norm {
        let role = b.forward;
        return single_operations(b, site, role, &RMSNORM_FORWARD);
    }
    let (name, bytes) =
        (if b.model.rms_norm { "rmsnorm" } else { "layernorm" }, b.local_tokens * b.hidden * 2 * b.bytes);
    b.memory(site, b.forward, name, bytes);
}

/// An operation of PyTorch's eager mode: its name, and the activations and the FP32 elements that it reads and writes per element.
type SingleOperation = (&'static str, u64, u64);

/// Forward operations of PyTorch's RMSNorm before 2.8 (ATen's composite `rms_norm`): conversion to FP32, square, mean, scale, product with the weights,
/// conversion back. LayerNorm is one kernel in PyTorch too.
const RMSNORM_FORWARD: [SingleOperation; 6] =
    [("upcast", 1, 1), ("square", 0, 2), ("mean", 0, 1), ("scale", 0, 2), ("multiply", 0, 2), ("downcast", 1, 1)];

/// Operations of its gradient by the input, as autograd derives it from each operation in turn. The square's gradient takes three operations, and two paths are
/// added.
const RMSNORM_INPUT_GRAD: [SingleOperation; 11] = [
    ("upcast", 1, 1),
    ("multiply", 0, 2),
    ("scale", 0, 2),
    ("multiply", 0, 3),
    ("sum", 0, 1),
    ("mean-backward", 0, 1),
    ("power", 0, 2),
    ("scale", 0, 2),
    ("multiply", 0, 3),
    ("add", 0, 3),
    ("downcast", 1, 1),
];

/// Operations of its gradient by the weights: a product, and its sum over tokens.
const RMSNORM_WEIGHT_GRAD: [SingleOperation; 2] = [("multiply", 0, 3), ("sum", 0, 1)];

/// Adds single operations on hidden states, one after another.
fn single_operations(b: &mut Builder, site: Site, role: KernelRole, operations: &[SingleOperation]) {
    let elements = b.local_tokens * b.hidden;
    for (name, activations, fp32) in operations {
        b.memory(site, role, name, elements * (activations * b.bytes + fp32 * 4));
    }
}

/// Adds the gradient of a norm as two kernels: the input's gradient reads the input and the output's gradient and writes one; the parameters' gradient reads
/// both again.
pub(super) fn norm_backward(b: &mut Builder, site: Site) {
    let elements = b.local_tokens * b.hidden;
    if b.layout.eager() && b.model.rms_norm {
        single_operations(b, site, KernelRole::InputGrad, &RMSNORM_INPUT_GRAD);
        single_operations(b, site, KernelRole::WeightGrad, &RMSNORM_WEIGHT_GRAD);
        b.memory(site, KernelRole::InputGrad, "add", elements * 3 * b.bytes);
        return;
    }
    let (input, weight) = if b.model.rms_norm {
        ("rmsnorm-backward", "rmsnorm-weight-grad")
    } else {
        ("layernorm-backward", "layernorm-weight-grad")
    };
    b.memory(site, KernelRole::InputGrad, input, elements * 3 * b.bytes);
    b.memory(site, KernelRole::WeightGrad, weight, elements * 2 * b.bytes);
    // The gradient of the residual path is added here.
    b.memory(site, KernelRole::InputGrad, "add", elements * 3 * b.bytes);
}

/// Adds bias, dropout and residual as one kernel: two reads, one write, and a byte of mask.
pub(super) fn residual_forward(b: &mut Builder, site: Site) {
    let mask = if b.model.dropout { 1 } else { 0 };
    let name = if b.model.dropout { "dropout-add" } else { "add" };
    b.memory(site, b.forward, name, b.local_tokens * b.hidden * (3 * b.bytes + mask));
}

/// Adds the gradient of the residual. Without dropout the gradient passes through unchanged.
pub(super) fn residual_backward(b: &mut Builder, site: Site) {
    if b.model.dropout {
        b.memory(site, KernelRole::InputGrad, "dropout-backward", b.local_tokens * b.hidden * (2 * b.bytes + 1));
    }
}
