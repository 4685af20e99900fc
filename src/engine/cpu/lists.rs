//! Packet lists and the wires between link ends (twin: `shaders/lists.wgsl`).

use super::key::older;
use hyperfold_columns::{LinkEndIdx, NEVER, NONE, Packet, PacketIdx, PortIdx, Tables};

/// Number of wires whose packets are prefetched side by side.
pub const LANES: usize = 16;

/// Prefetches the packets that arrive at `ends` before `end`, from several wires at once: in a single list, each packet must be loaded before the
/// next is known. `also` prefetches what else a packet needs. Its arguments are the link end, the packet, and the path entry of the packet before it
/// on that wire, which is loaded by now (`NONE` for the first packet).
pub fn fetch(
    t: &Tables,
    mut ends: impl Iterator<Item = LinkEndIdx>,
    end: u64,
    also: impl Fn(LinkEndIdx, &Packet, u32),
) {
    loop {
        let mut heads = [PacketIdx::NONE; LANES];
        let mut wires = [(LinkEndIdx::NONE, NONE); LANES];
        let mut lanes = 0;
        for link_end in ends.by_ref() {
            if t.clocks[link_end.usize()] < end {
                heads[lanes] = t.wires[link_end].head;
                wires[lanes].0 = link_end;
                t.packets.prefetch(heads[lanes].0);
                lanes += 1;
                if lanes == LANES {
                    break;
                }
            }
        }
        if lanes == 0 {
            return;
        }
        let mut left = true;
        while left {
            left = false;
            for (p, (link_end, path)) in heads[..lanes].iter_mut().zip(&mut wires) {
                let Some(row) = t.packets.get(p.usize()) else { continue };
                fetch_rest(t, *p);
                also(*link_end, row, *path);
                *path = row.path;
                let next = if row.t < end { row.next } else { PacketIdx::NONE };
                t.packets.prefetch(next.0);
                left |= next.is_some();
                *p = next;
            }
        }
    }
}

/// Prefetches the parts of packet `p` that are in other tables than its first row.
#[inline]
pub fn fetch_rest(t: &Tables, p: PacketIdx) {
    t.details.prefetch(p.0);
    if !t.ints.is_empty() {
        // The row may lie across two cache lines.
        let row = t.exps[0].flow_len.wrapping_add(p.0);
        t.ints.prefetch(row);
        t.ints.prefetch(row.wrapping_add(1));
    }
}

/// Arrival time of the head of a list of arrivals, in ps; `NEVER` if the list is empty.
#[inline]
pub fn arrival_time(t: &Tables, p: PacketIdx) -> u64 {
    if p.is_none() { NEVER } else { t.packets[p].t }
}

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

/// Appends `p`, a pause frame or a control packet, to what `port` sends before its queue.
#[inline(always)]
pub fn push_first(t: &mut Tables, port: PortIdx, p: PacketIdx) {
    t.packets[p].next = PacketIdx::NONE;
    let row = &mut t.ports[port];
    let tail = row.frame_tail;
    row.frame_tail = p;
    row.frames += 1;
    if tail.is_none() {
        row.frame_head = p;
    } else {
        t.packets[tail].next = p;
    }
}

/// Whether packet `a` arrives before packet `b`. If they are equal, `a` is first, so the caller passes the packet of the lower ingress as `a`.
#[inline]
fn arrives_first(t: &Tables, a: PacketIdx, b: PacketIdx) -> bool {
    let (at_a, at_b) = (t.packets[a].t, t.packets[b].t);
    if at_a != at_b {
        return at_a < at_b;
    }
    older(&t.details[a].d, &t.details[b].d) >= 0
}

/// Merges two lists of arrivals. Among equals, packets of `a` come first.
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
