//! Positions of packets that arrive in any order, and the bits that stand for them (`docs/explanation/model-semantics.md`, "Packets in any order"). Twin:
//! `shaders/any_order.wgsl`.
//!
//! A packet is known by its position: its first byte, where every packet takes up a whole payload. A bit of `psn_bits` stands for a position, and the bits of a
//! queue pair go round: position and position plus range share one.

use super::stream::{is_uec, next_start, reach};
use hyperfold_columns::{Column, Exp, FlowIdx, FlowRx, FlowTx, Tables};

/// Number of bits in a word of `psn_bits`.
const WORD_BITS: u32 = 32;

/// Number of bytes of a queue pair that are in flight: sent, neither acknowledged nor lost.
#[inline]
pub fn outstanding(e: &Exp, tx: &FlowTx) -> u64 {
    tx.snd_nxt - tx.snd_una - (tx.sacked + tx.lost) as u64 * e.payload as u64
}

/// Whether a queue pair has a packet to send that no window has a say in: one that is lost, or a new one within the range.
#[inline]
pub fn has_data(e: &Exp, tx: &FlowTx) -> bool {
    let range = e.psn_range as u64 * e.payload as u64;
    tx.lost > 0 || (tx.snd_nxt < tx.size && tx.snd_nxt - tx.snd_una < range)
}

/// Number of words in `psn_bits` that each queue pair has.
#[inline]
pub(super) fn words_of_qp(e: &Exp) -> u32 {
    e.bits_of_qp() / WORD_BITS
}

/// Word and bit of `position` in the receiver's bits of queue pair `f`.
pub(super) fn receiver_bit(e: &Exp, f: FlowIdx, position: u64) -> (usize, u32) {
    let slot = ((position / e.payload as u64) % e.psn_range as u64) as u32;
    ((f.0 * words_of_qp(e) + slot / WORD_BITS) as usize, 1 << (slot % WORD_BITS))
}

/// Word and bit of `position` in the sender's bits of queue pair `f`.
pub(super) fn sender_bit(e: &Exp, f: FlowIdx, position: u64) -> (usize, u32) {
    let (word, bit) = receiver_bit(e, f, position);
    (word + (e.psn_range / WORD_BITS) as usize, bit)
}

/// Word and bit of `position` in the lost bits of queue pair `f`.
pub(super) fn lost_bit(e: &Exp, f: FlowIdx, position: u64) -> (usize, u32) {
    let (word, bit) = sender_bit(e, f, position);
    (word + (e.psn_range / WORD_BITS) as usize, bit)
}

/// Handles the arrival of the packet at position `seq` on queue pair `f`. Returns whether it is answered at once, and how many packets it lies beyond
/// the expected one.
pub fn take_in(e: &Exp, rx: &mut FlowRx, bits: &mut Column<'_, u32>, f: FlowIdx, seq: u64) -> (bool, u64) {
    let payload = e.payload as u64;
    if seq > rx.expected {
        let (word, bit) = receiver_bit(e, f, seq);
        rx.beyond += u32::from(bits[word] & bit == 0);
        bits[word] |= bit;
        return (true, (seq - rx.expected) / payload);
    }
    if seq < rx.expected {
        return (true, 0);
    }
    let had_gap = rx.beyond > 0;
    rx.expected += payload;
    while rx.beyond > 0 {
        let (word, bit) = receiver_bit(e, f, rx.expected);
        if bits[word] & bit == 0 {
            break;
        }
        bits[word] &= !bit;
        rx.beyond -= 1;
        rx.expected += payload;
    }
    (had_gap, 0)
}

/// Notes that the packet at `position`, which was not known to have arrived, is not lost any more if it was.
fn uncount_lost(t: &mut Tables, f: FlowIdx, position: u64) {
    if is_uec(&t.exps[0]) {
        return take_out(t, f, position);
    }
    let tx = &mut t.flow_tx[f];
    tx.lost -= u32::from(tx.rtx_next <= position && position < tx.rtx_end);
}

/// Moves the oldest unacknowledged byte to `seq`, if that is progress. Returns the number of packets that were not known to have arrived.
pub(super) fn acknowledge_to(t: &mut Tables, f: FlowIdx, seq: u64) -> u64 {
    let payload = t.exps[0].payload as u64;
    let mut news = 0;
    let mut position = t.flow_tx[f].snd_una;
    while position < seq {
        let (word, bit) = sender_bit(&t.exps[0], f, position);
        if t.psn_bits[word] & bit != 0 {
            t.psn_bits[word] &= !bit;
            t.flow_tx[f].sacked -= 1;
        } else {
            news += 1;
            uncount_lost(t, f, position);
        }
        position += payload;
    }
    let tx = &mut t.flow_tx[f];
    if seq > tx.snd_una {
        tx.rtx_next = tx.rtx_next.max(seq);
        reach(t, f, seq);
    }
    news
}

/// Notes that the packet at `position` has arrived. Returns whether that is news.
pub(super) fn take_note(t: &mut Tables, f: FlowIdx, position: u64) -> bool {
    let (word, bit) = sender_bit(&t.exps[0], f, position);
    if position < t.flow_tx[f].snd_una || t.psn_bits[word] & bit != 0 {
        return false;
    }
    t.psn_bits[word] |= bit;
    t.flow_tx[f].sacked += 1;
    uncount_lost(t, f, position);
    true
}

/// Takes `position` out of the lost ones.
pub(super) fn take_out(t: &mut Tables, f: FlowIdx, position: u64) {
    let (word, bit) = lost_bit(&t.exps[0], f, position);
    if t.psn_bits[word] & bit != 0 {
        t.psn_bits[word] &= !bit;
        t.flow_tx[f].lost -= 1;
    }
}

/// Payload in bytes of the packet at `position`, which was sent and is not acknowledged.
pub(super) fn payload_at(t: &Tables, f: FlowIdx, position: u64) -> u32 {
    let e = &t.exps[0];
    let tx = &t.flow_tx[f];
    let (mut message, mut end) = (tx.msg_ack, tx.ack_end);
    while position >= end {
        message = t.tasks[message].follow;
        end = next_start(e, end) + t.tasks[message].bytes;
    }
    (e.payload as u64).min(end - position) as u32
}
