//! The feed-forward half of a layer with experts.
//!
//! Experts are spread over the `ep` ranks of a group. As in Megatron's default, each expert is also split over the tensor-parallel ranks; with
//! `Layout::folded_experts` it is whole. The experts of a rank are one grouped product. The rank described is the busiest one, since the others wait for it at
//! the all-to-all.

use crate::collective::{CollectiveOp, ExpertDirection, ExpertDispatcher, ExpertExchange};
use crate::model::{Layout, Moe};

use super::super::Kernel;
use super::attention::{indexed, norm_backward, norm_forward, residual_backward, residual_forward};
use super::mlp::{activation_backward, activation_forward, part_forward, up_columns};
use super::part::{Among, KernelRole, LayerPart, Site};
use super::shape::Builder;

/// Tokens of `total` routed tokens that each rank of an expert-parallel group gets; they sum to `total`. The first rank holds the busiest expert, whose load is
/// `expert_skew` times the mean (at most all tokens). The other experts share the rest evenly.
pub fn expert_loads(moe: &Moe, layout: &Layout, total: u64) -> Vec<u64> {
    let ranks = (layout.ep as u64).max(1);
    let experts = (moe.experts as u64).max(ranks);
    let experts_per_rank = experts as f64 / ranks as f64;
    let skew = layout.expert_skew.clamp(1.0, experts as f64);
    let others = if experts > 1 { (experts as f64 - skew) / (experts as f64 - 1.0) } else { 0.0 };
    let busiest = (total as f64 / experts as f64 * (skew + (experts_per_rank - 1.0) * others)).min(total as f64);
    let first = (busiest + 0.5) as u64;
    let rest = total - first.min(total);
    let mut loads = vec![first.min(total)];
    for i in 0..ranks - 1 {
        loads.push(rest * (i + 1) / (ranks - 1) - rest * i / (ranks - 1));
    }
    if ranks == 1 {
        loads[0] = total;
    }
    loads
}

/// The experts of one rank, and their tokens.
pub(super) struct Experts {
    /// Number of experts on this rank.
    pub n_experts: u64,
    /// Tokens of each expert: the tokens of the busiest rank, divided evenly.
    pub tokens_per_expert: u64,
    /// Tokens that this rank sends, counted once for each expert that they go to.
    sent: u64,
    /// Inner size of an expert on this rank.
    pub inner: u64,
    /// Inner size of the shared experts on this rank; 0 if there are none.
    shared: u64,
}

pub(super) fn experts(b: &Builder, moe: &Moe) -> Experts {
    let (ep, top_k) = (b.layout.ep.max(1) as u64, moe.top_k as u64);
    let n_experts = (moe.experts as u64).div_ceil(ep).max(1);
    // All ranks of the group send as many tokens as this one. If experts are split, the tensor-parallel ranks gather the tokens that each of them received.
    let folded = b.layout.folded_experts();
    let total = if folded { b.local_tokens } else { b.tokens } * top_k * ep;
    let mine = expert_loads(moe, b.layout, total)[0];
    Experts {
        n_experts,
        tokens_per_expert: mine.div_ceil(n_experts),
        sent: b.local_tokens * top_k,
        inner: (moe.expert_ffn as u64).div_ceil(u64::from(b.layout.expert_tp())),
        shared: (moe.expert_ffn as u64 * moe.shared_experts as u64).div_ceil(b.tp),
    }
}

/// The exchange of a layer's tokens by a dispatcher's own kernels.
fn own_exchange(moe: &Moe, dispatcher: ExpertDispatcher, direction: ExpertDirection) -> ExpertExchange {
    let Moe { experts, top_k, groups, top_groups, .. } = *moe;
    ExpertExchange { dispatcher, direction, experts, top_k, groups, top_groups }
}

/// Who puts tokens in the order of their experts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TokenOrder {
    /// The sender writes a copy for each expert, and the receiver sorts the copies of all senders. So it is with NCCL's all-to-all, and without any exchange.
    BothEnds,
    /// The receiver alone writes the copies. A token arrives there once; `arrived` is the share of the copies. The exchange sums results at the sender
    /// (Megatron-Core's `_DeepepManager`: `get_permuted_hidden_states_by_experts`, `get_restored_hidden_states_by_experts`).
    AtExperts { arrived: f64 },
    /// The exchange writes each expert's tokens together and sums results (DeepEP's low-latency kernels).
    InExchange,
}

fn token_order(b: &Builder, moe: &Moe, e: &Experts) -> TokenOrder {
    let dispatcher = b.layout.expert_dispatcher.filter(|_| b.layout.ep > 1);
    let Some(exchange) = dispatcher.map(|d| own_exchange(moe, d, ExpertDirection::Dispatch)) else {
        return TokenOrder::BothEnds;
    };
    if !exchange.is_once_a_server() {
        return TokenOrder::InExchange;
    }
    let (ranks, experts) = (f64::from(b.layout.ep), f64::from(moe.experts));
    let tokens = if b.layout.folded_experts() { b.local_tokens } else { b.tokens };
    let even = (tokens * u64::from(moe.top_k)).max(1) as f64;
    // A busier rank counts as one with more experts.
    let held = experts / ranks * ((e.n_experts * e.tokens_per_expert) as f64 / even);
    let copies_per_token = f64::from(moe.top_k) * held / experts;
    TokenOrder::AtExperts { arrived: (exchange.probability(held, 1.0 / ranks) / copies_per_token).min(1.0) }
}

/// Adds a dispatch or a combine: the expert-parallel all-to-all of the tokens that each rank begins with, or what the dispatcher's own kernels make of it.
fn all_to_all(b: &mut Builder, moe: &Moe, tokens: u64, direction: ExpertDirection, needed_by: LayerPart) {
    let own = |dispatcher| CollectiveOp::Experts(own_exchange(moe, dispatcher, direction));
    if b.layout.ep > 1 {
        let op = b.layout.expert_dispatcher.map_or(CollectiveOp::AllToAll, own);
        b.exchange(Among::Ep, op, tokens * b.hidden * b.bytes, Some(needed_by));
    }
}

/// Adds the exchange by which tensor-parallel ranks that share each expert gather the tokens that each of them received. The dispatcher does it, in 16 bit
/// (`token_permutation` of `MoEAlltoAllTokenDispatcher`, Megatron-Core 0.9).
fn gather_tokens(b: &mut Builder, tokens: u64, needed_by: LayerPart) {
    if b.sequence() && !b.layout.folded_experts() {
        b.exchange(Among::ExpertTp, CollectiveOp::AllGather, b.exchanged(tokens), Some(needed_by));
    }
}

/// Adds the exchange by which these ranks sum their parts of the experts' results, or of the gradients of their inputs.
fn sum_tokens(b: &mut Builder, tokens: u64, needed_by: LayerPart) {
    if b.tp > 1 && !b.layout.folded_experts() {
        let op = if b.sequence() { CollectiveOp::ReduceScatter } else { CollectiveOp::AllReduce };
        b.exchange(Among::ExpertTp, op, b.exchanged(tokens), Some(needed_by));
    }
}

/// The steps at which a sender writes or sums the copies of its tokens, in the order in which they run.
#[derive(Clone, Copy)]
enum AtSender {
    /// A copy of each token for each of its experts.
    Permute,
    /// The weighted sum of the experts' results of each token.
    Unpermute,
    /// The gradients of the experts' results, and of the weights.
    UnpermuteBackward,
    /// The sum of the gradients of a token's copies.
    PermuteBackward,
}

/// Adds the kernels of a step, if the sender writes or sums copies. Fused ones (Megatron's `moe_permute_fusion`) touch each copy and each token as often as they
/// must. Otherwise they are PyTorch's single operations: `permute` and `unpermute` of Megatron-Core 0.9 (moe_utils.py, with padding to capacity), and what
/// autograd derives from them. Rows are read or added by index, and weights multiply the results before the sum.
fn at_sender(b: &mut Builder, order: TokenOrder, step: AtSender, copies: u64) {
    if order != TokenOrder::BothEnds {
        return;
    }
    let (sent, local) = (copies * b.hidden * b.bytes, b.local_tokens * b.hidden * b.bytes);
    let (site, role, name) = match step {
        AtSender::Permute => (Site::Permute, b.forward, "permute"),
        AtSender::Unpermute => (Site::Unpermute, b.forward, "unpermute"),
        AtSender::UnpermuteBackward => (Site::Unpermute, KernelRole::InputGrad, "unpermute-backward"),
        AtSender::PermuteBackward => (Site::Permute, KernelRole::InputGrad, "permute-backward"),
    };
    let operations = match (step, b.layout.fused_permute) {
        (AtSender::Permute, true) => vec![(name, 2 * sent)],
        (AtSender::Unpermute | AtSender::PermuteBackward, true) => vec![(name, sent + local)],
        (AtSender::UnpermuteBackward, true) => vec![(name, 2 * sent + local)],
        (AtSender::Permute, false) => vec![(name, indexed(2 * sent))],
        (AtSender::Unpermute, false) => vec![("multiply", 2 * sent), ("clear", local), (name, indexed(3 * sent))],
        (AtSender::UnpermuteBackward, false) => {
            vec![(name, indexed(2 * sent)), ("multiply", 3 * sent), ("sum", sent), ("multiply", 2 * sent)]
        }
        (AtSender::PermuteBackward, false) => vec![("clear", local), (name, indexed(3 * sent))],
    };
    for (name, bytes) in operations {
        b.memory(site, role, name, bytes);
    }
}

/// Adds the sorting of tokens by expert. Tokens arrive from each rank sorted by expert. A rank with several experts sorts all of its tokens by expert, and
/// undoes that before results go back (Megatron-Core's `sort_chunks_by_idxs`): each token is read and written. If tokens arrive once, their copies are written or
/// summed here.
fn sort_by_expert(b: &mut Builder, e: &Experts, order: TokenOrder, site: Site, role: KernelRole) {
    let joined = matches!(order, TokenOrder::AtExperts { .. });
    if b.layout.ep > 1 && order != TokenOrder::InExchange && (e.n_experts > 1 || joined) {
        let split = b.layout.sequence_parallel && !b.layout.folded_experts();
        let routed =
            if split { (e.n_experts * e.tokens_per_expert).div_ceil(b.tp) } else { e.n_experts * e.tokens_per_expert };
        match order {
            TokenOrder::AtExperts { arrived } => {
                let tokens = routed + (routed as f64 * arrived) as u64;
                b.memory(site, role, "permute-arrived", tokens * b.hidden * b.bytes);
            }
            _ => b.memory(site, role, "sort-by-expert", routed * b.hidden * 2 * b.bytes),
        }
    }
}

/// Adds the forward pass from the norm to the residual.
pub(super) fn forward(b: &mut Builder, moe: &Moe) {
    norm_forward(b, Site::MlpNorm);
    experts_forward(b, moe);
    residual_forward(b, Site::MlpResidual);
}

/// Adds the forward pass from the router to the sum over a token's experts.
pub(super) fn experts_forward(b: &mut Builder, moe: &Moe) {
    let (e, role, hidden) = (experts(b, moe), b.forward, b.hidden);
    let part = |site| LayerPart { site, role };
    let order = token_order(b, moe, &e);
    router_forward(b, moe);
    at_sender(b, order, AtSender::Permute, e.sent);
    all_to_all(b, moe, e.sent, ExpertDirection::Dispatch, part(Site::Up));
    let routed = e.n_experts * e.tokens_per_expert;
    sort_by_expert(b, &e, order, Site::Permute, role);
    gather_tokens(b, routed, part(Site::Up));
    b.cast(Site::Up, role, routed * hidden);
    b.linear_forward(Site::Up, e.tokens_per_expert, up_columns(b, e.inner), hidden, e.n_experts);
    activated_forward(b, routed, e.inner);
    b.linear_forward(Site::Down, e.tokens_per_expert, hidden, e.inner, e.n_experts);
    biases_forward(b, &e);
    sum_tokens(b, routed, part(Site::Unpermute));
    sort_by_expert(b, &e, order, Site::Unpermute, role);
    all_to_all(b, moe, e.sent, ExpertDirection::Combine, part(Site::Unpermute));
    if b.layout.overlap_shared_experts {
        shared_forward(b, moe);
    }
    at_sender(b, order, AtSender::Unpermute, e.sent);
    if !b.layout.overlap_shared_experts {
        shared_forward(b, moe);
    }
}

/// Bytes of the router's weight of an expert, and so of a bias times this weight.
fn weight_bytes(b: &Builder) -> u64 {
    if b.layout.router_fp32 { b.bytes.max(4) } else { b.bytes }
}

/// Adds the biases of the experts' second products times the router's weights. Megatron has no kernel for that (`TEGroupedMLP._apply_bias` of Megatron-Core): a
/// product and a sum for each expert in turn, then a concatenation and a conversion to 16 bit. The fused grouped MLP does it inside its kernel. The first
/// product adds its biases itself in any case.
fn biases_forward(b: &mut Builder, e: &Experts) {
    if !b.expert_biases() || b.layout.fused_grouped_mlp {
        return;
    }
    let (role, elements, weighted) = (b.forward, e.tokens_per_expert * b.hidden, weight_bytes(b));
    for _ in 0..e.n_experts {
        b.memory(Site::Down, role, "multiply", elements * weighted);
        b.memory(Site::Down, role, "add", elements * (b.bytes + 2 * weighted));
    }
    b.memory(Site::Down, role, "concatenate", e.n_experts * elements * 2 * weighted);
    if weighted != b.bytes {
        b.memory(Site::Down, role, "downcast", e.n_experts * elements * (weighted + b.bytes));
    }
}

/// Adds the gradients of these biases, as autograd derives them, in the weights' type. For each expert in turn the gradient of the results is converted to 16
/// bit, that of the biases is a product summed over tokens, and that of the weights is a product summed over the hidden state. Then all are concatenated.
fn biases_backward(b: &mut Builder, e: &Experts) {
    if !b.expert_biases() || b.layout.fused_grouped_mlp {
        return;
    }
    let (role, elements, weighted) = (KernelRole::InputGrad, e.tokens_per_expert * b.hidden, weight_bytes(b));
    let wider = weighted != b.bytes;
    if wider {
        b.memory(Site::Down, role, "upcast", e.n_experts * elements * (b.bytes + weighted));
    }
    for _ in 0..e.n_experts {
        if wider {
            b.memory(Site::Down, role, "downcast", elements * (weighted + b.bytes));
        }
        for _ in 0..2 {
            b.memory(Site::Down, role, "multiply", elements * 2 * weighted);
            b.memory(Site::Down, role, "sum", elements * weighted);
        }
    }
    b.memory(Site::Down, role, "concatenate", e.n_experts * elements * 2 * b.bytes);
}

/// Adds the accumulation of bias gradients. No product does it, so Megatron's hook adds both gradients of each expert (`DistributedDataParallel`,
/// `_make_backward_post_hook`).
fn bias_sums(b: &mut Builder, e: &Experts) {
    if !b.expert_biases() {
        return;
    }
    let bytes_per_element = b.bytes + 2 * u64::from(b.layout.bytes.grads);
    for _ in 0..e.n_experts {
        for (site, width) in [(Site::Down, b.hidden), (Site::Up, up_columns(b, e.inner))] {
            b.memory(site, KernelRole::WeightGrad, "gradient-accumulate", width * bytes_per_element);
        }
    }
}

/// Adds the experts that every token visits, forward.
pub(super) fn shared_forward(b: &mut Builder, moe: &Moe) {
    let inner = experts(b, moe).shared;
    if inner > 0 {
        part_forward(b, [Site::SharedUp, Site::SharedActivation, Site::SharedDown], inner);
    }
}

/// Adds the activation function of a rank's experts, and the conversion of its result for the next product, whose operand was dropped too.
pub(super) fn activation_again(b: &mut Builder, moe: &Moe) {
    let e = experts(b, moe);
    activated_forward(b, e.n_experts * e.tokens_per_expert, e.inner);
}

/// Adds the activation function and the conversion of its results, unless the experts' products do both.
fn activated_forward(b: &mut Builder, routed: u64, inner: u64) {
    if !b.layout.fused_grouped_mlp {
        activation_forward(b, Site::Activation, routed, inner);
        b.cast_activation(Site::Down, b.forward, routed * inner);
    }
}

/// Adds the router: scores of all experts (in the activations' type, kept in FP32), softmax and choice.
fn router_forward(b: &mut Builder, moe: &Moe) {
    let (role, tokens, experts) = (b.forward, b.local_tokens, moe.experts as u64);
    b.kernel(Site::Router, role, Kernel::gemm(tokens, experts, b.hidden, b.dtype));
    b.memory(Site::Router, role, "top-k", tokens * experts * 4 * 4);
}

/// Adds the gradient of the weights of the experts' first product.
fn up_weight_grad(b: &mut Builder, e: &Experts) {
    b.weight_grad(Site::Up, e.tokens_per_expert, up_columns(b, e.inner), b.hidden, e.n_experts);
}

/// Adds the backward pass from the residual to the norm.
pub(super) fn backward(b: &mut Builder, moe: &Moe) {
    let (e, hidden, tokens) = (experts(b, moe), b.hidden, b.tokens);
    let part = |site| LayerPart { site, role: KernelRole::InputGrad };
    let routed = e.n_experts * e.tokens_per_expert;
    let order = token_order(b, moe, &e);
    residual_backward(b, Site::MlpResidual);
    at_sender(b, order, AtSender::UnpermuteBackward, e.sent);
    if e.shared > 0 {
        b.row_backward(Site::SharedDown, tokens, e.shared);
        activation_backward(b, Site::SharedActivation, tokens, e.shared);
        b.cast_activation(Site::SharedUp, KernelRole::InputGrad, tokens * up_columns(b, e.shared));
        b.column_backward(Site::SharedUp, tokens, up_columns(b, e.shared), hidden, Site::Permute);
    }
    all_to_all(b, moe, e.sent, ExpertDirection::Dispatch, part(Site::Down));
    sort_by_expert(b, &e, order, Site::Unpermute, KernelRole::InputGrad);
    gather_tokens(b, routed, part(Site::Down));
    biases_backward(b, &e);
    b.cast(Site::Down, KernelRole::InputGrad, routed * hidden);
    let bias_grads = b.bias_grads;
    b.bias_grads &= !b.expert_biases();
    b.linear_backward(Site::Down, e.tokens_per_expert, hidden, e.inner, e.n_experts);
    if !b.layout.fused_grouped_mlp {
        activation_backward(b, Site::Activation, routed, e.inner);
        b.cast_activation(Site::Up, KernelRole::InputGrad, routed * up_columns(b, e.inner));
    }
    b.input_grad(Site::Up, e.tokens_per_expert, up_columns(b, e.inner), hidden, e.n_experts);
    // A module computes both gradients before the exchange begins, unless another micro-batch is to compute meanwhile (`delay_wgrad_compute`).
    let later = b.layout.overlap_ep;
    if !later {
        up_weight_grad(b, &e);
    }
    sum_tokens(b, routed, part(Site::Permute));
    sort_by_expert(b, &e, order, Site::Permute, KernelRole::InputGrad);
    all_to_all(b, moe, e.sent, ExpertDirection::Combine, part(Site::Permute));
    if later {
        up_weight_grad(b, &e);
    }
    b.bias_grads = bias_grads;
    bias_sums(b, &e);
    at_sender(b, order, AtSender::PermuteBackward, e.sent);
    let (local, experts) = (b.local_tokens, moe.experts as u64);
    b.memory(Site::Router, KernelRole::InputGrad, "top-k-backward", local * experts * 4 * 3);
    b.kernel(Site::Router, KernelRole::InputGrad, Kernel::gemm(local, hidden, experts, b.dtype));
    b.kernel(Site::Router, KernelRole::WeightGrad, Kernel::gemm(experts, hidden, local, b.dtype));
    norm_backward(b, Site::MlpNorm);
}
