//! Runs a workload with free communication: who waits for whom, and nothing else. Shows that it comes to its end, and how long the compute alone takes.

use std::collections::BTreeMap;

use hyperfold::workload::program::{OpKind, Stream, Workload};

/// The makespan in ps, or the first operation of the first rank that can never be done.
///
/// Communication takes no time; collectives wait for all members, receives for their sends. Sends wait for nobody: traces of rings rely on it.
pub fn drive(w: &Workload) -> Result<u64, String> {
    let mut base = vec![0usize];
    for r in &w.ranks {
        base.push(base[base.len() - 1] + w.programs[r.program as usize].ops.len());
    }
    // What each operation waits for, who waits for it, and its place among those it must meet; the same for all ranks of a program.
    let shapes: Vec<Shape> = w.programs.iter().map(Shape::of).collect();
    let n = base[w.ranks.len()];
    let (mut waits, mut ready_at, mut done) = (vec![0u32; n], vec![0u64; n], vec![false; n]);
    let mut ready = Vec::new();
    for (rank, r) in w.ranks.iter().enumerate() {
        let shape = &shapes[r.program as usize];
        for (i, &k) in shape.waits.iter().enumerate() {
            waits[base[rank] + i] = k;
            if k == 0 {
                ready.push((rank, i));
            }
        }
    }
    // Who has arrived where: the group's k-th collective, or the k-th message of a pair and tag.
    let mut collectives: BTreeMap<(u32, u32), Vec<(usize, usize)>> = BTreeMap::new();
    let mut messages: BTreeMap<(u32, u32, u32, u32), (usize, usize)> = BTreeMap::new();
    let mut makespan = 0;
    while let Some((rank, i)) = ready.pop() {
        let (r, me) = (&w.ranks[rank], rank as u32);
        let program = &w.programs[r.program as usize];
        let place = shapes[r.program as usize].place[i];
        let now = ready_at[base[rank] + i];
        let ended: Vec<(usize, usize, u64)> = match program.ops[i].kind {
            OpKind::Compute { ps, .. } => vec![(rank, i, now + ps)],
            OpKind::Join => vec![(rank, i, now)],
            OpKind::Collective { slot, .. } => {
                let group = r.groups[slot as usize];
                let here = collectives.entry((group, place)).or_default();
                here.push((rank, i));
                if here.len() < w.groups[group as usize].members.len() {
                    continue;
                }
                let at = here.iter().map(|&(r, i)| ready_at[base[r] + i]).max().unwrap();
                here.iter().map(|&(r, i)| (r, i, at)).collect()
            }
            OpKind::Send { peer, tag, .. } | OpKind::Recv { peer, tag, .. } => {
                let other = w.groups[r.groups[peer.slot as usize] as usize].members[peer.member as usize];
                let send = matches!(program.ops[i].kind, OpKind::Send { .. });
                let key = if send { (me, other, tag, place) } else { (other, me, tag, place) };
                let other = messages.remove(&key);
                if other.is_none() {
                    messages.insert(key, (rank, i));
                }
                let at = |(r, i): (usize, usize)| now.max(ready_at[base[r] + i]);
                match (send, other) {
                    (true, None) => vec![(rank, i, now)],
                    (true, Some((r, i2))) => vec![(rank, i, now), (r, i2, at((r, i2)))],
                    (false, None) => continue,
                    (false, Some(sent)) => vec![(rank, i, at(sent))],
                }
            }
        };
        for (rank, i, at) in ended {
            done[base[rank] + i] = true;
            makespan = makespan.max(at);
            for &next in &shapes[w.ranks[rank].program as usize].after[i] {
                let j = base[rank] + next as usize;
                ready_at[j] = ready_at[j].max(at);
                waits[j] -= 1;
                if waits[j] == 0 {
                    ready.push((rank, next as usize));
                }
            }
        }
    }
    match done.iter().position(|d| !d) {
        None => Ok(makespan),
        Some(at) => {
            let rank = base.partition_point(|&b| b <= at) - 1;
            Err(format!("operation {} of rank {rank} is never done", at - base[rank]))
        }
    }
}

struct Shape {
    waits: Vec<u32>,
    after: Vec<Vec<u32>>,
    /// The how-manieth collective of its slot, or message of its direction, peer and tag, an operation is.
    place: Vec<u32>,
}

impl Shape {
    fn of(p: &hyperfold::workload::program::Program) -> Shape {
        let n = p.ops.len();
        let mut s = Shape { waits: vec![0; n], after: vec![Vec::new(); n], place: vec![0; n] };
        let mut last_on = [None; 256];
        let mut counts: BTreeMap<(u8, u16, u32, u32), u32> = BTreeMap::new();
        for (i, op) in p.ops.iter().enumerate() {
            let before = if op.stream == Stream::FREE { None } else { last_on[op.stream.0 as usize].replace(i as u32) };
            for d in p.deps_of(i as u32).iter().copied().chain(before) {
                assert!((d as usize) < i, "operation {i} depends on {d}, which is not earlier");
                s.after[d as usize].push(i as u32);
                s.waits[i] += 1;
            }
            let key = match op.kind {
                OpKind::Collective { slot, .. } => (0, slot, 0, 0),
                OpKind::Send { peer, tag, .. } => (1, peer.slot, peer.member, tag),
                OpKind::Recv { peer, tag, .. } => (2, peer.slot, peer.member, tag),
                _ => continue,
            };
            let count = counts.entry(key).or_default();
            s.place[i] = *count;
            *count += 1;
        }
        s
    }
}
