//! System `plan`, one row per switch port: sorts the packets that arrive in this step by their egress port (twin: `shaders/plan.wgsl`).

use super::adaptive::{first_choice, is_adaptive};
use hyperfold_columns::{NEVER, PacketIdx, PortIdx, SHARED_HEADER, Tables, kind, meta};

/// Index of the word in which ingress number `ingress` of a switch tells egress `port` that it has packets for it.
#[inline]
pub fn request_word(t: &Tables, port: PortIdx, ingress: u32) -> u32 {
    let e = &t.exps[0];
    SHARED_HEADER + e.port_len + port.0 * e.mask_words + ingress / 32
}

/// Takes all packets that arrive at `port` before `end` off its wire, and lists them by egress.
#[inline]
pub fn plan(t: &mut Tables, port: PortIdx, end: u64) {
    if is_adaptive(&t.exps[0]) {
        list_by_egress::<true>(t, port, end);
    } else {
        list_by_egress::<false>(t, port, end);
    }
}

/// [`plan`], where `CHOOSES` says whether switches choose the egress ports of data.
fn list_by_egress<const CHOOSES: bool>(t: &mut Tables, port: PortIdx, end: u64) {
    let link_end = port.end(t.exps[0].nic_len);
    let switch = t.ports[port].switch_idx;
    let (port_first, port_n, plan_first) = {
        let s = &t.switches[switch];
        (s.port_first, s.port_n, s.plan_first)
    };
    let local = port - port_first;
    let (word, bit) = (request_word(t, PortIdx(0), local), 1u32 << (local % 32));
    let words = t.exps[0].mask_words;
    let plans = plan_first + local * port_n;
    let mut bytes = 0;
    let mut n = 0;
    let mut taken = 0;
    let mut frame_tail = PacketIdx::NONE;
    let mut p = t.wires[link_end].head;
    let mut next_at = NEVER;
    while p.is_some() {
        let pk = &mut t.packets[p];
        if pk.t >= end {
            next_at = pk.t;
            break;
        }
        let next = std::mem::replace(&mut pk.next, PacketIdx::NONE);
        taken += 1;
        if (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::FRAME {
            if frame_tail.is_none() {
                t.ports[port].in_frames = p;
            } else {
                t.packets[frame_tail].next = p;
            }
            frame_tail = p;
            p = next;
            continue;
        }
        pk.in_port = port;
        bytes += pk.meta & meta::WIRE_MASK;
        n += 1;
        let egress = if CHOOSES && (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA {
            first_choice(t, p)
        } else {
            let place = pk.path;
            pk.path = place + 1;
            t.paths[place as usize]
        };
        let entry = (plans + (egress - port_first)) as usize;
        let word = (word + egress.0 * words) as usize;
        if t.shared[word] & bit == 0 {
            t.shared[word] |= bit;
            t.plans[entry].head = p;
        } else {
            let tail = t.plans[entry].tail;
            t.packets[tail].next = p;
        }
        t.plans[entry].tail = p;
        p = next;
    }
    let wire = &mut t.wires[link_end];
    wire.head = p;
    wire.n -= taken;
    if p.is_none() {
        wire.tail = PacketIdx::NONE;
    }
    t.clocks[link_end.usize()] = next_at;
    let row = &mut t.ports[port];
    row.arr_bytes = bytes;
    row.arr_n = n;
}

/// Runs [`plan`] for one row, if a packet reaches the port before `end`.
#[inline]
pub fn row(t: &mut Tables, port: PortIdx, end: u64) {
    let link_end = port.end(t.exps[0].nic_len);
    if t.clocks[link_end.usize()] < end {
        plan(t, port, end);
    }
}
