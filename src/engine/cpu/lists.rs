//! Packet lists and the wires between link ends (twin: `shaders/lists.wgsl`).

use super::key::older;
use crate::columns::{NEVER, NONE, Tables};

/// Puts packet `p`, whose arrival time is set, on the wire to link end `end`.
#[inline]
pub fn wire_push(t: &mut Tables, end: u32, p: u32) {
    t.packets[p as usize].next = NONE;
    let wire = &mut t.wires[end as usize];
    wire.n += 1;
    let tail = wire.tail;
    wire.tail = p;
    if wire.head == NONE {
        wire.head = p;
        t.clocks[end as usize] = t.packets[p as usize].t;
    } else {
        t.packets[tail as usize].next = p;
    }
}

/// Takes the first packet off the wire to `end`.
#[inline]
pub fn wire_pop(t: &mut Tables, end: u32) -> u32 {
    let wire = &mut t.wires[end as usize];
    let p = wire.head;
    let next = t.packets[p as usize].next;
    wire.head = next;
    wire.n -= 1;
    if next == NONE {
        wire.tail = NONE;
        t.clocks[end as usize] = NEVER;
    } else {
        t.clocks[end as usize] = t.packets[next as usize].t;
    }
    p
}

/// Whether packet `a` arrives before packet `b`; equals keep their order (`a` first), so the caller passes the lower ingress as `a`.
#[inline]
fn arrives_first(t: &Tables, a: u32, b: u32) -> bool {
    let (pa, pb) = (&t.packets[a as usize], &t.packets[b as usize]);
    if pa.t != pb.t {
        return pa.t < pb.t;
    }
    older(&pa.d, &pb.d) >= 0
}

/// Merges two lists of arrivals; of equals those of `a` come first.
pub fn merge(t: &mut Tables, a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    let mut head = NONE;
    let mut tail = NONE;
    while a != NONE && b != NONE {
        let take_a = arrives_first(t, a, b);
        let p = if take_a { a } else { b };
        let next = t.packets[p as usize].next;
        if take_a {
            a = next;
        } else {
            b = next;
        }
        if tail == NONE {
            head = p;
        } else {
            t.packets[tail as usize].next = p;
        }
        tail = p;
    }
    let rest = if a != NONE { a } else { b };
    if tail == NONE {
        return rest;
    }
    t.packets[tail as usize].next = rest;
    head
}
