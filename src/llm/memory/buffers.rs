//! Communication buffers.
//!
//! Layer: memory. NCCL's own buffers, buckets of gradients, gathered parameters, and staging of tensor, expert and pipeline parallelism.

use super::activations::{Tokens, routed};
use super::options::MemoryOptions;
use super::shares::Share;
use crate::model::{Framework, Layout, Model, ModelFamily};

/// Number of communicators that a rank takes part in.
fn communicators(layout: &Layout) -> u64 {
    let copies = layout.dense_replicas() / layout.shards();
    let groups = [layout.tp, layout.cp, layout.pp, layout.ep, layout.shards(), copies];
    let experts_apart = layout.ep > 1 && layout.expert_replicas() > 1;
    groups.iter().filter(|&&n| n > 1).count() as u64 + experts_apart as u64
}

/// Bytes of buckets and gathered parameters of data parallelism.
fn data_parallel(layout: &Layout, share: &Share) -> u64 {
    let (dense, params, grads) = (share.dense + share.experts, layout.bytes.params as u64, layout.bytes.grads as u64);
    if layout.dense_replicas() == 1 {
        return 0;
    }
    let bucket = layout.bucket_bytes.min(dense * grads);
    // Two buckets in turn if reduction overlaps with the backward pass.
    let buckets = bucket * (1 + layout.overlap_grad as u64);
    let gathered = if layout.zero == 3 { params * gathered_by_deepspeed(layout, share) } else { 0 };
    match layout.framework {
        // Gradients and parameters are in one contiguous buffer each, which is communicated in place.
        Framework::Megatron => 0,
        // Buckets are copies of all gradients (`gradient_as_bucket_view` is off by default).
        Framework::Ddp => dense * grads,
        Framework::DeepSpeed if layout.zero == 0 => bucket,
        Framework::DeepSpeed => {
            buckets + if layout.zero < 3 { layout.bucket_bytes.min(dense * params) } else { gathered }
        }
        Framework::Fsdp | Framework::Fsdp2 => fsdp(layout, share),
    }
}

/// Parameters that DeepSpeed's ZeRO-3 has gathered at most: those that stay for their next use, the module in use, and what is prefetched.
fn gathered_by_deepspeed(layout: &Layout, share: &Share) -> u64 {
    let rules = &layout.gathering;
    let prefetched = if layout.overlap_param && rules.prefetch_params > 0 { share.unit } else { 0 };
    let live = rules.reuse_params + share.unit + prefetched;
    live.min(share.dense + share.experts)
}

/// Bytes that FSDP holds besides its shards.
///
/// On a pipeline these are the parameters of the whole stage, and the sums of its gradients in the type of their reduction. All parameters stay after a
/// backward pass, even if forward passes free them.
///
/// Otherwise FSDP's units are the layers, and one unit of everything outside the layers, which stays gathered and whose gradients are reduced at the end. A
/// layer's whole gradients exist in the type of their reduction until they are scattered.
fn fsdp(layout: &Layout, share: &Share) -> u64 {
    let (params, grads) = (layout.bytes.params as u64, layout.bytes.grads as u64);
    if layout.pp > 1 {
        return (params + grads) * (share.dense + share.experts);
    }
    let ahead = if layout.overlap_param { u64::from(layout.gathering.units_ahead) } else { 0 };
    let unit = (share.layer * u64::from(layout.gathering.unit_layers)).min(share.dense + share.experts);
    let gathered = share.outside_layers + unit * (1 + ahead);
    let gathered = gathered.min(share.dense + share.experts);
    let sharded = if layout.zero == 3 { params * gathered } else { 0 };
    sharded + params * share.outside_layers + grads * unit * (1 + layout.overlap_grad as u64)
}

/// Bytes of all buffers on a rank of the stage.
pub(super) fn buffers(model: &Model, layout: &Layout, options: &MemoryOptions, share: &Share) -> u64 {
    let nccl = communicators(layout) * options.nccl_channels as u64 * options.nccl_channel_bytes;
    let mut staging = 0;
    if let ModelFamily::Transformer(t) = &model.body {
        let tokens = Tokens::new(layout);
        let hidden = tokens.hidden(t);
        // The gathered sequence, kept as one buffer for the whole model.
        if layout.sequence_parallel && layout.tp > 1 {
            staging += hidden * layout.tp as u64;
        }
        // One activation and one gradient, each both arriving and leaving.
        if layout.pp > 1 {
            staging += 4 * hidden;
        }
        // Keys and values of the next rank while those of the last are in use.
        if layout.cp > 1 {
            staging += 2 * 2 * tokens.e * tokens.n * (t.kv_heads * t.head_dim) as u64 / tokens.tp;
        }
        if let (Some(m), true) = (t.moe, layout.ep > 1) {
            let split = if layout.folded_experts() { 1 } else { tokens.sp };
            staging += tokens.e * routed(&m, layout, &tokens) * t.hidden as u64 / split;
        }
    }
    nccl + staging + data_parallel(layout, share)
}
