//! Collective calls of ranks: which members have called which collective of their group, and whether they agree.
//!
//! Layer: workload.

use std::borrow::Cow;
use std::collections::HashMap;

use super::error::LowerError;
use super::lowerer::Lowerer;
use crate::collective::{Algorithm, CollectiveOp};
use crate::workload::classes::Representatives;
use crate::workload::program::{Dim, Group, Workload};
use crate::workload::tasks::OpTasks;

/// One collective of a group.
pub(super) struct CallInstance {
    pub(super) call: Call,
    /// The first rank that called the collective.
    pub(super) first: u32,
    /// Op of that rank.
    pub(super) first_op: u32,
    /// Tasks of each party: begin, go and end. They are [`NOT_YET`] until the party calls.
    pub(super) members: Vec<OpTasks>,
}

/// The arguments of a collective call, which all members must share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) op: CollectiveOp,
    pub(super) bytes: u64,
    pub(super) dim: Dim,
    pub(super) algorithm: Option<Algorithm>,
    pub(super) shares: Option<u32>,
}

impl Call {
    pub(super) fn text(&self) -> String {
        format!("{:?} of {} bytes", self.op, self.bytes)
    }
}

/// Tasks of a party that has not called yet.
pub(super) const NOT_YET: OpTasks = OpTasks { begin: u32::MAX, go: u32::MAX, end: u32::MAX };

/// The collectives of all groups, as far as ranks have called them.
pub(super) struct CollectiveCalls<'w> {
    /// For each group, the ranks that call its collectives: see [`parties`].
    pub(super) parties: Vec<Cow<'w, [u32]>>,
    /// For each group, the position of each of its parties.
    positions: Vec<HashMap<u32, u32>>,
    /// For each group, its collectives in the order of the calls.
    pub(super) instances: Vec<Vec<CallInstance>>,
}

impl<'w> CollectiveCalls<'w> {
    pub(super) fn new(workload: &'w Workload, representatives: Option<&Representatives>) -> CollectiveCalls<'w> {
        let parties = parties(workload, representatives);
        let position_of = |ranks: &Cow<[u32]>| ranks.iter().enumerate().map(|(i, &r)| (r, i as u32)).collect();
        let positions = parties.iter().map(position_of).collect();
        CollectiveCalls { positions, instances: workload.groups.iter().map(|_| Vec::new()).collect(), parties }
    }

    /// Records that a rank calls its group's `nth` collective, and makes the rank's tasks of it.
    pub(super) fn record(
        &mut self,
        l: &mut Lowerer,
        rank: u32,
        op: u32,
        group: u32,
        nth: u32,
        call: Call,
    ) -> Result<OpTasks, LowerError> {
        let members = &l.workload.groups[group as usize].members;
        let n_parties = self.parties[group as usize].len();
        let list = &mut self.instances[group as usize];
        if list.len() as u32 == nth {
            list.push(CallInstance { call, first: rank, first_op: op, members: vec![NOT_YET; n_parties] });
        }
        let instance = &mut list[nth as usize];
        if instance.call != call {
            return Err(LowerError::Mismatch {
                group: listed(members),
                nth,
                a: instance.first,
                a_call: instance.call.text(),
                b: rank,
                b_call: call.text(),
            });
        }
        let begin = l.graph.join(rank);
        let go = if members.len() > 1 { l.graph.join(rank) } else { u32::MAX };
        let end = l.graph.join(rank);
        let tasks = OpTasks { begin, go, end };
        instance.members[self.positions[group as usize][&rank] as usize] = tasks;
        Ok(tasks)
    }
}

/// For each group, the ranks that call its collectives: its members or their representatives, ascending. A group that another group stands for has none.
pub(super) fn parties<'w>(workload: &'w Workload, representatives: Option<&Representatives>) -> Vec<Cow<'w, [u32]>> {
    let Some(representatives) = representatives else {
        return workload.groups.iter().map(|g| Cow::Borrowed(g.members.as_slice())).collect();
    };
    let of_group = |(g, group): (usize, &Group)| {
        let mut ranks: Vec<u32> = Vec::new();
        if representatives.group[g] as usize == g {
            ranks.extend(group.members.iter().map(|&m| representatives.rank[m as usize]));
            ranks.sort_unstable();
            ranks.dedup();
        }
        Cow::Owned(ranks)
    };
    workload.groups.iter().enumerate().map(of_group).collect()
}

/// The first few ranks of a group, as text.
pub(super) fn listed(members: &[u32]) -> String {
    let first_few: Vec<String> = members.iter().take(8).map(u32::to_string).collect();
    if members.len() > 8 {
        format!("{} ... ({} in all)", first_few.join(" "), members.len())
    } else {
        first_few.join(" ")
    }
}
