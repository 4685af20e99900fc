// The bytes of a queue pair: where its messages begin, and how far they are acknowledged (twin: `src/engine/cpu/transport/stream.rs`).

// Whether receivers of the experiment take packets in any order.
fn takes_any_order() -> bool {
    return has_mode(MODE_SELECTIVE);
}

// Whether receivers and senders are those of Ultra Ethernet, which take packets in any order too.
fn is_uec() -> bool {
    return has_mode(MODE_UEC);
}

// Whether senders need credit from their receivers.
fn takes_credit() -> bool {
    return has_mode(MODE_CREDIT);
}

// Bytes of a full packet on the wire.
fn full_wire() -> u64 {
    return u64(exp_payload + exp_data_overhead);
}

// The byte at which a message begins that follows one which ends at byte `end`. Where packets are taken in any order, it is a multiple of the payload.
fn next_start(end: u64) -> u64 {
    if !takes_any_order() {
        return end;
    }
    let payload = u64(exp_payload);
    return (end + payload - 1lu) / payload * payload;
}

// Moves the oldest unacknowledged byte of the queue pair in row `tx` to `una`, and with it the oldest message that is not acknowledged.
fn reach(tx: u32, una: u64) {
    flow_tx[tx].snd_una = una;
    flow_tx[tx].retries = 0u;
    flow_tx[tx].stalls = 0u;
    var oldest = flow_tx[tx].msg_ack;
    while oldest != NONE {
        let ack_end = flow_tx[tx].ack_end;
        if una < ack_end {
            break;
        }
        oldest = tasks[task_base + oldest].follow;
        flow_tx[tx].msg_ack = oldest;
        if oldest != NONE {
            flow_tx[tx].ack_end = next_start(ack_end) + tasks[task_base + oldest].bytes;
        }
    }
}
