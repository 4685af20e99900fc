// The receiving side of a queue pair (twin: `src/engine/cpu/transport/receiver.rs`).

// Whether data from byte `seq`, which is beyond what is expected, is answered with a NACK.
//
// As adapters do it, each gap gets one. It has had its NACK until the expected byte arrives, or until sequence numbers fall
// back: then the sender has stepped back, and what is expected was lost once more.
fn is_nack_due(rx: u32, seq: u64, now: u64) -> bool {
    let nacked = flow_rx[rx].nack_seq;
    if !has_mode(MODE_NS3_LOSS) {
        flow_rx[rx].nack_seq = seq;
        return seq <= nacked;
    }
    let expected = flow_rx[rx].expected;
    if now < flow_rx[rx].nack_t && nacked == expected {
        return false;
    }
    flow_rx[rx].nack_t = now + exps[exp_row].nack_interval;
    flow_rx[rx].nack_seq = expected;
    return true;
}

// What `take_in_order` returns: the kind of the answer, and whether one is due.
struct Answer {
    kind: u32,
    due: bool,
}

// The packet from byte `seq` on with `payload` bytes has arrived in row `rx`, where the sender goes back N.
fn take_in_order(rx: u32, seq: u64, payload: u32, now: u64) -> Answer {
    let expected = flow_rx[rx].expected;
    if seq > expected {
        return Answer(KIND_NACK, is_nack_due(rx, seq, now));
    }
    if !has_mode(MODE_NS3_LOSS) {
        flow_rx[rx].nack_seq = NEVER;
    }
    if seq < expected {
        return Answer(KIND_ACK, true);
    }
    flow_rx[rx].expected = expected + u64(payload);
    return Answer(KIND_ACK, is_ack_due(rx));
}

// Whether the expected byte, which has just grown, is one that is acknowledged at once.
fn is_ack_due(rx: u32) -> bool {
    let expected = flow_rx[rx].expected;
    let milestone = expected >= flow_rx[rx].milestone;
    if milestone {
        flow_rx[rx].milestone += exps[exp_row].ack_interval;
    }
    return milestone || expected % exps[exp_row].chunk == 0lu || expected >= flow_rx[rx].msg_end;
}

// Data packet `p` has arrived whole at NIC `n`. Returns whether an answer or credit was queued; the data packet's record becomes the
// answer, or is held until the next one.
fn on_data(n: u32, p: u32, event: EventKey) -> bool {
    let now = event.t;
    let pk = packet_base + p;
    let f = packets[pk].flow;
    let rx = flow_base + f;
    let payload = packets[pk].payload;
    var seq = details[pk].seq;
    var want = 0u;
    if takes_credit() {
        want = u32(seq >> PSN_OFFSET_SHIFT);
        seq &= PSN_BYTE_MASK;
        details[pk].seq = seq;
    }
    flow_rx[rx].arrived_bytes += u64(payload);
    var answer = KIND_ACK;
    var due = false;
    var answer_seq = 0lu;
    if is_uec() {
        let taken = uec_answer(f, packets[pk].meta_, seq);
        answer = taken.kind;
        due = taken.due;
        answer_seq = taken.seq;
    } else if takes_any_order() {
        let is_expected = seq == flow_rx[rx].expected;
        let taken = take_in(f, seq);
        if is_expected {
            due = is_ack_due(rx);
        }
        due = due || taken.at_once;
        answer_seq = flow_rx[rx].expected | (taken.offset << PSN_OFFSET_SHIFT);
    } else {
        let taken = take_in_order(rx, seq, payload, now);
        answer = taken.kind;
        due = taken.due;
        answer_seq = flow_rx[rx].expected;
    }
    let arrived = flow_rx[rx].msg;
    var msg = arrived;
    while msg != NONE {
        let msg_end = flow_rx[rx].msg_end;
        if flow_rx[rx].expected < msg_end {
            break;
        }
        msg = tasks[task_base + msg].follow;
        flow_rx[rx].msg = msg;
        if msg != NONE {
            flow_rx[rx].msg_end = next_start(msg_end) + tasks[task_base + msg].bytes;
        }
    }
    delivered(arrived, msg);
    if !due {
        packets[pk].next = flow_rx[rx].held;
        flow_rx[rx].held = p;
        return takes_credit() && on_want(n, f, want, false, event);
    }
    let old_meta = packets[pk].meta_;
    var new_meta = exp_ack_bytes | (answer << META_KIND_SHIFT);
    if is_uec() {
        new_meta |= answer_meta(old_meta);
    } else {
        new_meta |= old_meta & META_ANSWERED;
    }
    let cnp_interval = exps[exp_row].cnp_interval;
    if (old_meta & META_MARKED) != 0u && (cnp_interval == 0lu || now >= flow_rx[rx].cnp_t) {
        new_meta |= META_CNP;
        flow_rx[rx].cnp_t = now + cnp_interval;
    }
    packets[pk].meta_ = new_meta;
    details[pk].seq = answer_seq;
    // A NACK of Ultra Ethernet names no packet that has arrived.
    if answer == KIND_NACK && is_uec() {
        packets[pk].payload = NONE;
    } else {
        packets[pk].payload = flow_rx[rx].held;
        flow_rx[rx].held = NONE;
    }
    queue_answer(n, f, p);
    if takes_credit() {
        on_want(n, f, want, answer == KIND_NACK, event);
    }
    return true;
}
