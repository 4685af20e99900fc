//! Switches that cut through: they may forward a packet as soon as its header is there (twin: `shaders/cut_through.wgsl`).

use crate::cpu::math::tx_time;
use hyperfold_columns::{LINK_TROUBLE, LinkEndIdx, PacketIdx, Tables, kind, meta};

/// Time in ps from the beginning of a transmission to `peer` until its packet `p` can be handled there, without the delay of the link. It is `x`, that of the
/// last bit, or that of the header where a switch at `peer` cuts through. The link runs at `rate` bps.
#[inline(never)]
pub fn time_on_wire(t: &Tables, peer: LinkEndIdx, rate: u64, p: PacketIdx, x: u64) -> u64 {
    let e = &t.exps[0];
    let (path, word) = (t.packets[p].path, t.packets[p].meta);
    let is_frame = (word >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::FRAME;
    let is_switch = peer.0 & !LINK_TROUBLE >= e.nic_len;
    if is_frame || !is_switch || word & meta::WIRE_MASK <= e.cut_through {
        return x;
    }
    // The port by which the packet leaves the switch. A faster one would run dry.
    let egress = t.paths[path as usize];
    if t.ports[egress].rate > rate { x } else { tx_time(e.cut_through, rate, u64::from(e.clock_ps)) }
}
