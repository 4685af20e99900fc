//! A communicator on a system: what NCCL would choose for its operations, and what the physics of its links says that they take.
//!
//! Layer: collective. Not corrected by measured runs: that is `cost`'s.

use super::curve_kind::CurveKind;
use super::nccl::{Choice, Context, Env, Protocol, all_to_all_algorithm, choose_collective, point_chunk_bytes};
use super::physics::CommunicatorLinks;
use super::system::{CollectiveSystem, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// A communicator, set up once: costs of its operations then take a fraction of a microsecond.
pub struct Communicator<'a> {
    pub(super) context: Context,
    pub(super) links: CommunicatorLinks,
    pub(super) at: MemberPlacement,
    pub(super) system: &'a CollectiveSystem,
    pub(super) env: &'a Env,
}

impl<'a> Communicator<'a> {
    /// The communicator `at` on `system`.
    pub fn new(at: &MemberPlacement, system: &'a CollectiveSystem, env: &'a Env) -> Communicator<'a> {
        let context = Context::new(system, at, env);
        Communicator { context, links: CommunicatorLinks::new(context, system, at, env), at: *at, system, env }
    }

    /// What NCCL's tuner would choose.
    pub(super) fn nccl_choice(&self, op: CollectiveOp, bytes: u64) -> Choice {
        match op {
            CollectiveOp::AllToAll => {
                let algorithm = all_to_all_algorithm(&self.at, self.system, self.env);
                let us = self.links.time_us(op, algorithm, Protocol::Simple, bytes);
                Choice {
                    algorithm,
                    protocol: Protocol::Simple,
                    channels: self.env.bound_channels(1),
                    chunk_bytes: point_chunk_bytes(&self.at, self.env),
                    predicted_ps: (us * 1e6) as u64,
                }
            }
            CollectiveOp::Barrier => choose_collective(CollectiveOp::AllReduce, 1, &self.context, self.env),
            _ => choose_collective(op, bytes, &self.context, self.env),
        }
    }

    /// What `physics` says with what NCCL would choose, or the algorithm given, us; and the curve that would correct it.
    pub(super) fn plain(&self, op: CollectiveOp, algorithm: Option<Algorithm>, bytes: u64) -> (f64, CurveKind) {
        let (algorithm, protocol) = match algorithm {
            Some(a) => (a, Protocol::Simple),
            None => {
                let choice = self.nccl_choice(op, bytes);
                (choice.algorithm, choice.protocol)
            }
        };
        (self.links.time_us(op, algorithm, protocol, bytes), CurveKind::new(op, algorithm, &self.at, self.system.arch))
    }
}
