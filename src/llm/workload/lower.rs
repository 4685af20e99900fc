//! Lowers programs to a task graph. Collectives are planned and split into transfers, sends are matched with receives, and the order of streams becomes edges.
//!
//! Layer: workload. The caller's [`Planner`] decides what a collective becomes (algorithm, channels, chunks, or a time). Paths and NICs are chosen in `host`.

mod calls;
mod collectives;
mod error;
mod joined_flows;
mod lowerer;
mod machine;
mod messages;
mod op_times;
mod planner;
mod ranks;
mod reduction;
mod relays;
mod rescale;
mod size;
mod steady;
#[cfg(test)]
mod tests;
mod transfer;

use std::collections::{BTreeMap, HashMap};

use super::program::Workload;
use super::tasks::TaskGraph;
use calls::CollectiveCalls;
use lowerer::{JoinedLowering, Lowerer};
use messages::MessageEnds;

pub use error::LowerError;
pub use machine::{IntraServerPath, Lowering};
pub use op_times::{OpTimes, SolvedOps, WorkloadTimes, op_times, solved_ops};
pub use planner::{Asked, CollectivePlan, Planner, ReducingSwitch};
pub use relays::Relays;
pub use rescale::rescaled;
pub use size::{GraphSize, min_size};
pub use steady::SteadyPairs;

/// Lowers programs to tasks.
///
/// # Errors
/// Ranks do not agree on what they call, or a collective cannot be planned.
pub fn lower(workload: &Workload, machine: &Lowering, planner: &mut dyn Planner) -> Result<TaskGraph, LowerError> {
    let mut lowerer = Lowerer {
        workload,
        machine,
        graph: TaskGraph::default(),
        qps: HashMap::new(),
        turns: HashMap::new(),
        links: HashMap::new(),
        reducers: HashMap::new(),
        joined: JoinedLowering::new(workload, machine.representatives),
        same_calls: 0,
        weights: Vec::new(),
    };
    size::announce_ops(workload, machine);
    let mut calls = CollectiveCalls::new(workload, machine.representatives);
    let mut matches: BTreeMap<(u32, u32, u32), MessageEnds> = BTreeMap::new();
    for rank in 0..workload.ranks.len() as u32 {
        match lowerer.stands_for(rank) == rank {
            true => ranks::rank(&mut lowerer, rank, &mut calls, &mut matches)?,
            false => lowerer.graph.ops.push(Vec::new()),
        }
    }
    if let Some(representatives) = machine.representatives {
        messages::receives_of_those_stood_for(&lowerer, &mut matches);
        lowerer.graph.stands_for = representatives.rank.clone();
    }
    for (group, list) in calls.instances.iter().enumerate() {
        lowerer.same_calls = list.first().map_or(0, |first| list.iter().filter(|i| i.call == first.call).count());
        for (nth, instance) in list.iter().enumerate() {
            collectives::collective(&mut lowerer, group as u32, nth as u32, instance, &calls.parties, planner)?;
            lowerer.weigh(workload.groups[group].dim);
        }
    }
    messages::messages(&mut lowerer, &matches)?;
    let mut graph = lowerer.graph;
    if lowerer.weights.iter().any(|&weight| weight > 1) {
        graph.weights = lowerer.weights;
    }
    graph.shrink();
    Ok(graph)
}
