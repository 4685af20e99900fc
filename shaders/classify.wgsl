// System `classify`, a row a switch: can anything pause, resume or drop here in this step? (twin: `src/engine/cpu/switch/classify.rs`)

// Decides whether switch `s` is independent, and whether its pool of pause frames suffices if not.
fn classify(s: u32) {
    let sw = switch_base + s;
    let port_first = switches[sw].port_first;
    let port_end = port_first + switches[sw].port_n;
    let reserve = exp_reserve;
    var arrivals = 0u;
    var shared_sum = 0lu;
    var held = 0lu;
    for (var p = port_first; p < port_end; p++) {
        let max_held = ingress_bytes(p) + ports[port_base + p].arr_bytes;
        held += u64(max_held);
        shared_sum += u64(sub_sat_u32(max_held, reserve));
        arrivals += ports[port_base + p].arr_n;
    }
    var independent = switches[sw].congested_n == 0u && (switches[sw].chooses == 0u || arrivals == 0u);
    if has_classes() {
        let bound = bound_of_classes(s);
        held = bound.held;
        independent = independent && (arrivals == 0u || bound.below);
    } else if independent && arrivals > 0u && !has_port_queues() {
        let free = sub_sat(switches[sw].shared_size, shared_sum);
        let max_wire = switches[sw].max_wire;
        for (var p = port_first; p < port_end; p++) {
            let max_held = ingress_bytes(p) + ports[port_base + p].arr_bytes;
            let limit = free >> ports[port_base + p].shift;
            independent = independent && u64(sub_sat_u32(max_held, reserve)) < limit;
            // What is below its headroom is admitted; beyond that a small threshold drops even where nothing is full. Without
            // PFC what is below the threshold is admitted.
            independent = independent && (!has_mode(MODE_PFC) || max_wire <= ports[port_base + p].headroom || u64(max_wire) + shared_sum <= limit);
        }
    }
    switches[sw].independent = select(0u, 1u, independent);
    if independent || has_port_queues() {
        if held > switches[sw].max_held {
            switches[sw].max_held = held;
        }
        if held > exps[exp_row].buffer {
            set_flag(FLAG_OVER_BUFFER);
        }
    } else if has_mode(MODE_PFC) {
        // Each frame follows a charge or a release, by turns: at most two a packet that arrives, and one resume for what was held.
        let need = 2u * arrivals + pausable(switches[sw].port_n);
        switches[sw].need = need;
        if switches[sw].free_n < need {
            set_flag(FLAG_NEEDS_FRAMES);
        }
    }
}

// `classify` for a row: at every switch.
fn classify_row(s: u32, end: u64) {
    classify(s);
}
