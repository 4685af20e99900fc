//! Where an iteration's time went: the critical rank's timeline, taken apart gap by gap.
//!
//! Layer: batch. Reads begin and end of every op from rows of tasks. The time between two kernels belongs to what the later one waited for:
//!
//! - while data travelled, and while peers in a tensor, expert or context group were not there yet: exposed communication of that dimension;
//! - while a pipeline or data-parallel peer was not there: what that peer did meanwhile. Its kernels are bubble, its communication is exposed
//!   communication of the dimension it belongs to, and so on from peer to peer.

use std::cmp::Reverse;

use super::peers::Peers;
use crate::columns::{NEVER, Task, task};
use crate::workload::lower::{OpTimes, WorkloadTimes};
use crate::workload::program::{Dim, Op, OpKind, Phase, Program, Stream, Workload};
use crate::workload::tasks::{OpTasks, TaskGraph};

/// Parts of a span of time on one rank, ps; they add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    pub total: u64,
    pub compute: u64,
    /// By [`Dim`], the last is what belongs to no dimension.
    pub exposed: [u64; 6],
    pub bubble: u64,
    pub optimizer: u64,
    pub other: u64,
}

impl Breakdown {
    /// Every part divided by `n`; what rounding leaves goes to `other`.
    pub(super) fn per(self, n: u64) -> Breakdown {
        let n = n.max(1);
        let mut b = Breakdown {
            total: self.total / n,
            compute: self.compute / n,
            exposed: self.exposed.map(|e| e / n),
            bubble: self.bubble / n,
            optimizer: self.optimizer / n,
            other: 0,
        };
        b.other = b.total - b.compute - b.exposed.iter().sum::<u64>() - b.bubble - b.optimizer;
        b
    }
}

/// Times of an op of a rank's program, by rank and op.
pub(super) type TimesOfOps<'a> = &'a dyn Fn(u32, u32) -> OpTimes;

/// The mean measured iteration on the critical rank (the last to end; of several the lowest) of what began at `begin_ps`. `warmup` iterations at the start do not count.
/// `None`: nothing ended.
pub fn iteration(
    workload: &Workload,
    graph: &TaskGraph,
    rows: &[Task],
    warmup: u32,
    begin_ps: u64,
) -> Option<(u32, Breakdown)> {
    let times = |rank: u32, op: u32| span(graph.op(rank, op), rows);
    // Ranks that another stands for end when it does, and it is lower.
    let own = |rank: &u32| graph.stands_for.get(*rank as usize).is_none_or(|by| by == rank);
    let rank = critical_rank(workload, &times, (0..workload.ranks.len() as u32).filter(own))?;
    Some((rank, of_rank(workload, &times, rank, warmup, begin_ps)))
}

/// All measured iterations on the critical rank of what began at 0, by times that were worked out, and how many iterations these are.
pub(super) fn summed(workload: &Workload, times: &WorkloadTimes, warmup: u32) -> Option<(u32, Breakdown, u64)> {
    let of_op = |rank: u32, op: u32| times.op(rank, op);
    let rank = critical_rank(workload, &of_op, times.own_ranks())?;
    let (parts, iterations) = sum_of_rank(workload, &of_op, rank, warmup, 0);
    Some((rank, parts, iterations))
}

/// The rank of these, ascending, that ends last, of several the lowest; `None` if none ended.
pub(super) fn critical_rank(workload: &Workload, times: TimesOfOps, ranks: impl Iterator<Item = u32>) -> Option<u32> {
    let ended = ranks.map(|rank| (end_of(workload, times, rank, usize::MAX), rank)).filter(|e| e.0 != NEVER);
    ended.max_by_key(|&(end, rank)| (end, Reverse(rank))).map(|e| e.1)
}

/// The mean measured iteration on a rank of what began at `begin_ps`. PRECONDITION: it has ended.
pub(super) fn of_rank(workload: &Workload, times: TimesOfOps, rank: u32, warmup: u32, begin_ps: u64) -> Breakdown {
    let (parts, iterations) = sum_of_rank(workload, times, rank, warmup, begin_ps);
    parts.per(iterations)
}

/// The sum of the measured iterations, and how many they are.
fn sum_of_rank(workload: &Workload, times: TimesOfOps, rank: u32, warmup: u32, begin_ps: u64) -> (Breakdown, u64) {
    let program = &workload.programs[workload.ranks[rank as usize].program as usize];
    let iterations = program.iteration_ends.len().max(1) as u64;
    let warm = u64::from(warmup).min(iterations - 1);
    let warm_ops = |warm: u64| program.iteration_ends[warm as usize - 1] as usize;
    let start = if warm == 0 { begin_ps } else { end_of(workload, times, rank, warm_ops(warm)) };
    let end = end_of(workload, times, rank, usize::MAX);
    let timeline = RankTimeline { workload, times, rank, program, peers: Peers::of(workload) };
    (timeline.parts(start, end), iterations - warm)
}

/// When the first `n` ops of a rank have ended.
fn end_of(workload: &Workload, times: TimesOfOps, rank: u32, n: usize) -> u64 {
    let program = &workload.programs[workload.ranks[rank as usize].program as usize];
    let n = n.min(program.ops.len()) as u32;
    (0..n).map(|op| times(rank, op).end).max().unwrap_or(0)
}

pub(super) fn span(t: &OpTasks, rows: &[Task]) -> OpTimes {
    let end = rows[t.end as usize].done;
    if t.begin == t.end {
        // A kernel, or a meeting point: it began its delay before its end.
        let begin = end.saturating_sub(rows[t.end as usize].delay);
        return OpTimes { begin, go: begin, end };
    }
    let begin = rows[t.begin as usize].done;
    let go = if t.go == u32::MAX {
        begin
    } else {
        let row = &rows[t.go as usize];
        if row.flags & task::MESSAGE != 0 { row.at } else { row.done }
    };
    OpTimes { begin, go: go.clamp(begin, end.max(begin)), end }
}

struct RankTimeline<'a> {
    workload: &'a Workload,
    times: TimesOfOps<'a>,
    /// The critical one, and its program.
    rank: u32,
    program: &'a Program,
    peers: Peers<'a>,
}

/// A walk back through what one rank waited for.
struct Walk {
    rank: u32,
    /// The op it is at; `None`: before it, nothing was waited for.
    op: Option<u32>,
    /// Where it ends.
    from: u64,
}

impl RankTimeline<'_> {
    /// Takes `[start, end]` apart.
    fn parts(&self, start: u64, end: u64) -> Breakdown {
        let mut b = Breakdown { total: end - start, ..Breakdown::default() };
        let mut kernels: Vec<(u64, u64, u32)> = Vec::new();
        for (i, op) in (0u32..).zip(&self.program.ops) {
            let s = self.span(self.rank, i);
            if matches!(op.kind, OpKind::Compute { .. }) && op.stream != Stream::COPY && s.end > start && s.end != NEVER
            {
                kernels.push((s.begin.max(start), s.end, i));
            }
        }
        kernels.sort_unstable();
        let mut at = start;
        for (begin, finish, i) in kernels {
            if begin > at {
                self.walk(&mut b, at, begin, self.gate(self.rank, i));
                at = begin;
            }
            if finish > at {
                let OpKind::Compute { phase, .. } = self.program.ops[i as usize].kind else { continue };
                *if phase == Phase::Optimizer { &mut b.optimizer } else { &mut b.compute } += finish - at;
                at = finish;
            }
        }
        if end > at {
            let last = (0..self.program.ops.len() as u32).find(|&i| self.span(self.rank, i).end == end);
            self.walk(&mut b, at, end, last);
        }
        b
    }

    fn span(&self, rank: u32, op: u32) -> OpTimes {
        (self.times)(rank, op)
    }

    fn program(&self, rank: u32) -> &Program {
        &self.workload.programs[self.workload.ranks[rank as usize].program as usize]
    }

    /// What op `i` of a rank waited for last: of its dependencies, stream order included, the one that ended last.
    fn gate(&self, rank: u32, i: u32) -> Option<u32> {
        let program = self.program(rank);
        let stream = program.ops[i as usize].stream;
        let before = if stream == Stream::FREE {
            None
        } else {
            (0..i).rev().find(|&k| program.ops[k as usize].stream == stream)
        };
        program.deps_of(i).iter().copied().chain(before).max_by_key(|&k| (self.span(rank, k).end, k))
    }

    /// Whether waiting for peers of a dimension is the pipeline's or the replicas' idling. What belongs to no dimension (the norm of gradients) joins ranks of all stages: who is
    /// done early waits there for the others' last micro-batches. A benchmark without kernels has no pipeline.
    fn idles(&self, dim: Dim) -> bool {
        match dim {
            Dim::Pp | Dim::Dp => true,
            Dim::Other => self.program.ops.iter().any(|o| matches!(o.kind, OpKind::Compute { .. })),
            Dim::Tp | Dim::Ep | Dim::Cp => false,
        }
    }

    /// Attributes `[from, to]` of the critical rank, walking back from its op `op`, which ended at or before `to`; and wherever peers were not there, from theirs.
    fn walk(&self, b: &mut Breakdown, from: u64, to: u64, op: Option<u32>) {
        let mut to = to;
        let mut walks = vec![Walk { rank: self.rank, op, from }];
        while to > from {
            // Time in which nothing travelled: of another rank it is what the critical one idled for.
            let own = walks.len() == 1;
            let Some(walk) = walks.last_mut() else { break };
            let (rank, from) = (walk.rank, walk.from);
            let mut until = |time: u64, part: &mut u64| {
                let time = time.clamp(from, to.max(from));
                *part += to.saturating_sub(time);
                to = to.min(time);
            };
            let Some(k) = walk.op else {
                until(from, if own { &mut b.other } else { &mut b.bubble });
                walks.pop();
                continue;
            };
            walk.op = self.gate(rank, k);
            let s = self.span(rank, k);
            until(s.end, if own { &mut b.other } else { &mut b.bubble });
            match dim(&self.program(rank).ops[k as usize]) {
                None => until(s.begin, if own { &mut b.other } else { &mut b.bubble }),
                // Inside a tensor, expert or context group a rank that waits for its peers is in the collective, as a profiler shows it.
                Some(dim) if !self.idles(dim) => until(s.begin, &mut b.exposed[dim as usize]),
                Some(dim) => {
                    let met = self.peers.of_op(rank, k).into_iter().map(|(m, op)| (self.span(m, op).begin, m, op));
                    // Of several the lowest rank.
                    let last =
                        met.filter(|m| m.0 > s.begin && m.0 <= s.end).max_by_key(|&(begin, m, _)| (begin, Reverse(m)));
                    until(last.map_or(s.begin, |(begin, ..)| begin), &mut b.exposed[dim as usize]);
                    if let Some((_, m, op)) = last {
                        walks.push(Walk { rank: m, op: self.gate(m, op), from: s.begin.max(from) });
                    }
                }
            }
            // Walks that have come to their end.
            while walks.len() > 1 && walks.last().is_some_and(|w| to <= w.from) {
                walks.pop();
            }
        }
    }
}

fn dim(op: &Op) -> Option<Dim> {
    match op.kind {
        OpKind::Collective { dim, .. } | OpKind::Send { dim, .. } | OpKind::Recv { dim, .. } => Some(dim),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use crate::workload::program::{Group, Peer, Rank};

    /// Rows of the ranks' ops given as (begin, go, end).
    fn rows(ranks: &[&[(u64, u64, u64)]]) -> (TaskGraph, Vec<Task>) {
        let mut tasks = Vec::new();
        let mut done = |at: u64, delay: u64| {
            tasks.push(Task { done: at, delay, ..Task::zeroed() });
            tasks.len() as u32 - 1
        };
        let mut op = |&(begin, go, end): &(u64, u64, u64)| {
            if go == u64::MAX {
                let only = done(end, end - begin);
                return OpTasks { begin: only, go: u32::MAX, end: only };
            }
            OpTasks { begin: done(begin, 0), go: done(go, 0), end: done(end, 0) }
        };
        let ops = ranks.iter().map(|of_rank| of_rank.iter().map(&mut op).collect()).collect();
        (TaskGraph { ops, ..TaskGraph::default() }, tasks)
    }

    fn collective(dim: Dim, slot: u16) -> OpKind {
        let op = crate::collective::CollectiveOp::AllReduce;
        OpKind::Collective { op, slot, bytes: 1, dim, algorithm: None, shares: None }
    }

    #[test]
    fn a_gap_is_what_the_next_kernel_waited_for() {
        let mut p = Program::default();
        let kernel = |phase| OpKind::Compute { ps: 0, phase };
        let peer = Peer { slot: 0, member: 0 };
        p.push(OpKind::Recv { peer, bytes: 1, tag: 0, dim: Dim::Pp }, Stream::comm(Dim::Pp), 0, &[]);
        p.push(kernel(Phase::Forward), Stream::COMPUTE, 0, &[0]);
        p.push(collective(Dim::Tp, 0), Stream::comm(Dim::Tp), 0, &[1]);
        p.push(kernel(Phase::Backward), Stream::COMPUTE, 0, &[2]);
        p.push(kernel(Phase::Optimizer), Stream::COMPUTE, 0, &[]);
        p.iteration_ends = vec![5];
        // The peer sent at 30, its data was there at 50; all members of the collective had come at 110.
        let mut peer = Program::default();
        let member = Peer { slot: 0, member: 1 };
        peer.push(kernel(Phase::Forward), Stream::COMPUTE, 0, &[]);
        peer.push(OpKind::Send { peer: member, bytes: 1, tag: 0, dim: Dim::Pp }, Stream::comm(Dim::Pp), 0, &[0]);
        peer.iteration_ends = vec![2];
        let (ops, tasks) = rows(&[
            &[(0, 30, 50), (50, u64::MAX, 100), (100, 110, 140), (140, u64::MAX, 200), (200, u64::MAX, 225)],
            &[(0, u64::MAX, 30), (30, 30, 50)],
        ]);
        let group = Group { members: vec![1, 0], dim: Dim::Pp };
        let ranks = [0, 1].map(|program| Rank { program, groups: vec![0] }).to_vec();
        let workload = Workload { programs: vec![p, peer], ranks, groups: vec![group], ..Workload::default() };
        let (rank, b) = iteration(&workload, &ops, &tasks, 0, 0).unwrap();
        assert_eq!(rank, 0);
        let mut want = Breakdown { total: 225, compute: 110, bubble: 30, optimizer: 25, ..Breakdown::default() };
        want.exposed[Dim::Pp as usize] = 20;
        want.exposed[Dim::Tp as usize] = 40;
        assert_eq!(b, want);
    }

    #[test]
    fn waiting_for_a_replica_is_what_that_replica_did() {
        let kernel = |phase| OpKind::Compute { ps: 0, phase };
        let (compute, dp, ep) = (Stream::COMPUTE, Stream::comm(Dim::Dp), Stream::comm(Dim::Ep));
        // Rank 0 meets rank 1 in the all-reduce of gradients; rank 1 and 2 exchange tokens before.
        let mut replica = Program::default();
        replica.push(kernel(Phase::Backward), compute, 0, &[]);
        replica.push(collective(Dim::Dp, 0), dp, 0, &[0]);
        replica.push(kernel(Phase::Optimizer), compute, 0, &[1]);
        let mut late = Program::default();
        late.push(kernel(Phase::Forward), compute, 0, &[]);
        late.push(collective(Dim::Ep, 1), ep, 0, &[0]);
        late.push(kernel(Phase::Backward), compute, 0, &[1]);
        late.push(collective(Dim::Dp, 0), dp, 0, &[2]);
        late.push(kernel(Phase::Optimizer), compute, 0, &[3]);
        let mut expert = Program::default();
        expert.push(kernel(Phase::Forward), compute, 0, &[]);
        expert.push(collective(Dim::Ep, 0), ep, 0, &[0]);
        let k = u64::MAX;
        // Every member of a collective knows at `go` that all are there, here 5 after the last began; no `go` is as good: it is the others' begins that count.
        for meet in [5, 0] {
            let (ops, tasks) = rows(&[
                &[(0, k, 100), (100, if meet > 0 { 305 } else { 100 }, 340), (340, k, 350)],
                &[(0, k, 100), (100, 155, 280), (280, k, 300), (300, 300 + meet, 340), (340, k, 350)],
                &[(0, k, 150), (150, 155, 280)],
            ]);
            let group = |members: &[u32], dim| Group { members: members.to_vec(), dim };
            let workload = Workload {
                programs: vec![replica.clone(), late.clone(), expert.clone()],
                groups: vec![group(&[0, 1], Dim::Dp), group(&[1, 2], Dim::Ep)],
                ranks: vec![
                    Rank { program: 0, groups: vec![0] },
                    Rank { program: 1, groups: vec![0, 1] },
                    Rank { program: 2, groups: vec![1] },
                ],
                ..Workload::default()
            };
            let (rank, b) = iteration(&workload, &ops, &tasks, 0, 0).unwrap();
            // From 100 to 300 the other replica exchanged tokens until 280, then computed.
            let mut want = Breakdown { total: 350, compute: 100, bubble: 20, optimizer: 10, ..Breakdown::default() };
            want.exposed[Dim::Ep as usize] = 180;
            want.exposed[Dim::Dp as usize] = 40;
            assert_eq!((rank, b), (0, want));
        }
    }
}
