//! Finds the operations of other ranks that an operation meets: the same collective in its group, or the send that matches its receive.
//!
//! Layer: host. Reads programs; knows no times. INVARIANT: programs were lowered, so every meeting has all its members.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use hyperfold_llm::workload::program::{OpKind, Program, Workload};

/// One program's communications, in program order.
#[derive(Default)]
struct Calls {
    /// Collectives of each slot.
    collectives: HashMap<u16, Vec<u32>>,
    /// Sends by tag, then by slot and member of the receiver.
    sends: HashMap<u32, HashMap<(u16, u32), Vec<u32>>>,
    /// Receives by tag, then by slot and member of the sender.
    receives: HashMap<u32, HashMap<(u16, u32), Vec<u32>>>,
}

impl Calls {
    fn of(program: &Program) -> Calls {
        let mut calls = Calls::default();
        for (i, op) in program.ops.iter().enumerate() {
            let i = i as u32;
            match op.kind {
                OpKind::Collective { slot, .. } => calls.collectives.entry(slot).or_default().push(i),
                OpKind::Send { peer, tag, .. } => {
                    calls.sends.entry(tag).or_default().entry((peer.slot, peer.member)).or_default().push(i);
                }
                OpKind::Recv { peer, tag, .. } => {
                    calls.receives.entry(tag).or_default().entry((peer.slot, peer.member)).or_default().push(i);
                }
                OpKind::Compute { .. } | OpKind::Join => {}
            }
        }
        calls
    }
}

/// The meetings of a workload, found on demand.
pub(crate) struct Peers<'a> {
    workload: &'a Workload,
    /// Communications of each program.
    calls: Vec<OnceCell<Calls>>,
}

impl<'a> Peers<'a> {
    pub(crate) fn of(workload: &'a Workload) -> Peers<'a> {
        Peers { workload, calls: workload.programs.iter().map(|_| OnceCell::new()).collect() }
    }

    fn calls(&self, rank: u32) -> &Calls {
        let program = self.workload.ranks[rank as usize].program as usize;
        self.calls[program].get_or_init(|| Calls::of(&self.workload.programs[program]))
    }

    /// Returns the ops of other ranks without which op `op` of `rank` cannot go on, as (rank, op). Empty for kernels and sends.
    pub(crate) fn of_op(&self, rank: u32, op: u32) -> Vec<(u32, u32)> {
        let info = &self.workload.ranks[rank as usize];
        match self.workload.programs[info.program as usize].ops[op as usize].kind {
            OpKind::Collective { slot, .. } => {
                let group = info.groups[slot as usize];
                let nth = self.collectives(rank, group).binary_search(&op).ok();
                let others = self.workload.groups[group as usize].members.iter().filter(|&&m| m != rank);
                let same = |&m: &u32| Some((m, *self.collectives(m, group).get(nth?)?));
                others.filter_map(same).collect()
            }
            OpKind::Recv { peer, tag, .. } => {
                let sender = self.rank_at(rank, (peer.slot, peer.member));
                let mine = self.messages(rank, sender, self.calls(rank).receives.get(&tag));
                let theirs = self.messages(sender, rank, self.calls(sender).sends.get(&tag));
                let nth = mine.binary_search(&op).ok();
                nth.and_then(|nth| theirs.get(nth)).map(|&send| (sender, send)).into_iter().collect()
            }
            OpKind::Send { .. } | OpKind::Compute { .. } | OpKind::Join => Vec::new(),
        }
    }

    fn rank_at(&self, rank: u32, (slot, member): (u16, u32)) -> u32 {
        let group = self.workload.ranks[rank as usize].groups[slot as usize];
        self.workload.groups[group as usize].members[member as usize]
    }

    /// Returns a rank's collectives of a group, ascending.
    fn collectives(&self, rank: u32, group: u32) -> Cow<'_, [u32]> {
        let slots = self.workload.ranks[rank as usize].groups.iter().zip(0u16..).filter(|(g, _)| **g == group);
        let mut per_slot = slots.filter_map(|(_, slot)| self.calls(rank).collectives.get(&slot));
        let first = per_slot.next().map_or(&[][..], Vec::as_slice);
        let rest: Vec<u32> = per_slot.flatten().copied().collect();
        // Most groups take one slot of a rank.
        if rest.is_empty() {
            return first.into();
        }
        let mut ops = [first, &rest].concat();
        ops.sort_unstable();
        ops.into()
    }

    /// Returns those of a rank's messages of one tag whose other end is `other`, ascending.
    fn messages(&self, rank: u32, other: u32, messages_of_tag: Option<&HashMap<(u16, u32), Vec<u32>>>) -> Vec<u32> {
        let messages_with_other =
            messages_of_tag.into_iter().flatten().filter(|(peer, _)| self.rank_at(rank, **peer) == other);
        let mut ops: Vec<u32> = messages_with_other.flat_map(|(_, ops)| ops.iter().copied()).collect();
        ops.sort_unstable();
        ops
    }
}
