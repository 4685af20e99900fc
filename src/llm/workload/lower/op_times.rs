//! Computes when every op of a workload begins and ends, op by op and without a graph, if nothing crosses the network.
//!
//! Layer: workload. The times equal those of the graph that [`super::lower`] makes of the same programs, to the picosecond. Only the order in which messages of
//! a rank take a shared link is simulated: first come, first served.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt};

use super::calls::{Call, parties};
use super::machine::{Lowering, alone};
use super::planner::{Asked, CollectivePlan, Planner};
use super::transfer::{link_of, serial_ps};
use crate::workload::program::{Dim, Op, OpKind, Program, Stream, Workload};
use hyperfold_base::budget;

/// Times of an op, in ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTimes {
    /// Time when it could begin.
    pub begin: u64,
    /// Time when all it needs of others was under way.
    pub go: u64,
    /// Time when it ended.
    pub end: u64,
}

/// Times of all ops of a workload.
#[derive(Clone, Debug)]
pub struct WorkloadTimes {
    /// Times by rank and op. A rank that another stands for has an empty list.
    ranks: Vec<Vec<OpTimes>>,
    /// For each rank, the rank whose times it has. Empty if each rank has times of its own.
    stands_for: Vec<u32>,
}

impl WorkloadTimes {
    /// Times of a rank's op.
    pub fn op(&self, rank: u32, op: u32) -> OpTimes {
        let rank = self.stands_for.get(rank as usize).copied().unwrap_or(rank);
        self.ranks[rank as usize][op as usize]
    }

    /// Ranks that no other rank stands for, ascending.
    pub fn own_ranks(&self) -> impl Iterator<Item = u32> {
        (0..self.ranks.len() as u32)
            .filter(|&rank| self.stands_for.get(rank as usize).is_none_or(|&representative| representative == rank))
    }

    /// When the last op of all ranks ends, in ps.
    pub fn end_ps(&self) -> u64 {
        self.ranks.iter().flatten().map(|op| op.end).max().unwrap_or(0)
    }
}

/// A time that is not known yet.
const UNKNOWN: u64 = u64::MAX;
/// No op or message.
pub(super) const NONE: u32 = u32::MAX;
/// A time in ps that is later than anything simulated. Beyond it, sums could overflow.
const MAX_PS: u64 = 1 << 62;
/// Number of messages between two checks of the budget.
const MESSAGES_PER_CHECK: u32 = 1024;

/// Computes the times of all ops. The result is `None` if a collective becomes messages, a message crosses the network, or the programs do not fit together.
/// For the first two use [`super::lower`]; for the third it gives the error.
pub fn op_times(workload: &Workload, machine: &Lowering, planner: &mut dyn Planner) -> Option<WorkloadTimes> {
    solved_ops(workload, machine, planner).map(|solved| solved.times)
}

/// Times of the ops of a workload, with the data that they follow from.
pub struct SolvedOps<'w> {
    /// Times of every op, by rank.
    pub times: WorkloadTimes,
    /// For each group, the ranks that call its collectives.
    pub(super) parties: Vec<Cow<'w, [u32]>>,
    pub(super) meetings: Meetings,
    pub(super) messages: Vec<TimedMessage>,
    /// By program and op: the op before it on its stream, or [`NONE`].
    pub(super) before: Vec<Vec<u32>>,
}

/// Does the same as [`op_times`] and also returns the data that the times follow from.
pub fn solved_ops<'w>(
    workload: &'w Workload,
    machine: &'w Lowering,
    planner: &mut dyn Planner,
) -> Option<SolvedOps<'w>> {
    let parties = parties(workload, machine.representatives);
    let mut meetings = Meetings::of(workload, machine, &parties)?;
    meetings.plan(workload, &parties, planner)?;
    let messages = messages(workload, machine, &mut meetings)?;
    let mut run = OpsUnderWay::new(workload, machine, parties, meetings, messages);
    run.all()?;
    let OpsUnderWay { times: ranks, parties, meetings, messages, before, .. } = run;
    let stands_for = machine.representatives.map_or_else(Vec::new, |representatives| representatives.rank.clone());
    let times = WorkloadTimes { ranks, stands_for };
    (times.end_ps() < MAX_PS).then_some(SolvedOps { times, parties, meetings, messages, before })
}

/// The collectives of a group, in order.
#[derive(Default)]
pub(super) struct GroupCalls {
    /// Distinct calls in order of first occurrence, and the duration of each in ps.
    calls: Vec<(Call, u64)>,
    /// Index of each distinct call in `calls`.
    known: HashMap<Call, u32>,
    /// For each collective, the index of its call in `calls`.
    call_idx: Vec<u32>,
    /// For each collective, the op of each party: one row of parties per collective.
    pub(super) ops: Vec<u32>,
    /// Number of parties that have called any collective.
    joined: usize,
}

/// The partner of each op: its collective or its message.
pub(super) struct Meetings {
    pub(super) groups: Vec<GroupCalls>,
    /// By rank and op: a collective's number in its group, or a message's index; [`NONE`] for other ops.
    pub(super) of_op: Vec<Vec<u32>>,
}

impl Meetings {
    fn of(workload: &Workload, machine: &Lowering, parties: &[Cow<[u32]>]) -> Option<Meetings> {
        let mut groups: Vec<GroupCalls> = workload.groups.iter().map(|_| GroupCalls::default()).collect();
        let mut of_op: Vec<Vec<u32>> = Vec::with_capacity(workload.ranks.len());
        for rank in 0..workload.ranks.len() as u32 {
            if !has_tasks(machine, rank) {
                of_op.push(Vec::new());
                continue;
            }
            budget::check("meetings of operations");
            let program = program(workload, rank);
            let mut meets = vec![NONE; program.ops.len()];
            // For each group, the rank's place among its parties, and its number of collectives so far.
            let mut called: HashMap<u32, (usize, u32)> = HashMap::new();
            for (i, op) in program.ops.iter().enumerate() {
                let OpKind::Collective { op: operation, slot, bytes, dim, algorithm, shares } = op.kind else {
                    continue;
                };
                let group = group_of(workload, machine, rank, slot);
                let call = Call { op: operation, bytes, dim, algorithm, shares };
                let own = &parties[group as usize];
                let (place, n) = match called.entry(group) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert((groups[group as usize].joins(rank, own)?, 0)),
                };
                let nth = std::mem::replace(n, *n + 1);
                meets[i] = nth;
                groups[group as usize].called(nth as usize, call, *place, own.len(), i as u32)?;
            }
            of_op.push(meets);
        }
        let missing = |group: &GroupCalls| group.ops.contains(&NONE);
        (!groups.iter().any(missing)).then_some(Meetings { groups, of_op })
    }

    /// Computes the duration of every collective, in the order in which [`super::lower`] plans them.
    fn plan(&mut self, workload: &Workload, parties: &[Cow<[u32]>], planner: &mut dyn Planner) -> Option<()> {
        for (number, (group, own)) in self.groups.iter_mut().zip(parties).enumerate() {
            let members = &workload.groups[number].members;
            if own.is_empty() || members.len() == 1 {
                continue;
            }
            for (call, takes) in &mut group.calls {
                let shares = call.shares.map(|s| workload.shares[s as usize].as_slice());
                let Call { op, bytes, dim, algorithm, .. } = *call;
                let asked = Asked { op, bytes, dim, algorithm, group: number as u32, members, shares };
                match planner.plan(&asked).ok()? {
                    CollectivePlan::Analytic { ps } => *takes = ps.max(1),
                    CollectivePlan::Transfers { .. } | CollectivePlan::OneFlow { .. } => return None,
                }
            }
        }
        Some(())
    }
}

impl GroupCalls {
    /// The place among the parties of a rank that calls its first collective. Parties mostly call in their order.
    fn joins(&mut self, rank: u32, parties: &[u32]) -> Option<usize> {
        let next = self.joined;
        self.joined += 1;
        if parties.get(next) == Some(&rank) { Some(next) } else { parties.iter().position(|&party| party == rank) }
    }

    /// Records that the party in `place` of `n` calls the group's `nth` collective with its op `op`. `None` if its call differs from the others'.
    fn called(&mut self, nth: usize, call: Call, place: usize, n: usize, op: u32) -> Option<()> {
        if nth == self.call_idx.len() {
            let next = self.calls.len() as u32;
            let known = *self.known.entry(call).or_insert(next);
            if known == next {
                self.calls.push((call, 0));
            }
            self.call_idx.push(known);
            self.ops.resize(self.ops.len() + n, NONE);
        }
        self.ops[nth * n + place] = op;
        // All parties must make the same call.
        (self.calls[self.call_idx[nth] as usize].0 == call).then_some(())
    }
}

/// A message from one rank to another.
pub(super) struct TimedMessage {
    pub(super) src: u32,
    /// Op of the sender.
    pub(super) send: u32,
    pub(super) dst: u32,
    /// Op of the receiver.
    pub(super) recv: u32,
    /// Time in ps from the begin of the send to the request for the link.
    overhead_ps: u64,
    /// Index of the link that the message takes.
    pub(super) link: u32,
    /// Time in ps that the message occupies the link.
    serial_ps: u64,
    pub(super) latency_ps: u64,
    /// When the message arrives, in ps.
    pub(super) arrives: u64,
    /// When the message requests the link, in ps.
    pub(super) posted: u64,
}

/// One end of a message in the program of its rank.
#[derive(Clone, Copy)]
struct End {
    op: u32,
    bytes: u64,
    dim: Dim,
}

/// Sends and receives of a tag from one rank to another.
#[derive(Default)]
struct Matches {
    sends: Vec<End>,
    recvs: Vec<End>,
}

/// Matches sends with receives, in the order of the senders' programs. `None` if they do not match or one crosses the network.
fn messages(workload: &Workload, machine: &Lowering, meetings: &mut Meetings) -> Option<Vec<TimedMessage>> {
    let mut matches: HashMap<(u32, u32, u32), Matches> = HashMap::new();
    for rank in (0..workload.ranks.len() as u32).filter(|&rank| has_tasks(machine, rank)) {
        for (i, op) in (0u32..).zip(&program(workload, rank).ops) {
            let OpKind::Send { peer, bytes, tag, dim } = op.kind else { continue };
            let dst = member(workload, rank, peer.slot, peer.member);
            matches.entry((rank, dst, tag)).or_default().sends.push(End { op: i, bytes, dim });
        }
    }
    let mut receivers: Vec<u32> = matches.keys().map(|&(_, dst, _)| dst).collect();
    receivers.sort_unstable();
    receivers.dedup();
    for dst in receivers {
        for (i, op) in (0u32..).zip(&program(workload, dst).ops) {
            let OpKind::Recv { peer, bytes, tag, dim } = op.kind else { continue };
            let src = member(workload, dst, peer.slot, peer.member);
            if let Some(matched) = matches.get_mut(&(src, dst, tag)) {
                matched.recvs.push(End { op: i, bytes, dim });
            }
        }
    }
    let mut pairs: Vec<(u32, u32, u32, End, End)> = Vec::new();
    for (&(src, dst, _), matched) in &matches {
        if matched.sends.len() != matched.recvs.len() {
            return None;
        }
        pairs.extend(matched.sends.iter().zip(&matched.recvs).map(|(&send, &recv)| (src, send.op, dst, send, recv)));
    }
    pairs.sort_unstable_by_key(|&(src, op, ..)| (src, op));
    let mut links: HashMap<(u32, u32), u32> = HashMap::new();
    let mut all: Vec<TimedMessage> = Vec::with_capacity(pairs.len());
    for (src, op, dst, send, recv) in pairs {
        let own = stands_for(machine, dst);
        if send.bytes != recv.bytes {
            return None;
        }
        let same_server = machine.servers[src as usize] == machine.servers[dst as usize];
        let (rate, latency) = (machine.analytic_p2p)(send.dim)?;
        let way = match machine.intra.filter(|_| same_server) {
            _ if src == dst => alone(u64::MAX, machine.local_ps),
            Some(way) => way,
            None => alone(rate, latency),
        };
        let next = links.len() as u32;
        let message = all.len() as u32;
        for (rank, op) in [(src, op), (own, recv.op)] {
            let meets = &mut meetings.of_op[rank as usize][op as usize];
            if std::mem::replace(meets, message) != NONE {
                return None;
            }
        }
        all.push(TimedMessage {
            src,
            send: op,
            dst: own,
            recv: recv.op,
            overhead_ps: if same_server { machine.p2p_overheads.inside_ps } else { machine.p2p_overheads.net_ps },
            link: *links.entry((src, link_of(&way, own))).or_insert(next),
            serial_ps: serial_ps(send.bytes, &way),
            latency_ps: way.latency_ps.max(1),
            arrives: UNKNOWN,
            posted: UNKNOWN,
        });
    }
    Some(all)
}

/// Parties that have arrived at a collective.
#[derive(Clone, Copy, Default)]
struct Gathering {
    come: u32,
    /// Time of the latest arrival, in ps.
    latest: u64,
}

/// State of the computation: which times are known so far, and which ops wait.
struct OpsUnderWay<'a> {
    workload: &'a Workload,
    machine: &'a Lowering<'a>,
    parties: Vec<Cow<'a, [u32]>>,
    meetings: Meetings,
    messages: Vec<TimedMessage>,
    times: Vec<Vec<OpTimes>>,
    /// By program and op: the op before it on its stream, or [`NONE`].
    before: Vec<Vec<u32>>,
    /// Lists of waiting ops. By rank and op: the first op that waits for this op, and the next op that waits for the same op as this one.
    waiting: Vec<Vec<(u32, u32)>>,
    /// By group and collective.
    gatherings: Vec<Vec<Gathering>>,
    /// When each link is free, in ps.
    links: Vec<u64>,
    /// Messages that request their links: (time, index).
    posted: BinaryHeap<Reverse<(u64, u32)>>,
    /// Ops to look at again: (rank, op).
    woken: Vec<(u32, u32)>,
}

impl<'a> OpsUnderWay<'a> {
    fn new(
        workload: &'a Workload,
        machine: &'a Lowering,
        parties: Vec<Cow<'a, [u32]>>,
        meetings: Meetings,
        messages: Vec<TimedMessage>,
    ) -> OpsUnderWay<'a> {
        let n_ops =
            |rank: usize| if has_tasks(machine, rank as u32) { program(workload, rank as u32).ops.len() } else { 0 };
        let n_ranks = workload.ranks.len();
        let rows: u64 = (0..n_ranks).map(|rank| n_ops(rank) as u64).sum();
        budget::announce_rows::<(OpTimes, (u32, u32))>("times of operations", rows);
        let unknown = OpTimes { begin: UNKNOWN, go: UNKNOWN, end: UNKNOWN };
        let n_links = messages.iter().map(|m| m.link + 1).max().unwrap_or(0);
        OpsUnderWay {
            before: workload.programs.iter().map(before).collect(),
            times: (0..n_ranks).map(|rank| vec![unknown; n_ops(rank)]).collect(),
            waiting: (0..n_ranks).map(|rank| vec![(NONE, NONE); n_ops(rank)]).collect(),
            gatherings: meetings.groups.iter().map(|group| vec![Gathering::default(); group.call_idx.len()]).collect(),
            links: vec![0; n_links as usize],
            posted: BinaryHeap::new(),
            woken: Vec::new(),
            workload,
            machine,
            parties,
            meetings,
            messages,
        }
    }

    /// Computes all times. `None` if an op waits for ever.
    fn all(&mut self) -> Option<()> {
        for rank in 0..self.times.len() as u32 {
            budget::check("times of operations");
            for op in 0..self.times[rank as usize].len() as u32 {
                self.look(rank, op);
                self.wake();
            }
        }
        let mut looks = 0u32;
        // The earliest posted message goes first on its link. A message that is not posted yet depends on an arrival still to come, so it is posted later.
        while let Some(Reverse((_, message))) = self.posted.pop() {
            self.carry(message);
            self.wake();
            looks += 1;
            if looks.is_multiple_of(MESSAGES_PER_CHECK) {
                budget::check("times of operations");
            }
        }
        let ended = |times: &Vec<OpTimes>| times.iter().all(|op| op.end != UNKNOWN);
        self.times.iter().all(ended).then_some(())
    }

    /// Looks at all woken ops again.
    fn wake(&mut self) {
        while let Some((rank, op)) = self.woken.pop() {
            self.look(rank, op);
        }
    }

    /// Begins an op if all ops of its rank that it waits for have ended. Otherwise the op is looked at again when the first unfinished one ends.
    fn look(&mut self, rank: u32, op: u32) {
        let r = rank as usize;
        let number = self.workload.ranks[r].program as usize;
        let program = &self.workload.programs[number];
        let before = self.before[number][op as usize];
        let deps = program.deps_of(op).iter().copied().chain((before != NONE).then_some(before));
        let mut begin = 0;
        for dep in deps {
            let end = self.times[r][dep as usize].end;
            if end == UNKNOWN {
                let first = std::mem::replace(&mut self.waiting[r][dep as usize].0, op);
                self.waiting[r][op as usize].1 = first;
                return;
            }
            begin = begin.max(end);
        }
        let times = &mut self.times[r][op as usize];
        (times.begin, times.go) = (begin, begin);
        match program.ops[op as usize].kind {
            OpKind::Compute { ps, .. } => {
                let ps = super::rescale::scaled(ps, (self.machine.factor_q32)(rank, op));
                self.end(rank, op, begin.saturating_add(ps));
            }
            OpKind::Join => self.end(rank, op, begin),
            OpKind::Collective { slot, .. } => {
                self.gather(rank, op, group_of(self.workload, self.machine, rank, slot), begin)
            }
            OpKind::Send { .. } => {
                let message = self.meetings.of_op[r][op as usize];
                let sent = &mut self.messages[message as usize];
                sent.posted = begin.saturating_add(sent.overhead_ps);
                let posted = sent.posted;
                self.posted.push(Reverse((posted, message)));
                self.end(rank, op, posted);
            }
            OpKind::Recv { .. } => {
                // A receive without a send never ends.
                let message = self.meetings.of_op[r][op as usize];
                if let Some(incoming) = self.messages.get(message as usize)
                    && incoming.arrives != UNKNOWN
                {
                    self.receive(message);
                }
            }
        }
    }

    /// A rank arrives at a collective of a group. The last arrival ends it for all parties.
    fn gather(&mut self, rank: u32, op: u32, group: u32, begin: u64) {
        let g = group as usize;
        if self.workload.groups[g].members.len() == 1 {
            return self.end(rank, op, begin);
        }
        let nth = self.meetings.of_op[rank as usize][op as usize] as usize;
        let n = self.parties[g].len();
        let gathering = &mut self.gatherings[g][nth];
        gathering.come += 1;
        gathering.latest = gathering.latest.max(begin);
        if (gathering.come as usize) < n {
            return;
        }
        let calls = &self.meetings.groups[g];
        let end = gathering.latest.saturating_add(calls.calls[calls.call_idx[nth] as usize].1);
        for place in 0..n {
            let op = self.meetings.groups[g].ops[nth * n + place];
            self.end(self.parties[g][place], op, end);
        }
    }

    /// A message takes its link; this gives its arrival.
    fn carry(&mut self, message_idx: u32) {
        let message = &mut self.messages[message_idx as usize];
        let free = &mut self.links[message.link as usize];
        *free = message.posted.max(*free).saturating_add(message.serial_ps);
        message.arrives = free.saturating_add(message.latency_ps).min(UNKNOWN - 1);
        if self.times[message.dst as usize][message.recv as usize].begin != UNKNOWN {
            self.receive(message_idx);
        }
    }

    /// Ends a receive whose message is there. PRECONDITION: the receive has begun.
    fn receive(&mut self, message: u32) {
        let TimedMessage { dst, recv, arrives, posted, .. } = self.messages[message as usize];
        let times = &mut self.times[dst as usize][recv as usize];
        let end = arrives.max(times.begin);
        times.go = posted.clamp(times.begin, end);
        self.end(dst, recv, end);
    }

    /// Ends an op and wakes the ops that wait for it.
    fn end(&mut self, rank: u32, op: u32, end: u64) {
        let r = rank as usize;
        self.times[r][op as usize].end = end.min(UNKNOWN - 1);
        let mut waits = std::mem::replace(&mut self.waiting[r][op as usize].0, NONE);
        while waits != NONE {
            self.woken.push((rank, waits));
            waits = std::mem::replace(&mut self.waiting[r][waits as usize].1, NONE);
        }
    }
}

/// For each op of a program, the op before it on its stream, or [`NONE`].
fn before(program: &Program) -> Vec<u32> {
    let mut last = [NONE; 256];
    let previous_on_stream = |(i, op): (u32, &Op)| match op.stream {
        Stream::FREE => NONE,
        Stream(stream) => std::mem::replace(&mut last[usize::from(stream)], i),
    };
    (0u32..).zip(&program.ops).map(previous_on_stream).collect()
}

/// Program of a rank.
pub(super) fn program(workload: &Workload, rank: u32) -> &Program {
    &workload.programs[workload.ranks[rank as usize].program as usize]
}

fn stands_for(machine: &Lowering, rank: u32) -> u32 {
    machine.representatives.map_or(rank, |representatives| representatives.rank[rank as usize])
}

fn has_tasks(machine: &Lowering, rank: u32) -> bool {
    stands_for(machine, rank) == rank
}

/// The group of a rank's slot, or the group that stands for it.
pub(super) fn group_of(workload: &Workload, machine: &Lowering, rank: u32, slot: u16) -> u32 {
    let group = workload.ranks[rank as usize].groups[slot as usize];
    machine.representatives.map_or(group, |representatives| representatives.group[group as usize])
}

fn member(workload: &Workload, rank: u32, slot: u16, member: u32) -> u32 {
    let group = workload.ranks[rank as usize].groups[slot as usize];
    workload.groups[group as usize].members[member as usize]
}
