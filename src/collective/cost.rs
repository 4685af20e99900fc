//! What a collective takes on an idle cluster of equal servers, without simulating it.
//!
//! Layer: collective. Whole ps; each call takes well under a microsecond.

use super::Op;
use super::nccl::{Env, choose};
use super::system::{Placement, System};

/// Time from the last member's arrival to the end on all members, ps, with what NCCL would choose. Bytes as nccl-tests counts them (`workload::program::OpKind::Collective`).
/// One member, or no bytes in anything but a barrier, takes no time.
pub fn cost_ps(op: Op, bytes: u64, at: &Placement, system: &System, env: &Env) -> u64 {
    if at.ranks <= 1 || (bytes == 0 && op != Op::Barrier) {
        return 0;
    }
    choose(op, bytes, at, system, env).predicted_ps
}

/// Time of a direct all-to-all, ps: the slower of what stays in the server and what leaves it.
pub(super) fn direct_ps(bytes: u64, at: &Placement, system: &System, env: &Env) -> u64 {
    let (n, inside) = (at.ranks.max(1) as f64, at.ranks_per_node.min(at.ranks).max(1) as f64);
    let nics = System { nics_per_server: env.nics(system.nics_per_server), ..*system };
    let within = bytes as f64 * (inside - 1.0) / n / (system.inside_bps as f64 / 8.0);
    let out = bytes as f64 * inside * (n - inside) / n / nics.net_share_bytes_per_s(at);
    (within.max(out) * 1e12) as u64 + if at.nodes() > 1 { 30_000_000 + system.net_extra_ps } else { 10_000_000 }
}

/// Time of one message from a GPU to another, ps.
pub fn send_ps(bytes: u64, same_server: bool, sharing: u32, system: &System, env: &Env) -> u64 {
    let at = Placement { ranks: 2, ranks_per_node: if same_server { 2 } else { 1 }, sharing };
    // An all-to-all of two members sends half its bytes.
    direct_ps(bytes * 2, &at, system, env)
}
