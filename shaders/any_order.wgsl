// Positions of packets that arrive in any order, and the bits that stand for them (twin: `src/engine/cpu/transport/any_order.rs`).
//
// A packet is known by its position: its first byte, where every packet takes up a whole payload. A bit of `psn_bits` stands for a
// position, and the bits of a queue pair go round: position and position plus range share one.

// Number of bits in a word of `psn_bits`.
const WORD_BITS: u32 = 32u;

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

// Number of words in `psn_bits` that each queue pair has. Ultra Ethernet has a third set of bits, and words for entropies where they are mixed.
fn words_of_qp() -> u32 {
    let range = exps[exp_row].psn_range;
    var words = select(2u, 3u, is_uec()) * range / WORD_BITS;
    if is_mixed() {
        words += range / BYTES_IN_WORD + MIXED_WORDS;
    }
    return words;
}

// Word and bit of position `pos` in the receiver's bits of queue pair `f`.
fn receiver_bit(f: u32, pos: u64) -> PsnBit {
    let range = exps[exp_row].psn_range;
    let slot = u32((pos / u64(exp_payload)) % u64(range));
    return PsnBit(bits_base + f * words_of_qp() + slot / WORD_BITS, 1u << (slot % WORD_BITS));
}

// Word and bit of position `pos` in the sender's bits of queue pair `f`.
fn sender_bit(f: u32, pos: u64) -> PsnBit {
    let receivers = receiver_bit(f, pos);
    return PsnBit(receivers.word + exps[exp_row].psn_range / WORD_BITS, receivers.bit);
}

// Word and bit of position `pos` in the lost bits of queue pair `f`.
fn lost_bit(f: u32, pos: u64) -> PsnBit {
    let senders = sender_bit(f, pos);
    return PsnBit(senders.word + exps[exp_row].psn_range / WORD_BITS, senders.bit);
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

// The packet at `pos`, not known to have arrived until now, is not lost any more if it was.
fn uncount_lost(f: u32, pos: u64) {
    if is_uec() {
        take_out(f, pos);
        return;
    }
    let tx = flow_base + f;
    if flow_tx[tx].rtx_next <= pos && pos < flow_tx[tx].rtx_end {
        flow_tx[tx].lost -= 1u;
    }
}

// Moves the oldest unacknowledged byte to `seq`, if that is progress. Returns the number of packets that were not known to have arrived.
fn acknowledge_to(f: u32, seq: u64) -> u64 {
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
            uncount_lost(f, pos);
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
    uncount_lost(f, pos);
    return true;
}

// Takes position `pos` out of the lost ones.
fn take_out(f: u32, pos: u64) {
    let b = lost_bit(f, pos);
    if (psn_bits[b.word] & b.bit) != 0u {
        psn_bits[b.word] &= ~b.bit;
        flow_tx[flow_base + f].lost -= 1u;
    }
}

// Payload in bytes of the packet at position `pos` of the queue pair in row `tx`, which was sent and is not acknowledged.
fn payload_at(tx: u32, pos: u64) -> u32 {
    var message = flow_tx[tx].msg_ack;
    var end = flow_tx[tx].ack_end;
    while pos >= end {
        message = tasks[task_base + message].follow;
        end = next_start(end) + tasks[task_base + message].bytes;
    }
    return u32(min(u64(exp_payload), end - pos));
}
