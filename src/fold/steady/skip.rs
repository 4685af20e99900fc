//! A skip: a steady partition is not simulated for some time. Its packets stay in the snapshot, and its queue pairs go on at the rates they had.
//! Message events are reported when they are due.
//! A skip ends when something may change the rates: a queue pair runs out of bytes, rows join, or the planned time is over.
//!
//! Afterwards the partition is in the snapshot it started from, moved ahead by what its queue pairs sent: sequence numbers by whole packets, clocks
//! and timers by the time.
//!
//! Layer: fold/steady.

use hyperfold_engine::cpu::key::NO_EVENT;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::memo::node::MessageEvent;
use crate::memo::skip_plan::{SkipPlan, SkipRate};
use crate::rows::advanced_rows::{AdvancedRows, FRACTION};
use crate::rows::index::RowIndex;
use crate::rows::message_stream::MessageStream;
use crate::rows::partition_rows::{Member, PartitionRows};
use crate::steady::rates_plan::OVER;
use crate::steady::sampling::hops_there_and_back;
use crate::steady::shares::TransmitterShares;
use crate::steady::skip_planning::ports_of_data;
use hyperfold_columns::{NEVER, Tables, TaskIdx};
use hyperfold_engine::cpu::key::EventKey;
use hyperfold_engine::cpu::{nic, task};

/// Message events, in the order in which they are reported at one instant.
const MESSAGE_EVENTS: [MessageEvent; 3] = [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked];

/// A skip in progress.
#[derive(Clone)]
pub(crate) struct Skip {
    pub plan: Arc<SkipPlan>,
    pub since: u64,
    streams: Vec<Option<SkippedStream>>,
    /// Next message events: (time in ps, queue pair and event as of [`place`]). An entry that no longer agrees with the queue pair is void; the first
    /// entry never is.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Whether the partition may be looked up again afterwards.
    pub may_look_up: bool,
    /// For an audit: how many messages of each queue pair had been given to the network, posted, and delivered when the skip began.
    pub before: Vec<[usize; 3]>,
    /// Bytes that the queue pairs that are over had sent in the window.
    over_bytes: u64,
    /// If rates are carried on: how transmitters are shared.
    shares: TransmitterShares,
}

/// A queue pair that goes on: its stream, and the packets up to which it had acknowledged, delivered and sent when the skip began.
#[derive(Clone)]
struct SkippedStream {
    stream: MessageStream,
    una: u64,
    delivered: u64,
    sent: u64,
    /// Bytes on the wire per window, and packets from one action of congestion control to the next, as in [`SkipRate`].
    work: u64,
    turn: u64,
    /// The stream's work up to the acknowledged packets.
    work_acked: u64,
    /// For each kind of event, the time in ps of the next one that some task waits for; `NEVER`: no posted message has one. Earlier events are
    /// reported with it.
    due: [u64; 3],
    /// For each kind of event, the message before which no unreported event has a task that waits for it.
    scanned: [usize; 3],
    /// Time at which `work_acked` was acknowledged, in ps.
    base: u64,
    /// If rates are carried on: its measured rate, and the time since which it has had nothing to send (`NEVER`: it has something).
    full: u64,
    drained_at: u64,
    /// Time that the acknowledgement of a delivered message takes, in ps.
    returns: u64,
    /// Whether it has run out of data since the skip began. What it sends after that counts as sent, delivered and acknowledged at once, after
    /// the time that measured acknowledgements took.
    lands: bool,
    /// Whether it is over: nothing was posted on it within its patience.
    is_over: bool,
}

impl Skip {
    /// Begins a skip at `since` (ps) of the partition of `rows`, which are not in the tables.
    pub(crate) fn new(
        t: &Tables,
        rows: &PartitionRows,
        index: &RowIndex,
        plan: Arc<SkipPlan>,
        since: u64,
        may_look_up: bool,
    ) -> Skip {
        let go_on = |(m, rate): (&Member, &SkipRate)| {
            if rate.work == 0 || !m.routed {
                return None;
            }
            let given: u64 = m.posted[..m.given].iter().map(|&(i, _)| t.tasks[i].bytes).sum();
            let una = t.flow_tx[m.flow].snd_una;
            let stream = MessageStream::new(t, m, una - (given - rate.left));
            let una = stream.packet(una);
            // Reported events may be ahead of the rows. Then the queue pair has nothing to send.
            let drained = plan.carried.is_some() && m.acked == m.posted.len();
            let work_acked = stream.work(if drained { stream.packets() } else { una });
            Some(SkippedStream {
                base: since,
                full: rate.work,
                returns: u64::from(t.flow_tx[m.flow].base_rtt_ns) * 1000 / 2,
                drained_at: if drained { since } else { NEVER },
                lands: false,
                is_over: false,
                stream,
                una,
                delivered: una + rate.arrived,
                sent: una + rate.sent,
                work: rate.work,
                turn: rate.turn,
                work_acked,
                due: [NEVER; 3],
                scanned: [0; 3],
            })
        };
        let streams = rows.members.iter().zip(&plan.rates).map(go_on).collect();
        let before = rows.members.iter().map(|m| [m.given, m.posted.len(), m.delivered]).collect();
        let shares = match &plan.carried {
            Some(carried) => TransmitterShares::new(t, rows, index, &plan, &carried.sent),
            _ => TransmitterShares::default(),
        };
        let mut skip =
            Skip { plan, since, streams, queue: BinaryHeap::new(), may_look_up, before, over_bytes: 0, shares };
        let goes = |row: &Option<SkippedStream>| row.as_ref().is_some_and(|row| row.drained_at == NEVER);
        for m in (0..skip.streams.len()).filter(|&m| goes(&skip.streams[m])).collect::<Vec<_>>() {
            skip.shares.switch(m, true);
        }
        if skip.plan.carried.is_some() {
            (0..skip.streams.len()).for_each(|m| skip.share(m, since));
        }
        for (m, member) in rows.members.iter().enumerate() {
            let more = t.flow_tx[member.flow].msg_post.is_some();
            if more {
                skip.await_post(m, true);
            }
            MESSAGE_EVENTS.into_iter().for_each(|event| skip.foresee(m, member, event));
        }
        skip
    }

    /// The next message event: its time in ps, its kind and its queue pair. `None` instead of the latter two: the skip ends by itself.
    pub(crate) fn next_event(&self) -> (u64, Option<(MessageEvent, usize)>) {
        let end_ps = self.since.saturating_add(self.plan.until);
        match self.queue.peek() {
            // Events at the very end of the skip still happen.
            Some(&Reverse((at_ps, place))) if at_ps <= end_ps => {
                let (m, event) = at_place(place);
                (at_ps, Some((event, m)))
            }
            _ => (end_ps, None),
        }
    }

    /// Finds the next events of queue pair `m`, after those up to `at_ps` have been reported.
    pub(crate) fn foresee_after(&mut self, m: usize, member: &Member, at_ps: u64) {
        for event in MESSAGE_EVENTS {
            if self.streams[m].as_ref().is_some_and(|row| row.due[event as usize] <= at_ps) {
                self.foresee(m, member, event);
            }
        }
    }

    /// Waits for a post on queue pair `m`, whose messages are all acknowledged; it is over after its patience. If no `more` messages are to come, it
    /// is over at once.
    fn await_post(&mut self, m: usize, more: bool) {
        let (Some(row), Some(carried)) = (&mut self.streams[m], &self.plan.carried) else { return };
        if row.drained_at != NEVER {
            let at_ps = row.drained_at + if more { carried.patience } else { 0 };
            row.due[MessageEvent::Sent as usize] = at_ps;
            self.queue.push(Reverse((at_ps, place(m, MessageEvent::Sent))));
        }
        self.drop_void();
    }

    /// Marks queue pair `m` as over, because nothing was posted on it within its patience. Returns whether the other queue pairs will change their
    /// rates, because many of the sent bytes belonged to queue pairs that are over.
    pub(crate) fn is_over(&mut self, m: usize) -> bool {
        if let Some(row) = &mut self.streams[m] {
            row.due[MessageEvent::Sent as usize] = NEVER;
            row.is_over = true;
        }
        self.drop_void();
        let Some(carried) = &self.plan.carried else { return true };
        self.over_bytes += carried.sent[m];
        u128::from(self.over_bytes) * 1_000_000
            > OVER * u128::from(carried.sent.iter().sum::<u64>()) * u128::from(self.plan.theta_ppm)
    }

    /// Adds the messages posted at `at_ps` on queue pair `m`, which goes on.
    pub(crate) fn extend(&mut self, t: &Tables, m: usize, member: &Member, at_ps: u64) {
        let Some(row) = &mut self.streams[m] else { return };
        row.stream.extend(t, member);
        if row.drained_at != NEVER {
            row.base = at_ps;
            row.drained_at = NEVER;
            row.lands = true;
            if let (true, Some(carried)) = (std::mem::take(&mut row.is_over), &self.plan.carried) {
                self.over_bytes -= carried.sent[m];
            }
            row.due[MessageEvent::Sent as usize] = NEVER;
        }
        let due = row.due;
        for event in MESSAGE_EVENTS {
            if due[event as usize] == NEVER {
                self.foresee(m, member, event);
            }
        }
        self.drop_void();
    }

    /// Number of packets by which each queue pair has gone on at `at_ps`.
    pub(crate) fn moved_by(&self, at_ps: u64) -> Vec<u64> {
        (0..self.streams.len()).map(|m| self.moved(m, at_ps)).collect()
    }

    /// Packet-hops of `moved` packets of each queue pair and of their acknowledgements.
    pub(crate) fn hops(&self, t: &Tables, rows: &PartitionRows, moved: &[u64]) -> u64 {
        rows.members.iter().zip(moved).map(|(m, &moved)| moved * hops_there_and_back(t, m.flow)).sum()
    }

    /// Each queue pair, moved ahead by `moved` packets.
    pub(crate) fn advanced(&self, moved: &[u64]) -> Vec<Option<AdvancedRows<'_>>> {
        self.streams
            .iter()
            .zip(moved)
            .map(|(m, &moved)| m.as_ref().map(|m| AdvancedRows { stream: &m.stream, n_packets: moved, turn: m.turn }))
            .collect()
    }

    /// Adds what was sent up to `at_ps`, `moved` packets of each queue pair, to the counters of the tables. Returns the packet-hops of that.
    pub(crate) fn count(&self, t: &mut Tables, rows: &PartitionRows, moved: &[u64], at_ps: u64) -> u64 {
        let e = t.exps[0];
        let mut hops = 0;
        let mut waiting = self.plan.waiting.iter().copied();
        for (m, ((row, &moved), member)) in self.streams.iter().zip(moved).zip(&rows.members).enumerate() {
            let behind: Vec<u32> = waiting.by_ref().take(ports_of_data(t, member)).collect();
            let Some(row) = row else { continue };
            let f = member.flow;
            // Bytes of data that a transmitter sent, if it had yet to send `behind` of the packets in flight.
            let data = |behind: u32| {
                let from = row.sent.saturating_sub(u64::from(behind));
                row.stream.byte(from + moved) - row.stream.byte(from)
            };
            let (tx, rx) = (&mut t.flow_tx[f], &mut t.flow_rx[f]);
            tx.sent_bytes += data(0);
            tx.n_sent = tx.n_sent.wrapping_add(moved as u32);
            if let Some(own) = self.plan.round_trips.get(m) {
                let (sum_ps, n) = own.of_packets(moved);
                tx.rtt_sum += sum_ps;
                tx.rtt_seen = tx.rtt_seen.wrapping_add(n as u32);
            }
            rx.arrived_bytes += row.stream.byte(row.delivered + moved) - row.stream.byte(row.delivered);
            rx.n_acks = rx.n_acks.wrapping_add(moved as u32);
            rx.milestone += moved * e.ack_interval;
            t.nics[tx.nic].hops += moved;
            t.nics[tx.nic].tx_bytes += data(0) + moved * u64::from(e.data_overhead);
            for (k, behind) in (tx.path_first..tx.path_first + tx.path_len).zip(behind) {
                let port = &mut t.ports[t.paths[k as usize]];
                port.hops += moved;
                port.tx_bytes += data(behind) + moved * u64::from(e.data_overhead);
            }
            t.nics[rx.nic].hops += moved;
            t.nics[rx.nic].tx_bytes += moved * u64::from(e.ack_bytes);
            for k in rx.path_first..rx.path_first + rx.path_len {
                let port = &mut t.ports[t.paths[k as usize]];
                port.hops += moved;
                port.tx_bytes += moved * u64::from(e.ack_bytes);
            }
            hops += moved * u64::from(2 + tx.path_len + rx.path_len);
        }
        let share = |x: u64| (u128::from(x) * u128::from(at_ps - self.since) / u128::from(self.plan.window)) as u64;
        for (&q, &(area, marks)) in rows.ports.iter().zip(&self.plan.ports) {
            t.ports[q].q_area += share(area);
            t.ports[q].marks += share(marks);
        }
        hops
    }

    /// Whether queue pair `m` goes on during the skip.
    pub(crate) fn goes_on(&self, m: usize) -> bool {
        self.streams.get(m).is_some_and(Option::is_some)
    }

    /// Number of packets of queue pair `m` between two bytes of its stream.
    pub(crate) fn packets(&self, m: usize, from: u64, to: u64) -> u64 {
        self.streams[m].as_ref().map_or(0, |row| row.stream.packet(to) - row.stream.packet(from))
    }

    /// Number of bytes by which queue pair `m` has gone on at `at_ps`.
    pub(crate) fn bytes(&self, m: usize, at_ps: u64) -> u64 {
        let Some(row) = self.streams.get(m).and_then(Option::as_ref) else { return 0 };
        row.stream.byte(row.sent + self.moved(m, at_ps)) - row.stream.byte(row.sent)
    }

    /// Number of packets by which queue pair `m` has gone on at `at_ps`.
    fn moved(&self, m: usize, at_ps: u64) -> u64 {
        let Some(row) = &self.streams[m] else { return 0 };
        let active = at_ps.min(row.drained_at).saturating_sub(row.base);
        let work = u128::from(active) * u128::from(row.work) / (u128::from(self.plan.window) << FRACTION);
        let max_packets = row.stream.packets() - row.sent;
        (row.stream.worked(row.work_acked + work as u64) - row.una).min(max_packets)
    }

    /// Time of `event` for message `nth` of queue pair `m`, in ps; `NEVER`: it is not posted.
    fn when(&self, m: usize, nth: usize, event: MessageEvent) -> u64 {
        let Some(row) = &self.streams[m] else { return NEVER };
        let from = match event {
            _ if row.lands => row.una,
            MessageEvent::Sent => row.sent,
            MessageEvent::Delivered => row.delivered,
            MessageEvent::Acked => row.una,
        };
        let Some(end) = row.stream.end(nth) else { return NEVER };
        let window = u128::from(self.plan.window) << FRACTION;
        // If messages renew queue pairs, sent messages are not counted; past events are reported at once.
        let work = row.stream.work_before(nth, row.una + end.saturating_sub(from)).saturating_sub(row.work_acked);
        let at_ps = row.base + (u128::from(work) * window).div_ceil(u128::from(row.work)) as u64;
        // A message takes until its acknowledgement is there, as was measured.
        let returns = if row.lands && event != MessageEvent::Acked { row.returns } else { 0 };
        at_ps.saturating_sub(returns).max(row.base)
    }

    /// Sets the rate of queue pair `m` to its present share, from `at_ps` on.
    pub(crate) fn share(&mut self, m: usize, at_ps: u64) {
        let Some(row) = &mut self.streams[m] else { return };
        let rate = self.shares.rate(m, row.full);
        if rate == row.work {
            return;
        }
        let active = at_ps.min(row.drained_at).saturating_sub(row.base);
        let window = u128::from(self.plan.window) << FRACTION;
        if row.drained_at == NEVER {
            row.work_acked += (u128::from(active) * u128::from(row.work) / window) as u64;
            row.base = at_ps;
        }
        row.work = rate;
    }

    /// Sets whether queue pair `m` has something to send (`sends`). Returns the queue pairs whose shares may change, including `m`.
    pub(crate) fn switch(&mut self, m: usize, sends: bool) -> Vec<usize> {
        self.shares.switch(m, sends)
    }

    /// Whether queue pair `m` has something to send.
    pub(crate) fn sends(&self, m: usize) -> bool {
        self.streams.get(m).is_some_and(|row| row.as_ref().is_some_and(|row| row.drained_at == NEVER))
    }

    /// Finds all next events of queue pair `m` anew.
    pub(crate) fn foresee_all(&mut self, m: usize, member: &Member) {
        MESSAGE_EVENTS.into_iter().for_each(|event| self.foresee(m, member, event));
    }

    /// Finds the next event of queue pair `m` that matters: the last posted message is sent, which may end the skip; or a message is delivered or
    /// acknowledged that a task waits for.
    fn foresee(&mut self, m: usize, member: &Member, event: MessageEvent) {
        let Some(row) = &self.streams[m] else { return };
        let from = row.scanned[event as usize];
        let nth = match event {
            // If rates are carried on, what matters is when everything is acknowledged.
            MessageEvent::Sent if self.plan.carried.is_some() => return,
            MessageEvent::Sent => (member.sent < member.posted.len()).then(|| member.posted.len() - 1),
            MessageEvent::Delivered => row.stream.next_delivered(from.max(member.delivered)),
            MessageEvent::Acked => row.stream.next_acked(from.max(member.acked)).or_else(|| {
                (self.plan.carried.is_some() && member.acked < member.posted.len()).then(|| member.posted.len() - 1)
            }),
        };
        let at_ps = nth.map_or(NEVER, |nth| self.when(m, nth, event));
        if let Some(row) = &mut self.streams[m] {
            row.due[event as usize] = at_ps;
            row.scanned[event as usize] = nth.unwrap_or(member.posted.len());
        }
        if at_ps != NEVER {
            self.queue.push(Reverse((at_ps, place(m, event))));
        }
        self.drop_void();
    }

    /// Removes void entries from the front of the queue.
    fn drop_void(&mut self) {
        while let Some(&Reverse((at_ps, place))) = self.queue.peek() {
            let (m, event) = at_place(place);
            if self.streams[m].as_ref().is_some_and(|row| row.due[event as usize] == at_ps) {
                break;
            }
            self.queue.pop();
        }
    }

    /// Reports messages of queue pair `m` that were sent by `at_ps`. The next ones are given to the network.
    pub(crate) fn report_sent(&self, m: usize, member: &mut Member, at_ps: u64) {
        while member.sent < member.posted.len() && self.when(m, member.sent, MessageEvent::Sent) <= at_ps {
            member.sent += 1;
            member.given = member.posted.len().min(member.given + 1);
        }
    }

    /// Reports messages of queue pair `m` that were delivered by `at_ps`.
    pub(crate) fn report_delivered(&self, t: &mut Tables, m: usize, member: &mut Member, at_ps: u64) {
        let n = t.flow_rx[member.flow].nic;
        while member.delivered < member.posted.len() {
            let when = self.when(m, member.delivered, MessageEvent::Delivered);
            if when > at_ps {
                return;
            }
            let i = member.posted[member.delivered].0;
            task::delivered(t, n, i, t.tasks[i].follow, &EventKey { t: when, ..NO_EVENT });
            nic::set_clock(t, n);
            member.delivered += 1;
        }
    }

    /// Reports messages of queue pair `m` that were acknowledged by `at_ps`.
    pub(crate) fn report_acked(&self, t: &mut Tables, m: usize, member: &mut Member, at_ps: u64) {
        while member.acked < member.posted.len() {
            let when = self.when(m, member.acked, MessageEvent::Acked);
            if when > at_ps {
                return;
            }
            let i = member.posted[member.acked].0;
            let (owner, follow) = (t.tasks[i].owner, t.tasks[i].follow);
            task::acknowledged(t, owner, i, follow, &EventKey { t: when, ..NO_EVENT });
            nic::set_clock(t, owner);
            member.acked += 1;
            member.note_acked(when);
        }
    }

    /// Reports what the rows of `member`, which are in the tables again at `at_ps`, have delivered or acknowledged: because of packets in flight in the
    /// snapshot they may be further than the rates say.
    pub(crate) fn report_as_rows(&self, t: &mut Tables, member: &mut Member, at_ps: u64) {
        let place = |i: TaskIdx| member.posted.iter().position(|x| x.0 == i).unwrap_or(member.posted.len());
        let (delivered, acked) = (place(t.flow_rx[member.flow].msg), place(t.flow_tx[member.flow].msg_ack));
        let (n, key) = (t.flow_rx[member.flow].nic, EventKey { t: at_ps, ..NO_EVENT });
        while member.delivered < delivered {
            let i = member.posted[member.delivered].0;
            task::delivered(t, n, i, t.tasks[i].follow, &key);
            member.delivered += 1;
        }
        while member.acked < acked {
            let i = member.posted[member.acked].0;
            let (owner, follow) = (t.tasks[i].owner, t.tasks[i].follow);
            task::acknowledged(t, owner, i, follow, &key);
            member.acked += 1;
            member.note_acked(at_ps);
        }
        nic::set_clock(t, n);
        nic::set_clock(t, t.flow_tx[member.flow].nic);
    }

    /// If rates were carried on, counts messages that are delivered or acknowledged as sent.
    pub(crate) fn settle_sent(&self, m: usize, member: &mut Member) {
        if self.plan.carried.is_some() && self.goes_on(m) {
            member.sent = member.sent.max(member.delivered).max(member.acked);
        }
    }

    /// If all messages of queue pair `m` are acknowledged, it has nothing to send until the next post.
    pub(crate) fn drain_if_done(&mut self, t: &Tables, m: usize, member: &Member, at_ps: u64) {
        let Some(row) = &mut self.streams[m] else { return };
        if self.plan.carried.is_some() && row.drained_at == NEVER && member.acked == member.posted.len() {
            row.drained_at = at_ps;
            row.work_acked = row.stream.work(row.stream.packets());
            row.base = at_ps;
            self.await_post(m, t.flow_tx[member.flow].msg_post.is_some());
        }
    }
}

/// Code of a queue pair and an event. Codes are ordered by queue pair, then by event: the order in which events of one instant happen.
fn place(m: usize, event: MessageEvent) -> u32 {
    m as u32 * 3 + event as u32
}

/// Queue pair and event of a code.
fn at_place(place: u32) -> (usize, MessageEvent) {
    (place as usize / 3, [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked][place as usize % 3])
}
