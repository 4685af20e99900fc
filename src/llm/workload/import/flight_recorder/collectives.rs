//! Whether the members of a group have the same collectives, and which of them lacks which.
//!
//! Layer: workload.

use std::collections::BTreeMap;

use super::dump::{Dump, Kind, RecordedCall};
use super::groups::{RecordedGroup, RecordedGroups, ranks_shown};
use super::notes::Missing;
use crate::collective::CollectiveOp;
use crate::workload::import::ImportError;

/// Leaves out what not every member of its group has, and gives uneven all-to-alls one size. Returns which ranks lack which collective.
///
/// # Errors
/// Members have different collectives, or one lacks a collective between others.
pub(super) fn agree(
    path: &str,
    dumps: &mut [Dump],
    groups: &RecordedGroups,
    notes: &mut Vec<String>,
) -> Result<Vec<Missing>, ImportError> {
    let by_group = by_group(dumps);
    let mut found = Vec::new();
    let (mut uneven, mut n_lost) = (0u64, 0u64);
    for (index, group) in groups.all() {
        let lists: Vec<&[u32]> = group.members.iter().map(|m| list(&by_group[*m as usize], index)).collect();
        let sequence =
            |member: usize, k: usize| dumps[group.members[member] as usize].units[lists[member][k] as usize].sequence;
        // Collectives before this one are gone from a rank whose recorder was full.
        let begin = (0..lists.len())
            .filter(|&i| dumps[group.members[i] as usize].has_lost)
            .map(|i| if lists[i].is_empty() { u64::MAX } else { sequence(i, 0) })
            .max()
            .unwrap_or(0);
        let skip: Vec<usize> =
            (0..lists.len()).map(|i| (0..lists[i].len()).take_while(|&k| sequence(i, k) < begin).count()).collect();
        let lists: Vec<&[u32]> = lists.iter().zip(&skip).map(|(list, skip)| &list[*skip..]).collect();
        n_lost += skip.iter().map(|n| *n as u64).sum::<u64>();
        let all = Members { group, dumps, lists: &lists };
        let n_common = all.same_sequences(path)?;
        let mut larger = Vec::new();
        for k in 0..n_common {
            if !all.are_same(k) {
                return Err(all.disagree(path, k));
            }
            larger.push(all.largest(k));
        }
        found.extend(all.missing(n_common));
        for (i, &member) in group.members.iter().enumerate() {
            let dump = &mut dumps[member as usize];
            let before = list(&by_group[member as usize], index)[..skip[i]].iter();
            for unit in before.chain(&lists[i][n_common..]) {
                dump.units[*unit as usize].keep = false;
            }
            for (unit, bytes) in lists[i].iter().zip(&larger) {
                let calls = dump.units[*unit as usize].calls.clone();
                for (call, bytes) in dump.calls[calls.start as usize..calls.end as usize].iter_mut().zip(bytes) {
                    uneven += u64::from(call.bytes != *bytes);
                    call.bytes = *bytes;
                }
            }
        }
    }
    if n_lost > 0 {
        let full: Vec<u32> = dumps.iter().filter(|d| d.has_lost).map(Dump::rank_or_first).collect();
        notes.push(format!(
            "the recorder of {} was full, so that first calls are gone; {n_lost} collective(s) of other ranks from that time are left out. A larger TORCH_NCCL_TRACE_BUFFER_SIZE keeps them",
            ranks_shown(&full)
        ));
    }
    if uneven > 0 {
        notes.push(format!("{uneven} all-to-all(s) have other sizes on other ranks; the largest is taken for all"));
    }
    Ok(found)
}

/// For each dump, its collectives by group, in order.
fn by_group(dumps: &[Dump]) -> Vec<BTreeMap<u32, Vec<u32>>> {
    let of_dump = |dump: &Dump| {
        let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (i, unit) in dump.units.iter().enumerate().filter(|(_, unit)| !unit.is_message) {
            lists.entry(unit.group).or_default().push(i as u32);
        }
        lists
    };
    dumps.iter().map(of_dump).collect()
}

fn list(lists: &BTreeMap<u32, Vec<u32>>, group: u32) -> &[u32] {
    lists.get(&group).map_or(&[], Vec::as_slice)
}

/// The collectives of a group, member by member.
struct Members<'a> {
    group: &'a RecordedGroup,
    dumps: &'a [Dump],
    /// For each member, indices of units.
    lists: &'a [&'a [u32]],
}

impl Members<'_> {
    fn dump(&self, member: usize) -> &Dump {
        &self.dumps[self.group.members[member] as usize]
    }

    fn unit(&self, member: usize, k: usize) -> &super::dump::Launch {
        &self.dump(member).units[self.lists[member][k] as usize]
    }

    fn calls(&self, member: usize, k: usize) -> &[RecordedCall] {
        self.dump(member).calls_of(self.unit(member, k))
    }

    /// Checks that numbers of collectives are the same, as far as all members have them. Returns how many all have.
    fn same_sequences(&self, path: &str) -> Result<usize, ImportError> {
        let n = self.lists.len();
        let longest = (0..n).rev().max_by_key(|&i| self.lists[i].len()).expect("a group has members");
        for member in 0..n {
            for k in 0..self.lists[member].len() {
                let (own, other) = (self.unit(member, k).sequence, self.unit(longest, k).sequence);
                if own == other {
                    continue;
                }
                let (lacking, having, lacks) =
                    if own > other { (member, longest, other) } else { (longest, member, own) };
                let problem = format!(
                    "{}: rank {} lacks collective {lacks}, {}, which rank {} has, and has later ones; dumps of the same run would be right",
                    self.group.shown(),
                    self.group.members[lacking],
                    self.dump(having).told(self.unit(having, k)),
                    self.group.members[having]
                );
                return Err(ImportError::graph(path, problem));
            }
        }
        Ok(self.lists.iter().map(|list| list.len()).min().unwrap_or(0))
    }

    /// Whether the k-th collective is the same on all members, but for the sizes of all-to-alls.
    fn are_same(&self, k: usize) -> bool {
        let first = self.calls(0, k);
        (1..self.lists.len()).all(|member| same(first, self.calls(member, k)))
    }

    /// Bytes of the k-th collective: the largest of all members.
    fn largest(&self, k: usize) -> Vec<u64> {
        let mut bytes: Vec<u64> = self.calls(0, k).iter().map(|c| c.bytes).collect();
        for member in 1..self.lists.len() {
            bytes.iter_mut().zip(self.calls(member, k)).for_each(|(most, c)| *most = c.bytes.max(*most));
        }
        bytes
    }

    /// The error of members whose k-th collectives differ. It names those that are fewer.
    fn disagree(&self, path: &str, k: usize) -> ImportError {
        let mut kinds: Vec<(usize, Vec<u32>)> = Vec::new();
        for member in 0..self.lists.len() {
            let rank = self.group.members[member];
            match kinds.iter_mut().find(|(other, _)| same(self.calls(*other, k), self.calls(member, k))) {
                Some((_, ranks)) => ranks.push(rank),
                None => kinds.push((member, vec![rank])),
            }
        }
        kinds.sort_by_key(|(_, ranks)| ranks.len());
        let told = |(member, ranks): &(usize, Vec<u32>)| {
            format!("{} made {}", ranks_shown(ranks), self.dump(*member).told(self.unit(*member, k)))
        };
        let (few, most) = (&kinds[0], kinds.last().expect("there are at least two"));
        let problem = format!(
            "{}: as collective {} {}, but {}; such a job hangs or fails. Ranks that make the same calls would be right",
            self.group.shown(),
            self.unit(few.0, k).sequence,
            told(few),
            told(most)
        );
        ImportError::graph(path, problem)
    }

    /// Which members lack the first collective that not all have.
    fn missing(&self, n_common: usize) -> Option<Missing> {
        let has = |&i: &usize| self.lists[i].len() > n_common;
        let members: Vec<usize> = (0..self.lists.len()).collect();
        let having: Vec<usize> = members.iter().copied().filter(has).collect();
        let first = *having.first()?;
        let unit = self.unit(first, n_common);
        let ranks = |some: &[usize]| some.iter().map(|i| self.group.members[*i]).collect::<Vec<u32>>();
        let lacking: Vec<u32> = ranks(&members.iter().copied().filter(|i| !has(i)).collect::<Vec<_>>());
        let last = &self.dumps[lacking[0] as usize];
        let last = last.units.last().map_or(format!("Rank {} made no call", lacking[0]), |u| {
            let state = if u.has_completed { "which ended" } else { "which had not ended" };
            format!("The last call of rank {} was record_id {}, {}, {state}", lacking[0], u.record_id, last.told(u))
        });
        Some(Missing {
            at_ns: having.iter().map(|&i| self.unit(i, n_common).created_ns).min().unwrap_or(0),
            text: format!(
                "{}: {} did not make collective {}, {}, which {} made. {last}",
                self.group.shown(),
                ranks_shown(&lacking),
                unit.sequence,
                self.dump(first).told(unit),
                ranks_shown(&ranks(&having))
            ),
            n_left_out: members.iter().map(|&i| (self.lists[i].len() - n_common) as u64).sum(),
        })
    }
}

/// Whether calls are the same, but for the sizes of all-to-alls.
fn same(a: &[RecordedCall], b: &[RecordedCall]) -> bool {
    let same_bytes =
        |a: &RecordedCall, b: &RecordedCall| a.bytes == b.bytes || a.kind == Kind::Collective(CollectiveOp::AllToAll);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.kind == b.kind && same_bytes(a, b))
}
