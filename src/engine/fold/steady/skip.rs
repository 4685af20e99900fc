//! A skip: a steady partition is not simulated. Its packets stay in the snapshot, and its queue pairs go on at the
//! rates they had. Message events are reported when they are due.
//! A skip ends when something may change the rates: a queue pair runs out of bytes, rows join, or the planned time is
//! over.
//!
//! Afterwards the partition is in the snapshot it started from, moved ahead by what its queue pairs sent: sequence
//! numbers by whole packets, clocks and timers by the time.
//!
//! Layer: fold/steady.

use crate::engine::cpu::key::NO_EVENT;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::columns::{NEVER, Tables};
use crate::engine::cpu::key::EventKey;
use crate::engine::cpu::{nic, task};
use crate::engine::fold::memo::node::MessageEvent;
use crate::engine::fold::memo::skip_plan::{SkipPlan, SkipRate};
use crate::engine::fold::rows::advanced_rows::{AdvancedRows, FRACTION};
use crate::engine::fold::rows::message_stream::MessageStream;
use crate::engine::fold::rows::partition_rows::{Member, PartitionRows};

/// What can happen to a message, in the order in which it is reported at one instant.
const MESSAGE_EVENTS: [MessageEvent; 3] = [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked];

/// A skip in progress.
#[derive(Clone)]
pub(crate) struct Skip {
    pub plan: Arc<SkipPlan>,
    pub since: u64,
    streams: Vec<Option<SkippedStream>>,
    /// Next message events: (when, queue pair and event by [`place`]). An entry that no longer agrees with the queue
    /// pair is void; the first never is.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Whether the partition may be looked up again afterwards.
    pub may_look_up: bool,
    /// Where the skip is to be audited: of each queue pair how many messages had been given to the network, posted, and
    /// delivered.
    pub audit: Option<Vec<[usize; 3]>>,
}

/// A queue pair that goes on: its stream, and the packets up to which it had acknowledged, delivered and sent when the
/// skip began.
#[derive(Clone)]
struct SkippedStream {
    stream: MessageStream,
    una: u64,
    delivered: u64,
    sent: u64,
    /// As in [`SkipRate`].
    work: u64,
    turn: u64,
    /// The stream's work up to what was acknowledged.
    work_acked: u64,
    /// When the next event of each kind is due that some task waits for; `NEVER`: no posted message has one. Earlier
    /// events are reported with it.
    due: [u64; 3],
    /// Of each kind, the message up to which no unreported event has a task waiting.
    scanned: [usize; 3],
}

impl Skip {
    /// The partition of `rows`, which are not in the tables, is skipped from `since`.
    pub(crate) fn new(t: &Tables, rows: &PartitionRows, plan: Arc<SkipPlan>, since: u64, may_look_up: bool) -> Skip {
        let go_on = |(m, rate): (&Member, &SkipRate)| {
            if rate.work == 0 {
                return None;
            }
            let given: u64 = m.posted[..m.given].iter().map(|&(i, _)| t.tasks[i].bytes).sum();
            let una = t.flow_tx[m.flow].snd_una;
            let stream = MessageStream::new(t, m, una - (given - rate.left));
            let una = stream.packet(una);
            let work_acked = stream.work(una);
            Some(SkippedStream {
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
        let mut skip = Skip { plan, since, streams, queue: BinaryHeap::new(), may_look_up, audit: None };
        for (m, member) in rows.members.iter().enumerate() {
            MESSAGE_EVENTS.into_iter().for_each(|event| skip.foresee(m, member, event));
        }
        skip
    }

    /// What happens next to messages: when, what, of which queue pair. `None` there: the skip ends by itself.
    pub(crate) fn next_event(&self) -> (u64, Option<(MessageEvent, usize)>) {
        let until = self.since.saturating_add(self.plan.until);
        match self.queue.peek() {
            // What happens at the end of the skip has happened.
            Some(&Reverse((at, place))) if at <= until => {
                let (m, event) = at_place(place);
                (at, Some((event, m)))
            }
            _ => (until, None),
        }
    }

    /// Events of queue pair `m` up to `at` have been reported: finds the next ones.
    pub(crate) fn foresee_after(&mut self, m: usize, member: &Member, at: u64) {
        for event in MESSAGE_EVENTS {
            if self.streams[m].as_ref().is_some_and(|row| row.due[event as usize] <= at) {
                self.foresee(m, member, event);
            }
        }
    }

    /// Queue pair `m`, which goes on, posted messages.
    pub(crate) fn extend(&mut self, t: &Tables, m: usize, member: &Member) {
        let Some(row) = &mut self.streams[m] else { return };
        row.stream.extend(t, member);
        let due = row.due;
        for event in MESSAGE_EVENTS {
            if due[event as usize] == NEVER {
                self.foresee(m, member, event);
            }
        }
    }

    /// How many packets each queue pair has gone on by at `at`.
    pub(crate) fn moved_by(&self, at: u64) -> Vec<u64> {
        (0..self.streams.len()).map(|m| self.moved(m, at)).collect()
    }

    /// Each queue pair, as it went on by `by` packets.
    pub(crate) fn advanced(&self, by: &[u64]) -> Vec<Option<AdvancedRows<'_>>> {
        self.streams
            .iter()
            .zip(by)
            .map(|(m, &by)| m.as_ref().map(|m| AdvancedRows { stream: &m.stream, by, turn: m.turn }))
            .collect()
    }

    /// Adds what was sent up to `at`, `by` packets of each queue pair, to the counters of the tables. Returns the
    /// packet-hops of that.
    pub(crate) fn count(&self, t: &mut Tables, rows: &PartitionRows, by: &[u64], at: u64) -> u64 {
        let e = t.exps[0];
        let mut hops = 0;
        for ((row, &by), member) in self.streams.iter().zip(by).zip(&rows.members) {
            let Some(row) = row else { continue };
            let f = member.flow;
            let sent = row.stream.byte(row.sent + by) - row.stream.byte(row.sent);
            let (tx, rx) = (&mut t.flow_tx[f], &mut t.flow_rx[f]);
            tx.sent_bytes += sent;
            tx.n_sent = tx.n_sent.wrapping_add(by as u32);
            rx.arrived_bytes += row.stream.byte(row.delivered + by) - row.stream.byte(row.delivered);
            rx.n_acks = rx.n_acks.wrapping_add(by as u32);
            rx.milestone += by * e.ack_interval;
            let data = (tx.nic, tx.path_first, tx.path_len, sent + by * u64::from(e.data_overhead));
            let acks = (rx.nic, rx.path_first, rx.path_len, by * u64::from(e.ack_bytes));
            for (n, first, len, bytes) in [data, acks] {
                t.nics[n].hops += by;
                t.nics[n].tx_bytes += bytes;
                for k in first..first + len {
                    let port = &mut t.ports[t.paths[k as usize]];
                    port.hops += by;
                    port.tx_bytes += bytes;
                }
                hops += by * u64::from(1 + len);
            }
        }
        let share = |x: u64| (u128::from(x) * u128::from(at - self.since) / u128::from(self.plan.window)) as u64;
        for (&q, &(area, marks)) in rows.ports.iter().zip(&self.plan.ports) {
            t.ports[q].q_area += share(area);
            t.ports[q].marks += share(marks);
        }
        hops
    }

    /// Whether queue pair `m` goes on.
    pub(crate) fn goes_on(&self, m: usize) -> bool {
        self.streams.get(m).is_some_and(Option::is_some)
    }

    /// How many packets of queue pair `m` lie between two bytes of its stream.
    pub(crate) fn packets(&self, m: usize, from: u64, to: u64) -> u64 {
        self.streams[m].as_ref().map_or(0, |row| row.stream.packet(to) - row.stream.packet(from))
    }

    /// How many packets queue pair `m` has gone on by at `at`.
    fn moved(&self, m: usize, at: u64) -> u64 {
        let Some(row) = &self.streams[m] else { return 0 };
        let work = u128::from(at - self.since) * u128::from(row.work) / (u128::from(self.plan.window) << FRACTION);
        (row.stream.worked(row.work_acked + work as u64) - row.una).min(row.stream.packets() - row.sent)
    }

    /// When `event` of message `nth` of queue pair `m` happens; `NEVER`: it is not posted.
    fn when(&self, m: usize, nth: usize, event: MessageEvent) -> u64 {
        let Some(row) = &self.streams[m] else { return NEVER };
        let from = match event {
            MessageEvent::Sent => row.sent,
            MessageEvent::Delivered => row.delivered,
            MessageEvent::Acked => row.una,
        };
        let Some(end) = row.stream.end(nth) else { return NEVER };
        let window = u128::from(self.plan.window) << FRACTION;
        // Where messages renew queue pairs, sent messages are not counted: past events are reported at once.
        let work = row.stream.work_before(nth, row.una + end.saturating_sub(from)) - row.work_acked;
        self.since + (u128::from(work) * window).div_ceil(u128::from(row.work)) as u64
    }

    /// Finds the next event of queue pair `m` that matters: the last posted message is sent, which may end the skip; a
    /// message is delivered or acknowledged that a task waits for.
    fn foresee(&mut self, m: usize, member: &Member, event: MessageEvent) {
        let Some(row) = &self.streams[m] else { return };
        let from = row.scanned[event as usize];
        let nth = match event {
            MessageEvent::Sent => (member.sent < member.posted.len()).then(|| member.posted.len() - 1),
            MessageEvent::Delivered => row.stream.next_delivered(from.max(member.delivered)),
            MessageEvent::Acked => row.stream.next_acked(from.max(member.acked)),
        };
        let at = nth.map_or(NEVER, |nth| self.when(m, nth, event));
        if let Some(row) = &mut self.streams[m] {
            row.due[event as usize] = at;
            row.scanned[event as usize] = nth.unwrap_or(member.posted.len());
        }
        if at != NEVER {
            self.queue.push(Reverse((at, place(m, event))));
        }
        while let Some(&Reverse((at, place))) = self.queue.peek() {
            let (m, event) = at_place(place);
            if self.streams[m].as_ref().is_some_and(|row| row.due[event as usize] == at) {
                break;
            }
            self.queue.pop();
        }
    }

    /// Reports messages of queue pair `m` that were sent by `at`; the next ones are given to the network.
    pub(crate) fn report_sent(&self, m: usize, member: &mut Member, at: u64) {
        while member.sent < member.posted.len() && self.when(m, member.sent, MessageEvent::Sent) <= at {
            member.sent += 1;
            member.given = member.posted.len().min(member.given + 1);
        }
    }

    /// Reports messages of queue pair `m` that were delivered by `at`.
    pub(crate) fn report_delivered(&self, t: &mut Tables, m: usize, member: &mut Member, at: u64) {
        let n = t.flow_rx[member.flow].nic;
        while member.delivered < member.posted.len() {
            let when = self.when(m, member.delivered, MessageEvent::Delivered);
            if when > at {
                return;
            }
            task::delivered(t, n, member.posted[member.delivered].0, &EventKey { t: when, ..NO_EVENT });
            nic::set_clock(t, n);
            member.delivered += 1;
        }
    }

    /// Reports messages of queue pair `m` that were acknowledged by `at`.
    pub(crate) fn report_acked(&self, t: &mut Tables, m: usize, member: &mut Member, at: u64) {
        while member.acked < member.posted.len() {
            let when = self.when(m, member.acked, MessageEvent::Acked);
            if when > at {
                return;
            }
            let i = member.posted[member.acked].0;
            let (owner, follow) = (t.tasks[i].owner, t.tasks[i].follow);
            task::acknowledged(t, owner, i, follow, &EventKey { t: when, ..NO_EVENT });
            nic::set_clock(t, owner);
            member.acked += 1;
        }
    }
}

/// Places are ordered by queue pair, then by event: the order in which events of one instant happen.
fn place(m: usize, event: MessageEvent) -> u32 {
    m as u32 * 3 + event as u32
}

fn at_place(place: u32) -> (usize, MessageEvent) {
    (place as usize / 3, [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked][place as usize % 3])
}
