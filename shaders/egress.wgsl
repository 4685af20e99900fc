// A port's transmitter and queue, shared by `forward` and `forward_joint` (twin: `src/engine/cpu/switch/egress.rs`). The port is the one that is held
// (`held_port.wgsl`).

// Fields of a telemetry word: time 24 bits, transmitted 20, queue 17, rate index 3.
const INT_TIME_MASK: u64 = 0xfffffflu;
const INT_TX_MASK: u64 = 0xffffflu;
const INT_Q_MASK: u64 = 0x1fffflu;
const INT_TX_AT: u32 = 24u;
const INT_Q_AT: u32 = 44u;
const INT_RATE_AT: u32 = 61u;

// When the port's transmission ends, if something would follow it; else `NEVER`: an end that nothing follows changes nothing, and whoever comes later
// finds out by `idle`.
fn completion_time() -> u64 {
    let work = held.frame_head != NONE || (held.q_head != NONE && held.paused == 0u);
    return select(NEVER, held.busy_until, held.busy != 0u && work);
}

// `completion_time` of `port`, which is not held.
fn completion_in_row(port: u32) -> u64 {
    let row = port_base + port;
    if ports[row].busy == 0u {
        return NEVER;
    }
    let work = ports[row].frame_head != NONE || (ports[row].q_head != NONE && ports[row].paused == 0u);
    return select(NEVER, ports[row].busy_until, work);
}

// The end of the port's transmission as an event.
fn transmission_end(port: u32) -> EventKey {
    return EventKey(held.busy_until, ports[port_base + port].busy_d, EVENT_COMPLETION, port);
}

// Whether the transmitter is free for `event`: idle, or its transmission ended before.
fn idle(port: u32, event: EventKey) -> bool {
    if held.busy == 0u {
        return true;
    }
    if held.busy_until > event.t {
        return false;
    }
    if held.busy_until < event.t || before(transmission_end(port), event) {
        held.busy = 0u;
        held_differs = true;
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
    ports[row].q_area += (u64(held.q_bytes) * (now - ports[row].q_since)) >> 10u;
    ports[row].q_since = now;
}

// Joins packet `p` of `wire` bytes to the queue of `port`.
fn enqueue(port: u32, p: u32, wire: u32, now: u64) {
    integrate(port, now);
    packets[packet_base + p].next = NONE;
    if held.q_tail == NONE {
        held.q_head = p;
    } else {
        packets[packet_base + held.q_tail].next = p;
    }
    held.q_tail = p;
    held.q_bytes += wire;
    held.max_q = max(held.max_q, held.q_bytes);
    held_differs = true;
}

// Appends packet `p` of `wire` bytes to the queue of its class at `port`.
fn enqueue_class(port: u32, p: u32, wire: u32, now: u64) {
    integrate(port, now);
    packets[packet_base + p].next = NONE;
    let i = port_queue_row(port, class_of(packets[packet_base + p].meta_));
    let tail = class_queues[i].q_tail;
    class_queues[i].q_tail = p;
    class_queues[i].q_bytes += wire;
    if tail == NONE {
        class_queues[i].q_head = p;
    } else {
        packets[packet_base + tail].next = p;
    }
    held.q_bytes += wire;
    held.max_q = max(held.max_q, held.q_bytes);
    note_sendable(port);
}

// Starts the next transmission of an idle port, caused by `event`: a pause frame, else the head of the queue, else nothing.
//
// The twin transmits in two places; here both meet in one, because every copy of a transmission costs compile time.
fn start_next(port: u32, event: EventKey, joint: bool) {
    held_differs = true;
    var p: u32;
    var wire: u32;
    // Control packets must not starve data. The count is below the limit where there are pauses.
    let both_wait = held.frame_head != NONE && held.q_head != NONE;
    let data_first = has_port_queues() && both_wait && ports[port_base + port].pausing >= CONTROL_TURNS;
    if data_first {
        ports[port_base + port].pausing = 0u;
    }
    if held.frame_head != NONE && !data_first {
        p = held.frame_head;
        wire = start_frame(port);
    } else if held.q_head != NONE && held.paused == 0u {
        if has_classes() {
            let class_ = class_in_turn(port);
            p = class_queues[port_queue_row(port, class_)].q_head;
            wire = start_class(port, class_, event, joint);
        } else {
            p = held.q_head;
            wire = start_head(port, event, joint);
        }
    } else {
        held.busy = 0u;
        return;
    }
    var x: u64;
    if wire == exp_payload + exp_data_overhead {
        x = ports[port_base + port].tx_full;
    } else if wire == exp_ack_bytes {
        x = ports[port_base + port].tx_ack;
    } else {
        x = tx_time(wire, ports[port_base + port].rate, u64(exp_clock_ps));
    }
    egress_transmit(port, p, wire, x, event);
}

// Takes the first waiting pause frame or control packet, to be sent. Returns its bytes.
fn start_frame(port: u32) -> u32 {
    let row = port_base + port;
    let frame = packets[packet_base + held.frame_head];
    held.frame_head = frame.next;
    if frame.next == NONE {
        ports[row].frame_tail = NONE;
    }
    ports[row].frames -= 1u;
    let wire = frame.meta_ & META_WIRE_MASK;
    if packet_kind(frame.meta_) != KIND_FRAME {
        ports[row].hops += 1lu;
        ports[row].pausing = min(ports[row].pausing + 1u, CONTROL_TURNS);
        atomicSub(&shared_words[ingress_word(frame.in_port)], wire);
    }
    return wire;
}

// Takes the head of the queue, to be sent: counters, mark, resume test, telemetry, in the reference's order. Returns its bytes.
fn start_head(port: u32, event: EventKey, joint: bool) -> u32 {
    integrate(port, event.t);
    let p = held.q_head;
    let packet = packets[packet_base + p];
    let wire = packet.meta_ & META_WIRE_MASK;
    let data = packet_kind(packet.meta_) == KIND_DATA;
    held.q_head = packet.next;
    if packet.next == NONE {
        held.q_tail = NONE;
    }
    let q = held.q_bytes - wire;
    held.q_bytes = q;
    if joint {
        release(packet.in_port, wire);
    } else {
        atomicSub(&shared_words[ingress_word(packet.in_port)], wire);
    }
    draw_mark(port, p, q, packet.meta_, event.t);
    if joint {
        resume_test(packet.in_port, port);
    }
    take_turn(port, p, data, event);
    return wire;
}

// Takes the head of the queue of `class_`, to be sent. Returns its bytes.
fn start_class(port: u32, class_: u32, event: EventKey, joint: bool) -> u32 {
    integrate(port, event.t);
    let i = port_queue_row(port, class_);
    let p = class_queues[i].q_head;
    let packet = packets[packet_base + p];
    let wire = packet.meta_ & META_WIRE_MASK;
    let data = packet_kind(packet.meta_) == KIND_DATA;
    spend_allowance(exp_nic_len + port, class_, wire);
    class_queues[i].q_head = packet.next;
    if packet.next == NONE {
        class_queues[i].q_tail = NONE;
    }
    let q = class_queues[i].q_bytes - wire;
    class_queues[i].q_bytes = q;
    held.q_bytes -= wire;
    note_sendable(port);
    if joint {
        release_class(packet.in_port, class_, wire);
    } else {
        atomicSub(&shared_words[held_word(packet.in_port, class_)], wire);
    }
    draw_mark(port, p, q, packet.meta_, event.t);
    if joint {
        resume_test_class(packet.in_port, port, class_);
    }
    take_turn(port, p, data, event);
    class_queues[i].tx_bytes += u64(wire);
    return wire;
}

// Telemetry and count of packet `p`, which leaves its queue at `port`.
fn take_turn(port: u32, p: u32, data: bool, event: EventKey) {
    if data && exp_cc == CC_HPCC {
        push_int(port, p, event.t);
    }
    ports[port_base + port].hops += 1lu;
}

// Marks packet `p` with the word `meta_word`, which has left a queue of `port` with `left` bytes in it at `now`, if it is data and the queue, or its average, is
// long enough.
fn draw_mark(port: u32, p: u32, left: u32, meta_word: u32, now: u64) {
    var q = left;
    if HAS_AVERAGES {
        if has_mode(MODE_ECN) && exps[exp_row].average_first != 0u {
            q = averaged_queue(port, p, left, now);
        }
    }
    if HAS_AVERAGES {
        if exps[exp_row].wred_drops != 0u && may_lose(port, meta_word) {
            return;
        }
    }
    if q > ports[port_base + port].kmin && has_mode(MODE_ECN) {
        let drawn = is_marked(port, q);
        if drawn && packet_kind(meta_word) == KIND_DATA {
            packets[packet_base + p].meta_ = meta_word | META_MARKED;
            ports[port_base + port].marks += 1lu;
        }
    }
}

// Whether WRED drops packet `p`, which is about to join the queue of its class at the held `port` at `now`: data that may be lost, and that marking would pick.
// The queue is as long as it is before the packet joins it.
fn wred_drops(port: u32, p: u32, now: u64) -> bool {
    if exps[exp_row].wred_drops == 0u {
        return false;
    }
    let meta_word = packets[packet_base + p].meta_;
    if packet_kind(meta_word) != KIND_DATA || !may_lose(port, meta_word) {
        return false;
    }
    let class_ = queue_class(meta_word);
    var q = held.q_bytes;
    if exps[exp_row].average_first != 0u {
        q = average_now(port, class_, now);
    } else if has_classes() {
        q = class_queues[port_queue_row(port, class_)].q_bytes;
    }
    return q > ports[port_base + port].kmin && is_marked(port, q);
}

// Whether packets with `meta_word` may get lost at `port` for want of room. Without classes, no port pauses its peer.
fn may_lose(port: u32, meta_word: u32) -> bool {
    return !has_classes() || class_queues[port_queue_row(port, class_of(meta_word))].lossless == 0u;
}

// The marking test of a queue `q > kmin`: certain above `kmax`, else a draw.
fn is_marked(port: u32, q: u32) -> bool {
    let row = port_base + port;
    let kmin = ports[port_base + port].kmin;
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
    var sent_bytes = ports[port_base + port].tx_bytes;
    var queued = held.q_bytes;
    if has_classes() {
        // A class is told of its own packets.
        let i = port_queue_row(port, class_of(packets[packet_base + p].meta_));
        sent_bytes = class_queues[i].tx_bytes;
        queued = class_queues[i].q_bytes;
    }
    let sent = (sent_bytes / (u64(INT_TX_UNIT) * multi)) & INT_TX_MASK;
    let waiting = u64(queued + FRAME_BYTES * ports[row].frames);
    let queue = min(waiting / (u64(INT_Q_UNIT) * multi), INT_Q_MASK);
    let word = time | (sent << INT_TX_AT) | (queue << INT_Q_AT) | (u64(ports[row].rate_idx) << INT_RATE_AT);
    ints[int_base + exps[exp_row].flow_len + p].hop[n] = word;
    packets[packet_base + p].meta_ += 1u << META_INT_SHIFT;
}

// Puts `p` on the wire.
fn egress_transmit(port: u32, p: u32, wire: u32, x: u64, event: EventKey) {
    held.busy = 1u;
    held.busy_until = event.t + x;
    ports[port_base + port].busy_d = lineage(x, event.d);
    ports[port_base + port].tx_bytes += u64(wire);
    var on_wire = x;
    if HAS_CUT_THROUGH {
        if exps[exp_row].cut_through != 0u {
            on_wire = time_on_wire(held.peer, ports[port_base + port].rate, p, x);
        }
    }
    let t = event.t + on_wire + ports[port_base + port].delay;
    packets[packet_base + p].t = t;
    details[packet_base + p].d = stored(lineage(on_wire + ports[port_base + port].delay, event.d));
    if has_mode(MODE_CHANGES) && (held.peer & LINK_TROUBLE) != 0u && !reaches_peer(port, p, event.t + x) {
        drop_packet(port, p);
    } else {
        held_wire_push(p, t);
    }
}

// Whether packet `p`, which the held `port` has sent by `done`, reaches the port's peer: the link may be down or lose it, or the watchdog may drop it.
fn reaches_peer(port: u32, p: u32, done: u64) -> bool {
    if (held.peer & LINK_DOWN) != 0u {
        return false;
    }
    if (held.peer & LINK_DROPS) != 0u && watchdog_drops(port, p) {
        return false;
    }
    return (held.peer & LINK_LOSES) == 0u || !is_lost(exp_nic_len + port, p, done);
}

// Drops `p`, which was on its way to egress `port`, or which `port` sends and which does not reach its peer. A pause frame only disappears.
fn drop_packet(port: u32, p: u32) {
    let row = port_base + port;
    // Without branches: each costs software drivers compile time.
    let what = packet_kind(packets[packet_base + p].meta_);
    ports[row].drops += select(1u, 0u, what == KIND_FRAME);
    ports[row].dropped_bytes += u64(select(0u, packets[packet_base + p].payload, what == KIND_DATA));
    return_later(port, p);
}

// A pause or resume frame reaches the port from its peer. Returns whether the port may go on: the caller asks if it is idle and starts the next transmission, so
// that the code of both is in each kernel once.
fn on_frame(port: u32, p: u32, event: EventKey) -> bool {
    let meta_word = packets[packet_base + p].meta_;
    let resume = (meta_word & META_RESUME) != 0u;
    held_differs = true;
    if !resume {
        ports[port_base + port].pauses += 1u;
    }
    var overruled = false;
    if has_mode(MODE_CHANGES) && exps[exp_row].watch_first != 0u {
        overruled = watch_pause(port, class_of(meta_word), resume, event.t);
    }
    if has_classes() {
        if !overruled {
            pause_class(port, class_of(meta_word), resume);
        }
    } else if !overruled {
        held.paused = select(1u, 0u, resume);
    }
    pause_ps[wire_base + exp_nic_len + port] += select(0lu - event.t, event.t, resume);
    return_later(port, p);
    return resume;
}

// Keeps a record until `advance` returns it to its owner.
fn return_later(port: u32, p: u32) {
    packets[packet_base + p].next = ports[port_base + port].to_return;
    ports[port_base + port].to_return = p;
    set_flag(FLAG_TO_RETURN);
}
