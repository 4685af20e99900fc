//! System `forward_joint`, a row a switch that is not independent (twin: `shaders/forward_joint.wgsl`). One invocation processes all
//! ports in time order, because a departure at one port can release, pause, resume or drop at another at the same instant.

use super::egress::{completion, enqueue, idle, on_frame, return_later, send_frame_if_idle, start_next};
use super::forward::{arrival, frame_arrival, gather};
use super::key::{NO_EVENT, before};
use super::mmu;
use crate::columns::{PacketIdx, PortIdx, SwitchIdx, Tables, kind, meta};

/// Processes switch `s` up to `end`.
pub fn forward_joint(t: &mut Tables, s: SwitchIdx, end: u64) {
    let sw = t.switches[s];
    let ports = sw.ports();
    for port in ports.clone() {
        t.ports[port].merged = gather(t, port);
        t.ports[port].arr_bytes = 0;
        t.ports[port].arr_n = 0;
    }
    loop {
        let mut next = NO_EVENT;
        let mut what = 0;
        let mut which = PortIdx(0);
        for port in ports.clone() {
            let c = completion(t, port);
            if before(&c, &next) {
                (next, what, which) = (c, 0, port);
            }
            let a = arrival(t, t.ports[port].merged);
            if before(&a, &next) {
                (next, what, which) = (a, 1, port);
            }
            let f = frame_arrival(t, port);
            if before(&f, &next) {
                (next, what, which) = (f, 2, port);
            }
        }
        if next.t >= end {
            break;
        }
        if what == 0 {
            start_next(t, which, &next, true);
        } else if what == 1 {
            let p = t.ports[which].merged;
            t.ports[which].merged = t.packets[p].next;
            let pk = &t.packets[p];
            let (ingress, wire) = (pk.in_port, pk.meta & meta::WIRE_MASK);
            if !mmu::admit(t, ingress, wire) {
                drop_packet(t, which, p);
                continue;
            }
            if mmu::charge(t, ingress, wire) {
                send_frame_if_idle(t, ingress, &next);
            }
            enqueue(t, which, p, next.t);
            if idle(t, which, &next) {
                start_next(t, which, &next, true);
            }
        } else {
            let p = t.ports[which].in_frames;
            t.ports[which].in_frames = t.packets[p].next;
            on_frame(t, which, p, &next, true);
        }
    }
    for port in ports {
        let at = port.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
        t.clocks[at] = completion(t, port).t;
    }
}

/// Drops `p` on its way to egress `port`.
fn drop_packet(t: &mut Tables, port: PortIdx, p: PacketIdx) {
    let pk = &t.packets[p];
    let data = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
    let payload = pk.payload;
    let row = &mut t.ports[port];
    row.drops += 1;
    if data {
        row.dropped_bytes += payload as u64;
    }
    return_later(t, port, p);
}

/// [`forward_joint`] for a row: at switches that are not independent.
#[inline]
pub fn row(t: &mut Tables, s: SwitchIdx, end: u64) {
    if t.switches[s].independent == 0 {
        forward_joint(t, s, end);
    }
}
