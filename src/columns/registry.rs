//! The single list of all tables.
//!
//! Layer: columns. Only declares; knows nothing of what systems do. From this list are made: [`super::Tables`], its sizes and packing, the device's
//! buffers, the WGSL bindings, and the tests that go over all tables. To add a table, add one entry here.

/// Calls the macro `$then` with the given arguments and one entry per table, in the order of the WGSL bindings.
///
/// An entry has the form: `name: Row, BASE x N of LENGTH as WGSL, written by [systems];`
/// - `name`: the field of [`super::Tables`]; `Row`: its row type.
/// - `BASE` and `LENGTH`: fields of [`super::Exp`] that hold an experiment's first row and its number of rows, both divided by `N`.
///   Tables that name the same fields follow the same count: `flow_rx` and `order` have as many rows as `flow_tx`, `details` as `packets`, `pause_ps` as
///   `wires`; `clocks` has two for every row of `wires`.
/// - `WGSL`: name, element type and variable of the first row, as kernels spell them.
/// - `systems`: systems whose kernels may write the table. All kernels may read it. A test compares this with what the kernels do.
///
/// The header of the experiment comes first and alone, because the other tables are found by it. Then come tables whose rows are entities in the
/// world of a batch. Tables under `engine` are used by engines only:
/// - `packets`, `details` and `ints` grow while an experiment runs, which rows of a column shared with others cannot;
/// - `wires`, `clocks`, `pause_ps`, `shared`, `plans`, `order`, `rtts` and `psn_bits` are words and lists that belong to rows of several tables at once;
/// - `paths`, `edges`, `signals`, `gates` and `servers` describe connections; only systems read them, while they run.
macro_rules! every_table {
    ($then:ident! $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            header {
                /// One header per experiment: where its rows are, its parameters, and its progress.
                exps: Exp, as ("exps", "Exp"), written by [schedule, analytical, advance];
            }
            columns {
                /// NICs of hosts.
                nics: Nic, nic_base x 1 of nic_len, as ("nics", "Nic", "nic_base"), written by [nic, schedule, analytical, advance];
                /// Ports of switches, those of a switch side by side.
                ports: Port, port_base x 1 of port_len, as ("ports", "Port", "port_base"), written by [plan, forward, forward_joint, advance];
                /// Switches of the network.
                switches: Switch, switch_base x 1 of switch_len, as ("switches", "Switch", "switch_base"), written by [classify, forward, forward_joint, advance];
                /// Queue pairs at their senders, those of a NIC side by side.
                flow_tx: FlowTx, flow_base x 1 of flow_len, as ("flow_tx", "FlowTx", "flow_base"), written by [nic];
                /// Queue pairs at their receivers, in the order of `flow_tx`.
                flow_rx: FlowRx, flow_base x 1 of flow_len, as ("flow_rx", "FlowRx", "flow_base"), written by [nic];
                /// Tasks of all ranks, messages among them.
                tasks: Task, task_base x 1 of task_len, as ("tasks", "Task", "task_base"), written by [nic, analytical];
            }
            engine {
                /// The parts of packet records that every hop uses; free records included.
                packets: Packet, packet_base x 1 of packet_len, as ("packets", "Packet", "packet_base"), written by [plan, forward, forward_joint, nic, advance];
                /// The parts of each packet that are used less often.
                details: PacketDetails, packet_base x 1 of packet_len, as ("details", "PacketDetails", "packet_base"), written by [forward, forward_joint, nic, advance];
                /// INT telemetry of packets and queue pairs; empty unless congestion control reads telemetry.
                ints: IntVec, int_base x 1 of int_len, as ("ints", "IntVec", "int_base"), written by [forward, forward_joint, nic];
                /// Packets on their way to each link end.
                wires: Wire, end_base x 1 of end_len, as ("wires", "Wire", "wire_base"), written by [plan, forward, forward_joint, nic, advance];
                /// Two clocks per link end, in ps. For each experiment first the arrival time of the head of every wire, then every row's own next
                /// event.
                clocks: u64, end_base x 2 of end_len, as ("clocks", "u64", "clock_base"), written by [plan, forward, forward_joint, nic, analytical, advance];
                /// Paused time of each link end, in ps: the times at which its pauses ended, less those at which they began, modulo 2^64.
                pause_ps: u64, end_base x 1 of end_len, as ("pause_ps", "u64", "wire_base"), written by [forward, forward_joint, nic];
                /// Words that several rows add to in one system, always by commutative operations.
                shared: u32, shared_base x 1 of shared_len, as ("shared_words", "atomic<u32>", "shared_base"), written by [plan, classify, forward, forward_joint, nic, schedule, advance];
                /// Lists of arrivals of a step: for each switch, from each ingress to each egress.
                plans: Plan, plan_base x 1 of plan_len, as ("plans", "Plan", "plan_base"), written by [plan];
                /// Queue pairs of each NIC in the order of their creation, in the index range of the NIC's flows.
                order: FlowIdx, flow_base x 1 of flow_len, as ("order", "u32", "flow_base"), written by [nic];
                /// Paths as egress ports, from switch to switch.
                paths: PortIdx, path_base x 1 of path_len, as ("paths", "u32", "path_base"), written by [];
                /// Samples of round-trip times, `rtt_cap` for each queue pair.
                rtts: RttSample, rtt_base x 1 of rtt_len, as ("rtts", "RttSample", "rtt_base"), written by [nic];
                /// Queues of traffic classes: for each link end, NICs first, one for each class.
                class_queues: ClassQueue, class_base x 1 of class_len, as ("class_queues", "ClassQueue", "class_base"), written by [forward, forward_joint, nic];
                /// Packets in any order: bits of each queue pair, `psn_range` for packets that its receiver has and `psn_range` for packets that its sender
                /// knows to have arrived.
                psn_bits: u32, bits_base x 1 of bits_len, as ("psn_bits", "u32", "bits_base"), written by [nic];
                /// Tasks that are released by tasks and gates, or signals where `EDGE_SIGNAL` is set.
                edges: u32, edge_base x 1 of edge_len, as ("edges", "u32", "edge_base"), written by [];
                /// Edges to gates.
                signals: Signal, signal_base x 1 of signal_len, as ("signals", "Signal", "signal_base"), written by [nic];
                /// Synchronisations of ranks, and transfers that are not simulated as packets.
                gates: Gate, gate_base x 1 of gate_len, as ("gates", "Gate", "gate_base"), written by [schedule];
                /// Time until which each server of gates is busy, in ps.
                servers: u64, server_base x 1 of server_len, as ("servers", "u64", "server_base"), written by [analytical];
            }
        }
    };
}
pub(crate) use every_table;
