//! The duration of a collective on an idle cluster of equal servers, without simulating it.
//!
//! Layer: collective. Results are whole ps; a call takes about a microsecond. A cost is the physics of links and NCCL's latencies. Measured runs of the same
//! server correct it by a ratio.

use super::communicator::Communicator;
use super::curve_kind::CurveKind;
use super::curves::Curves;
use super::nccl::{Choice, Env, Protocol, carried_out, offered};
use super::system::{CollectiveSystem, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// Factor by which NCCL's choice must be slower than another option for that option to be taken. Our choice: with it, and with the falls that curves keep, no
/// cost falls by 5 % as bytes double, or rises by 5 % with a rate.
const WORTH_ANOTHER: f64 = 1.02;

impl Communicator<'_> {
    /// The algorithm and protocol of an operation. It is NCCL's choice, unless another pair that NCCL offers is faster by more than 2 %, by the links that
    /// both load. NCCL's own model is optimistic for some machines, and vendors tune its tables there.
    pub fn choose(&self, op: CollectiveOp, bytes: u64) -> Choice {
        let choice = self.nccl_choice(op, bytes);
        // The comparison is not corrected by measured runs: what slows one algorithm down on a machine slows the others too.
        let cost = |algorithm, protocol| self.links.time_us(op, algorithm, protocol, bytes);
        let limit_us = cost(choice.algorithm, choice.protocol) / WORTH_ANOTHER;
        match op {
            CollectiveOp::Barrier | CollectiveOp::Experts(_) => return choice,
            CollectiveOp::AllToAll => {
                let direct_us = cost(Algorithm::Direct, Protocol::Simple);
                let predicted_ps = (direct_us * 1e6) as u64;
                let direct = Choice { algorithm: Algorithm::Direct, predicted_ps, ..choice };
                return if direct_us < limit_us { direct } else { choice };
            }
            _ => {}
        }
        let mut best = (limit_us, None);
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

    /// Time of an operation in us, corrected by the curve of measured runs of the same server.
    fn corrected_us(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f64 {
        let curves = Curves::without(self.system.left_out_run);
        let ratio = CurveKind::new(op, &self.placement, self.system)
            .map_or(1.0, |kind| curves.ratio(&kind, self.placement.nodes(), bytes));
        self.links.time_us(op, algorithm, protocol, bytes) * ratio
    }

    /// Time of an operation in ps with NCCL's choice: see [`cost_ps`].
    pub fn cost_ps(&self, op: CollectiveOp, bytes: u64) -> u64 {
        if self.placement.ranks <= 1 || (bytes == 0 && op != CollectiveOp::Barrier) {
            return 0;
        }
        let choice = self.choose(op, bytes);
        self.cost_with_ps(op, choice.algorithm, choice.protocol, bytes)
    }

    /// Time of an operation in ps with this algorithm and protocol; `Auto` stands for NCCL's choice.
    pub fn cost_with_ps(&self, op: CollectiveOp, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> u64 {
        if algorithm == Algorithm::Auto {
            return self.cost_ps(op, bytes);
        }
        if self.placement.ranks <= 1 || (bytes == 0 && op != CollectiveOp::Barrier) {
            return 0;
        }
        let (op, bytes) = if op == CollectiveOp::Barrier { (CollectiveOp::AllReduce, 1) } else { (op, bytes) };
        (self.corrected_us(op, algorithm, protocol, bytes) * 1e6) as u64
    }
}

/// The choice for an operation: see [`Communicator::choose`].
pub fn choose(
    op: CollectiveOp,
    bytes: u64,
    placement: &MemberPlacement,
    system: &CollectiveSystem,
    env: &Env,
) -> Choice {
    Communicator::new(placement, system, env).choose(op, bytes)
}

/// Time in ps from the last member's arrival to the end on all members, with NCCL's choice. Bytes are counted as in nccl-tests
/// (`workload::program::OpKind::Collective`). It is 0 for one member, and for no bytes unless the operation is a barrier.
pub fn cost_ps(op: CollectiveOp, bytes: u64, placement: &MemberPlacement, system: &CollectiveSystem, env: &Env) -> u64 {
    Communicator::new(placement, system, env).cost_ps(op, bytes)
}

/// Time in ps with this algorithm and protocol, see [`cost_ps`]; `Auto` stands for NCCL's choice.
pub fn cost_with_ps(
    op: CollectiveOp,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    placement: &MemberPlacement,
    system: &CollectiveSystem,
    env: &Env,
) -> u64 {
    Communicator::new(placement, system, env).cost_with_ps(op, algorithm, protocol, bytes)
}

/// Time of an operation among `n` GPUs of one server, in ps.
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

/// Time of one message from a GPU to another, in ps. `sharing` such messages leave a server at the same time.
pub fn send_ps(bytes: u64, same_server: bool, sharing: u32, system: &CollectiveSystem, env: &Env) -> u64 {
    let placement = MemberPlacement { ranks: 2, ranks_per_node: if same_server { 2 } else { 1 }, sharing };
    (Communicator::new(&placement, system, env).links.message_us(bytes) * 1e6) as u64
}
