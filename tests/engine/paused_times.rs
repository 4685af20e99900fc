//! Paused time against times that anybody can reckon: by the oracle, and by the engine.

use crate::oracle::{LATE_PS, Opts, Order, simulate};
use crate::support::random::{fixed_part, shortest_paths};
use crate::support::tasks::queue_pair;
use crate::support::transports::transport;
use crate::support::{Case, engine};
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{Link, Network, Node, NodeKind, SwitchNames};
use hyperfold_network::transport::{Cc, RttWindow};

/// Delay of both links.
const DELAY: u64 = 50_000;
/// Bytes of a full data packet on the wire, of which 1000 are payload.
const FULL: u32 = 1_048;
/// Time in ps that a full data packet takes at 100 Gb/s. It takes ten times as long at 10 Gb/s.
const SLOT: u64 = 83_840;
/// Time in ps that a pause frame of 43 bytes takes at 100 Gb/s.
const FRAME: u64 = 3_440;
/// The fifth packet pauses its sender. It arrives at the end of slot 5.
const PAUSED_AT: u64 = 5 * SLOT + DELAY + FRAME + DELAY;
/// The arc from the sender to the switch.
const FROM_SENDER: usize = 0;

/// A host sends seven packets at 100 Gb/s to a host whose link has 10 Gb/s. The switch between them has 500 bytes beside headroom and reserves.
///
/// The first packet leaves at once, so after packet `k` the switch holds `k - 1` of them. With the fifth that is 4,192 bytes, 96 above the reserve. The threshold is
/// an eighth of 500, so the fifth goes into the headroom, and the sender is paused. The sixth and the seventh, under way by then, go into the headroom too. A packet
/// leaves in every tenth slot from the arrival of the first one on, and from the headroom first: it is empty in slot 30.
fn case(changes: Vec<TimedChange>) -> Case {
    let node = |id: u32, kind, server| Node { kind, id, server };
    let link = |a, gbps: u64| Link { a, b: 2, rate_bps: gbps * 1_000_000_000, delay_ps: DELAY };
    let network = Network {
        nodes: vec![node(0, NodeKind::Host, 0), node(1, NodeKind::Host, 1), node(2, NodeKind::Switch, u32::MAX)],
        links: vec![link(0, 100), link(1, 10)],
        ranks: vec![0, 1],
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    };
    let flows = vec![Flow { bytes: 7_000, start_ps: 0, ..queue_pair(0, 0, 1) }];
    let paths = vec![FlowPaths { data: shortest_paths(&network, 0, 1), ack: shortest_paths(&network, 1, 0) }];
    let mut transport = transport(Cc::None);
    transport.ecn = false;
    transport.pfc = true;
    transport.rto_ps = 10_000_000_000;
    transport.buffer_bytes = fixed_part(&network, FULL, true) + 500;
    let rtt = vec![RttWindow { rtt_ps: 2_000_000, window_bytes: 80_000 }];
    Case { network, flows, paths, transport, rtt, changes }
}

/// Runs a case by the oracle and, with several lengths of a step, by the engine. Both must find that the sender was paused once, for `paused_ps`, and nobody else.
fn is_paused_for(case: &Case, paused_ps: u64, name: &str) {
    let outcome = simulate(case, Order::Lineage, Opts::default());
    assert_eq!(outcome.failure, None, "{name}");
    let mut expected = vec![0; 2 * case.network.links.len()];
    expected[FROM_SENDER] = paused_ps;
    assert_eq!((outcome.pfc_pauses, &outcome.paused_ps), (1, &expected), "{name}: the oracle");
    for step_divisor in 1..4 {
        let built = engine::finish(name, case, BuildOptions { step_divisor, ..BuildOptions::default() });
        assert_eq!(engine::pauses(&built.tables), 1, "{name}: the engine");
        assert_eq!(engine::paused_by_arc(case, &built, LATE_PS), expected, "{name}: the engine");
    }
}

/// The resume frame leaves when the headroom is empty, 30 slots after the first arrival. The pause frame left 4 slots after it, and both take as long.
#[test]
fn a_pause_lasts_from_frame_to_frame() {
    is_paused_for(&case(Vec::new()), 26 * SLOT, "one pause");
}

/// The link fails while it is paused, when all packets are at the switch, and comes back before the last answer.
#[test]
fn a_pause_ends_with_its_link() {
    let failed = |after: u64| {
        let at = |time_ps, change| TimedChange { time_ps, change };
        let down_ps = PAUSED_AT + after;
        case(vec![at(down_ps, NetworkChange::LinkDown(0)), at(down_ps + 100_000, NetworkChange::LinkUp(0))])
    };
    for after in [200_000, 1_000_001, 26 * SLOT - 1] {
        is_paused_for(&failed(after), after, &format!("the link fails after {after} ps"));
    }
    is_paused_for(&failed(26 * SLOT + 1), 26 * SLOT, "the link fails after the pause");
}
