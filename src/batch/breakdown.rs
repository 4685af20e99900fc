//! Where an iteration's time went: the critical rank's timeline, taken apart gap by gap.
//!
//! Layer: batch. Reads begin and end of every op from rows of tasks. The time between two kernels belongs to what the later one waited for: while its data travelled,
//! and while its peers in a tensor, expert or context group were not there yet, exposed communication of that dimension; while a pipeline or data-parallel peer was not, bubble.

use crate::columns::{NEVER, Task, task};
use crate::workload::program::{Dim, Op, OpKind, Phase, Program, Stream, Workload};
use crate::workload::tasks::OpTasks;

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
    fn per(self, n: u64) -> Breakdown {
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

/// When an op could begin, when all it needs of others was under way, when it ended; ps.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub begin: u64,
    pub go: u64,
    pub end: u64,
}

/// The mean measured iteration on the critical rank (the last to end; of several the lowest). `warmup` iterations at the start do not count. `None`: nothing ended.
pub fn iteration(workload: &Workload, ops: &[Vec<OpTasks>], rows: &[Task], warmup: u32) -> Option<(u32, Breakdown)> {
    let mut critical: Option<(u64, u32)> = None;
    for rank in 0..ops.len() as u32 {
        let end = end_of(workload, ops, rows, rank, usize::MAX);
        if end != NEVER && critical.is_none_or(|(latest, _)| end > latest) {
            critical = Some((end, rank));
        }
    }
    let (end, rank) = critical?;
    let program = &workload.programs[workload.ranks[rank as usize].program as usize];
    let iterations = program.iteration_ends.len().max(1) as u64;
    let warm = u64::from(warmup).min(iterations - 1);
    let start = if warm == 0 {
        0
    } else {
        end_of(workload, ops, rows, rank, program.iteration_ends[warm as usize - 1] as usize)
    };
    let timeline = Timeline { program, spans: ops[rank as usize].iter().map(|t| span(t, rows)).collect() };
    Some((rank, timeline.parts(start, end).per(iterations - warm)))
}

/// When the first `n` ops of a rank have ended.
fn end_of(workload: &Workload, ops: &[Vec<OpTasks>], rows: &[Task], rank: u32, n: usize) -> u64 {
    let program = &workload.programs[workload.ranks[rank as usize].program as usize];
    let n = n.min(program.ops.len());
    ops[rank as usize][..n].iter().map(|t| rows[t.end as usize].done).max().unwrap_or(0)
}

pub(super) fn span(t: &OpTasks, rows: &[Task]) -> Span {
    let end = rows[t.end as usize].done;
    if t.begin == t.end {
        // A kernel, or a meeting point: it began its delay before its end.
        let begin = end.saturating_sub(rows[t.end as usize].delay);
        return Span { begin, go: begin, end };
    }
    let begin = rows[t.begin as usize].done;
    let go = if t.go == u32::MAX {
        begin
    } else {
        let row = &rows[t.go as usize];
        if row.flags & task::MESSAGE != 0 { row.at } else { row.done }
    };
    Span { begin, go: go.clamp(begin, end.max(begin)), end }
}

struct Timeline<'a> {
    program: &'a Program,
    spans: Vec<Span>,
}

impl Timeline<'_> {
    /// Takes `[start, end]` apart.
    fn parts(&self, start: u64, end: u64) -> Breakdown {
        let mut b = Breakdown { total: end - start, ..Breakdown::default() };
        let mut kernels: Vec<(u64, u64, usize)> = Vec::new();
        for (i, (op, s)) in self.program.ops.iter().zip(&self.spans).enumerate() {
            if matches!(op.kind, OpKind::Compute { .. }) && op.stream != Stream::COPY && s.end > start && s.end != NEVER
            {
                kernels.push((s.begin.max(start), s.end, i));
            }
        }
        kernels.sort_unstable();
        let mut at = start;
        for (begin, finish, i) in kernels {
            if begin > at {
                self.gap(&mut b, at, begin, i);
                at = begin;
            }
            if finish > at {
                let OpKind::Compute { phase, .. } = self.program.ops[i].kind else { continue };
                *if phase == Phase::Optimizer { &mut b.optimizer } else { &mut b.compute } += finish - at;
                at = finish;
            }
        }
        if end > at
            && let Some(last) = (0..self.spans.len()).filter(|&i| self.spans[i].end == end).min()
        {
            self.walk(&mut b, at, end, Some(last));
        }
        b
    }

    /// The time from `from` to the begin of kernel `i` at `to`: that of what it waited for.
    fn gap(&self, b: &mut Breakdown, from: u64, to: u64, i: usize) {
        self.walk(b, from, to, self.gate(i));
    }

    /// What op `i` waited for last: of its dependencies, stream order included, the one that ended last.
    fn gate(&self, i: usize) -> Option<usize> {
        let op = &self.program.ops[i];
        let before = if op.stream == Stream::FREE {
            None
        } else {
            (0..i).rev().find(|&k| self.program.ops[k].stream == op.stream)
        };
        self.program.deps_of(i as u32).iter().map(|&d| d as usize).chain(before).max_by_key(|&k| (self.spans[k].end, k))
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

    /// Attributes `[from, to]`, walking back from op `i`, which ended at or before `to`.
    fn walk(&self, b: &mut Breakdown, from: u64, to: u64, mut i: Option<usize>) {
        let mut to = to;
        while to > from {
            let Some(k) = i else { break };
            let (op, s) = (&self.program.ops[k], self.spans[k]);
            let mut until = |time: u64, part: &mut u64| {
                let time = time.clamp(from, to);
                *part += to - time;
                to = time;
            };
            until(s.end, &mut b.other);
            match dim(op) {
                Some(dim) => {
                    until(s.go, &mut b.exposed[dim as usize]);
                    // Who waits for peers of a pipeline or of other replicas idles; inside a tensor, expert or context group it is in the collective, as a profiler shows it.
                    until(s.begin, if self.idles(dim) { &mut b.bubble } else { &mut b.exposed[dim as usize] });
                }
                None => until(s.begin, &mut b.other),
            }
            i = self.gate(k);
        }
        b.other += to - from;
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
    use crate::workload::program::{Peer, Rank};

    /// Rows of ops given as (begin, go, end).
    fn rows(spans: &[(u64, u64, u64)]) -> (Vec<OpTasks>, Vec<Task>) {
        let mut tasks = Vec::new();
        let mut done = |at: u64, delay: u64| {
            tasks.push(Task { done: at, delay, ..Task::zeroed() });
            tasks.len() as u32 - 1
        };
        let ops = spans
            .iter()
            .map(|&(begin, go, end)| {
                if go == u64::MAX {
                    let only = done(end, end - begin);
                    return OpTasks { begin: only, go: u32::MAX, end: only };
                }
                OpTasks { begin: done(begin, 0), go: done(go, 0), end: done(end, 0) }
            })
            .collect();
        (ops, tasks)
    }

    #[test]
    fn a_gap_is_what_the_next_kernel_waited_for() {
        let mut p = Program::default();
        let kernel = |phase| OpKind::Compute { ps: 0, phase };
        let peer = Peer { slot: 0, member: 0 };
        p.push(OpKind::Recv { peer, bytes: 1, tag: 0, dim: Dim::Pp }, Stream::comm(Dim::Pp), 0, &[]);
        p.push(kernel(Phase::Forward), Stream::COMPUTE, 0, &[0]);
        p.push(
            OpKind::Collective {
                op: crate::collective::Op::AllReduce,
                slot: 0,
                bytes: 1,
                dim: Dim::Tp,
                algorithm: None,
                shares: None,
            },
            Stream::comm(Dim::Tp),
            0,
            &[1],
        );
        p.push(kernel(Phase::Backward), Stream::COMPUTE, 0, &[2]);
        p.push(kernel(Phase::Optimizer), Stream::COMPUTE, 0, &[]);
        p.iteration_ends = vec![5];
        // The peer sent at 30, its data was there at 50; all members of the collective had come at 110.
        let (ops, tasks) =
            rows(&[(0, 30, 50), (50, u64::MAX, 100), (100, 110, 140), (140, u64::MAX, 200), (200, u64::MAX, 225)]);
        let workload =
            Workload { programs: vec![p], ranks: vec![Rank { program: 0, groups: vec![] }], ..Workload::default() };
        let (rank, b) = iteration(&workload, &[ops], &tasks, 0).unwrap();
        assert_eq!(rank, 0);
        let mut want = Breakdown { total: 225, compute: 110, bubble: 30, optimizer: 25, ..Breakdown::default() };
        want.exposed[Dim::Pp as usize] = 20;
        want.exposed[Dim::Tp as usize] = 40;
        assert_eq!(b, want);
    }
}
