//! System `forward`, one row per port of an independent switch (twin: `shaders/forward.wgsl`). It takes what the ingresses have for the port, merges
//! it by time and transmits.

use super::class_port::charge_arrival;
use super::egress::{
    PortEvent, TimedEvent, completion_time, drop_packet, enqueue, enqueue_class, idle, on_frame, start_next, wred_drops,
};
use super::plan::request_word;
use super::port_queue;
use crate::cpu::classes::has_classes;
use crate::cpu::lists::{arrival_time, merge};
use hyperfold_columns::{NEVER, PacketIdx, PortIdx, SHARED_HEADER, Tables, meta};

/// Merges all packets that the ingresses planned for `port` into one list, by time. Ties go to the lower ingress. Returns the head of the list.
pub fn gather(t: &mut Tables, port: PortIdx) -> PacketIdx {
    let sw = &t.switches[t.ports[port].switch_idx];
    let (port_first, port_n, plan_first) = (sw.port_first, sw.port_n, sw.plan_first);
    let local = port - port_first;
    let words = t.exps[0].mask_words;
    // Lists of 1, 2, 4 ... sources, as in a bottom-up merge sort, so that n sources cost log n visits a packet.
    let mut levels = [PacketIdx::NONE; 16];
    let mut top = 0usize;
    for w in 0..words {
        let word = request_word(t, port, w * 32) as usize;
        let mut bits = t.shared[word];
        t.shared[word] = 0;
        while bits != 0 {
            let ingress = w * 32 + bits.trailing_zeros();
            bits &= bits - 1;
            let mut list = t.plans[(plan_first + ingress * port_n + local) as usize].head;
            let mut level = 0usize;
            while levels[level].is_some() {
                list = merge(t, levels[level], list);
                levels[level] = PacketIdx::NONE;
                level += 1;
            }
            levels[level] = list;
            if level > top {
                top = level;
            }
        }
    }
    let mut all = PacketIdx::NONE;
    for &list in &levels[..=top] {
        if list.is_some() {
            all = if all.is_none() { list } else { merge(t, list, all) };
        }
    }
    all
}

/// Processes `port` up to `end`.
pub fn forward(t: &mut Tables, port: PortIdx, end: u64) {
    let by_class = has_classes(&t.exps[0]);
    if !by_class {
        let word = (SHARED_HEADER + port.0) as usize;
        t.shared[word] = t.shared[word].wrapping_add(t.ports[port].arr_bytes);
    }
    t.ports[port].arr_bytes = 0;
    t.ports[port].arr_n = 0;
    let mut list = gather(t, port);
    let own_queue = port_queue::has_port_queues(&t.exps[0]);
    loop {
        // Times are compared first. Lineages are read only if two events happen at the same time.
        let (completes, arrives) = (completion_time(t, port), arrival_time(t, list));
        let frame = arrival_time(t, t.ports[port].in_frames);
        let now = completes.min(arrives).min(frame);
        if now >= end {
            break;
        }
        let mut kind = PortEvent::Completion(port);
        if arrives == now {
            let arrival = PortEvent::Arrival(list);
            if completes != now || arrival.key(t, now).is_before(&kind.key(t, now)) {
                kind = arrival;
            }
        }
        if frame == now {
            let frame = PortEvent::Frame(port, t.ports[port].in_frames);
            if completes != now && arrives != now || frame.key(t, now).is_before(&kind.key(t, now)) {
                kind = frame;
            }
        }
        let mut event = TimedEvent { t: now, kind };
        let starts = match kind {
            PortEvent::Completion(_) => true,
            PortEvent::Arrival(p) => {
                list = t.packets[p].next;
                if t.exps[0].wred_drops != 0 && wred_drops(t, port, p, now) {
                    give_up(t, port, p);
                    continue;
                }
                if own_queue {
                    event.kind = PortEvent::Arrival(port_queue::join(t, port, p, now));
                } else if by_class {
                    charge_arrival(t, p);
                    enqueue_class(t, port, p, now);
                } else {
                    enqueue(t, port, p, now);
                }
                idle(t, port, &event)
            }
            PortEvent::Frame(_, p) => {
                t.ports[port].in_frames = t.packets[p].next;
                on_frame(t, port, p, &event)
            }
        };
        if starts {
            start_next(t, port, &event, None);
        }
    }
    let clock = completion_time(t, port);
    let clock_idx = port.end(t.exps[0].nic_len).own_clock(t.exps[0].end_len);
    t.clocks[clock_idx] = clock;
    debug_assert!(clock == NEVER || clock >= end);
}

/// Drops packet `p`, which WRED has picked at `port` of an independent switch. With classes it is not charged yet, otherwise it is.
#[inline(never)]
fn give_up(t: &mut Tables, port: PortIdx, p: PacketIdx) {
    if !has_classes(&t.exps[0]) {
        let pk = &t.packets[p];
        let (word, wire) = ((SHARED_HEADER + pk.in_port.0) as usize, pk.meta & meta::WIRE_MASK);
        t.shared[word] = t.shared[word].wrapping_sub(wire);
    }
    drop_packet(t, port, p);
}

/// Whether `port` of an independent switch has something to do before `end`.
#[inline(always)]
pub fn is_due(t: &Tables, port: PortIdx, end: u64) -> bool {
    let e = &t.exps[0];
    let own = port.end(e.nic_len).own_clock(e.end_len);
    let requests = request_word(t, port, 0) as usize;
    let wanted = t.shared[requests..requests + e.mask_words as usize].iter().any(|&word| word != 0);
    let row = &t.ports[port];
    wanted || row.arr_n > 0 || row.in_frames.is_some() || t.clocks[own] < end
}

/// Runs [`forward`] for one row, if the switch is independent and the port has something to do.
#[inline]
pub fn row(t: &mut Tables, port: PortIdx, end: u64) {
    // Most ports have nothing to do, so this is checked first.
    if is_due(t, port, end) && t.switches[t.ports[port].switch_idx].independent != 0 {
        forward(t, port, end);
    }
}
