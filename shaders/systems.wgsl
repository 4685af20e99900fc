// The systems over the rows that have something to do, and each as a kernel of its own: one dispatch a system over all
// experiments that run, `x` counts rows, `y` experiments (twin: the `*_all` functions of `src/engine/cpu/mod.rs`).

// `plan` where something reaches the port.
fn plan_row(port: u32, end: u64) {
    if clocks[clock_base + exps[exp_row].nic_len + port] < end {
        plan(port, end);
    }
}

// `forward` at ports of independent switches, where there is something to do.
fn forward_row(port: u32, end: u64) {
    if switches[switch_base + ports[port_base + port].switch_idx].independent != 0u {
        if forward_due(port, end) {
            forward(port, end);
        }
    }
}

// `forward_joint` at switches that are not independent.
fn forward_joint_row(s: u32, end: u64) {
    if switches[switch_base + s].independent == 0u {
        forward_joint(s, end);
    }
}

// `nic` where there is something to do.
fn nic_row(n: u32, end: u64) {
    if clocks[clock_base + n] < end || clocks[clock_base + exps[exp_row].end_len + n] < end {
        nic(n, end);
    }
}

// Takes up the experiment in place `slot` of those that run; whether its step is (still) to be processed.
fn enter_slot(slot: u32) -> bool {
    enter(control[CONTROL_ROWS + slot]);
    return exps[exp_row].status == STATUS_RUNNING;
}

// Whether `classify` found enough pause frames. Without them the step changes nothing and waits for the host.
fn frames_suffice() -> bool {
    return (flags() & FLAG_NEEDS_FRAMES) == 0u;
}

@compute @workgroup_size(WORKGROUP)
fn plan_all(@builtin(global_invocation_id) id: vec3<u32>) {
    if enter_slot(id.y) && exps[exp_row].phase == 0u && id.x < exps[exp_row].port_len {
        plan_row(id.x, step_end());
    }
}

@compute @workgroup_size(WORKGROUP)
fn classify_all(@builtin(global_invocation_id) id: vec3<u32>) {
    if enter_slot(id.y) && id.x < exps[exp_row].switch_len {
        classify(id.x);
    }
}

@compute @workgroup_size(WORKGROUP)
fn forward_all(@builtin(global_invocation_id) id: vec3<u32>) {
    if enter_slot(id.y) && frames_suffice() && id.x < exps[exp_row].port_len {
        forward_row(id.x, step_end());
    }
}

@compute @workgroup_size(WORKGROUP)
fn forward_joint_all(@builtin(global_invocation_id) id: vec3<u32>) {
    if enter_slot(id.y) && frames_suffice() && id.x < exps[exp_row].switch_len {
        forward_joint_row(id.x, step_end());
    }
}

@compute @workgroup_size(WORKGROUP)
fn nic_all(@builtin(global_invocation_id) id: vec3<u32>) {
    if enter_slot(id.y) && frames_suffice() && id.x < exps[exp_row].nic_len {
        nic_row(id.x, step_end());
    }
}

// One invocation an experiment: gates are few beside packets, and served one after another.
@compute @workgroup_size(WORKGROUP)
fn schedule_all(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if enter_slot(group.x) && frames_suffice() && lane == 0u {
        schedule();
    }
}

@compute @workgroup_size(WORKGROUP)
fn analytical_all(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if enter_slot(group.x) && frames_suffice() && lane == 0u {
        analytical();
    }
}

// The least clock each invocation has seen, then the least of sixteen of those.
var<workgroup> lane_clocks: array<u64, WORKGROUP>;
var<workgroup> least_clocks: array<u64, LANE_GROUPS>;

// Lanes that reduce sixteen others each.
const LANE_GROUPS: u32 = WORKGROUP / 16u;

fn least_of_sixteen(first: u32) -> u64 {
    var least = NEVER;
    for (var k = 0u; k < 16u; k++) {
        least = min(least, lane_clocks[16u * first + k]);
    }
    return least;
}

fn least_of_all() -> u64 {
    var least = NEVER;
    for (var k = 0u; k < LANE_GROUPS; k++) {
        least = min(least, least_clocks[k]);
    }
    return least;
}

@compute @workgroup_size(WORKGROUP)
fn advance_all(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let running = enter_slot(group.x);
    lane_clocks[lane] = next_clock(lane);
    workgroupBarrier();
    if lane < LANE_GROUPS {
        least_clocks[lane] = least_of_sixteen(lane);
    }
    workgroupBarrier();
    if lane == 0u && running {
        advance(step_end(), least_of_all());
    }
}
