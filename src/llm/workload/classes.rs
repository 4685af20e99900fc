//! Classes of ranks that do the same at the same time, so that one rank of each class can stand for all of them.
//!
//! Layer: workload. The method is colour refinement. A rank begins with the colour of its program. Ranks get different colours as long as the colours of the
//! members of their groups differ.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt};

use super::program::{Group, OpKind, Rank, Workload};

/// A rank with at most this many groups is searched linearly; for a rank with more, an index is built.
const FEW_GROUPS: usize = 16;

/// A member's place in a group: (class of the member, slot of the group in that member).
pub(super) type GroupPlace = (u32, u16);

/// The key that tells groups apart: the caller's label of the group, and its members' places in order.
type GroupLook = (Vec<u32>, Vec<GroupPlace>);

/// The classes of a workload's ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RankClasses {
    /// Class of each rank.
    pub class_of: Vec<u32>,
    /// The first rank of each class.
    pub reps: Vec<u32>,
    /// Number of each group's look. Groups with the same number look the same.
    group_look: Vec<u32>,
}

impl RankClasses {
    /// Refines the classes until nothing changes. Then ranks of one class have equal programs, and equal classes member by member in equal slots. `rank_label`
    /// and `group_label` give further properties that tell ranks and groups apart.
    pub(super) fn of(
        w: &Workload,
        rank_label: impl Fn(u32) -> Vec<u32>,
        group_label: impl Fn(&Group) -> Vec<u32>,
    ) -> RankClasses {
        let slot_in = slots_of_members(w);
        let labels: Vec<Vec<u32>> = w.groups.iter().map(group_label).collect();
        let mut numbers: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
        let mut class_of: Vec<u32> = Vec::with_capacity(w.ranks.len());
        for (r, rank) in w.ranks.iter().enumerate() {
            let next = numbers.len() as u32;
            class_of.push(*numbers.entry((rank.program, rank_label(r as u32))).or_insert(next));
        }
        let mut n = numbers.len();
        loop {
            // A group looks like its members' classes and slots; a rank like its own class and its groups' looks.
            let mut looks: HashMap<GroupLook, u32> = HashMap::new();
            let mut group_look = Vec::with_capacity(w.groups.len());
            for (g, group) in w.groups.iter().enumerate() {
                let places = group.members.iter().zip(&slot_in[g]).map(|(&m, &s)| (class_of[m as usize], s)).collect();
                let next = looks.len() as u32;
                group_look.push(*looks.entry((labels[g].clone(), places)).or_insert(next));
            }
            let mut seen: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
            let mut reps = Vec::new();
            let mut refined = Vec::with_capacity(class_of.len());
            for (r, rank) in w.ranks.iter().enumerate() {
                let look = (class_of[r], rank.groups.iter().map(|&g| group_look[g as usize]).collect());
                let next = seen.len() as u32;
                let class = *seen.entry(look).or_insert_with(|| {
                    reps.push(r as u32);
                    next
                });
                refined.push(class);
            }
            class_of = refined;
            if reps.len() == n {
                return RankClasses { class_of, reps, group_look };
            }
            n = reps.len();
        }
    }
}

/// For each group and each of its members, the slot that the group has in that member; `u16::MAX` where it has none.
fn slots_of_members(w: &Workload) -> Vec<Vec<u16>> {
    // Most ranks have few groups; ranks of imported traces may have many.
    let of_many = |rank: &Rank| -> HashMap<u32, u16> {
        let slots = rank.groups.iter().zip(0u16..).filter(|_| rank.groups.len() > FEW_GROUPS);
        slots.map(|(&g, slot)| (g, slot)).collect()
    };
    let index: Vec<HashMap<u32, u16>> = w.ranks.iter().map(of_many).collect();
    let slot = |g: u32, m: u32| {
        let found = match w.ranks[m as usize].groups.as_slice() {
            few if few.len() <= FEW_GROUPS => few.iter().rposition(|&group| group == g).map(|slot| slot as u16),
            _ => index[m as usize].get(&g).copied(),
        };
        found.unwrap_or(u16::MAX)
    };
    (0u32..).zip(&w.groups).map(|(g, group)| group.members.iter().map(|&m| slot(g, m)).collect()).collect()
}

/// Ranks that stand for all ranks of their class, and groups that stand for all groups that look the same. Every rank has the times of its representative,
/// provided that what the ranks of a class do depends on nothing but their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representatives {
    /// For each rank, its representative: the rank itself or one with a lower number.
    pub rank: Vec<u32>,
    /// For each group, its representative.
    pub group: Vec<u32>,
}

impl Representatives {
    /// Finds the representatives. The result is `None` if every rank would stand only for itself, or if classes alone do not tell which send meets which
    /// receive. `rank_label` and `group_label` tell apart what the workload itself does not, such as slower kernels and the places of members.
    pub fn of(
        w: &Workload,
        rank_label: impl Fn(u32) -> u32,
        group_label: impl Fn(&Group) -> Vec<u32>,
    ) -> Option<Representatives> {
        let messaging = groups_with_messages(w);
        // A message names its receiver by the number in the group, so ranks of one class must also have equal numbers of their own.
        let numbers: HashMap<(u32, u32), u32> = messaging
            .iter()
            .flat_map(|&g| w.groups[g as usize].members.iter().enumerate().map(move |(i, &m)| ((g, m), i as u32)))
            .collect();
        let own_numbers = |r: u32| {
            let number = |&g: &u32| numbers.get(&(g, r)).copied().unwrap_or(0);
            std::iter::once(rank_label(r)).chain(w.ranks[r as usize].groups.iter().map(number)).collect()
        };
        let classes = RankClasses::of(w, own_numbers, group_label);
        if classes.reps.len() == w.ranks.len() {
            return None;
        }
        let mut first_of: HashMap<u32, u32> = HashMap::new();
        let group: Vec<u32> =
            (0..w.groups.len() as u32).map(|g| *first_of.entry(classes.group_look[g as usize]).or_insert(g)).collect();
        let unambiguous = |&r: &u32| {
            let slots = &w.ranks[r as usize].groups;
            // Two groups of one rank must not become one.
            let merged = |a: u32, b: u32| a != b && group[a as usize] == group[b as usize];
            let distinct = slots.iter().enumerate().all(|(i, &a)| slots[..i].iter().all(|&b| !merged(a, b)));
            distinct && one_way_to_each_neighbour(w, r, &messaging)
        };
        if !classes.reps.iter().all(unambiguous) {
            return None;
        }
        let rank = classes.class_of.iter().map(|&class| classes.reps[class as usize]).collect();
        Some(Representatives { rank, group })
    }
}

/// Groups whose members send each other messages.
fn groups_with_messages(w: &Workload) -> BTreeSet<u32> {
    let mut slots_of_program: Vec<BTreeSet<u16>> = Vec::with_capacity(w.programs.len());
    for p in &w.programs {
        let slot = |kind: &OpKind| match kind {
            OpKind::Send { peer, .. } | OpKind::Recv { peer, .. } => Some(peer.slot),
            _ => None,
        };
        slots_of_program.push(p.ops.iter().filter_map(|op| slot(&op.kind)).collect());
    }
    let of_rank = |r: &super::program::Rank| -> Vec<u32> {
        slots_of_program[r.program as usize].iter().map(|&s| r.groups[s as usize]).collect()
    };
    w.ranks.iter().flat_map(of_rank).collect()
}

/// Whether a rank shares at most one group with messages with each rank that it exchanges messages with.
fn one_way_to_each_neighbour(w: &Workload, r: u32, messaging: &BTreeSet<u32>) -> bool {
    let mine: BTreeSet<u32> = w.ranks[r as usize].groups.iter().copied().filter(|g| messaging.contains(g)).collect();
    let mut met: BTreeSet<u32> = BTreeSet::new();
    mine.iter().all(|&g| w.groups[g as usize].members.iter().all(|&m| m == r || met.insert(m)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::program::{Dim, Peer, Program, Stream};

    /// A workload of two replicas of a pipeline with two stages: ranks 0 and 1 are the first stage, 2 and 3 the last.
    fn pipelines() -> Workload {
        let message = |send: bool, member| {
            let peer = Peer { slot: 0, member };
            match send {
                true => OpKind::Send { peer, bytes: 8, tag: 0, dim: Dim::Pp },
                false => OpKind::Recv { peer, bytes: 8, tag: 0, dim: Dim::Pp },
            }
        };
        let program = |kind| {
            let mut p = Program::default();
            p.push(kind, Stream::comm(Dim::Pp), 0, &[]);
            p
        };
        let group = |members: &[u32], dim| Group { members: members.to_vec(), dim };
        Workload {
            programs: vec![program(message(true, 1)), program(message(false, 0))],
            ranks: [(0, [0, 2]), (0, [1, 2]), (1, [0, 3]), (1, [1, 3])]
                .map(|(program, groups)| Rank { program, groups: groups.to_vec() })
                .to_vec(),
            groups: vec![
                group(&[0, 2], Dim::Pp),
                group(&[1, 3], Dim::Pp),
                group(&[0, 1], Dim::Dp),
                group(&[2, 3], Dim::Dp),
            ],
            ..Workload::default()
        }
    }

    #[test]
    fn replicas_are_one_class_and_stages_are_not() {
        let w = pipelines();
        let all = Representatives::of(&w, |_| 0, |_| Vec::new()).expect("replicas are alike");
        assert_eq!(all, Representatives { rank: vec![0, 0, 2, 2], group: vec![0, 0, 2, 3] });
    }

    #[test]
    fn a_slower_rank_splits_its_class_and_those_it_sends_to() {
        let w = pipelines();
        assert_eq!(Representatives::of(&w, |r| u32::from(r == 1), |_| Vec::new()), None);
    }

    #[test]
    fn groups_that_lie_otherwise_differ() {
        let w = pipelines();
        assert_eq!(Representatives::of(&w, |_| 0, |g| g.members.clone()), None);
    }

    #[test]
    fn a_ring_of_messages_has_no_classes() {
        let mut w = pipelines();
        // Every rank sends to the member with the next number.
        w.groups = vec![Group { members: vec![0, 1, 2, 3], dim: Dim::Pp }];
        for r in 0..4 {
            w.ranks[r] = Rank { program: 0, groups: vec![0] };
        }
        assert_eq!(Representatives::of(&w, |_| 0, |_| Vec::new()), None);
    }
}
