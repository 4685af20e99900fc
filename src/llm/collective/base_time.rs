//! What the smallest collectives were measured to take on a machine, and what that says of its launches and its transport.
//!
//! Layer: collective. NCCL's own constants are above these figures: a figure only adds what they leave out.

use super::CollectiveOp;
use super::communicator::Communicator;
use super::nccl::Env;
use super::system::{CollectiveSystem, MemberPlacement};

/// Size of a base time in bytes: the smallest one of nccl-tests.
const BASE_BYTES: u64 = 8;

/// The part of a measured base time that is the network between neighbours, one pass, in ps. It is twice the default of `topology.link_delay_ns`, which costs
/// count by themselves.
pub(super) const NEIGHBOUR_NET_PS: u64 = 2_000_000;

/// Measured times of an all-reduce of 8 bytes among all GPUs of a server or of two servers. `None`: nobody measured it, and NCCL's constants stand alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BaseTimes {
    /// Time among the GPUs of one server, in ps.
    pub server_ps: Option<u64>,
    /// Time among the GPUs of two servers, in ps.
    pub two_servers_ps: Option<u64>,
}

impl BaseTimes {
    /// The system with what the base times say of it.
    ///
    /// - A time in one server above NCCL's constants is a launch. It passes beside the collective before it, because hosts launch ahead. A smaller time is a
    ///   shortfall of the smallest sizes.
    /// - What a time on two servers has above that, divided by the passes through the network, is the transport's part of each pass.
    /// - Servers had `gpus` GPUs when they were measured.
    pub fn applied(&self, system: CollectiveSystem, gpus: u32, env: &Env) -> CollectiveSystem {
        let mut system = CollectiveSystem { launch_ps: 0, base_shortfall_ps: 0, transport_extra_ps: 0, ..system };
        let bare = CollectiveSystem { net_extra_ps: 0, latency_ppm: 1_000_000, ..system };
        let gpus = gpus.max(1);
        if let Some(measured_ps) = self.server_ps.filter(|_| gpus > 1) {
            let constants_ps = smallest(&bare, &MemberPlacement::alone(gpus, gpus), env).0;
            system.launch_ps = leg_ps(measured_ps, constants_ps);
            system.base_shortfall_ps = constants_ps.saturating_sub(measured_ps);
        }
        if let Some(measured_ps) = self.two_servers_ps {
            let (constants_ps, passes) = smallest(&bare, &MemberPlacement::alone(2 * gpus, gpus), env);
            let above_ps = leg_ps(measured_ps, system.launch_ps).saturating_sub(constants_ps);
            system.transport_extra_ps = (above_ps / passes.max(1)).saturating_sub(NEIGHBOUR_NET_PS);
        }
        system
    }
}

/// Time in ps of the smallest all-reduce by the choice for it, and its number of passes through the network.
fn smallest(system: &CollectiveSystem, placement: &MemberPlacement, env: &Env) -> (u64, u64) {
    let communicator = Communicator::new(placement, system, env);
    let choice = communicator.choose(CollectiveOp::AllReduce, BASE_BYTES);
    let us = communicator.links.time_us(CollectiveOp::AllReduce, choice.algorithm, choice.protocol, BASE_BYTES);
    let passes = communicator.links.net_passes(CollectiveOp::AllReduce, choice.algorithm);
    ((us * 1e6) as u64, passes as u64)
}

/// The other leg of a right triangle, in ps: the part of `whole_ps` that passes beside `part_ps`; 0 if the part is the longer one.
fn leg_ps(whole_ps: u64, part_ps: u64) -> u64 {
    let square = |ps: u64| u128::from(ps) * u128::from(ps);
    square(whole_ps).saturating_sub(square(part_ps)).isqrt() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Server;

    /// Time of an all-reduce on `servers` of these servers in us, without the correction of a measured run.
    fn all_reduce_us(system: &CollectiveSystem, env: &Env, servers: u32, bytes: u64) -> f64 {
        let placement = MemberPlacement::alone(servers * system.gpus_per_server, system.gpus_per_server);
        let system = CollectiveSystem { net_extra_ps: NEIGHBOUR_NET_PS, server_idx: None, ..*system };
        Communicator::new(&placement, &system, env).cost_ps(CollectiveOp::AllReduce, bytes) as f64 / 1e6
    }

    #[test]
    fn eight_bytes_take_their_measured_time() {
        for (name, servers, measured_us) in [("aws-p5", 1, 12.9), ("aws-p5", 2, 69.12), ("aws-p4de", 2, 164.3)] {
            let server = Server::preset(name).expect("it is one of the presets");
            let us = all_reduce_us(&server.system(false), &server.env(), servers, BASE_BYTES);
            assert!((us - measured_us).abs() < 0.35, "{name}, {servers} servers: {us} us");
        }
    }

    #[test]
    fn a_launch_passes_beside_large_collectives() {
        let server = Server::preset("dgx-a100").expect("it is one of the presets");
        let env = server.env();
        let bare = server.system(false);
        let base_times = BaseTimes { server_ps: Some(44_800_000), two_servers_ps: None };
        let slow = base_times.applied(bare, server.gpus, &env);
        assert!((all_reduce_us(&slow, &env, 1, BASE_BYTES) - 44.8).abs() < 0.1);
        let ratio = all_reduce_us(&slow, &env, 1, 1 << 28) / all_reduce_us(&bare, &env, 1, 1 << 28);
        assert!((1.0..1.001).contains(&ratio), "{ratio}");
    }

    #[test]
    fn without_base_times_constants_stand_alone() {
        let server = Server::preset("aws-p5").expect("it is one of the presets");
        let own = server.system(false);
        assert!(own.server_idx.is_some() && own.transport_extra_ps > 0 && own.base_shortfall_ps > 0);
        let none = BaseTimes::default().applied(own, server.gpus, &server.env());
        assert_eq!((none.transport_extra_ps, none.base_shortfall_ps, none.launch_ps), (0, 0, 0));
    }
}
