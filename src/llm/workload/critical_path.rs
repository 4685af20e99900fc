//! Runs a workload with communication that takes no time, to learn which operation waits for which.
//!
//! Layer: workload. It shows whether the workload can end, and how long its compute alone takes: the critical path across ranks, including the waits. It knows
//! no network. A collective waits for all members and a receive for its send; a send waits for no receive (traces of rings rely on it).

use std::collections::BTreeMap;

use super::program::{OpKind, Program, Stream, Workload};

/// The first operation, in order of rank and operation, that can never be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "operation {op} of rank {rank} (both counted from 0) can never be done: the ranks wait for each other in a circle"
)]
pub struct Stuck {
    /// Rank whose program has the op.
    pub rank: u32,
    /// Number of the op in its program.
    pub op: u32,
}

/// The dependencies of one program, the same for all ranks that run it.
struct Shape {
    /// For each operation, how many operations it waits for.
    waits: Vec<u32>,
    /// Successors of operation i, which wait for it: `after[after_first[i] .. after_first[i + 1]]`.
    after_first: Vec<u32>,
    after: Vec<u32>,
    /// For each collective, its number among the collectives of its slot; for each message, its number among those of its direction, peer and tag.
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

/// An operation of a rank: (rank, operation).
type Instance = (u32, u32);

struct Run<'a> {
    w: &'a Workload,
    shapes: Vec<Shape>,
    /// Index of each rank's first operation in the columns below.
    base: Vec<usize>,
    /// For each operation, how many operations it still waits for.
    waits: Vec<u32>,
    /// Time in ps at which an operation's predecessors found so far are done.
    ready_at: Vec<u64>,
    done: Vec<bool>,
    /// Members that have arrived at a collective, by group and number of the collective in its slot.
    collectives: BTreeMap<(u32, u32), Vec<Instance>>,
    /// The end that has arrived first at a message, by sender, receiver, tag and number of the message.
    messages: BTreeMap<(u32, u32, u32, u32), Instance>,
}

/// The makespan in ps when communication takes no time. Takes time and memory for every operation of every rank.
///
/// # Errors
/// Some operation waits for ever.
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
        for (instance, end_ps) in ended.drain(..) {
            makespan = makespan.max(end_ps);
            run.end(instance, end_ps, &mut ready);
        }
    }
    match run.done.iter().position(|d| !d) {
        None => Ok(makespan),
        Some(stuck_idx) => {
            let rank = run.base.partition_point(|&b| b <= stuck_idx) - 1;
            Err(Stuck { rank: rank as u32, op: (stuck_idx - run.base[rank]) as u32 })
        }
    }
}

impl Run<'_> {
    fn index(&self, (rank, op): Instance) -> usize {
        self.base[rank as usize] + op as usize
    }

    /// Starts an operation that waits for nothing any more. Adds the operations that end because of it to `ended`, with their end in ps.
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
                    let end_ps = all.iter().map(|&i| self.ready_at[self.index(i)]).max().unwrap_or(now);
                    ended.extend(all.into_iter().map(|i| (i, end_ps)));
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
                    let end_ps = now.max(self.ready_at[self.index(other)]);
                    ended.push((if send { other } else { me }, end_ps));
                }
            }
        }
    }

    /// Marks an operation as done at `end_ps` and adds the successors that now wait for nothing to `ready`.
    fn end(&mut self, (rank, op): Instance, end_ps: u64, ready: &mut Vec<Instance>) {
        let (base, shape) = (self.base[rank as usize], &self.shapes[self.w.ranks[rank as usize].program as usize]);
        self.done[base + op as usize] = true;
        for &next in shape.after(op) {
            let i = base + next as usize;
            self.ready_at[i] = self.ready_at[i].max(end_ps);
            self.waits[i] -= 1;
            if self.waits[i] == 0 {
                ready.push((rank, next));
            }
        }
    }
}
