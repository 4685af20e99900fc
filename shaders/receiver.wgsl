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

// Data packet `p` has arrived whole at NIC `n`. Returns whether an answer was queued; the data packet's record becomes the
// answer, or is held until the next one.
fn on_data(n: u32, p: u32, now: u64) -> bool {
    let pk = packet_base + p;
    let rx = flow_base + packets[pk].flow;
    let payload = u64(packets[pk].payload);
    let seq = details[pk].seq;
    let expected = flow_rx[rx].expected;
    flow_rx[rx].arrived_bytes += payload;
    var answer = KIND_ACK;
    var due = true;
    if seq == expected {
        let reached = expected + payload;
        flow_rx[rx].expected = reached;
        if !has_mode(MODE_NS3_LOSS) {
            flow_rx[rx].nack_seq = NEVER;
        }
        let milestone = reached >= flow_rx[rx].milestone;
        if milestone {
            flow_rx[rx].milestone += exps[exp_row].ack_interval;
        }
        let msg_end = flow_rx[rx].msg_end;
        due = milestone || reached % exps[exp_row].chunk == 0lu || reached >= msg_end;
        let msg = flow_rx[rx].msg;
        if reached == msg_end && msg != NONE {
            delivered(msg, now);
            let follow = tasks[task_base + msg].follow;
            flow_rx[rx].msg = follow;
            if follow != NONE {
                flow_rx[rx].msg_end = msg_end + tasks[task_base + follow].bytes;
            }
        }
    } else if seq > expected {
        answer = KIND_NACK;
        due = is_nack_due(rx, seq, now);
    } else if !has_mode(MODE_NS3_LOSS) {
        flow_rx[rx].nack_seq = NEVER;
    }
    if !due {
        packets[pk].next = flow_rx[rx].held;
        flow_rx[rx].held = p;
        return false;
    }
    let old_meta = packets[pk].meta_;
    var new_meta = exp_ack_bytes | (answer << META_KIND_SHIFT) | (old_meta & (META_INT_MASK << META_INT_SHIFT));
    let cnp_interval = exps[exp_row].cnp_interval;
    if (old_meta & META_MARKED) != 0u && (cnp_interval == 0lu || now >= flow_rx[rx].cnp_t) {
        new_meta |= META_CNP;
        flow_rx[rx].cnp_t = now + cnp_interval;
    }
    packets[pk].meta_ = new_meta;
    details[pk].seq = flow_rx[rx].expected;
    packets[pk].payload = flow_rx[rx].held;
    flow_rx[rx].held = NONE;
    var path = flow_rx[rx].path_first;
    let n_paths = flow_rx[rx].n_paths;
    if n_paths > 1u {
        let draw = hash32(flow_rx[rx].flow_id, flow_rx[rx].n_acks, 1u, exps[exp_row].routing_seed);
        path += draw % n_paths * flow_rx[rx].path_len;
    }
    packets[pk].path = path;
    flow_rx[rx].n_acks += 1u;
    packets[pk].next = NONE;
    let tail = nics[nic_base + n].ack_tail;
    nics[nic_base + n].ack_tail = p;
    if tail == NONE {
        own.ack_head = p;
    } else {
        packets[packet_base + tail].next = p;
    }
    return true;
}
