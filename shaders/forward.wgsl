// System `forward`, a row a port of an independent switch (twin: `src/engine/cpu/switch/forward.rs`). It takes what the ingresses have for the
// port, merges it by time and transmits.

// Merges all that the ingresses planned for `port` into one list, by time; ties go to the lower ingress.
fn gather(port: u32) -> u32 {
    let sw = switch_base + ports[port_base + port].switch_idx;
    let port_n = switches[sw].port_n;
    let plan_first = plan_base + switches[sw].plan_first;
    let local = port - switches[sw].port_first;
    let words = exp_mask_words;
    // Lists of 1, 2, 4 ... sources, as in a bottom-up merge sort, so that n sources cost log n visits a packet.
    var levels: array<u32, 16>;
    for (var level = 0u; level < 16u; level++) {
        levels[level] = NONE;
    }
    var top = 0u;
    var list = NONE;
    // Behind the last word, the lists of all levels are merged.
    for (var w = 0u; w <= words; w++) {
        let is_last = w == words;
        var bits = 1u;
        if !is_last {
            let word = request_word(port, w * 32u);
            bits = atomicLoad(&shared_words[word]);
            atomicStore(&shared_words[word], 0u);
        }
        while bits != 0u {
            list = NONE;
            if !is_last {
                list = plans[plan_first + (w * 32u + countTrailingZeros(bits)) * port_n + local].head;
            }
            bits &= bits - 1u;
            var level = 0u;
            while select(levels[level] != NONE, level <= top, is_last) {
                if levels[level] != NONE {
                    list = merge(levels[level], list);
                    levels[level] = NONE;
                }
                level += 1u;
            }
            levels[level] = list;
            top = max(top, level);
        }
    }
    return list;
}

// What can happen at a port.
const AT_COMPLETION: u32 = 0u;
const AT_ARRIVAL: u32 = 1u;
const AT_FRAME: u32 = 2u;

// Key of the event of kind `what` at the held port, which happens at `t`. Its arrivals begin with `list`, which came in by port `in_port`.
fn port_event(port: u32, what: u32, list: u32, in_port: u32, t: u64) -> EventKey {
    if what == AT_COMPLETION {
        return transmission_end(port);
    }
    if what == AT_ARRIVAL {
        // Arrivals of packets are told apart by where they came in, those of frames all came from the peer.
        return EventKey(t, restored(details[packet_base + list].d), EVENT_ARRIVAL, in_port);
    }
    return EventKey(t, restored(details[packet_base + held.in_frames].d), EVENT_ARRIVAL, port);
}

// The next event at a port, and its kind.
struct PortEvent {
    key: EventKey,
    what: u32,
}

// The first of the events at the held port. Its arrivals begin with `list`, whose row is `arrival`; a transmission ends at `completes`, a frame arrives at
// `frame`. Only what happens at the earliest of these times is read.
fn first_port_event(port: u32, list: u32, arrival: Packet, completes: u64, frame: u64) -> PortEvent {
    let arrives = select(NEVER, arrival.t, list != NONE);
    let t = min(completes, min(arrives, frame));
    var first = PortEvent(no_event(), AT_COMPLETION);
    for (var what = AT_COMPLETION; what <= AT_FRAME; what++) {
        let at_what = select(select(frame, arrives, what == AT_ARRIVAL), completes, what == AT_COMPLETION);
        if at_what == t {
            let key = port_event(port, what, list, arrival.in_port, t);
            if before(key, first.key) {
                first = PortEvent(key, what);
            }
        }
    }
    return first;
}

// Whether `port` of an independent switch has anything to do before `end`.
fn forward_is_due(port: u32, end: u64) -> bool {
    let row = port_base + port;
    let words = exp_mask_words;
    for (var w = 0u; w < words; w++) {
        if atomicLoad(&shared_words[request_word(port, w * 32u)]) != 0u {
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
    return clock_base + exp_end_len + exp_nic_len + port;
}

// Processes `port` up to `end`.
fn forward(port: u32, end: u64) {
    let row = port_base + port;
    let arr_bytes = ports[row].arr_bytes;
    if arr_bytes != 0u {
        if !has_classes() {
            atomicAdd(&shared_words[ingress_word(port)], arr_bytes);
        }
        ports[row].arr_bytes = 0u;
    }
    ports[row].arr_n = 0u;
    var list = gather(port);
    hold(port);
    var arrival = packet_row(list);
    var frame = arrival_time(held.in_frames);
    loop {
        let completes = completion_time();
        let arrives = select(NEVER, arrival.t, list != NONE);
        if min(completes, min(arrives, frame)) >= end {
            break;
        }
        let first = first_port_event(port, list, arrival, completes, frame);
        let next = first.key;
        // Whether the port's transmitter is to be asked if it is free.
        var asks = true;
        if first.what == AT_ARRIVAL {
            let p = list;
            let wire = arrival.meta_ & META_WIRE_MASK;
            list = arrival.next;
            arrival = packet_row(list);
            var is_dropped = false;
            if HAS_AVERAGES {
                is_dropped = wred_drops(port, p, next.t);
            }
            asks = !is_dropped;
            if is_dropped {
                give_up(port, p, wire);
            } else if has_port_queues() {
                join(port, p, wire, next.t);
            } else if has_classes() {
                charge_arrival(p);
                enqueue_class(port, p, wire, next.t);
            } else {
                enqueue(port, p, wire, next.t);
            }
        } else if first.what == AT_FRAME {
            let p = held.in_frames;
            held.in_frames = packets[packet_base + p].next;
            frame = arrival_time(held.in_frames);
            asks = on_frame(port, p, next);
        }
        if first.what == AT_COMPLETION || (asks && idle(port, next)) {
            start_next(port, next, false);
        }
    }
    clocks[own_clock(port)] = completion_time();
    let_go();
}

// Drops packet `p` of `wire` bytes, which WRED has picked at `port` of an independent switch. With classes it is not charged yet, otherwise it is.
fn give_up(port: u32, p: u32, wire: u32) {
    if !has_classes() {
        atomicSub(&shared_words[ingress_word(packets[packet_base + p].in_port)], wire);
    }
    drop_packet(port, p);
}

// `forward` for a row: at ports of independent switches, where there is something to do.
fn forward_row(port: u32, end: u64) {
    if switches[switch_base + ports[port_base + port].switch_idx].independent != 0u {
        if forward_is_due(port, end) {
            forward(port, end);
        }
    }
}
