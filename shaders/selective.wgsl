// Receivers that take packets in any order, and senders that send only missing packets again (twin: `src/engine/cpu/transport/selective.rs`).
//
// A packet is known by its position: its first byte, where every packet takes up a whole payload. A bit of `psn_bits` stands for a
// position, and the bits of a queue pair go round: position and position plus range share one.

// Number of bits in a word of `psn_bits`.
const WORD_BITS: u32 = 32u;

// What an acknowledgement brings: the bytes that are known to have arrived now and were not before, and whether it shows a loss that
// the sender has not reacted to.
struct News {
    acked: u64,
    loss: bool,
}

// A word of `psn_bits`, and a bit in it.
struct PsnBit {
    word: u32,
    bit: u32,
}

// Number of bytes of the queue pair in row `tx` that are in flight: sent, neither acknowledged nor lost.
fn outstanding(tx: u32) -> u64 {
    let settled = u64(flow_tx[tx].sacked + flow_tx[tx].lost) * u64(exp_payload);
    return flow_tx[tx].snd_nxt - flow_tx[tx].snd_una - settled;
}

// Whether the queue pair in row `tx` has a packet to send that no window has a say in: one that is lost, or a new one within the range.
fn has_data(tx: u32) -> bool {
    if flow_tx[tx].lost > 0u {
        return true;
    }
    let snd_nxt = flow_tx[tx].snd_nxt;
    let range = u64(exps[exp_row].psn_range) * u64(exp_payload);
    return snd_nxt < flow_tx[tx].size && snd_nxt - flow_tx[tx].snd_una < range;
}

// Word and bit of position `pos` in the receiver's bits of queue pair `f`.
fn receiver_bit(f: u32, pos: u64) -> PsnBit {
    let range = exps[exp_row].psn_range;
    let slot = u32((pos / u64(exp_payload)) % u64(range));
    // Ultra Ethernet has a third set.
    let sets = select(2u, 3u, is_uec());
    return PsnBit(bits_base + f * (sets * range / WORD_BITS) + slot / WORD_BITS, 1u << (slot % WORD_BITS));
}

// Word and bit of position `pos` in the sender's bits of queue pair `f`.
fn sender_bit(f: u32, pos: u64) -> PsnBit {
    let receivers = receiver_bit(f, pos);
    return PsnBit(receivers.word + exps[exp_row].psn_range / WORD_BITS, receivers.bit);
}

// What `take_in` returns: whether the packet is answered at once, and how many packets it lies beyond the expected one.
struct TakenIn {
    at_once: bool,
    offset: u64,
}

// The packet at position `seq` of queue pair `f` has arrived.
fn take_in(f: u32, seq: u64) -> TakenIn {
    let rx = flow_base + f;
    let payload = u64(exp_payload);
    var expected = flow_rx[rx].expected;
    var beyond = flow_rx[rx].beyond;
    if seq > expected {
        let b = receiver_bit(f, seq);
        if (psn_bits[b.word] & b.bit) == 0u {
            psn_bits[b.word] |= b.bit;
            flow_rx[rx].beyond = beyond + 1u;
        }
        return TakenIn(true, (seq - expected) / payload);
    }
    if seq < expected {
        return TakenIn(true, 0lu);
    }
    let had_gap = beyond > 0u;
    expected += payload;
    while beyond > 0u {
        let b = receiver_bit(f, expected);
        if (psn_bits[b.word] & b.bit) == 0u {
            break;
        }
        psn_bits[b.word] &= ~b.bit;
        beyond -= 1u;
        expected += payload;
    }
    flow_rx[rx].expected = expected;
    flow_rx[rx].beyond = beyond;
    return TakenIn(had_gap, 0lu);
}

// An acknowledgement on queue pair `f`: `answer` is its sequence number with the offset, and the data it answers was sent at `sent_at`.
fn acknowledge(f: u32, answer: u64, sent_at: u64, now: u64) -> News {
    let tx = flow_base + f;
    let payload = u64(exp_payload);
    let seq = answer & PSN_BYTE_MASK;
    let offset = answer >> PSN_OFFSET_SHIFT;
    var acked = selective_advance(f, seq) * payload;
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

// The packet at `pos`, not known to have arrived until now, is not lost any more if it was.
fn uncount_lost(tx: u32, pos: u64) {
    if flow_tx[tx].rtx_next <= pos && pos < flow_tx[tx].rtx_end {
        flow_tx[tx].lost -= 1u;
    }
}

// Moves the oldest unacknowledged byte to `seq`, if that is progress. Returns the number of packets that were not known to have arrived.
fn selective_advance(f: u32, seq: u64) -> u64 {
    let tx = flow_base + f;
    let una = flow_tx[tx].snd_una;
    if seq <= una {
        return 0lu;
    }
    var news = 0lu;
    for (var pos = una; pos < seq; pos += u64(exp_payload)) {
        let b = sender_bit(f, pos);
        if (psn_bits[b.word] & b.bit) != 0u {
            psn_bits[b.word] &= ~b.bit;
            flow_tx[tx].sacked -= 1u;
        } else {
            news += 1lu;
            uncount_lost(tx, pos);
        }
    }
    flow_tx[tx].rtx_next = max(flow_tx[tx].rtx_next, seq);
    reach(tx, seq);
    return news;
}

// The packet at position `pos` has arrived. Returns whether that is news.
fn take_note(f: u32, pos: u64) -> bool {
    let tx = flow_base + f;
    let b = sender_bit(f, pos);
    if pos < flow_tx[tx].snd_una || (psn_bits[b.word] & b.bit) != 0u {
        return false;
    }
    psn_bits[b.word] |= b.bit;
    flow_tx[tx].sacked += 1u;
    uncount_lost(tx, pos);
    return true;
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
    var message = flow_tx[tx].msg_ack;
    var end = flow_tx[tx].ack_end;
    while pos >= end {
        message = tasks[task_base + message].follow;
        end = next_start(end) + tasks[task_base + message].bytes;
    }
    return NextPacket(pos, u32(min(payload, end - pos)));
}

// Forgets what was lost: everything that was posted has arrived.
fn forget(tx: u32) {
    flow_tx[tx].rtx_next = 0lu;
    flow_tx[tx].rtx_end = 0lu;
    flow_tx[tx].resent = 0lu;
}
