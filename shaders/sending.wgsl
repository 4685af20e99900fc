// What a NIC does to send: which queue pairs may, the packets that they make, and its wire (twin: `src/engine/cpu/sending.rs`). Which of them sends is decided in
// `nic`, or by class in `class_turns`.

// Whether the queue pair in row `tx` has something to send and its windows let it.
fn may_send(tx: u32, paused: bool) -> bool {
    if paused {
        return false;
    }
    if takes_any_order() {
        if !has_data(tx) {
            return false;
        }
        if is_uec() {
            return is_within_window(tx);
        }
        return is_within_windows(tx, outstanding(tx));
    }
    let snd_nxt = flow_tx[tx].snd_nxt;
    return snd_nxt < flow_tx[tx].size && is_within_windows(tx, snd_nxt - flow_tx[tx].snd_una);
}

// Removes the finished queue pairs from index `first_finished` on; returns where the one at `found` went.
fn remove_finished(n: u32, first_finished: u32, found: u32) -> u32 {
    let first = flow_base + nics[nic_base + n].flow_first;
    let count = own.qp_n;
    var moved = found;
    var kept = first_finished;
    for (var k = first_finished; k < count; k++) {
        let f = order[first + k];
        if (flow_tx[flow_base + f].flags & QP_FINISHED) == 0u {
            if k == found {
                moved = kept;
            }
            order[first + kept] = f;
            kept += 1u;
        } else {
            flow_tx[flow_base + f].flags &= ~QP_QUEUED;
        }
    }
    own.qp_n = kept;
    return moved;
}

// Sets a timer for `earliest`, the time at which a queue pair of NIC `n` may send, if it is later than now and no timer is set.
fn look_again(n: u32, earliest: u64, event: EventKey) {
    if earliest != NEVER && earliest > event.t && own.timer == NEVER {
        own.timer = earliest;
        nics[nic_base + n].timer_d = lineage(earliest - event.t, event.d);
    }
}

// Takes the next packet of queue pair `f` off what is left to send.
fn next_packet(f: u32) -> NextPacket {
    let tx = flow_base + f;
    let any_order = takes_any_order();
    if any_order && flow_tx[tx].lost > 0u {
        if is_uec() {
            return uec_take_lost(f);
        }
        return take_lost(f);
    }
    let seq = flow_tx[tx].snd_nxt;
    let payload = u32(min(flow_tx[tx].send_end - seq, u64(exp_payload)));
    flow_tx[tx].snd_nxt = seq + u64(select(payload, exp_payload, any_order));
    return NextPacket(seq, payload);
}

// Makes the next packet of queue pair `f`.
fn send_data(n: u32, f: u32, event: EventKey) -> Sending {
    let p = own.free_head;
    if p == NONE {
        set_flag(FLAG_POOL_EMPTY);
        return Sending(NONE, 0lu);
    }
    let pk = packet_base + p;
    let tx = flow_base + f;
    own.free_head = packets[pk].next;
    own.free_n -= 1u;
    var asking = 0u;
    if is_uec() {
        asking = asks(tx);
    }
    let next = next_packet(f);
    let payload = next.payload;
    let wire = payload + exp_data_overhead;
    let clock = u64(exp_clock_ps);
    var x = nics[nic_base + n].tx_full;
    if payload != exp_payload {
        x = tx_time(wire, nics[nic_base + n].rate, clock);
    }
    var gap = x;
    if has_mode(MODE_RATE_BOUND) && flow_tx[tx].rate != nics[nic_base + n].rate {
        gap = tx_time(wire, flow_tx[tx].rate, clock);
    }
    packets[pk].flow = f;
    var seq = next.seq;
    if takes_credit() {
        seq = spend(tx, seq, own.qp_n, event.t);
    }
    details[pk].seq = seq;
    details[pk].sent_at = event.t;
    packets[pk].payload = payload;
    var meta_word = wire | (KIND_DATA << META_KIND_SHIFT) | asking;
    if has_classes() {
        meta_word |= flow_tx[tx].class_ << META_CLASS_SHIFT;
    }
    packets[pk].in_port = NONE;
    var path = flow_tx[tx].path_first;
    let n_paths = flow_tx[tx].n_paths;
    if is_mixed() {
        let chosen = next_mixed(f, next.seq);
        meta_word |= chosen << META_ENTROPY_SHIFT;
        path += chosen * flow_tx[tx].path_len;
    } else if n_paths > 1u && !is_adaptive() {
        var chosen: u32;
        if has_mode(MODE_REPS) {
            chosen = next_entropy(tx);
            meta_word |= chosen << META_ENTROPY_SHIFT;
        } else {
            chosen = path_of(flow_tx[tx].flow_id, flow_tx[tx].n_sent, 0u, n_paths);
        }
        path += chosen * flow_tx[tx].path_len;
    }
    packets[pk].meta_ = meta_word;
    packets[pk].path = path;
    flow_tx[tx].n_sent += 1u;
    if flow_tx[tx].rto_at == NEVER {
        let rto_at = event.t + exps[exp_row].rto;
        flow_tx[tx].rto_at = rto_at;
        own.rto = min(own.rto, rto_at);
    }
    flow_tx[tx].sent_bytes += u64(payload);
    flow_tx[tx].last_wire = wire;
    flow_tx[tx].next_avail = event.t + gap;
    let msg = flow_tx[tx].msg_send;
    if msg != NONE && flow_tx[tx].snd_nxt >= flow_tx[tx].send_end {
        let follow = tasks[task_base + msg].follow;
        flow_tx[tx].msg_send = follow;
        if follow != NONE {
            flow_tx[tx].send_end = next_start(flow_tx[tx].send_end) + tasks[task_base + follow].bytes;
        }
    }
    return Sending(p, x);
}

// Puts `p` on the NIC's wire.
fn sending_transmit(n: u32, p: u32, x: u64, event: EventKey) {
    let row = nic_base + n;
    own.busy_until = event.t + x;
    nics[row].busy_d = lineage(x, event.d);
    nics[nic_base + n].hops += 1lu;
    nics[nic_base + n].tx_bytes += u64(packets[packet_base + p].meta_ & META_WIRE_MASK);
    var on_wire = x;
    if HAS_CUT_THROUGH {
        if exps[exp_row].cut_through != 0u {
            on_wire = time_on_wire(own.peer, nics[nic_base + n].rate, p, x);
        }
    }
    let t = event.t + on_wire + nics[nic_base + n].delay;
    packets[packet_base + p].t = t;
    details[packet_base + p].d = stored(lineage(on_wire + nics[nic_base + n].delay, event.d));
    if has_mode(MODE_CHANGES) && (own.peer & LINK_LOSES) != 0u && is_lost(n, p, event.t + x) {
        lose_of_nic(n, p);
    } else {
        nic_wire_push(p, t);
    }
}
