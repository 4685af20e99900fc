//! A host's port: ACK queue, queue pairs served in turn, pacing; and both ends of a flow.

use std::collections::VecDeque;

use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::{LossRecovery, Transport};

use super::arith::{hash32, mul_div, tx};
use super::cc::{CcState, News};
use super::port::{Int, Item, Kind, Packet};
use super::{Case, Event, Failure, Lineage, Sim};

#[derive(Clone, Debug, Default)]
pub struct Nic {
    acks: VecDeque<Packet>,
    /// Queue pairs (flows) in order of creation, and the index of the one served last.
    pub order: Vec<u32>,
    rr: usize,
    /// When the pacing timer is armed for.
    armed: Option<u64>,
    /// Timers armed so far; only the event of the latest counts.
    generation: u64,
}

/// What an adapter's sender keeps after a loss.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Bytes that may be outstanding.
    window: u64,
    /// When it last stepped back.
    stepped_back: u64,
    /// Since when packets count whose acknowledgement widens the window.
    round: u64,
}

/// The sending end of a flow, or of a queue pair of a task graph.
#[derive(Clone, Debug)]
pub struct Sender {
    pub nic: ArcIdx,
    /// Gets messages one by one.
    pub is_qp: bool,
    /// Bytes posted: all of a flow's.
    pub size: u64,
    /// Ends of the posted messages in bytes, ascending; a flow is one message.
    pub ends: Vec<u64>,
    pub snd_nxt: u64,
    pub snd_una: u64,
    pub rate: u64,
    /// Line rate of the NIC.
    pub rate_max: u64,
    pub next_avail: u64,
    pub last_wire: u32,
    /// The window before it is scaled; also what HPCC divides by.
    pub base_window: u64,
    pub rtt_ns: u64,
    /// Switches on its first data path.
    pub hops: u64,
    sent: u32,
    retries: u32,
    /// NACKs without progress since the last progress.
    stalls: u32,
    /// Since the first loss since everything was acknowledged.
    recovery: Option<Recovery>,
    deadline: u64,
    /// An event for the deadline, or an earlier one, is in the heap.
    deadline_queued: bool,
    pub cc: CcState,
    pub finish_ps: Option<u64>,
}

impl Sender {
    pub fn new(case: &Case, flow: usize, is_qp: bool) -> Self {
        let size = if is_qp { 0 } else { case.flows[flow].bytes };
        let nic = case.paths[flow].data[0][0];
        let rate_max = case.network.arc_link(nic).rate_bps;
        Sender {
            nic,
            is_qp,
            size,
            ends: if is_qp { Vec::new() } else { vec![size] },
            snd_nxt: 0,
            snd_una: 0,
            rate: rate_max,
            rate_max,
            next_avail: 0,
            last_wire: 0,
            base_window: case.rtt[flow].window_bytes,
            rtt_ns: case.rtt[flow].rtt_ps / 1000,
            // Every arc but the first leaves a switch.
            hops: case.paths[flow].data[0].len() as u64 - 1,
            sent: 0,
            retries: 0,
            stalls: 0,
            recovery: None,
            deadline: 0,
            deadline_queued: false,
            cc: CcState::new(case.transport.cc, rate_max),
            finish_ps: None,
        }
    }

    /// A queue pair is never done; its messages are tasks.
    pub fn is_unfinished_flow(&self) -> bool {
        !self.is_qp && self.finish_ps.is_none()
    }

    /// Returns the end of the message that byte `at` belongs to. PRECONDITION: that message is posted.
    fn message_end(&self, at: u64) -> u64 {
        self.ends[self.ends.partition_point(|&end| end <= at)]
    }

    fn window(&self, t: &Transport) -> u64 {
        match (t.window, t.var_window) {
            (false, _) => 0,
            (true, false) => self.base_window,
            (true, true) => mul_div(self.base_window, self.rate, self.rate_max).max(1),
        }
    }

    fn window_bound(&self, t: &Transport) -> bool {
        let w = self.window(t);
        let outstanding = self.snd_nxt - self.snd_una;
        (w != 0 && outstanding >= w) || self.recovery.is_some_and(|r| outstanding >= r.window)
    }

    /// Goes back to what is not acknowledged, at `now`. An adapter then has half as much outstanding.
    fn step_back(&mut self, t: &Transport, now: u64) {
        if t.loss_recovery == LossRecovery::Adapter {
            let window = ((self.snd_nxt - self.snd_una) / 2).max(2 * t.payload as u64);
            self.recovery = Some(Recovery { window, stepped_back: now, round: now });
        }
        self.snd_nxt = self.snd_una;
    }
}

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    expected: u64,
    milestone: u64,
    nack_t: u64,
    nack_seq: u64,
    /// The latest packet beyond what is expected, since one that was not.
    beyond: Option<u64>,
    cnp_t: u64,
    sent: u32,
}

impl Receiver {
    pub fn new(t: &Transport) -> Self {
        Receiver {
            expected: 0,
            milestone: t.ack_interval,
            nack_t: 0,
            nack_seq: u64::MAX,
            beyond: None,
            cnp_t: 0,
            sent: 0,
        }
    }

    /// What is due in answer to data `[seq, seq + payload)`.
    fn answer(&mut self, t: &Transport, ends: &[u64], seq: u64, payload: u32, now: u64) -> Option<Kind> {
        let adapter = t.loss_recovery == LossRecovery::Adapter;
        if seq > self.expected && adapter {
            let again = self.beyond.is_some_and(|last| seq > last);
            self.beyond = Some(seq);
            return (!again).then_some(Kind::Nack);
        }
        if seq > self.expected {
            if now >= self.nack_t || self.nack_seq != self.expected {
                self.nack_t = now + t.nack_interval_ps;
                self.nack_seq = self.expected;
                return Some(Kind::Nack);
            }
            return None;
        }
        self.beyond = None;
        if seq < self.expected {
            return Some(Kind::Ack);
        }
        self.expected += payload as u64;
        if self.expected >= self.milestone {
            self.milestone += t.ack_interval;
            return Some(Kind::Ack);
        }
        (self.expected.is_multiple_of(t.chunk) || ends.binary_search(&self.expected).is_ok()).then_some(Kind::Ack)
    }
}

impl Sim<'_> {
    pub(super) fn start_flow(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        sender.next_avail = self.now;
        let nic = sender.nic;
        self.nics[nic as usize].order.push(flow);
        self.kick(nic);
    }

    pub(super) fn pacing_timer(&mut self, nic: ArcIdx, generation: u64) {
        if self.nics[nic as usize].generation == generation {
            self.nics[nic as usize].armed = None;
            self.kick(nic);
        }
    }

    fn arm(&mut self, nic: ArcIdx, t: u64) {
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

    /// The transmitter is idle: sends an ACK, or serves the next queue pair, or sleeps until one may send.
    pub(super) fn kick_nic(&mut self, nic: ArcIdx) {
        let paused = self.ports[nic as usize].paused;
        if (!paused || self.case.transport.ack_high_prio)
            && let Some(ack) = self.nics[nic as usize].acks.pop_front()
        {
            self.transmit(nic, Item::Packet(ack));
            return;
        }
        match self.scan(nic, paused) {
            Some(index) => {
                self.nics[nic as usize].rr = index;
                let flow = self.nics[nic as usize].order[index];
                self.send_data(nic, flow);
            }
            None => {
                let senders = &self.senders;
                let order = &self.nics[nic as usize].order;
                let soonest = order.iter().map(|&f| senders[f as usize].next_avail).min();
                if let Some(m) = soonest.filter(|&m| m > self.now && self.nics[nic as usize].armed.is_none()) {
                    self.arm(nic, m);
                }
            }
        }
    }

    /// The index of the queue pair to serve, after finished ones met on the way are removed.
    fn scan(&mut self, nic: ArcIdx, paused: bool) -> Option<usize> {
        let t = &self.case.transport;
        let state = &mut self.nics[nic as usize];
        let n = state.order.len();
        let mut found = None;
        let mut first_finished = None;
        for k in 1..=n {
            let index = (state.rr + k) % n;
            let sender = &self.senders[state.order[index] as usize];
            let sendable = !paused && sender.snd_nxt < sender.size && !sender.window_bound(t);
            if sendable && sender.next_avail <= self.now {
                found = Some(index);
                break;
            }
            if !sendable && sender.snd_una >= sender.size {
                first_finished = Some(first_finished.map_or(index, |f: usize| f.min(index)));
            }
        }
        let Some(first) = first_finished else { return found };
        let flow = found.map(|index| state.order[index]);
        let mut kept = state.order[..first].to_vec();
        let finished = |f: u32| self.senders[f as usize].snd_una >= self.senders[f as usize].size;
        kept.extend(state.order[first..].iter().copied().filter(|&f| !finished(f)));
        state.order = kept;
        flow.map(|f| state.order.iter().position(|&g| g == f).expect("one that may send is not finished"))
    }

    fn send_data(&mut self, nic: ArcIdx, flow: u32) {
        let t = &self.case.transport;
        let line_rate = self.ports[nic as usize].rate_bps;
        let paths = self.case.paths[flow as usize].data.len() as u32;
        let sender = &mut self.senders[flow as usize];
        let fresh = sender.snd_una == sender.snd_nxt;
        let payload = (t.payload as u64).min(sender.message_end(sender.snd_nxt) - sender.snd_nxt) as u32;
        let packet = Packet {
            kind: Kind::Data,
            flow,
            seq: sender.snd_nxt,
            payload,
            wire: payload + t.data_overhead,
            path: hash32(flow, sender.sent, 0, t.routing_seed) % paths,
            hop: 0,
            marked: false,
            cnp: false,
            ts: self.now,
            int: Int::default(),
            in_port: nic,
        };
        sender.sent = sender.sent.wrapping_add(1);
        sender.snd_nxt += payload as u64;
        sender.last_wire = packet.wire;
        let pace = if t.rate_bound { sender.rate } else { line_rate };
        sender.next_avail = self.now + tx(packet.wire, pace, t.clock_ps);
        if fresh {
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
        let paths = &self.case.paths[packet.flow as usize];
        let paths = if packet.kind == Kind::Data { &paths.data } else { &paths.ack };
        paths[packet.path as usize][packet.hop as usize]
    }

    /// A packet arrived at the host that `nic` belongs to.
    pub(super) fn deliver(&mut self, nic: ArcIdx, packet: Packet) {
        if packet.kind == Kind::Data { self.receive(nic, &packet) } else { self.acknowledged(nic, &packet) }
    }

    fn receive(&mut self, nic: ArcIdx, data: &Packet) {
        let t = &self.case.transport;
        let receiver = &mut self.receivers[data.flow as usize];
        let ends = &self.senders[data.flow as usize].ends;
        let Some(kind) = receiver.answer(t, ends, data.seq, data.payload, self.now) else { return };
        let cnp = data.marked && (t.cnp_interval_ps == 0 || self.now >= receiver.cnp_t);
        if cnp {
            receiver.cnp_t = self.now + t.cnp_interval_ps;
        }
        let paths = self.case.paths[data.flow as usize].ack.len() as u32;
        let ack = Packet {
            kind,
            flow: data.flow,
            seq: receiver.expected,
            payload: 0,
            wire: t.ack_bytes,
            path: hash32(data.flow, receiver.sent, 1, t.routing_seed) % paths,
            // It leaves by this NIC, which is the first arc of its path.
            hop: 1,
            marked: false,
            cnp,
            ts: data.ts,
            int: data.int,
            in_port: nic,
        };
        receiver.sent = receiver.sent.wrapping_add(1);
        assert_eq!(self.case.paths[data.flow as usize].ack[ack.path as usize][0], nic, "the ACK path's NIC");
        let expected = receiver.expected;
        self.nics[nic as usize].acks.push_back(ack);
        self.messages_arrived(data.flow, expected);
        self.kick(nic);
    }

    fn acknowledged(&mut self, nic: ArcIdx, ack: &Packet) {
        let sender = &mut self.senders[ack.flow as usize];
        if sender.finish_ps.is_none() {
            let acked = ack.seq.saturating_sub(sender.snd_una);
            let progress = acked > 0;
            sender.snd_una = sender.snd_una.max(ack.seq);
            sender.snd_nxt = sender.snd_nxt.max(sender.snd_una);
            let t = &self.case.transport;
            let known = sender.recovery.is_some_and(|r| ack.ts < r.stepped_back);
            let lost = ack.kind == Kind::Nack && !known;
            if let Some(recovery) = sender.recovery.as_mut().filter(|r| progress && !lost && ack.ts >= r.round) {
                recovery.window += (sender.base_window.max(1) / 20).max(t.payload as u64);
                recovery.round = self.now;
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
                        return;
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
            self.congestion_control(ack, News { acked, loss: lost });
            self.messages_acknowledged(ack.flow);
        }
        self.kick(nic);
    }

    /// The retransmission deadline is `rto` from now. It counts only while something is outstanding when it comes.
    fn set_deadline(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        sender.deadline = self.now + self.case.transport.rto_ps;
        if !sender.deadline_queued {
            sender.deadline_queued = true;
            let t = sender.deadline;
            self.queue.push(Lineage::periodic(u32::MAX), t, Event::Rto(flow));
        }
    }

    pub(super) fn rto_timer(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        sender.deadline_queued = false;
        if sender.snd_una == sender.snd_nxt {
            return;
        }
        if sender.deadline > self.now {
            sender.deadline_queued = true;
            let t = sender.deadline;
            self.queue.push(Lineage::periodic(u32::MAX), t, Event::Rto(flow));
            return;
        }
        sender.retries += 1;
        if sender.retries > self.case.transport.rto_retries {
            self.failure = Some(Failure::GaveUp { flow });
            return;
        }
        sender.step_back(&self.case.transport, self.now);
        let nic = sender.nic;
        self.set_deadline(flow);
        self.kick(nic);
    }
}
