// System `forward`, a row a switch port of a calm switch: pulls what the ingresses have for it, merges it by time, transmits
// (twin: `src/engine/cpu/forward.rs`).

// Merges all that the ingresses planned for `port` into one list, by time; ties go to the lower ingress.
fn gather(port: u32) -> u32 {
    let sw = switch_base + ports[port_base + port].switch_idx;
    let port_n = switches[sw].port_n;
    let plan_first = plan_base + switches[sw].plan_first;
    let local = port - switches[sw].port_first;
    let words = exps[exp_row].mask_words;
    // Lists of 1, 2, 4 ... sources, as in a bottom-up merge sort, so that n sources cost log n visits a packet.
    var levels: array<u32, 16>;
    for (var level = 0u; level < 16u; level++) {
        levels[level] = NONE;
    }
    var top = 0u;
    for (var w = 0u; w < words; w++) {
        let word = want_word(port, w * 32u);
        var bits = atomicLoad(&shared_words[word]);
        atomicStore(&shared_words[word], 0u);
        while bits != 0u {
            let ingress = w * 32u + countTrailingZeros(bits);
            bits &= bits - 1u;
            var list = plans[plan_first + ingress * port_n + local].head;
            var level = 0u;
            while levels[level] != NONE {
                list = merge(levels[level], list);
                levels[level] = NONE;
                level += 1u;
            }
            levels[level] = list;
            top = max(top, level);
        }
    }
    var all_arrivals = NONE;
    for (var level = 0u; level <= top; level++) {
        if levels[level] != NONE {
            if all_arrivals == NONE {
                all_arrivals = levels[level];
            } else {
                all_arrivals = merge(levels[level], all_arrivals);
            }
        }
    }
    return all_arrivals;
}

// Key of the arrival at the head of a list.
fn arrival(p: u32) -> Key {
    if p == NONE {
        return no_event();
    }
    let pk = packet_base + p;
    return Key(packets[pk].t, packets[pk].d, EVENT_ARRIVAL, packets[pk].in_port);
}

// Key of the arrival of a pause frame at `port`.
fn frame_arrival(port: u32) -> Key {
    let p = ports[port_base + port].in_frames;
    if p == NONE {
        return no_event();
    }
    let pk = packet_base + p;
    return Key(packets[pk].t, packets[pk].d, EVENT_ARRIVAL, port);
}

// Whether `port` of a calm switch has anything to do before `end`.
fn forward_due(port: u32, end: u64) -> bool {
    let row = port_base + port;
    let words = exps[exp_row].mask_words;
    for (var w = 0u; w < words; w++) {
        if atomicLoad(&shared_words[want_word(port, w * 32u)]) != 0u {
            return true;
        }
    }
    if ports[row].arr_n > 0u || ports[row].in_frames != NONE {
        return true;
    }
    return clocks[own_clock(port)] < end;
}

// Where the port's own next event is kept.
fn own_clock(port: u32) -> u32 {
    return clock_base + exps[exp_row].end_len + exps[exp_row].nic_len + port;
}

// Processes `port` up to `end`.
fn forward(port: u32, end: u64) {
    let row = port_base + port;
    atomicAdd(&shared_words[ingress_word(port)], ports[row].arr_bytes);
    ports[row].arr_bytes = 0u;
    ports[row].arr_n = 0u;
    var list = gather(port);
    loop {
        var next = completion(port);
        var what = 0u;
        let a = arrival(list);
        if before(a, next) {
            next = a;
            what = 1u;
        }
        let f = frame_arrival(port);
        if before(f, next) {
            next = f;
            what = 2u;
        }
        if next.t >= end {
            break;
        }
        var start = true;
        if what == 1u {
            let p = list;
            list = packets[packet_base + p].next;
            enqueue(port, p, next.t);
            start = idle(port, next);
        } else if what == 2u {
            let p = ports[row].in_frames;
            ports[row].in_frames = packets[packet_base + p].next;
            start = on_frame(port, p, next);
        }
        if start {
            start_next(port, next, false);
        }
    }
    clocks[own_clock(port)] = completion(port).t;
}
