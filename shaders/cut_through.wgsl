// Switches that cut through: they may forward a packet as soon as its header is there (twin: `src/engine/cpu/switch/cut_through.rs`).

// Time in ps from the beginning of a transmission to `peer` until its packet `p` can be handled there, without the delay of the link. It is `x`, that of the
// last bit, or that of the header where a switch at `peer` cuts through. The link runs at `rate` bps.
fn time_on_wire(peer: u32, rate: u64, p: u32, x: u64) -> u64 {
    let word = packets[packet_base + p].meta_;
    let header = exps[exp_row].cut_through;
    let is_switch = (peer & ~LINK_TROUBLE) >= exp_nic_len;
    if packet_kind(word) == KIND_FRAME || !is_switch || (word & META_WIRE_MASK) <= header {
        return x;
    }
    // The port by which the packet leaves the switch. A faster one would run dry.
    let egress = paths[path_base + packets[packet_base + p].path];
    if ports[port_base + egress].rate > rate {
        return x;
    }
    return tx_time(header, rate, u64(exp_clock_ps));
}
