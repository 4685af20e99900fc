//! Counts the minimum size of a task graph from programs and collective plans, before any task is made.
//!
//! Layer: workload.

use foldhash::{HashMap, HashMapExt};

use super::calls::{Call, parties};
use super::machine::Lowering;
use super::planner::{Asked, CollectivePlan, Planner};
use crate::workload::program::{OpKind, Program, Workload};
use crate::workload::tasks::{GraphTask, OpTasks};
use hyperfold_base::budget;

/// A lower bound of a graph's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphSize {
    /// Number of ops of ranks that have tasks.
    pub ops: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of tasks that cross the network.
    pub messages: u64,
}

/// The tasks that a program's ops become on a rank, without the messages of its collectives.
#[derive(Default)]
struct ProgramSize {
    tasks: u64,
    sends: u64,
    /// By slot: the distinct collectives called there, in order of first call, and how often each is called.
    calls: HashMap<u16, Vec<(Call, u64)>>,
}

/// Counts the tasks that [`super::lower`] would make at least. Collectives are planned in the same order.
///
/// A collective that cannot be planned counts as nothing; lowering gives the error.
pub fn min_size(workload: &Workload, machine: &Lowering, planner: &mut dyn Planner) -> GraphSize {
    let programs: Vec<ProgramSize> = workload.programs.iter().map(|program| program_size(program, machine)).collect();
    let mut size = GraphSize::default();
    for rank in (0..workload.ranks.len() as u32).filter(|&rank| has_tasks(machine, rank)) {
        let number = workload.ranks[rank as usize].program as usize;
        size.ops += workload.programs[number].ops.len() as u64;
        size.tasks += programs[number].tasks + programs[number].sends;
        size.messages += programs[number].sends;
    }
    for (group, own) in (0u32..).zip(parties(workload, machine.representatives)) {
        let members = &workload.groups[group as usize].members;
        let Some(&first) = own.first().filter(|_| members.len() > 1) else { continue };
        let rank = &workload.ranks[first as usize];
        let same = |other: u32| machine.representatives.map_or(other, |all| all.group[other as usize]) == group;
        let Some(slot) = rank.groups.iter().position(|&other| same(other)) else { continue };
        for (call, times) in programs[rank.program as usize].calls.get(&(slot as u16)).into_iter().flatten() {
            let shares = call.shares.map(|s| workload.shares[s as usize].as_slice());
            let Call { op, bytes, dim, algorithm, .. } = *call;
            let (tasks, messages) = match planner.plan(&Asked { op, bytes, dim, algorithm, group, members, shares }) {
                Ok(CollectivePlan::Transfers { schedule, switches, .. }) => {
                    let server = |party: u32| match members.get(party as usize) {
                        Some(&rank) => Some(machine.servers[rank as usize]),
                        None => switches[party as usize - members.len()].server,
                    };
                    let crosses =
                        |from, to| machine.intra.is_none() || server(from) != server(to) || server(from).is_none();
                    let messages = schedule.transfers.iter().filter(|t| crosses(t.from, t.to)).count();
                    (schedule.transfers.len() as u64, messages as u64)
                }
                Ok(CollectivePlan::OneFlow { .. }) => (1, 1),
                Ok(CollectivePlan::Analytic { .. }) | Err(_) => (0, 0),
            };
            size.tasks = size.tasks.saturating_add(tasks.saturating_mul(*times));
            size.messages = size.messages.saturating_add(messages.saturating_mul(*times));
        }
    }
    size
}

/// Stops a workload that cannot fit before any task is made: every op of a rank with tasks becomes at least one task.
pub(super) fn announce_ops(workload: &Workload, machine: &Lowering) {
    let ops_of = |rank: u32| workload.programs[workload.ranks[rank as usize].program as usize].ops.len() as u64;
    let own = (0..workload.ranks.len() as u32).filter(|&rank| has_tasks(machine, rank));
    budget::announce_rows::<(GraphTask, OpTasks)>("tasks", own.map(ops_of).sum());
}

fn has_tasks(machine: &Lowering, rank: u32) -> bool {
    machine.representatives.is_none_or(|all| all.rank[rank as usize] == rank)
}

fn program_size(program: &Program, machine: &Lowering) -> ProgramSize {
    let mut size = ProgramSize::default();
    let mut known: HashMap<(u16, Call), usize> = HashMap::new();
    for op in &program.ops {
        match op.kind {
            OpKind::Compute { .. } | OpKind::Join => size.tasks += 1,
            OpKind::Recv { .. } => size.tasks += 2,
            OpKind::Send { dim, .. } => {
                size.tasks += 2;
                // A message inside a server may take a time instead of packets.
                size.sends += u64::from((machine.analytic_p2p)(dim).is_none() && machine.intra.is_none());
            }
            OpKind::Collective { op, slot, bytes, dim, algorithm, shares } => {
                size.tasks += 2;
                let call = Call { op, bytes, dim, algorithm, shares };
                let calls = size.calls.entry(slot).or_default();
                let place = *known.entry((slot, call)).or_insert(calls.len());
                match calls.get_mut(place) {
                    Some((_, times)) => *times += 1,
                    None => calls.push((call, 1)),
                }
            }
        }
    }
    size
}
