// System `forward`, a row a port of an independent switch (twin: `src/engine/cpu/switch/forward.rs`). It takes what the ingresses have for the
// port, merges it by time and transmits.

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
            all_arrivals = merge(levels[level], all_arrivals);
        }
    }
    return all_arrivals;
}

// What can happen at a port.
const AT_COMPLETION: u32 = 0u;
const AT_ARRIVAL: u32 = 1u;
const AT_FRAME: u32 = 2u;

// Key of the next event of kind `what` at `port`, where `list` holds its arrivals.
fn port_event(port: u32, what: u32, list: u32) -> EventKey {
    if what == AT_COMPLETION {
        return completion(port);
    }
    let p = select(ports[port_base + port].in_frames, list, what == AT_ARRIVAL);
    if p == NONE {
        return no_event();
    }
    let pk = packet_base + p;
    // Arrivals of packets are told apart by where they came in, those of frames all came from the peer.
    let entity = select(port, packets[pk].in_port, what == AT_ARRIVAL);
    return EventKey(packets[pk].t, details[pk].d, EVENT_ARRIVAL, entity);
}

// Whether `port` of an independent switch has anything to do before `end`.
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

// Returns the clock that has the port's own next event.
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
        var next = no_event();
        var what = AT_COMPLETION;
        for (var k = AT_COMPLETION; k <= AT_FRAME; k++) {
            let event = port_event(port, k, list);
            if before(event, next) {
                next = event;
                what = k;
            }
        }
        if next.t >= end {
            break;
        }
        var start = true;
        if what == AT_ARRIVAL {
            let p = list;
            list = packets[packet_base + p].next;
            enqueue(port, p, next.t);
            start = idle(port, next);
        } else if what == AT_FRAME {
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

// `forward` for a row: at ports of independent switches, where there is something to do.
fn forward_row(port: u32, end: u64) {
    if switches[switch_base + ports[port_base + port].switch_idx].independent != 0u {
        if forward_due(port, end) {
            forward(port, end);
        }
    }
}
