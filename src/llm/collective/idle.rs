//! The duration of a schedule on an otherwise idle machine, message by message, and the software overheads with which it has a given duration.
//!
//! Layer: collective. It knows rates and latencies, no packets: messages on a link follow each other as wholes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::build::{ReducingSwitches, Shape};
use super::communicator::Communicator;
use super::link_times::point_latencies_us;
use super::nccl::{Protocol, hop_latencies_us};
use super::system::CollectiveSystem;
use super::{Algorithm, Schedule};

/// Software overheads of a collective, in addition to its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Time that passes once, before the first messages, in ps.
    pub start_ps: u64,
    /// Overhead of each message to a GPU of the same server, in ps.
    pub inside_ps: u64,
    /// Overhead of each message to another server, in ps.
    pub net_ps: u64,
}

impl Overheads {
    /// Makes overheads that are `ps` for every message and 0 at the start.
    pub fn each(ps: u64) -> Overheads {
        Overheads { start_ps: 0, inside_ps: ps, net_ps: ps }
    }

    fn scaled(&self, factor: f64) -> Overheads {
        let times = |ps: u64| (ps as f64 * factor) as u64;
        Overheads { start_ps: times(self.start_ps), inside_ps: times(self.inside_ps), net_ps: times(self.net_ps) }
    }

    /// Returns these overheads with `ps` more for each message.
    pub fn plus(&self, ps: u64) -> Overheads {
        Overheads { start_ps: self.start_ps, inside_ps: self.inside_ps + ps, net_ps: self.net_ps + ps }
    }
}

/// A link from GPU to GPU within a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsideLink {
    /// Rate of a GPU, one direction.
    pub rate_bps: u64,
    /// Latency from a GPU to another.
    pub latency_ps: u64,
    /// Whether each pair of GPUs has a link of its own. Otherwise all that a GPU sends shares one link.
    pub by_pair: bool,
}

/// The machine of a communicator, without other traffic.
#[derive(Clone, Debug)]
pub struct IdleMachine<'a> {
    /// The servers of the members.
    pub shape: &'a Shape,
    /// The NIC of each member. Members that share a NIC have the same number.
    pub nics: &'a [u32],
    /// The link within a server; `None` if GPUs of a server use their NICs.
    pub inside: Option<InsideLink>,
    /// Payload rate of a NIC in bit/s, all its ports together.
    pub net_bps: u64,
    /// Number of ports of a NIC; each connection uses one.
    pub ports: u32,
    /// Latency in ps of a first packet from a server to the nearest other server.
    pub net_latency_ps: u64,
    /// Time in ps from the last member's arrival to the first message.
    pub rendezvous_ps: u64,
    /// Software overhead in ps that the user gave for each message.
    pub message_ps: u64,
    /// Switches that reduce, and how long their messages are under way; `None`: none do.
    pub switches: Option<(&'a ReducingSwitches, SwitchDelays)>,
}

/// Delays of messages to and from switches that reduce, on an idle network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchDelays {
    /// Time in ps over a link between a NIC or a switch and a switch.
    pub hop_ps: u64,
    /// Time in ps between a switch and the part of it that reduces, and from the last arrival there until the sum leaves.
    pub reduce_ps: u64,
    /// Whether packets carry what stays inside servers. Then connections of a GPU take turns, and none waits for all of another.
    pub inside_by_packets: bool,
}

/// Maximum number of transfers of a schedule whose overheads are fitted. Larger schedules use NCCL's latencies unchanged. Our choice: a fit of so many takes
/// about a second.
const MAX_FITTED: usize = 1 << 20;

/// How close a fit must come to its target time, as a share of it.
const CLOSE: f64 = 0.001;

/// Maximum number of trials of a fit. Our choice: false position needs about six.
const MAX_TRIALS: u32 = 24;

/// The time in ps at which each link is free.
#[derive(Default)]
struct FreeAt<K>(HashMap<K, u64>);

impl<K: std::hash::Hash + Eq> FreeAt<K> {
    /// Lets a message that could begin at `ready_ps` occupy the link for `serial_ps`. Returns the time in ps at which it begins.
    fn take(&mut self, link: K, ready_ps: u64, serial_ps: u64) -> u64 {
        let free = self.0.entry(link).or_insert(0);
        let begin = ready_ps.max(*free);
        *free = begin + serial_ps;
        begin
    }
}

impl IdleMachine<'_> {
    /// Server that each switch is in; `None`: it lies between servers.
    fn servers_of_switches(&self) -> Vec<Option<u32>> {
        let Some((switches, _)) = self.switches else { return Vec::new() };
        let mut servers = vec![None; switches.n as usize];
        for (&switch, members) in switches.inside.iter().zip(self.shape.by_server()) {
            servers[switch as usize] = members.first().map(|&m| self.shape.members[m as usize].0);
        }
        servers
    }

    /// Time in ps from the last member's arrival until all members have everything.
    pub fn time_ps(&self, schedule: &Schedule, protocol: Protocol, overheads: &Overheads) -> u64 {
        let n = schedule.transfers.len();
        let mut waits: Vec<u32> = schedule.transfers.iter().map(|t| t.after_n).collect();
        // For each transfer, the transfers that wait for it: a linked list through the places of `schedule.after`. Of copies the first stands for all.
        let mut first = vec![u32::MAX; n];
        let mut next = vec![u32::MAX; schedule.after.len()];
        let mut waiting = vec![0u32; schedule.after.len()];
        let mut k = 0;
        while k < n {
            let t = &schedule.transfers[k];
            for place in t.after_first..t.after_first + t.after_n {
                let awaited = schedule.after[place as usize] as usize;
                waiting[place as usize] = k as u32;
                next[place as usize] = first[awaited];
                first[awaited] = place;
            }
            k = schedule.copies_end(k);
        }
        let overheads_per_message = overheads.plus(self.message_ps);
        let begin = self.rendezvous_ps + overheads.start_ps;
        let servers_of_switches = self.servers_of_switches();
        let delays = self.switches.map_or(SwitchDelays::default(), |(_, delays)| delays);
        let crosses_network = |k: usize| {
            let t = &schedule.transfers[k];
            let server = |m: u32| match m.checked_sub(schedule.n) {
                None => Some(self.shape.members[m as usize].0),
                Some(switch) => servers_of_switches[switch as usize],
            };
            server(t.from) != server(t.to) || server(t.from).is_none()
        };
        let cost = |k: usize| match crosses_network(k) {
            // Switches have no software. Their sums take a moment.
            _ if schedule.transfers[k].from >= schedule.n => delays.reduce_ps,
            true => overheads_per_message.net_ps,
            false => overheads_per_message.inside_ps,
        };
        let mut ready: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut arrived = vec![begin; n];
        ready.extend((0..n).filter(|&k| waits[k] == 0).map(|k| Reverse((begin + cost(k), k as u32))));
        let (mut out_ports, mut in_ports, mut inside) = (FreeAt::default(), FreeAt::default(), FreeAt::default());
        let mut end = begin;
        while let Some(Reverse((ready_ps, k))) = ready.pop() {
            let k = k as usize;
            let t = &schedule.transfers[k];
            let bytes = protocol.wire_bytes(t.bytes).max(1);
            let done = match self.inside {
                Some(link) if !crosses_network(k) => {
                    let serial = serial_ps(bytes, link.rate_bps);
                    let by_switch = t.from >= schedule.n;
                    // NICs serve connections in turn: what is spread does not wait for all that is still to be summed.
                    let link_end = match t.to >= schedule.n {
                        true => u32::MAX - u32::from(t.channel),
                        false if delays.inside_by_packets && !by_switch => u32::MAX - u32::from(t.channel),
                        false if link.by_pair || by_switch => t.to,
                        false => u32::MAX,
                    };
                    let latency_ps = match by_switch || t.to >= schedule.n {
                        true => link.latency_ps / 2 + delays.reduce_ps,
                        false => link.latency_ps,
                    };
                    inside.take((t.from, link_end), ready_ps, serial) + serial + latency_ps
                }
                _ if t.from >= schedule.n || t.to >= schedule.n => {
                    let ports = self.ports.max(1);
                    let (port, serial) =
                        (u32::from(t.channel) % ports, serial_ps(bytes, self.net_bps / u64::from(ports)));
                    let (sent, switches) = match (t.from >= schedule.n, t.to >= schedule.n) {
                        (true, true) => (inside.take((t.from, t.to), ready_ps, serial), 2),
                        (true, false) => (in_ports.take((self.nics[t.to as usize], port), ready_ps, serial), 1),
                        (false, _) => (out_ports.take((self.nics[t.from as usize], port), ready_ps, serial), 1),
                    };
                    sent + serial + delays.hop_ps + switches * delays.reduce_ps
                }
                _ => {
                    let ports = self.ports.max(1);
                    let port = u32::from(t.channel) % ports;
                    let serial = serial_ps(bytes, self.net_bps / u64::from(ports));
                    let sent = out_ports.take((self.nics[t.from as usize], port), ready_ps, serial);
                    in_ports.take((self.nics[t.to as usize], port), sent + self.net_latency_ps, serial) + serial
                }
            };
            end = end.max(done);
            let mut place = first[k];
            while place != u32::MAX {
                let later = waiting[place as usize] as usize;
                arrived[later] = arrived[later].max(done);
                waits[later] -= 1;
                if waits[later] == 0 {
                    let copies = later..schedule.copies_end(later);
                    ready.extend(copies.map(|k| Reverse((arrived[later] + cost(k), k as u32))));
                }
                place = next[place as usize];
            }
        }
        end
    }

    /// `latencies` multiplied by the factor with which the schedule takes `target_ps`. No overheads if the links alone take longer.
    pub fn fitted(&self, schedule: &Schedule, protocol: Protocol, latencies: &Overheads, target_ps: u64) -> Overheads {
        if schedule.transfers.len() > MAX_FITTED {
            return *latencies;
        }
        let miss = |factor: f64| {
            let took = self.time_ps(schedule, protocol, &latencies.scaled(factor));
            took as f64 - target_ps as f64
        };
        let close = target_ps as f64 * CLOSE;
        // The duration never falls as the factor grows.
        let (mut low, mut low_miss) = (0.0, miss(0.0));
        if low_miss >= 0.0 || *latencies == Overheads::default() {
            return Overheads::default();
        }
        let (mut high, mut high_miss) = (1.0, miss(1.0));
        while high_miss < 0.0 && high < 1e6 {
            (low, low_miss) = (high, high_miss);
            high *= 2.0;
            high_miss = miss(high);
        }
        let mut last = 0;
        for _ in 0..MAX_TRIALS {
            if high_miss.abs() <= close {
                return latencies.scaled(high);
            }
            let factor = (low * high_miss - high * low_miss) / (high_miss - low_miss);
            let missed = miss(factor);
            if missed.abs() <= close {
                return latencies.scaled(factor);
            }
            // Illinois method: the value of an end that stays twice is halved.
            if missed < 0.0 {
                (low, low_miss) = (factor, missed);
                if last == -1 {
                    high_miss /= 2.0;
                }
                last = -1;
            } else {
                (high, high_miss) = (factor, missed);
                if last == 1 {
                    low_miss /= 2.0;
                }
                last = 1;
            }
        }
        latencies.scaled(high)
    }
}

/// NCCL's own latencies of an algorithm and a protocol, from its tuning constants. The network's latency includes the extra time of its transport.
pub fn latencies(communicator: &Communicator, algorithm: Algorithm, protocol: Protocol) -> Overheads {
    let ps = |us: f64| (us * communicator.system.latency_scale() * 1e6) as u64;
    let (start, inside, net) = hop_latencies_us(algorithm, protocol, &communicator.context);
    Overheads { start_ps: ps(start), inside_ps: ps(inside), net_ps: ps(net) + communicator.system.transport_extra_ps }
}

/// Software overheads of a message between two GPUs that belongs to no collective, without the latency of the path itself.
pub fn message_overheads(system: &CollectiveSystem, inside_latency_ps: u64) -> Overheads {
    let (inside, net) = point_latencies_us();
    let ps = |us: f64| (us * system.latency_scale() * 1e6) as u64;
    Overheads {
        start_ps: 0,
        inside_ps: ps(inside).saturating_sub(inside_latency_ps),
        // The closed form adds the network's own latency.
        net_ps: ps(net) + system.transport_extra_ps,
    }
}

fn serial_ps(bytes: u64, rate_bps: u64) -> u64 {
    (bytes as u128 * 8 * hyperfold_base::units::PS_PER_S as u128).div_ceil(rate_bps.max(1) as u128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{CollectiveOp, ScheduleOptions, build};

    fn machine<'a>(shape: &'a Shape, nics: &'a [u32]) -> IdleMachine<'a> {
        IdleMachine {
            shape,
            nics,
            inside: Some(InsideLink { rate_bps: 3_600_000_000_000, latency_ps: 500_000, by_pair: false }),
            net_bps: 400_000_000_000,
            ports: 1,
            net_latency_ps: 2_000_000,
            rendezvous_ps: 1_000_000,
            message_ps: 0,
            switches: None,
        }
    }

    #[test]
    fn a_ring_takes_its_steps() {
        let shape = Shape::servers(4, 1);
        let options = ScheduleOptions { channels: 1, chunk_bytes: 1 << 30, ..ScheduleOptions::default() };
        let ring = build(CollectiveOp::AllReduce, Algorithm::Ring, 4_000_000, &shape, &options).expect("a ring");
        let nics = [0, 1, 2, 3];
        let took = machine(&shape, &nics).time_ps(&ring, Protocol::Simple, &Overheads::each(7_000));
        // Six steps of 1 MB at 50 GB/s, with latency and overhead.
        assert_eq!(took, 1_000_000 + 6 * (20_000_000 + 2_000_000 + 7_000));
    }

    #[test]
    fn members_of_one_nic_take_turns() {
        let shape = Shape::servers(2, 2);
        let options = ScheduleOptions { channels: 1, chunk_bytes: 1 << 30, ..ScheduleOptions::default() };
        let direct = build(CollectiveOp::AllToAll, Algorithm::Direct, 4_000_000, &shape, &options).expect("direct");
        let took = |nics: &[u32]| machine(&shape, nics).time_ps(&direct, Protocol::Simple, &Overheads::default());
        // Members 0 and 1 send to 2 first. Its NIC receives two messages before both members send to 3.
        assert_eq!(took(&[0, 1, 2, 3]), 1_000_000 + 2_000_000 + 3 * 20_000_000);
        assert_eq!(took(&[0, 0, 1, 1]), 1_000_000 + 2_000_000 + 4 * 20_000_000);
    }

    #[test]
    fn a_fit_takes_the_time_it_aims_at() {
        let shape = Shape::servers(2, 8);
        let nics: Vec<u32> = (0..16).collect();
        let machine = machine(&shape, &nics);
        let latencies = Overheads { start_ps: 6_600_000, inside_ps: 3_400_000, net_ps: 14_000_000 };
        for algorithm in [Algorithm::Ring, Algorithm::Tree, Algorithm::Hierarchical, Algorithm::HalvingDoubling] {
            for bytes in [1u64 << 10, 1 << 20, 1 << 26] {
                let options = ScheduleOptions { channels: 8, chunk_bytes: 1 << 19, ..ScheduleOptions::default() };
                let schedule = build(CollectiveOp::AllReduce, algorithm, bytes, &shape, &options).expect("known");
                let bare = machine.time_ps(&schedule, Protocol::Simple, &Overheads::default());
                for target in [bare / 2, bare + 50_000_000, bare * 3] {
                    let fitted = machine.fitted(&schedule, Protocol::Simple, &latencies, target);
                    let took = machine.time_ps(&schedule, Protocol::Simple, &fitted);
                    let off = (took as f64 / target.max(bare) as f64 - 1.0).abs();
                    assert!(off < 0.002, "{algorithm:?} of {bytes}: {took} for {target}");
                }
            }
        }
    }
}
