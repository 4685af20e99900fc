// Many steps of an experiment in one dispatch: a workgroup an experiment, systems separated by barriers.
//
// The systems of a step are generated from the list in `src/engine/systems.rs`, in place of the line `SYSTEMS`. Every barrier is in the
// entry point, never in a function that it calls. Every condition around a barrier is the same in all invocations: it comes from
// `workgroupUniformLoad`.

var<workgroup> decision: u32;
var<workgroup> shared_end: u64;

// Bits of `decision`, at the start of a step and after `classify`.
const GO: u32 = 1u;
const GO_NEW_STEP: u32 = 2u;
// After `classify`: the experiment has gates.
const GO_GATES: u32 = 4u;

fn step_decision() -> u32 {
    if exps[exp_row].status != STATUS_RUNNING {
        return 0u;
    }
    return select(GO, GO | GO_NEW_STEP, exps[exp_row].phase == 0u);
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
    let n_nic = exp_nic_len;
    let n_port = exp_port_len;
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
        // SYSTEMS
    }
}
