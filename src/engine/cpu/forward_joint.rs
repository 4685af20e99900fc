//! System `forward_joint`, a row a switch that is not independent (twin: `shaders/forward_joint.wgsl`). One invocation processes all
//! ports in time order, because a departure at one port can release, pause, resume or drop at another at the same instant.

use super::egress::{
    At, PortEvent, completion_time, enqueue, idle, on_frame, return_later, send_frame_if_idle, start_next,
};
use super::forward::{arrival_time, gather};
use super::mmu;
use crate::columns::{NEVER, PacketIdx, PortIdx, SwitchIdx, Tables, kind, meta};

/// Processes switch `s` up to `end`.
pub fn forward_joint(t: &mut Tables, s: SwitchIdx, end: u64) {
    let sw = t.switches[s];
    let ports = sw.ports();
    for port in ports.clone() {
        t.ports[port].merged = gather(t, port);
        t.ports[port].arr_bytes = 0;
        t.ports[port].arr_n = 0;
    }
    while let Some((which, at)) = next_event(t, ports.clone()).filter(|(_, at)| at.t < end) {
        let starts = match at.what {
            PortEvent::Completion(_) => true,
            PortEvent::Arrival(p) => {
                t.ports[which].merged = t.packets[p].next;
                let pk = &t.packets[p];
                let (ingress, wire) = (pk.in_port, pk.meta & meta::WIRE_MASK);
                if !mmu::admit(t, ingress, wire) {
                    drop_packet(t, which, p);
                    continue;
                }
                if mmu::charge(t, ingress, wire) {
                    send_frame_if_idle(t, ingress, &at);
                }
                enqueue(t, which, p, at.t);
                idle(t, which, &at)
            }
            PortEvent::Frame(_, p) => {
                t.ports[which].in_frames = t.packets[p].next;
                on_frame(t, which, p, &at)
            }
        };
        if starts {
            start_next(t, which, &at, true);
        }
    }
    for port in ports {
        let at = port.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
        t.clocks[at] = completion_time(t, port);
    }
}

/// The first event at any of `ports`, and where. Times are compared first.
fn next_event(t: &Tables, ports: impl Iterator<Item = PortIdx>) -> Option<(PortIdx, At)> {
    let mut first: Option<(PortIdx, At)> = None;
    let mut least = NEVER;
    for port in ports {
        let row = &t.ports[port];
        let (merged, frame) = (row.merged, row.in_frames);
        for (at, what) in [
            (completion_time(t, port), PortEvent::Completion(port)),
            (arrival_time(t, merged), PortEvent::Arrival(merged)),
            (arrival_time(t, frame), PortEvent::Frame(port, frame)),
        ] {
            if at > least || at == NEVER {
                continue;
            }
            let sooner = at < least || first.is_none_or(|(_, f)| what.key(t, at).is_before(&f.what.key(t, at)));
            if sooner {
                (least, first) = (at, Some((port, At { t: at, what })));
            }
        }
    }
    first
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
