//! Receivers and senders of Ultra Ethernet (`docs/explanation/model-semantics.md`, "Ultra Ethernet"): an ACK names all packets that arrived since the last one,
//! and a NACK names one that a switch has trimmed. Twin: `shaders/uec.wgsl`.
//!
//! Positions and their bits are those of `any_order`. A third set of bits holds the positions that are lost.

use super::any_order::{
    acknowledge_to, lost_bit, outstanding, payload_at, receiver_bit, sender_bit, take_in, take_note, take_out,
};
use super::credit;
use super::mixed_entropies;
use super::spraying::keep_entropy;
use super::stream::{full_wire, takes_credit};
use hyperfold_columns::{Column, Exp, FlowIdx, FlowRx, FlowTx, Packet, PacketIdx, Tables, cc, kind, meta, mode, psn};

/// The answer to a data packet.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// One of [`kind`].
    pub kind: u32,
    /// Whether it is due now.
    pub due: bool,
    /// Its sequence number, with the offset of an ACK.
    pub seq: u64,
}

/// What an answer brings.
#[derive(Clone, Copy, Debug)]
pub struct UecNews {
    /// Packets that are known to have arrived now, and were not before.
    pub packets: u64,
    /// Whether it is a NACK of a packet that was neither lost nor acknowledged.
    pub nacked: bool,
}

/// Number of bytes in flight, each packet counted as a full one on the wire.
#[inline]
pub fn in_flight(e: &Exp, tx: &FlowTx) -> u64 {
    outstanding(e, tx) / e.payload as u64 * full_wire(e)
}

/// Whether the window has space for one more packet, and there is credit for it.
#[inline]
pub fn is_within_window(e: &Exp, tx: &FlowTx) -> bool {
    in_flight(e, tx) + full_wire(e) <= tx.win && (!takes_credit(e) || tx.credit > 0)
}

/// The mark of the packet that is sent next if it asks for an acknowledgement, else 0.
pub fn asks(e: &Exp, tx: &FlowTx) -> u32 {
    let is_last = tx.snd_nxt + e.payload as u64 >= tx.size;
    let fills_window = in_flight(e, tx) + 2 * full_wire(e) > tx.win;
    let ends_credit = takes_credit(e) && tx.credit == 1;
    if tx.lost > 0 || is_last || fills_window || ends_credit { meta::ASKS } else { 0 }
}

/// Handles the arrival of data packet `pk` at position `seq` of queue pair `f`.
pub fn answer(e: &Exp, rx: &mut FlowRx, bits: &mut Column<'_, u32>, f: FlowIdx, pk: &Packet, seq: u64) -> Answer {
    let has_arrived = seq < rx.expected || {
        let (word, bit) = receiver_bit(e, f, seq);
        seq > rx.expected && bits[word] & bit != 0
    };
    let is_trimmed = pk.meta & meta::TRIMMED != 0;
    if is_trimmed && !has_arrived {
        return Answer { kind: kind::NACK, due: true, seq };
    }
    let first = rx.n_acks == 0;
    let mut offset = 0;
    if !is_trimmed {
        (_, offset) = take_in(e, rx, bits, f, seq);
    } else if seq > rx.expected {
        offset = (seq - rx.expected) / e.payload as u64;
    }
    let enough = rx.arrived_bytes >= rx.milestone || rx.expected >= rx.msg_end;
    let due = has_arrived || pk.meta & (meta::MARKED | meta::ASKS) != 0 || first || enough;
    if due {
        rx.milestone = rx.arrived_bytes + e.ack_interval;
    }
    Answer { kind: kind::ACK, due, seq: rx.expected | (offset << psn::OFFSET_SHIFT) }
}

/// Bits of an answer that come from the data packet with `data_meta`.
pub fn answer_meta(data_meta: u32) -> u32 {
    let mark = if data_meta & meta::MARKED != 0 { meta::CNP } else { 0 };
    let path = data_meta & (u32::MAX << meta::ENTROPY_SHIFT);
    mark | path | (data_meta & meta::LAST_HOP)
}

/// Handles answer `p` to data of queue pair `f`.
pub fn on_answer(t: &mut Tables, f: FlowIdx, p: PacketIdx) -> UecNews {
    let pk = t.packets[p];
    let is_nack = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::NACK;
    let marked = pk.meta & meta::CNP != 0;
    let chooses = t.exps[0].modes & mode::REPS != 0 && t.flow_tx[f].n_paths > 1;
    if chooses && mixed_entropies::is_mixed(&t.exps[0]) {
        mixed_entropies::learn(&t.exps[0], &mut t.flow_tx[f], &mut t.psn_bits, f, pk.meta);
    } else if chooses && !marked && (!is_nack || pk.meta & meta::LAST_HOP != 0) {
        keep_entropy(&mut t.flow_tx[f], pk.meta >> meta::ENTROPY_SHIFT);
    }
    let seq = t.details[p].seq;
    if is_nack {
        return UecNews { packets: 0, nacked: lose(t, f, seq) };
    }
    let payload = t.exps[0].payload as u64;
    let (una, offset) = (seq & psn::BYTE_MASK, seq >> psn::OFFSET_SHIFT);
    let mut packets = acknowledge_to(t, f, una);
    if offset > 0 {
        packets += u64::from(take_note(t, f, una + offset * payload));
    }
    let mut named = pk.records();
    while named.is_some() {
        packets += u64::from(take_note(t, f, t.details[named].seq));
        named = t.packets[named].next;
    }
    UecNews { packets, nacked: false }
}

/// Adds `position` to the lost ones, unless it is one or has arrived. Returns whether it did.
fn lose(t: &mut Tables, f: FlowIdx, position: u64) -> bool {
    let (word, bit) = sender_bit(&t.exps[0], f, position);
    let (lost_word, _) = lost_bit(&t.exps[0], f, position);
    if position < t.flow_tx[f].snd_una || (t.psn_bits[word] | t.psn_bits[lost_word]) & bit != 0 {
        return false;
    }
    t.psn_bits[lost_word] |= bit;
    t.flow_tx[f].lost += 1;
    true
}

/// Takes the first lost packet of queue pair `f`, to send it again. Returns its position and its payload in bytes.
///
/// PRECONDITION: one is lost.
pub fn take_lost(t: &mut Tables, f: FlowIdx) -> (u64, u32) {
    let payload = t.exps[0].payload as u64;
    let mut position = t.flow_tx[f].snd_una;
    loop {
        let (word, bit) = lost_bit(&t.exps[0], f, position);
        if t.psn_bits[word] & bit != 0 {
            break;
        }
        position += payload;
    }
    take_out(t, f, position);
    (position, payload_at(t, f, position))
}

/// Handles a retransmission timeout of queue pair `f`: everything that has not arrived is lost, and NSCC's window falls by what was in flight. Returns whether
/// anything was.
pub fn time_out(t: &mut Tables, f: FlowIdx, now: u64) -> bool {
    let payload = t.exps[0].payload as u64;
    let (mut position, end) = (t.flow_tx[f].snd_una, t.flow_tx[f].snd_nxt);
    let mut found = 0;
    while position < end {
        if lose(t, f, position) {
            found += 1;
            if mixed_entropies::is_mixed(&t.exps[0]) {
                mixed_entropies::distrust(&t.exps[0], &t.flow_tx[f], &mut t.psn_bits, f, position);
            }
        }
        position += payload;
    }
    let e = &t.exps[0];
    let mtu = full_wire(e);
    let tx = &mut t.flow_tx[f];
    if e.cc == cc::NSCC {
        tx.win = tx.win.saturating_sub(found * mtu).max(mtu);
    }
    credit::time_out(e, tx, found, now);
    found > 0
}
