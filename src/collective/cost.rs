//! What a collective takes on an idle cluster of equal servers, without simulating it.
//!
//! Layer: collective. Whole ps; a call takes about a microsecond. Physics by links and NCCL's latencies, times how far measured runs of the kind are from it.

use super::communicator::Communicator;
use super::curve_kind::CurveKind;
use super::curves::Curves;
use super::nccl::{Choice, Env, Protocol, carried_out, offered};
use super::system::{CollectiveSystem, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// How much longer NCCL's choice must take than another for the other to be taken. Our choice: about what the costs are known to.
const WORTH_ANOTHER: f64 = 1.1;

impl Communicator<'_> {
    /// What carries an operation out: NCCL's choice, unless another pair of algorithm and protocol that NCCL offers is faster by more than a tenth, by the links that they
    /// load. NCCL's own model is optimistic for some machines, and vendors tune its tables where it is.
    pub fn choose(&self, op: CollectiveOp, bytes: u64) -> Choice {
        let choice = self.nccl_choice(op, bytes);
        if matches!(op, CollectiveOp::AllToAll | CollectiveOp::Barrier) {
            return choice;
        }
        // Not corrected by measured runs: few algorithms have some, and what slows one down on a machine slows the others as well.
        let cost = |algorithm, protocol| self.links.time_us(op, algorithm, protocol, bytes);
        let mut best = (cost(choice.algorithm, choice.protocol) / WORTH_ANOTHER, None);
        for (algorithm, protocol, predicted_us) in offered(op, bytes, &self.context, self.env) {
            let us = cost(algorithm, protocol);
            if us < best.0 {
                best = (us, Some((algorithm, protocol, predicted_us)));
            }
        }
        best.1.map_or(choice, |(algorithm, protocol, us)| {
            carried_out(op, algorithm, protocol, bytes, &self.context, self.env, us)
        })
    }

    /// Time of an operation, us, corrected by curves.
    fn corrected_us(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        let kind = CurveKind::new(op, algorithm, &self.at, self.system.arch);
        let ratio = Curves::without(self.system.left_out_run).ratio(&kind, self.at.nodes(), bytes);
        self.links.time_us(op, algorithm, protocol, bytes) * ratio
    }

    /// Time of an operation with what NCCL would choose, ps: see [`cost_ps`].
    pub fn cost_ps(&self, op: CollectiveOp, bytes: u64) -> u64 {
        if self.at.ranks <= 1 || (bytes == 0 && op != CollectiveOp::Barrier) {
            return 0;
        }
        let choice = self.choose(op, bytes);
        self.cost_with_ps(op, choice.algorithm, choice.protocol, bytes)
    }

    /// The same with an algorithm and a protocol given; `Auto` is NCCL's choice.
    pub fn cost_with_ps(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> u64 {
        if algorithm == Algorithm::Auto {
            return self.cost_ps(op, bytes);
        }
        if self.at.ranks <= 1 || (bytes == 0 && op != CollectiveOp::Barrier) {
            return 0;
        }
        let (op, bytes) = if op == CollectiveOp::Barrier { (CollectiveOp::AllReduce, 1) } else { (op, bytes) };
        (self.corrected_us(op, algorithm, protocol, bytes) * 1e6) as u64
    }
}

/// What NCCL would choose for an operation: see [`Communicator::choose`].
pub fn choose(op: CollectiveOp, bytes: u64, at: &MemberPlacement, system: &CollectiveSystem, env: &Env) -> Choice {
    Communicator::new(at, system, env).choose(op, bytes)
}

/// Time from the last member's arrival to the end on all members, ps, with what NCCL would choose. Bytes as nccl-tests counts them (`workload::program::OpKind::Collective`).
/// One member, or no bytes in anything but a barrier, takes no time.
pub fn cost_ps(op: CollectiveOp, bytes: u64, at: &MemberPlacement, system: &CollectiveSystem, env: &Env) -> u64 {
    Communicator::new(at, system, env).cost_ps(op, bytes)
}

/// The same with an algorithm and a protocol given; `Auto` is NCCL's choice.
pub fn cost_with_ps(
    op: CollectiveOp,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    at: &MemberPlacement,
    system: &CollectiveSystem,
    env: &Env,
) -> u64 {
    Communicator::new(at, system, env).cost_with_ps(op, algorithm, protocol, bytes)
}

/// Time of an operation among `n` GPUs of one server, ps.
pub fn intra_ps(
    op: CollectiveOp,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    n: u32,
    system: &CollectiveSystem,
    env: &Env,
) -> u64 {
    cost_with_ps(op, algorithm, protocol, bytes, &MemberPlacement::alone(n, n), system, env)
}

/// Time of one message from a GPU to another, ps; `sharing` such messages leave a server at the same time.
pub fn send_ps(bytes: u64, same_server: bool, sharing: u32, system: &CollectiveSystem, env: &Env) -> u64 {
    let at = MemberPlacement { ranks: 2, ranks_per_node: if same_server { 2 } else { 1 }, sharing };
    (Communicator::new(&at, system, env).links.message_us(bytes) * 1e6) as u64
}
