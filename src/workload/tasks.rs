//! Task graphs: what programs become on a machine, the form the engine runs.
//!
//! Layer: workload. Tasks take time or post messages on queue pairs; edges say what waits for what; gates are meetings of ranks and transfers that are no
//! packets'. Knows ranks, no NICs: `batch` gives tasks their owners.

use std::sync::Arc;

use crate::budget;
use crate::collective::Overheads;

/// A queue pair between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueuePair {
    pub src: u32,
    pub dst: u32,
    /// Tells queue pairs of one pair of ranks apart: path hashing and the choice of NIC see it.
    pub lane: u32,
}

/// What a task does once nothing keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Takes time.
    Delay,
    /// Posts `bytes` (at least 1) on queue pair `qp`; messages of a queue pair are sent in the order of their tasks.
    Message { qp: u32, bytes: u64 },
}

/// A task of a rank. `delay_ps`: from its release to its end, or to the post of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphTask {
    pub rank: u32,
    pub delay_ps: u64,
    pub work: Work,
}

/// Which moment of a task an edge leaves from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeMoment {
    /// Its end; of a message the last acknowledgement.
    Done,
    /// A message has arrived whole at the receiving rank.
    Got,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Task(u32),
    Gate(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    pub from: u32,
    pub when: EdgeMoment,
    pub to: Target,
}

/// When all edges into it have been met, it is served, and some time later releases its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphGate {
    /// What serves it, one gate after another, for `serial_ps` each; `None`: nothing does.
    pub server: Option<u32>,
    pub serial_ps: u64,
    /// At least 1.
    pub latency_ps: u64,
}

/// Where an op of a program is in the graph. Its begin is the end of `begin`, or the post of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpTasks {
    /// Ends (or, a compute task, begins) when everything on this rank that the op waits for is there.
    pub begin: u32,
    /// Ends when the others are there too; of a receive the task that posts, on another rank; `u32::MAX`: it waits for nobody.
    pub go: u32,
    pub end: u32,
}

/// Queue pairs that carry the same at the same time, consecutive in [`TaskGraph::qps`]: flow level makes one flow of them. Their messages are those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinedQueuePairs {
    pub first: u32,
    pub n: u32,
}

/// The queue pair of each edge of a collective, ring by ring; `u32::MAX` where no packet goes.
pub type EdgePairs = Arc<Vec<Vec<u32>>>;

/// A collective whose steps are alike as one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedCollective {
    /// Its message, on the first of joined queue pairs.
    pub task: u32,
    pub edges: EdgePairs,
    /// Queue pairs that follow each of these and have their part of an edge's bytes, itself among them.
    pub lanes: u32,
    /// What software costs its messages.
    pub overheads: Overheads,
    pub steps: u64,
    pub pieces: u64,
    pub piece_bytes: u64,
    /// Blocks that a GPU sends one after the other inside its server in a step.
    pub inside_each: u64,
    /// Between members where no packet goes: rate in bps and latency in ps.
    pub inside: (u64, u64),
    /// Alone, it takes no less.
    pub least_ps: u64,
}

/// A graph. INVARIANT: no cycles through edges, gates and the order of queue pairs (`lower` builds them from programs that were checked).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGraph {
    pub qps: Vec<QueuePair>,
    /// Of each queue pair, at flow level: by how many times more of a full link it gets than others do; empty where all are alike.
    pub weights: Vec<u32>,
    pub tasks: Vec<GraphTask>,
    pub edges: Vec<Edge>,
    pub gates: Vec<GraphGate>,
    /// (gate, task) that it releases.
    pub releases: Vec<(u32, u32)>,
    /// Servers of gates.
    pub servers: u32,
    /// Queue pairs whose messages are one flow, and messages that are whole collectives; flow level only.
    pub joined: Vec<JoinedQueuePairs>,
    pub one_flow: Vec<JoinedCollective>,
    /// Tasks of every op of every rank; none of ranks that another stands for.
    pub ops: Vec<Vec<OpTasks>>,
    /// For each rank the one whose tasks are its own as well; empty where each has its own.
    pub stands_for: Vec<u32>,
}

impl TaskGraph {
    /// Tasks of a rank's op.
    pub fn op(&self, rank: u32, op: u32) -> &OpTasks {
        let rank = self.stands_for.get(rank as usize).copied().unwrap_or(rank);
        &self.ops[rank as usize][op as usize]
    }

    /// Gives back what it could still grow into: graphs are kept for as long as experiments share them.
    pub fn shrink(&mut self) {
        self.qps.shrink_to_fit();
        self.tasks.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.gates.shrink_to_fit();
        self.releases.shrink_to_fit();
    }

    /// Appends a task.
    pub fn task(&mut self, rank: u32, delay_ps: u64, work: Work) -> u32 {
        budget::check_growth("tasks", &self.tasks);
        self.tasks.push(GraphTask { rank, delay_ps, work });
        self.tasks.len() as u32 - 1
    }

    /// Appends a task that takes no time: a meeting point of edges.
    pub fn join(&mut self, rank: u32) -> u32 {
        self.task(rank, 0, Work::Delay)
    }

    /// Messages in the order of tasks: (task, queue pair, bytes).
    pub fn messages(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.tasks.iter().enumerate().filter_map(|(i, t)| match t.work {
            Work::Message { qp, bytes } => Some((i as u32, qp, bytes)),
            Work::Delay => None,
        })
    }

    fn edge(&mut self, edge: Edge) {
        budget::check_growth("edges between tasks", &self.edges);
        self.edges.push(edge);
    }

    /// `to` waits for the end of `from`.
    pub fn after(&mut self, from: u32, to: u32) {
        self.edge(Edge { from, when: EdgeMoment::Done, to: Target::Task(to) });
    }

    /// `to` waits for the arrival of message `from`.
    pub fn after_arrival(&mut self, from: u32, to: u32) {
        self.edge(Edge { from, when: EdgeMoment::Got, to: Target::Task(to) });
    }

    /// Appends a gate.
    pub fn gate(&mut self, server: Option<u32>, serial_ps: u64, latency_ps: u64) -> u32 {
        self.gates.push(GraphGate { server, serial_ps, latency_ps: latency_ps.max(1) });
        self.gates.len() as u32 - 1
    }

    /// Gate `gate` waits for the arrival of message `from`.
    pub fn arrival_into_gate(&mut self, from: u32, gate: u32) {
        self.edge(Edge { from, when: EdgeMoment::Got, to: Target::Gate(gate) });
    }

    /// Gate `gate` waits for the end of `from`.
    pub fn into_gate(&mut self, from: u32, gate: u32) {
        self.edge(Edge { from, when: EdgeMoment::Done, to: Target::Gate(gate) });
    }

    /// Task `task` waits for gate `gate`.
    pub fn release(&mut self, gate: u32, task: u32) {
        self.releases.push((gate, task));
    }
}
