// Packet lists (twin: `src/engine/cpu/lists.rs`). Who holds a link end has its wires too: `held_port.wgsl`, `held_nic.wgsl`.

// Arrival time of packet `p`; `NEVER` where there is none.
fn arrival_time(p: u32) -> u64 {
    if p == NONE {
        return NEVER;
    }
    return packets[packet_base + p].t;
}

// The row of packet `p`; zeros where there is none.
fn packet_row(p: u32) -> Packet {
    if p == NONE {
        return Packet();
    }
    return packets[packet_base + p];
}

// Appends `p`, a pause frame or a control packet, to what `port` sends before its queue. The port need not be the one that is held.
fn push_first(port: u32, p: u32) {
    let row = port_base + port;
    packets[packet_base + p].next = NONE;
    let tail = ports[row].frame_tail;
    ports[row].frame_tail = p;
    ports[row].frames += 1u;
    if tail == NONE && held_port == port + 1u {
        held.frame_head = p;
        held_differs = true;
    } else if tail == NONE {
        ports[row].frame_head = p;
    } else {
        packets[packet_base + tail].next = p;
    }
}

// Whether packet `a` arrives before packet `b`; equals keep their order (`a` first), so the caller passes the lower ingress as `a`.
fn arrives_first(a: u32, b: u32) -> bool {
    let at_a = packets[packet_base + a].t;
    let at_b = packets[packet_base + b].t;
    if at_a != at_b {
        return at_a < at_b;
    }
    return older(restored(details[packet_base + a].d), restored(details[packet_base + b].d)) >= 0;
}

// Merges two lists of arrivals; of equals those of `a` come first.
fn merge(first: u32, second: u32) -> u32 {
    var a = first;
    var b = second;
    var head = NONE;
    var tail = NONE;
    while a != NONE && b != NONE {
        let take_a = arrives_first(a, b);
        let p = select(b, a, take_a);
        let next = packets[packet_base + p].next;
        if take_a {
            a = next;
        } else {
            b = next;
        }
        if tail == NONE {
            head = p;
        } else {
            packets[packet_base + tail].next = p;
        }
        tail = p;
    }
    let rest = select(b, a, a != NONE);
    if tail == NONE {
        return rest;
    }
    packets[packet_base + tail].next = rest;
    return head;
}
