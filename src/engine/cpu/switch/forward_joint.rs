//! System `forward_joint`, one row per switch that is not independent (twin: `shaders/forward_joint.wgsl`). One invocation processes all ports in
//! time order, because a departure at one port can release, pause, resume or drop at another at the same instant, and because packets choose among ports.

use super::adaptive::{choose, is_adaptive};
use super::egress::{
    PortEvent, TimedEvent, completion_time, drop_packet, enqueue, enqueue_class, idle, on_frame, send_frame_if_idle,
    start_next, wred_drops,
};
use super::forward::gather;
use super::mmu::SharedBuffer;
use super::port_queue::{has_port_queues, join};
use crate::cpu::classes::{class_of, has_classes};
use crate::cpu::lists::arrival_time;
use hyperfold_columns::{NEVER, PortIdx, SHARED_HEADER, SwitchIdx, Tables, meta};

/// Processes switch `s` up to `end`.
///
/// While it runs, the own clock of a port holds the time of its next event of any kind. So the first event of all ports is found without reading port
/// rows.
pub fn forward_joint(t: &mut Tables, s: SwitchIdx, end: u64) {
    let sw = t.switches[s];
    let (first, n) = (sw.port_first, sw.port_n);
    let chooses = is_adaptive(&t.exps[0]);
    let own_queue = has_port_queues(&t.exps[0]);
    for port in first.run(n) {
        if own_queue {
            let word = (SHARED_HEADER + port.0) as usize;
            t.shared[word] = t.shared[word].wrapping_add(t.ports[port].arr_bytes);
        }
        t.ports[port].merged = gather(t, port);
        t.ports[port].arr_bytes = 0;
        t.ports[port].arr_n = 0;
        note_next(t, port);
    }
    let by_class = has_classes(&t.exps[0]);
    let sums = |t: &Tables| match by_class {
        true => SharedBuffer::sum_classes(t, first.run(n)),
        false => SharedBuffer::sum_ports(t, first.run(n)),
    };
    let mut buffer = sums(t);
    while let Some((mut which, mut event)) = next_event(t, first, n, end) {
        let starts = match event.kind {
            PortEvent::Completion(_) => true,
            PortEvent::Arrival(p) => {
                t.ports[which].merged = t.packets[p].next;
                if chooses {
                    let chosen = choose(t, which, p, event.t);
                    note_next(t, which);
                    which = chosen;
                }
                if own_queue {
                    event.kind = PortEvent::Arrival(join(t, which, p, event.t));
                    if idle(t, which, &event) {
                        start_next(t, which, &event, None);
                    }
                    note_next(t, which);
                    continue;
                }
                let pk = &t.packets[p];
                let (ingress, wire, class) = (pk.in_port, pk.meta & meta::WIRE_MASK, class_of(pk.meta));
                let is_picked = t.exps[0].wred_drops != 0 && wred_drops(t, which, p, event.t);
                let admitted = match by_class {
                    true => buffer.admit_class(t, ingress, class, wire),
                    false => buffer.admit(t, ingress, wire),
                };
                if is_picked || !admitted {
                    drop_packet(t, which, p);
                    note_next(t, which);
                    continue;
                }
                let pauses = match by_class {
                    true => buffer.charge_class(t, ingress, class, wire),
                    false => buffer.charge(t, ingress, wire),
                };
                if pauses {
                    send_frame_if_idle(t, ingress, &event);
                    note_next(t, ingress);
                }
                if by_class {
                    enqueue_class(t, which, p, event.t);
                } else {
                    enqueue(t, which, p, event.t);
                }
                idle(t, which, &event)
            }
            PortEvent::Frame(_, p) => {
                t.ports[which].in_frames = t.packets[p].next;
                on_frame(t, which, p, &event)
            }
        };
        if starts {
            let shared_buffer = (!own_queue).then_some(&mut buffer);
            let resumed = start_next(t, which, &event, shared_buffer);
            if resumed.is_some() {
                note_next(t, resumed);
            }
        }
        note_next(t, which);
    }
    debug_assert!(own_queue || buffer == sums(t), "sums of switch {s:?} and of its ports");
    for port in first.run(n) {
        let clock_idx = port.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
        t.clocks[clock_idx] = completion_time(t, port);
    }
}

/// Stores the time of the next event at `port` in the port's own clock.
#[inline]
fn note_next(t: &mut Tables, port: PortIdx) {
    let row = &t.ports[port];
    let (merged, frame) = (row.merged, row.in_frames);
    let next = completion_time(t, port).min(arrival_time(t, merged)).min(arrival_time(t, frame));
    let clock_idx = port.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
    t.clocks[clock_idx] = next;
}

/// The first event before `end` at any of the `n` ports from `first` on, and its port. Times are compared first; lineages are read only if two events
/// happen at the same time.
#[inline]
fn next_event(t: &Tables, first: PortIdx, n: u32, end: u64) -> Option<(PortIdx, TimedEvent)> {
    let own = first.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
    let clocks = &t.clocks[own..own + n as usize];
    let (mut earliest, mut place, mut ties) = (NEVER, 0, false);
    for (k, &clock) in (0u32..).zip(clocks) {
        if clock < earliest {
            (earliest, place, ties) = (clock, k, false);
        } else {
            ties |= clock == earliest;
        }
    }
    if earliest >= end {
        return None;
    }
    let which = first.run(n).nth(place as usize).expect("it is one of the ports");
    let mut found = (which, first_at(t, which, earliest).expect("its clock says so"));
    if ties {
        for (port, &clock) in first.run(n).zip(clocks).skip(place as usize + 1) {
            if clock == earliest
                && let Some(kind) = first_at(t, port, earliest)
                && kind.key(t, earliest).is_before(&found.1.key(t, earliest))
            {
                found = (port, kind);
            }
        }
    }
    Some((found.0, TimedEvent { t: earliest, kind: found.1 }))
}

/// The first of the events of `port` that happen at the time `at_ps`.
#[inline]
fn first_at(t: &Tables, port: PortIdx, at_ps: u64) -> Option<PortEvent> {
    let row = &t.ports[port];
    let (merged, frame) = (row.merged, row.in_frames);
    let mut first: Option<PortEvent> = None;
    for (time, kind) in [
        (completion_time(t, port), PortEvent::Completion(port)),
        (arrival_time(t, merged), PortEvent::Arrival(merged)),
        (arrival_time(t, frame), PortEvent::Frame(port, frame)),
    ] {
        if time == at_ps && first.is_none_or(|f| kind.key(t, at_ps).is_before(&f.key(t, at_ps))) {
            first = Some(kind);
        }
    }
    first
}

/// Runs [`forward_joint`] for one row, if the switch is not independent.
#[inline]
pub fn row(t: &mut Tables, s: SwitchIdx, end: u64) {
    if t.switches[s].independent == 0 {
        forward_joint(t, s, end);
    }
}
