//! Which of its paths a packet takes (twin: `shaders/spraying.wgsl`).

use crate::cpu::math::hash32;
use hyperfold_columns::{Exp, mode};

/// The path, of `n_paths`, that packet number `number` of flow `flow_id` takes. `direction`: 0 for data, 1 for answers.
#[inline]
pub fn path_of(e: &Exp, flow_id: u32, number: u32, direction: u32, n_paths: u32) -> u32 {
    if e.modes & mode::IN_TURN == 0 {
        return hash32(flow_id, number, direction, e.routing_seed) % n_paths;
    }
    let first = hash32(flow_id, number / n_paths, direction, e.routing_seed) % n_paths;
    (first + number % n_paths) % n_paths
}
