//! Answers to data, and PULLs, that wait at the NIC of a receiver (twin: `shaders/answers.wgsl`).

use super::spraying::path_of;
use hyperfold_columns::{FlowIdx, NicIdx, PacketIdx, Tables};

/// Gives answer `p` of queue pair `f` its path, and appends it to the answers of NIC `n`.
#[inline(always)]
pub(super) fn queue_answer(t: &mut Tables, n: NicIdx, f: FlowIdx, p: PacketIdx) {
    let e = &t.exps[0];
    let rx = &mut t.flow_rx[f];
    let pk = &mut t.packets[p];
    pk.path = rx.path_first;
    if rx.n_paths > 1 {
        pk.path += path_of(e, rx.flow_id, rx.n_acks, 1, rx.n_paths) * rx.path_len;
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
}
