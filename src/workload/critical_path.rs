//! Runs a workload with free communication: who waits for whom, and nothing else.
//!
//! Layer: workload. Shows whether it can come to its end, and how long its compute alone takes: the critical path across ranks, waiting included.
//! Knows no network; collectives wait for all members, receives for their sends, sends for nobody (traces of rings rely on it).

use std::collections::BTreeMap;

use super::program::{OpKind, Program, Stream, Workload};

/// What can never be done, first in order of rank and operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "operation {op} of rank {rank} (both counted from 0) can never be done: the ranks wait for each other in a circle"
)]
pub struct Stuck {
    pub rank: u32,
    pub op: u32,
}

/// One program's dependencies, the same for all ranks that run it.
struct Shape {
    /// How many operations each waits for.
    waits: Vec<u32>,
    /// Who waits for operation i: `after[after_first[i] .. after_first[i + 1]]`.
    after_first: Vec<u32>,
    after: Vec<u32>,
    /// The how-manieth collective of its slot, or message of its direction, peer and tag, an operation is.
    place: Vec<u32>,
}

impl Shape {
    fn of(p: &Program) -> Shape {
        let n = p.ops.len();
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(p.deps.len());
        let (mut waits, mut place) = (vec![0; n], vec![0; n]);
        let mut last_on: [Option<u32>; 256] = [None; 256];
        let mut counts: BTreeMap<(u8, u16, u32, u32), u32> = BTreeMap::new();
        for (i, op) in p.ops.iter().enumerate() {
            let before = if op.stream == Stream::FREE { None } else { last_on[op.stream.0 as usize].replace(i as u32) };
            for d in p.deps_of(i as u32).iter().copied().chain(before) {
                edges.push((d, i as u32));
                waits[i] += 1;
            }
            let key = match op.kind {
                OpKind::Collective { slot, .. } => (0, slot, 0, 0),
                OpKind::Send { peer, tag, .. } => (1, peer.slot, peer.member, tag),
                OpKind::Recv { peer, tag, .. } => (2, peer.slot, peer.member, tag),
                OpKind::Compute { .. } | OpKind::Join => continue,
            };
            let count = counts.entry(key).or_default();
            place[i] = *count;
            *count += 1;
        }
        edges.sort_unstable();
        let mut after_first = vec![0u32; n + 1];
        for &(d, _) in &edges {
            after_first[d as usize + 1] += 1;
        }
        for i in 0..n {
            after_first[i + 1] += after_first[i];
        }
        Shape { waits, after_first, after: edges.into_iter().map(|(_, i)| i).collect(), place }
    }

    fn after(&self, op: u32) -> &[u32] {
        &self.after[self.after_first[op as usize] as usize..self.after_first[op as usize + 1] as usize]
    }
}

/// An operation of a rank.
type Instance = (u32, u32);

struct Run<'a> {
    w: &'a Workload,
    shapes: Vec<Shape>,
    /// Where a rank's operations begin in the columns below.
    base: Vec<usize>,
    waits: Vec<u32>,
    /// When all that an operation waits for is done.
    ready_at: Vec<u64>,
    done: Vec<bool>,
    /// Who has arrived at a group's k-th collective.
    collectives: BTreeMap<(u32, u32), Vec<Instance>>,
    /// Who has arrived first at the k-th message from one rank to another with a tag.
    messages: BTreeMap<(u32, u32, u32, u32), Instance>,
}

/// The makespan in ps. Takes time and memory for every operation of every rank.
///
/// # Errors
/// Something waits for ever.
pub fn free_makespan(w: &Workload) -> Result<u64, Stuck> {
    let mut base = vec![0usize];
    for r in &w.ranks {
        base.push(base[base.len() - 1] + w.programs[r.program as usize].ops.len());
    }
    let n = base[w.ranks.len()];
    let shapes: Vec<Shape> = w.programs.iter().map(Shape::of).collect();
    let waits = w.ranks.iter().flat_map(|r| shapes[r.program as usize].waits.iter().copied()).collect();
    let mut run = Run {
        w,
        shapes,
        base,
        waits,
        ready_at: vec![0; n],
        done: vec![false; n],
        collectives: BTreeMap::new(),
        messages: BTreeMap::new(),
    };
    let mut ready: Vec<Instance> = Vec::new();
    for (rank, r) in w.ranks.iter().enumerate() {
        let roots = run.shapes[r.program as usize].waits.iter().enumerate().filter(|(_, k)| **k == 0);
        ready.extend(roots.map(|(i, _)| (rank as u32, i as u32)));
    }
    let mut makespan = 0;
    let mut ended = Vec::new();
    while let Some(instance) = ready.pop() {
        run.start(instance, &mut ended);
        for (instance, at) in ended.drain(..) {
            makespan = makespan.max(at);
            run.end(instance, at, &mut ready);
        }
    }
    match run.done.iter().position(|d| !d) {
        None => Ok(makespan),
        Some(at) => {
            let rank = run.base.partition_point(|&b| b <= at) - 1;
            Err(Stuck { rank: rank as u32, op: (at - run.base[rank]) as u32 })
        }
    }
}

impl Run<'_> {
    fn index(&self, (rank, op): Instance) -> usize {
        self.base[rank as usize] + op as usize
    }

    /// Lets an operation that waits for nothing any more begin; what ends by that, and when, goes into `ended`.
    fn start(&mut self, (rank, op): Instance, ended: &mut Vec<(Instance, u64)>) {
        let w = self.w;
        let r = &w.ranks[rank as usize];
        let place = self.shapes[r.program as usize].place[op as usize];
        let now = self.ready_at[self.index((rank, op))];
        let me = (rank, op);
        let kind = w.programs[r.program as usize].ops[op as usize].kind;
        match kind {
            OpKind::Compute { ps, .. } => ended.push((me, now.saturating_add(ps))),
            OpKind::Join => ended.push((me, now)),
            OpKind::Collective { slot, .. } => {
                let group = r.groups[slot as usize];
                let here = self.collectives.entry((group, place)).or_default();
                here.push(me);
                if here.len() == w.groups[group as usize].members.len() {
                    let all = self.collectives.remove(&(group, place)).unwrap_or_default();
                    let at = all.iter().map(|&i| self.ready_at[self.index(i)]).max().unwrap_or(now);
                    ended.extend(all.into_iter().map(|i| (i, at)));
                }
            }
            OpKind::Send { peer, tag, .. } | OpKind::Recv { peer, tag, .. } => {
                let other = w.groups[r.groups[peer.slot as usize] as usize].members[peer.member as usize];
                let send = matches!(kind, OpKind::Send { .. });
                let key = if send { (rank, other, tag, place) } else { (other, rank, tag, place) };
                let met = self.messages.remove(&key);
                if met.is_none() {
                    self.messages.insert(key, me);
                }
                if send {
                    ended.push((me, now));
                }
                if let Some(other) = met {
                    let at = now.max(self.ready_at[self.index(other)]);
                    ended.push((if send { other } else { me }, at));
                }
            }
        }
    }

    fn end(&mut self, (rank, op): Instance, at: u64, ready: &mut Vec<Instance>) {
        let (base, shape) = (self.base[rank as usize], &self.shapes[self.w.ranks[rank as usize].program as usize]);
        self.done[base + op as usize] = true;
        for &next in shape.after(op) {
            let i = base + next as usize;
            self.ready_at[i] = self.ready_at[i].max(at);
            self.waits[i] -= 1;
            if self.waits[i] == 0 {
                ready.push((rank, next));
            }
        }
    }
}
