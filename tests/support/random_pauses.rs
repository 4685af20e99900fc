//! Random cases whose switches watch how long they are paused, or mark by averages of queues.

use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind, SwitchNames};
use hyperfold_network::transport::{Cc, EcnThresholds, PauseWatchdog};

use super::Case;
use super::random::{
    ADAPTIVE, AVERAGED, CHANGES, CLASSES, CONTROLS, GBPS, IMPAIRED, MOVING, Rng, SELECTIVE, UEC, WATCHED, any_order,
    case, delay, fixed_part, flows, reserved, rtt, transport,
};
use super::random_changes::break_links;
use super::random_classes::classes;

/// A case that marks by averages of queues, mostly with thresholds that its queues reach.
pub fn averaged(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let others = [0, SELECTIVE, UEC, UEC, ADAPTIVE, CLASSES, IMPAIRED, WATCHED];
    let from = rng.pick(&others) + 90_000 + 7 * (seed - AVERAGED);
    let any_control = rng.chance(20);
    let obeys = |cc: Cc| any_control || matches!(cc, Cc::Dcqcn | Cc::Dctcp | Cc::Nscc);
    let mut case =
        (from..).map(case).find(|case| case.transport.ecn && obeys(case.transport.cc)).expect("many obey marks");
    let transport = &mut case.transport;
    transport.ecn_average_weight = rng.pick(&[1, 1, 2, 3, 4, 6, 9]);
    if rng.chance(70) {
        let kmin_bytes = rng.range(0, 4_000);
        let kmax_bytes = kmin_bytes + rng.pick(&[0, 4_000, 20_000]);
        transport.ecn_per_100g = EcnThresholds { kmin_bytes, kmax_bytes, ..transport.ecn_per_100g };
        transport.ecn_by_rate.clear();
    }
    case
}

/// A case with a watchdog. Its times are near those for which switches pause.
pub fn watched(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let others = [0, SELECTIVE, CHANGES, ADAPTIVE, CLASSES, IMPAIRED, MOVING];
    let from = rng.pick(&others) + 50_000 + 7 * (seed - WATCHED);
    let mut case = match rng.chance(75) {
        true => around_a_ring(&mut rng, CONTROLS[(seed % 6) as usize]),
        false => (from..).map(case).find(|case| case.transport.lossless_classes() > 0).expect("most have PFC"),
    };
    case.transport.watchdog = Some(PauseWatchdog {
        detect_ps: rng.pick(&[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 250_000_000]) + rng.range(0, 2) * 7,
        restore_ps: rng.pick(&[100_000, 1_000_000, 1_000_000, 8_000_000]) + rng.range(0, 2) * 3,
        drops: rng.chance(65),
    });
    case
}

/// Flows around a ring of switches, all in one direction. So each switch may wait for the next one until nobody can go on.
fn around_a_ring(rng: &mut Rng, cc: Cc) -> Case {
    let clock_ps = rng.pick(&[1, 1000]);
    let n_switches = rng.range(3, 5) as u32;
    let n_hosts = n_switches * rng.range(1, 3) as u32;
    let (rate_bps, delay_ps) = (rng.pick(&[25, 40, 100]) * GBPS, delay(rng, clock_ps));
    let link = |a: NodeIdx, b: NodeIdx| Link { a, b, rate_bps, delay_ps };
    let around = (0..n_switches).map(|s| link(n_hosts + s, n_hosts + (s + 1) % n_switches));
    let to_hosts = (0..n_hosts).map(|host| link(host, n_hosts + host % n_switches));
    let node = |i: u32| match i < n_hosts {
        true => Node { kind: NodeKind::Host, id: i, server: i },
        false => Node { kind: NodeKind::Switch, id: i, server: u32::MAX },
    };
    let network = Network {
        nodes: (0..n_hosts + n_switches).map(node).collect(),
        links: around.chain(to_hosts).collect(),
        ranks: (0..n_hosts).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    };
    let mut flows = flows(rng, u64::from(n_hosts), clock_ps);
    flows.iter_mut().for_each(|flow| flow.bytes *= rng.pick(&[1, 3, 3]));
    let way = |from: u32, to: u32, onward: bool| -> Vec<ArcIdx> {
        let (mut at, end) = (from % n_switches, to % n_switches);
        let mut path = vec![2 * (n_switches + from)];
        while at != end {
            path.push(if onward { 2 * at } else { 2 * ((at + n_switches - 1) % n_switches) + 1 });
            at = (if onward { at + 1 } else { at + n_switches - 1 }) % n_switches;
        }
        path.push(2 * (n_switches + to) + 1);
        path
    };
    let same_way = rng.chance(30);
    let paths = |flow: &Flow| FlowPaths {
        data: vec![way(flow.src_rank, flow.dst_rank, true)],
        ack: vec![way(flow.dst_rank, flow.src_rank, same_way)],
    };
    let paths: Vec<FlowPaths> = flows.iter().map(paths).collect();
    let mut transport = transport(rng, &network, cc, clock_ps);
    transport.pfc = true;
    let largest = (transport.payload + transport.data_overhead).max(transport.ack_bytes);
    transport.buffer_bytes = fixed_part(&network, largest, true) + rng.pick(&[5_000, 10_000, 20_000]);
    if rng.chance(30) {
        classes(rng, &network, &mut transport, &mut flows);
        transport.classes[0].lossless = true;
        transport.buffer_bytes = reserved(&network, largest, transport.classes.len(), transport.classes.len()) + 20_000;
    }
    if rng.chance(30) {
        any_order(rng, &mut transport);
    }
    let rtt = rtt(&network, &paths, &transport);
    let mut case = Case { network, flows, paths, transport, rtt, changes: Vec::new() };
    if rng.chance(20) {
        break_links(rng, &mut case);
    }
    case
}
