//! Random small cases: a few hosts and switches, odd rates and delays, ties, storms of pauses, losses.
//!
//! Seeded and self-contained (splitmix64), so that a failing seed can be run again anywhere.

use std::collections::VecDeque;

use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind, SwitchNames};
use hyperfold_network::transport::{
    Cc, EcnThresholds, LossRecovery, Nscc, PortWeights, ReceiverCredit, RttWindow, Swift, TierBuffers, Transport,
};

use super::Case;
use super::random_changes::{break_links, break_ports, impair_links, second_ports, slow_arcs};
use super::random_classes::{classes, classes_by_choice};
use super::random_cut_through::cut_through;
use super::random_pauses::{averaged, watched};
use super::random_switches::{early_drops, reported};

/// splitmix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x6a09_e667_f3bc_c908)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `lo..=hi`.
    pub fn range(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.next() % (hi - lo + 1)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.range(0, from.len() as u64 - 1) as usize]
    }

    /// True `percent` times of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.range(1, 100) <= percent
    }
}

/// The case of `seed`. Over consecutive seeds all congestion controls come in turn, but from [`SWIFT`] to [`SELECTIVE`] all have Swift.
pub fn case(seed: u64) -> Case {
    if seed >= EARLY_DROPS {
        return early_drops(seed);
    }
    if seed >= REPORTS {
        return reported(seed);
    }
    if seed >= CLASSES_BY_CHOICE {
        return classes_by_choice(seed);
    }
    if seed >= CUT_THROUGH {
        return cut_through(seed);
    }
    if seed >= AVERAGED {
        return averaged(seed);
    }
    if seed >= WATCHED {
        return watched(seed);
    }
    case_of(seed, if (SWIFT..SELECTIVE).contains(&seed) { Cc::Swift } else { CONTROLS[(seed % 6) as usize] })
}

/// Every congestion control.
pub const CONTROLS: [Cc; 6] = [Cc::None, Cc::Dcqcn, Cc::Hpcc, Cc::Timely, Cc::Dctcp, Cc::Swift];

/// Seeds from here on have Swift.
pub const SWIFT: u64 = 1_000_000;

/// Seeds from here on have receivers that take packets in any order.
pub const SELECTIVE: u64 = 2_000_000;

/// Seeds from here on have links that fail.
pub const CHANGES: u64 = 3_000_000;

/// Seeds from here on have links at a reduced rate, and some of them links that fail too.
pub const SLOW: u64 = 4_000_000;

/// Seeds from here on have queues of ports, most of them Ultra Ethernet.
pub const UEC: u64 = 5_000_000;

/// Seeds from here on have switches that choose among paths.
pub const ADAPTIVE: u64 = 6_000_000;

/// Seeds from here on have traffic classes.
pub const CLASSES: u64 = 7_000_000;

/// Seeds from here on have links whose rate changes, or that lose packets at random.
pub const IMPAIRED: u64 = 8_000_000;

/// Seeds from here on have hosts with two ports, and flows that move from one to the other.
pub const MOVING: u64 = 9_000_000;

/// Seeds from here on have a watchdog of pauses, in a case with pauses of any other kind.
pub const WATCHED: u64 = 10_000_000;

/// Seeds from here on mark by averages of queues, in a case of any other kind.
pub const AVERAGED: u64 = 11_000_000;

/// Seeds from here on have switches that cut through, in a case of any other kind but adaptive routing.
pub const CUT_THROUGH: u64 = 12_000_000;

/// Seeds from here on have traffic classes and switches that choose among paths.
pub const CLASSES_BY_CHOICE: u64 = 13_000_000;

/// Seeds from here on have adaptive switches that know of queues further on, or weigh their ports by rates.
pub const REPORTS: u64 = 14_000_000;

/// Seeds from here on have switches that drop data by WRED.
pub const EARLY_DROPS: u64 = 15_000_000;

/// A case with congestion control `cc`.
pub fn case_of(first_seed: u64, cc: Cc) -> Case {
    let mut rng = Rng::new(first_seed);
    // What else a case with impaired links, or with flows that move, has.
    let is_moving = first_seed >= MOVING;
    let is_impaired = first_seed >= IMPAIRED;
    let seed =
        if is_impaired { rng.pick(&[0, SELECTIVE, UEC, ADAPTIVE, CLASSES]) + first_seed % 4 } else { first_seed };
    let clock_ps = rng.pick(&[1, 1000]);
    let is_adaptive = (ADAPTIVE..CLASSES).contains(&seed);
    let mut network = if is_adaptive { several_ways(&mut rng, clock_ps) } else { network(&mut rng, clock_ps) };
    if is_moving {
        second_ports(&mut rng, &mut network, clock_ps);
    }
    let mut flows = flows(&mut rng, network.ranks.len() as u64, clock_ps);
    let paths = if is_adaptive { all_paths(&mut rng, &network, &flows) } else { paths(&mut rng, &network, &flows) };
    if (SLOW..UEC).contains(&seed) || seed >= UEC && rng.chance(30) {
        network.slow_arcs = slow_arcs(&mut rng, &network);
    }
    let mut transport = transport(&mut rng, &network, cc, clock_ps);
    if seed >= CLASSES {
        classes(&mut rng, &network, &mut transport, &mut flows);
    }
    if seed % 4 == 1 {
        let least = transport.buffer_bytes;
        transport.tier_buffers = Some(TierBuffers { leaf: least + 7_000, agg: least, spine: least + 60_000 });
    }
    // Drawn last, so that the cases of lower seeds stay.
    let some_in_any_order = (CHANGES..UEC).contains(&seed) || seed >= CLASSES;
    if (SELECTIVE..CHANGES).contains(&seed) || some_in_any_order && rng.chance(40) {
        any_order(&mut rng, &mut transport);
    }
    let mut rtt = rtt(&network, &paths, &transport);
    if (UEC..ADAPTIVE).contains(&seed) || is_adaptive && rng.chance(30) {
        port_queues(&mut rng, &mut transport, &mut rtt);
    }
    let mut paths = paths;
    if is_adaptive {
        adaptive(&mut rng, &mut transport);
        if transport.port_weights != PortWeights::None {
            repeat_paths(&mut rng, &mut paths);
        }
    }
    let mut case = Case { network, flows, paths, transport, rtt, changes: Vec::new() };
    if is_moving {
        let n_flows = case.flows.len();
        break_ports(&mut rng, &mut case, n_flows);
    } else if (CHANGES..SLOW).contains(&seed) || seed >= SLOW && rng.chance(20) {
        break_links(&mut rng, &mut case);
    }
    if is_impaired && (!is_moving || rng.chance(30)) {
        impair_links(&mut rng, &mut case);
    }
    case
}

/// Gives ports queues of their own, and mostly senders, receivers and trimming of Ultra Ethernet.
pub fn port_queues(rng: &mut Rng, transport: &mut Transport, rtt: &mut [RttWindow]) {
    let mtu = u64::from(transport.payload + transport.data_overhead);
    transport.pfc = false;
    transport.port_queue_per_100g = mtu * rng.pick(&[1, 3, 8, 20, 60]) + rng.range(0, mtu);
    transport.rto_ps = rng.pick(&[3_000_000, 20_000_000, 50_000_000, 200_000_000]);
    if rng.chance(60) {
        // Thresholds that the queues reach.
        let kmin_bytes = transport.port_queue_per_100g * rng.range(0, 6) / 10;
        let kmax_bytes = kmin_bytes + transport.port_queue_per_100g * rng.range(0, 6) / 10;
        transport.ecn_per_100g = EcnThresholds { kmin_bytes, kmax_bytes, ..transport.ecn_per_100g };
        transport.ecn_by_rate.clear();
        transport.ecn = true;
    }
    if rng.chance(20) {
        if transport.cc == Cc::Hpcc {
            transport.cc = Cc::Dcqcn;
        }
        return;
    }
    transport.cc = Cc::Nscc;
    transport.loss_recovery = LossRecovery::Uec;
    transport.trimming = rng.chance(80);
    if rng.chance(15) {
        // Senders and receivers of Ultra Ethernet over switches with a shared buffer, some of which pause.
        (transport.port_queue_per_100g, transport.trimming) = (0, false);
        transport.pfc = rng.chance(50);
        if transport.pfc {
            // Enough for every headroom.
            transport.buffer_bytes += 4 << 20;
            transport.tier_buffers = None;
        }
    }
    transport.recycles_paths = rng.chance(50);
    // With both, entropies are mixed.
    transport.spray_in_turn = rng.chance(50);
    transport.psn_range = rng.pick(&[0, 0, 64, 256]);
    transport.ack_interval = rng.pick(&[1, 4_000, 16_384]);
    (transport.window, transport.var_window, transport.rate_bound) = (false, false, false);
    // A control of windows that are several packets large.
    let factor = rng.pick(&[1, 1, 4]);
    for own in rtt.iter_mut() {
        own.rtt_ps *= factor;
        own.window_bytes *= factor;
    }
    let longest = rtt.iter().map(|own| own.rtt_ps).max().unwrap_or(1_000_000);
    let target_ps = rng.pick(&[0, 0, 500_000, 3_000_000]);
    let rate = rng.pick(&[100 * GBPS, 400 * GBPS]);
    transport.nscc = Nscc::of_network(longest, rate, transport.payload, target_ps, transport.trimming);
    transport.nscc.low_ps = rng.pick(&[1_000_000, 200_000]);
    // A shared buffer without PFC may drop credit, which is refused.
    if rng.chance(50) && (transport.pfc || transport.port_queue_per_100g > 0) {
        let window_packets = rng.pick(&[1, 4, 20, 150]);
        transport.credit = Some(ReceiverCredit {
            burst_packets: if rng.chance(70) { window_packets } else { 1 },
            window_packets,
            grant_packets: rng.pick(&[1, 4, 4, 10]),
            stretch_q16: rng.pick(&[65_536, 66_198, 90_000]),
        });
        if rng.chance(60) {
            transport.cc = Cc::Rccc;
        }
    }
}

/// Makes switches choose among paths, and most receivers take packets in any order.
pub fn adaptive(rng: &mut Rng, transport: &mut Transport) {
    transport.grade_packets = Some(rng.pick(&[1, 1, 2, 4, 20]) as u32);
    transport.port_weights = if rng.chance(50) { PortWeights::Paths } else { PortWeights::None };
    // Paths are those of the switches' choice.
    transport.recycles_paths = false;
    if transport.loss_recovery != LossRecovery::Uec && rng.chance(60) {
        any_order(rng, transport);
    }
}

/// Lists some paths of data several times, so that ports have different weights.
fn repeat_paths(rng: &mut Rng, paths: &mut [FlowPaths]) {
    for data in paths.iter_mut().map(|paths| &mut paths.data) {
        for _ in 0..rng.range(0, 3) {
            let again = data[rng.range(0, data.len() as u64 - 1) as usize].clone();
            data.push(again);
        }
    }
}

/// Makes receivers take packets in any order.
pub fn any_order(rng: &mut Rng, transport: &mut Transport) {
    transport.loss_recovery = LossRecovery::Selective;
    transport.psn_range = rng.pick(&[0, 0, 32, 50, 256]);
    transport.packet_threshold = rng.pick(&[0, 0, 1, 3, 16]);
    transport.spray_in_turn = rng.chance(50);
    // Timeouts near a round trip, so that acknowledgements arrive while everything is sent again.
    transport.rto_ps = rng.pick(&[3_000_000, 7_000_000, 20_000_000, 50_000_000, 200_000_000]);
}

pub const GBPS: u64 = 1_000_000_000;

/// A random tree of switches, sometimes with a second link between two of them, and hosts on any of them.
pub fn network(rng: &mut Rng, clock_ps: u64) -> Network {
    let n_hosts = rng.range(2, 12) as u32;
    let n_switches = rng.range(1, 4) as u32;
    let all_rates = [25, 40, 50, 100, 200, 400];
    // Half of the networks are uniform: there ties abound.
    let uniform = rng.chance(50);
    let one_rate = rng.pick(&all_rates) * GBPS;
    let one_delay = delay(rng, clock_ps);
    let mut links: Vec<Link> = Vec::new();
    let mut link = |rng: &mut Rng, a: NodeIdx, b: NodeIdx| {
        let (rate_bps, delay_ps) =
            if uniform { (one_rate, one_delay) } else { (rng.pick(&all_rates) * GBPS, delay(rng, clock_ps)) };
        let (a, b) = if rng.chance(50) { (a, b) } else { (b, a) };
        links.push(Link { a, b, rate_bps, delay_ps });
    };
    // Sometimes the switches have the low ids.
    let switches_first = rng.chance(30);
    let (host0, switch0) = if switches_first { (n_switches, 0) } else { (0, n_hosts) };
    for s in 1..n_switches {
        let to = switch0 + rng.range(0, s as u64 - 1) as u32;
        link(rng, switch0 + s, to);
    }
    for _ in 0..rng.range(0, 4) {
        let (a, b) = (rng.range(0, n_switches as u64 - 1) as u32, rng.range(0, n_switches as u64 - 1) as u32);
        if a != b {
            link(rng, switch0 + a, switch0 + b);
        }
    }
    for h in 0..n_hosts {
        let at = switch0 + rng.range(0, n_switches as u64 - 1) as u32;
        link(rng, host0 + h, at);
    }
    // Port order is link order: any order will do.
    for i in (1..links.len()).rev() {
        links.swap(i, rng.range(0, i as u64) as usize);
    }
    let is_host = |i: u32| (host0..host0 + n_hosts).contains(&i);
    let nodes = (0..n_hosts + n_switches)
        .map(|i| Node {
            kind: if is_host(i) { NodeKind::Host } else { NodeKind::Switch },
            id: i,
            server: if is_host(i) { i - host0 } else { u32::MAX },
        })
        .collect();
    Network {
        nodes,
        links,
        ranks: (host0..host0 + n_hosts).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    }
}

/// A network in which most pairs of hosts have several shortest paths: two or three tiers of switches, each linked to most of those above it.
pub fn several_ways(rng: &mut Rng, clock_ps: u64) -> Network {
    if rng.chance(20) {
        return network(rng, clock_ps);
    }
    let tiers: Vec<u32> = if rng.chance(60) {
        vec![rng.range(2, 4) as u32, rng.range(2, 4) as u32]
    } else {
        vec![rng.range(2, 3) as u32, rng.range(2, 3) as u32, rng.range(1, 3) as u32]
    };
    let n_switches: u32 = tiers.iter().sum();
    let n_hosts = tiers[0] * rng.range(1, 3) as u32;
    let uniform = rng.chance(60);
    let one_rate = rng.pick(&[25, 50, 100]) * GBPS;
    let one_delay = delay(rng, clock_ps);
    let mut links: Vec<Link> = Vec::new();
    let mut link = |rng: &mut Rng, a: NodeIdx, b: NodeIdx| {
        let (rate_bps, delay_ps) =
            if uniform { (one_rate, one_delay) } else { (rng.pick(&[25, 40, 50, 100]) * GBPS, delay(rng, clock_ps)) };
        links.push(Link { a, b, rate_bps, delay_ps });
    };
    let mut first = n_hosts;
    for (below, above) in tiers.iter().zip(&tiers[1..]) {
        for low in first..first + below {
            for high in first + below..first + below + above {
                // The first switch above is linked to all, so that everybody is reached.
                if high == first + below || rng.chance(85) {
                    link(rng, low, high);
                }
            }
        }
        first += below;
    }
    for host in 0..n_hosts {
        link(rng, host, n_hosts + host % tiers[0]);
    }
    // Port order is link order: any order will do.
    for i in (1..links.len()).rev() {
        links.swap(i, rng.range(0, i as u64) as usize);
    }
    let node = |i: u32| Node {
        kind: if i < n_hosts { NodeKind::Host } else { NodeKind::Switch },
        id: i,
        server: if i < n_hosts { i } else { u32::MAX },
    };
    Network {
        nodes: (0..n_hosts + n_switches).map(node).collect(),
        links,
        ranks: (0..n_hosts).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    }
}

/// 200 ns to 3 us; whole nanoseconds under the nanosecond clock.
pub fn delay(rng: &mut Rng, clock_ps: u64) -> u64 {
    if rng.chance(40) {
        rng.pick(&[200, 500, 1000, 3000]) * 1000
    } else {
        rng.range(200_000, 3_000_000) / clock_ps * clock_ps
    }
}

pub fn flows(rng: &mut Rng, n_hosts: u64, clock_ps: u64) -> Vec<Flow> {
    let n = if rng.chance(30) { rng.range(1, 4) } else { rng.range(2, 40) };
    let incast = rng.chance(40).then(|| rng.range(0, n_hosts - 1));
    let spread_ps = rng.pick(&[0, 0, 100_000, 3_000_000, 50_000_000]);
    let largest = rng.pick(&[3_000, 30_000, 300_000]);
    let same_size = rng.chance(40).then(|| rng.range(1, largest));
    let mut pairs = std::collections::HashMap::new();
    (0..n as u32)
        .map(|id| {
            let dst = incast.unwrap_or_else(|| rng.range(0, n_hosts - 1));
            let src = (dst + rng.range(1, n_hosts - 1)) % n_hosts;
            let k = pairs.entry((src, dst)).or_insert(0u16);
            *k += 1;
            // A third of the staggered flows still start at 0.
            let start_ps = if spread_ps == 0 || rng.chance(33) { 0 } else { rng.range(0, spread_ps) };
            Flow {
                id,
                src_rank: src as u32,
                dst_rank: dst as u32,
                bytes: same_size.unwrap_or_else(|| rng.range(1, largest)),
                start_ps: start_ps / clock_ps * clock_ps,
                sport: 10_000 + *k - 1,
                dport: 100,
                class: 3,
            }
        })
        .collect()
}

/// One random shortest path per flow and direction, or (spraying) all of them.
pub fn paths(rng: &mut Rng, network: &Network, flows: &[Flow]) -> Vec<FlowPaths> {
    let spray = rng.chance(50);
    paths_of(rng, network, flows, spray)
}

/// The shortest paths of each flow among which switches choose; sometimes in any order, and not all of them.
pub fn all_paths(rng: &mut Rng, network: &Network, flows: &[Flow]) -> Vec<FlowPaths> {
    let mut all = paths_of(rng, network, flows, true);
    if rng.chance(30) {
        for data in all.iter_mut().map(|paths| &mut paths.data) {
            for i in (1..data.len()).rev() {
                data.swap(i, rng.range(0, i as u64) as usize);
            }
            data.truncate(rng.range(1, data.len() as u64) as usize);
        }
    }
    all
}

/// One random shortest path per flow and direction, or all of them.
fn paths_of(rng: &mut Rng, network: &Network, flows: &[Flow], spray: bool) -> Vec<FlowPaths> {
    flows
        .iter()
        .map(|f| {
            let (src, dst) = (network.ranks[f.src_rank as usize], network.ranks[f.dst_rank as usize]);
            let (mut data, mut ack) = (shortest_paths(network, src, dst), shortest_paths(network, dst, src));
            // A flow uses one NIC of each host, even if a host has several.
            let nics = |path: &[ArcIdx]| (path[0], path[path.len() - 1] ^ 1);
            if data.iter().any(|p| nics(p) != nics(&data[0])) {
                let (from, to) = nics(&data[rng.range(0, data.len() as u64 - 1) as usize]);
                data.retain(|p| nics(p) == (from, to));
                ack.retain(|p| nics(p) == (to, from));
            }
            let mut choose = |mut all: Vec<Vec<ArcIdx>>| {
                if spray { all } else { vec![all.swap_remove(rng.range(0, all.len() as u64 - 1) as usize)] }
            };
            FlowPaths { data: choose(data), ack: choose(ack) }
        })
        .collect()
}

/// All shortest paths from `src` to `dst`, in port order.
pub fn shortest_paths(network: &Network, src: NodeIdx, dst: NodeIdx) -> Vec<Vec<ArcIdx>> {
    let out = network.out_arcs();
    let mut dist = vec![usize::MAX; network.nodes.len()];
    dist[dst as usize] = 0;
    let mut todo = VecDeque::from([dst]);
    while let Some(node) = todo.pop_front() {
        if node != dst && network.nodes[node as usize].kind == NodeKind::Host {
            continue;
        }
        for &arc in &out[node as usize] {
            let next = network.arc_to(arc);
            if dist[next as usize] == usize::MAX {
                dist[next as usize] = dist[node as usize] + 1;
                todo.push_back(next);
            }
        }
    }
    let mut found = Vec::new();
    let mut stack = vec![(src, Vec::new())];
    while let Some((node, path)) = stack.pop() {
        if node == dst {
            found.push(path);
            continue;
        }
        for &arc in out[node as usize].iter().rev() {
            let next = network.arc_to(arc);
            let forwards = next == dst || network.nodes[next as usize].kind == NodeKind::Switch;
            if forwards && dist[next as usize] != usize::MAX && dist[next as usize] + 1 == dist[node as usize] {
                let mut longer = path.clone();
                longer.push(arc);
                stack.push((next, longer));
            }
        }
    }
    found
}

/// The least buffer that a switch may have: headrooms and reserves of the largest, for packets of up to `largest` bytes.
pub fn fixed_part(network: &Network, largest: u32, pfc: bool) -> u64 {
    reserved(network, largest, 1, usize::from(pfc))
}

/// The same with `n_classes` traffic classes, of which `n_lossless` have headrooms.
pub fn reserved(network: &Network, largest: u32, n_classes: usize, n_lossless: usize) -> u64 {
    let (n_classes, n_lossless) = (n_classes as u64, n_lossless as u64);
    network
        .out_arcs()
        .iter()
        .zip(&network.nodes)
        .filter(|(_, node)| node.kind == NodeKind::Switch)
        .map(|(arcs, _)| {
            let headroom = |&a: &ArcIdx| {
                let (rate_in, rate_out) = (network.arc_rate(a ^ 1), network.arc_rate(a));
                let delay_ps = network.arc_link(a).delay_ps as u128;
                let in_flight = |delays: u128| (delays * rate_in as u128 * delay_ps / 8 / 1_000_000_000_000) as u64;
                let more = ((largest + 43) as u64 * rate_in.saturating_sub(rate_out)).div_ceil(rate_out);
                in_flight(3).max(in_flight(2) + 3 * largest as u64 + more) + 43 * (n_classes - 1)
            };
            arcs.iter().map(|a| n_lossless * headroom(a) + n_classes * 4096).sum::<u64>()
        })
        .max()
        .expect("there is a switch")
}

pub fn transport(rng: &mut Rng, network: &Network, cc: Cc, clock_ps: u64) -> Transport {
    let (data_overhead, ack_bytes) = match cc {
        Cc::Hpcc => (90, 88),
        Cc::Timely | Cc::Swift => (56, 60),
        Cc::None | Cc::Dcqcn | Cc::Dctcp => (48, 60),
        Cc::Nscc | Cc::Rccc => (64, 64),
    };
    let pfc = rng.chance(70);
    let windowed = matches!(cc, Cc::Hpcc | Cc::Dctcp | Cc::Swift) != rng.chance(20);
    // From "a handful of packets beyond the reserves" (storms, losses) to plenty.
    let payload = rng.pick(&[1000, 1000, 1000, 256, 4096]);
    let fixed_part = fixed_part(network, (payload + data_overhead).max(ack_bytes), pfc);
    let spare = rng.pick(&[10_000, 50_000, 200_000, 1_000_000, 32 << 20]);
    // A smaller buffer than the fixed part is refused before anything runs. Without headroom large packets need more.
    let buffer_bytes = if rng.chance(10) && pfc { fixed_part } else { fixed_part + spare };
    let k = rng.range(2_000, 150_000);
    let ecn = EcnThresholds {
        kmin_bytes: k,
        kmax_bytes: if cc == Cc::Dctcp || rng.chance(30) { k } else { k + rng.range(1, 400_000) },
        pmax_q32: rng.pick(&[1 << 32, 1 << 31, 858_993_459]),
    };
    let by_rate = if rng.chance(50) { vec![(100 * GBPS, ecn)] } else { Vec::new() };
    let eta = rng.range(80, 98);
    Transport {
        cc,
        clock_ps,
        seed: rng.next() as u32,
        routing_seed: rng.next() as u32,
        payload,
        data_overhead,
        ack_bytes,
        ack_interval: rng.pick(&[1, 1, 1, 2000, 10_000]),
        chunk: rng.pick(&[4000, 4000, 1000, 64_000]),
        loss_recovery: if rng.chance(70) { LossRecovery::Adapter } else { LossRecovery::Ns3 },
        nack_interval_ps: rng.pick(&[500_000_000, 5_000_000]),
        spray_in_turn: false,
        recycles_paths: false,
        grade_packets: None,
        port_weights: PortWeights::None,
        remote_queues_ps: 0,
        flowlet_gap_ps: 0,
        psn_range: 0,
        packet_threshold: 0,
        cnp_interval_ps: rng.pick(&[0, 0, 4_000_000, 50_000_000]),
        rto_ps: rng.pick(&[50_000_000, 200_000_000]),
        rto_retries: rng.pick(&[1, 3, 7]) as u32,
        ack_high_prio: rng.chance(50),
        rate_bound: rng.chance(90),
        window: windowed,
        var_window: rng.chance(70),
        min_rate: rng.pick(&[100_000_000, GBPS]),
        rai: rng.range(5, 1000) * 1_000_000,
        rhai: rng.range(50, 5000) * 1_000_000,
        g_q32: 1 << (32 - rng.range(2, 9)),
        dcqcn_alpha_ps: rng.pick(&[1_000_000, 55_000_000, 1_234_567]) / clock_ps * clock_ps,
        dcqcn_decrease_ps: rng.pick(&[4_000_000, 50_000_000]),
        dcqcn_increase_ps: rng.pick(&[300_000_000, 55_000_000, 8_000_000]),
        dcqcn_fast_recovery: rng.pick(&[1, 5]) as u32,
        dcqcn_clamp: rng.chance(30),
        eta_q40: (eta << 40) / 100,
        eta_q48: (eta << 48) / 100,
        mi_thresh: rng.pick(&[0, 0, 5]) as u32,
        int_multi: rng.pick(&[1, 4]) as u32,
        fast_react: rng.chance(70),
        timely_alpha_q32: (rng.range(10, 95) << 32) / 100,
        timely_beta_q32: (rng.range(10, 90) << 32) / 100,
        timely_tlow_ps: rng.range(2, 50) * 1_000_000,
        timely_thigh_ps: rng.range(60, 500) * 1_000_000,
        timely_min_rtt_ps: rng.range(2, 20) * 1_000_000,
        ecn: rng.chance(90),
        pfc,
        buffer_bytes,
        port_queue_per_100g: 0,
        trimming: false,
        tier_buffers: None,
        reserve_bytes: 4096,
        resume_offset_bytes: 3072,
        pfc_alpha_shift: rng.range(0, 4) as u32,
        ecn_by_rate: by_rate,
        ecn_per_100g: ecn,
        global_rtt: rng.chance(50),
        classes: Vec::new(),
        // Drawn last and for Swift alone, so that the cases of others stay.
        swift: if cc == Cc::Swift { swift(rng) } else { Swift::default() },
        nscc: Nscc::default(),
        credit: None,
        cut_through_bytes: 0,
        watchdog: None,
        ecn_average_weight: 0,
        wred_drops: false,
    }
}

/// Base RTT and window as `RttWindow` defines them; all flows share the maxima if `global_rtt`.
pub fn rtt(network: &Network, paths: &[FlowPaths], transport: &Transport) -> Vec<RttWindow> {
    let own: Vec<RttWindow> = paths
        .iter()
        .map(|p| {
            let links: Vec<&Link> = p.data[0].iter().map(|&a| network.arc_link(a)).collect();
            // A switch that cuts through waits for no more than the header.
            let is_cut = |k: usize| {
                transport.cut_through_bytes > 0
                    && links.get(k + 1).is_some_and(|next| next.rate_bps <= links[k].rate_bps)
            };
            let send = |k: usize| {
                let bytes = transport.payload.min(if is_cut(k) { transport.cut_through_bytes } else { u32::MAX });
                let ps = bytes as u64 * 8 * 1_000_000_000_000 / links[k].rate_bps;
                ps / transport.clock_ps * transport.clock_ps
            };
            let rtt_ps: u64 = (0..links.len()).map(|k| 2 * links[k].delay_ps + send(k)).sum();
            let least = links.iter().map(|l| l.rate_bps).min().expect("paths have links");
            RttWindow { rtt_ps, window_bytes: (rtt_ps as u128 * least as u128 / 8 / 1_000_000_000_000) as u64 }
        })
        .collect();
    if !transport.global_rtt {
        return own;
    }
    let most = |f: fn(&RttWindow) -> u64| own.iter().map(f).max().expect("there are flows");
    vec![RttWindow { rtt_ps: most(|r| r.rtt_ps), window_bytes: most(|r| r.window_bytes) }; paths.len()]
}

fn swift(rng: &mut Rng) -> Swift {
    Swift {
        target_ps: rng.pick(&[0, 0, 3_000_000, 25_000_000]),
        hop_ps: rng.pick(&[0, 250_000, 2_000_000]),
        range_ps: rng.pick(&[0, 5_000_000, 50_000_000]),
        fs_alpha_ps: rng.range(100_000, 40_000_000),
        fs_floor_ps: rng.range(0, 4_000_000),
        ai_q16: rng.range(1 << 12, 4 << 16),
        beta_q32: (rng.range(10, 100) << 32) / 100,
        max_mdf_q32: (rng.range(10, 90) << 32) / 100,
    }
}
