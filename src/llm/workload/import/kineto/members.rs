//! Process groups of traces, and whether their members agree.
//!
//! Layer: workload.

use std::collections::BTreeMap;

use super::events::{CommArgs, KinetoTrace};
use super::rank_program::{GroupCall, RankProgram};
use crate::collective::CollectiveOp;
use crate::workload::import::torch::listed;
use crate::workload::import::{ImportError, MAX_RANKS};
use crate::workload::program::{Dim, Group};

/// Name and members of a group.
type GroupKey = (String, Vec<u32>);

/// Process groups of all traces that were read, in the order in which they were found.
#[derive(Default)]
pub(super) struct ProcessGroups {
    list: Vec<GroupKey>,
    index: BTreeMap<GroupKey, u32>,
    /// Groups of the trace that is read, by what its events say of them.
    of_trace: BTreeMap<GroupText, (u32, usize)>,
}

/// What an event says of its group: name, list of ranks, size, first rank and stride.
type GroupText = (String, String, [Option<u64>; 3]);

impl ProcessGroups {
    /// Begins the next trace.
    pub(super) fn begin_trace(&mut self) {
        self.of_trace.clear();
    }

    /// Index of the group of a call, and how many members it has. The error says what the trace lacks.
    pub(super) fn of(
        &mut self,
        args: &CommArgs,
        trace: &KinetoTrace,
        rank: Option<u32>,
    ) -> Result<(u32, usize), String> {
        let numbers = [args.group_size, args.rank_start, args.rank_stride];
        let text = (args.group_name.clone(), args.group_ranks.clone(), numbers);
        if let Some(found) = self.of_trace.get(&text) {
            return Ok(*found);
        }
        let found = self.find(args, trace, rank)?;
        self.of_trace.insert(text, found);
        Ok(found)
    }

    fn find(&mut self, args: &CommArgs, trace: &KinetoTrace, rank: Option<u32>) -> Result<(u32, usize), String> {
        let name = &args.group_name;
        let members = members(args, trace)?;
        if let Some(size) = args.group_size.filter(|size| *size != members.len() as u64) {
            return Err(format!("its group `{name}` has size {size}, but {} ranks", members.len()));
        }
        let mut sorted = members.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("its group `{name}` has rank {} twice", pair[0]));
        }
        if let Some(rank) = rank.filter(|rank| sorted.binary_search(rank).is_err()) {
            return Err(format!("its group `{name}` does not have rank {rank}, whose trace this is"));
        }
        let size = members.len();
        let key = (name.clone(), members);
        if let Some(index) = self.index.get(&key) {
            return Ok((*index, size));
        }
        let index = self.list.len() as u32;
        self.list.push(key.clone());
        self.index.insert(key, index);
        Ok((index, size))
    }

    /// Members of a group, in its order.
    pub(super) fn members(&self, index: u32) -> &[u32] {
        &self.list[index as usize].1
    }

    /// Checks that a trace can stand for all ranks: each of its groups has them all, and there are no messages.
    pub(super) fn span_all(&self, one: &RankProgram, n_ranks: u32) -> Result<(), ImportError> {
        let problem = |why: String| Err(ImportError::path(&one.path, why));
        if one.has_messages {
            return problem(format!(
                "it has sends or receives, so it cannot stand for {n_ranks} ranks; one trace of each rank would be right"
            ));
        }
        let world = one.world_size.map_or_else(|| self.list.iter().map(|g| g.1.len()).max(), |w| Some(w as usize));
        match self.list.iter().find(|group| Some(group.1.len()) != world) {
            Some((name, members)) => problem(format!(
                "its group `{name}` has {} of {} ranks, so it cannot stand for all of them; one trace of each rank would be right",
                members.len(),
                world.unwrap_or(0)
            )),
            None => Ok(()),
        }
    }

    /// Groups of a workload of so many ranks.
    pub(super) fn groups(&self, n_ranks: u32) -> Result<Vec<Group>, ImportError> {
        let group = |(_, members): &GroupKey| Group { members: members.clone(), dim: Dim::Other };
        debug_assert!(self.list.iter().flat_map(|g| &g.1).all(|m| *m < n_ranks), "agree() has checked it");
        Ok(self.list.iter().map(group).collect())
    }

    /// Checks that all members of a group have the same calls, and gives uneven all-to-alls one size.
    pub(super) fn agree(&self, programs: &mut [RankProgram], notes: &mut Vec<String>) -> Result<(), ImportError> {
        let mut uneven = 0u64;
        for (index, (name, members)) in self.list.iter().enumerate() {
            let n = programs.len();
            let first = members[0] as usize;
            if let Some(missing) = members.iter().find(|m| **m as usize >= n) {
                let asking =
                    programs.iter().find(|p| p.slots.contains(&(index as u32))).expect("a trace has the group");
                return Err(ImportError::path(
                    &asking.path,
                    format!(
                        "group `{name}` has rank {missing}, of which there is no trace; one trace of each rank would be right"
                    ),
                ));
            }
            let mut calls: Vec<GroupCall> = programs[first].calls_of(index as u32).copied().collect();
            for &member in &members[1..] {
                let other = &programs[member as usize];
                uneven += Self::compare(name, &programs[first], &mut calls, other, index as u32)?;
            }
            for &member in members {
                programs[member as usize].set_bytes(index as u32, &calls);
            }
        }
        let unequal_parts: u64 = programs.iter().map(|p| p.uneven).sum();
        if unequal_parts > 0 {
            notes.push(format!(
                "{unequal_parts} all-to-all(s) send parts of different sizes; parts of their mean are simulated"
            ));
        }
        if uneven > 0 {
            notes.push(format!("{uneven} all-to-all(s) have other sizes on other ranks; the largest is taken for all"));
        }
        Ok(())
    }

    /// Compares the calls of a rank with those of the group's first rank. Returns how many all-to-alls have other bytes; `calls` then has the larger.
    fn compare(
        name: &str,
        first: &RankProgram,
        calls: &mut [GroupCall],
        other: &RankProgram,
        group: u32,
    ) -> Result<u64, ImportError> {
        let fault = |why: String| Err(ImportError::path(&other.path, format!("group `{name}`: {why}")));
        let mut uneven = 0;
        let mut n = 0;
        for (k, theirs) in other.calls_of(group).enumerate() {
            n = k + 1;
            let Some(own) = calls.get_mut(k) else { continue };
            if own.sequence.is_some() && theirs.sequence.is_some() && own.sequence != theirs.sequence {
                return fault(format!(
                    "its collective {k} has Seq {}, that of {} has Seq {}; traces of the same steps would be right",
                    theirs.sequence.unwrap_or(0),
                    first.path,
                    own.sequence.unwrap_or(0)
                ));
            }
            if own.op != theirs.op || (own.bytes != theirs.bytes && own.op != CollectiveOp::AllToAll) {
                return fault(format!(
                    "its collective {k} is {:?} of {} bytes, that of {} is {:?} of {} bytes; traces of the same steps would be right",
                    theirs.op, theirs.bytes, first.path, own.op, own.bytes
                ));
            }
            uneven += u64::from(own.bytes != theirs.bytes);
            own.bytes = own.bytes.max(theirs.bytes);
        }
        if n != calls.len() {
            let why = format!(
                "it has {n} collectives, {} has {}; traces of the same steps would be right",
                first.path,
                calls.len()
            );
            return fault(why);
        }
        Ok(uneven)
    }
}

/// Members of the group of a call: as it lists them, as the trace lists its groups, as a range, or all ranks.
fn members(args: &CommArgs, trace: &KinetoTrace) -> Result<Vec<u32>, String> {
    let name = &args.group_name;
    if let Some(members) = listed(&args.group_ranks).filter(|members| !members.is_empty()) {
        return Ok(members);
    }
    let known = trace.groups.iter().find(|(known, members)| known == name && !members.is_empty());
    if let Some((_, members)) = known {
        return Ok(members.clone());
    }
    let size = args.group_size.filter(|size| (1..=u64::from(MAX_RANKS)).contains(size));
    if let (Some(size), Some(start), Some(stride)) = (size, args.rank_start, args.rank_stride)
        && (stride > 0 || size == 1)
    {
        let member = |i: u64| start.checked_add(i.checked_mul(stride)?).filter(|m| *m < u64::from(MAX_RANKS));
        let members: Option<Vec<u32>> = (0..size).map(|i| member(i).map(|m| m as u32)).collect();
        return members.ok_or_else(|| format!("its group `{name}` has ranks of {MAX_RANKS} or more"));
    }
    match (size, trace.world_size) {
        (Some(size), Some(world)) if size == u64::from(world) => Ok((0..world).collect()),
        _ => Err(format!(
            "it does not say which ranks its group `{name}` has; `Process Group Ranks`, all of them, would be right"
        )),
    }
}
