// System `plan`, a row a switch port: what arrives here in this step, sorted by the egress that wants it
// (twin: `src/engine/cpu/switch/plan.rs`).

// Word in which `ingress` (index in its switch) tells egress `port` that it has something for it.
fn want_word(port: u32, ingress: u32) -> u32 {
    return shared_base + SHARED_HEADER + exps[exp_row].port_len + port * exps[exp_row].mask_words + ingress / 32u;
}

// Takes all that arrives at `port` before `end` off its wire.
fn plan(port: u32, end: u64) {
    let link_end = exps[exp_row].nic_len + port;
    let row = port_base + port;
    let sw = switch_base + ports[row].switch_idx;
    let port_first = switches[sw].port_first;
    let port_n = switches[sw].port_n;
    let plan_first = switches[sw].plan_first;
    let local = port - port_first;
    var bytes = 0u;
    var n = 0u;
    var frame_tail = NONE;
    while clocks[clock_base + link_end] < end {
        let p = wire_pop(link_end);
        let pk = packet_base + p;
        packets[pk].next = NONE;
        if packet_kind(packets[pk].meta_) == KIND_FRAME {
            if frame_tail == NONE {
                ports[row].in_frames = p;
            } else {
                packets[packet_base + frame_tail].next = p;
            }
            frame_tail = p;
            continue;
        }
        let egress = paths[path_base + packets[pk].path];
        packets[pk].path += 1u;
        packets[pk].in_port = port;
        bytes += packets[pk].meta_ & META_WIRE_MASK;
        n += 1u;
        let entry = plan_base + plan_first + local * port_n + (egress - port_first);
        let bit = 1u << (local % 32u);
        // Only this ingress sets this bit, so the old value tells whether the list is new.
        let old = atomicOr(&shared_words[want_word(egress, local)], bit);
        if (old & bit) == 0u {
            plans[entry].head = p;
        } else {
            packets[packet_base + plans[entry].tail].next = p;
        }
        plans[entry].tail = p;
    }
    ports[row].arr_bytes = bytes;
    ports[row].arr_n = n;
}

// `plan` for a row: where something reaches the port.
fn plan_row(port: u32, end: u64) {
    if clocks[clock_base + exps[exp_row].nic_len + port] < end {
        plan(port, end);
    }
}
