//! Which of its paths a packet takes (twin: `shaders/spraying.wgsl`).

use crate::cpu::math::hash32;
use hyperfold_columns::{Exp, FlowTx, mode};

/// The path, of `n_paths`, that packet number `number` of flow `flow_id` takes. `direction`: 0 for data, 1 for answers.
#[inline]
pub fn path_of(e: &Exp, flow_id: u32, number: u32, direction: u32, n_paths: u32) -> u32 {
    if e.modes & mode::IN_TURN == 0 {
        return hash32(flow_id, number, direction, e.routing_seed) % n_paths;
    }
    let first = hash32(flow_id, number / n_paths, direction, e.routing_seed) % n_paths;
    (first + number % n_paths) % n_paths
}

/// Number of paths that a sender keeps to choose them again.
const KEPT_PATHS: u32 = 8;
/// Bits of each of these in [`FlowTx::alpha`].
const PATH_BITS: u32 = 8;

/// The path that the next packet of a queue pair takes: the oldest that is kept, else a random one.
pub fn next_entropy(e: &Exp, tx: &mut FlowTx) -> u32 {
    if tx.stage == 0 {
        return hash32(tx.flow_id, tx.n_sent, 0, e.routing_seed) % tx.n_paths;
    }
    let oldest = (tx.alpha & ((1 << PATH_BITS) - 1)) as u32;
    tx.alpha >>= PATH_BITS;
    tx.stage -= 1;
    // The queue pair may have fewer paths than it had.
    oldest % tx.n_paths
}

/// Keeps `path`, on which a packet arrived without a mark, to choose it again.
pub fn keep_entropy(tx: &mut FlowTx, path: u32) {
    if tx.stage == KEPT_PATHS {
        tx.alpha >>= PATH_BITS;
        tx.stage -= 1;
    }
    tx.alpha |= u64::from(path) << (tx.stage * PATH_BITS);
    tx.stage += 1;
}
