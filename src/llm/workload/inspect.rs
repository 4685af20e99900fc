//! Counts what a workload holds.
//!
//! Layer: workload. Counts and sums only; it formats nothing.

use std::collections::BTreeMap;

use super::program::{Dim, OpKind, Phase, Program, Stream, Workload};
use crate::collective::CollectiveOp;

/// Counts of a workload. They are sums over all ranks, unless a field says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of ranks.
    pub ranks: u64,
    /// Number of distinct programs.
    pub programs: u64,
    /// Number of groups.
    pub groups: u64,
    /// Number of iterations.
    pub iterations: u64,
    /// Number of ops.
    pub ops: u64,
    /// Number of compute ops.
    pub computes: u64,
    /// Number of calls of collectives.
    pub collectives: u64,
    /// Number of sends.
    pub sends: u64,
    /// Number of receives.
    pub recvs: u64,
    /// Number of ops that only wait for others.
    pub joins: u64,
    /// Collectives by dimension and operation: their number (one for all members of a group) and their bytes as nccl-tests counts them.
    pub collective_bytes: BTreeMap<(Dim, CollectiveOp), Amount>,
    /// Messages by dimension: their number and their bytes.
    pub message_bytes: BTreeMap<Dim, Amount>,
    /// Compute time in ps of the rank that computes longest.
    pub compute_ps: u64,
    /// Compute time of that rank by phase, in ps.
    pub phase_ps: BTreeMap<Phase, u64>,
    /// Number of operations of the longest dependency chain within a rank, if communication took no time. Waits for other ranks are not counted.
    pub critical_ops: u64,
    /// Compute time in ps of the chain within a rank that computes longest.
    pub critical_ps: u64,
}

/// A number of messages or collectives, and their bytes in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of messages or collectives.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u128,
}

impl Summary {
    /// Bytes of all collectives and messages together.
    pub fn total_bytes(&self) -> u128 {
        self.collective_bytes.values().chain(self.message_bytes.values()).map(|a| a.bytes).sum()
    }
}

/// The counts of one program.
#[derive(Default)]
struct Part {
    computes: u64,
    joins: u64,
    sends: u64,
    recvs: u64,
    compute_ps: u64,
    phases: BTreeMap<Phase, u64>,
    messages: BTreeMap<Dim, Amount>,
    /// Number and bytes of collectives, by slot, dimension and operation.
    collectives: BTreeMap<(u16, Dim, CollectiveOp), Amount>,
    critical_ops: u64,
    critical_ps: u64,
}

/// Counts a workload. Each distinct program is counted once, however many ranks run it.
pub fn summary(w: &Workload) -> Summary {
    let parts: Vec<Part> = w.programs.iter().map(part).collect();
    let mut s = Summary {
        ranks: w.ranks.len() as u64,
        programs: w.programs.len() as u64,
        groups: w.groups.len() as u64,
        ..Summary::default()
    };
    for (rank, r) in w.ranks.iter().enumerate() {
        let (p, program) = (&parts[r.program as usize], &w.programs[r.program as usize]);
        s.iterations = s.iterations.max(program.iteration_ends.len() as u64);
        s.ops += program.ops.len() as u64;
        s.computes += p.computes;
        s.joins += p.joins;
        s.sends += p.sends;
        s.recvs += p.recvs;
        for (&dim, a) in &p.messages {
            s.message_bytes.entry(dim).or_default().add(a.count, a.bytes);
        }
        for (&(slot, dim, op), a) in &p.collectives {
            // A collective is counted at its group's first member only.
            if w.groups[r.groups[slot as usize] as usize].members.first() == Some(&(rank as u32)) {
                s.collectives += a.count;
                s.collective_bytes.entry((dim, op)).or_default().add(a.count, a.bytes);
            }
        }
        if p.compute_ps > s.compute_ps {
            (s.compute_ps, s.phase_ps) = (p.compute_ps, p.phases.clone());
        }
        s.critical_ops = s.critical_ops.max(p.critical_ops);
        s.critical_ps = s.critical_ps.max(p.critical_ps);
    }
    s
}

impl Amount {
    fn add(&mut self, count: u64, bytes: u128) {
        self.count += count;
        self.bytes += bytes;
    }
}

fn part(p: &Program) -> Part {
    let mut out = Part::default();
    for op in &p.ops {
        match op.kind {
            OpKind::Compute { ps, phase } => {
                out.computes += 1;
                out.compute_ps = out.compute_ps.saturating_add(ps);
                let phase = out.phases.entry(phase).or_default();
                *phase = phase.saturating_add(ps);
            }
            OpKind::Collective { op, slot, bytes, dim, .. } => {
                out.collectives.entry((slot, dim, op)).or_default().add(1, bytes.into())
            }
            OpKind::Send { bytes, dim, .. } => {
                out.sends += 1;
                out.messages.entry(dim).or_default().add(1, bytes.into());
            }
            OpKind::Recv { .. } => out.recvs += 1,
            OpKind::Join => out.joins += 1,
        }
    }
    (out.critical_ops, out.critical_ps) = critical_path(p);
    out
}

/// The number of operations of the longest dependency chain, and the longest compute time of a chain in ps.
fn critical_path(p: &Program) -> (u64, u64) {
    let mut ends: Vec<(u64, u64)> = Vec::with_capacity(p.ops.len());
    let mut last_on: [Option<u32>; 256] = [None; 256];
    let mut longest = (0, 0);
    for (i, op) in p.ops.iter().enumerate() {
        let before = if op.stream == Stream::FREE { None } else { last_on[op.stream.0 as usize].replace(i as u32) };
        let (mut ops, mut ps) = (0, 0);
        for d in p.deps_of(i as u32).iter().copied().chain(before) {
            let (o, t) = ends[d as usize];
            (ops, ps) = (ops.max(o), ps.max(t));
        }
        if let OpKind::Compute { ps: this, .. } = op.kind {
            ps = ps.saturating_add(this);
        }
        ends.push((ops + 1, ps));
        longest = (longest.0.max(ops + 1), longest.1.max(ps));
    }
    longest
}
