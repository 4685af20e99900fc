//! What a network is like, in numbers.
//!
//! Layer: cli. The network's own crate counts and searches; nothing is simulated.

use std::collections::BTreeMap;

use hyperfold_config::spec::KeyId;
use hyperfold_network::routing::{Distances, PayloadClock, Router, global_rtt_window};
use hyperfold_network::topology::{NodeKind, bisection_bps};

use super::failures::working;
use super::source::FoundNetwork;

/// Switches with the same ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwitchClass {
    /// Links to hosts.
    pub to_hosts: u32,
    /// Links to other switches.
    pub to_switches: u32,
    /// Rate of all links in one direction, in bps.
    pub bps: u64,
}

/// Links of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkClass {
    /// Whether one end is a host.
    pub to_host: bool,
    /// Rate in each direction, in bps.
    pub bps: u64,
    /// One-way delay, in ps.
    pub delay_ps: u64,
}

/// Numbers of a network. Distances, paths, rates between halves and round trips are without the links that are down from the beginning.
pub struct Facts {
    pub gpus: usize,
    pub servers: usize,
    pub hosts: usize,
    /// Switches of each class.
    pub switches: BTreeMap<SwitchClass, usize>,
    /// Links of each class.
    pub links: BTreeMap<LinkClass, usize>,
    pub distances: Distances,
    /// Highest rate from the first half of the servers to the second.
    pub bisection_bps: u64,
    /// Rate of all links of the hosts in the smaller half.
    pub half_bps: u64,
    /// Longest round trip of a full packet, in ps, without queues.
    pub rtt_ps: u64,
}

/// Payload of the packet whose round trip is given: the default of `transport.payload_bytes`.
pub const PAYLOAD: u32 = 1000;

impl Facts {
    /// Counts and searches. It takes seconds for networks of tens of thousands of hosts.
    pub fn of(found: &FoundNetwork) -> Facts {
        let net = &found.network;
        let mut ports = vec![(0u32, 0u32, 0u64); net.nodes.len()];
        let mut links = BTreeMap::new();
        let is_host = |v: u32| net.nodes[v as usize].kind == NodeKind::Host;
        for link in net.links.iter().filter(|l| net.is_packet_link(l)) {
            let to_host = is_host(link.a) || is_host(link.b);
            *links.entry(LinkClass { to_host, bps: link.rate_bps, delay_ps: link.delay_ps }).or_default() += 1;
            for (end, far) in [(link.a, link.b), (link.b, link.a)] {
                let (hosts, switches, bps) = &mut ports[end as usize];
                *(if is_host(far) { hosts } else { switches }) += 1;
                *bps += link.rate_bps;
            }
        }
        let mut switches = BTreeMap::new();
        for (node, &(to_hosts, to_switches, bps)) in net.nodes.iter().zip(&ports) {
            if node.kind == NodeKind::Switch {
                *switches.entry(SwitchClass { to_hosts, to_switches, bps }).or_default() += 1;
            }
        }
        let hosts = || net.nodes.iter().zip(&ports).filter(|(n, _)| n.kind == NodeKind::Host);
        let servers = hosts().map(|(n, _)| n.server + 1).max().unwrap_or(0);
        let rate = |first: bool| {
            hosts().filter(|(n, _)| (n.server < servers / 2) == first).map(|(_, (_, _, bps))| bps).sum::<u64>()
        };
        let router = Router::avoiding(net, &|link| net.failed.contains(&link));
        let cut_through = found.config.values.int(KeyId::CutThroughBytes) as u32;
        let packet = PayloadClock { cut_through, ..PayloadClock::ps(PAYLOAD) };
        Facts {
            gpus: net.ranks.len(),
            servers: servers as usize,
            hosts: hosts().count(),
            switches,
            links,
            distances: router.distances(),
            bisection_bps: if net.failed.is_empty() { bisection_bps(net) } else { bisection_bps(&working(net)) },
            half_bps: rate(true).min(rate(false)),
            rtt_ps: global_rtt_window(&router, packet).rtt_ps,
        }
    }

    /// Ports of the switch that has most of them.
    pub fn radix(&self) -> u32 {
        self.switches.keys().map(|class| class.to_hosts + class.to_switches).max().unwrap_or(0)
    }

    pub fn n_switches(&self) -> usize {
        self.switches.values().sum()
    }

    pub fn n_links(&self) -> usize {
        self.links.values().sum()
    }

    /// Part of the hosts' rate that the two halves can exchange; `None` if a half is empty.
    pub fn bisection_share(&self) -> Option<f64> {
        (self.half_bps > 0).then(|| self.bisection_bps as f64 / self.half_bps as f64)
    }
}
