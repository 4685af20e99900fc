// Packet lists and the wires between link ends (twin: `src/engine/cpu/lists.rs`).

// Puts packet `p`, whose arrival time is set, on the wire to link end `end`.
fn wire_push(end: u32, p: u32) {
    let w = wire_base + end;
    packets[packet_base + p].next = NONE;
    wires[w].n += 1u;
    let tail = wires[w].tail;
    wires[w].tail = p;
    if wires[w].head == NONE {
        wires[w].head = p;
        clocks[clock_base + end] = packets[packet_base + p].t;
    } else {
        packets[packet_base + tail].next = p;
    }
}

// Takes the first packet off the wire to `end`.
fn wire_pop(end: u32) -> u32 {
    let w = wire_base + end;
    let p = wires[w].head;
    let next = packets[packet_base + p].next;
    wires[w].head = next;
    wires[w].n -= 1u;
    if next == NONE {
        wires[w].tail = NONE;
        clocks[clock_base + end] = NEVER;
    } else {
        clocks[clock_base + end] = packets[packet_base + next].t;
    }
    return p;
}

// Whether packet `a` arrives before packet `b`; equals keep their order (`a` first), so the caller passes the lower ingress as `a`.
fn arrives_first(a: u32, b: u32) -> bool {
    let at_a = packets[packet_base + a].t;
    let at_b = packets[packet_base + b].t;
    if at_a != at_b {
        return at_a < at_b;
    }
    return older(details[packet_base + a].d, details[packet_base + b].d) >= 0;
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
