//! A communicator on a system: what NCCL would choose for its operations, and the time that these take by the physics of the links.
//!
//! Layer: collective. Times are not corrected by measured runs here; `cost` does that.

use super::link_times::CommunicatorLinks;
use super::nccl::{Choice, Context, Env, Protocol, all_to_all_algorithm, choose_collective, point_chunk_bytes};
use super::system::{CollectiveSystem, MemberPlacement};
use super::{Algorithm, CollectiveOp};

/// A communicator that is set up once. The cost of an operation then takes a fraction of a microsecond to compute.
pub struct Communicator<'a> {
    pub(super) context: Context,
    pub(super) links: CommunicatorLinks,
    pub(super) placement: MemberPlacement,
    pub(super) system: &'a CollectiveSystem,
    pub(super) env: &'a Env,
}

impl<'a> Communicator<'a> {
    /// The communicator with this placement on `system`.
    pub fn new(placement: &MemberPlacement, system: &'a CollectiveSystem, env: &'a Env) -> Communicator<'a> {
        let context = Context::new(system, placement, env);
        Communicator {
            context,
            links: CommunicatorLinks::new(context, system, placement, env),
            placement: *placement,
            system,
            env,
        }
    }

    /// The choice of NCCL's tuner.
    pub(super) fn nccl_choice(&self, op: CollectiveOp, bytes: u64) -> Choice {
        match op {
            CollectiveOp::Experts(e) => {
                let algorithm = if e.is_once_a_server() { Algorithm::Hierarchical } else { Algorithm::Direct };
                let us = self.links.time_us(op, algorithm, Protocol::Simple, bytes);
                Choice {
                    algorithm,
                    protocol: Protocol::Simple,
                    channels: 1,
                    chunk_bytes: point_chunk_bytes(&self.placement, self.env),
                    predicted_ps: (us * 1e6) as u64,
                }
            }
            CollectiveOp::AllToAll => {
                let algorithm = all_to_all_algorithm(&self.placement, self.system, self.env);
                let us = self.links.time_us(op, algorithm, Protocol::Simple, bytes);
                Choice {
                    algorithm,
                    protocol: Protocol::Simple,
                    channels: self.env.bound_channels(1),
                    chunk_bytes: point_chunk_bytes(&self.placement, self.env),
                    predicted_ps: (us * 1e6) as u64,
                }
            }
            CollectiveOp::Barrier => choose_collective(CollectiveOp::AllReduce, 1, &self.context, self.env),
            _ => choose_collective(op, bytes, &self.context, self.env),
        }
    }

    /// The time of an operation in us by `link_times`, with the choice for it or the given algorithm.
    pub(super) fn plain_us(&self, op: CollectiveOp, algorithm: Option<Algorithm>, bytes: u64) -> f64 {
        let (algorithm, protocol) = match algorithm {
            Some(algorithm) => (algorithm, Protocol::Simple),
            None => {
                let choice = self.choose(op, bytes);
                (choice.algorithm, choice.protocol)
            }
        };
        self.links.time_us(op, algorithm, protocol, bytes)
    }
}
