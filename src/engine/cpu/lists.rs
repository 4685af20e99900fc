//! Packet lists and the wires between link ends (twin: `shaders/lists.wgsl`).

use super::key::older;
use crate::columns::{LinkEndIdx, NEVER, PacketIdx, Tables};

/// Puts packet `p`, whose arrival time is set, on the wire to link end `end`.
#[inline]
pub fn wire_push(t: &mut Tables, end: LinkEndIdx, p: PacketIdx) {
    t.packets[p].next = PacketIdx::NONE;
    let wire = &mut t.wires[end];
    wire.n += 1;
    let tail = wire.tail;
    wire.tail = p;
    if wire.head.is_none() {
        wire.head = p;
        t.clocks[end.usize()] = t.packets[p].t;
    } else {
        t.packets[tail].next = p;
    }
}

/// Takes the first packet off the wire to `end`.
#[inline]
pub fn wire_pop(t: &mut Tables, end: LinkEndIdx) -> PacketIdx {
    let wire = &mut t.wires[end];
    let p = wire.head;
    let next = t.packets[p].next;
    wire.head = next;
    wire.n -= 1;
    if next.is_none() {
        wire.tail = PacketIdx::NONE;
        t.clocks[end.usize()] = NEVER;
    } else {
        let row = &t.packets[next];
        t.clocks[end.usize()] = row.t;
        t.packets.prefetch(row.next.0);
    }
    p
}

/// Whether packet `a` arrives before packet `b`; equals keep their order (`a` first), so the caller passes the lower ingress as `a`.
#[inline]
fn arrives_first(t: &Tables, a: PacketIdx, b: PacketIdx) -> bool {
    let (at_a, at_b) = (t.packets[a].t, t.packets[b].t);
    if at_a != at_b {
        return at_a < at_b;
    }
    older(&t.details[a].d, &t.details[b].d) >= 0
}

/// Merges two lists of arrivals; of equals those of `a` come first.
pub fn merge(t: &mut Tables, a: PacketIdx, b: PacketIdx) -> PacketIdx {
    let (mut a, mut b) = (a, b);
    let mut head = PacketIdx::NONE;
    let mut tail = PacketIdx::NONE;
    while a.is_some() && b.is_some() {
        let take_a = arrives_first(t, a, b);
        let p = if take_a { a } else { b };
        let next = t.packets[p].next;
        if take_a {
            a = next;
        } else {
            b = next;
        }
        if tail.is_none() {
            head = p;
        } else {
            t.packets[tail].next = p;
        }
        tail = p;
    }
    let rest = if a.is_some() { a } else { b };
    if tail.is_none() {
        return rest;
    }
    t.packets[tail].next = rest;
    head
}
