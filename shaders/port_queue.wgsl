// An egress port with a queue of its own, which trims or drops what finds no place there (twin: `src/engine/cpu/switch/port_queue.rs`). The port is the one that
// is held.

// Whether the egress ports of the experiment have queues of their own.
fn has_port_queues() -> bool {
    return has_mode(MODE_PORT_QUEUES);
}

// Takes in packet `p` of `wire` bytes, which arrives at egress `port` at time `now`.
fn join(port: u32, p: u32, wire: u32, now: u64) {
    let meta_word = packets[packet_base + p].meta_;
    if packet_kind(meta_word) != KIND_DATA || (meta_word & META_TRIMMED) != 0u {
        push_first(port, p);
        return;
    }
    if held.q_bytes + wire <= ports[port_base + port].headroom {
        enqueue(port, p, wire, now);
        return;
    }
    if held.q_tail != NONE {
        if draws_last(port) {
            swap_with_last(port, p, now);
        }
    }
    cut(port, p);
}

// Whether the packet that gives way is the last one of the queue, by a draw. Else it is the one that arrives.
fn draws_last(port: u32) -> bool {
    let row = port_base + port;
    let draws = ports[row].draws;
    ports[row].draws = draws + 1lu;
    return (hash32(port, u32(draws & LOW_32), u32(draws >> 32u), exps[exp_row].seed) & 1u) == 1u;
}

// Exchanges packet `p` with the last one of the queue of `port`. The records stay where they are, since nothing but the queue's end leads to the last one.
fn swap_with_last(port: u32, p: u32, now: u64) {
    integrate(port, now);
    let last = packet_base + held.q_tail;
    let other = packet_base + p;
    let waiting = packets[last];
    let arriving = packets[other];
    held.q_bytes = held.q_bytes + (arriving.meta_ & META_WIRE_MASK) - (waiting.meta_ & META_WIRE_MASK);
    held.max_q = max(held.max_q, held.q_bytes);
    held_differs = true;
    packets[last] = arriving;
    packets[last].next = waiting.next;
    packets[other] = waiting;
    packets[other].next = arriving.next;
    let rest = details[other];
    details[other] = details[last];
    details[last] = rest;
}

// Trims packet `p`, which finds no place in the queue of `port`, or drops it.
fn cut(port: u32, p: u32) {
    let pk = packet_base + p;
    let packet = packets[pk];
    let wire = packet.meta_ & META_WIRE_MASK;
    let word = ingress_word(packet.in_port);
    if !has_mode(MODE_TRIMMING) {
        atomicSub(&shared_words[word], wire);
        drop_packet(port, p);
        return;
    }
    let header = exp_ack_bytes;
    atomicAdd(&shared_words[word], header - wire);
    let at_last_hop = (held.peer & ~LINK_TROUBLE) < exp_nic_len;
    packets[pk].meta_ = (packet.meta_ & ~META_WIRE_MASK) | header | META_TRIMMED | select(0u, META_LAST_HOP, at_last_hop);
    packets[pk].payload = 0u;
    ports[port_base + port].drops += 1u;
    ports[port_base + port].dropped_bytes += u64(packet.payload);
    push_first(port, p);
}
