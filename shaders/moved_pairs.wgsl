// Packets that arrive at a NIC that their queue pair has left (twin: `src/engine/cpu/moved_pairs.rs`). They go on to the NIC where it is now.

// The NIC where packet `p` is to arrive: where the end of its queue pair is now.
fn home(p: u32) -> u32 {
    let f = flow_base + packets[packet_base + p].flow;
    if packet_kind(packets[packet_base + p].meta_) == KIND_DATA {
        return flow_rx[f].nic;
    }
    return flow_tx[f].nic;
}

// Keeps packet `p`, which arrives at NIC `n`, for another NIC, if that is where its queue pair is now: `hand_over` brings it there. Returns whether it does.
fn passes_on(n: u32, p: u32) -> bool {
    let pk = packet_base + p;
    if packet_kind(packets[pk].meta_) == KIND_FRAME || home(p) == n {
        return false;
    }
    packets[pk].path = HANDED_OVER;
    packets[pk].next = nics[nic_base + n].to_return;
    nics[nic_base + n].to_return = p;
    set_flag(FLAG_TO_RETURN);
    return true;
}

// Hands packet `p` over to the NIC where its queue pair is now. It arrives there after the delay of that NIC's link, which no step exceeds. Returns that time.
fn hand_over(p: u32) -> u64 {
    let n = home(p);
    let delay = nics[nic_base + n].delay;
    let d = lineage(delay, restored(details[packet_base + p].d));
    details[packet_base + p].d = stored(d);
    let time = packets[packet_base + p].t + delay;
    packets[packet_base + p].t = time;
    let row = wire_base + n;
    var previous = NONE;
    var next = wires[row].head;
    while next != NONE && !comes_before(n, p, next) {
        previous = next;
        next = packets[packet_base + next].next;
    }
    packets[packet_base + p].next = next;
    wires[row].n += 1u;
    if next == NONE {
        wires[row].tail = p;
    }
    if previous != NONE {
        packets[packet_base + previous].next = p;
    } else {
        wires[row].head = p;
        clocks[clock_base + n] = time;
    }
    return time;
}

// Whether `p` arrives at NIC `n` before `q` does.
fn comes_before(n: u32, p: u32, q: u32) -> bool {
    let of_p = EventKey(packets[packet_base + p].t, restored(details[packet_base + p].d), EVENT_ARRIVAL, n);
    let of_q = EventKey(packets[packet_base + q].t, restored(details[packet_base + q].d), EVENT_ARRIVAL, n);
    return before(of_p, of_q);
}
