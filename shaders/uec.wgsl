// Receivers and senders of Ultra Ethernet: an ACK names all packets that arrived since the last one, and a NACK names one that a switch has trimmed (twin:
// `src/engine/cpu/transport/uec.rs`).
//
// Positions and their bits are those of `any_order.wgsl`. A third set of bits holds the positions that are lost.

// The answer to a data packet: its kind, whether it is due now, and its sequence number with the offset of an ACK.
struct UecAnswer {
    kind: u32,
    due: bool,
    seq: u64,
}

// What an answer brings: packets that are known to have arrived now and were not before, and whether it is a NACK of a packet that was neither lost nor
// acknowledged.
struct UecNews {
    packets: u64,
    nacked: bool,
}

// Number of bytes in flight of the queue pair in row `tx`, each packet counted as a full one on the wire.
fn in_flight(tx: u32) -> u64 {
    return outstanding(tx) / u64(exp_payload) * full_wire();
}

// Whether the window of the queue pair in row `tx` has space for one more packet, and there is credit for it.
fn is_within_window(tx: u32) -> bool {
    return in_flight(tx) + full_wire() <= flow_tx[tx].win && (!takes_credit() || flow_tx[tx].credit > 0u);
}

// The mark of the packet that is sent next if it asks for an acknowledgement, else 0.
fn asks(tx: u32) -> u32 {
    let is_last = flow_tx[tx].snd_nxt + u64(exp_payload) >= flow_tx[tx].size;
    let fills_window = in_flight(tx) + 2lu * full_wire() > flow_tx[tx].win;
    let ends_credit = takes_credit() && flow_tx[tx].credit == 1u;
    return select(0u, META_ASKS, flow_tx[tx].lost > 0u || is_last || fills_window || ends_credit);
}

// Data packet with `meta_word` at position `seq` of queue pair `f` has arrived.
fn uec_answer(f: u32, meta_word: u32, seq: u64) -> UecAnswer {
    let rx = flow_base + f;
    let expected = flow_rx[rx].expected;
    var has_arrived = seq < expected;
    if seq > expected {
        let b = receiver_bit(f, seq);
        has_arrived = (psn_bits[b.word] & b.bit) != 0u;
    }
    let is_trimmed = (meta_word & META_TRIMMED) != 0u;
    if is_trimmed && !has_arrived {
        return UecAnswer(KIND_NACK, true, seq);
    }
    let first = flow_rx[rx].n_acks == 0u;
    var offset = 0lu;
    if !is_trimmed {
        offset = take_in(f, seq).offset;
    } else if seq > expected {
        offset = (seq - expected) / u64(exp_payload);
    }
    let arrived_bytes = flow_rx[rx].arrived_bytes;
    let now_expected = flow_rx[rx].expected;
    let enough = arrived_bytes >= flow_rx[rx].milestone || now_expected >= flow_rx[rx].msg_end;
    let due = has_arrived || (meta_word & (META_MARKED | META_ASKS)) != 0u || first || enough;
    if due {
        flow_rx[rx].milestone = arrived_bytes + exps[exp_row].ack_interval;
    }
    return UecAnswer(KIND_ACK, due, now_expected | (offset << PSN_OFFSET_SHIFT));
}

// Bits of an answer that come from the data packet with `data_meta`.
fn answer_meta(data_meta: u32) -> u32 {
    let mark = select(0u, META_CNP, (data_meta & META_MARKED) != 0u);
    return mark | (data_meta >> META_ENTROPY_SHIFT << META_ENTROPY_SHIFT) | (data_meta & META_LAST_HOP);
}

// Answer `p` to data of queue pair `f` has come back.
fn uec_on_answer(f: u32, p: u32) -> UecNews {
    let pk = packet_base + p;
    let tx = flow_base + f;
    let meta_word = packets[pk].meta_;
    let is_nack = packet_kind(meta_word) == KIND_NACK;
    let keeps = !is_nack || (meta_word & META_LAST_HOP) != 0u;
    let chooses = has_mode(MODE_REPS) && flow_tx[tx].n_paths > 1u;
    if chooses && is_mixed() {
        learn(f, meta_word);
    } else if chooses && (meta_word & META_CNP) == 0u && keeps {
        keep_entropy(tx, meta_word >> META_ENTROPY_SHIFT);
    }
    let seq = details[pk].seq;
    if is_nack {
        return UecNews(0lu, lose(f, seq));
    }
    let una = seq & PSN_BYTE_MASK;
    let offset = seq >> PSN_OFFSET_SHIFT;
    var count = acknowledge_to(f, una);
    var pos = una + offset * u64(exp_payload);
    var is_named = offset > 0lu;
    var named = packets[pk].payload;
    loop {
        if is_named && take_note(f, pos) {
            count += 1lu;
        }
        if named == NONE {
            break;
        }
        pos = details[packet_base + named].seq;
        is_named = true;
        named = packets[packet_base + named].next;
    }
    return UecNews(count, false);
}

// Adds position `pos` to the lost ones, unless it is one or has arrived. Returns whether it did.
fn lose(f: u32, pos: u64) -> bool {
    let tx = flow_base + f;
    let sent = sender_bit(f, pos);
    let b = lost_bit(f, pos);
    if pos < flow_tx[tx].snd_una || ((psn_bits[sent.word] | psn_bits[b.word]) & b.bit) != 0u {
        return false;
    }
    psn_bits[b.word] |= b.bit;
    flow_tx[tx].lost += 1u;
    return true;
}

// Takes the first lost packet of queue pair `f`, to send it again. PRECONDITION: one is lost.
fn uec_take_lost(f: u32) -> NextPacket {
    let tx = flow_base + f;
    let payload = u64(exp_payload);
    var pos = flow_tx[tx].snd_una;
    loop {
        let b = lost_bit(f, pos);
        if (psn_bits[b.word] & b.bit) != 0u {
            break;
        }
        pos += payload;
    }
    take_out(f, pos);
    return NextPacket(pos, payload_at(tx, pos));
}

// A retransmission timeout of queue pair `f`: everything that has not arrived is lost, and NSCC's window falls by what was in flight. Returns whether anything
// was.
fn uec_time_out(f: u32, now: u64) -> bool {
    let tx = flow_base + f;
    let end = flow_tx[tx].snd_nxt;
    var count = 0lu;
    for (var pos = flow_tx[tx].snd_una; pos < end; pos += u64(exp_payload)) {
        if lose(f, pos) {
            count += 1lu;
            if is_mixed() {
                distrust(f, pos);
            }
        }
    }
    if exp_cc == CC_NSCC {
        let mtu = full_wire();
        flow_tx[tx].win = max(sub_sat(flow_tx[tx].win, count * mtu), mtu);
    }
    credit_time_out(tx, count, now);
    return count > 0lu;
}
