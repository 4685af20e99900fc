//! Traffic classes against times that anybody can reckon: by the oracle, and by the engine.

use crate::oracle::{Opts, Order, Outcome, simulate};
use crate::support::random::shortest_paths;
use crate::support::tasks::queue_pair;
use crate::support::transports::transport;
use crate::support::{Case, engine};
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{Link, Network, Node, NodeKind, SwitchNames};
use hyperfold_network::transport::{Cc, RttWindow, TrafficClass};

const GBPS: u64 = 1_000_000_000;
/// Delay of every link.
const DELAY: u64 = 1_000_000;
/// Bytes of a full data packet on the wire, of which 1000 are payload.
const FULL: u32 = 1_048;
/// Time in ps that a full data packet takes at 100 Gb/s: the length of a slot.
const SLOT: u64 = 83_840;
/// Time in ps that an ACK of 60 bytes takes at 100 Gb/s.
const ACK: u64 = 4_800;

/// Hosts first, then switches; a link for each pair of ends with its rate in Gb/s.
fn network(n_hosts: u32, n_switches: u32, links: &[(u32, u32, u64)]) -> Network {
    let node = |id: u32| match id < n_hosts {
        true => Node { kind: NodeKind::Host, id, server: id },
        false => Node { kind: NodeKind::Switch, id, server: u32::MAX },
    };
    let link = |&(a, b, gbps): &(u32, u32, u64)| Link { a, b, rate_bps: gbps * GBPS, delay_ps: DELAY };
    Network {
        nodes: (0..n_hosts + n_switches).map(node).collect(),
        links: links.iter().map(link).collect(),
        ranks: (0..n_hosts).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    }
}

/// Three hosts at one switch, the first with a link of `first_gbps`, the others with 100 Gb/s.
fn star(first_gbps: u64) -> Network {
    network(3, 1, &[(0, 3, first_gbps), (1, 3, 100), (2, 3, 100)])
}

/// Hosts 0 to 3 at one switch, 4 and 5 at another, all with 100 Gb/s. 400 Gb/s between the switches.
fn two_switches() -> Network {
    network(6, 2, &[(0, 6, 100), (1, 6, 100), (2, 6, 100), (3, 6, 100), (6, 7, 400), (4, 7, 100), (5, 7, 100)])
}

/// Flows of full packets that start at 0, each as (sender, receiver, packets, class), without congestion control, marks or timeouts.
fn case(network: Network, flows: &[(u32, u32, u64, u8)], classes: &[TrafficClass]) -> Case {
    let flow = |(id, &(src, dst, packets, class)): (usize, &(u32, u32, u64, u8))| Flow {
        bytes: 1_000 * packets,
        start_ps: 0,
        class,
        ..queue_pair(id as u32, src, dst)
    };
    let flows: Vec<Flow> = flows.iter().enumerate().map(flow).collect();
    let paths = |f: &Flow| FlowPaths {
        data: shortest_paths(&network, f.src_rank, f.dst_rank),
        ack: shortest_paths(&network, f.dst_rank, f.src_rank),
    };
    let paths = flows.iter().map(paths).collect();
    let rtt = vec![RttWindow { rtt_ps: 6_500_000, window_bytes: 80_000 }; flows.len()];
    let mut transport = transport(Cc::None);
    transport.ecn = false;
    transport.buffer_bytes = 32 << 20;
    transport.rto_ps = 10_000_000_000;
    transport.classes = classes.to_vec();
    Case { network, flows, paths, transport, rtt, changes: Vec::new() }
}

/// Two lossless classes of these levels and quanta.
fn classes(levels: [u32; 2], quanta: [u32; 2]) -> Vec<TrafficClass> {
    [0, 1].map(|c| TrafficClass { level: levels[c], quantum_bytes: quanta[c], lossless: true }).to_vec()
}

/// Runs a case by the oracle, whose outcome `check` looks at, and by the engine, which must end all flows at the same times. Returns the engine's drops by arc.
fn by_both(case: &Case, check: impl Fn(&Outcome)) -> Vec<u64> {
    let outcome = simulate(case, Order::Lineage, Opts::default());
    assert_eq!(outcome.failure, None);
    check(&outcome);
    let built = engine::finish("by hand", case, BuildOptions::default());
    assert_eq!(engine::fct_ps(&built), outcome.finish_ps, "the engine and the oracle");
    engine::drops_by_arc(case, &built)
}

/// Both flows end when they should.
fn end_at(case: &Case, expected: [u64; 2], name: &str) {
    by_both(case, |outcome| assert_eq!(outcome.finish_ps, expected.map(Some), "{name}"));
}

/// When the flow ends whose last packet leaves the star's switch in slot `slot`, counted from 0 at the time when a first packet could arrive there and leave it at
/// once. A first packet does so in slot 1. The answer goes back over links of 100 Gb/s.
fn end_of_slot(slot: u64) -> u64 {
    (slot + 1) * SLOT + 2 * DELAY + 2 * (ACK + DELAY)
}

/// Two hosts send at line rate to a third. The lower class waits until the higher one has sent everything.
#[test]
fn a_higher_level_goes_first() {
    let (n, m) = (50, 30);
    let flows = [(0, 2, n, 0), (1, 2, m, 1)];
    let quanta = [FULL; 2];
    let first_is_higher = case(star(100), &flows, &classes([0, 1], quanta));
    end_at(&first_is_higher, [end_of_slot(n), end_of_slot(n + m)], "class 0 is higher");
    // Both arrive at once, the first flow's packet first, and it leaves before the other one is there.
    let second_is_higher = case(star(100), &flows, &classes([1, 0], quanta));
    end_at(&second_is_higher, [end_of_slot(n + m), end_of_slot(m + 1)], "class 1 is higher");
    // Quanta of different levels have nothing to do with each other.
    let large = case(star(100), &flows, &classes([0, 1], [FULL, 20 * FULL]));
    end_at(&large, [end_of_slot(n), end_of_slot(n + m)], "the lower one has a large quantum");
}

/// The higher class comes at half the rate, so the lower one gets every other slot until then, and all after it.
#[test]
fn a_lower_level_gets_what_the_higher_leaves() {
    let (n, m) = (40, 60);
    let case = case(star(50), &[(0, 2, n, 0), (1, 2, m, 1)], &classes([0, 1], [FULL; 2]));
    // Its answers take twice as long on its own link.
    end_at(&case, [end_of_slot(2 * n) + ACK, end_of_slot(n + m)], "half of the rate is left");
}

/// Two classes of one level share the switch's port by their quanta, from the first turn on.
#[test]
fn quanta_share_a_port() {
    for n in [1, 2, 3, 4, 5, 7, 30, 100] {
        let m = 100;
        let port = |quanta| case(star(100), &[(0, 2, n, 0), (1, 2, m, 1)], &classes([0, 0], quanta));
        let last = end_of_slot(n + m);
        // Three packets of the first class, one of the second, and so on.
        end_at(&port([3 * FULL, FULL]), [end_of_slot(n + (n - 1) / 3), last], "3 to 1");
        // In turn.
        let even = end_of_slot(2 * n - 1);
        end_at(&port([FULL, FULL]), [even, if n == m { end_of_slot(2 * n) } else { last }], "1 to 1");
        // The first turn leaves a debt of half a packet: three packets, two, three, two.
        let others = |n: u64| 2 * ((n - 1) / 5) + u64::from((n - 1) % 5 >= 3);
        end_at(&port([5 * FULL / 2, FULL]), [end_of_slot(n + others(n)), last], "5 to 2");
    }
}

/// The same where a host sends data of both classes itself.
#[test]
fn quanta_share_a_nic() {
    for n in [1, 2, 3, 4, 5, 7, 30, 100] {
        let m = 100;
        let nic = |quanta| case(star(100), &[(0, 2, n, 0), (0, 2, m, 1)], &classes([0, 0], quanta));
        // The NIC begins a slot before the switch.
        let end = |sent_before: u64| end_of_slot(sent_before + 1);
        end_at(&nic([3 * FULL, FULL]), [end(n - 1 + (n - 1) / 3), end(n + m - 1)], "3 to 1");
        end_at(&nic([FULL, 3 * FULL]), [end(n - 1 + (3 * (n - 1)).min(m)), end(last_of_second(n, m))], "1 to 3");
    }
}

/// Packets that go before the last one of `m` where one of `n` others goes first, then three of these, and so on.
fn last_of_second(n: u64, m: u64) -> u64 {
    m - 1 + (1 + (m - 1) / 3).min(n)
}

/// Classes of a sender have levels too, and its answers go with their class.
#[test]
fn levels_hold_in_a_nic() {
    let (n, m) = (20, 30);
    let case = case(star(100), &[(0, 2, n, 0), (0, 2, m, 1)], &classes([1, 0], [FULL; 2]));
    // The first packet leaves before the other flow starts.
    end_at(&case, [end_of_slot(n + m), end_of_slot(m + 1)], "class 1 is higher");
}

/// Both classes come in by one port of the second switch and find less than half of the rate that they need. The lossless one is paused and loses nothing, the
/// lossy one loses packets. So the lossless one fills its host's link from its first packet to its last.
#[test]
fn a_lossless_class_loses_nothing_beside_a_lossy_one() {
    let n = 300;
    let flows = [(0, 4, n, 0), (1, 4, n, 0), (2, 5, n, 1), (3, 5, n, 1)];
    let mut both = classes([0, 0], [FULL; 2]);
    both[1].lossless = false;
    let mut case = case(two_switches(), &flows, &both);
    // 200,000 bytes beside headrooms of one class and reserves of two: at each port two delays and three packets.
    let headroom = |gbps: u64| (2 * gbps * 1_000 / 8 + 3 * u64::from(FULL)).max(3 * gbps * 1_000 / 8);
    case.transport.buffer_bytes = 200_000 + 4 * headroom(100) + headroom(400) + 5 * 2 * 4_096;
    case.transport.pfc_alpha_shift = 0;
    let trunk = SLOT / 4;
    let first_at_last_port = SLOT + trunk + 2 * DELAY;
    let least = first_at_last_port + 2 * n * SLOT + DELAY + 2 * (ACK + DELAY) + ACK / 4 + DELAY;
    let drops = by_both(&case, |outcome| {
        assert_eq!(outcome.classes.drops[0], 0, "the lossless class");
        assert!(outcome.classes.drops[1] > 100, "the lossy class lost {} packets", outcome.classes.drops[1]);
        assert!(outcome.pfc_pauses > 0, "nobody paused");
        let last = outcome.finish_ps[..2].iter().flatten().max().expect("two flows ended");
        // Another answer or a pause frame may be on the wire between the switches when the last answer comes there.
        let wait = last.checked_sub(least).expect("no link is faster than its rate");
        assert!(wait <= 2 * ACK, "the lossless class waits {wait} ps");
    });
    let lost_to = |host: u32| drops[case.paths[if host == 4 { 0 } else { 2 }].data[0][2] as usize];
    assert_eq!(lost_to(4), 0);
    assert!(lost_to(5) > 100, "the engine lost {} packets", lost_to(5));
    assert_eq!(drops.iter().sum::<u64>(), lost_to(5), "and none elsewhere");
}

/// Two hosts send to one, and a third to another over the same link between switches. Pauses of the first class do not hold the second.
#[test]
fn a_pause_of_one_class_does_not_hold_another() {
    let n = 300;
    let flows = [(0, 4, n, 0), (1, 4, n, 0), (2, 5, n, 1)];
    let alone = n * SLOT + SLOT / 4 + SLOT + 3 * DELAY + 2 * ACK + ACK / 4 + 3 * DELAY;
    let mut case = case(two_switches(), &flows, &classes([1, 0], [FULL; 2]));
    case.transport.buffer_bytes = 700_000;
    case.transport.pfc_alpha_shift = 2;
    by_both(&case, |outcome| {
        let beside = outcome.classes.sent_beside_paused;
        assert!(outcome.pfc_pauses > 0 && beside > 50, "{beside} packets were sent beside a paused class");
        assert_eq!(outcome.drops, 0);
        let wait = outcome.finish_ps[2].expect("it ended") - alone;
        // A packet of the first class may be on the wire between the switches, and a pause frame or an answer on the way back.
        assert!(wait <= SLOT / 4 + ACK, "the second class waits {wait} ps");
    });
    case.transport.classes.clear();
    let together = simulate(&case, Order::Lineage, Opts::default());
    assert!(together.finish_ps[2].expect("it ended") > alone + 20 * SLOT, "with one class it waits for the others");
}
