// The shared buffer of a switch, exactly, event by event; only `forward_joint` needs it (twin: `src/engine/cpu/switch/mmu.rs`).
//
// A pause frame is queued here and sent by `forward_joint`, so that the code of a transmission is in the kernel once. These say which
// port has one to send.
var<private> pause_port: u32;
var<private> resume_port: u32;

// Buffer use of the switch at hand, summed over its ports: shared bytes, and all bytes. `sum_ports` sets them, and charges and releases keep them up to date.
var<private> buffer_used: u64;
var<private> buffer_held: u64;

// What port `i` occupies of the shared part of the buffer.
fn shared_of(port: u32) -> u32 {
    return sub_sat_u32(ingress_bytes(port), exp_reserve);
}

// Sums the buffer use of the ports from `port_first` up to but not `port_end`, which are all of a switch.
fn sum_ports(port_first: u32, port_end: u32) {
    buffer_used = 0lu;
    buffer_held = 0lu;
    for (var port = port_first; port < port_end; port++) {
        let bytes = ingress_bytes(port);
        buffer_used += u64(sub_sat_u32(bytes, exp_reserve));
        buffer_held += u64(bytes) + u64(ports[port_base + port].headroom_used);
    }
}

// Sets the bytes of ingress `port`, which were `was`, headroom not included.
fn set_ingress(port: u32, was: u32, bytes: u32) {
    atomicStore(&shared_words[ingress_word(port)], bytes);
    buffer_used = buffer_used - u64(sub_sat_u32(was, exp_reserve)) + u64(sub_sat_u32(bytes, exp_reserve));
    buffer_held = buffer_held - u64(was) + u64(bytes);
}

// The dynamic threshold of `port`, in bytes.
fn threshold(sw: u32, port: u32) -> u64 {
    return sub_sat(switches[sw].shared_size, buffer_used) >> ports[port_base + port].shift;
}

// Whether a packet of `x` bytes that came in by `port` may stay. Without PFC there is no headroom, and what would take it is dropped.
fn admit(port: u32, x: u32) -> bool {
    let row = port_base + port;
    if x + ports[row].headroom_used <= ports[row].headroom {
        return true;
    }
    let sw = switch_base + ports[row].switch_idx;
    let limit = threshold(sw, port);
    if !has_mode(MODE_PFC) {
        return u64(sub_sat_u32(ingress_bytes(port) + x, exp_reserve)) <= limit;
    }
    return u64(x) + buffer_used <= limit;
}

// Charges `x` bytes to ingress `port`, then pauses its peer if that is due.
fn charge(port: u32, x: u32) {
    let row = port_base + port;
    let sw = switch_base + ports[row].switch_idx;
    let was = ingress_bytes(port);
    if was + x > exp_reserve && u64(was + x - exp_reserve) > threshold(sw, port) {
        if ports[row].headroom_used == 0u && ports[row].pausing == 0u {
            switches[sw].congested_n += 1u;
        }
        ports[row].headroom_used += x;
        buffer_held += u64(x);
    } else {
        set_ingress(port, was, was + x);
    }
    note_held(sw);
    if !has_mode(MODE_PFC) || ports[row].pausing != 0u {
        return;
    }
    if ports[row].headroom_used > 0u || u64(shared_of(port)) >= threshold(sw, port) {
        if ports[row].headroom_used == 0u {
            switches[sw].congested_n += 1u;
        }
        ports[row].pausing = 1u;
        push_frame(port, 0u);
        pause_port = port;
    }
}

// Remembers the most the switch has held, and that it was too much.
fn note_held(sw: u32) {
    if buffer_held > switches[sw].max_held {
        switches[sw].max_held = buffer_held;
    }
    if buffer_held > exps[exp_row].buffer {
        set_flag(FLAG_OVER_BUFFER);
    }
}

// Releases `x` bytes of ingress `port`.
fn release(port: u32, x: u32) {
    let row = port_base + port;
    let in_headroom = ports[row].headroom_used;
    let from_headroom = min(x, in_headroom);
    if from_headroom > 0u {
        ports[row].headroom_used = in_headroom - from_headroom;
        buffer_held -= u64(from_headroom);
        if in_headroom == from_headroom && ports[row].pausing == 0u {
            switches[switch_base + ports[row].switch_idx].congested_n -= 1u;
        }
    }
    let was = ingress_bytes(port);
    set_ingress(port, was, was - (x - from_headroom));
}

// After a packet that came in by `port` left through `egress`: resumes the peer of `port` if that is due.
fn resume_test(port: u32, egress: u32) {
    let row = port_base + port;
    if ports[row].pausing == 0u || ports[row].headroom_used != 0u {
        return;
    }
    let sw = switch_base + ports[row].switch_idx;
    let mine = u64(shared_of(port));
    if mine == 0lu || mine + u64(exps[exp_row].resume_offset) <= threshold(sw, port) {
        switches[sw].congested_n -= 1u;
        ports[row].pausing = 0u;
        push_frame(port, META_RESUME);
        // If it is the egress itself, its transmitter is being loaded at this very moment: the frame goes next.
        if port != egress {
            resume_port = port;
        }
    }
}

// Takes a record from the switch's pool and makes it the last frame of `port`. `bits` of its `meta` say whether it is a resume frame, and for which class.
fn push_frame(port: u32, bits: u32) {
    let s = ports[port_base + port].switch_idx;
    let sw = switch_base + s;
    let p = switches[sw].free_head;
    if p == NONE {
        set_flag(FLAG_POOL_EMPTY);
        return;
    }
    let pk = packet_base + p;
    switches[sw].free_head = packets[pk].next;
    switches[sw].free_n -= 1u;
    packets[pk].flow = s;
    packets[pk].path = 0u;
    packets[pk].payload = NONE;
    packets[pk].in_port = NONE;
    packets[pk].meta_ = FRAME_BYTES | (KIND_FRAME << META_KIND_SHIFT) | bits;
    push_first(port, p);
}
