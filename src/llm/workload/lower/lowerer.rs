//! The state of lowering: the task graph so far, and numbers of queue pairs.
//!
//! Layer: workload.

use std::collections::HashMap;

use super::error::{LowerError, MAX_TASKS};
use super::machine::Lowering;
use crate::collective::{EdgeRing, Overheads};
use crate::workload::classes::Representatives;
use crate::workload::program::{Dim, Workload};
use crate::workload::tasks::{EdgePairs, TaskGraph};
use hyperfold_network::topology::{NodeIdx, Reducer};

/// Which ranks and groups each representative stands for, and the queue pairs of the collectives lowered so far.
pub(super) struct JoinedLowering {
    /// For each rank, the ranks that it stands for, itself first. Empty if there are no representatives.
    pub(super) ranks: Vec<Vec<u32>>,
    /// For each group, the groups that it stands for, itself first.
    pub(super) groups: Vec<Vec<u32>>,
    /// First queue pair and the queue pair of each edge, by group and edges of the collective.
    pub(super) edges: HashMap<(u32, Vec<EdgeRing>), (u32, EdgePairs)>,
}

/// Lists for each rank or group the ranks or groups that it represents. `representative_of` has the representative of each.
fn stood_for(representative_of: &[u32]) -> Vec<Vec<u32>> {
    let mut followers: Vec<Vec<u32>> = vec![Vec::new(); representative_of.len()];
    (0..).zip(representative_of).for_each(|(own, &representative)| followers[representative as usize].push(own));
    followers
}

impl JoinedLowering {
    pub(super) fn new(workload: &Workload, representatives: Option<&Representatives>) -> JoinedLowering {
        let (ranks, groups) = match representatives {
            Some(r) => (stood_for(&r.rank), stood_for(&r.group)),
            None => (Vec::new(), (0..workload.groups.len() as u32).map(|g| vec![g]).collect()),
        };
        JoinedLowering { ranks, groups, edges: HashMap::new() }
    }
}

/// Lowers one workload: its task graph so far, and what has been numbered.
pub(super) struct Lowerer<'a> {
    pub(super) workload: &'a Workload,
    pub(super) machine: &'a Lowering<'a>,
    pub(super) graph: TaskGraph,
    /// Queue pairs by (communicator, source, destination, lane). Communicators are the groups, then one for each class of sends; see [`P2P`](super::messages).
    pub(super) qps: HashMap<(u32, u32, u32, u32), u32>,
    /// Messages so far of each connection; the queue pairs of a connection take turns.
    pub(super) turns: HashMap<(u32, u32, u32, u32), u32>,
    /// Gate server of each link out of a rank that carries no packets.
    pub(super) links: HashMap<(u32, u32), u32>,
    /// Ranks of the switches' parts that reduce.
    pub(super) reducers: HashMap<Reducer, u32>,
    pub(super) joined: JoinedLowering,
    /// How many collectives of the current group are equal to its first one.
    pub(super) same_calls: usize,
    /// Weight of each queue pair.
    pub(super) weights: Vec<u32>,
}

impl Lowerer<'_> {
    /// Gives the queue pairs added since the last call a dimension, and its weight.
    pub(super) fn weigh(&mut self, dim: Dim) {
        self.graph.qps[self.weights.len()..].iter_mut().for_each(|qp| qp.dim = dim);
        self.weights.resize(self.graph.qps.len(), (self.machine.weight)(dim));
    }

    /// The representative of a rank: the rank itself or the one whose tasks it shares.
    pub(super) fn stands_for(&self, rank: u32) -> u32 {
        self.machine.representatives.map_or(rank, |representatives| representatives.rank[rank as usize])
    }

    /// Software overhead in ps of a message from one rank to another.
    pub(super) fn overhead_ps(&self, src: u32, dst: u32, overheads: &Overheads) -> u64 {
        let server = |rank: u32| self.machine.servers[rank as usize];
        if server(src) == server(dst) { overheads.inside_ps } else { overheads.net_ps }
    }

    /// Rank of the part of a switch that reduces for a neighbour, added if it is new.
    pub(super) fn reducer(&mut self, switch: NodeIdx, neighbour: NodeIdx) -> u32 {
        let reducer = Reducer { switch, neighbour };
        let next = (self.machine.hosts.len() + self.graph.reducers.len()) as u32;
        let rank = *self.reducers.entry(reducer).or_insert(next);
        if rank == next {
            self.graph.reducers.push(reducer);
        }
        rank
    }

    /// Checks that `more` further tasks stay within the limit.
    pub(super) fn check_task_limit(&self, more: usize, rank: u32, op: u32) -> Result<(), LowerError> {
        if self.graph.tasks.len().saturating_add(more) <= MAX_TASKS {
            return Ok(());
        }
        Err(LowerError::TooLarge { rank, op, name: self.name(rank, op) })
    }

    /// Name of an op of a rank.
    pub(super) fn name(&self, rank: u32, op: u32) -> String {
        let program = &self.workload.programs[self.workload.ranks[rank as usize].program as usize];
        self.workload.names[program.ops[op as usize].name].to_string()
    }
}
