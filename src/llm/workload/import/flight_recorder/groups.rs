//! Process groups of all dumps.
//!
//! Layer: workload.

use std::collections::BTreeMap;

use super::dump::{Dump, Kind};
use super::entries::DumpFile;
use crate::collective::CollectiveOp;
use crate::workload::import::{ImportError, MAX_BYTES};
use crate::workload::program::{Dim, Group};

/// A process group.
#[derive(Clone, Debug)]
pub(super) struct RecordedGroup {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) members: Vec<u32>,
}

/// Process groups of all dumps that were read, in the order in which they were found.
#[derive(Default)]
pub(super) struct RecordedGroups {
    list: Vec<RecordedGroup>,
    index: BTreeMap<(String, Vec<u32>), u32>,
}

impl RecordedGroups {
    /// Index of the group that entries of a file name. The error says what the file lacks.
    pub(super) fn of(&mut self, file: &DumpFile, named: u32, rank: Option<u32>) -> Result<u32, String> {
        let (name, description) = &file.named[named as usize];
        let Some(members) = file.groups.get(name).filter(|members| !members.is_empty()) else {
            return Err(format!(
                "`pg_config` does not say which ranks the group `{name}` has; a list of them all would be right"
            ));
        };
        let mut sorted = members.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("its group `{name}` has rank {} twice", pair[0]));
        }
        if let Some(rank) = rank.filter(|rank| sorted.binary_search(rank).is_err()) {
            return Err(format!("its group `{name}` does not have rank {rank}, whose dump this is by its name"));
        }
        let key = (name.clone(), members.clone());
        let list = &mut self.list;
        Ok(*self.index.entry(key).or_insert_with(|| {
            let (name, description) = (name.clone(), description.clone());
            list.push(RecordedGroup { name, description, members: members.clone() });
            list.len() as u32 - 1
        }))
    }

    pub(super) fn get(&self, index: u32) -> &RecordedGroup {
        &self.list[index as usize]
    }

    /// All groups with their indices.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &RecordedGroup)> {
        (0u32..).zip(&self.list)
    }

    /// Checks that each member of each group has a dump.
    pub(super) fn have_dumps(&self, dumps: &[Dump]) -> Result<(), ImportError> {
        for (index, group) in self.all() {
            if let Some(missing) = group.members.iter().find(|m| **m as usize >= dumps.len()) {
                let asking = dumps.iter().find(|d| d.units.iter().any(|u| u.group == index));
                let asking = asking.map_or("", |d| &d.path);
                let problem = format!(
                    "{} has rank {missing}, of which there is no dump; one dump of each rank would be right. A rank that ended early may have written none",
                    group.shown()
                );
                return Err(ImportError::path(asking, problem));
            }
        }
        Ok(())
    }

    /// Lets one dump stand for so many ranks: each of its groups must have all ranks, and there must be no messages.
    pub(super) fn span_all(&self, one: &mut Dump, n_ranks: u32) -> Result<(), ImportError> {
        let problem = |why: String| Err(ImportError::path(&one.path, why));
        if one.units.iter().any(|u| u.is_message) {
            return problem(format!(
                "it has sends or receives, so it cannot stand for {n_ranks} ranks; one dump of each rank would be right"
            ));
        }
        if let Some((_, group)) = self.all().find(|(_, g)| g.members.len() != one.world_size as usize) {
            return problem(format!(
                "{} has {} of {} ranks, so it cannot stand for all of them; one dump of each rank would be right",
                group.shown(),
                group.members.len(),
                one.world_size
            ));
        }
        for call in
            one.calls.iter_mut().filter(|c| c.kind == Kind::Collective(CollectiveOp::AllGather) && c.in_bytes > 0)
        {
            let all = call.in_bytes.checked_mul(u64::from(n_ranks)).filter(|bytes| *bytes <= MAX_BYTES);
            let Some(all) = all else {
                return Err(ImportError::path(&one.path, format!("{n_ranks} ranks gather more than a petabyte")));
            };
            call.bytes = all;
        }
        Ok(())
    }

    /// Groups of a workload.
    pub(super) fn groups(&self) -> Vec<Group> {
        self.list.iter().map(|g| Group { members: g.members.clone(), dim: Dim::Other }).collect()
    }
}

impl RecordedGroup {
    /// The group, for messages.
    pub(super) fn shown(&self) -> String {
        match self.description.as_str() {
            "" | "undefined" => format!("group `{}`", self.name),
            description => format!("group `{}` ({description})", self.name),
        }
    }
}

/// Ranks for messages: `rank 3`, `ranks 0-2, 5`.
pub(super) fn ranks_shown(ranks: &[u32]) -> String {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let mut parts: Vec<String> = Vec::new();
    let mut rest = sorted.as_slice();
    while let Some(&first) = rest.first() {
        let n = (0..rest.len()).take_while(|&i| u64::from(rest[i]) == u64::from(first) + i as u64).count();
        let last = rest[n - 1];
        if parts.len() == 8 {
            parts.push(format!("{} more", rest.len()));
            break;
        }
        parts.push(if n == 1 { first.to_string() } else { format!("{first}-{last}") });
        rest = &rest[n..];
    }
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, parts.join(", "))
}
