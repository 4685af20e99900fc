//! Partitions asleep: steady ones are not simulated. Their packets stay where they are, their queue pairs go on at the rates they had, messages are told when their turn
//! comes, until something happens that may change the rates: a queue pair runs out of bytes, somebody joins, or what was seen is not to be trusted any longer.
//!
//! Who wakes is in the state it fell asleep in, moved on by what its queue pairs sent meanwhile: sequence numbers by whole packets, clocks and timers by the time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::columns::{NEVER, NONE, Tables, qp, task as bits};
use crate::engine::cpu::key::{EventKey, NO_EVENT};
use crate::engine::cpu::{nic, task};
use crate::engine::fold::Stop;
use crate::engine::fold::memo::table::MessageEvent;
use crate::engine::fold::rows::advanced_rows::AdvancedRows;
use crate::engine::fold::rows::message_stream::MessageStream;
use crate::engine::fold::rows::snapshot;
use crate::engine::fold::run::audit::is_audited;
use crate::engine::fold::run::partition::Member;
use crate::engine::fold::run::recording::waits_its_turn;
use crate::engine::fold::run::turns::Run;
use crate::engine::fold::steady::skip_plan::{FRACTION, SkipPlan, SkipRate};

/// A partition that sleeps.
#[derive(Clone)]
pub struct Skip {
    pub plan: Arc<SkipPlan>,
    pub since: u64,
    streams: Vec<Option<SkippedStream>>,
    /// What happens next to messages: (when, queue pair and tidings by [`place`]). One that the queue pair does not say is void; the first is not.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Whether it may be looked up again when it wakes.
    may_look_up: bool,
    /// Where it is to be simulated all the same: of each queue pair how many messages had been given, posted, and had arrived.
    audit: Option<Vec<[usize; 3]>>,
}

/// A queue pair that goes on: its stream, and where in it, in packets, its acknowledged, arrived and sent ones ended when it fell asleep.
#[derive(Clone)]
struct SkippedStream {
    stream: MessageStream,
    una: u64,
    delivered: u64,
    sent: u64,
    /// As in [`Pace`].
    work: u64,
    turn: u64,
    /// The stream's work up to what was acknowledged.
    work_acked: u64,
    /// When the next tidings of each kind are due that matter to anybody; `NEVER`: of no message that is posted. All before are told with them.
    due: [u64; 3],
    /// Of each kind, up to which message none matters that has not been told.
    scanned: [usize; 3],
}

impl Skip {
    /// Whether queue pair `m` goes on.
    pub fn goes_on(&self, m: usize) -> bool {
        self.streams[m].is_some()
    }

    /// How many packets of queue pair `m` lie between two bytes of its stream.
    pub fn packets(&self, m: usize, from: u64, to: u64) -> u64 {
        self.streams[m].as_ref().map_or(0, |row| row.stream.packet(to) - row.stream.packet(from))
    }

    /// How many packets queue pair `m` has gone on by at `at`.
    fn moved(&self, m: usize, at: u64) -> u64 {
        let Some(row) = &self.streams[m] else { return 0 };
        let work = u128::from(at - self.since) * u128::from(row.work) / (u128::from(self.plan.window) << FRACTION);
        (row.stream.worked(row.work_acked + work as u64) - row.una).min(row.stream.packets() - row.sent)
    }

    /// When message `nth` of queue pair `m` will have come to `tidings`; `NEVER`: it is not posted.
    fn when(&self, m: usize, nth: usize, event: MessageEvent) -> u64 {
        let Some(row) = &self.streams[m] else { return NEVER };
        let from = match event {
            MessageEvent::Sent => row.sent,
            MessageEvent::Delivered => row.delivered,
            MessageEvent::Acked => row.una,
        };
        let Some(end) = row.stream.end(nth) else { return NEVER };
        let window = u128::from(self.plan.window) << FRACTION;
        // Where messages start fresh, it is not counted which ones have been sent: those that had been are heard of at once.
        let work = row.stream.work_before(nth, row.una + end.saturating_sub(from)) - row.work_acked;
        self.since + (u128::from(work) * window).div_ceil(u128::from(row.work)) as u64
    }

    /// What matters next of queue pair `m`: that the last message posted so far is sent, as it may wake then; that one arrives or ends for which something waits.
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
}

/// Tidings are told late that nobody waits for: only then do they cost little, as what is told of a message is told at once.
impl Skip {
    /// Messages of queue pair `m` that were sent by `at` are said to be; the next ones have their turn.
    fn report_sent(&self, m: usize, member: &mut Member, at: u64) {
        while member.sent < member.posted.len() && self.when(m, member.sent, MessageEvent::Sent) <= at {
            member.sent += 1;
            member.given = member.posted.len().min(member.given + 1);
        }
    }

    /// The messages of queue pair `m` that arrived by `at` are said to have.
    fn report_delivered(&self, t: &mut Tables, m: usize, member: &mut Member, at: u64) {
        let n = t.flow_rx[member.flow as usize].nic;
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

    /// The messages of queue pair `m` that ended by `at` are said to have.
    fn report_acked(&self, t: &mut Tables, m: usize, member: &mut Member, at: u64) {
        while member.acked < member.posted.len() {
            let when = self.when(m, member.acked, MessageEvent::Acked);
            if when > at {
                return;
            }
            let i = member.posted[member.acked].0;
            let (owner, follow) = (t.tasks[i as usize].owner, t.tasks[i as usize].follow);
            task::acknowledged(t, owner, i, follow, &EventKey { t: when, ..NO_EVENT });
            nic::set_clock(t, owner);
            member.acked += 1;
        }
    }
}

/// Places go by queue pair, then by tidings: in this order things happen that happen at one instant.
fn place(m: usize, event: MessageEvent) -> u32 {
    m as u32 * 3 + event as u32
}

fn at_place(place: u32) -> (usize, MessageEvent) {
    (place as usize / 3, [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked][place as usize % 3])
}

impl Run {
    /// `p`, whose rows are not in the tables, sleeps from `since`.
    pub(in crate::engine::fold) fn begin_skip(
        &mut self,
        t: &Tables,
        p: u32,
        plan: Arc<SkipPlan>,
        since: u64,
        may_look_up: bool,
    ) {
        self.stats.skips += 1;
        let partition = &mut self.partitions[p as usize];
        let go_on = |(m, rate): (&Member, &SkipRate)| {
            if rate.work == 0 {
                return None;
            }
            let given: u64 = m.posted[..m.given].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let una = t.flow_tx[m.flow as usize].snd_una;
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
        let streams = partition.members.iter().zip(&plan.rates).map(go_on).collect();
        partition.looked_up = true;
        partition.cursor = None;
        partition.base_snapshots.clear();
        partition.start = since;
        partition.ended_skip = None;
        let mut skip = Box::new(Skip { plan, since, streams, queue: BinaryHeap::new(), may_look_up, audit: None });
        for (m, member) in partition.members.iter().enumerate() {
            [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked]
                .into_iter()
                .for_each(|x| skip.foresee(m, member, x));
        }
        partition.skip = Some(skip);
    }

    /// Partition `p` has just fallen asleep. It may be one of those that are simulated all the same; of many naps that are the same one is enough.
    pub(in crate::engine::fold) fn select_for_audit(&mut self, t: &Tables, p: u32) {
        let partition = &mut self.partitions[p as usize];
        let Some(skip) = &mut partition.skip else { return };
        if is_audited(&t.exps[0], skip.plan.draw) && self.audited.insert(skip.plan.draw) {
            skip.audit = Some(partition.members.iter().map(|m| [m.given, m.posted.len(), m.delivered]).collect());
        }
    }

    /// What happens next to the messages of sleeping partition `p`: when, what, of which queue pair. `None` there: it wakes by itself.
    fn next_skip_event(&self, p: u32) -> (u64, Option<(MessageEvent, usize)>) {
        let partition = &self.partitions[p as usize];
        let Some(skip) = &partition.skip else { return (NEVER, None) };
        let until = skip.since.saturating_add(skip.plan.until);
        match skip.queue.peek() {
            // What happens as it wakes has happened.
            Some(&Reverse((at, place))) if at <= until => {
                let (m, event) = at_place(place);
                (at, Some((event, m)))
            }
            _ => (until, None),
        }
    }

    /// When sleeping partition `p` goes on, but for its tasks.
    pub(in crate::engine::fold) fn next_of_skip(&self, p: u32) -> u64 {
        self.next_skip_event(p).0
    }

    /// Tells the tasks of sleeping partition `p` all that has happened by `at`; it may wake by that.
    pub(in crate::engine::fold) fn report_skipped(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        // When it wakes, all of that instant has been told.
        let mut ends = None;
        while self.partitions[p as usize].skip.is_some() {
            let (when, what) = self.next_skip_event(p);
            if let Some(ends) = ends.filter(|&ends| ends < when) {
                return self.end_skip(t, p, ends);
            }
            if when > at {
                break;
            }
            let Some((event, m)) = what else {
                self.partitions[p as usize].ended_skip =
                    self.partitions[p as usize].skip.as_ref().map(|skip| Arc::clone(&skip.plan));
                return self.end_skip(t, p, when);
            };
            let partition = &mut self.partitions[p as usize];
            let Some(skip) = &mut partition.skip else { return Ok(()) };
            let member = &mut partition.members[m];
            match event {
                MessageEvent::Sent => {
                    skip.report_sent(m, member, when);
                    // Others may have been posted behind what was the last one.
                    if member.sent == member.posted.len() {
                        ends = Some(when);
                    }
                }
                MessageEvent::Delivered => {
                    skip.report_delivered(t, m, member, when);
                    skip.report_acked(t, m, member, when);
                }
                MessageEvent::Acked => skip.report_acked(t, m, member, when),
            }
            t.fold_trace.clear();
            for event in [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked] {
                if skip.streams[m].as_ref().is_some_and(|row| row.due[event as usize] <= when) {
                    skip.foresee(m, member, event);
                }
            }
        }
        Ok(())
    }

    /// Sleeping partition `p` goes on to `at`, at which somebody joins it, and wakes.
    pub(in crate::engine::fold) fn skip_up_to(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        loop {
            let next = self.next_reported(t, p);
            if self.partitions[p as usize].skip.is_none() {
                return Ok(());
            }
            if next >= at {
                self.report_skipped(t, p, at)?;
                self.collect_all(t, p);
                return self.end_skip(t, p, at);
            }
            self.report_skipped(t, p, next)?;
            self.collect_all(t, p);
            let mut due: Vec<u32> = self.partitions[p as usize]
                .nics
                .iter()
                .copied()
                .filter(|&n| t.nics[n as usize].next_task <= next)
                .collect();
            due.sort_unstable();
            for n in due {
                while self.partitions[p as usize].skip.is_some() && t.nics[n as usize].next_task <= next {
                    // A newcomer of its own: that is for its turn, awake.
                    if !self.post_while_skipped(t, p, n, next) {
                        self.end_skip(t, p, next)?;
                    }
                }
                nic::set_clock(t, n);
                self.collect(t, n);
            }
            if self.partitions[p as usize].nics.iter().any(|&n| t.nics[n as usize].next_start <= next) {
                return self.end_skip(t, p, next);
            }
        }
    }

    /// The first task under way of NIC `n` of sleeping partition `p` is due at `at`. Returns whether that was all; else it is still to be done, by who is awake.
    pub(in crate::engine::fold) fn post_while_skipped(&mut self, t: &mut Tables, p: u32, n: u32, at: u64) -> bool {
        let i = t.nics[n as usize].task_head;
        let row = &t.tasks[i as usize];
        if row.flags & bits::MESSAGE == 0 {
            let key = task::key(t, i);
            task::due(t, n, &key);
            return true;
        }
        let m = self.member[row.flow as usize];
        let partition = &mut self.partitions[p as usize];
        let Some(skip) = &mut partition.skip else { return false };
        let going = m != NONE && partition.members[m as usize].routed && waits_its_turn(t);
        let Some(Some(moving)) = skip.streams.get_mut(m as usize).filter(|_| going) else { return false };
        let member = &mut partition.members[m as usize];
        task::due_unseen(t, n, at, &mut member.posted);
        moving.stream.extend(t, member);
        let due = moving.due;
        for event in [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked] {
            if due[event as usize] == NEVER {
                skip.foresee(m as usize, member, event);
            }
        }
        true
    }

    /// Partition `p` has slept until `at`: its rows stand in the tables again.
    pub(in crate::engine::fold) fn end_skip(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        let Some(skip) = self.partitions[p as usize].skip.take() else { return Ok(()) };
        for (m, member) in self.partitions[p as usize].members.iter_mut().enumerate().filter(|(m, _)| skip.goes_on(*m))
        {
            skip.report_sent(m, member, at);
            skip.report_delivered(t, m, member, at);
            skip.report_acked(t, m, member, at);
        }
        t.fold_trace.clear();
        let by: Vec<u64> = (0..skip.streams.len()).map(|m| skip.moved(m, at)).collect();
        if let Some(before_skip) = &skip.audit {
            self.audit(t, p, &skip, before_skip, &by, at)?;
        }
        self.count_skipped(t, p, &skip, &by, at);
        self.report_peaks(t, p, at);
        let advanced: Vec<Option<AdvancedRows>> = skip
            .streams
            .iter()
            .zip(&by)
            .map(|(m, &by)| m.as_ref().map(|m| AdvancedRows { stream: &m.stream, by, turn: m.turn }))
            .collect();
        snapshot::read_advanced(t, &skip.plan.state, self.names(p, None), at, self.limit, &advanced)
            .map_err(crate::engine::fold::run::checkpoint::full)?;
        let partition = &mut self.partitions[p as usize];
        partition.looked_up = false;
        (partition.covered, partition.reached) = (at, at);
        for m in &mut partition.members {
            (m.posts_in_rows, m.sent_in_rows) = (m.posted.len(), m.sent);
            if m.routed {
                t.flow_tx[m.flow as usize].flags &= !qp::HELD;
            }
        }
        self.prune(p);
        self.resume(t, p, at, skip.may_look_up);
        let next =
            if self.partitions[p as usize].looked_up { self.next_reported(t, p) } else { self.next_event_at(t, p) };
        self.schedule_partition(p, next);
        Ok(())
    }

    /// Counters of `p` go on by what its queue pairs sent while it slept until `at`, `by` packets each.
    fn count_skipped(&mut self, t: &mut Tables, p: u32, skip: &Skip, by: &[u64], at: u64) {
        let e = t.exps[0];
        let partition = &self.partitions[p as usize];
        let mut hops = 0;
        for ((row, &by), member) in skip.streams.iter().zip(by).zip(&partition.members) {
            let Some(row) = row else { continue };
            let f = member.flow as usize;
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
                t.nics[n as usize].hops += by;
                t.nics[n as usize].tx_bytes += bytes;
                for k in first..first + len {
                    let port = &mut t.ports[t.paths[k as usize] as usize];
                    port.hops += by;
                    port.tx_bytes += bytes;
                }
                hops += by * u64::from(1 + len);
            }
        }
        let share = |x: u64| (u128::from(x) * u128::from(at - skip.since) / u128::from(skip.plan.window)) as u64;
        for (&q, &(area, marks)) in partition.ports.iter().zip(&skip.plan.ports) {
            t.ports[q as usize].q_area += share(area);
            t.ports[q as usize].marks += share(marks);
        }
        self.stats.hops_skipped += hops;
        self.stats.skipped_ps += u128::from(at - skip.since);
    }
}
