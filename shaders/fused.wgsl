// Many steps of an experiment in one dispatch: a workgroup an experiment, systems separated by barriers.
//
// Every barrier is here, never in a function that is called, and every condition around one is the same in all invocations: it
// comes from `workgroupUniformLoad`.

var<workgroup> decision: u32;
var<workgroup> shared_end: u64;

// Bits of `decision`, at the start of a step and after `classify`.
const GO: u32 = 1u;
const GO_PLAN: u32 = 2u;
// After `classify`: the experiment has gates.
const GO_GATES: u32 = 4u;

fn step_decision() -> u32 {
    if exps[exp_row].status != STATUS_RUNNING {
        return 0u;
    }
    return select(GO, GO | GO_PLAN, exps[exp_row].phase == 0u);
}

fn forward_decision() -> u32 {
    if !frames_suffice() {
        return 0u;
    }
    return select(GO, GO | GO_GATES, exps[exp_row].gate_len > 0u);
}

@compute @workgroup_size(WORKGROUP)
fn fused(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    enter(control[CONTROL_ROWS + group.x]);
    let steps = control[CONTROL_STEPS];
    let n_nic = exps[exp_row].nic_len;
    let n_port = exps[exp_row].port_len;
    let n_switch = exps[exp_row].switch_len;
    for (var k = 0u; k < steps; k++) {
        if lane == 0u {
            decision = step_decision();
            shared_end = step_end();
        }
        let go = workgroupUniformLoad(&decision);
        if go == 0u {
            break;
        }
        let end = shared_end;
        if (go & GO_PLAN) != 0u {
            for (var port = lane; port < n_port; port += WORKGROUP) {
                plan_row(port, end);
            }
        }
        storageBarrier();
        for (var s = lane; s < n_switch; s += WORKGROUP) {
            classify(s);
        }
        storageBarrier();
        if lane == 0u {
            decision = forward_decision();
        }
        let changes = workgroupUniformLoad(&decision);
        if changes != 0u {
            // Ports of independent switches and switches that are not independent: no row is in both.
            for (var port = lane; port < n_port; port += WORKGROUP) {
                forward_row(port, end);
            }
            for (var s = lane; s < n_switch; s += WORKGROUP) {
                forward_joint_row(s, end);
            }
            storageBarrier();
            for (var n = lane; n < n_nic; n += WORKGROUP) {
                nic_row(n, end);
            }
            storageBarrier();
            if (changes & GO_GATES) != 0u {
                if lane == 0u {
                    schedule();
                    analytical();
                }
                storageBarrier();
            }
        }
        lane_clocks[lane] = next_clock(lane);
        workgroupBarrier();
        if lane < LANE_GROUPS {
            least_clocks[lane] = least_of_sixteen(lane);
        }
        workgroupBarrier();
        if lane == 0u {
            advance(end, least_of_all());
        }
        // What the first lane has decided is seen by all in the next step.
        storageBarrier();
    }
}
