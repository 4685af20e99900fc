//! Senders that send only missing packets again, by selective acknowledgements (`docs/explanation/model-semantics.md`, "Packets in any order"). Twin:
//! `shaders/selective.wgsl`.

use super::any_order::{acknowledge_to, payload_at, sender_bit, take_note};
use hyperfold_columns::{Exp, FlowIdx, FlowTx, LOSS_WINDOW_PACKETS, Tables, psn};

/// What an acknowledgement brings.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// Bytes that are known to have arrived now, and were not before.
    pub acked: u64,
    /// Whether it shows a loss that the sender has not reacted to.
    pub loss: bool,
}

/// Handles an acknowledgement on queue pair `f`: `answer` is its sequence number with the offset, and the data it answers was sent at `sent_at`.
pub fn acknowledge(t: &mut Tables, f: FlowIdx, answer: u64, sent_at: u64, now: u64) -> News {
    let e = &t.exps[0];
    let (payload, threshold) = (e.payload as u64, threshold(e, &t.flow_tx[f]));
    let (seq, offset) = (answer & psn::BYTE_MASK, answer >> psn::OFFSET_SHIFT);
    let mut acked = acknowledge_to(t, f, seq) * payload;
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
    (position, payload_at(t, f, position))
}

/// Forgets what was lost: everything that was posted has arrived.
pub fn forget(tx: &mut FlowTx) {
    (tx.rtx_next, tx.rtx_end, tx.resent) = (0, 0, 0);
}
