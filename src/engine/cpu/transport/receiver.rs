//! The receiving side of a queue pair (twin: `shaders/receiver.wgsl`).

use super::answers::queue_answer;
use super::credit;
use super::stream::takes_credit;
use super::uec::{self, Answer};
use super::{any_order, stream};
use crate::cpu::key::EventKey;
use crate::cpu::task;
use hyperfold_columns::{Exp, FlowRx, NEVER, NicIdx, PacketIdx, Tables, kind, meta, mode, psn};

/// Whether data from byte `seq` on, which is beyond the expected byte, is answered with a NACK.
///
/// As adapters do it, each gap gets one NACK. The next one is due after the expected byte has arrived, or when sequence numbers fall back: then the
/// sender has stepped back, and the expected byte was lost again.
fn is_nack_due(e: &Exp, rx: &mut FlowRx, seq: u64, now: u64) -> bool {
    if e.modes & mode::NS3_LOSS == 0 {
        let due = seq <= rx.nack_seq;
        rx.nack_seq = seq;
        return due;
    }
    let due = now >= rx.nack_t || rx.nack_seq != rx.expected;
    if due {
        rx.nack_t = now + e.nack_interval;
        rx.nack_seq = rx.expected;
    }
    due
}

/// Handles the packet from byte `seq` on with `payload` bytes, where the sender goes back N. Returns the kind of the answer, and whether one is due.
#[inline(always)]
fn take_in_order(e: &Exp, rx: &mut FlowRx, seq: u64, payload: u32, now: u64) -> (u32, bool) {
    if seq == rx.expected {
        rx.expected += payload as u64;
        if e.modes & mode::NS3_LOSS == 0 {
            rx.nack_seq = NEVER;
        }
        return (kind::ACK, is_ack_due(e, rx));
    }
    if seq > rx.expected {
        return (kind::NACK, is_nack_due(e, rx, seq, now));
    }
    if e.modes & mode::NS3_LOSS == 0 {
        rx.nack_seq = NEVER;
    }
    (kind::ACK, true)
}

/// Whether the expected byte, which has just grown, is one that is acknowledged at once.
#[inline(always)]
fn is_ack_due(e: &Exp, rx: &mut FlowRx) -> bool {
    let milestone = rx.expected >= rx.milestone;
    if milestone {
        rx.milestone += e.ack_interval;
    }
    milestone || rx.expected.is_multiple_of(e.chunk) || rx.expected >= rx.msg_end
}

/// Handles data packet `p`, which has arrived whole at NIC `n`. Returns whether an answer or credit was queued. The record of the data packet becomes the
/// answer, or is held until the next answer.
pub fn on_data(t: &mut Tables, n: NicIdx, p: PacketIdx, event: &EventKey) -> bool {
    let now = event.t;
    let e = &t.exps[0];
    let pk = &mut t.packets[p];
    let details = &mut t.details[p];
    let rx = &mut t.flow_rx[pk.flow];
    rx.arrived_bytes += pk.payload as u64;
    let arrived = rx.msg;
    let mut want = None;
    let Answer { kind: answer, due, seq } = if stream::is_uec(e) {
        if takes_credit(e) {
            want = Some((details.seq >> psn::OFFSET_SHIFT) as u32);
            details.seq &= psn::BYTE_MASK;
        }
        uec::answer(e, rx, &mut t.psn_bits, pk.flow, pk, details.seq)
    } else if stream::takes_any_order(e) {
        let is_expected = details.seq == rx.expected;
        let (at_once, offset) = any_order::take_in(e, rx, &mut t.psn_bits, pk.flow, details.seq);
        let due = (is_expected && is_ack_due(e, rx)) || at_once;
        Answer { kind: kind::ACK, due, seq: rx.expected | (offset << psn::OFFSET_SHIFT) }
    } else {
        let (answer, due) = take_in_order(e, rx, details.seq, pk.payload, now);
        Answer { kind: answer, due, seq: rx.expected }
    };
    while rx.msg.is_some() && rx.expected >= rx.msg_end {
        rx.msg = t.tasks.message(rx.msg).follow;
        if rx.msg.is_some() {
            rx.msg_end = stream::next_start(e, rx.msg_end) + t.tasks.message(rx.msg).bytes;
        }
    }
    let next = rx.msg;
    if !due {
        pk.next = rx.held;
        rx.held = p;
        debug_assert_eq!(arrived, next, "the end of a message is answered");
        let f = pk.flow;
        return want.is_some_and(|want| credit::on_want(t, n, f, want, false, event));
    }
    let mut pk_meta = e.ack_bytes | (answer << meta::KIND_SHIFT);
    pk_meta |= if stream::is_uec(e) { uec::answer_meta(pk.meta) } else { pk.meta & meta::ANSWERED };
    if pk.meta & meta::MARKED != 0 && (e.cnp_interval == 0 || now >= rx.cnp_t) {
        pk_meta |= meta::CNP;
        rx.cnp_t = now + e.cnp_interval;
    }
    pk.meta = pk_meta;
    details.seq = seq;
    if answer == kind::NACK && stream::is_uec(e) {
        // It names no packet that has arrived.
        pk.set_records(PacketIdx::NONE);
    } else {
        pk.set_records(rx.held);
        rx.held = PacketIdx::NONE;
    }
    let f = pk.flow;
    queue_answer(t, n, f, p);
    if let Some(want) = want {
        credit::on_want(t, n, f, want, answer == kind::NACK, event);
    }
    if arrived != next {
        task::delivered(t, n, arrived, next, event);
    }
    true
}
