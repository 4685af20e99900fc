// What the entry points share. Those of single systems are generated from the list in `src/engine/systems.rs`: one dispatch a system
// over all experiments that run, `x` counts rows, `y` experiments.

// Takes up the experiment in place `slot` of those that run; whether its step is (still) to be processed.
fn enter_slot(slot: u32) -> bool {
    enter(control[CONTROL_ROWS + slot]);
    return exps[exp_row].status == STATUS_RUNNING;
}

// Whether `classify` found enough pause frames. Without them the step changes nothing and waits for the host.
fn frames_suffice() -> bool {
    return (flags() & FLAG_NEEDS_FRAMES) == 0u;
}

// The least clock each invocation has seen, then the least of sixteen of those.
var<workgroup> lane_clocks: array<u64, WORKGROUP>;
var<workgroup> earliest_clocks: array<u64, LANE_GROUPS>;

// Lanes that reduce sixteen others each.
const LANE_GROUPS: u32 = WORKGROUP / 16u;

fn earliest_of_sixteen(first: u32) -> u64 {
    var earliest = NEVER;
    for (var k = 0u; k < 16u; k++) {
        earliest = min(earliest, lane_clocks[16u * first + k]);
    }
    return earliest;
}

fn earliest_of_all() -> u64 {
    var earliest = NEVER;
    for (var k = 0u; k < LANE_GROUPS; k++) {
        earliest = min(earliest, earliest_clocks[k]);
    }
    return earliest;
}
