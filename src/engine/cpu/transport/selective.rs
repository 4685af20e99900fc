//! Receivers that take packets in any order, and senders that send only missing packets again (`docs/explanation/model-semantics.md`, "Packets in any
//! order"). Twin: `shaders/selective.wgsl`.
//!
//! A packet is known by its position: its first byte, where every packet takes up a whole payload. A bit of `psn_bits` stands for a position, and the bits of a
//! queue pair go round: position and position plus range share one.

use super::stream::{next_start, reach};
use hyperfold_columns::{Column, Exp, FlowIdx, FlowRx, FlowTx, LOSS_WINDOW_PACKETS, Tables, psn};

/// Number of bits in a word of `psn_bits`.
pub(super) const WORD_BITS: u32 = 32;

/// What an acknowledgement brings.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// Bytes that are known to have arrived now, and were not before.
    pub acked: u64,
    /// Whether it shows a loss that the sender has not reacted to.
    pub loss: bool,
}

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

/// Word and bit of `position` in the receiver's bits of queue pair `f`.
pub(super) fn receiver_bit(e: &Exp, f: FlowIdx, position: u64) -> (usize, u32) {
    let slot = ((position / e.payload as u64) % e.psn_range as u64) as u32;
    ((f.0 * (e.bits_of_qp() / WORD_BITS) + slot / WORD_BITS) as usize, 1 << (slot % WORD_BITS))
}

/// Word and bit of `position` in the sender's bits of queue pair `f`.
pub(super) fn sender_bit(e: &Exp, f: FlowIdx, position: u64) -> (usize, u32) {
    let (word, bit) = receiver_bit(e, f, position);
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

/// Handles an acknowledgement on queue pair `f`: `answer` is its sequence number with the offset, and the data it answers was sent at `sent_at`.
pub fn acknowledge(t: &mut Tables, f: FlowIdx, answer: u64, sent_at: u64, now: u64) -> News {
    let e = &t.exps[0];
    let (payload, threshold) = (e.payload as u64, threshold(e, &t.flow_tx[f]));
    let (seq, offset) = (answer & psn::BYTE_MASK, answer >> psn::OFFSET_SHIFT);
    let mut acked = advance(t, f, seq) * payload;
    let mut found = 0;
    if offset > 0 {
        let position = seq + offset * payload;
        acked += u64::from(take_note(t, f, position)) * payload;
        let end = (position + payload).saturating_sub(threshold * payload);
        found = count_lost(t, f, end);
    }
    let tx = &mut t.flow_tx[f];
    let loss = found > 0 && (tx.loss_window == 0 || sent_at >= tx.back_at);
    if loss {
        halve_loss_window(t, f, now);
    }
    News { acked, loss }
}

/// Number of packets after which a missing one counts as lost.
fn threshold(e: &Exp, tx: &FlowTx) -> u64 {
    let threshold = match e.packet_threshold {
        0 if tx.n_paths > 1 => tx.window.div_ceil(e.payload as u64),
        0 => 1,
        given => given as u64,
    };
    threshold.min(e.psn_range as u64 / 2)
}

/// Notes that the packet at `position`, which was not known to have arrived, is not lost any more if it was.
fn uncount_lost(tx: &mut FlowTx, position: u64) {
    tx.lost -= u32::from(tx.rtx_next <= position && position < tx.rtx_end);
}

/// Moves the oldest unacknowledged byte to `seq`, if that is progress. Returns the number of packets that were not known to have arrived.
fn advance(t: &mut Tables, f: FlowIdx, seq: u64) -> u64 {
    let e = &t.exps[0];
    let payload = e.payload as u64;
    let tx = &mut t.flow_tx[f];
    let mut news = 0;
    let mut position = tx.snd_una;
    while position < seq {
        let (word, bit) = sender_bit(e, f, position);
        if t.psn_bits[word] & bit != 0 {
            t.psn_bits[word] &= !bit;
            tx.sacked -= 1;
        } else {
            news += 1;
            uncount_lost(tx, position);
        }
        position += payload;
    }
    if seq > tx.snd_una {
        tx.rtx_next = tx.rtx_next.max(seq);
        reach(t, f, seq);
    }
    news
}

/// Notes that the packet at `position` has arrived. Returns whether that is news.
fn take_note(t: &mut Tables, f: FlowIdx, position: u64) -> bool {
    let tx = &mut t.flow_tx[f];
    let (word, bit) = sender_bit(&t.exps[0], f, position);
    if position < tx.snd_una || t.psn_bits[word] & bit != 0 {
        return false;
    }
    t.psn_bits[word] |= bit;
    tx.sacked += 1;
    uncount_lost(tx, position);
    true
}

/// Counts as lost what is missing below byte `end`, and what was sent again and would have arrived by now. Returns the number of packets that are lost now
/// and were not before.
fn count_lost(t: &mut Tables, f: FlowIdx, end: u64) -> u32 {
    let tx = &t.flow_tx[f];
    let mut found = 0;
    if end > tx.rtx_end {
        let from = tx.rtx_end.max(tx.rtx_next).max(tx.snd_una);
        found += missing(t, f, from, end);
        t.flow_tx[f].rtx_end = end;
    }
    let tx = &t.flow_tx[f];
    if end > tx.resent && tx.rtx_next > tx.snd_una {
        found += missing(t, f, tx.snd_una, tx.rtx_next);
        t.flow_tx[f].rtx_next = t.flow_tx[f].snd_una;
    }
    t.flow_tx[f].lost += found;
    found
}

/// Number of packets from byte `from` to below byte `to` that are not known to have arrived.
fn missing(t: &Tables, f: FlowIdx, from: u64, to: u64) -> u32 {
    let e = &t.exps[0];
    let mut found = 0;
    let mut position = from;
    while position < to {
        let (word, bit) = sender_bit(e, f, position);
        found += u32::from(t.psn_bits[word] & bit == 0);
        position += e.payload as u64;
    }
    found
}

/// Reacts to a loss: from now on half of what is in flight or lost may be outstanding.
fn halve_loss_window(t: &mut Tables, f: FlowIdx, now: u64) {
    let payload = t.exps[0].payload as u64;
    let tx = &mut t.flow_tx[f];
    let flight = tx.snd_nxt - tx.snd_una - tx.sacked as u64 * payload;
    tx.loss_window = (flight / 2).max(LOSS_WINDOW_PACKETS * payload);
    (tx.back_at, tx.window_at) = (now, now);
}

/// Handles a retransmission timeout of queue pair `f`: everything that has not arrived is lost.
pub fn time_out(t: &mut Tables, f: FlowIdx, now: u64) {
    halve_loss_window(t, f, now);
    let tx = &t.flow_tx[f];
    let lost = missing(t, f, tx.snd_una, tx.snd_nxt);
    let tx = &mut t.flow_tx[f];
    (tx.rtx_next, tx.rtx_end, tx.lost) = (tx.snd_una, tx.snd_nxt, lost);
}

/// Takes the first lost packet of queue pair `f`, to send it again. Returns its position and its payload in bytes.
///
/// PRECONDITION: one is lost.
pub fn take_lost(t: &mut Tables, f: FlowIdx) -> (u64, u32) {
    let e = &t.exps[0];
    let payload = e.payload as u64;
    let tx = &mut t.flow_tx[f];
    let mut position = tx.rtx_next.max(tx.snd_una);
    loop {
        let (word, bit) = sender_bit(e, f, position);
        if t.psn_bits[word] & bit == 0 {
            break;
        }
        position += payload;
    }
    (tx.rtx_next, tx.resent) = (position + payload, tx.snd_nxt);
    tx.lost -= 1;
    let (mut message, mut end) = (tx.msg_ack, tx.ack_end);
    while position >= end {
        message = t.tasks[message].follow;
        end = next_start(e, end) + t.tasks[message].bytes;
    }
    (position, payload.min(end - position) as u32)
}

/// Forgets what was lost: everything that was posted has arrived.
pub fn forget(tx: &mut FlowTx) {
    (tx.rtx_next, tx.rtx_end, tx.resent) = (0, 0, 0);
}
