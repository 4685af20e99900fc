//! The tables of a batch: all experiments' rows side by side, each experiment's consecutive.

use super::{Exp, FlowRx, FlowTx, Gate, IntVec, Nic, Packet, Plan, Port, RttSample, Signal, Switch, Task, Wire};

/// A run of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub base: usize,
    pub len: usize,
}

/// Every table. Experiment `e`'s rows are where `exps[e]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub exps: Vec<Exp>,
    pub nics: Vec<Nic>,
    pub ports: Vec<Port>,
    pub switches: Vec<Switch>,
    pub flow_tx: Vec<FlowTx>,
    pub flow_rx: Vec<FlowRx>,
    pub packets: Vec<Packet>,
    pub ints: Vec<IntVec>,
    /// When each data packet was built, a packet; empty unless round-trip times are needed.
    pub stamps: Vec<u64>,
    pub wires: Vec<Wire>,
    /// Two a link end: for each experiment first the arrival time of the head of every wire, then every row's own next event.
    pub clocks: Vec<u64>,
    /// Words that several rows add to in one system, always by commutative operations.
    pub shared: Vec<u32>,
    pub plans: Vec<Plan>,
    /// Queue pairs of each NIC in order of creation, in the places of the NIC's flows.
    pub order: Vec<u32>,
    /// Paths as egress ports, one switch after another.
    pub paths: Vec<u32>,
    pub rtts: Vec<RttSample>,
    pub tasks: Vec<Task>,
    /// What tasks and gates release: tasks, or with `EDGE_SIGNAL` signals.
    pub edges: Vec<u32>,
    pub signals: Vec<Signal>,
    pub gates: Vec<Gate>,
    /// Until when each server of gates is busy.
    pub servers: Vec<u64>,
    /// What happened to messages, in the order of processing, while `mode::TRACED` is on. No column: only folding on the CPU uses it.
    pub fold_trace: Vec<FoldTrace>,
    pub fold_hints: FoldHints,
}

/// What folding on the CPU knows about an experiment, and what it asks of the systems. No column. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldHints {
    /// The origin of each port's telemetry counters, picoseconds and bytes, where the origin is free. `None`, or no row: 0.
    pub telemetry_from: Vec<Option<(u32, u32)>>,
    /// Every congestion mark is a random choice.
    pub random_marks: bool,
    /// Congestion-control state may be rounded between messages.
    pub rounding: bool,
}

impl FoldHints {
    /// The origin of `port`'s telemetry counters, picoseconds and bytes.
    #[inline]
    pub fn counts_from(&self, port: u32) -> (u64, u64) {
        self.telemetry_from
            .get(port as usize)
            .copied()
            .flatten()
            .map_or((0, 0), |(ps, bytes)| (u64::from(ps), u64::from(bytes)))
    }
}

/// Something that happened to a message. `task` is the message's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldTrace {
    /// An event posted it; `first` of those that the same event posted.
    Posted { task: u32, first: bool },
    /// Its last byte was sent at `at`, for the first time or again.
    Sent { task: u32, at: u64 },
    /// All of it arrived.
    Delivered(u32),
    /// All of it was acknowledged.
    Acked(u32),
    /// All of it arrived at `at`, which folding had already reported.
    DeliveredAgain { task: u32, at: u64 },
}

impl Tables {
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        fn size<T>(v: &[T]) -> u64 {
            std::mem::size_of_val(v) as u64
        }
        size(&self.exps)
            + size(&self.nics)
            + size(&self.ports)
            + size(&self.switches)
            + size(&self.flow_tx)
            + size(&self.flow_rx)
            + size(&self.packets)
            + size(&self.ints)
            + size(&self.stamps)
            + size(&self.wires)
            + size(&self.clocks)
            + size(&self.shared)
            + size(&self.plans)
            + size(&self.order)
            + size(&self.paths)
            + size(&self.rtts)
            + size(&self.tasks)
            + size(&self.edges)
            + size(&self.signals)
            + size(&self.gates)
            + size(&self.servers)
    }

    /// Appends the rows of `one`, a table set holding a single experiment, and rebases its header.
    pub fn append(&mut self, one: &Tables) {
        let mut exp = one.exps[0];
        exp.nic_base = self.nics.len() as u32;
        exp.port_base = self.ports.len() as u32;
        exp.switch_base = self.switches.len() as u32;
        exp.flow_base = self.flow_tx.len() as u32;
        exp.packet_base = self.packets.len() as u32;
        exp.int_base = self.ints.len() as u32;
        exp.stamp_base = self.stamps.len() as u32;
        exp.path_base = self.paths.len() as u32;
        exp.plan_base = self.plans.len() as u32;
        exp.shared_base = self.shared.len() as u32;
        exp.rtt_base = self.rtts.len() as u32;
        exp.end_base = self.wires.len() as u32;
        exp.task_base = self.tasks.len() as u32;
        exp.edge_base = self.edges.len() as u32;
        exp.signal_base = self.signals.len() as u32;
        exp.gate_base = self.gates.len() as u32;
        exp.server_base = self.servers.len() as u32;
        self.exps.push(exp);
        self.nics.extend_from_slice(&one.nics);
        self.ports.extend_from_slice(&one.ports);
        self.switches.extend_from_slice(&one.switches);
        self.flow_tx.extend_from_slice(&one.flow_tx);
        self.flow_rx.extend_from_slice(&one.flow_rx);
        self.packets.extend_from_slice(&one.packets);
        self.ints.extend_from_slice(&one.ints);
        self.stamps.extend_from_slice(&one.stamps);
        self.wires.extend_from_slice(&one.wires);
        self.clocks.extend_from_slice(&one.clocks);
        self.shared.extend_from_slice(&one.shared);
        self.plans.extend_from_slice(&one.plans);
        self.order.extend_from_slice(&one.order);
        self.paths.extend_from_slice(&one.paths);
        self.rtts.extend_from_slice(&one.rtts);
        self.tasks.extend_from_slice(&one.tasks);
        self.edges.extend_from_slice(&one.edges);
        self.signals.extend_from_slice(&one.signals);
        self.gates.extend_from_slice(&one.gates);
        self.servers.extend_from_slice(&one.servers);
    }
}
