//! NCCL's choice: the pair of algorithm and protocol that its model says is fastest, then channels and chunks for the size.
//!
//! Layer: collective.

use super::model::{Context, predict_us};
use super::tuning::tuning;
use super::{Env, Protocol};
use crate::collective::system::{CollectiveSystem, MemberPlacement};
use crate::collective::{Algorithm, CollectiveOp};

/// How an operation is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Algorithm that carries the operation out.
    pub algorithm: Algorithm,
    /// Protocol of its messages: Simple, LL or LL128.
    pub protocol: Protocol,
    /// Number of channels that share the data.
    pub channels: u32,
    /// Payload bytes of one message of a channel, which is one pipeline stage of the schedule.
    pub chunk_bytes: u64,
    /// Duration by NCCL's model in ps. It serves the choice; `cost_ps` is the estimate.
    pub predicted_ps: u64,
}

/// Candidates in NCCL's order. The first of equal ones wins.
const CANDIDATES: [Algorithm; 6] =
    [Algorithm::Tree, Algorithm::Ring, Algorithm::InNetwork, Algorithm::CollnetChain, Algorithm::Nvls, Algorithm::Pat];

/// NCCL's choice for the operations that its model knows. All-to-all is not among them, since NCCL does it by direct sends. If the environment leaves no
/// option, the ring remains, as in NCCL.
pub(crate) fn choose_collective(op: CollectiveOp, bytes: u64, context: &Context, env: &Env) -> Choice {
    let mut best: Option<(f64, Algorithm, Protocol)> = None;
    for (algorithm, protocol, us) in offered(op, bytes, context, env) {
        if best.is_none_or(|(best_us, ..)| us < best_us) {
            best = Some((us, algorithm, protocol));
        }
    }
    let (us, algorithm, protocol) = best.unwrap_or_else(|| {
        let us = predict_us(op, Algorithm::Ring, Protocol::Simple, bytes, context)
            .expect("a ring with Simple is always possible");
        (us, Algorithm::Ring, Protocol::Simple)
    });
    carried_out(op, algorithm, protocol, bytes, context, env, us)
}

/// The pairs of algorithm and protocol that NCCL's model offers for an operation in this environment, with their durations by the model in us.
pub(crate) fn offered(
    op: CollectiveOp,
    bytes: u64,
    context: &Context,
    env: &Env,
) -> impl Iterator<Item = (Algorithm, Protocol, f64)> {
    let algorithms = CANDIDATES.into_iter().filter(move |a| env.allows(op, *a));
    let pairs = algorithms.flat_map(move |a| Protocol::ALL.into_iter().map(move |p| (a, p)));
    pairs.filter(move |(_, p)| env.allows_protocol(op, *p)).filter_map(move |(a, p)| {
        let us = predict_us(op, a, p, bytes, context)?;
        Some((a, p, us))
    })
}

/// The choice of a given pair of algorithm and protocol, with its channels and chunks.
pub(crate) fn carried_out(
    op: CollectiveOp,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    context: &Context,
    env: &Env,
    predicted_us: f64,
) -> Choice {
    let channels = channels_for(algorithm, protocol, bytes, context, env);
    let max_chunk_bytes = chunk_bytes(op, algorithm, protocol, context, env);
    Choice {
        algorithm,
        protocol,
        channels,
        chunk_bytes: pipelined(algorithm, protocol, bytes, channels, max_chunk_bytes, context),
        predicted_ps: (predicted_us * 1e6) as u64,
    }
}

/// The number of channels. Channels are dropped while each would have fewer bytes than its threads are worth.
fn channels_for(algorithm: Algorithm, protocol: Protocol, bytes: u64, c: &Context, env: &Env) -> u32 {
    let t = &tuning().threads;
    let (threads, threshold) = match protocol {
        Protocol::Ll => (t.ll_max, t.threshold_ll * if algorithm == Algorithm::Ring { c.ranks as u64 } else { 1 }),
        Protocol::Ll128 => (t.ll128_max, t.threshold_ll128),
        Protocol::Simple if algorithm == Algorithm::CollnetChain => (t.simple_max, t.threshold_collnet_chain),
        Protocol::Simple => (t.simple_max, t.threshold_simple),
    };
    let max_channels = if algorithm == Algorithm::Nvls { c.nvls_channels } else { c.channels };
    if algorithm == Algorithm::Nvls {
        return max_channels;
    }
    let worth = bytes / (threads * threshold).max(1);
    env.bound_channels(max_channels.min(worth.max(1) as u32))
}

/// Payload bytes of one pipeline stage: a slice of two buffer steps for rings with Simple, else one buffer step.
fn chunk_bytes(op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, c: &Context, env: &Env) -> u64 {
    let b = &tuning().buffers;
    let step = match protocol {
        Protocol::Ll => b.buffsize_ll / b.nccl_steps / 2,
        Protocol::Ll128 => b.buffsize_ll128 / b.nccl_steps * 15 / 16,
        Protocol::Simple => env.buffsize.unwrap_or(b.buffsize_simple) / b.nccl_steps,
    };
    match (algorithm, op) {
        (Algorithm::Nvls, _) if c.nodes >= 4.0 => b.nvls_tree_max_chunk_4nodes,
        (Algorithm::Nvls, _) => b.nvls_chunk,
        (Algorithm::CollnetChain, _) => step.min(b.collnet_chain_chunk),
        (Algorithm::Ring, CollectiveOp::Broadcast | CollectiveOp::Reduce) => step * b.broadcast_reduce_chunk_steps,
        (Algorithm::Ring, _) if protocol == Protocol::Simple => step * b.ring_simple_slice_steps,
        _ => step,
    }
    .max(1)
}

/// The chunk size. It is halved while the data of a channel would be too few chunks to fill the pipeline, as in NCCL's `src/enqueue.cc` (v2.28).
fn pipelined(
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    channels: u32,
    max_chunk_bytes: u64,
    c: &Context,
) -> u64 {
    let n_channels = u64::from(channels.max(1));
    let mut chunk = max_chunk_bytes;
    match algorithm {
        Algorithm::Tree if protocol == Protocol::Ll128 => {
            let servers = u64::from((c.nodes as u32).max(1).ilog2());
            let steps = 1.0 + servers as f64 + 0.1 * c.ranks_per_node;
            for (factor, min_bytes) in [(64.0, 131_072), (16.0, 32_768)] {
                while ((bytes / (n_channels * chunk)) as f64) < steps * factor / c.ranks_per_node && chunk > min_bytes {
                    chunk /= 2;
                }
            }
        }
        Algorithm::CollnetChain => {
            let depth = c.ranks_per_node as u64;
            for (chunks, min_bytes) in [(64, 131_072), (8, 65_536), (1, 32_768)] {
                while bytes / (n_channels * chunk) < depth * chunks && chunk > min_bytes {
                    chunk /= 2;
                }
            }
        }
        Algorithm::Nvls => {
            let n_senders = n_channels * c.ranks_per_node as u64;
            let steps: &[(u64, u64)] = match c.nodes > 1.0 {
                true => &[(32, 262_144), (16, 131_072), (4, 65_536), (1, 32_768)],
                false => &[(64, 65_536), (8, 32_768), (2, 16_384)],
            };
            for &(rounds, size) in steps {
                if bytes < rounds * n_senders * chunk && chunk > size {
                    chunk = size;
                }
            }
        }
        _ => {}
    }
    chunk.max(1)
}

/// The algorithm of all-to-all: with PXN if servers have rails and the environment does not forbid it.
pub(crate) fn all_to_all_algorithm(placement: &MemberPlacement, system: &CollectiveSystem, env: &Env) -> Algorithm {
    let rails = placement.nodes() > 1 && placement.ranks_per_node > 1 && system.nics_per_server > 1;
    let pxn = rails && !env.pxn_disable && env.pxn_level != Some(0) && !env.no_p2p();
    if pxn { Algorithm::Hierarchical } else { Algorithm::Direct }
}

/// Payload bytes of a message of sends and receives.
pub(crate) fn point_chunk_bytes(placement: &MemberPlacement, env: &Env) -> u64 {
    let b = &tuning().buffers;
    if placement.nodes() > 1 { env.p2p_net_chunk_bytes() } else { b.p2p_chunk_nvlink }
}
