//! Packets, and the transmitting half of a link: what a NIC and a switch port have in common.

use std::collections::VecDeque;

use hyperfold_network::changes::NetworkChange;
use hyperfold_network::topology::{ArcIdx, Network};
use hyperfold_network::transport::EcnThresholds;

use super::arith::tx;
use super::average::Average;
use super::classes::{Turns, n_classes};
use super::uec::Echo;
use super::{Case, Event, Sim, is_switch};

/// Bytes of a pause or resume frame on the wire.
pub const PAUSE_BYTES: u32 = 43;
/// Hops that a packet has room to record.
pub const INT_HOPS: usize = 5;

/// What one switch hop writes into a data packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    pub time: u64,
    pub tx: u64,
    pub q: u64,
    pub rate_bps: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Int {
    pub n: usize,
    pub hops: [Hop; INT_HOPS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    Ack,
    Nack,
    /// Tells a sender of credit.
    Pull,
}

/// Whether a switch has cut a data packet's payload off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    Not,
    /// At a port whose link leads to a switch.
    Midway,
    LastHop,
}

#[derive(Clone, Debug)]
pub struct Packet {
    pub kind: Kind,
    pub flow: u32,
    /// Data: offset of the first byte. ACK, NACK: the byte expected next.
    pub seq: u64,
    /// ACK, NACK: packets from the byte expected next to the packet that it answers; 0 if that one is expected no more.
    pub offset: u64,
    pub payload: u32,
    pub wire: u32,
    /// Number of the path among all that the flow has had in this direction, and how many of its arcs have been taken.
    pub path: u32,
    pub hop: u32,
    /// Data: number of the path among those that it chose from.
    pub entropy: u32,
    pub trim: Trim,
    /// Data: it asks for an ACK.
    pub asks: bool,
    /// Data: what its sender wants in all. PULL: what the receiver has given in all.
    pub credit: u64,
    pub marked: bool,
    pub cnp: bool,
    pub ts: u64,
    pub int: Int,
    /// ACK, NACK: what it tells where they are those of Ultra Ethernet.
    pub echo: Echo,
    /// At a switch: the port (its outgoing arc) by which it came in.
    pub in_port: ArcIdx,
}

impl Packet {
    /// A packet of `flow` that `nic` makes at `now`, which says nothing yet.
    pub fn blank(kind: Kind, flow: u32, nic: ArcIdx, now: u64) -> Packet {
        Packet {
            kind,
            flow,
            seq: 0,
            offset: 0,
            payload: 0,
            wire: 0,
            path: 0,
            hop: 0,
            entropy: 0,
            trim: Trim::Not,
            asks: false,
            credit: 0,
            marked: false,
            cnp: false,
            ts: now,
            int: Int::default(),
            echo: Echo::default(),
            in_port: nic,
        }
    }
}

/// What travels on a wire.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "pause frames are few")]
pub enum Item {
    Packet(Packet),
    Pause(Frame),
}

/// A pause or resume frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The class that it is for.
    pub class: usize,
    /// Pause, not resume.
    pub pause: bool,
}

/// What a port has for one class.
#[derive(Clone, Debug, Default)]
pub struct ClassQueue {
    /// Of a switch: packets that wait.
    pub fifo: VecDeque<Packet>,
    /// Bytes in `fifo`.
    pub bytes: u64,
    /// The far end asked for silence.
    pub paused: bool,
    pub average: Average,
    /// The watchdog acts, so that the port does not obey.
    pub watchdog_acts: bool,
    /// Of a switch: when the last pause or resume frame arrived.
    pub last_frame_ps: Option<u64>,
    /// When each pause began, and when it ended; `None`: it has not.
    pub pauses: Vec<(u64, Option<u64>)>,
    /// Bytes of the class that the port has sent.
    pub sent: u64,
}

impl ClassQueue {
    /// A pause begins.
    pub fn pause(&mut self, now: u64) {
        assert!(!self.paused, "paused twice");
        self.paused = true;
        self.pauses.push((now, None));
    }

    /// The pause ends, if there is one.
    pub fn resume(&mut self, now: u64) {
        if self.paused {
            self.pauses.last_mut().expect("it is paused").1 = Some(now);
        }
        self.paused = false;
    }
}

/// The transmitting half of a link. The NIC's scheduler lives in `nic`; the queues here are a switch's.
#[derive(Clone, Debug)]
pub struct Port {
    pub is_switch: bool,
    pub rate_bps: u64,
    /// Its rate at first, by which its thresholds and its queue were configured.
    pub first_rate_bps: u64,
    pub delay_ps: u64,
    pub busy: bool,
    /// Its link carries nothing.
    pub down: bool,
    /// Times that its link has failed.
    pub outages: u32,
    /// Packets of this port, or of the NIC at its link, that were lost because the link was down.
    pub lost: u64,
    /// Share of the packets it sends that get lost, in units of 2^-32.
    pub loss_q32: u32,
    /// Packets that got lost so.
    pub lost_at_random: u64,
    pub dropped_by_watchdog: u64,
    /// Sent and not yet arrived, oldest first.
    pub wire: VecDeque<Item>,
    /// By class.
    pub queues: Vec<ClassQueue>,
    pub turns: Turns,
    pub frames: VecDeque<Frame>,
    /// Where the port has a queue of its own: control packets, which go before `fifo`.
    pub control: VecDeque<Packet>,
    /// Control packets sent since data last went before one.
    pub control_turns: u32,
    pub tx_bytes: u64,
    pub ecn: EcnThresholds,
    /// Number of the port among all switch ports, for the marking hash.
    pub number: u32,
    /// Random draws made.
    pub draws: u64,
}

impl Port {
    /// Bytes of all classes that wait.
    pub fn queue_bytes(&self) -> u64 {
        self.queues.iter().map(|queue| queue.bytes).sum()
    }

    /// Sum of the lengths of all pauses. Those that have not ended last until `end_ps`.
    pub fn paused_ps(&self, end_ps: u64) -> u64 {
        self.queues.iter().flat_map(|queue| &queue.pauses).map(|&(begin, end)| end.unwrap_or(end_ps) - begin).sum()
    }
}

/// Rate at which the port of an arc transmits.
pub fn rate(net: &Network, arc: ArcIdx) -> u64 {
    let reduced = net.slow_arcs.iter().find(|slow| slow.arc == arc);
    reduced.map_or(net.links[arc as usize / 2].rate_bps, |slow| slow.rate_bps)
}

/// Lowest rate that the port of an arc ever has.
pub fn lowest_rate(case: &Case, arc: ArcIdx) -> u64 {
    let later = case.changes.iter().filter_map(|timed| match timed.change {
        NetworkChange::Rate { arc: changed, rate_bps } if changed == arc => Some(rate_bps),
        _ => None,
    });
    later.fold(rate(&case.network, arc), u64::min)
}

/// Ports of all arcs. Switch ports are numbered by node, then by link.
pub fn all(case: &Case) -> Vec<Port> {
    let net = &case.network;
    let mut ports: Vec<Port> = (0..2 * net.links.len() as ArcIdx)
        .map(|arc| {
            let rate_bps = rate(net, arc);
            Port {
                is_switch: is_switch(case, arc),
                rate_bps,
                first_rate_bps: rate_bps,
                delay_ps: net.arc_link(arc).delay_ps,
                busy: false,
                down: false,
                outages: 0,
                lost: 0,
                loss_q32: 0,
                lost_at_random: 0,
                dropped_by_watchdog: 0,
                wire: VecDeque::new(),
                queues: vec![ClassQueue::default(); n_classes(case)],
                turns: Turns::new(case),
                frames: VecDeque::new(),
                control: VecDeque::new(),
                control_turns: 0,
                tx_bytes: 0,
                ecn: case.transport.ecn_for(rate_bps),
                number: u32::MAX,
                draws: 0,
            }
        })
        .collect();
    let mut number = 0;
    for arcs in net.out_arcs() {
        for arc in arcs {
            if ports[arc as usize].is_switch && net.is_packet_link(net.arc_link(arc)) {
                ports[arc as usize].number = number;
                number += 1;
            }
        }
    }
    ports
}

impl Sim<'_> {
    /// Puts `item` on the arc's wire now. The completion is scheduled before the arrival. It does not arrive if the link is down.
    pub(super) fn transmit(&mut self, arc: ArcIdx, item: Item) {
        let bytes = match &item {
            Item::Packet(p) => p.wire,
            Item::Pause(_) => PAUSE_BYTES,
        };
        self.packet_hops += u64::from(matches!(item, Item::Packet(_)));
        if let Item::Packet(p) = &item {
            let class = self.class_of(p.flow);
            self.ports[arc as usize].queues[class].sent += u64::from(p.wire);
        }
        let clock_ps = self.case.transport.clock_ps;
        let header_time = self.header_time(arc, &item);
        self.cut_through += u64::from(header_time.is_some());
        let port = &mut self.ports[arc as usize];
        port.busy = true;
        port.tx_bytes += bytes as u64;
        let done = self.now + tx(bytes, port.rate_bps, clock_ps);
        let there = header_time.map_or(done, |time| self.now + time) + port.delay_ps;
        let (down, outages) = (port.down, port.outages);
        self.schedule(done, Event::Complete(arc));
        if down {
            self.lose(arc, &item);
        } else if self.watchdog_drops(arc, &item) {
            self.drops += 1;
            self.watchdog_counts.drops += 1;
            self.ports[arc as usize].dropped_by_watchdog += 1;
        } else if matches!(item, Item::Packet(_)) && self.loses(arc, done) {
            self.drops += 1;
            self.ports[arc as usize].lost_at_random += 1;
        } else {
            self.ports[arc as usize].wire.push_back(item);
            self.schedule(there, Event::Arrive(arc, outages));
        }
    }
}
