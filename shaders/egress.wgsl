// A port's transmitter and queue, shared by `forward` and `forward_joint` (twin: `src/engine/cpu/switch/egress.rs`).

// Fields of a telemetry word: time 24 bits, transmitted 20, queue 17, rate index 3.
const INT_TIME_MASK: u64 = 0xfffffflu;
const INT_TX_MASK: u64 = 0xffffflu;
const INT_Q_MASK: u64 = 0x1fffflu;
const INT_TX_AT: u32 = 24u;
const INT_Q_AT: u32 = 44u;
const INT_RATE_AT: u32 = 61u;

// The end of the port's transmission as an event.
fn transmission_end(port: u32) -> EventKey {
    let row = port_base + port;
    return EventKey(ports[row].busy_until, ports[row].busy_d, EVENT_COMPLETION, port);
}

// The end of the port's transmission, if something would follow it; else no event: an end that nothing follows changes
// nothing, and whoever comes later finds out by `idle`.
fn completion(port: u32) -> EventKey {
    let row = port_base + port;
    let work = ports[row].frame_head != NONE || (ports[row].q_head != NONE && ports[row].paused == 0u);
    if ports[row].busy == 0u || !work {
        return no_event();
    }
    return transmission_end(port);
}

// Whether the transmitter is free for `event`: idle, or its transmission ended before.
fn idle(port: u32, event: EventKey) -> bool {
    let row = port_base + port;
    if ports[row].busy == 0u {
        return true;
    }
    if before(transmission_end(port), event) {
        ports[row].busy = 0u;
        return true;
    }
    return false;
}

// Integrates the queue's length up to `now`, before it changes.
fn integrate(port: u32, now: u64) {
    if !has_mode(MODE_LINKS) {
        return;
    }
    let row = port_base + port;
    ports[row].q_area += (u64(ports[row].q_bytes) * (now - ports[row].q_since)) >> 10u;
    ports[row].q_since = now;
}

// Joins packet `p` to the queue of `port`.
fn enqueue(port: u32, p: u32, now: u64) {
    integrate(port, now);
    let row = port_base + port;
    packets[packet_base + p].next = NONE;
    let wire = packets[packet_base + p].meta_ & META_WIRE_MASK;
    let tail = ports[row].q_tail;
    ports[row].q_tail = p;
    let q = ports[row].q_bytes + wire;
    ports[row].q_bytes = q;
    if q > ports[row].max_q {
        ports[row].max_q = q;
    }
    if tail == NONE {
        ports[row].q_head = p;
    } else {
        packets[packet_base + tail].next = p;
    }
}

// Starts the next transmission of an idle port, caused by `event`: a pause frame, else the head of the queue, else nothing.
//
// The twin transmits in two places; here both meet in one, because every copy of a transmission costs compile time.
fn start_next(port: u32, event: EventKey, joint: bool) {
    let row = port_base + port;
    var p: u32;
    if ports[row].frame_head != NONE {
        p = start_frame(port);
    } else if ports[row].q_head != NONE && ports[row].paused == 0u {
        p = start_head(port, event, joint);
    } else {
        ports[row].busy = 0u;
        return;
    }
    let wire = packets[packet_base + p].meta_ & META_WIRE_MASK;
    var x: u64;
    if wire == exps[exp_row].payload + exps[exp_row].data_overhead {
        x = ports[row].tx_full;
    } else if wire == exps[exp_row].ack_bytes {
        x = ports[row].tx_ack;
    } else {
        x = tx_time(wire, ports[row].rate, u64(exps[exp_row].clock_ps));
    }
    port_transmit(port, p, wire, x, event);
}

// Takes the first waiting pause frame, to be sent.
fn start_frame(port: u32) -> u32 {
    let row = port_base + port;
    let p = ports[row].frame_head;
    let next = packets[packet_base + p].next;
    ports[row].frame_head = next;
    if next == NONE {
        ports[row].frame_tail = NONE;
    }
    ports[row].frames -= 1u;
    return p;
}

// Takes the head of the queue, to be sent: counters, mark, resume test, telemetry, in the reference's order.
fn start_head(port: u32, event: EventKey, joint: bool) -> u32 {
    integrate(port, event.t);
    let row = port_base + port;
    let p = ports[row].q_head;
    let pk = packet_base + p;
    let next = packets[pk].next;
    let in_port = packets[pk].in_port;
    let meta_word = packets[pk].meta_;
    let wire = meta_word & META_WIRE_MASK;
    let data = packet_kind(meta_word) == KIND_DATA;
    ports[row].q_head = next;
    if next == NONE {
        ports[row].q_tail = NONE;
    }
    let q = ports[row].q_bytes - wire;
    ports[row].q_bytes = q;
    if joint {
        release(in_port, wire);
    } else {
        atomicSub(&shared_words[ingress_word(in_port)], wire);
    }
    if has_mode(MODE_ECN) && q > ports[row].kmin {
        let drawn = draw_mark(port, q);
        if drawn && data {
            packets[pk].meta_ |= META_MARKED;
            ports[row].marks += 1lu;
        }
    }
    if joint {
        resume_test(in_port, port);
    }
    if data && exps[exp_row].cc == CC_HPCC {
        push_int(port, p, event.t);
    }
    ports[row].hops += 1lu;
    return p;
}

// The marking test of a queue `q > kmin`: certain above `kmax`, else a draw.
fn draw_mark(port: u32, q: u32) -> bool {
    let row = port_base + port;
    let kmin = ports[row].kmin;
    let kmax = ports[row].kmax;
    if q > kmax {
        return true;
    }
    let limit = ports[row].pmax_q32 * u64(q - kmin) / u64(kmax - kmin);
    let draws = ports[row].draws;
    let draw = hash32(port, u32(draws & LOW_32), u32(draws >> 32u), exps[exp_row].seed);
    ports[row].draws = draws + 1lu;
    return u64(draw) < limit;
}

// Adds this hop to the packet's telemetry.
fn push_int(port: u32, p: u32, now: u64) {
    let n = (packets[packet_base + p].meta_ >> META_INT_SHIFT) & META_INT_MASK;
    if n >= INT_HOPS {
        return;
    }
    let row = port_base + port;
    let multi = u64(exps[exp_row].int_multi);
    let time = (now / 1000lu) & INT_TIME_MASK;
    let sent = (ports[row].tx_bytes / (u64(INT_TX_UNIT) * multi)) & INT_TX_MASK;
    let waiting = u64(ports[row].q_bytes + FRAME_BYTES * ports[row].frames);
    let queue = min(waiting / (u64(INT_Q_UNIT) * multi), INT_Q_MASK);
    let word = time | (sent << INT_TX_AT) | (queue << INT_Q_AT) | (u64(ports[row].rate_idx) << INT_RATE_AT);
    ints[int_base + exps[exp_row].flow_len + p].hop[n] = word;
    packets[packet_base + p].meta_ += 1u << META_INT_SHIFT;
}

// Puts `p` on the wire.
fn port_transmit(port: u32, p: u32, wire: u32, x: u64, event: EventKey) {
    let row = port_base + port;
    ports[row].busy = 1u;
    ports[row].busy_until = event.t + x;
    ports[row].busy_d = lineage(x, event.d);
    ports[row].tx_bytes += u64(wire);
    let delay = ports[row].delay;
    packets[packet_base + p].t = event.t + x + delay;
    details[packet_base + p].d = lineage(x + delay, event.d);
    wire_push(ports[row].peer, p);
}

// A pause or resume frame reaches the port from its peer. Returns whether the caller must start the next transmission: the caller
// does it, so that the code of a transmission is in each kernel once.
fn on_frame(port: u32, p: u32, event: EventKey) -> bool {
    let resume = (packets[packet_base + p].meta_ & META_RESUME) != 0u;
    let row = port_base + port;
    if resume {
        ports[row].paused = 0u;
    } else {
        ports[row].paused = 1u;
        ports[row].pauses += 1u;
    }
    return_later(port, p);
    if !resume {
        return false;
    }
    return idle(port, event);
}

// Keeps a record until `advance` returns it to its owner.
fn return_later(port: u32, p: u32) {
    packets[packet_base + p].next = ports[port_base + port].to_return;
    ports[port_base + port].to_return = p;
    set_flag(FLAG_TO_RETURN);
}
