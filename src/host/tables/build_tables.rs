//! Builds the tables of one experiment from a network, its flows and their paths.
//!
//! Layer: host. Nothing but this folder knows both the graph and the columns.

use std::collections::BTreeMap;

use bytemuck::Zeroable;

use hyperfold_base::budget;
use hyperfold_base::units::{PS_PER_S, tx_ps};
use hyperfold_columns::{
    AVERAGE_WORDS, ClassQueue, EndOwner, FRAME_BYTES, FlowIdx, FlowRx, FlowTx, IntVec, LinkEndIdx, NEVER, NO_FLOW,
    NONE, Nic, NicIdx, OwnedTables, Packet, PacketDetails, PacketIdx, Plan, Port, QueueReports, RateColumns, RttSample,
    SHARED_FLOWS_LEFT, SHARED_HEADER, Switch, SwitchIdx, TaskIdx, TimeSeries, WATCH_WORDS, Watchdog, Wire, meta, psn,
    task,
};
use hyperfold_config::spec::SeriesKeys;
use hyperfold_engine::{grow, stops};
use hyperfold_llm::workload::Flow;
use hyperfold_network::topology::{ArcIdx, Network, NodeKind};
use hyperfold_network::transport::{Cc, PauseWatchdog, TrafficClass, Transport, psn_range};

use crate::setup::error::{BuildError, larger_buffer};
use crate::tables::build_joined;
use crate::tables::build_tasks;
use crate::tables::exp_row::{header, int_rates};
use crate::tables::link_ends::{Ends, add_data_paths, add_paths, owners};
use crate::tables::network_changes::{changes, moves_to, rate_columns, slowest_rates};
pub use crate::tables::packet_case::{BuildOptions, GraphCase, PacketCase};
use crate::tables::path_choices::PathChoices;
use crate::tables::task_row_cache::TaskRowCache;

/// The tables of an experiment, and what their rows stand for.
pub struct Built {
    /// Tables for the engine, filled for the start.
    pub tables: OwnedTables,
    /// Row of `flow_tx` of each flow of the case, in the order of the case's flows.
    pub flow_rows: Vec<FlowIdx>,
    /// The arc that each link end transmits on: first NICs, then ports.
    pub end_arcs: Vec<ArcIdx>,
}

/// Builds the tables of one experiment.
pub fn build(case: &PacketCase) -> Result<Built, BuildError> {
    build_sharing(case, None)
}

/// Builds the tables of one experiment. `shared`: a cache of the rows of its task graph, which is filled if it is empty.
pub(crate) fn build_sharing(case: &PacketCase, shared: Option<&TaskRowCache>) -> Result<Built, BuildError> {
    let net = case.network;
    let tr = case.transport;
    let wire_full = tr.payload as u64 + tr.data_overhead as u64;
    if wire_full >= 65_536 {
        return Err(BuildError::LargePacket(wire_full));
    }
    let ends = match case.graph {
        Some(g) if case.flows.is_empty() && !case.options.links && case.options.series.is_none() => {
            Ends::of_tasks(net, &g)
        }
        _ => Ends::new(net),
    };
    let step = net.links.iter().filter(|l| net.is_packet_link(l)).map(|l| l.delay_ps).min().unwrap_or(1);
    let min_latency_ps = case.graph.map_or(u64::MAX, |g| build_tasks::min_latency(&g));
    let step = (step.min(min_latency_ps) / case.options.step_divisor).max(1);
    let rates = int_rates(net, tr.cc, case.options.flow_level, case.changes)?;
    let mut t = OwnedTables::default();
    t.exps.push(header(case, &rates, step));
    nics(&mut t, case, &ends);
    switches(&mut t, case, &ends, &rates)?;
    let mut choices = PathChoices::new(case.transport.port_weights, case.transport.flowlet_gap_ps > 0);
    let moves = moves_to(case, &ends);
    let flow_rows = flows(&mut t, case, &ends, &moves, &mut choices)?;
    if let Some(g) = case.graph {
        let owners = owners(net, &ends);
        let (qp_rows, exp_id) = (&flow_rows[g.first_qp..], case.options.exp_id);
        if !shared.is_some_and(|rows| rows.fill(&mut t, &g, qp_rows, &owners, exp_id)) {
            build_tasks::tasks(&mut t, &g, qp_rows, &owners, exp_id)?;
            shared.inspect(|rows| rows.keep(&t, &g, qp_rows, &owners));
        }
    }
    if case.options.flow_level {
        if let Some(g) = case.graph {
            build_joined::joined(&mut t, g.graph, &flow_rows[g.first_qp..]);
        }
        flow_shared(&mut t, case);
        changes(&mut t, case, &ends, &mut choices, &flow_rows, &rates);
        lengths(&mut t)?;
        return Ok(Built { tables: t, flow_rows, end_arcs: ends.arcs });
    }
    let n_ends = ends.arcs.len();
    budget::announce("wires, clocks and paused times", (n_ends * (size_of::<Wire>() + 3 * size_of::<u64>())) as u64);
    t.wires = vec![Wire { head: PacketIdx::NONE, tail: PacketIdx::NONE, n: 0, pad0: 0 }; n_ends];
    t.clocks = vec![NEVER; 2 * n_ends];
    t.pause_ps = vec![0; n_ends];
    for (n, nic) in t.nics.iter().enumerate() {
        t.clocks[n_ends + n] = nic.next_start.min(nic.next_task);
    }
    let port_n_most = t.switches.iter().map(|s| s.port_n).max().unwrap_or(0);
    let mask_words = port_n_most.div_ceil(32);
    let words_of_port = 1 + mask_words as usize + tr.classes.len();
    t.shared = vec![0; SHARED_HEADER as usize + t.ports.len() * words_of_port];
    class_queues(&mut t, tr);
    t.shared[SHARED_FLOWS_LEFT as usize] = flows_left(&t, case);
    let rtts = case.options.rtt_cap as usize * t.flow_tx.len();
    budget::announce_rows::<RttSample>("samples of round-trip times (output.rtt)", rtts as u64);
    t.rtts = vec![RttSample { at: 0, rtt: 0 }; rtts];
    if tr.takes_any_order() {
        psn_bits(&mut t, tr)?;
    }
    if tr.cc == Cc::Hpcc {
        t.ints = vec![IntVec { hop: [0; 5] }; t.flow_tx.len()];
    }
    t.exps[0].mask_words = mask_words;
    let fill = first_pools(&mut t, case, &moves, step);
    let packets: u64 = fill.iter().map(|&n| u64::from(n)).sum();
    // With telemetry each packet has a vector too.
    let telemetry = if t.ints.is_empty() { 0 } else { size_of::<IntVec>() };
    let record = size_of::<Packet>() + size_of::<PacketDetails>() + telemetry;
    budget::announce("records of packets", packets.saturating_mul(record as u64));
    grow::first_fill(&mut t.view(), &fill);
    changes(&mut t, case, &ends, &mut choices, &flow_rows, &rates);
    let words_before = t.shared.len();
    averages(&mut t, tr);
    flowlets(&mut t, &choices, tr);
    remote_queues(&mut t, tr);
    watchdog(&mut t, tr);
    lengths(&mut t)?;
    debug_assert!(!t.changes.has_losses || words_before == t.exps[0].loss_words(LinkEndIdx::new(n_ends)));
    if let Some(keys) = case.options.series {
        let SeriesKeys { links, flows, interval_ps, cap } = keys;
        t.series = TimeSeries { links, flows, interval: interval_ps, cap: cap as usize, ..TimeSeries::default() };
    }
    stops::begin(&mut t.view());
    let now = t.clocks.iter().copied().min().unwrap_or(NEVER);
    t.exps[0].now = if now == NEVER { 0 } else { now };
    Ok(Built { tables: t, flow_rows, end_arcs: ends.arcs })
}

/// Fills the bits of packets in any order, with the range that the transport gives, or one of four bandwidth-delay products.
///
/// # Errors
/// A queue pair sends more bytes than an ACK can count beside its offset.
fn psn_bits(t: &mut OwnedTables, tr: &Transport) -> Result<(), BuildError> {
    let mut posted: Vec<u64> = t.flow_tx.iter().map(|tx| tx.size).collect();
    for task in t.tasks.iter().filter(|task| task.flags & task::MESSAGE != 0) {
        posted[task.flow.usize()] += task.bytes.next_multiple_of(tr.payload as u64);
    }
    if let Some(&n) = posted.iter().find(|&&n| n >= psn::BYTE_MASK - tr.payload as u64) {
        return Err(BuildError::TooLarge { what: "bytes of one queue pair whose packets are taken in any order", n });
    }
    let windows = t.flow_tx.iter().map(|tx| tx.window.div_ceil(tr.payload as u64)).max().unwrap_or(0);
    let range = psn_range(windows, tr.psn_range) as u32;
    t.exps[0].psn_range = range;
    t.exps[0].packet_threshold = tr.packet_threshold;
    let words = (t.exps[0].bits_of_qp() / 32) as usize * t.flow_tx.len();
    budget::announce_rows::<u32>("bits of packets in any order (transport.psn_range)", words as u64);
    t.psn_bits = vec![0; words];
    Ok(())
}

/// Fills the queues of traffic classes: one for each link end and class.
fn class_queues(t: &mut OwnedTables, tr: &Transport) {
    const { assert!(TrafficClass::MOST == meta::CLASS_MASK as usize + 1) };
    t.exps[0].class_n = tr.classes.len() as u32;
    let ends = t.nics.len() + t.ports.len();
    budget::announce_rows::<ClassQueue>("queues of traffic classes", (ends * tr.classes.len()) as u64);
    for end in 0..ends {
        let headroom = end.checked_sub(t.nics.len()).map_or(0, |port| t.ports[port].headroom);
        t.class_queues.extend(tr.classes.iter().map(|class| ClassQueue {
            q_head: PacketIdx::NONE,
            q_tail: PacketIdx::NONE,
            headroom: if class.lossless { headroom } else { 0 },
            // Without PFC all are lossy, whatever they say.
            lossless: u32::from(tr.pfc && class.lossless),
            level: class.level,
            quantum: class.quantum_bytes,
            ..ClassQueue::zeroed()
        }));
    }
}

/// Adds the shared words about averages of queues where switches mark by them.
fn averages(t: &mut OwnedTables, tr: &Transport) {
    if tr.ecn_average_weight == 0 || !tr.ecn {
        return;
    }
    let words = t.ports.len() * tr.classes.len().max(1) * AVERAGE_WORDS as usize;
    budget::announce_rows::<u32>("averages of queues (transport.ecn_average_weight)", words as u64);
    (t.exps[0].average_first, t.exps[0].average_weight) = (t.shared.len() as u32, tr.ecn_average_weight);
    t.shared.resize(t.shared.len() + words, 0);
}

/// Adds the shared words about flowlets where switches route by them.
fn flowlets(t: &mut OwnedTables, choices: &PathChoices, tr: &Transport) {
    let words = choices.flowlet_words();
    if words > 0 {
        budget::announce_rows::<u32>("flowlets (routing.flowlet_gap_us)", words as u64);
        (t.exps[0].flowlet_first, t.exps[0].flowlet_gap) = (t.shared.len() as u32, tr.flowlet_gap_ps);
        t.shared.resize(t.shared.len() + words, 0);
    }
}

/// Adds the shared words about queues further on where switches report them.
fn remote_queues(t: &mut OwnedTables, tr: &Transport) {
    if tr.remote_queues_ps == 0 || tr.grade_packets.is_none() {
        return;
    }
    let words = t.ports.len() * tr.classes.len().max(1);
    budget::announce_rows::<u32>("queues that switches report (routing.remote_us)", words as u64);
    t.exps[0].remote_first = t.shared.len() as u32;
    t.shared.resize(t.shared.len() + words, 0);
    t.changes.reports = Some(QueueReports { period: tr.remote_queues_ps, next: 0 });
}

/// Adds the shared words about pauses where switches watch them. They come last.
fn watchdog(t: &mut OwnedTables, tr: &Transport) {
    let Some(PauseWatchdog { detect_ps, restore_ps, drops }) = tr.watchdog else { return };
    let words = t.ports.len() * tr.classes.len().max(1) * WATCH_WORDS as usize;
    budget::announce_rows::<u32>("pauses that are watched (transport.pfc_watchdog)", words as u64);
    t.exps[0].watch_first = t.shared.len() as u32;
    t.shared.resize(t.shared.len() + words, 0);
    t.changes.watchdog = Some(Watchdog { detect: detect_ps, restore: restore_ps, drops, next: NEVER });
}

/// Counts the flows and tasks that have to end.
fn flows_left(t: &OwnedTables, case: &PacketCase) -> u32 {
    let plain = case.graph.map_or(case.flows.len(), |g| g.first_qp);
    (plain + t.tasks.len()) as u32
}

/// Fills the shared words at flow level: without the words for pauses, as ports pause nobody.
fn flow_shared(t: &mut OwnedTables, case: &PacketCase) {
    t.shared = vec![0; SHARED_HEADER as usize + t.ports.len()];
    t.shared[SHARED_FLOWS_LEFT as usize] = flows_left(t, case);
}

fn nics(t: &mut OwnedTables, case: &PacketCase, ends: &Ends) {
    let (net, tr) = (case.network, case.transport);
    for &arc in &ends.arcs[..ends.n_nics as usize] {
        let RateColumns { rate, tx_full, tx_ack, .. } = rate_columns(tr, net.arc_rate(arc), &[]);
        t.nics.push(Nic {
            exp: case.options.exp_id,
            peer: ends.end_of_arc[(arc ^ 1) as usize],
            rate,
            delay: net.arc_link(arc).delay_ps,
            tx_full,
            tx_ack,
            busy_until: NEVER,
            timer: NEVER,
            rto: NEVER,
            next_start: NEVER,
            next_task: NEVER,
            task_head: TaskIdx::NONE,
            signals: NONE,
            ack_head: PacketIdx::NONE,
            ack_tail: PacketIdx::NONE,
            free_head: PacketIdx::NONE,
            to_return: PacketIdx::NONE,
            waiting: FlowIdx::NONE,
            ..Nic::zeroed()
        });
    }
}

/// Describes for an error message what takes a switch's buffer at each port if PFC is on.
const PFC_WANTS: &str = "PFC's headroom (3 x rate x delay / 8 each, more on short links and where a port receives faster than it sends; none with `transport.pfc = false`) and reserve";

/// Says in an error message how traffic classes add to what a switch needs.
const BY_CLASS: &str = ", for each of transport.classes (lossy ones need no headroom)";

/// Bytes that a port must still take in after it sent a pause: the reference's three one-way delays at the rate at which it receives. Short links and large
/// packets need more: a round trip, the packet that the pause frame waits for, the packet that the peer is transmitting, and one packet for the frame and for
/// counting by packets. A port that sends more slowly than it receives takes in more while that packet and the frame leave. `slowest` has the lowest rates of
/// directions whose rate changes, in bps.
fn headroom_bytes(net: &Network, arc: ArcIdx, max_wire: u32, slowest: &BTreeMap<ArcIdx, u64>) -> u64 {
    let rate_in = u128::from(net.arc_rate(arc ^ 1));
    let rate_out = u128::from(slowest.get(&arc).copied().unwrap_or_else(|| net.arc_rate(arc)));
    let delay_ps = u128::from(net.arc_link(arc).delay_ps);
    let in_flight = |delays: u128| delays * rate_in * delay_ps / (8 * PS_PER_S as u128);
    let leaving = u128::from(max_wire + FRAME_BYTES);
    let more = (leaving * rate_in.saturating_sub(rate_out)).div_ceil(rate_out);
    in_flight(3).max(in_flight(2) + 3 * u128::from(max_wire) + more) as u64
}

/// Bytes that come in while frames about the other traffic classes go before a pause frame.
fn frames_before(tr: &Transport) -> u64 {
    u64::from(FRAME_BYTES) * (tr.classes.len() as u64).saturating_sub(1)
}

/// Returns the shift of a port's dynamic threshold. A link faster than the first host's NIC gets a larger share of the buffer.
pub(crate) fn alpha_shift(shift: u32, rate_bps: u64, host_rate: u64) -> u32 {
    let (mut shift, mut r) = (shift, rate_bps);
    while r > host_rate && shift > 0 {
        r /= 2;
        shift -= 1;
    }
    shift
}

fn switches(t: &mut OwnedTables, case: &PacketCase, ends: &Ends, rates: &[u32]) -> Result<(), BuildError> {
    let (net, tr) = (case.network, case.transport);
    // The reference compares every port with the first host's NIC. Its link's own rate counts, so that a slow NIC changes no switch.
    let host_rate = ends.arcs.first().map_or(u64::MAX, |&arc| net.arc_link(arc).rate_bps);
    let max_wire = (tr.payload + tr.data_overhead).max(tr.ack_bytes);
    let mut plan_first = 0u64;
    let tiers = if tr.tier_buffers.is_some() { net.tiers() } else { Vec::new() };
    let top = tiers.iter().copied().max().unwrap_or(0);
    let slowest = slowest_rates(case.changes);
    for (s, &(node, first, n)) in ends.switches.iter().enumerate() {
        let mut headrooms = 0u64;
        for p in first.run(n) {
            let arc = ends.arcs[p.end(ends.n_nics).usize()];
            let rate = net.arc_rate(arc);
            // Without PFC no pause is sent, so no headroom is needed.
            let headroom = if tr.pfc { headroom_bytes(net, arc, max_wire, &slowest) + frames_before(tr) } else { 0 };
            headrooms += headroom * tr.lossless_classes();
            let headroom = tr.port_queue_for(rate).unwrap_or(headroom).min(u32::MAX as u64 / 2) as u32;
            let ecn = tr.ecn_for(rate);
            // Its own receiver limits what comes to a host.
            let marks = tr.credit.is_none() || net.nodes[net.arc_to(arc) as usize].kind == NodeKind::Switch;
            let (kmin, kmax) = if marks { (ecn.kmin_bytes, ecn.kmax_bytes) } else { (u64::MAX, u64::MAX) };
            // The share of the buffer is for what the port receives.
            let shift = alpha_shift(tr.pfc_alpha_shift, net.arc_rate(arc ^ 1), host_rate);
            let RateColumns { tx_full, tx_ack, rate_idx, .. } = rate_columns(tr, rate, rates);
            t.ports.push(Port {
                exp: case.options.exp_id,
                switch_idx: SwitchIdx::new(s),
                peer: ends.end_of_arc[(arc ^ 1) as usize],
                rate_idx,
                rate,
                delay: net.arc_link(arc).delay_ps,
                tx_full,
                tx_ack,
                kmin: kmin.min(u32::MAX as u64) as u32,
                kmax: kmax.min(u32::MAX as u64) as u32,
                pmax_q32: ecn.pmax_q32,
                headroom,
                shift,
                q_head: PacketIdx::NONE,
                q_tail: PacketIdx::NONE,
                frame_head: PacketIdx::NONE,
                frame_tail: PacketIdx::NONE,
                in_frames: PacketIdx::NONE,
                merged: PacketIdx::NONE,
                to_return: PacketIdx::NONE,
                ..Port::zeroed()
            });
        }
        let classes = tr.classes.len().max(1) as u64;
        let fixed = headrooms + classes * n as u64 * tr.reserve_bytes as u64;
        let mut buffer = tr.tier_buffers.map_or(tr.buffer_bytes, |buffers| buffers.of(tiers[node as usize], top));
        // Links inside a server give credit for what their switch has room for, so it always holds what is in flight.
        if net.nodes[node as usize].server != u32::MAX && fixed > buffer {
            buffer += fixed;
        }
        // A switch that no packet crosses needs no buffer.
        let shares_buffer = tr.port_queue_per_100g == 0;
        if fixed > buffer && shares_buffer && !case.flows.is_empty() && !case.options.flow_level {
            return Err(BuildError::SmallBuffer {
                switch: net.names()[node as usize].clone(),
                ports: n,
                needs: fixed,
                has: buffer,
                wants: if tr.pfc { PFC_WANTS } else { "reserve" },
                classes: if tr.classes.is_empty() { "" } else { BY_CLASS },
                advice: larger_buffer(fixed, tr.pfc),
            });
        }
        t.switches.push(Switch {
            exp: case.options.exp_id,
            port_first: first,
            port_n: n,
            plan_first: plan_first as u32,
            free_head: PacketIdx::NONE,
            max_wire,
            shared_size: buffer.saturating_sub(fixed),
            ..Switch::zeroed()
        });
        // At flow level no switch plans packets.
        plan_first += if case.options.flow_level { 0 } else { n as u64 * n as u64 };
        if plan_first > u32::MAX as u64 {
            return Err(BuildError::TooLarge { what: "pairs of ports of one switch", n: plan_first });
        }
    }
    budget::announce_rows::<Plan>("plan entries of switches", plan_first);
    t.plans = vec![Plan { head: PacketIdx::NONE, tail: PacketIdx::NONE }; plan_first as usize];
    const { assert!(FRAME_BYTES < 64) };
    Ok(())
}

fn flows(
    t: &mut OwnedTables,
    case: &PacketCase,
    ends: &Ends,
    moves: &[u32],
    choices: &mut PathChoices,
) -> Result<Vec<FlowIdx>, BuildError> {
    let n = case.flows.len();
    let nic_of = |arc: Option<&ArcIdx>, f: &Flow| -> Result<NicIdx, BuildError> {
        let end = arc.map_or(LinkEndIdx::NONE, |&a| ends.end_of_arc[a as usize]);
        match end.owner(ends.n_nics) {
            EndOwner::Nic(nic) => Ok(nic),
            EndOwner::Port(_) => Err(BuildError::NotAHost { flow: f.id, node: f.src_rank }),
        }
    };
    let mut nic_src = Vec::with_capacity(n);
    let mut nic_dst = Vec::with_capacity(n);
    for (f, p) in case.flows.iter().zip(case.paths) {
        nic_src.push(nic_of(p.data.first().and_then(|d| d.first()), f)?);
        nic_dst.push(nic_of(p.ack.first().and_then(|d| d.first()), f)?);
    }
    let mut sorted: Vec<u32> = (0..n as u32).collect();
    sorted.sort_by_key(|&i| (nic_src[i as usize], case.flows[i as usize].start_ps, case.flows[i as usize].id));
    let mut rows = vec![FlowIdx(0); n];
    let mut last_nic = NicIdx(0);
    for &i in &sorted {
        add_places(t, moves, (last_nic, nic_src[i as usize]));
        last_nic = nic_src[i as usize];
        let row = t.flow_tx.len();
        let (f, p, w) = (&case.flows[i as usize], &case.paths[i as usize], &case.rtt[i as usize]);
        budget::check("rows of flows");
        rows[i as usize] = FlowIdx::new(row);
        let nic = nic_src[i as usize];
        let owner = &mut t.nics[nic];
        if owner.flow_n == 0 {
            owner.flow_first = FlowIdx::new(row);
            owner.next_start = f.start_ps;
        }
        owner.flow_n += 1;
        let span = add_data_paths(t, (FlowIdx::new(row), &p.data), ends, choices);
        t.flow_tx.push(FlowTx {
            size: f.bytes,
            path_first: span.first,
            path_len: span.len,
            n_paths: span.n,
            base_rtt_ns: (w.rtt_ps / 1000).clamp(1, u32::MAX as u64) as u32,
            window: w.window_bytes.max(1),
            start: f.start_ps,
            finish: NEVER,
            rto_at: NEVER,
            nic,
            flow_id: f.id,
            exp: case.options.exp_id,
            rtt_stride: 1,
            msg_post: TaskIdx::NONE,
            msg_send: TaskIdx::NONE,
            msg_ack: TaskIdx::NONE,
            send_end: f.bytes,
            ack_end: f.bytes,
            class: if case.transport.classes.is_empty() { 0 } else { u32::from(f.class) },
            ..FlowTx::zeroed()
        });
        let span = add_paths(t, &p.ack, ends);
        t.flow_rx.push(FlowRx {
            msg_end: f.bytes,
            msg: TaskIdx::NONE,
            nack_seq: NEVER,
            held: PacketIdx::NONE,
            path_first: span.first,
            path_len: span.len,
            n_paths: span.n,
            flow_id: f.id,
            exp: case.options.exp_id,
            nic: nic_dst[i as usize],
            milestone: case.transport.ack_interval,
            next_waiting: FlowIdx::NONE,
            ..FlowRx::zeroed()
        });
    }
    add_places(t, moves, (last_nic, NicIdx(ends.n_nics)));
    t.order = vec![FlowIdx::NONE; t.flow_tx.len()];
    Ok(rows)
}

/// Adds rows for the queue pairs that move to NICs from the first of `nics` on, up to the one before the second. They hold nothing: each is a place in the order
/// of its NIC, which has as many as there are rows.
fn add_places(t: &mut OwnedTables, moves: &[u32], nics: (NicIdx, NicIdx)) {
    if moves.is_empty() {
        return;
    }
    for nic in (nics.0.0..nics.1.0).map(NicIdx) {
        let n = moves[nic.usize()];
        if n > 0 && t.nics[nic].flow_n == 0 {
            t.nics[nic].flow_first = FlowIdx::new(t.flow_tx.len());
        }
        let exp = t.exps[0].exp_id;
        let none = TaskIdx::NONE;
        let tx = FlowTx {
            flow_id: NO_FLOW,
            start: NEVER,
            finish: NEVER,
            rto_at: NEVER,
            nic,
            exp,
            window: 1,
            base_rtt_ns: 1,
            ..FlowTx::zeroed()
        };
        let tx = FlowTx { msg_post: none, msg_send: none, msg_ack: none, rtt_stride: 1, ..tx };
        let rx = FlowRx {
            flow_id: NO_FLOW,
            nic,
            exp,
            msg: none,
            nack_seq: NEVER,
            held: PacketIdx::NONE,
            ..FlowRx::zeroed()
        };
        t.flow_tx.extend((0..n).map(|_| tx));
        t.flow_rx.extend((0..n).map(|_| FlowRx { next_waiting: FlowIdx::NONE, ..rx }));
    }
}

/// Sets the most packets that each NIC can need in a step, and returns how many records each starts with.
fn first_pools(t: &mut OwnedTables, case: &PacketCase, moves: &[u32], step: u64) -> Vec<u32> {
    let tr = case.transport;
    let mut fill = Vec::with_capacity(t.nics.len());
    // Messages and their packets, by NIC, as (messages, packets).
    let mut messages = vec![(0u64, 0u64); t.nics.len()];
    for task in t.tasks.iter().filter(|task| task.flags & task::MESSAGE != 0) {
        let sums = &mut messages[task.owner.usize()];
        *sums = (sums.0 + 1, sums.1 + task.bytes.div_ceil(tr.payload as u64));
    }
    for (i, (nic, messages)) in t.nics.iter_mut().zip(messages).enumerate() {
        let moved = moves.get(i).copied().unwrap_or(0);
        // A grant takes a record too.
        let grants = tr.credit.map_or(0, |credit| step / credit.gap_ps(nic.tx_full).max(1) + 2) as u32;
        if nic.flow_n + moved == 0 {
            nic.worst = grants;
            fill.push(grants);
            continue;
        }
        // All packets of a message but its last are full. A message goes back to its last packet at most once per answer.
        let min_tx_ps = tx_ps(tr.data_overhead + 1, nic.rate, tr.clock_ps).max(1);
        let any = step / min_tx_ps + 2;
        let full = step / nic.tx_full.max(1) + 2 + 2 * (u64::from(nic.flow_n + moved) + messages.0);
        let worst = any.min(full) as u32 + grants;
        let rows = nic.flow_first.places(nic.flow_n);
        let flows: u64 = t.flow_tx[rows.clone()].iter().map(|f| f.size.div_ceil(tr.payload as u64)).sum();
        let packets = flows + messages.1;
        let window = if nic.flow_n > 0 { t.flow_tx[rows.start].window } else { 0 };
        let flight = 2 * window / tr.payload as u64 + 16;
        nic.worst = worst;
        fill.push(worst + packets.min(flight) as u32);
    }
    fill
}

fn lengths(t: &mut OwnedTables) -> Result<(), BuildError> {
    for (what, n) in [
        ("path entries", t.paths.len()),
        ("words of transport.psn_range", t.psn_bits.len()),
        ("packets", t.packets.len()),
        ("plan entries", t.plans.len()),
    ] {
        if n > (u32::MAX / 2) as usize {
            return Err(BuildError::TooLarge { what, n: n as u64 });
        }
    }
    t.set_lengths();
    Ok(())
}
