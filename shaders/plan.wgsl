// System `plan`, a row a switch port: what arrives here in this step, sorted by the egress that wants it
// (twin: `src/engine/cpu/switch/plan.rs`).

// Word in which `ingress` (index in its switch) tells egress `port` that it has something for it.
fn request_word(port: u32, ingress: u32) -> u32 {
    return shared_base + SHARED_HEADER + exp_port_len + port * exp_mask_words + ingress / 32u;
}

// Takes all that arrives at `port` before `end` off its wire. The first arrives at `first_t`.
fn plan(port: u32, first_t: u64, end: u64) {
    let link_end = exp_nic_len + port;
    let wire = wire_base + link_end;
    let row = port_base + port;
    let sw = switch_base + ports[row].switch_idx;
    let port_first = switches[sw].port_first;
    let port_n = switches[sw].port_n;
    let local = port - port_first;
    // Entry of egress `port_first` for this ingress.
    let plan_first = plan_base + switches[sw].plan_first + local * port_n - port_first;
    let bit = 1u << (local % 32u);
    var bytes = 0u;
    var n = 0u;
    var n_taken = 0u;
    var frame_tail = NONE;
    var head = wires[wire].head;
    var first = packets[packet_base + head];
    var t = first_t;
    while t < end {
        let p = head;
        let packet = first;
        n_taken += 1u;
        head = packet.next;
        t = NEVER;
        if head != NONE {
            first = packets[packet_base + head];
            t = first.t;
        }
        packets[packet_base + p].next = NONE;
        if packet_kind(packet.meta_) == KIND_FRAME {
            if frame_tail == NONE {
                ports[row].in_frames = p;
            } else {
                packets[packet_base + frame_tail].next = p;
            }
            frame_tail = p;
            continue;
        }
        var egress: u32;
        if is_adaptive() && packet_kind(packet.meta_) == KIND_DATA {
            egress = first_choice(p, packet.path);
        } else {
            egress = paths[path_base + packet.path];
            packets[packet_base + p].path = packet.path + 1u;
        }
        packets[packet_base + p].in_port = port;
        bytes += packet.meta_ & META_WIRE_MASK;
        n += 1u;
        let entry = plan_first + egress;
        // Only this ingress sets this bit, so the old value tells whether the list is new.
        let old = atomicOr(&shared_words[request_word(egress, local)], bit);
        if (old & bit) == 0u {
            plans[entry].head = p;
        } else {
            packets[packet_base + plans[entry].tail].next = p;
        }
        plans[entry].tail = p;
    }
    wires[wire].head = head;
    wires[wire].n -= n_taken;
    if head == NONE {
        wires[wire].tail = NONE;
    }
    clocks[clock_base + link_end] = t;
    ports[row].arr_bytes = bytes;
    ports[row].arr_n = n;
}

// `plan` for a row: where something reaches the port.
fn plan_row(port: u32, end: u64) {
    let first_t = clocks[clock_base + exp_nic_len + port];
    if first_t < end {
        plan(port, first_t, end);
    }
}
