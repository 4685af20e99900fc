//! Task graphs: the form of programs on a machine that the engine runs.
//!
//! Layer: workload. Tasks take time or post messages on queue pairs. Edges say which task waits for which. Gates are meetings of ranks, and transfers that use
//! no packets. A graph knows ranks but no NICs; `host` gives tasks their owners.

use std::sync::Arc;

use super::program::Dim;
use crate::collective::Overheads;
use hyperfold_base::budget;
use hyperfold_network::topology::Reducer;

/// A queue pair between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueuePair {
    /// Rank that sends.
    pub src: u32,
    /// Rank that receives.
    pub dst: u32,
    /// Number that tells the queue pairs of a pair of ranks apart. Path hashing and the choice of NIC depend on it.
    pub lane: u32,
    /// Dimension of its messages.
    pub dim: Dim,
}

/// The action of a task when it no longer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Takes time.
    Delay,
    /// Posts a message. Messages of a queue pair are sent in the order of their tasks.
    Message {
        /// Index of the queue pair.
        qp: u32,
        /// Size, at least 1 byte.
        bytes: u64,
    },
}

/// A task of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphTask {
    /// Rank that runs it.
    pub rank: u32,
    /// Time from its release to its end, or to the post of its message.
    pub delay_ps: u64,
    /// Kind of work, with its parameters.
    pub work: Work,
}

/// The moment of a task that an edge waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeMoment {
    /// The end of the task; for a message its last acknowledgement.
    Done,
    /// The arrival of all of a message at the receiving rank.
    Got,
}

/// The end of an edge: a task or a gate that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The task of this index.
    Task(u32),
    /// The gate of this index.
    Gate(u32),
}

/// A dependency: `to` waits for a moment of task `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Index of the task that is waited for.
    pub from: u32,
    /// Moment of that task.
    pub when: EdgeMoment,
    /// Task or gate that waits.
    pub to: Target,
}

/// A gate. When all its edges have been met it is served, and after its latency it releases its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphGate {
    /// Server of the gate, which serves one gate after another for `serial_ps` each; `None` if the gate needs no service.
    pub server: Option<u32>,
    /// Time for which it occupies its server.
    pub serial_ps: u64,
    /// Time in ps from the end of service to the release; at least 1.
    pub latency_ps: u64,
}

/// The tasks of an op. The op begins at the end of `begin`, or at the post of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpTasks {
    /// Ends (or, if it is a compute task, begins) when everything on this rank that the op waits for is done.
    pub begin: u32,
    /// Ends when the other ranks are there too. For a receive it is the task that posts, on another rank. `u32::MAX` if the op waits for no other rank.
    pub go: u32,
    /// Ends with the op.
    pub end: u32,
}

/// Queue pairs with equal traffic at equal times, consecutive in [`TaskGraph::qps`]. Flow level makes one flow of them. Messages are posted on the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinedQueuePairs {
    /// Index of the first queue pair.
    pub first: u32,
    /// Number of joined queue pairs.
    pub n: u32,
}

/// The queue pair of each edge of a collective, ring by ring; `u32::MAX` where no packet goes.
pub type EdgePairs = Arc<Vec<Vec<u32>>>;

/// A collective with equal steps that is simulated as one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedCollective {
    /// Task of its message, on the first of its joined queue pairs.
    pub task: u32,
    /// Edges of its rings, as queue pairs.
    pub edges: EdgePairs,
    /// Number of queue pairs per edge, consecutive from the one in `edges`. Each carries a part of the edge's bytes.
    pub lanes: u32,
    /// Software overheads of its messages.
    pub overheads: Overheads,
    /// Number of steps.
    pub steps: u64,
    /// Number of messages of a step.
    pub pieces: u64,
    /// Bytes of each message.
    pub piece_bytes: u64,
    /// Number of blocks that a GPU sends one after another inside its server in a step.
    pub inside_each: u64,
    /// Path between members without packets: (rate in bps, latency in ps).
    pub inside: (u64, u64),
    /// Minimum duration in ps, without other traffic.
    pub min_ps: u64,
}

/// A task graph. INVARIANT: there are no cycles through edges, gates and the order of queue pairs, because `lower` builds graphs from checked programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGraph {
    /// Queue pairs that its messages are sent on.
    pub qps: Vec<QueuePair>,
    /// Weight of each queue pair at flow level: its share of a full link relative to others. Empty if all are equal.
    pub weights: Vec<u32>,
    /// Tasks of all ranks.
    pub tasks: Vec<GraphTask>,
    /// Dependencies between tasks.
    pub edges: Vec<Edge>,
    /// Gates, at which tasks wait for several others.
    pub gates: Vec<GraphGate>,
    /// (gate, task that it releases).
    pub releases: Vec<(u32, u32)>,
    /// Number of servers of gates.
    pub servers: u32,
    /// Groups of queue pairs whose messages are one flow; flow level only.
    pub joined: Vec<JoinedQueuePairs>,
    /// Messages that are whole collectives; flow level only.
    pub one_flow: Vec<JoinedCollective>,
    /// Tasks of every op, by rank and op. A rank that another stands for has none.
    pub ops: Vec<Vec<OpTasks>>,
    /// For each rank, the rank whose tasks it shares. Empty if each rank has tasks of its own.
    pub stands_for: Vec<u32>,
    /// Parts of switches that reduce. Their ranks follow those of all GPUs.
    pub reducers: Vec<Reducer>,
}

impl TaskGraph {
    /// Tasks of a rank's op.
    pub fn op(&self, rank: u32, op: u32) -> &OpTasks {
        let rank = self.stands_for.get(rank as usize).copied().unwrap_or(rank);
        &self.ops[rank as usize][op as usize]
    }

    /// Frees unused capacity. Graphs are kept as long as experiments share them.
    pub fn shrink(&mut self) {
        self.qps.shrink_to_fit();
        self.tasks.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.gates.shrink_to_fit();
        self.releases.shrink_to_fit();
    }

    /// Appends a task and returns its index.
    pub fn task(&mut self, rank: u32, delay_ps: u64, work: Work) -> u32 {
        budget::check_growth("tasks", &self.tasks);
        self.tasks.push(GraphTask { rank, delay_ps, work });
        self.tasks.len() as u32 - 1
    }

    /// Appends a task that takes no time, where edges meet.
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

    /// Makes task `to` wait for the end of task `from`.
    pub fn after(&mut self, from: u32, to: u32) {
        self.edge(Edge { from, when: EdgeMoment::Done, to: Target::Task(to) });
    }

    /// Makes task `to` wait for the arrival of message `from`.
    pub fn after_arrival(&mut self, from: u32, to: u32) {
        self.edge(Edge { from, when: EdgeMoment::Got, to: Target::Task(to) });
    }

    /// Appends a gate and returns its index.
    pub fn gate(&mut self, server: Option<u32>, serial_ps: u64, latency_ps: u64) -> u32 {
        self.gates.push(GraphGate { server, serial_ps, latency_ps: latency_ps.max(1) });
        self.gates.len() as u32 - 1
    }

    /// Makes gate `gate` wait for the arrival of message `from`.
    pub fn arrival_into_gate(&mut self, from: u32, gate: u32) {
        self.edge(Edge { from, when: EdgeMoment::Got, to: Target::Gate(gate) });
    }

    /// Makes gate `gate` wait for the end of task `from`.
    pub fn into_gate(&mut self, from: u32, gate: u32) {
        self.edge(Edge { from, when: EdgeMoment::Done, to: Target::Gate(gate) });
    }

    /// Makes task `task` wait for gate `gate`.
    pub fn release(&mut self, gate: u32, task: u32) {
        self.releases.push((gate, task));
    }
}
