// Tables of a batch, one storage buffer each, and where the experiment at hand has its rows in them.
//
// Indices inside rows count from the experiment's own first row, as in `src/columns`; the bases below turn them into indices of
// the shared tables. `enter` sets them once for an invocation, which works for one experiment only.

@group(0) @binding(0) var<storage, read_write> exps: array<Exp>;
@group(0) @binding(1) var<storage, read_write> nics: array<Nic>;
@group(0) @binding(2) var<storage, read_write> ports: array<Port>;
@group(0) @binding(3) var<storage, read_write> switches: array<Switch>;
@group(0) @binding(4) var<storage, read_write> flow_tx: array<FlowTx>;
@group(0) @binding(5) var<storage, read_write> flow_rx: array<FlowRx>;
@group(0) @binding(6) var<storage, read_write> packets: array<Packet>;
@group(0) @binding(7) var<storage, read_write> ints: array<IntVec>;
@group(0) @binding(8) var<storage, read_write> stamps: array<u64>;
@group(0) @binding(9) var<storage, read_write> wires: array<Wire>;
@group(0) @binding(10) var<storage, read_write> clocks: array<u64>;
@group(0) @binding(11) var<storage, read_write> shared_words: array<atomic<u32>>;
@group(0) @binding(12) var<storage, read_write> plans: array<Plan>;
@group(0) @binding(13) var<storage, read_write> order: array<u32>;
@group(0) @binding(14) var<storage, read> paths: array<u32>;
@group(0) @binding(15) var<storage, read_write> rtts: array<RttSample>;
@group(0) @binding(16) var<storage, read_write> tasks: array<Task>;
@group(0) @binding(17) var<storage, read> edges: array<u32>;
@group(0) @binding(18) var<storage, read_write> signals: array<Signal>;
@group(0) @binding(19) var<storage, read_write> gates: array<Gate>;
@group(0) @binding(20) var<storage, read_write> servers: array<u64>;
// Steps to take, then the rows in `exps` of the experiments that run.
@group(0) @binding(21) var<storage, read> control: array<u32>;

// The experiment's row in `exps`, and the first of its rows in the other tables.
var<private> exp_row: u32;
var<private> nic_base: u32;
var<private> port_base: u32;
var<private> switch_base: u32;
var<private> flow_base: u32;
var<private> packet_base: u32;
var<private> int_base: u32;
var<private> stamp_base: u32;
var<private> path_base: u32;
var<private> plan_base: u32;
var<private> shared_base: u32;
var<private> rtt_base: u32;
var<private> task_base: u32;
var<private> edge_base: u32;
var<private> signal_base: u32;
var<private> gate_base: u32;
var<private> server_base: u32;
var<private> wire_base: u32;
var<private> clock_base: u32;

fn enter(row: u32) {
    exp_row = row;
    nic_base = exps[row].nic_base;
    port_base = exps[row].port_base;
    switch_base = exps[row].switch_base;
    flow_base = exps[row].flow_base;
    packet_base = exps[row].packet_base;
    int_base = exps[row].int_base;
    stamp_base = exps[row].stamp_base;
    path_base = exps[row].path_base;
    plan_base = exps[row].plan_base;
    shared_base = exps[row].shared_base;
    rtt_base = exps[row].rtt_base;
    task_base = exps[row].task_base;
    edge_base = exps[row].edge_base;
    signal_base = exps[row].signal_base;
    gate_base = exps[row].gate_base;
    server_base = exps[row].server_base;
    wire_base = exps[row].end_base;
    // Two clocks a link end.
    clock_base = 2u * exps[row].end_base;
}

// Whether mode bit `bit` of the experiment is set.
fn has_mode(bit: u32) -> bool {
    return (exps[exp_row].modes & bit) != 0u;
}

fn set_flag(bit: u32) {
    atomicOr(&shared_words[shared_base + SHARED_FLAGS], bit);
}

fn flags() -> u32 {
    return atomicLoad(&shared_words[shared_base + SHARED_FLAGS]);
}

// Bytes charged to ingress `port`, a shared word: several egresses release into it in one system.
fn ingress_word(port: u32) -> u32 {
    return shared_base + SHARED_HEADER + port;
}

fn ingress_bytes(port: u32) -> u32 {
    return atomicLoad(&shared_words[ingress_word(port)]);
}

fn packet_kind(meta_word: u32) -> u32 {
    return (meta_word >> META_KIND_SHIFT) & META_KIND_MASK;
}

// Where the step ends.
fn step_end() -> u64 {
    return min(exps[exp_row].now + exps[exp_row].step, exps[exp_row].time_limit);
}
