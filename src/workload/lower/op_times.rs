//! When every op of a workload begins and ends where nothing crosses the network: worked out op by op, without a graph.
//!
//! Layer: workload. The times are those of the graph that [`super::lower`] makes of the same programs, to the picosecond. What is left to simulate is in which order the
//! messages of a rank take a link that they share: first come, first served.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt};

use super::transfer::{link_of, serial_ps};
use super::{Asked, Call, CollectivePlan, Lowering, Planner, alone, parties};
use crate::budget;
use crate::workload::program::{Dim, Op, OpKind, Program, Stream, Workload};

/// When an op could begin, when all it needs of others was under way, when it ended; ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTimes {
    pub begin: u64,
    pub go: u64,
    pub end: u64,
}

/// Times of the ops of a workload.
#[derive(Clone, Debug)]
pub struct WorkloadTimes {
    /// By rank and op; none of ranks that another stands for.
    ranks: Vec<Vec<OpTimes>>,
    /// For each rank the one whose times are its own as well; empty where each has its own.
    stands_for: Vec<u32>,
}

impl WorkloadTimes {
    /// Times of a rank's op.
    pub fn op(&self, rank: u32, op: u32) -> OpTimes {
        let rank = self.stands_for.get(rank as usize).copied().unwrap_or(rank);
        self.ranks[rank as usize][op as usize]
    }

    /// Ranks that no other stands for, ascending.
    pub fn own_ranks(&self) -> impl Iterator<Item = u32> {
        (0..self.ranks.len() as u32).filter(|&rank| self.stands_for.get(rank as usize).is_none_or(|&by| by == rank))
    }

    /// When the last op of all ends.
    pub fn end_ps(&self) -> u64 {
        self.ranks.iter().flatten().map(|op| op.end).max().unwrap_or(0)
    }
}

/// Not known yet.
const UNKNOWN: u64 = u64::MAX;
pub(super) const NONE: u32 = u32::MAX;
/// Later than anything that is simulated: beyond this, sums could overflow.
const MOST_PS: u64 = 1 << 62;
/// Messages between two looks at the budget.
const MESSAGES_PER_CHECK: u32 = 1024;

/// Works out the times of all ops. `None`: a collective becomes messages, what is sent crosses the network, or the programs do not fit each other; [`super::lower`] does the
/// one and says why the other is wrong.
pub fn op_times(workload: &Workload, on: &Lowering, planner: &mut dyn Planner) -> Option<WorkloadTimes> {
    solved_ops(workload, on, planner).map(|solved| solved.times)
}

/// Times of the ops of a workload, and what they were worked out from.
pub struct SolvedOps<'w> {
    pub times: WorkloadTimes,
    /// Ranks that call each group's collectives.
    pub(super) parties: Vec<Cow<'w, [u32]>>,
    pub(super) meetings: Meetings,
    pub(super) messages: Vec<TimedMessage>,
    /// By program and op the op before it on its stream, or [`NONE`].
    pub(super) before: Vec<Vec<u32>>,
}

/// As [`op_times`], with what the times were worked out from.
pub fn solved_ops<'w>(workload: &'w Workload, on: &'w Lowering, planner: &mut dyn Planner) -> Option<SolvedOps<'w>> {
    let parties = parties(workload, on.representatives);
    let mut meetings = Meetings::of(workload, on, &parties)?;
    meetings.plan(workload, &parties, planner)?;
    let messages = messages(workload, on, &mut meetings)?;
    let mut run = OpsUnderWay::new(workload, on, parties, meetings, messages);
    run.all()?;
    let OpsUnderWay { times: ranks, parties, meetings, messages, before, .. } = run;
    let stands_for = on.representatives.map_or_else(Vec::new, |representatives| representatives.rank.clone());
    let times = WorkloadTimes { ranks, stands_for };
    (times.end_ps() < MOST_PS).then_some(SolvedOps { times, parties, meetings, messages, before })
}

/// Collectives of a group, in its order.
#[derive(Default)]
pub(super) struct GroupCalls {
    /// Distinct ones, as they come, and what each takes.
    calls: Vec<(Call, u64)>,
    /// Places of these.
    known: HashMap<Call, u32>,
    /// Of each collective its place among them.
    of: Vec<u32>,
    /// Of each collective and party the party's op.
    pub(super) ops: Vec<u32>,
    /// Parties that have called any.
    joined: usize,
}

/// What the ops of ranks meet.
pub(super) struct Meetings {
    pub(super) groups: Vec<GroupCalls>,
    /// By rank and op: of a collective its number in its group, of a message the message's.
    pub(super) of_op: Vec<Vec<u32>>,
}

impl Meetings {
    fn of(workload: &Workload, on: &Lowering, parties: &[Cow<[u32]>]) -> Option<Meetings> {
        let mut groups: Vec<GroupCalls> = workload.groups.iter().map(|_| GroupCalls::default()).collect();
        let mut of_op: Vec<Vec<u32>> = Vec::with_capacity(workload.ranks.len());
        for rank in 0..workload.ranks.len() as u32 {
            if !has_tasks(on, rank) {
                of_op.push(Vec::new());
                continue;
            }
            budget::check("meetings of operations");
            let program = program(workload, rank);
            let mut meets = vec![NONE; program.ops.len()];
            // By group the place among its parties, and collectives so far.
            let mut called: HashMap<u32, (usize, u32)> = HashMap::new();
            for (i, op) in program.ops.iter().enumerate() {
                let OpKind::Collective { op: what, slot, bytes, dim, algorithm, shares } = op.kind else { continue };
                let group = group_of(workload, on, rank, slot);
                let call = Call { op: what, bytes, dim, algorithm, shares };
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

    /// Prices every collective, in the order in which [`super::lower`] does.
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
    /// The place among its parties of a rank that calls its first collective. Parties mostly come in their order.
    fn joins(&mut self, rank: u32, parties: &[u32]) -> Option<usize> {
        let next = self.joined;
        self.joined += 1;
        if parties.get(next) == Some(&rank) { Some(next) } else { parties.iter().position(|&party| party == rank) }
    }

    /// The party in `place` of `n` calls the group's `nth` collective with its op `op`.
    fn called(&mut self, nth: usize, call: Call, place: usize, n: usize, op: u32) -> Option<()> {
        if nth == self.of.len() {
            let next = self.calls.len() as u32;
            let known = *self.known.entry(call).or_insert(next);
            if known == next {
                self.calls.push((call, 0));
            }
            self.of.push(known);
            self.ops.resize(self.ops.len() + n, NONE);
        }
        self.ops[nth * n + place] = op;
        // All must call the same.
        (self.calls[self.of[nth] as usize].0 == call).then_some(())
    }
}

/// A message from one rank to another.
pub(super) struct TimedMessage {
    pub(super) src: u32,
    /// The sender's op.
    pub(super) send: u32,
    pub(super) dst: u32,
    /// The receiver's op.
    pub(super) recv: u32,
    /// From the sender's begin to its turn on the link.
    overhead_ps: u64,
    pub(super) link: u32,
    serial_ps: u64,
    pub(super) latency_ps: u64,
    /// When it is there.
    pub(super) arrives: u64,
    /// When it asked for the link.
    pub(super) posted: u64,
}

/// One end of a message in its rank's program.
#[derive(Clone, Copy)]
struct End {
    op: u32,
    bytes: u64,
    dim: Dim,
}

/// Sends and receives of a tag between two ranks.
#[derive(Default)]
struct Matches {
    sends: Vec<End>,
    recvs: Vec<End>,
}

/// Sends meet receives, in the order of the senders' programs.
fn messages(workload: &Workload, on: &Lowering, meetings: &mut Meetings) -> Option<Vec<TimedMessage>> {
    let mut matches: HashMap<(u32, u32, u32), Matches> = HashMap::new();
    for rank in (0..workload.ranks.len() as u32).filter(|&rank| has_tasks(on, rank)) {
        for (i, op) in (0u32..).zip(&program(workload, rank).ops) {
            let OpKind::Send { peer, bytes, tag, dim } = op.kind else { continue };
            let to = member(workload, rank, peer.slot, peer.member);
            matches.entry((rank, to, tag)).or_default().sends.push(End { op: i, bytes, dim });
        }
    }
    let mut receivers: Vec<u32> = matches.keys().map(|&(_, dst, _)| dst).collect();
    receivers.sort_unstable();
    receivers.dedup();
    for dst in receivers {
        for (i, op) in (0u32..).zip(&program(workload, dst).ops) {
            let OpKind::Recv { peer, bytes, tag, dim } = op.kind else { continue };
            let src = member(workload, dst, peer.slot, peer.member);
            if let Some(of) = matches.get_mut(&(src, dst, tag)) {
                of.recvs.push(End { op: i, bytes, dim });
            }
        }
    }
    let mut pairs: Vec<(u32, u32, u32, End, End)> = Vec::new();
    for (&(src, dst, _), of) in &matches {
        if of.sends.len() != of.recvs.len() {
            return None;
        }
        pairs.extend(of.sends.iter().zip(&of.recvs).map(|(&send, &recv)| (src, send.op, dst, send, recv)));
    }
    pairs.sort_unstable_by_key(|&(src, op, ..)| (src, op));
    let mut links: HashMap<(u32, u32), u32> = HashMap::new();
    let mut all: Vec<TimedMessage> = Vec::with_capacity(pairs.len());
    for (src, op, dst, send, recv) in pairs {
        let own = stands_for(on, dst);
        if send.bytes != recv.bytes {
            return None;
        }
        let same_server = on.servers[src as usize] == on.servers[dst as usize];
        let (rate, latency) = (on.analytic_p2p)(send.dim)?;
        let way = match on.intra.filter(|_| same_server) {
            _ if src == dst => alone(u64::MAX, on.local_ps),
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
            overhead_ps: if same_server { on.p2p_overheads.inside_ps } else { on.p2p_overheads.net_ps },
            link: *links.entry((src, link_of(&way, own))).or_insert(next),
            serial_ps: serial_ps(send.bytes, &way),
            latency_ps: way.latency_ps.max(1),
            arrives: UNKNOWN,
            posted: UNKNOWN,
        });
    }
    Some(all)
}

/// Parties that have come to a collective.
#[derive(Clone, Copy, Default)]
struct Gathering {
    come: u32,
    latest: u64,
}

/// What is known so far.
struct OpsUnderWay<'a> {
    workload: &'a Workload,
    on: &'a Lowering<'a>,
    parties: Vec<Cow<'a, [u32]>>,
    meetings: Meetings,
    messages: Vec<TimedMessage>,
    times: Vec<Vec<OpTimes>>,
    /// By program and op the op before it on its stream.
    before: Vec<Vec<u32>>,
    /// By rank and op: the first op that waits for this one, and the next that waits for what this one waits for.
    waiting: Vec<Vec<(u32, u32)>>,
    /// By group and collective.
    gatherings: Vec<Vec<Gathering>>,
    /// When each link is free.
    links: Vec<u64>,
    /// Messages that ask for their links, by time and number.
    posted: BinaryHeap<Reverse<(u64, u32)>>,
    /// Ops that may go on.
    woken: Vec<(u32, u32)>,
}

impl<'a> OpsUnderWay<'a> {
    fn new(
        workload: &'a Workload,
        on: &'a Lowering,
        parties: Vec<Cow<'a, [u32]>>,
        meetings: Meetings,
        messages: Vec<TimedMessage>,
    ) -> OpsUnderWay<'a> {
        let n_ops = |rank: usize| if has_tasks(on, rank as u32) { program(workload, rank as u32).ops.len() } else { 0 };
        let n_ranks = workload.ranks.len();
        let rows: u64 = (0..n_ranks).map(|rank| n_ops(rank) as u64).sum();
        budget::announce_rows::<(OpTimes, (u32, u32))>("times of operations", rows);
        let unknown = OpTimes { begin: UNKNOWN, go: UNKNOWN, end: UNKNOWN };
        let n_links = messages.iter().map(|m| m.link + 1).max().unwrap_or(0);
        OpsUnderWay {
            before: workload.programs.iter().map(before).collect(),
            times: (0..n_ranks).map(|rank| vec![unknown; n_ops(rank)]).collect(),
            waiting: (0..n_ranks).map(|rank| vec![(NONE, NONE); n_ops(rank)]).collect(),
            gatherings: meetings.groups.iter().map(|group| vec![Gathering::default(); group.of.len()]).collect(),
            links: vec![0; n_links as usize],
            posted: BinaryHeap::new(),
            woken: Vec::new(),
            workload,
            on,
            parties,
            meetings,
            messages,
        }
    }

    /// Until nothing goes on. `None`: something waits for ever.
    fn all(&mut self) -> Option<()> {
        for rank in 0..self.times.len() as u32 {
            budget::check("times of operations");
            for op in 0..self.times[rank as usize].len() as u32 {
                self.look(rank, op);
                self.wake();
            }
        }
        let mut looks = 0u32;
        // What is posted later than the first of these is posted after it has arrived somewhere: it goes first on its link, whatever is still to come.
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

    fn wake(&mut self) {
        while let Some((rank, op)) = self.woken.pop() {
            self.look(rank, op);
        }
    }

    /// Begins an op if nothing on its rank keeps it; else it is looked at again when the first thing that does has ended.
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
                let ps = super::rescale::scaled(ps, (self.on.factor_q32)(rank, op));
                self.end(rank, op, begin.saturating_add(ps));
            }
            OpKind::Join => self.end(rank, op, begin),
            OpKind::Collective { slot, .. } => {
                self.gather(rank, op, group_of(self.workload, self.on, rank, slot), begin)
            }
            OpKind::Send { .. } => {
                let message = self.meetings.of_op[r][op as usize];
                let of = &mut self.messages[message as usize];
                of.posted = begin.saturating_add(of.overhead_ps);
                let posted = of.posted;
                self.posted.push(Reverse((posted, message)));
                self.end(rank, op, posted);
            }
            OpKind::Recv { .. } => {
                // One that nobody sends never ends.
                let message = self.meetings.of_op[r][op as usize];
                if let Some(of) = self.messages.get(message as usize)
                    && of.arrives != UNKNOWN
                {
                    self.receive(message);
                }
            }
        }
    }

    /// A rank has come to its op of a group's collective.
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
        let end = gathering.latest.saturating_add(calls.calls[calls.of[nth] as usize].1);
        for place in 0..n {
            let op = self.meetings.groups[g].ops[nth * n + place];
            self.end(self.parties[g][place], op, end);
        }
    }

    /// A message takes its link.
    fn carry(&mut self, message: u32) {
        let of = &mut self.messages[message as usize];
        let free = &mut self.links[of.link as usize];
        *free = of.posted.max(*free).saturating_add(of.serial_ps);
        of.arrives = free.saturating_add(of.latency_ps).min(UNKNOWN - 1);
        if self.times[of.dst as usize][of.recv as usize].begin != UNKNOWN {
            self.receive(message);
        }
    }

    /// A message is there, and so is its receiver.
    fn receive(&mut self, message: u32) {
        let TimedMessage { dst, recv, arrives, posted, .. } = self.messages[message as usize];
        let times = &mut self.times[dst as usize][recv as usize];
        let end = arrives.max(times.begin);
        times.go = posted.clamp(times.begin, end);
        self.end(dst, recv, end);
    }

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

/// Of each op the one before it on its stream.
fn before(program: &Program) -> Vec<u32> {
    let mut last = [NONE; 256];
    let of = |(i, op): (u32, &Op)| match op.stream {
        Stream::FREE => NONE,
        Stream(stream) => std::mem::replace(&mut last[usize::from(stream)], i),
    };
    (0u32..).zip(&program.ops).map(of).collect()
}

pub(super) fn program(workload: &Workload, rank: u32) -> &Program {
    &workload.programs[workload.ranks[rank as usize].program as usize]
}

fn stands_for(on: &Lowering, rank: u32) -> u32 {
    on.representatives.map_or(rank, |representatives| representatives.rank[rank as usize])
}

fn has_tasks(on: &Lowering, rank: u32) -> bool {
    stands_for(on, rank) == rank
}

/// The group whose collectives those of a rank's slot are.
pub(super) fn group_of(workload: &Workload, on: &Lowering, rank: u32, slot: u16) -> u32 {
    let group = workload.ranks[rank as usize].groups[slot as usize];
    on.representatives.map_or(group, |representatives| representatives.group[group as usize])
}

fn member(workload: &Workload, rank: u32, slot: u16, member: u32) -> u32 {
    let group = workload.ranks[rank as usize].groups[slot as usize];
    workload.groups[group as usize].members[member as usize]
}
