//! A host's port: ACK queue, queue pairs served in turn, pacing; and how the ends of flows use it.

use std::collections::VecDeque;

use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::{PortWeights, Transport};

use super::arith::{gcd, hash32, tx};
use super::cc::News;
use super::changes::Way;
use super::classes::n_classes;
use super::port::{Item, Kind, Packet};
use super::uec::mtu;
use super::{Case, Event, Failure, Lineage, Sim};

#[derive(Clone, Debug)]
pub struct Nic {
    /// Answers to data, and PULLs, by class.
    pub acks: Vec<VecDeque<Packet>>,
    /// Queue pairs (flows) whose senders want credit, in the order in which they get it.
    pub waiting: VecDeque<u32>,
    /// Queue pairs (flows) in order of creation, and by class the index of the one served last.
    pub order: Vec<u32>,
    pub rr: Vec<usize>,
    /// When the timer is armed for: to send what is paced, or to grant credit.
    armed: Option<u64>,
    /// Timers armed so far; only the event of the latest counts.
    generation: u64,
}

impl Nic {
    pub fn new(case: &Case) -> Self {
        let n = n_classes(case);
        Nic {
            acks: vec![VecDeque::new(); n],
            waiting: VecDeque::new(),
            order: Vec::new(),
            rr: vec![0; n],
            armed: None,
            generation: 0,
        }
    }

    pub fn is_armed(&self) -> bool {
        self.armed.is_some()
    }
}

/// The path that packet number `number` of a flow takes in this direction.
pub fn path_of(t: &Transport, flow: u32, number: u32, direction: u32, paths: u32) -> u32 {
    if !t.spray_in_turn {
        return hash32(flow, number, direction, t.routing_seed) % paths;
    }
    let (round, place) = (number / paths, number % paths);
    let first = hash32(flow, round, direction, t.routing_seed) % paths;
    (first + place) % paths
}

impl Sim<'_> {
    pub(super) fn start_flow(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        sender.is_created = true;
        sender.next_avail = self.now;
        sender.begin_burst();
        let nic = sender.nic;
        self.nics[nic as usize].order.push(flow);
        self.kick(nic);
    }

    pub(super) fn nic_timer(&mut self, nic: ArcIdx, generation: u64) {
        if self.nics[nic as usize].generation == generation {
            self.nics[nic as usize].armed = None;
            self.grant(nic);
            self.kick(nic);
        }
    }

    /// Arms the timer for `t`, instead of any other time.
    pub(super) fn arm(&mut self, nic: ArcIdx, t: u64) {
        let state = &mut self.nics[nic as usize];
        state.armed = Some(t);
        state.generation += 1;
        let event = Event::Pace(nic, state.generation);
        self.schedule(t, event);
    }

    /// Arms the timer earlier if `t` is before what it is armed for.
    pub(super) fn arm_earlier(&mut self, nic: ArcIdx, t: u64) {
        if self.nics[nic as usize].armed.is_some_and(|armed| armed > t) {
            self.arm(nic, t.max(self.now));
        }
    }

    /// The transmitter is idle: sends an ACK, or serves the next queue pair, or sleeps until one may send. While its link is down, it holds.
    pub(super) fn kick_nic(&mut self, nic: ArcIdx) {
        if self.ports[nic as usize].down {
            return;
        }
        if !self.case.transport.classes.is_empty() {
            self.kick_nic_by_class(nic);
            return;
        }
        let paused = self.ports[nic as usize].queues[0].paused;
        if (!paused || self.case.transport.ack_high_prio)
            && let Some(ack) = self.nics[nic as usize].acks[0].pop_front()
        {
            self.transmit(nic, Item::Packet(ack));
            return;
        }
        match self.scan(nic) {
            Some(flow) => self.serve(nic, flow),
            None => self.sleep(nic),
        }
    }

    /// Sends data of `flow`, which may send.
    pub(super) fn serve(&mut self, nic: ArcIdx, flow: u32) {
        let class = self.class_of(flow);
        let state = &mut self.nics[nic as usize];
        state.rr[class] = state.order.iter().position(|&f| f == flow).expect("one that may send is not finished");
        self.send_data(nic, flow);
    }

    /// Nothing may be sent now: arms the timer for the time when a queue pair may go on.
    pub(super) fn sleep(&mut self, nic: ArcIdx) {
        let senders = &self.senders;
        let order = &self.nics[nic as usize].order;
        let soonest = order.iter().map(|&f| senders[f as usize].next_avail).min();
        if let Some(m) = soonest.filter(|&m| m > self.now && self.nics[nic as usize].armed.is_none()) {
            self.arm(nic, m);
        }
    }

    /// The queue pair (flow) to serve, after finished ones met on the way are removed.
    fn scan(&mut self, nic: ArcIdx) -> Option<u32> {
        let state = &self.nics[nic as usize];
        let n = state.order.len();
        let mut first_finished: Option<usize> = None;
        let mut found = None;
        for index in (1..=n).map(|k| (state.rr[0] + k) % n) {
            let flow = state.order[index];
            if self.is_eligible(nic, flow) {
                found = Some(flow);
                break;
            }
            if !self.is_sendable(nic, flow) && self.senders[flow as usize].is_finished() {
                first_finished = Some(first_finished.map_or(index, |f| f.min(index)));
            }
        }
        self.remove_finished(nic, first_finished);
        found
    }

    /// Neither paused nor without something to send nor bound by a window.
    pub(super) fn is_sendable(&self, nic: ArcIdx, flow: u32) -> bool {
        let sender = &self.senders[flow as usize];
        let paused = self.ports[nic as usize].queues[self.class_of(flow)].paused;
        !paused && sender.has_next() && !sender.window_bound(&self.case.transport) && !sender.lacks_credit()
    }

    /// It may send now.
    pub(super) fn is_eligible(&self, nic: ArcIdx, flow: u32) -> bool {
        self.is_sendable(nic, flow) && self.senders[flow as usize].next_avail <= self.now
    }

    /// Removes the finished queue pairs at index `first` and after it.
    pub(super) fn remove_finished(&mut self, nic: ArcIdx, first: Option<usize>) {
        let Some(first) = first else { return };
        let order = &mut self.nics[nic as usize].order;
        let rest = order.split_off(first);
        order.extend(rest.into_iter().filter(|&f| !self.senders[f as usize].is_finished()));
    }

    fn send_data(&mut self, nic: ArcIdx, flow: u32) {
        let t = &self.case.transport;
        let line_rate = self.ports[nic as usize].rate_bps;
        let routes = &self.routes[flow as usize];
        let sender = &mut self.senders[flow as usize];
        let sets_deadline = sender.sets_deadline();
        let seq = sender.next_position();
        let payload = (t.payload as u64).min(sender.message_end(seq) - seq) as u32;
        let entropy =
            if t.grade_packets.is_some() { 0 } else { sender.choose_path(t, flow, routes.count(Kind::Data), seq) };
        let mut packet = Packet {
            seq,
            payload,
            wire: payload + t.data_overhead,
            path: routes.number(Kind::Data, entropy),
            entropy,
            asks: sender.asks(seq, payload),
            ..Packet::blank(Kind::Data, flow, nic, self.now)
        };
        sender.note_sent(seq, payload);
        packet.credit = sender.pay(self.nics[nic as usize].order.len(), self.now);
        sender.last_wire = packet.wire;
        let pace = if t.rate_bound { sender.rate } else { line_rate };
        sender.next_avail = self.now + tx(packet.wire, pace, t.clock_ps);
        if sets_deadline {
            self.set_deadline(flow);
        }
        self.launch(nic, packet);
    }

    /// A packet leaves its host: it has taken the first arc of its path.
    fn launch(&mut self, nic: ArcIdx, mut packet: Packet) {
        assert_eq!(self.next_arc(&packet), nic, "flow {}: the path starts at another NIC", packet.flow);
        packet.hop = 1;
        self.transmit(nic, Item::Packet(packet));
    }

    /// The arc that a packet takes next.
    pub(super) fn next_arc(&self, packet: &Packet) -> ArcIdx {
        self.routes[packet.flow as usize].path(packet.kind, packet.path)[packet.hop as usize]
    }

    /// Data at a switch turns to a path that goes on by a port of the lowest grade, if switches choose.
    pub(super) fn turn(&mut self, packet: &mut Packet) {
        let t = &self.case.transport;
        let has_choice = t.grade_packets.is_some()
            && packet.kind == Kind::Data
            && self.routes[packet.flow as usize].ways_on(packet.path, packet.hop as usize).len() > 1;
        if t.flowlet_gap_ps == 0 || !has_choice {
            return self.choose_way(packet);
        }
        let node = self.node_of(packet.in_port);
        let gap_ps = t.flowlet_gap_ps;
        let last = self.flowlets.get(&(packet.flow, node)).copied();
        let kept = last.filter(|&(arc, last_ps)| self.now - last_ps <= gap_ps && !self.ports[arc as usize].down);
        let ways = self.routes[packet.flow as usize].ways_on(packet.path, packet.hop as usize);
        match kept.and_then(|(arc, _)| ways.iter().find(|way| way.arc == arc)) {
            Some(way) => packet.path = way.path,
            None => self.choose_way(packet),
        }
        let arc = self.next_arc(packet);
        self.flowlets.insert((packet.flow, node), (arc, self.now));
    }

    /// Data turns to a path that goes on by a port of the lowest grade.
    fn choose_way(&self, packet: &mut Packet) {
        let t = &self.case.transport;
        let Some(grade_packets) = t.grade_packets.filter(|_| packet.kind == Kind::Data) else { return };
        let grade_bytes = u64::from(grade_packets) * mtu(t);
        let ways = self.routes[packet.flow as usize].ways_on(packet.path, packet.hop as usize);
        if ways.len() == 1 {
            return;
        }
        let number = self.ports[packet.in_port as usize].number;
        let draw = |seed: u32| hash32(number, self.now as u32, (self.now >> 32) as u32, seed) as usize;
        let class = self.class_of(packet.flow);
        let mut graded: Vec<_> = ways
            .iter()
            .map(|way| {
                let port = &self.ports[way.arc as usize];
                let queue = &port.queues[class];
                let (down, bytes) = self.further_on(packet, way.path, class);
                ((port.down || down, queue.is_held()), (queue.bytes + bytes) / grade_bytes, way)
            })
            .collect();
        let weights = self.weights(packet, &ways);
        let weight_of =
            |way: &Way| weights[ways.iter().position(|other| other.arc == way.arc).expect("it is one of them")];
        if weights.iter().any(|weight| *weight != weights[0]) {
            let best = graded.iter().map(|(state, ..)| *state).min();
            let candidates =
                || graded.iter().filter(|(state, ..)| Some(*state) == best).map(|(.., way)| weight_of(way));
            let mut left = draw(t.routing_seed.wrapping_add(1)) as u64 % candidates().sum::<u64>();
            // Each port as often as its weight says.
            let weight = candidates()
                .find(|&weight| {
                    let is_it = left < weight;
                    left = left.saturating_sub(weight);
                    is_it
                })
                .expect("less than the sum is left");
            graded.retain(|(.., way)| weight_of(way) == weight);
        }
        let lowest = graded.iter().map(|(state, grade, _)| (*state, *grade)).min().expect("a path leads on");
        graded.retain(|(state, grade, _)| (*state, *grade) == lowest);
        packet.path = graded[draw(t.routing_seed) % graded.len()].2.path;
    }

    /// What each of the ways on weighs.
    fn weights(&self, packet: &Packet, ways: &[Way]) -> Vec<u64> {
        let slowest = |path: &[ArcIdx]| path.iter().map(|&arc| self.ports[arc as usize].first_rate_bps).min();
        match self.case.transport.port_weights {
            PortWeights::None => vec![1; ways.len()],
            PortWeights::Paths => ways.iter().map(|way| way.paths.len() as u64).collect(),
            PortWeights::Rates => {
                let routes = &self.routes[packet.flow as usize];
                let rate = |&number: &u32| slowest(&routes.path(packet.kind, number)[packet.hop as usize..]);
                let rates: Vec<u64> = ways.iter().map(|way| way.paths.iter().filter_map(rate).sum()).collect();
                let units = rates.iter().copied().fold(0, gcd);
                let total: u64 = rates.iter().sum::<u64>() / units;
                let halvings = (0..).find(|&n| total >> n < 1 << 20).expect("some number is enough");
                rates.iter().map(|rate| ((rate / units) >> halvings).max(1)).collect()
            }
        }
    }

    /// A packet arrived at the host that `nic` belongs to.
    pub(super) fn deliver(&mut self, nic: ArcIdx, packet: Packet) {
        let home = self.home(&packet);
        if home != nic {
            let there = self.now + self.ports[home as usize].delay_ps;
            self.handed_over.push(packet);
            self.schedule(there, Event::HandOver(home, self.handed_over.len() as u32 - 1));
            return;
        }
        match packet.kind {
            Kind::Data => self.receive(nic, &packet),
            Kind::Pull => self.pulled(nic, &packet),
            Kind::Ack | Kind::Nack => self.acknowledged(nic, &packet),
        }
    }

    fn receive(&mut self, nic: ArcIdx, data: &Packet) {
        let t = &self.case.transport;
        let receiver = &mut self.receivers[data.flow as usize];
        let ends = &self.senders[data.flow as usize].ends;
        let Some(kind) = receiver.answer(t, ends, data, self.now) else {
            let expected = receiver.expected;
            let granted = self.note_want(nic, data, false);
            self.messages_arrived(data.flow, expected);
            if granted {
                self.kick(nic);
            }
            return;
        };
        let cnp = data.marked && (t.cnp_interval_ps == 0 || self.now >= receiver.cnp_t);
        if cnp {
            receiver.cnp_t = self.now + t.cnp_interval_ps;
        }
        let routes = &self.routes[data.flow as usize];
        let ack = Packet {
            seq: receiver.expected,
            offset: data.seq.saturating_sub(receiver.expected) / t.payload as u64,
            wire: t.ack_bytes,
            path: routes.number(kind, path_of(t, data.flow, receiver.sent, 1, routes.count(kind))),
            // It leaves by this NIC, which is the first arc of its path.
            hop: 1,
            cnp,
            ts: data.ts,
            int: data.int,
            echo: receiver.held.echo(kind, data),
            ..Packet::blank(kind, data.flow, nic, self.now)
        };
        receiver.sent = receiver.sent.wrapping_add(1);
        assert_eq!(routes.path(kind, ack.path)[0], nic, "the ACK path's NIC");
        let expected = receiver.expected;
        let class = self.class_of(data.flow);
        self.nics[nic as usize].acks[class].push_back(ack);
        self.note_want(nic, data, kind == Kind::Nack);
        self.messages_arrived(data.flow, expected);
        self.kick(nic);
    }

    fn acknowledged(&mut self, nic: ArcIdx, ack: &Packet) {
        self.senders[ack.flow as usize].note_answer(ack.ts, ack.kind == Kind::Nack);
        let sender = &mut self.senders[ack.flow as usize];
        if sender.finish_ps.is_none() {
            sender.round_trips.0 += self.now - ack.ts;
            sender.round_trips.1 += 1;
            let any_order = sender.any_order.is_some();
            let news = if sender.uec.is_some() {
                self.take_by_books(ack)
            } else if any_order {
                Some(self.take_in_any_order(ack))
            } else {
                self.take_in_order(ack)
            };
            if self.failure.is_some() {
                return;
            }
            if let Some(news) = news {
                self.congestion_control(ack, news);
                self.messages_acknowledged(ack.flow);
            }
        }
        self.kick(nic);
    }

    /// The sender goes back N on a loss. Returns `None` if it gives up.
    fn take_in_order(&mut self, ack: &Packet) -> Option<News> {
        let t = &self.case.transport;
        let sender = &mut self.senders[ack.flow as usize];
        let acked = ack.seq.saturating_sub(sender.snd_una);
        let progress = acked > 0;
        sender.snd_una = sender.snd_una.max(ack.seq);
        sender.snd_nxt = sender.snd_nxt.max(sender.snd_una);
        let known = sender.recovery.is_some_and(|r| ack.ts < r.stepped_back);
        let lost = ack.kind == Kind::Nack && !known;
        if progress && !lost {
            sender.widen(t, ack.ts, self.now);
        }
        if lost {
            sender.step_back(t, self.now);
            if !progress {
                sender.stalls += 1;
                let longest = (sender.rtt_ns * 1000) << sender.stalls.min(6);
                let draw = hash32(ack.flow, sender.stalls, sender.snd_una as u32, t.seed) as u64;
                sender.next_avail = sender.next_avail.max(self.now) + draw % longest;
                if sender.stalls > 16 * (t.rto_retries + 1) {
                    self.failure = Some(Failure::GaveUp { flow: ack.flow });
                    return None;
                }
            }
        }
        if sender.snd_una >= sender.size {
            sender.finish_ps = Some(self.now);
            sender.recovery = None;
        }
        if progress {
            sender.retries = 0;
            sender.stalls = 0;
            self.set_deadline(ack.flow);
        }
        Some(News { acked, loss: lost })
    }

    /// The sender notes which packets have arrived and which are lost.
    fn take_in_any_order(&mut self, ack: &Packet) -> News {
        let t = &self.case.transport;
        let sender = &mut self.senders[ack.flow as usize];
        let scoreboard = sender.any_order.as_mut().expect("packets may arrive in any order");
        let told = scoreboard.take(sender.snd_una, ack.seq, ack.offset);
        let progress = told.una > sender.snd_una;
        sender.snd_una = told.una;
        let loss = told.newly_lost && sender.recovery.is_none_or(|r| ack.ts >= r.stepped_back);
        if loss {
            sender.halve(t, self.now);
        } else if told.acked > 0 {
            sender.widen(t, ack.ts, self.now);
        }
        if sender.snd_una >= sender.size {
            sender.finish_ps = Some(self.now);
            sender.recovery = None;
            if let Some(scoreboard) = &mut sender.any_order {
                scoreboard.finish();
            }
        }
        if progress {
            sender.retries = 0;
            sender.deadline = None;
            if sender.snd_una < sender.snd_nxt {
                self.set_deadline(ack.flow);
            }
        }
        News { acked: told.acked, loss }
    }

    /// The retransmission deadline is `rto` from now. It counts only while something is outstanding when it comes.
    fn set_deadline(&mut self, flow: u32) {
        let t = self.now + self.case.transport.rto_ps;
        if self.senders[flow as usize].uec.is_some() {
            self.set_deadline_by_books(flow, t);
            return;
        }
        self.senders[flow as usize].deadline = Some(t);
        self.queue_deadline(flow, t);
    }

    /// Puts an event for the deadline `t` in the heap, unless there is one already, which then is no later.
    fn queue_deadline(&mut self, flow: u32, t: u64) {
        let sender = &mut self.senders[flow as usize];
        if !sender.deadline_queued {
            sender.deadline_queued = true;
            self.push_deadline(flow, t);
        }
    }

    pub(super) fn push_deadline(&mut self, flow: u32, t: u64) {
        self.queue.push(Lineage::periodic(u32::MAX), t, Event::Rto(flow));
    }

    /// One more deadline came without progress. Returns whether that is one too many.
    pub(super) fn gives_up(&mut self, flow: u32) -> bool {
        let sender = &mut self.senders[flow as usize];
        sender.retries += 1;
        let gives_up = sender.retries > self.case.transport.rto_retries;
        if gives_up {
            self.failure = Some(Failure::GaveUp { flow });
        }
        gives_up
    }

    pub(super) fn rto_timer(&mut self, flow: u32) {
        let t = &self.case.transport;
        let sender = &mut self.senders[flow as usize];
        if sender.uec.is_some() {
            self.rto_by_books(flow);
            return;
        }
        sender.deadline_queued = false;
        if sender.snd_una == sender.snd_nxt {
            return;
        }
        let Some(deadline) = sender.deadline else { return };
        if deadline > self.now {
            self.queue_deadline(flow, deadline);
            return;
        }
        if self.gives_up(flow) {
            return;
        }
        let sender = &mut self.senders[flow as usize];
        let nic = sender.nic;
        if sender.any_order.is_some() {
            sender.lose_all(t, self.now);
        } else {
            sender.step_back(t, self.now);
            self.set_deadline(flow);
        }
        self.kick(nic);
    }
}
