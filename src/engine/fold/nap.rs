//! Partitions asleep: steady ones are not simulated. Their packets stay where they are, their queue pairs go on at the rates they had, messages are told when their turn
//! comes, until something happens that may change the rates: a queue pair runs out of bytes, somebody joins, or what was seen is not to be trusted any longer.
//!
//! Who wakes is in the state it fell asleep in, moved on by what its queue pairs sent meanwhile: sequence numbers by whole packets, clocks and timers by the time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::Stop;
use super::audit::is_audited;
use super::gone::Gone;
use super::memo::Tidings;
use super::part::Member;
use super::record::waits_its_turn;
use super::run::Run;
use super::sleep::{FRACTION, Pace, Sleep};
use super::state;
use super::stream::Stream;
use crate::columns::{NEVER, NONE, Tables, qp, task as bits};
use crate::engine::cpu::key::{Key, NO_EVENT};
use crate::engine::cpu::{nic, task};

/// A partition that sleeps.
#[derive(Clone)]
pub struct Nap {
    pub sleep: Arc<Sleep>,
    pub since: u64,
    moves: Vec<Option<Move>>,
    /// What happens next to messages: (when, queue pair and tidings by [`place`]). One that the queue pair does not say is void; the first is not.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Whether it may be looked up again when it wakes.
    scripted: bool,
    /// Where it is to be simulated all the same: of each queue pair how many messages had been given, posted, and had arrived.
    audit: Option<Vec<[usize; 3]>>,
}

/// A queue pair that goes on: its stream, and where in it, in packets, its acknowledged, arrived and sent ones ended when it fell asleep.
#[derive(Clone)]
struct Move {
    stream: Stream,
    una: u64,
    got: u64,
    sent: u64,
    /// As in [`Pace`].
    work: u64,
    turn: u64,
    /// The stream's work up to what was acknowledged.
    done: u64,
    /// When the next tidings of each kind are due that matter to anybody; `NEVER`: of no message that is posted. All before are told with them.
    due: [u64; 3],
    /// Of each kind, up to which message none matters that has not been told.
    scanned: [usize; 3],
}

impl Nap {
    /// Whether queue pair `m` goes on.
    pub fn goes_on(&self, m: usize) -> bool {
        self.moves[m].is_some()
    }

    /// How many packets of queue pair `m` lie between two bytes of its stream.
    pub fn packets(&self, m: usize, from: u64, to: u64) -> u64 {
        self.moves[m].as_ref().map_or(0, |row| row.stream.packet(to) - row.stream.packet(from))
    }

    /// How many packets queue pair `m` has gone on by at `at`.
    fn moved(&self, m: usize, at: u64) -> u64 {
        let Some(row) = &self.moves[m] else { return 0 };
        let work = u128::from(at - self.since) * u128::from(row.work) / (u128::from(self.sleep.window) << FRACTION);
        (row.stream.worked(row.done + work as u64) - row.una).min(row.stream.packets() - row.sent)
    }

    /// When message `nth` of queue pair `m` will have come to `tidings`; `NEVER`: it is not posted.
    fn when(&self, m: usize, nth: usize, tidings: Tidings) -> u64 {
        let Some(row) = &self.moves[m] else { return NEVER };
        let from = match tidings {
            Tidings::Sent => row.sent,
            Tidings::Got => row.got,
            Tidings::Done => row.una,
        };
        let Some(end) = row.stream.end(nth) else { return NEVER };
        let window = u128::from(self.sleep.window) << FRACTION;
        // Where messages start fresh, it is not counted which ones have been sent: those that had been are heard of at once.
        let work = row.stream.work_before(nth, row.una + end.saturating_sub(from)) - row.done;
        self.since + (u128::from(work) * window).div_ceil(u128::from(row.work)) as u64
    }

    /// What matters next of queue pair `m`: that the last message posted so far is sent, as it may wake then; that one arrives or ends for which something waits.
    fn foresee(&mut self, m: usize, member: &Member, tidings: Tidings) {
        let Some(row) = &self.moves[m] else { return };
        let from = row.scanned[tidings as usize];
        let nth = match tidings {
            Tidings::Sent => (member.sent < member.posted.len()).then(|| member.posted.len() - 1),
            Tidings::Got => row.stream.next_got(from.max(member.got)),
            Tidings::Done => row.stream.next_done(from.max(member.done)),
        };
        let at = nth.map_or(NEVER, |nth| self.when(m, nth, tidings));
        if let Some(row) = &mut self.moves[m] {
            row.due[tidings as usize] = at;
            row.scanned[tidings as usize] = nth.unwrap_or(member.posted.len());
        }
        if at != NEVER {
            self.queue.push(Reverse((at, place(m, tidings))));
        }
        while let Some(&Reverse((at, place))) = self.queue.peek() {
            let (m, tidings) = at_place(place);
            if self.moves[m].as_ref().is_some_and(|row| row.due[tidings as usize] == at) {
                break;
            }
            self.queue.pop();
        }
    }
}

/// Tidings are told late that nobody waits for: only then do they cost little, as what is told of a message is told at once.
impl Nap {
    /// Messages of queue pair `m` that were sent by `at` are said to be; the next ones have their turn.
    fn hear_sent(&self, m: usize, member: &mut Member, at: u64) {
        while member.sent < member.posted.len() && self.when(m, member.sent, Tidings::Sent) <= at {
            member.sent += 1;
            member.given = member.posted.len().min(member.given + 1);
        }
    }

    /// The messages of queue pair `m` that arrived by `at` are said to have.
    fn hear_got(&self, t: &mut Tables, m: usize, member: &mut Member, at: u64) {
        let n = t.flow_rx[member.flow as usize].nic;
        while member.got < member.posted.len() {
            let when = self.when(m, member.got, Tidings::Got);
            if when > at {
                return;
            }
            task::delivered(t, n, member.posted[member.got].0, &Key { t: when, ..NO_EVENT });
            nic::set_clock(t, n);
            member.got += 1;
        }
    }

    /// The messages of queue pair `m` that ended by `at` are said to have.
    fn hear_done(&self, t: &mut Tables, m: usize, member: &mut Member, at: u64) {
        while member.done < member.posted.len() {
            let when = self.when(m, member.done, Tidings::Done);
            if when > at {
                return;
            }
            let i = member.posted[member.done].0;
            let (owner, follow) = (t.tasks[i as usize].owner, t.tasks[i as usize].follow);
            task::acknowledged(t, owner, i, follow, &Key { t: when, ..NO_EVENT });
            nic::set_clock(t, owner);
            member.done += 1;
        }
    }
}

/// Places go by queue pair, then by tidings: in this order things happen that happen at one instant.
fn place(m: usize, tidings: Tidings) -> u32 {
    m as u32 * 3 + tidings as u32
}

fn at_place(place: u32) -> (usize, Tidings) {
    (place as usize / 3, [Tidings::Sent, Tidings::Got, Tidings::Done][place as usize % 3])
}

impl Run {
    /// `p`, whose rows are not in the tables, sleeps from `since`.
    pub(super) fn fall_asleep(&mut self, t: &Tables, p: u32, sleep: Arc<Sleep>, since: u64, scripted: bool) {
        self.stats.skips += 1;
        let part = &mut self.parts[p as usize];
        let go_on = |(m, pace): (&Member, &Pace)| {
            if pace.work == 0 {
                return None;
            }
            let given: u64 = m.posted[..m.given].iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let una = t.flow_tx[m.flow as usize].snd_una;
            let stream = Stream::new(t, m, una - (given - pace.left));
            let una = stream.packet(una);
            let done = stream.work(una);
            Some(Move {
                stream,
                una,
                got: una + pace.arrived,
                sent: una + pace.sent,
                work: pace.work,
                turn: pace.turn,
                done,
                due: [NEVER; 3],
                scanned: [0; 3],
            })
        };
        let moves = part.members.iter().zip(&sleep.paces).map(go_on).collect();
        part.replay = true;
        part.script = None;
        part.bases.clear();
        part.start = since;
        part.faith = None;
        let mut nap = Box::new(Nap { sleep, since, moves, queue: BinaryHeap::new(), scripted, audit: None });
        for (m, member) in part.members.iter().enumerate() {
            [Tidings::Sent, Tidings::Got, Tidings::Done].into_iter().for_each(|x| nap.foresee(m, member, x));
        }
        part.nap = Some(nap);
    }

    /// Partition `p` has just fallen asleep. It may be one of those that are simulated all the same; of many naps that are the same one is enough.
    pub(super) fn sample(&mut self, t: &Tables, p: u32) {
        let part = &mut self.parts[p as usize];
        let Some(nap) = &mut part.nap else { return };
        if is_audited(&t.exps[0], nap.sleep.draw) && self.audited.insert(nap.sleep.draw) {
            nap.audit = Some(part.members.iter().map(|m| [m.given, m.posted.len(), m.got]).collect());
        }
    }

    /// What happens next to the messages of sleeping partition `p`: when, what, of which queue pair. `None` there: it wakes by itself.
    fn next_of_nap(&self, p: u32) -> (u64, Option<(Tidings, usize)>) {
        let part = &self.parts[p as usize];
        let Some(nap) = &part.nap else { return (NEVER, None) };
        let until = nap.since.saturating_add(nap.sleep.until);
        match nap.queue.peek() {
            // What happens as it wakes has happened.
            Some(&Reverse((at, place))) if at <= until => {
                let (m, tidings) = at_place(place);
                (at, Some((tidings, m)))
            }
            _ => (until, None),
        }
    }

    /// When sleeping partition `p` goes on, but for its tasks.
    pub(super) fn nap_ends(&self, p: u32) -> u64 {
        self.next_of_nap(p).0
    }

    /// Tells the tasks of sleeping partition `p` all that has happened by `at`; it may wake by that.
    pub(super) fn doze(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        // When it wakes, all of that instant has been told.
        let mut wakes = None;
        while self.parts[p as usize].nap.is_some() {
            let (when, what) = self.next_of_nap(p);
            if let Some(wakes) = wakes.filter(|&wakes| wakes < when) {
                return self.wake(t, p, wakes);
            }
            if when > at {
                break;
            }
            let Some((tidings, m)) = what else {
                self.parts[p as usize].faith = self.parts[p as usize].nap.as_ref().map(|nap| Arc::clone(&nap.sleep));
                return self.wake(t, p, when);
            };
            let part = &mut self.parts[p as usize];
            let Some(nap) = &mut part.nap else { return Ok(()) };
            let member = &mut part.members[m];
            match tidings {
                Tidings::Sent => {
                    nap.hear_sent(m, member, when);
                    // Others may have been posted behind what was the last one.
                    if member.sent == member.posted.len() {
                        wakes = Some(when);
                    }
                }
                Tidings::Got => {
                    nap.hear_got(t, m, member, when);
                    nap.hear_done(t, m, member, when);
                }
                Tidings::Done => nap.hear_done(t, m, member, when),
            }
            t.noted.clear();
            for tidings in [Tidings::Sent, Tidings::Got, Tidings::Done] {
                if nap.moves[m].as_ref().is_some_and(|row| row.due[tidings as usize] <= when) {
                    nap.foresee(m, member, tidings);
                }
            }
        }
        Ok(())
    }

    /// Sleeping partition `p` goes on to `at`, at which somebody joins it, and wakes.
    pub(super) fn rouse(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        loop {
            let next = self.next_told(t, p);
            if self.parts[p as usize].nap.is_none() {
                return Ok(());
            }
            if next >= at {
                self.doze(t, p, at)?;
                self.collect_all(t, p);
                return self.wake(t, p, at);
            }
            self.doze(t, p, next)?;
            self.collect_all(t, p);
            let mut due: Vec<u32> =
                self.parts[p as usize].nics.iter().copied().filter(|&n| t.nics[n as usize].next_task <= next).collect();
            due.sort_unstable();
            for n in due {
                while self.parts[p as usize].nap.is_some() && t.nics[n as usize].next_task <= next {
                    // A newcomer of its own: that is for its turn, awake.
                    if !self.stirs(t, p, n, next) {
                        self.wake(t, p, next)?;
                    }
                }
                nic::set_clock(t, n);
                self.collect(t, n);
            }
            if self.parts[p as usize].nics.iter().any(|&n| t.nics[n as usize].next_start <= next) {
                return self.wake(t, p, next);
            }
        }
    }

    /// The first task under way of NIC `n` of sleeping partition `p` is due at `at`. Returns whether that was all; else it is still to be done, by who is awake.
    pub(super) fn stirs(&mut self, t: &mut Tables, p: u32, n: u32, at: u64) -> bool {
        let i = t.nics[n as usize].task_head;
        let row = &t.tasks[i as usize];
        if row.flags & bits::MESSAGE == 0 {
            let key = task::key(t, i);
            task::due(t, n, &key);
            return true;
        }
        let m = self.member[row.flow as usize];
        let part = &mut self.parts[p as usize];
        let Some(nap) = &mut part.nap else { return false };
        let going = m != NONE && part.members[m as usize].routed && waits_its_turn(t);
        let Some(Some(moving)) = nap.moves.get_mut(m as usize).filter(|_| going) else { return false };
        let member = &mut part.members[m as usize];
        task::due_unseen(t, n, at, &mut member.posted);
        moving.stream.extend(t, member);
        let due = moving.due;
        for tidings in [Tidings::Sent, Tidings::Got, Tidings::Done] {
            if due[tidings as usize] == NEVER {
                nap.foresee(m as usize, member, tidings);
            }
        }
        true
    }

    /// Partition `p` has slept until `at`: its rows stand in the tables again.
    pub(super) fn wake(&mut self, t: &mut Tables, p: u32, at: u64) -> Result<(), Stop> {
        let Some(nap) = self.parts[p as usize].nap.take() else { return Ok(()) };
        for (m, member) in self.parts[p as usize].members.iter_mut().enumerate().filter(|(m, _)| nap.goes_on(*m)) {
            nap.hear_sent(m, member, at);
            nap.hear_got(t, m, member, at);
            nap.hear_done(t, m, member, at);
        }
        t.noted.clear();
        let by: Vec<u64> = (0..nap.moves.len()).map(|m| nap.moved(m, at)).collect();
        if let Some(stood) = &nap.audit {
            self.audit(t, p, &nap, stood, &by, at)?;
        }
        self.count_slept(t, p, &nap, &by, at);
        self.tell_peaks(t, p, at);
        let moves: Vec<Option<Gone>> = nap
            .moves
            .iter()
            .zip(&by)
            .map(|(m, &by)| m.as_ref().map(|m| Gone { stream: &m.stream, by, turn: m.turn }))
            .collect();
        state::read_moved(t, &nap.sleep.state, self.names(p, None), at, self.limit, &moves)
            .map_err(super::cut::full)?;
        let part = &mut self.parts[p as usize];
        part.replay = false;
        (part.covered, part.reached) = (at, at);
        for m in &mut part.members {
            (m.seen, m.passed) = (m.posted.len(), m.sent);
            if m.routed {
                t.flow_tx[m.flow as usize].flags &= !qp::HELD;
            }
        }
        self.prune(p);
        self.resume(t, p, at, nap.scripted);
        let next = if self.parts[p as usize].replay { self.next_told(t, p) } else { self.ahead(t, p) };
        self.call_part(p, next);
        Ok(())
    }

    /// Counters of `p` go on by what its queue pairs sent while it slept until `at`, `by` packets each.
    fn count_slept(&mut self, t: &mut Tables, p: u32, nap: &Nap, by: &[u64], at: u64) {
        let e = t.exps[0];
        let part = &self.parts[p as usize];
        let mut hops = 0;
        for ((row, &by), member) in nap.moves.iter().zip(by).zip(&part.members) {
            let Some(row) = row else { continue };
            let f = member.flow as usize;
            let sent = row.stream.byte(row.sent + by) - row.stream.byte(row.sent);
            let (tx, rx) = (&mut t.flow_tx[f], &mut t.flow_rx[f]);
            tx.sent_bytes += sent;
            tx.n_sent = tx.n_sent.wrapping_add(by as u32);
            rx.arrived_bytes += row.stream.byte(row.got + by) - row.stream.byte(row.got);
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
        let share = |x: u64| (u128::from(x) * u128::from(at - nap.since) / u128::from(nap.sleep.window)) as u64;
        for (&q, &(area, marks)) in part.ports.iter().zip(&nap.sleep.ports) {
            t.ports[q as usize].q_area += share(area);
            t.ports[q as usize].marks += share(marks);
        }
        self.stats.slept += hops;
        self.stats.slept_ps += u128::from(at - nap.since);
    }
}
