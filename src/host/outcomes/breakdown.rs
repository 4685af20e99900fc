//! Splits an iteration's time into parts: takes the critical rank's timeline apart gap by gap.
//!
//! Layer: host. Reads begin and end of every op from rows of tasks. The time between two kernels belongs to what the later one waited for:
//!
//! - while data travelled, and while peers in a tensor, expert or context group were not there yet: exposed communication of that dimension;
//! - while a pipeline or data-parallel peer was not there: what that peer did meanwhile. Its kernels are bubble, its communication is exposed
//!   communication of the dimension it belongs to, and so on from peer to peer.

use std::cmp::Reverse;

use crate::programs::peers::Peers;
use hyperfold_columns::{NEVER, Task, task};
use hyperfold_llm::workload::lower::{OpTimes, WorkloadTimes};
use hyperfold_llm::workload::program::{Dim, Op, OpKind, Phase, Program, Stream, Workload};
use hyperfold_llm::workload::tasks::{OpTasks, TaskGraph};

/// Parts of a span of time on one rank, ps; they add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Length of the whole span.
    pub total: u64,
    /// Kernels of forward and backward passes.
    pub compute: u64,
    /// Exposed communication, indexed by [`Dim`]; the last entry is communication that belongs to no dimension.
    pub exposed: [u64; 6],
    /// Waiting for other stages of the pipeline.
    pub bubble: u64,
    /// Kernels of the optimizer.
    pub optimizer: u64,
    /// All that is none of the other parts.
    pub other: u64,
}

impl Breakdown {
    /// Divides every part by `n`; the remainder of rounding goes to `other`.
    pub(crate) fn per(self, n: u64) -> Breakdown {
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

/// Looks up the times of an op of a rank's program, by rank and op.
pub(crate) type TimesOfOps<'a> = &'a dyn Fn(u32, u32) -> OpTimes;

/// Returns the critical rank (the one that ends last; the lowest of several) and its mean measured iteration. The workload began at `begin_ps`. The first
/// `warmup` iterations do not count. `None` if nothing ended.
pub fn iteration(
    workload: &Workload,
    graph: &TaskGraph,
    rows: &[Task],
    warmup: u32,
    begin_ps: u64,
) -> Option<(u32, Breakdown)> {
    let times = |rank: u32, op: u32| span(graph.op(rank, op), rows);
    // A rank that is represented by a lower one ends when that one does, so only representatives count.
    let own = |rank: &u32| graph.stands_for.get(*rank as usize).is_none_or(|representative| representative == rank);
    let rank = critical_rank(workload, &times, (0..workload.ranks.len() as u32).filter(own))?;
    Some((rank, of_rank(workload, &times, rank, warmup, begin_ps)))
}

/// Sums all measured iterations on the critical rank of a workload that began at 0, from computed times. Returns the rank, the sum and the number of
/// iterations.
pub(crate) fn summed(workload: &Workload, times: &WorkloadTimes, warmup: u32) -> Option<(u32, Breakdown, u64)> {
    let times_of_op = |rank: u32, op: u32| times.op(rank, op);
    let rank = critical_rank(workload, &times_of_op, times.own_ranks())?;
    let (parts, iterations) = sum_of_rank(workload, &times_of_op, rank, warmup, 0);
    Some((rank, parts, iterations))
}

/// Returns the rank that ends last, the lowest of several; `None` if none ended. PRECONDITION: `ranks` ascend.
pub(crate) fn critical_rank(workload: &Workload, times: TimesOfOps, ranks: impl Iterator<Item = u32>) -> Option<u32> {
    let ended = ranks.map(|rank| (end_of(workload, times, rank, usize::MAX), rank)).filter(|e| e.0 != NEVER);
    ended.max_by_key(|&(end, rank)| (end, Reverse(rank))).map(|e| e.1)
}

/// Returns the mean measured iteration on a rank of a workload that began at `begin_ps`. PRECONDITION: the rank has ended.
pub(crate) fn of_rank(workload: &Workload, times: TimesOfOps, rank: u32, warmup: u32, begin_ps: u64) -> Breakdown {
    let (parts, iterations) = sum_of_rank(workload, times, rank, warmup, begin_ps);
    parts.per(iterations)
}

/// Returns the sum of the measured iterations on a rank, and their number.
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

/// Returns when the first `n` ops of a rank have ended, ps.
fn end_of(workload: &Workload, times: TimesOfOps, rank: u32, n: usize) -> u64 {
    let program = &workload.programs[workload.ranks[rank as usize].program as usize];
    let n = n.min(program.ops.len()) as u32;
    (0..n).map(|op| times(rank, op).end).max().unwrap_or(0)
}

pub(crate) fn span(t: &OpTasks, rows: &[Task]) -> OpTimes {
    let end = rows[t.end as usize].done;
    if t.begin == t.end {
        // A kernel or a meeting point is one task: it began its delay before its end.
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
    /// The critical rank, whose timeline is taken apart.
    rank: u32,
    program: &'a Program,
    peers: Peers<'a>,
}

/// A walk back in time through what one rank waited for.
struct Walk {
    rank: u32,
    /// The op that the walk has reached; `None` if the rank waited for nothing earlier.
    op: Option<u32>,
    /// Time at which the walk stops, ps.
    stop_ps: u64,
}

impl RankTimeline<'_> {
    /// Splits the span `[start, end]` (ps) of the critical rank into parts.
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
        let mut now_ps = start;
        for (begin, finish, i) in kernels {
            if begin > now_ps {
                self.walk(&mut b, now_ps, begin, self.gate(self.rank, i));
                now_ps = begin;
            }
            if finish > now_ps {
                let OpKind::Compute { phase, .. } = self.program.ops[i as usize].kind else { continue };
                *if phase == Phase::Optimizer { &mut b.optimizer } else { &mut b.compute } += finish - now_ps;
                now_ps = finish;
            }
        }
        if end > now_ps {
            let last = (0..self.program.ops.len() as u32).find(|&i| self.span(self.rank, i).end == end);
            self.walk(&mut b, now_ps, end, last);
        }
        b
    }

    fn span(&self, rank: u32, op: u32) -> OpTimes {
        (self.times)(rank, op)
    }

    fn program(&self, rank: u32) -> &Program {
        &self.workload.programs[self.workload.ranks[rank as usize].program as usize]
    }

    /// Returns the dependency of op `i` of a rank that ended last, stream order included.
    fn gate(&self, rank: u32, i: u32) -> Option<u32> {
        let program = self.program(rank);
        let stream = program.ops[i as usize].stream;
        let previous = if stream == Stream::FREE {
            None
        } else {
            (0..i).rev().find(|&k| program.ops[k as usize].stream == stream)
        };
        program.deps_of(i).iter().copied().chain(previous).max_by_key(|&k| (self.span(rank, k).end, k))
    }

    /// Whether waiting for peers of a dimension counts as idling (of the pipeline or of replicas). Communication without a dimension (the norm of gradients)
    /// joins ranks of all stages: a rank that is done early waits there for the others' last micro-batches. A benchmark without kernels has no pipeline.
    fn idles(&self, dim: Dim) -> bool {
        match dim {
            Dim::Pp | Dim::Dp => true,
            Dim::Other => self.program.ops.iter().any(|o| matches!(o.kind, OpKind::Compute { .. })),
            Dim::Tp | Dim::Ep | Dim::Cp => false,
        }
    }

    /// Attributes the span `[from, to]` (ps) of the critical rank to parts. Walks back from its op `op`, which ended at or before `to`. Where peers were late,
    /// the walk goes on from the peers' ops.
    fn walk(&self, b: &mut Breakdown, from_ps: u64, to_ps: u64, op: Option<u32>) {
        let mut to_ps = to_ps;
        let mut walks = vec![Walk { rank: self.rank, op, stop_ps: from_ps }];
        while to_ps > from_ps {
            // Time in which no data travelled: on another rank's walk, the critical rank idled.
            let own = walks.len() == 1;
            let Some(walk) = walks.last_mut() else { break };
            let (rank, from_ps) = (walk.rank, walk.stop_ps);
            let mut attribute_until = |time: u64, part: &mut u64| {
                let time = time.clamp(from_ps, to_ps.max(from_ps));
                *part += to_ps.saturating_sub(time);
                to_ps = to_ps.min(time);
            };
            let Some(k) = walk.op else {
                attribute_until(from_ps, if own { &mut b.other } else { &mut b.bubble });
                walks.pop();
                continue;
            };
            walk.op = self.gate(rank, k);
            let s = self.span(rank, k);
            attribute_until(s.end, if own { &mut b.other } else { &mut b.bubble });
            match dim(&self.program(rank).ops[k as usize]) {
                None => attribute_until(s.begin, if own { &mut b.other } else { &mut b.bubble }),
                // Inside a tensor, expert or context group a rank that waits for its peers is in the collective, as a profiler shows it.
                Some(dim) if !self.idles(dim) => attribute_until(s.begin, &mut b.exposed[dim as usize]),
                Some(dim) => {
                    let met = self.peers.of_op(rank, k).into_iter().map(|(m, op)| (self.span(m, op).begin, m, op));
                    // The lowest rank of several late peers counts.
                    let last =
                        met.filter(|m| m.0 > s.begin && m.0 <= s.end).max_by_key(|&(begin, m, _)| (begin, Reverse(m)));
                    attribute_until(last.map_or(s.begin, |(begin, ..)| begin), &mut b.exposed[dim as usize]);
                    if let Some((_, m, op)) = last {
                        walks.push(Walk { rank: m, op: self.gate(m, op), stop_ps: s.begin.max(from_ps) });
                    }
                }
            }
            // Remove walks that have reached their end.
            while walks.len() > 1 && walks.last().is_some_and(|w| to_ps <= w.stop_ps) {
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
    use hyperfold_llm::workload::program::{Group, Peer, Rank};

    /// Builds rows of tasks from the ranks' ops, each given as (begin, go, end).
    fn rows(ranks: &[&[(u64, u64, u64)]]) -> (TaskGraph, Vec<Task>) {
        let mut tasks = Vec::new();
        let mut done = |done_ps: u64, delay: u64| {
            tasks.push(Task { done: done_ps, delay, ..Task::zeroed() });
            tasks.len() as u32 - 1
        };
        let mut op = |&(begin, go, end): &(u64, u64, u64)| {
            if go == u64::MAX {
                let only = done(end, end - begin);
                return OpTasks { begin: only, go: u32::MAX, end: only };
            }
            OpTasks { begin: done(begin, 0), go: done(go, 0), end: done(end, 0) }
        };
        let ops = ranks.iter().map(|rank_ops| rank_ops.iter().map(&mut op).collect()).collect();
        (TaskGraph { ops, ..TaskGraph::default() }, tasks)
    }

    fn collective(dim: Dim, slot: u16) -> OpKind {
        let op = hyperfold_llm::collective::CollectiveOp::AllReduce;
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
        // Every member of a collective knows at `go` that all have arrived, here 5 after the last began. Without a `go` the result is the same: the begins of
        // the others count.
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
