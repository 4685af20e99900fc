//! What goes wrong in random networks: links that are slow, change their rate, lose packets or fail, and flows that move to other ports.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_network::changes::{
    NetworkChange, Outage, PortFailover, RoutedFlow, TimedChange, begin_where_moved, changes_of,
};
use hyperfold_network::routing::{Ecmp, FlowKey, RoutingPolicy, Spray};
use hyperfold_network::topology::{ArcIdx, Link, Network, NodeIdx, NodeKind, SlowArc};
use hyperfold_network::transport::TierBuffers;

use super::Case;
use super::random::{GBPS, Rng, delay};

/// Up to four links at a reduced rate, some of them in one direction only. With these the networks have eight rates at most, as many as HPCC can name.
pub fn slow_arcs(rng: &mut Rng, network: &Network) -> Vec<SlowArc> {
    let mut rates: BTreeMap<ArcIdx, u64> = BTreeMap::new();
    for _ in 0..rng.range(1, 4) {
        let link = rng.range(0, network.links.len() as u64 - 1) as u32;
        let rate_bps = rng.pick(&[1, 10, 10, 25, 25, 40, 50, 100, 200]) * GBPS;
        let arcs = rng.pick(&[[2 * link, 2 * link + 1], [2 * link; 2], [2 * link + 1; 2]]);
        rates.extend(arcs.map(|arc| (arc, rate_bps)));
    }
    let is_slower = |&(arc, rate_bps): &(ArcIdx, u64)| rate_bps < network.arc_link(arc).rate_bps;
    rates.into_iter().filter(is_slower).map(|(arc, rate_bps)| SlowArc { arc, rate_bps }).collect()
}

/// Changes rates of links for some times, and lets links lose packets. Buffers grow by what pauses need then.
pub fn impair_links(rng: &mut Rng, case: &mut Case) {
    let links = case.network.links.len() as u64;
    let latest_ps = rng.pick(&[1_000_000, 10_000_000, 60_000_000]);
    let mut impaired: BTreeSet<(bool, ArcIdx)> = BTreeSet::new();
    let mut grows = 0;
    for _ in 0..rng.range(1, 6) {
        let arc = (2 * rng.range(0, links - 1) + rng.range(0, 1)) as ArcIdx;
        // Credit that is lost is never given again.
        let loses = rng.chance(40) && case.transport.credit.is_none();
        let own_bps = case.network.arc_rate(arc);
        if !impaired.insert((loses, arc)) {
            continue;
        }
        let rates = [1, 10, 25, 25, 40, 50, 100, 200].map(|gbps| gbps * GBPS);
        let slower: Vec<u64> = rates.into_iter().filter(|&rate| rate < own_bps).collect();
        if !loses && slower.is_empty() {
            continue;
        }
        let mut time_ps = if rng.chance(20) { 0 } else { rng.range(0, latest_ps) };
        let value = |rng: &mut Rng| match loses {
            true => rng.pick(&[1 << 20, 1 << 26, 1 << 29, 1 << 31]),
            false => rng.pick(&slower),
        };
        let change = |value: u64| match loses {
            true => NetworkChange::Loss { arc, share_q32: value as u32 },
            false => NetworkChange::Rate { arc, rate_bps: value },
        };
        for _ in 0..rng.range(1, 4) {
            let now = value(rng);
            case.changes.push(TimedChange { time_ps, change: change(now) });
            if !loses && case.transport.pfc {
                let largest = (case.transport.payload + case.transport.data_overhead).max(case.transport.ack_bytes);
                grows += u64::from(largest + 43) * case.network.arc_rate(arc ^ 1).div_ceil(now);
            }
            let longest_ps = rng.pick(&[300_000, 5_000_000, 30_000_000]);
            time_ps += rng.range(1, longest_ps);
            if rng.chance(70) {
                let usual = if loses { 0 } else { own_bps };
                case.changes.push(TimedChange { time_ps, change: change(usual) });
                time_ps += rng.range(1, 5_000_000);
            }
        }
    }
    case.changes.sort_by_key(|timed| timed.time_ps);
    grows *= case.transport.classes.len().max(1) as u64;
    case.transport.buffer_bytes += grows;
    if let Some(TierBuffers { leaf, agg, spine }) = &mut case.transport.tier_buffers {
        [leaf, agg, spine].into_iter().for_each(|buffer| *buffer += grows);
    }
}

/// Makes links fail, some of them for good, and lets routing react after a while.
pub fn break_links(rng: &mut Rng, case: &mut Case) {
    let failover = vec![PortFailover::Off; case.flows.len()];
    break_some(rng, case, &failover, &[]);
}

/// Links most hosts to a second switch.
pub fn second_ports(rng: &mut Rng, network: &mut Network, clock_ps: u64) {
    let switches: Vec<NodeIdx> = (0..network.nodes.len() as NodeIdx)
        .filter(|&node| network.nodes[node as usize].kind == NodeKind::Switch)
        .collect();
    for host in network.ranks.clone() {
        let first = network.links.iter().find(|link| link.a == host || link.b == host).expect("every host has a link");
        let (ends, first_rate, first_delay) = ([first.a, first.b], first.rate_bps, first.delay_ps);
        let b = rng.pick(&switches);
        if rng.chance(80) && !ends.contains(&b) {
            let delay_ps = if rng.chance(70) { first_delay } else { delay(rng, clock_ps) };
            let rate_bps = if rng.chance(70) { first_rate } else { rng.pick(&[25, 40, 100]) * GBPS };
            network.links.push(Link { a: host, b, rate_bps, delay_ps });
        }
    }
}

/// Makes links fail, most of them those of hosts with two ports, and lets flows move to other ports, those from `first_qp` on with all of their port. Credit does
/// not move.
pub fn break_ports(rng: &mut Rng, case: &mut Case, first_qp: usize) {
    let net = &case.network;
    let ports = |host: NodeIdx| (0u32..).zip(&net.links).filter(move |(_, l)| l.a == host || l.b == host);
    let of_hosts: Vec<u32> = net
        .ranks
        .iter()
        .filter(|&&host| ports(host).count() > 1)
        .flat_map(|&host| ports(host).map(|(i, _)| i))
        .collect();
    let failover = |flow: usize| match (case.transport.credit.is_none(), flow < first_qp) {
        (false, _) => PortFailover::Off,
        (true, true) => PortFailover::On,
        (true, false) => PortFailover::Together,
    };
    let failover: Vec<PortFailover> = (0..case.flows.len()).map(failover).collect();
    break_some(rng, case, &failover, &of_hosts);
    let starts_ps: Vec<u64> = case.flows.iter().take(first_qp).map(|flow| flow.start_ps).collect();
    begin_where_moved(&starts_ps, &mut case.paths, &mut case.changes);
}

/// Makes links fail, those of `often` more often than others.
fn break_some(rng: &mut Rng, case: &mut Case, failover: &[PortFailover], often: &[u32]) {
    let links = case.network.links.len() as u64;
    let link = |rng: &mut Rng| match often.is_empty() || rng.chance(30) {
        true => rng.range(0, links - 1) as u32,
        false => rng.pick(often),
    };
    let latest_ps = rng.pick(&[1_000_000, 10_000_000, 60_000_000]);
    let outages: Vec<Outage> = (0..rng.range(1, 4))
        .map(|_| {
            let down_ps = if rng.chance(15) { 0 } else { rng.range(0, latest_ps) };
            let length_ps = rng.pick(&[300_000, 5_000_000, 30_000_000]);
            Outage {
                links: (0..rng.range(1, 2)).map(|_| link(rng)).collect(),
                down_ps: Some(down_ps),
                up_ps: (!rng.chance(20)).then(|| down_ps + rng.range(1, length_ps)),
                // Some are planned.
                drain_ps: (down_ps % 4 == 1).then_some(length_ps / 2),
            }
        })
        .collect();
    let reroute_ps = rng.pick(&[0, 1_000_000, 20_000_000]);
    // Deadlines that come while links are down, and some after.
    case.transport.rto_ps = rng.pick(&[10_000_000, 40_000_000, 100_000_000]);
    case.transport.rto_retries = rng.pick(&[2, 7]) as u32;
    let routed: Vec<RoutedFlow> = case
        .flows
        .iter()
        .zip(&case.paths)
        .zip(failover)
        .map(|((flow, paths), &failover)| RoutedFlow {
            key: FlowKey::from(flow),
            lane: None,
            paths,
            first: paths,
            failover,
        })
        .collect();
    let seed = rng.next() as u32;
    let policy: Box<dyn RoutingPolicy> =
        if rng.chance(50) { Box::new(Ecmp { seed }) } else { Box::new(Spray { seed, max_paths: 4 }) };
    case.changes = changes_of(&case.network, &outages, reroute_ps, &routed, &*policy).changes;
}
