//! The receiving side of a queue pair (twin: `shaders/receiver.wgsl`).

use crate::cpu::key::EventKey;
use crate::cpu::math::hash32;
use crate::cpu::task;
use hyperfold_columns::{Exp, FlowRx, NEVER, NicIdx, PacketIdx, Tables, TaskIdx, kind, meta, mode};

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

/// Handles data packet `p`, which has arrived whole at NIC `n`. Returns whether an answer was queued. The record of the data packet becomes the
/// answer, or is held until the next answer.
pub fn on_data(t: &mut Tables, n: NicIdx, p: PacketIdx, event: &EventKey) -> bool {
    let now = event.t;
    let e = &t.exps[0];
    let pk = &mut t.packets[p];
    let details = &mut t.details[p];
    let rx = &mut t.flow_rx[pk.flow];
    rx.arrived_bytes += pk.payload as u64;
    let mut answer = kind::ACK;
    let mut arrived = TaskIdx::NONE;
    let due;
    if details.seq == rx.expected {
        rx.expected += pk.payload as u64;
        if e.modes & mode::NS3_LOSS == 0 {
            rx.nack_seq = NEVER;
        }
        let milestone = rx.expected >= rx.milestone;
        if milestone {
            rx.milestone += e.ack_interval;
        }
        due = milestone || rx.expected.is_multiple_of(e.chunk) || rx.expected >= rx.msg_end;
        if rx.expected == rx.msg_end && rx.msg.is_some() {
            arrived = rx.msg;
            rx.msg = t.tasks.message(arrived).follow;
            if rx.msg.is_some() {
                rx.msg_end += t.tasks.message(rx.msg).bytes;
            }
        }
    } else if details.seq > rx.expected {
        answer = kind::NACK;
        due = is_nack_due(e, rx, details.seq, now);
    } else {
        due = true;
        if e.modes & mode::NS3_LOSS == 0 {
            rx.nack_seq = NEVER;
        }
    }
    if !due {
        pk.next = rx.held;
        rx.held = p;
        return false;
    }
    let mut pk_meta = e.ack_bytes | (answer << meta::KIND_SHIFT) | (pk.meta & (meta::INT_MASK << meta::INT_SHIFT));
    if pk.meta & meta::MARKED != 0 && (e.cnp_interval == 0 || now >= rx.cnp_t) {
        pk_meta |= meta::CNP;
        rx.cnp_t = now + e.cnp_interval;
    }
    pk.meta = pk_meta;
    details.seq = rx.expected;
    pk.set_records(rx.held);
    rx.held = PacketIdx::NONE;
    pk.path = rx.path_first;
    if rx.n_paths > 1 {
        pk.path += hash32(rx.flow_id, rx.n_acks, 1, e.routing_seed) % rx.n_paths * rx.path_len;
    }
    rx.n_acks += 1;
    pk.next = PacketIdx::NONE;
    let row = &mut t.nics[n];
    let tail = row.ack_tail;
    row.ack_tail = p;
    if tail.is_none() {
        row.ack_head = p;
    } else {
        t.packets[tail].next = p;
    }
    if arrived.is_some() {
        task::delivered(t, n, arrived, event);
    }
    true
}
