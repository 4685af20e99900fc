//! What a collective takes on an idle cluster of equal servers, without simulating it.
//!
//! Layer: collective. Whole ps; a call takes about a microsecond. Physics by links and NCCL's latencies, times how far measured runs of the kind are from it.

use super::communicator::Communicator;
use super::curve_kind::CurveKind;
use super::curves::Curves;
use super::nccl::{Choice, Env, Protocol};
use super::system::{Placement, System};
use super::{Algorithm, Op};

impl Communicator<'_> {
    /// Time of an operation with what NCCL would choose, ps: see [`cost_ps`].
    pub fn cost_ps(&self, op: Op, bytes: u64) -> u64 {
        if self.at.ranks <= 1 || (bytes == 0 && op != Op::Barrier) {
            return 0;
        }
        let choice = self.choose(op, bytes);
        self.cost_with_ps(op, choice.algorithm, choice.protocol, bytes)
    }

    /// The same with an algorithm and a protocol given; `Auto` is NCCL's choice.
    pub fn cost_with_ps(&self, op: Op, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> u64 {
        if algorithm == Algorithm::Auto {
            return self.cost_ps(op, bytes);
        }
        if self.at.ranks <= 1 || (bytes == 0 && op != Op::Barrier) {
            return 0;
        }
        let (op, bytes) = if op == Op::Barrier { (Op::AllReduce, 1) } else { (op, bytes) };
        let us = self.links.time_us(op, algorithm, protocol, bytes);
        let ratio = Curves::all().ratio(&CurveKind::new(op, algorithm, &self.at, self.system.arch), bytes);
        (us * ratio * 1e6) as u64
    }
}

/// What NCCL would choose for an operation: see [`Communicator::choose`].
pub fn choose(op: Op, bytes: u64, at: &Placement, system: &System, env: &Env) -> Choice {
    Communicator::new(at, system, env).choose(op, bytes)
}

/// Time from the last member's arrival to the end on all members, ps, with what NCCL would choose. Bytes as nccl-tests counts them (`workload::program::OpKind::Collective`).
/// One member, or no bytes in anything but a barrier, takes no time.
pub fn cost_ps(op: Op, bytes: u64, at: &Placement, system: &System, env: &Env) -> u64 {
    Communicator::new(at, system, env).cost_ps(op, bytes)
}

/// The same with an algorithm and a protocol given; `Auto` is NCCL's choice.
pub fn cost_with_ps(
    op: Op,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    at: &Placement,
    system: &System,
    env: &Env,
) -> u64 {
    Communicator::new(at, system, env).cost_with_ps(op, algorithm, protocol, bytes)
}

/// Time of an operation among `n` GPUs of one server, ps.
pub fn intra_ps(
    op: Op,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    n: u32,
    system: &System,
    env: &Env,
) -> u64 {
    cost_with_ps(op, algorithm, protocol, bytes, &Placement::alone(n, n), system, env)
}

/// Time of one message from a GPU to another, ps; `sharing` such messages leave a server at the same time.
pub fn send_ps(bytes: u64, same_server: bool, sharing: u32, system: &System, env: &Env) -> u64 {
    let at = Placement { ranks: 2, ranks_per_node: if same_server { 2 } else { 1 }, sharing };
    (Communicator::new(&at, system, env).links.message_us(bytes) * 1e6) as u64
}
