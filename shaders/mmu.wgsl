// The shared buffer of a switch, exactly, event by event; only `forward_joint` needs it (twin: `src/engine/cpu/switch/mmu.rs`).
//
// A pause frame is queued here and sent by `forward_joint`, so that the code of a transmission is in the kernel once. These say which
// port has one to send.
var<private> pause_port: u32;
var<private> resume_port: u32;

// What port `i` occupies of the shared part of the buffer.
fn shared_of(port: u32) -> u32 {
    return sub_sat_u32(ingress_bytes(port), exps[exp_row].reserve);
}

// Shared bytes in use at switch row `sw`.
fn shared_used(sw: u32) -> u64 {
    let port_first = switches[sw].port_first;
    let port_end = port_first + switches[sw].port_n;
    var sum = 0lu;
    for (var p = port_first; p < port_end; p++) {
        sum += u64(shared_of(p));
    }
    return sum;
}

// The dynamic threshold of port `i` with `used` shared bytes in use.
fn threshold(sw: u32, port: u32, used: u64) -> u64 {
    return sub_sat(switches[sw].shared_size, used) >> ports[port_base + port].shift;
}

// Whether a packet of `x` bytes that came in by `port` may stay. Without PFC there is no headroom, and what would take it is dropped.
fn admit(port: u32, x: u32) -> bool {
    let row = port_base + port;
    if x + ports[row].headroom_used <= ports[row].headroom {
        return true;
    }
    let sw = switch_base + ports[row].switch_idx;
    let used = shared_used(sw);
    let limit = threshold(sw, port, used);
    if !has_mode(MODE_PFC) {
        return u64(sub_sat_u32(ingress_bytes(port) + x, exps[exp_row].reserve)) <= limit;
    }
    return u64(x) + used <= limit;
}

// Charges `x` bytes to ingress `port`, then pauses its peer if that is due.
fn charge(port: u32, x: u32) {
    let row = port_base + port;
    let sw = switch_base + ports[row].switch_idx;
    let reserve = exps[exp_row].reserve;
    let used_before = shared_used(sw);
    let n = ingress_bytes(port) + x;
    if n > reserve && u64(n - reserve) > threshold(sw, port, used_before) {
        if ports[row].headroom_used == 0u && ports[row].pausing == 0u {
            switches[sw].congested_n += 1u;
        }
        ports[row].headroom_used += x;
    } else {
        atomicStore(&shared_words[ingress_word(port)], n);
    }
    note_held(sw);
    if !has_mode(MODE_PFC) || ports[row].pausing != 0u {
        return;
    }
    let used = shared_used(sw);
    if ports[row].headroom_used > 0u || u64(shared_of(port)) >= threshold(sw, port, used) {
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
    let port_first = switches[sw].port_first;
    let port_end = port_first + switches[sw].port_n;
    var held = 0lu;
    for (var p = port_first; p < port_end; p++) {
        held += u64(ingress_bytes(p)) + u64(ports[port_base + p].headroom_used);
    }
    if held > switches[sw].max_held {
        switches[sw].max_held = held;
    }
    if held > exps[exp_row].buffer {
        set_flag(FLAG_OVER_BUFFER);
    }
}

// Releases `x` bytes of ingress `port`.
fn release(port: u32, x: u32) {
    let row = port_base + port;
    let was = ports[row].headroom_used;
    let from_headroom = min(x, was);
    ports[row].headroom_used = was - from_headroom;
    if was > 0u && was == from_headroom && ports[row].pausing == 0u {
        switches[switch_base + ports[row].switch_idx].congested_n -= 1u;
    }
    atomicSub(&shared_words[ingress_word(port)], x - from_headroom);
}

// After a packet that came in by `port` left through `egress`: resumes the peer of `port` if that is due.
fn resume_test(port: u32, egress: u32) {
    let row = port_base + port;
    if ports[row].pausing == 0u || ports[row].headroom_used != 0u {
        return;
    }
    let sw = switch_base + ports[row].switch_idx;
    let mine = u64(shared_of(port));
    let used = shared_used(sw);
    if mine == 0lu || mine + u64(exps[exp_row].resume_offset) <= threshold(sw, port, used) {
        switches[sw].congested_n -= 1u;
        ports[row].pausing = 0u;
        push_frame(port, META_RESUME);
        // If it is the egress itself, its transmitter is being loaded at this very moment: the frame goes next.
        if port != egress {
            resume_port = port;
        }
    }
}

// Takes a record from the switch's pool and makes it the last frame of `port`.
fn push_frame(port: u32, resume: u32) {
    let row = port_base + port;
    let s = ports[row].switch_idx;
    let sw = switch_base + s;
    let p = switches[sw].free_head;
    if p == NONE {
        set_flag(FLAG_POOL_EMPTY);
        return;
    }
    let pk = packet_base + p;
    switches[sw].free_head = packets[pk].next;
    switches[sw].free_n -= 1u;
    packets[pk].next = NONE;
    packets[pk].flow = s;
    packets[pk].path = 0u;
    packets[pk].payload = NONE;
    packets[pk].in_port = NONE;
    packets[pk].meta_ = FRAME_BYTES | (KIND_FRAME << META_KIND_SHIFT) | resume;
    let tail = ports[row].frame_tail;
    ports[row].frame_tail = p;
    ports[row].frames += 1u;
    if tail == NONE {
        ports[row].frame_head = p;
    } else {
        packets[packet_base + tail].next = p;
    }
}
