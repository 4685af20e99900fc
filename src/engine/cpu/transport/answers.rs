//! Answers to data, and PULLs, that wait at the NIC of a receiver (twin: `shaders/answers.wgsl`).

use super::spraying::path_of;
use crate::cpu::classes::{class_of, class_queue, has_classes};
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
    let tail = if has_classes(e) {
        let i = class_queue(e, n.end(), class_of(pk.meta));
        let queue = &mut t.class_queues[i];
        let tail = std::mem::replace(&mut queue.q_tail, p);
        queue.q_head = if tail.is_none() { p } else { queue.q_head };
        tail
    } else {
        let row = &mut t.nics[n];
        let tail = std::mem::replace(&mut row.ack_tail, p);
        row.ack_head = if tail.is_none() { p } else { row.ack_head };
        tail
    };
    if tail.is_some() {
        t.packets[tail].next = p;
    }
}
