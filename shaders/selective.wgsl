// Senders that send only missing packets again, by selective acknowledgements (twin: `src/engine/cpu/transport/selective.rs`).

// What an acknowledgement brings: the bytes that are known to have arrived now and were not before, and whether it shows a loss that
// the sender has not reacted to.
struct News {
    acked: u64,
    loss: bool,
}

// An acknowledgement on queue pair `f`: `answer` is its sequence number with the offset, and the data it answers was sent at `sent_at`.
fn acknowledge(f: u32, answer: u64, sent_at: u64, now: u64) -> News {
    let tx = flow_base + f;
    let payload = u64(exp_payload);
    let seq = answer & PSN_BYTE_MASK;
    let offset = answer >> PSN_OFFSET_SHIFT;
    var acked = acknowledge_to(f, seq) * payload;
    var found = 0u;
    if offset > 0lu {
        let pos = seq + offset * payload;
        if take_note(f, pos) {
            acked += payload;
        }
        found = count_lost(f, sub_sat(pos + payload, selective_threshold(tx) * payload));
    }
    let loss = found > 0u && (flow_tx[tx].loss_window == 0lu || sent_at >= flow_tx[tx].back_at);
    if loss {
        selective_halve_loss_window(tx, now);
    }
    return News(acked, loss);
}

// Number of packets after which a missing one of the queue pair in row `tx` counts as lost.
fn selective_threshold(tx: u32) -> u64 {
    var threshold = u64(exps[exp_row].packet_threshold);
    if threshold == 0lu {
        threshold = 1lu;
        if flow_tx[tx].n_paths > 1u {
            let payload = u64(exp_payload);
            threshold = (flow_tx[tx].window + payload - 1lu) / payload;
        }
    }
    return min(threshold, u64(exps[exp_row].psn_range / 2u));
}

// Counts as lost what is missing below byte `end`, and what was sent again and would have arrived by now. Returns the number of packets that
// are lost now and were not before.
fn count_lost(f: u32, end: u64) -> u32 {
    let tx = flow_base + f;
    let una = flow_tx[tx].snd_una;
    let rtx_next = flow_tx[tx].rtx_next;
    let rtx_end = flow_tx[tx].rtx_end;
    var found = 0u;
    if end > rtx_end {
        found += missing(f, max(max(rtx_end, rtx_next), una), end);
        flow_tx[tx].rtx_end = end;
    }
    if end > flow_tx[tx].resent && rtx_next > una {
        found += missing(f, una, rtx_next);
        flow_tx[tx].rtx_next = una;
    }
    flow_tx[tx].lost += found;
    return found;
}

// Number of packets from byte `first` to below byte `end` that are not known to have arrived.
fn missing(f: u32, first: u64, end: u64) -> u32 {
    var found = 0u;
    for (var pos = first; pos < end; pos += u64(exp_payload)) {
        let b = sender_bit(f, pos);
        found += select(0u, 1u, (psn_bits[b.word] & b.bit) == 0u);
    }
    return found;
}

// A loss has shown: from now on half of what is in flight or lost may be outstanding.
fn selective_halve_loss_window(tx: u32, now: u64) {
    let payload = u64(exp_payload);
    let flight = flow_tx[tx].snd_nxt - flow_tx[tx].snd_una - u64(flow_tx[tx].sacked) * payload;
    flow_tx[tx].loss_window = max(flight / 2lu, LOSS_WINDOW_PACKETS * payload);
    flow_tx[tx].back_at = now;
    flow_tx[tx].window_at = now;
}

// A retransmission timeout of queue pair `f`: everything that has not arrived is lost.
fn time_out(f: u32, now: u64) {
    let tx = flow_base + f;
    selective_halve_loss_window(tx, now);
    let una = flow_tx[tx].snd_una;
    let snd_nxt = flow_tx[tx].snd_nxt;
    flow_tx[tx].rtx_next = una;
    flow_tx[tx].rtx_end = snd_nxt;
    flow_tx[tx].lost = missing(f, una, snd_nxt);
}

// A packet that is about to be sent: its first byte, and its payload in bytes.
struct NextPacket {
    seq: u64,
    payload: u32,
}

// Takes the first lost packet of queue pair `f`, to send it again. PRECONDITION: one is lost.
fn take_lost(f: u32) -> NextPacket {
    let tx = flow_base + f;
    let payload = u64(exp_payload);
    var pos = max(flow_tx[tx].rtx_next, flow_tx[tx].snd_una);
    loop {
        let b = sender_bit(f, pos);
        if (psn_bits[b.word] & b.bit) == 0u {
            break;
        }
        pos += payload;
    }
    flow_tx[tx].rtx_next = pos + payload;
    flow_tx[tx].resent = flow_tx[tx].snd_nxt;
    flow_tx[tx].lost -= 1u;
    return NextPacket(pos, payload_at(tx, pos));
}

// Forgets what was lost: everything that was posted has arrived.
fn forget(tx: u32) {
    flow_tx[tx].rtx_next = 0lu;
    flow_tx[tx].rtx_end = 0lu;
    flow_tx[tx].resent = 0lu;
}
