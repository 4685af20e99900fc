//! An egress port with a queue of its own, which trims or drops what finds no place there (`docs/explanation/model-semantics.md`, "Queues of ports"). Twin:
//! `shaders/port_queue.wgsl`.

use super::egress::{drop_packet, enqueue, integrate};
use crate::cpu::lists::push_first;
use crate::cpu::math::hash32;
use hyperfold_columns::{EndOwner, Exp, PacketIdx, PortIdx, SHARED_HEADER, Tables, kind, meta, mode};

/// Whether the egress ports of the experiment have queues of their own.
#[inline]
pub fn has_port_queues(e: &Exp) -> bool {
    e.modes & mode::PORT_QUEUES != 0
}

/// Takes in packet `p`, which arrives at egress `port` at time `now`. Returns the record that holds it then.
pub fn join(t: &mut Tables, port: PortIdx, p: PacketIdx, now: u64) -> PacketIdx {
    let pk_meta = t.packets[p].meta;
    if (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK != kind::DATA || pk_meta & meta::TRIMMED != 0 {
        push_first(t, port, p);
        return p;
    }
    let row = &t.ports[port];
    if row.q_bytes + (pk_meta & meta::WIRE_MASK) <= row.headroom {
        enqueue(t, port, p, now);
        return p;
    }
    let last = row.q_tail;
    let last_gives_way = last.is_some() && draws_last(t, port);
    if last_gives_way {
        swap_with_last(t, port, p, now);
    }
    cut(t, port, p);
    if last_gives_way { last } else { p }
}

/// Whether the packet that gives way is the last one of the queue, by a draw. Else it is the one that arrives.
fn draws_last(t: &mut Tables, port: PortIdx) -> bool {
    let seed = t.exps[0].seed;
    let row = &mut t.ports[port];
    let draw = hash32(port.0, row.draws as u32, (row.draws >> 32) as u32, seed);
    row.draws += 1;
    draw & 1 == 1
}

/// Exchanges packet `p` with the last one of the queue of `port`. The records stay where they are, since nothing but the queue's end leads to the last one.
fn swap_with_last(t: &mut Tables, port: PortIdx, p: PacketIdx, now: u64) {
    let last = t.ports[port].q_tail;
    integrate(t, port, now);
    let (arriving, waiting) = (t.packets[p], t.packets[last]);
    let wire = |meta_word: u32| meta_word & meta::WIRE_MASK;
    let row = &mut t.ports[port];
    row.q_bytes = row.q_bytes + wire(arriving.meta) - wire(waiting.meta);
    row.max_q = row.max_q.max(row.q_bytes);
    t.packets[last] = arriving;
    t.packets[last].next = waiting.next;
    t.packets[p] = waiting;
    t.packets[p].next = arriving.next;
    let details = t.details[p];
    t.details[p] = t.details[last];
    t.details[last] = details;
}

/// Trims packet `p`, which finds no place in the queue of `port`, or drops it.
fn cut(t: &mut Tables, port: PortIdx, p: PacketIdx) {
    let e = &t.exps[0];
    let (trims, header) = (e.modes & mode::TRIMMING != 0, e.ack_bytes);
    let (in_port, wire, payload) = {
        let pk = &t.packets[p];
        (pk.in_port, pk.meta & meta::WIRE_MASK, pk.payload)
    };
    let word = (SHARED_HEADER + in_port.0) as usize;
    if !trims {
        t.shared[word] = t.shared[word].wrapping_sub(wire);
        return drop_packet(t, port, p);
    }
    t.shared[word] = t.shared[word].wrapping_sub(wire).wrapping_add(header);
    let at_last_hop = matches!(t.ports[port].other_end().owner(t.exps[0].nic_len), EndOwner::Nic(_));
    let pk = &mut t.packets[p];
    pk.meta = (pk.meta & !meta::WIRE_MASK) | header | meta::TRIMMED;
    pk.meta |= if at_last_hop { meta::LAST_HOP } else { 0 };
    pk.payload = 0;
    let row = &mut t.ports[port];
    row.drops += 1;
    row.dropped_bytes += u64::from(payload);
    push_first(t, port, p);
}
