//! Switches that cut through, against times worked out by hand.
//!
//! Links have delays of 1,000 ns. A packet is 4,096 bytes and 48 of headers, a header 64 bytes, an ACK 60. At 100 Gb/s they take 331,520, 5,120 and 4,800 ps.

use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::routing::{FlowPaths, PayloadClock, path_rtt_window};
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeKind, SlowArc, SwitchNames};
use hyperfold_network::transport::{Cc, LossRecovery, Transport};

use crate::oracle::{Opts, Order, Outcome, simulate};
use crate::support::random::{GBPS, rtt};
use crate::support::{Case, engine, random, transports};

const NS: u64 = 1000;
const DELAY_PS: u64 = 1000 * NS;

/// Two hosts, 0 and 1, at the ends of a line of switches. Link `k` has `gbps[k]`.
fn line(gbps: &[u64]) -> Network {
    let n_switches = gbps.len() as u32 - 1;
    let at = |place: u32| {
        if place == 0 {
            0
        } else if place > n_switches {
            1
        } else {
            place + 1
        }
    };
    let link = |(k, &gbps): (usize, &u64)| Link {
        a: at(k as u32),
        b: at(k as u32 + 1),
        rate_bps: gbps * GBPS,
        delay_ps: DELAY_PS,
    };
    let node = |id: u32| match id < 2 {
        true => Node { kind: NodeKind::Host, id, server: id },
        false => Node { kind: NodeKind::Switch, id, server: u32::MAX },
    };
    Network {
        nodes: (0..n_switches + 2).map(node).collect(),
        links: gbps.iter().enumerate().map(link).collect(),
        ranks: vec![0, 1],
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    }
}

fn cut_through(cc: Cc) -> Transport {
    Transport { payload: 4096, cut_through_bytes: 64, rto_ps: 50_000 * NS, ..transports::transport(cc) }
}

/// Flows from host 0 to host 1, as (bytes, time of their start in ps), along a line of links.
fn along(gbps: &[u64], transport: Transport, flows: &[(u64, u64)]) -> Case {
    let n = gbps.len() as ArcIdx;
    let paths =
        FlowPaths { data: vec![(0..n).map(|k| 2 * k).collect()], ack: vec![(0..n).rev().map(|k| 2 * k + 1).collect()] };
    let flow = |(id, &(bytes, start_ps)): (u32, &(u64, u64))| Flow {
        id,
        src_rank: 0,
        dst_rank: 1,
        bytes,
        start_ps,
        sport: 1,
        dport: 2,
        class: 0,
    };
    let flows: Vec<Flow> = (0..).zip(flows).map(flow).collect();
    let (network, paths) = (line(gbps), vec![paths; flows.len()]);
    let rtt = rtt(&network, &paths, &transport);
    Case { network, flows, paths, transport, rtt, changes: Vec::new() }
}

/// When the flows of a case end, ps: by the engine, and the same by the oracle.
fn ends(case: &Case) -> Vec<u64> {
    let mut built = engine::tables(case, BuildOptions::default());
    engine::run_cpu(&mut built.tables);
    engine::conserved(&built.tables).unwrap_or_else(|e| panic!("{e}"));
    let by_engine: Vec<u64> = built.flow_rows.iter().map(|&row| built.tables.flow_tx[row].finish).collect();
    let by_oracle: Vec<Option<u64>> = simulate(case, Order::Lineage, Opts::default()).finish_ps;
    assert_eq!(by_engine.iter().copied().map(Some).collect::<Vec<_>>(), by_oracle);
    by_engine
}

/// When a flow of one packet ends, ps.
fn one_packet(gbps: &[u64], transport: Transport) -> u64 {
    ends(&along(gbps, transport, &[(4096, 0)]))[0]
}

#[test]
fn each_switch_on_an_idle_path_waits_for_the_header_alone() {
    // Rate, and what a packet, a header and an ACK take, ps.
    for (gbps, packet, header, ack) in
        [(100, 331_520, 5_120, 4_800), (400, 82_880, 1_280, 1_200), (800, 41_440, 640, 600)]
    {
        for n_switches in [1, 3, 5] {
            let rates = vec![gbps; n_switches + 1];
            let switches = n_switches as u64;
            let back = (switches + 1) * (DELAY_PS + ack);
            let one_way = switches * (header + DELAY_PS) + packet + DELAY_PS;
            let cut = one_packet(&rates, cut_through(Cc::None));
            assert_eq!(cut, one_way + back, "{n_switches} switches at {gbps} Gb/s");
            let stored = one_packet(&rates, Transport { cut_through_bytes: 0, ..cut_through(Cc::None) });
            assert_eq!(stored - cut, switches * (packet - header), "ACKs of 60 bytes take as long as ever");
        }
    }
}

#[test]
fn a_switch_stores_what_goes_on_faster() {
    let acks = |ps: u64| ps + 2 * (DELAY_PS + DELAY_PS);
    // From 100 to 400 Gb/s the egress would run dry; from 400 to 100 it never does.
    assert_eq!(one_packet(&[100, 400], cut_through(Cc::None)), acks(331_520 + 82_880 + 4_800 + 1_200));
    assert_eq!(one_packet(&[400, 100], cut_through(Cc::None)), acks(1_280 + 331_520 + 4_800 + 1_200));
    // The first of three switches stores, the others do not.
    let up_and_down = one_packet(&[100, 400, 400, 100], cut_through(Cc::None));
    assert_eq!(up_and_down, acks(331_520 + 1_280 + 1_280 + 331_520 + 2 * (4_800 + 1_200)) + 4 * DELAY_PS);
    // ACKs under HPCC have 88 bytes: 7,040 ps, of which a switch waits for 5,120. Data has 4,186 bytes: 334,880 ps.
    let hpcc = Transport { ack_bytes: 88, data_overhead: 90, ..cut_through(Cc::None) };
    assert_eq!(one_packet(&[100, 100], hpcc), acks(5_120 + 334_880 + 5_120 + 7_040));
    // The header of a packet may be longer than what is left of a message.
    let short = Transport { cut_through_bytes: 1000, ..cut_through(Cc::None) };
    let five_bytes = ends(&along(&[100, 100], short, &[(5, 0)]))[0];
    assert_eq!(five_bytes, acks(2 * (53 * 80) + 2 * 4_800));
    // In nanoseconds, 5 for the header, 332 for the packet and 5 for the ACK.
    let ns = Transport { clock_ps: NS, ..cut_through(Cc::None) };
    assert_eq!(one_packet(&[100, 100], ns), acks((5 + 332 + 5 + 5) * NS));
}

#[test]
fn packets_of_a_message_follow_without_a_gap() {
    // 4,096 and 1,000 bytes over three switches. The last packet leaves each link 331,520 ps after the first one began to.
    let case = along(&[100; 4], cut_through(Cc::None), &[(5096, 0)]);
    let last_begins = 3 * (5_120 + DELAY_PS) + 331_520;
    assert_eq!(ends(&case), [last_begins + 83_840 + DELAY_PS + 4 * (DELAY_PS + 4_800)]);
}

#[test]
fn the_rates_at_the_beginning_of_a_transmission_count() {
    // The egress of the switch falls from 200 to 100 Gb/s at 1,000 ns. The first packet is on its way to the switch by then.
    let rate = |arc, gbps: u64, at_ns: u64| TimedChange {
        time_ps: at_ns * NS,
        change: NetworkChange::Rate { arc, rate_bps: gbps * GBPS },
    };
    let mut case = along(&[100, 200], cut_through(Cc::None), &[(4096, 0), (4096, 2000 * NS)]);
    case.changes = vec![rate(2, 100, 1000)];
    let back = 2 * DELAY_PS + 4_800 + 2_400;
    let first = 331_520 + DELAY_PS + 331_520 + DELAY_PS + back;
    assert_eq!(ends(&case), [first, 2000 * NS + 5_120 + DELAY_PS + 331_520 + DELAY_PS + back]);
    // A link that is slow from the beginning.
    let mut case = along(&[100, 200], cut_through(Cc::None), &[(4096, 0)]);
    case.network.slow_arcs = vec![SlowArc { arc: 2, rate_bps: 100 * GBPS }];
    assert_eq!(ends(&case), [5_120 + DELAY_PS + 331_520 + DELAY_PS + back]);
    // A host that sends more slowly than its link would is slower than the egress.
    let mut case = along(&[100, 100], cut_through(Cc::None), &[(4096, 0)]);
    case.network.slow_arcs = vec![SlowArc { arc: 0, rate_bps: 50 * GBPS }];
    assert_eq!(ends(&case), [2 * 331_520 + DELAY_PS + 331_520 + DELAY_PS + 2 * (DELAY_PS + 4_800)]);
}

#[test]
fn a_link_that_fails_loses_packets_whose_header_has_not_arrived() {
    let idle = 5_120 + DELAY_PS + 331_520 + DELAY_PS + 2 * (DELAY_PS + 4_800);
    for (down_ps, is_lost) in [(5_120 + DELAY_PS, true), (5_121 + DELAY_PS, false), (300_000 + DELAY_PS, false)] {
        let mut case = along(&[100, 100], cut_through(Cc::None), &[(4096, 0)]);
        case.changes = vec![
            TimedChange { time_ps: down_ps, change: NetworkChange::LinkDown(0) },
            TimedChange { time_ps: 2000 * NS, change: NetworkChange::LinkUp(0) },
        ];
        let end = ends(&case)[0];
        // What is lost is sent again after the timeout.
        assert_eq!(end, if is_lost { 50_000 * NS + idle } else { idle }, "down at {down_ps} ps");
    }
}

#[test]
fn base_round_trips_follow() {
    let packet = PayloadClock { payload: 4096, cut_through: 64, clock_ps: 1 };
    let of_path = |gbps: &[u64], packet| {
        let path: Vec<ArcIdx> = (0..gbps.len() as ArcIdx).map(|k| 2 * k).collect();
        path_rtt_window(&line(gbps), &path, packet)
    };
    // A payload takes 327,680 ps at 100 Gb/s, a header 5,120.
    assert_eq!(of_path(&[100; 4], packet).rtt_ps, 8 * DELAY_PS + 3 * 5_120 + 327_680);
    assert_eq!(of_path(&[100, 400, 400, 100], packet).rtt_ps, 8 * DELAY_PS + 2 * (327_680 + 1_280));
    assert_eq!(of_path(&[100; 4], PayloadClock { cut_through: 0, ..packet }).rtt_ps, 8 * DELAY_PS + 4 * 327_680);
    assert_eq!(of_path(&[100, 100], PayloadClock { payload: 20, ..packet }).rtt_ps, 4 * DELAY_PS + 2 * 1_600);
    assert_eq!(of_path(&[100; 2], packet).window_bytes, (4 * DELAY_PS + 332_800) / 80);
}

/// A flow alone, of any kind of case, if nothing is lost or paused.
#[test]
fn no_flow_takes_longer_on_an_idle_network() {
    let (mut n, mut faster) = (0, 0);
    for seed in random::CUT_THROUGH + 1000..random::CUT_THROUGH + 1400 {
        let mut case = random::case(seed);
        case.flows.truncate(1);
        case.paths.truncate(1);
        case.rtt.truncate(1);
        case.changes.clear();
        let transport = &mut case.transport;
        (transport.cc, transport.window, transport.credit, transport.watchdog) = (Cc::None, false, None, None);
        // Longer than any flow.
        transport.rto_ps = 1_000_000_000 * NS;
        if transport.loss_recovery == LossRecovery::Uec {
            transport.loss_recovery = LossRecovery::Selective;
        }
        let simulated = |case: &Case| simulate(case, Order::Lineage, Opts::default());
        let with = simulated(&case);
        case.transport.cut_through_bytes = 0;
        let without = simulated(&case);
        let troubled = |out: &Outcome| out.drops > 0 || out.pfc_pauses > 0;
        if troubled(&with) || troubled(&without) || with.packet_hops != without.packet_hops {
            continue;
        }
        let (Some(with), Some(without)) = (with.finish_ps[0], without.finish_ps[0]) else {
            panic!("seed {seed}: not finished")
        };
        assert!(with <= without, "seed {seed}: {with} ps with cut-through, {without} without");
        n += 1;
        faster += u32::from(with < without);
    }
    println!("{n} flows alone, {faster} faster");
    assert!(n > 250 && faster > 150, "{n} {faster}");
}
