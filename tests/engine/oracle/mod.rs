//! The oracle: an independent event-heap simulator of the packet model of docs/explanation/model-semantics.md, small and slow.
//!
//! Written from "Semantics of the packet model" alone, sharing only the input types with the engine: one heap, one event at a
//! time, no steps, no tables. `Order` says how simultaneous events are ordered: as that document says, or as the
//! reference simulator of the golden cases does. Task graphs are `tasks`; what they are made of, `graph`.
#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;

use hyperfold_host::tables::build_tables::GraphCase;
use hyperfold_network::topology::{ArcIdx, NodeIdx, NodeKind};

pub use crate::support::Case;

mod any_order;
mod arith;
mod average;
mod cc;
mod changes;
mod classes;
mod credit;
mod cut_through;
mod graph;
mod nic;
mod nscc;
mod port;
mod port_queue;
mod queue;
mod receiver;
mod reports;
mod sender;
mod switch;
mod tasks;
mod uec;
mod watchdog;

use changes::{Changes, Routes};
pub use classes::ClassCounts;
use nic::Nic;
use port::{Item, Packet, Port};
pub use queue::Order;
use queue::{CcTimer, Event, Lineage, Queue};
use receiver::Receiver;
use reports::Reports;
use sender::Sender;
use switch::Mmu;
use tasks::Tasks;
pub use tasks::Times;
pub use watchdog::WatchdogCounts;

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
    GaveUp {
        flow: u32,
    },
    /// Nothing is left to happen, but flows or tasks are unfinished (a pause that nobody lifts, a wait for what never comes).
    Stuck,
    TimeLimit,
}

/// A time that no experiment reaches.
pub const LATE_PS: u64 = 1 << 60;

/// What happened. Counters run until nothing is left in the network, not only to the last completion; after a failure,
/// they say how far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the sender saw the last byte acknowledged, by flow; `None` if it never did.
    pub finish_ps: Vec<Option<u64>>,
    /// By flow: sum of its round-trip times in ps, and their number.
    pub round_trips: Vec<(u64, u32)>,
    pub failure: Option<Failure>,
    /// Data and ACK packets that left a port.
    pub packet_hops: u64,
    /// Times that a data packet was marked at a port.
    pub ecn_marks: u64,
    /// Pause frames (not resumes) received.
    pub pfc_pauses: u64,
    /// Pause and resume frames received.
    pub pfc_frames: u64,
    /// By arc: for how long the port that sends on it was paused. A pause that has not ended lasts until [`LATE_PS`].
    pub paused_ps: Vec<u64>,
    pub drops: u64,
    /// Packets that WRED dropped. They are drops too.
    pub early_drops: u64,
    /// Drops on links that were down, by the arc that leaves the port they count for.
    pub lost: Vec<u64>,
    /// Packets that got lost at random, by the arc that they were sent on. They are drops too.
    pub lost_at_random: Vec<u64>,
    /// Packets that the watchdog dropped, by the arc that they were sent on. They are drops too.
    pub dropped_by_watchdog: Vec<u64>,
    pub watchdog: WatchdogCounts,
    /// Times that an average of a queue was halved, because the queue had been empty.
    pub halved: u64,
    /// Transmissions of which the far end handled the packet once its header was there.
    pub cut_through: u64,
    /// The largest egress queue of a switch (data and ACK bytes), right after a packet joined it.
    pub max_queue_bytes: u64,
    /// PULLs that receivers made.
    pub pulls: u64,
    /// Packets that arrived at a NIC that their flow had left.
    pub handed_over: usize,
    /// Bytes sent by the port of each arc, pause frames included.
    pub tx_bytes: Vec<u64>,
    /// By task of the graph.
    pub tasks: Vec<Times>,
    pub classes: ClassCounts,
}

/// Simulates `case` from time 0 until nothing is left to happen.
pub fn simulate(case: &Case, order: Order, opts: Opts) -> Outcome {
    simulate_tasks(case, None, order, opts)
}

/// [`simulate`] with a task graph, whose queue pairs are the last flows of `case`.
pub fn simulate_tasks(case: &Case, graph: Option<&GraphCase>, order: Order, opts: Opts) -> Outcome {
    let mut sim = Sim::new(case, graph, order);
    sim.run(opts);
    sim.outcome()
}

struct Sim<'a> {
    case: &'a Case,
    queue: Queue,
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
    /// By flow.
    routes: Vec<Routes>,
    changes: Changes<'a>,
    tasks: Tasks,
    packet_hops: u64,
    ecn_marks: u64,
    pfc_pauses: u64,
    pfc_frames: u64,
    drops: u64,
    early_drops: u64,
    reports: Reports,
    /// Packets that NICs have handed over, by number.
    handed_over: Vec<Packet>,
    /// The port by which the last packet of a flow left a switch where it had a choice, and when it arrived there.
    flowlets: BTreeMap<(u32, NodeIdx), (ArcIdx, u64)>,
    max_queue_bytes: u64,
    pulls: u64,
    class_counts: ClassCounts,
    watchdog_counts: WatchdogCounts,
    halved: u64,
    cut_through: u64,
}

impl<'a> Sim<'a> {
    fn new(case: &'a Case, graph: Option<&GraphCase>, order: Order) -> Self {
        let net = &case.network;
        let tasks = graph.map_or_else(Tasks::default, |g| Tasks::new(graph::expand(case, g), g.fresh_qp));
        let first_qp = graph.map_or(case.flows.len(), |g| g.first_qp);
        let mut sim = Sim {
            case,
            queue: Queue::new(case, order, tasks.nics()),
            now: 0,
            lineage: Lineage::of_start(None),
            failure: None,
            ports: port::all(case),
            nics: vec![Nic::new(case); 2 * net.links.len()],
            mmus: switch::mmus(case),
            senders: (0..case.flows.len()).map(|f| Sender::new(case, f, f >= first_qp)).collect(),
            receivers: vec![Receiver::new(&case.transport); case.flows.len()],
            routes: case.paths.iter().map(Routes::new).collect(),
            changes: Changes::new(case),
            tasks,
            packet_hops: 0,
            ecn_marks: 0,
            pfc_pauses: 0,
            pfc_frames: 0,
            drops: 0,
            early_drops: 0,
            reports: Reports::default(),
            handed_over: Vec::new(),
            flowlets: BTreeMap::new(),
            max_queue_bytes: 0,
            pulls: 0,
            class_counts: ClassCounts::new(case),
            watchdog_counts: WatchdogCounts::default(),
            halved: 0,
            cut_through: 0,
        };
        for flow in &case.flows[..first_qp] {
            sim.queue.push(Lineage::of_start(Some(flow.id)), flow.start_ps, Event::Start(flow.id));
        }
        sim.first_tasks();
        sim
    }

    fn run(&mut self, opts: Opts) {
        while self.failure.is_none() {
            // Gates complete at one instant are served in the order of their numbers: once nothing else can happen at it.
            if self.queue.next_time().is_none_or(|t| t > self.now) {
                self.serve_gates();
            }
            let late = |t: u64| opts.time_limit_ps.is_some_and(|limit| t > limit);
            // While a change is left, congestion-control timers before it matter: it may have something sent. The same goes for the watchdog.
            let change = self.changes.next_time();
            let nothing_else = self.queue.next_time().is_none();
            let is_over = nothing_else && change.is_none() && !self.waits_for_watchdog();
            let watchdog = self.watchdog_time().filter(|_| !is_over);
            let before_events = change.into_iter().chain(watchdog).min();
            if let Some(t) = self.queue.next_time_of_all().into_iter().chain(before_events).min() {
                self.report_until(t);
            }
            if let Some(t) = before_events.filter(|&t| self.queue.next_time_of_all().is_none_or(|next| next >= t)) {
                if late(t) {
                    self.failure = Some(Failure::TimeLimit);
                    return;
                }
                assert!(t >= self.now, "time ran backwards");
                if change == Some(t) {
                    self.change(t);
                } else {
                    self.watchdog(t, nothing_else);
                }
                continue;
            }
            let Some(next) = self.queue.pop(before_events.is_some()) else { break };
            assert!(next.time() >= self.now, "time ran backwards");
            if late(next.time()) {
                self.failure = Some(Failure::TimeLimit);
                return;
            }
            self.now = next.time();
            self.lineage = next.lineage;
            self.handle(next.event);
        }
        if self.failure.is_none() {
            self.check_drained();
            if self.senders.iter().any(Sender::is_unfinished_flow) || !self.tasks.all_ended() {
                self.failure = Some(Failure::Stuck);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Complete(arc) => {
                self.ports[arc as usize].busy = false;
                self.kick(arc);
            }
            Event::Arrive(arc, outages) => self.arrive(arc, outages),
            Event::HandOver(nic, number) => self.deliver(nic, self.handed_over[number as usize].clone()),
            Event::Pace(nic, generation) => self.nic_timer(nic, generation),
            Event::CcTimer(flow, timer, generation) => self.dcqcn_timer(flow, timer, generation),
            Event::Rto(flow) => self.rto_timer(flow),
            Event::Start(flow) => self.start_flow(flow),
            Event::Due(task) => self.task_due(task),
        }
    }

    /// Schedules `event` for `t`, caused by the event being handled.
    fn schedule(&mut self, t: u64, event: Event) {
        self.queue.push(self.lineage.child(t - self.now), t, event);
    }

    /// The oldest packet on the wire arrives, unless it was lost: the link has failed more than `outages` times by now.
    fn arrive(&mut self, arc: ArcIdx, outages: u32) {
        if self.ports[arc as usize].outages != outages {
            return;
        }
        let item = self.ports[arc as usize].wire.pop_front().expect("an arrival was sent");
        let at = arc ^ 1;
        let is_switch = self.ports[at as usize].is_switch;
        match item {
            Item::Pause(frame) => {
                self.pfc_frames += 1;
                self.pfc_pauses += u64::from(frame.pause);
                let queue = &mut self.ports[at as usize].queues[frame.class];
                self.watchdog_counts.overruled += u64::from(frame.pause && queue.watchdog_acts);
                if is_switch {
                    queue.last_frame_ps = Some(self.now);
                }
                if frame.pause {
                    queue.pause(self.now);
                } else {
                    assert!(queue.paused, "arc {at} resumes, but was not paused");
                    queue.resume(self.now);
                    self.kick(at);
                }
            }
            Item::Packet(packet) if is_switch => self.forward(at, packet),
            Item::Packet(packet) => self.deliver(at, packet),
        }
    }

    /// The link of this port leads to a host.
    fn leads_to_host(&self, arc: ArcIdx) -> bool {
        !self.ports[(arc ^ 1) as usize].is_switch
    }

    fn kick(&mut self, arc: ArcIdx) {
        if self.ports[arc as usize].busy {
            return;
        }
        if self.ports[arc as usize].is_switch { self.kick_switch_port(arc) } else { self.kick_nic(arc) }
    }

    /// What was lost on wires is not there any more, so what is left when nothing happens any more must add up.
    fn check_drained(&self) {
        for (arc, port) in self.ports.iter().enumerate() {
            assert!(port.wire.is_empty(), "arc {arc}: packets on the wire but no event");
            assert!(!port.busy, "arc {arc}: busy but no completion");
            for queue in &port.queues {
                let queued: u64 = queue.fifo.iter().map(|p| p.wire as u64).sum();
                assert_eq!(queue.bytes, queued, "arc {arc}: queue bytes");
            }
            assert!(port.control.is_empty(), "arc {arc}: idle with control packets");
        }
        for (node, mmu) in self.mmus.iter().enumerate() {
            let out = |arc: &usize| self.case.network.arc_from(*arc as u32) as usize == node;
            let queued: u64 = (0..self.ports.len()).filter(out).map(|arc| self.ports[arc].queue_bytes()).sum();
            let own_queues = self.case.transport.port_queue_per_100g > 0;
            let held = if own_queues { 0 } else { mmu.held() };
            assert_eq!(held, queued, "node {node}: bytes held by the shared buffer");
        }
    }

    fn outcome(self) -> Outcome {
        Outcome {
            finish_ps: self.senders.iter().map(|s| s.finish_ps).collect(),
            round_trips: self.senders.iter().map(|s| s.round_trips).collect(),
            failure: self.failure,
            packet_hops: self.packet_hops,
            ecn_marks: self.ecn_marks,
            pfc_pauses: self.pfc_pauses,
            pfc_frames: self.pfc_frames,
            paused_ps: self.ports.iter().map(|p| p.paused_ps(LATE_PS)).collect(),
            drops: self.drops,
            early_drops: self.early_drops,
            lost: self.ports.iter().map(|p| p.lost).collect(),
            lost_at_random: self.ports.iter().map(|p| p.lost_at_random).collect(),
            dropped_by_watchdog: self.ports.iter().map(|p| p.dropped_by_watchdog).collect(),
            watchdog: self.watchdog_counts,
            halved: self.halved,
            cut_through: self.cut_through,
            max_queue_bytes: self.max_queue_bytes,
            pulls: self.pulls,
            handed_over: self.handed_over.len(),
            tx_bytes: self.ports.iter().map(|p| p.tx_bytes).collect(),
            tasks: self.tasks.times(),
            classes: self.class_counts,
        }
    }
}

pub fn is_switch(case: &Case, arc: ArcIdx) -> bool {
    case.network.nodes[case.network.arc_from(arc) as usize].kind == NodeKind::Switch
}
