//! What NCCL would choose: the pair of algorithm and protocol that its model says is fastest, then channels and chunks for the size.
//!
//! Layer: collective.

use super::model::{Context, predict_us};
use super::tuning::tuning;
use super::{Env, Protocol};
use crate::collective::system::{Placement, System};
use crate::collective::{Algorithm, Op};

/// How an operation is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    pub channels: u32,
    /// Payload bytes of one message of a channel: a pipeline stage of the schedule.
    pub chunk_bytes: u64,
    /// What NCCL's model says it takes, ps (a selector's figure; `cost_ps` is the estimate).
    pub predicted_ps: u64,
}

/// Candidates in NCCL's order: of equals the first wins.
const CANDIDATES: [Algorithm; 5] = [Algorithm::Tree, Algorithm::Ring, Algorithm::InNetwork, Algorithm::Nvls, Algorithm::HalvingDoubling];

/// NCCL's choice for an operation. All-to-all is direct sends (over PXN where servers have rails), a barrier a one-byte all-reduce. Where the environment leaves nothing, the ring remains, as in NCCL.
pub fn choose(op: Op, bytes: u64, at: &Placement, system: &System, env: &Env) -> Choice {
    let context = Context::new(system, at, env);
    let (op, bytes) = if op == Op::Barrier { (Op::AllReduce, 1) } else { (op, bytes) };
    if op == Op::AllToAll {
        return all_to_all(bytes, at, system, env);
    }
    let mut best: Option<(f64, Algorithm, Protocol)> = None;
    for algorithm in CANDIDATES.into_iter().filter(|a| env.allows(op, *a)) {
        for protocol in Protocol::ALL.into_iter().filter(|p| env.allows_protocol(op, *p)) {
            if let Some(us) = predict_us(op, algorithm, protocol, bytes, &context)
                && best.is_none_or(|(least, ..)| us < least)
            {
                best = Some((us, algorithm, protocol));
            }
        }
    }
    let (us, algorithm, protocol) = best.unwrap_or_else(|| {
        let us = predict_us(op, Algorithm::Ring, Protocol::Simple, bytes, &context).expect("a ring with Simple is always possible");
        (us, Algorithm::Ring, Protocol::Simple)
    });
    let channels = channels_for(algorithm, protocol, bytes, &context, env);
    Choice { algorithm, protocol, channels, chunk_bytes: chunk_bytes(op, algorithm, protocol, &context, env), predicted_ps: (us * 1e6) as u64 }
}

/// Channels are dropped while each would have less than its threads are worth.
fn channels_for(algorithm: Algorithm, protocol: Protocol, bytes: u64, c: &Context, env: &Env) -> u32 {
    let t = &tuning().threads;
    let (threads, threshold) = match protocol {
        Protocol::Ll => (t.ll_max, t.threshold_ll * if algorithm == Algorithm::Ring { c.ranks as u64 } else { 1 }),
        Protocol::Ll128 => (t.ll128_max, t.threshold_ll128),
        Protocol::Simple => (t.simple_max, t.threshold_simple),
    };
    let most = if algorithm == Algorithm::Nvls { c.nvls_channels } else { c.channels };
    if algorithm == Algorithm::Nvls {
        return most;
    }
    let worth = bytes / (threads * threshold).max(1);
    env.bound_channels(most.min(worth.max(1) as u32))
}

/// Payload of one pipeline stage: a slice of two buffer steps for rings with Simple, a buffer step else.
fn chunk_bytes(op: Op, algorithm: Algorithm, protocol: Protocol, c: &Context, env: &Env) -> u64 {
    let b = &tuning().buffers;
    let step = match protocol {
        Protocol::Ll => b.buffsize_ll / b.nccl_steps / 2,
        Protocol::Ll128 => b.buffsize_ll128 / b.nccl_steps * 15 / 16,
        Protocol::Simple => env.buffsize.unwrap_or(b.buffsize_simple) / b.nccl_steps,
    };
    match (algorithm, op) {
        (Algorithm::Nvls, _) if c.nodes >= 4.0 => b.nvls_tree_max_chunk_4nodes,
        (Algorithm::Nvls, _) => b.nvls_chunk,
        (Algorithm::Ring, Op::Broadcast | Op::Reduce) => step * b.broadcast_reduce_chunk_steps,
        (Algorithm::Ring, _) if protocol == Protocol::Simple => step * b.ring_simple_slice_steps,
        _ => step,
    }
    .max(1)
}

fn all_to_all(bytes: u64, at: &Placement, system: &System, env: &Env) -> Choice {
    let rails = at.nodes() > 1 && at.ranks_per_node > 1 && system.nics_per_server > 1;
    let pxn = rails && !env.pxn_disable && env.pxn_level != Some(0) && !env.no_p2p();
    let b = &tuning().buffers;
    let chunk_bytes = if at.nodes() > 1 { env.p2p_net_chunk.unwrap_or(b.p2p_chunk_net) } else { b.p2p_chunk_nvlink };
    Choice {
        algorithm: if pxn { Algorithm::Hierarchical } else { Algorithm::Direct },
        protocol: Protocol::Simple,
        channels: env.bound_channels(1),
        chunk_bytes,
        predicted_ps: crate::collective::cost::direct_ps(bytes, at, system, env),
    }
}
