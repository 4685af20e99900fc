//! The oracle: an independent event-heap simulator of ARCHITECTURE.md's packet model, small and slow.
//!
//! Written from "Semantics of the packet model" alone, sharing only the input types with the engine: one heap, one event at a
//! time, no steps, no tables. `Order::Lineage` is the order of that document, what the engine must reproduce bit for bit;
//! `Order::Reference` runs simultaneous events first-scheduled-first, which is what the golden cases did.
#![allow(dead_code, reason = "every test binary uses another part of it")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hyperfold::topology::{ArcIdx, NodeKind};

pub use crate::support::Case;

mod arith;
mod cc;
mod nic;
mod port;
mod switch;

use nic::{Nic, Receiver, Sender};
use port::{Item, Port};
use switch::Mmu;

/// How simultaneous events are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By a global scheduling counter, as the reference simulator does.
    Reference,
    /// By time, lineage, kind and entity, as ARCHITECTURE.md says.
    Lineage,
}

/// When to give up. The default never does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opts {
    /// Events later than this are not handled.
    pub time_limit_ps: Option<u64>,
}

/// Why an experiment ended without all flows finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The flow's retransmission timer expired more than `rto_retries` times without progress.
    GaveUp { flow: u32 },
    /// Nothing is left to happen, but flows are unfinished (a pause that nobody lifts).
    Stuck,
    TimeLimit,
}

/// What happened. Counters run until nothing is left in the network, not only to the last completion; after a failure,
/// they say how far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the sender saw the last byte acknowledged, by flow; `None` if it never did.
    pub finish_ps: Vec<Option<u64>>,
    pub failure: Option<Failure>,
    /// Data and ACK packets that left a port.
    pub packet_hops: u64,
    /// Times that a data packet was marked at a port.
    pub ecn_marks: u64,
    /// Pause frames (not resumes) received.
    pub pfc_pauses: u64,
    /// Pause and resume frames received.
    pub pfc_frames: u64,
    pub drops: u64,
    /// The largest egress queue of a switch (data and ACK bytes), right after a packet joined it.
    pub max_queue_bytes: u64,
    /// Bytes sent by the port of each arc, pause frames included.
    pub tx_bytes: Vec<u64>,
}

/// Simulates `case` from time 0 until nothing is left to happen.
pub fn simulate(case: &Case, order: Order, opts: Opts) -> Outcome {
    let mut sim = Sim::new(case, order);
    sim.run(opts);
    sim.outcome()
}

/// Times between scheduling and happening: an event's own, its cause's, and so on. ps, saturated.
type Lineage = [u32; 4];

#[derive(Clone, Copy, Debug)]
enum Event {
    Complete(ArcIdx),
    /// The oldest packet on the arc's wire arrives: so arrivals on a link keep the order they were sent in.
    Arrive(ArcIdx),
    /// A NIC's pacing timer; void unless the generation is the current one.
    Pace(ArcIdx, u64),
    CcTimer(u32, CcTimer, u64),
    Rto(u32),
    Start(u32),
}

/// DCQCN's timers, in the order they run in where even their lineages tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CcTimer {
    Increase,
    Decrease,
    Alpha,
}

/// Sorts events: time, then (in lineage order only) the complement of the lineage, kind and entity; then the counter.
type Key = (u64, u128, u64, u64);

struct Queued {
    key: Key,
    lineage: Lineage,
    event: Event,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

struct Sim<'a> {
    case: &'a Case,
    order: Order,
    heap: BinaryHeap<Reverse<Queued>>,
    scheduled: u64,
    /// Events in the heap other than congestion-control timers, which by themselves never send anything.
    live: u64,
    now: u64,
    /// Lineage of the event being handled.
    lineage: Lineage,
    failure: Option<Failure>,
    /// By arc: the transmitting port.
    ports: Vec<Port>,
    /// By arc; meaningful where the arc leaves a host.
    nics: Vec<Nic>,
    /// By node; meaningful for switches.
    mmus: Vec<Mmu>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    packet_hops: u64,
    ecn_marks: u64,
    pfc_pauses: u64,
    pfc_frames: u64,
    drops: u64,
    max_queue_bytes: u64,
}

impl<'a> Sim<'a> {
    fn new(case: &'a Case, order: Order) -> Self {
        let net = &case.network;
        let mut sim = Sim {
            case,
            order,
            heap: BinaryHeap::new(),
            scheduled: 0,
            live: 0,
            now: 0,
            lineage: [0; 4],
            failure: None,
            ports: port::all(case),
            nics: vec![Nic::default(); 2 * net.links.len()],
            mmus: switch::mmus(case),
            senders: (0..case.flows.len()).map(|f| Sender::new(case, f)).collect(),
            receivers: vec![Receiver::new(&case.transport); case.flows.len()],
            packet_hops: 0,
            ecn_marks: 0,
            pfc_pauses: 0,
            pfc_frames: 0,
            drops: 0,
            max_queue_bytes: 0,
        };
        for flow in &case.flows {
            sim.schedule_with([0; 4], flow.start_ps, Event::Start(flow.id));
        }
        sim
    }

    fn run(&mut self, opts: Opts) {
        while self.live > 0 && self.failure.is_none() {
            let Reverse(next) = self.heap.pop().expect("live events are in the heap");
            assert!(next.key.0 >= self.now, "time ran backwards");
            if opts.time_limit_ps.is_some_and(|limit| next.key.0 > limit) {
                self.failure = Some(Failure::TimeLimit);
                return;
            }
            self.now = next.key.0;
            self.lineage = next.lineage;
            self.live -= u64::from(!matches!(next.event, Event::CcTimer(..)));
            match next.event {
                Event::Complete(arc) => {
                    self.ports[arc as usize].busy = false;
                    self.kick(arc);
                }
                Event::Arrive(arc) => self.arrive(arc),
                Event::Pace(nic, generation) => self.pacing_timer(nic, generation),
                Event::CcTimer(flow, timer, generation) => self.dcqcn_timer(flow, timer, generation),
                Event::Rto(flow) => self.rto_timer(flow),
                Event::Start(flow) => self.start_flow(flow),
            }
        }
        if self.failure.is_none() {
            self.check_drained();
            if self.senders.iter().any(|s| s.finish_ps.is_none()) {
                self.failure = Some(Failure::Stuck);
            }
        }
    }

    /// Schedules `event` for `t`, caused by the event being handled.
    fn schedule(&mut self, t: u64, event: Event) {
        let c = self.lineage;
        let d0 = u32::try_from(t - self.now).unwrap_or(u32::MAX);
        self.schedule_with([d0, c[0], c[1], c[2]], t, event);
    }

    fn schedule_with(&mut self, lineage: Lineage, t: u64, event: Event) {
        let (kind, entity, sub) = match event {
            Event::Complete(arc) => (0, arc, 0),
            // The port it arrives at; links are in the same order at both ends.
            Event::Arrive(arc) => (1, arc ^ 1, 0),
            Event::Pace(nic, _) => (2, nic, 0),
            Event::CcTimer(flow, timer, _) => (3, flow, timer as u64),
            Event::Rto(flow) => (4, flow, 0),
            Event::Start(flow) => (5, flow, 0),
        };
        self.scheduled += 1;
        let key = match self.order {
            Order::Reference => (t, 0, 0, self.scheduled),
            Order::Lineage => {
                let d = lineage.iter().fold(0u128, |acc, &d| acc << 32 | d as u128);
                (t, !d, (kind as u64) << 40 | (entity as u64) << 8 | sub, self.scheduled)
            }
        };
        self.live += u64::from(kind != 3);
        self.heap.push(Reverse(Queued { key, lineage, event }));
    }

    fn arrive(&mut self, arc: ArcIdx) {
        let item = self.ports[arc as usize].wire.pop_front().expect("an arrival was sent");
        let at = arc ^ 1;
        let is_switch = self.ports[at as usize].is_switch;
        match item {
            Item::Pause(pause) => {
                self.pfc_frames += 1;
                self.pfc_pauses += u64::from(pause);
                self.ports[at as usize].paused = pause;
                if !pause {
                    self.kick(at);
                }
            }
            Item::Packet(packet) if is_switch => self.forward(at, packet),
            Item::Packet(packet) => self.deliver(at, packet),
        }
    }

    fn kick(&mut self, arc: ArcIdx) {
        if self.ports[arc as usize].busy {
            return;
        }
        if self.ports[arc as usize].is_switch { self.kick_switch_port(arc) } else { self.kick_nic(arc) }
    }

    /// Without losses in flight, what is left when nothing happens any more must add up.
    fn check_drained(&self) {
        for (arc, port) in self.ports.iter().enumerate() {
            assert!(port.wire.is_empty(), "arc {arc}: packets on the wire but no event");
            assert!(!port.busy, "arc {arc}: busy but no completion");
            let queued: u64 = port.fifo.iter().map(|p| p.wire as u64).sum();
            assert_eq!(port.queue_bytes, queued, "arc {arc}: queue bytes");
        }
        for (node, mmu) in self.mmus.iter().enumerate() {
            let out = |arc: &usize| self.case.network.arc_from(*arc as u32) as usize == node;
            let queued: u64 = (0..self.ports.len()).filter(out).map(|arc| self.ports[arc].queue_bytes).sum();
            assert_eq!(mmu.held(), queued, "node {node}: bytes held by the shared buffer");
        }
    }

    fn outcome(self) -> Outcome {
        Outcome {
            finish_ps: self.senders.iter().map(|s| s.finish_ps).collect(),
            failure: self.failure,
            packet_hops: self.packet_hops,
            ecn_marks: self.ecn_marks,
            pfc_pauses: self.pfc_pauses,
            pfc_frames: self.pfc_frames,
            drops: self.drops,
            max_queue_bytes: self.max_queue_bytes,
            tx_bytes: self.ports.iter().map(|p| p.tx_bytes).collect(),
        }
    }
}

fn is_switch(case: &Case, arc: ArcIdx) -> bool {
    case.network.nodes[case.network.arc_from(arc) as usize].kind == NodeKind::Switch
}
