//! Memory for weights and for keys and values, and the transfer of keys and values from one pool to another.

use super::setup::{Pool, ServingSetup};
use crate::model::{ModelFamily, Transformer};

/// Keys and values of one token and layer: (heads, bytes per head). Latent attention keeps one vector for all heads.
fn kv_heads(t: &Transformer, kv_bytes: u64) -> (u32, u64) {
    match t.mla {
        Some(m) => (1, u64::from(m.kv_rank + m.rope_dim) * kv_bytes),
        None => (t.kv_heads, 2 * u64::from(t.head_dim) * kv_bytes),
    }
}

/// Bytes of keys and values of one token and layer on one rank.
pub(super) fn kv_layer_bytes(t: &Transformer, tp: u32, kv_bytes: u64) -> u64 {
    let (heads, head_bytes) = kv_heads(t, kv_bytes);
    u64::from(heads.div_ceil(tp)) * head_bytes
}

/// Bytes of keys and values of one token on the rank that has the most of them.
pub fn kv_token_bytes(setup: &ServingSetup, pool: &Pool) -> u64 {
    let t = setup.transformer();
    let stages = (0..).zip(pool.stages(t.layers));
    let layers = stages.map(|(stage, (first, end))| end - first + setup.draft_layers(pool, stage)).max().unwrap_or(0);
    u64::from(layers) * kv_layer_bytes(t, pool.tp, setup.kv_bytes)
}

/// Bytes of so many weights of 4 bits that kernels widen: with a 16-bit factor and a 4-bit zero point for each 128, as AWQ and GPTQ keep them, rounded up.
pub(super) fn narrow_bytes(weights: u64) -> u64 {
    (weights * 67).div_ceil(128)
}

/// Bytes of weights on a rank of a stage: those of layers in their precision, the others in 16 bit. The first stage has the embedding, the last the output matrix.
pub fn weight_bytes(setup: &ServingSetup, pool: &Pool, stage: u32) -> u64 {
    let t = setup.transformer();
    let (first, end) = pool.stages(t.layers)[stage as usize];
    let stored = |n: u64| match setup.narrow_weights {
        true => narrow_bytes(n),
        false => (n * setup.precision.bytes_of_32()).div_ceil(32),
    };
    let (tp, ep) = (u64::from(pool.tp), u64::from(pool.ep));
    let layer = |l: u32| {
        let p = t.layer_params(l);
        let dense = stored((p.attention + p.mlp).div_ceil(tp)) + 2 * (p.norms + p.router);
        dense + stored(p.experts.div_ceil(tp * ep))
    };
    // Layers that draft are like the last one.
    let drafting = u64::from(setup.draft_layers(pool, stage)) * layer(t.layers - 1);
    let layers: u64 = (first..end).map(layer).sum::<u64>() + drafting;
    let params = t.params();
    let ends = [
        (stage == 0, params.embedding),
        (stage + 1 == pool.pp, params.output.max(u64::from(t.tied && pool.pp > 1) * params.embedding)),
    ];
    layers + ends.into_iter().filter(|(here, _)| *here).map(|(_, n)| n.div_ceil(tp) * 2).sum::<u64>()
}

/// Bytes of activations of the largest step on a rank: its input, residual and widest products, and the logits of every sequence in 32 bit.
fn working_bytes(setup: &ServingSetup, pool: &Pool) -> u64 {
    let t = setup.transformer();
    let tp = u64::from(pool.tp);
    let inner = t.moe.map_or(u64::from(t.ffn), |m| u64::from(m.expert_ffn) * u64::from(m.top_k + m.shared_experts));
    let widest = 3 * inner.div_ceil(tp) + 3 * (u64::from(t.heads) * u64::from(t.head_dim)).div_ceil(tp);
    u64::from(setup.max_batch_tokens) * (4 * u64::from(t.hidden) + widest) * 2
        + u64::from(setup.max_sequences) * u64::from(t.vocab) * 4
}

/// Tokens whose keys and values fit into an instance's memory, in whole blocks, and the other bytes that its fullest rank holds. `bytes` is the usable memory
/// of a GPU.
pub fn kv_capacity_tokens(setup: &ServingSetup, pool: &Pool, bytes: u64) -> (u64, u64) {
    let t = setup.transformer();
    let per_layer = kv_layer_bytes(t, pool.tp, setup.kv_bytes);
    let of_stage = |(stage, (first, end)): (u32, (u32, u32))| {
        let other_bytes = weight_bytes(setup, pool, stage) + working_bytes(setup, pool);
        let layers = end - first + setup.draft_layers(pool, stage);
        (bytes.saturating_sub(other_bytes) / (u64::from(layers) * per_layer).max(1), other_bytes)
    };
    let stages: Vec<(u64, u64)> = (0..).zip(pool.stages(t.layers)).map(of_stage).collect();
    let tokens = stages.iter().map(|s| s.0).min().unwrap_or(0);
    let block = u64::from(setup.kv_block_tokens);
    (tokens / block * block, stages.iter().map(|s| s.1).max().unwrap_or(0))
}

/// Keys and values of one token that go from a rank of a prefilling instance to a rank of a decoding instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvTransfer {
    /// Sender: (stage, tensor-parallel rank in it).
    pub from: (u32, u32),
    /// Receiver: (stage, tensor-parallel rank in it).
    pub to: (u32, u32),
    /// Bytes of a token.
    pub bytes_a_token: u64,
}

/// The transfers between two instances, in the order of receivers. Every receiver gets each of its layers and heads once, from the rank with its own place if
/// that rank has them.
pub fn kv_transfers(t: &Transformer, kv_bytes: u64, sender: &Pool, receiver: &Pool) -> Vec<KvTransfer> {
    let (heads, head_bytes) = kv_heads(t, kv_bytes);
    let mut transfers = Vec::new();
    for (to_stage, (first, end)) in (0..).zip(receiver.stages(t.layers)) {
        for to_tp in 0..receiver.tp {
            for (from_stage, (from_first, from_end)) in (0..).zip(sender.stages(t.layers)) {
                let layers = u64::from(end.min(from_end).saturating_sub(first.max(from_first)));
                if layers == 0 {
                    continue;
                }
                for from_tp in 0..sender.tp {
                    let sends = |h: &u32| holder(*h, heads, sender.tp, to_tp) == from_tp;
                    let n = heads_of(to_tp, heads, receiver.tp).filter(sends).count() as u64;
                    if n > 0 {
                        transfers.push(KvTransfer {
                            from: (from_stage, from_tp),
                            to: (to_stage, to_tp),
                            bytes_a_token: layers * n * head_bytes,
                        });
                    }
                }
            }
        }
    }
    transfers
}

/// Heads that a tensor-parallel rank holds. If there are more ranks than heads, several ranks hold the same head.
fn heads_of(rank: u32, heads: u32, tp: u32) -> std::ops::Range<u32> {
    if tp <= heads { rank * heads / tp..(rank + 1) * heads / tp } else { rank * heads / tp..rank * heads / tp + 1 }
}

/// The rank that sends a head to the receiver: the ranks that hold the head take turns.
fn holder(head: u32, heads: u32, tp: u32, receiver: u32) -> u32 {
    let holders: Vec<u32> = (0..tp).filter(|r| heads_of(*r, heads, tp).contains(&head)).collect();
    holders[receiver as usize % holders.len()]
}

/// Why a model cannot be served; `None` if it can.
pub fn wrong_model(body: &ModelFamily) -> Option<&'static str> {
    match body {
        ModelFamily::Transformer(t) if t.causal => None,
        ModelFamily::Transformer(_) => Some("it sees later tokens too, so it cannot write an answer token by token"),
        _ => Some("it is no transformer; inference serves decoders such as \"llama3-70b\""),
    }
}
