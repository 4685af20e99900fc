// Traffic classes at a switch port: its pauses, whose turn it is, and the shared buffer by class (twin: `src/engine/cpu/switch/class_port.rs`). The port whose
// queue changes is the one that is held (`held_port.wgsl`). It has the bytes of all its queues, and as `q_head` any packet that could be sent now.

// Index of the shared word with the bytes of `class_` that `port` has taken in and its switch still holds, without headroom.
fn held_word(port: u32, class_: u32) -> u32 {
    return shared_base + SHARED_HEADER + exp_port_len * (1u + exp_mask_words) + port * exps[exp_row].class_n + class_;
}

// Index in `class_queues` of the row of `class_` at `port`.
fn port_queue_row(port: u32, class_: u32) -> u32 {
    return class_queue(exp_nic_len + port, class_);
}

// The classes that `port` could send a packet of now, a bit each.
fn sendable_classes(port: u32) -> u32 {
    let first = port_queue_row(port, 0u);
    let n = exps[exp_row].class_n;
    var classes = 0u;
    for (var class_ = 0u; class_ < n; class_++) {
        let can = class_queues[first + class_].q_head != NONE && class_queues[first + class_].paused == 0u;
        classes |= select(0u, 1u, can) << class_;
    }
    return classes;
}

// Sets `q_head` of the held port to a packet that could be sent now, after a queue or a pause has changed.
fn note_sendable(port: u32) {
    let classes = sendable_classes(port);
    held.q_head = NONE;
    if classes != 0u {
        held.q_head = class_queues[port_queue_row(port, countTrailingZeros(classes))].q_head;
    }
    held_differs = true;
}

// Charges packet `p`, which has arrived at a switch whose ports do not affect each other in this step, to its ingress.
fn charge_arrival(p: u32) {
    let meta_word = packets[packet_base + p].meta_;
    let word = held_word(packets[packet_base + p].in_port, class_of(meta_word));
    atomicAdd(&shared_words[word], meta_word & META_WIRE_MASK);
}

// The class that `port` sends next. Some class can send.
fn class_in_turn(port: u32) -> u32 {
    return choose_class(exp_nic_len + port, sendable_classes(port));
}

// Notes a pause or resume of `class_` by the peer of the held port.
fn pause_class(port: u32, class_: u32, resume: bool) {
    class_queues[port_queue_row(port, class_)].paused = select(1u, 0u, resume);
    note_sendable(port);
}

// What `classify` needs to know of a switch with classes: all bytes that it may hold in this step, and whether every ingress stays below its threshold in every
// class.
struct ClassBound {
    held: u64,
    below: bool,
}

// The bound of switch `s`. It assumes that everything that arrives at a port is of each of its classes, and charged before anything is released.
fn bound_of_classes(s: u32) -> ClassBound {
    let sw = switch_base + s;
    let port_first = switches[sw].port_first;
    let port_end = port_first + switches[sw].port_n;
    let n = exps[exp_row].class_n;
    var bound = ClassBound(0lu, true);
    var shared_sum = 0lu;
    for (var port = port_first; port < port_end; port++) {
        let arriving = u64(ports[port_base + port].arr_bytes);
        bound.held += arriving;
        shared_sum += arriving;
        for (var class_ = 0u; class_ < n; class_++) {
            let bytes = atomicLoad(&shared_words[held_word(port, class_)]);
            bound.held += u64(bytes);
            shared_sum += u64(sub_sat_u32(bytes, exp_reserve));
        }
    }
    let free = sub_sat(switches[sw].shared_size, shared_sum);
    let max_wire = switches[sw].max_wire;
    for (var port = port_first; port < port_end; port++) {
        let limit = free >> ports[port_base + port].shift;
        for (var class_ = 0u; class_ < n; class_++) {
            let bytes = atomicLoad(&shared_words[held_word(port, class_)]) + ports[port_base + port].arr_bytes;
            bound.below = bound.below && u64(sub_sat_u32(bytes, exp_reserve)) < limit;
            let i = port_queue_row(port, class_);
            let admitted = class_queues[i].lossless == 0u || max_wire <= class_queues[i].headroom;
            bound.below = bound.below && (admitted || u64(max_wire) + shared_sum <= limit);
        }
    }
    return bound;
}

// Sums the buffer use of all classes of the ports from `port_first` up to but not `port_end`, which are all of a switch.
fn sum_classes(port_first: u32, port_end: u32) {
    buffer_used = 0lu;
    buffer_held = 0lu;
    let n = exps[exp_row].class_n;
    for (var port = port_first; port < port_end; port++) {
        for (var class_ = 0u; class_ < n; class_++) {
            let bytes = atomicLoad(&shared_words[held_word(port, class_)]);
            buffer_used += u64(sub_sat_u32(bytes, exp_reserve));
            buffer_held += u64(bytes) + u64(class_queues[port_queue_row(port, class_)].headroom_used);
        }
    }
}

// Sets the bytes of `class_` at ingress `port`, headroom not included.
fn set_class(port: u32, class_: u32, bytes: u32) {
    let word = held_word(port, class_);
    let was = atomicLoad(&shared_words[word]);
    atomicStore(&shared_words[word], bytes);
    buffer_used = buffer_used - u64(sub_sat_u32(was, exp_reserve)) + u64(sub_sat_u32(bytes, exp_reserve));
    buffer_held = buffer_held - u64(was) + u64(bytes);
}

// Whether a packet of `class_` with `x` bytes that came in by `port` is admitted.
fn admit_class(port: u32, class_: u32, x: u32) -> bool {
    let i = port_queue_row(port, class_);
    if x + class_queues[i].headroom_used <= class_queues[i].headroom {
        return true;
    }
    let limit = threshold(switch_base + ports[port_base + port].switch_idx, port);
    if class_queues[i].lossless == 0u {
        return u64(sub_sat_u32(atomicLoad(&shared_words[held_word(port, class_)]) + x, exp_reserve)) <= limit;
    }
    return u64(x) + buffer_used <= limit;
}

// Charges `x` bytes of `class_` to ingress `port`, then pauses the class at its peer if that is due.
fn charge_class(port: u32, class_: u32, x: u32) {
    let i = port_queue_row(port, class_);
    let sw = switch_base + ports[port_base + port].switch_idx;
    let bytes = atomicLoad(&shared_words[held_word(port, class_)]) + x;
    if u64(sub_sat_u32(bytes, exp_reserve)) > threshold(sw, port) {
        if class_queues[i].headroom_used == 0u && class_queues[i].pausing == 0u {
            switches[sw].congested_n += 1u;
        }
        class_queues[i].headroom_used += x;
        buffer_held += u64(x);
    } else {
        set_class(port, class_, bytes);
    }
    note_held(sw);
    if class_queues[i].lossless == 0u || class_queues[i].pausing != 0u {
        return;
    }
    let mine = u64(sub_sat_u32(atomicLoad(&shared_words[held_word(port, class_)]), exp_reserve));
    if class_queues[i].headroom_used > 0u || mine >= threshold(sw, port) {
        if class_queues[i].headroom_used == 0u {
            switches[sw].congested_n += 1u;
        }
        class_queues[i].pausing = 1u;
        push_frame(port, class_ << META_CLASS_SHIFT);
        pause_port = port;
    }
}

// Releases `x` bytes of `class_` at ingress `port`; headroom first.
fn release_class(port: u32, class_: u32, x: u32) {
    let i = port_queue_row(port, class_);
    let from_headroom = min(x, class_queues[i].headroom_used);
    if from_headroom > 0u {
        class_queues[i].headroom_used -= from_headroom;
        buffer_held -= u64(from_headroom);
        if class_queues[i].headroom_used == 0u && class_queues[i].pausing == 0u {
            switches[switch_base + ports[port_base + port].switch_idx].congested_n -= 1u;
        }
    }
    set_class(port, class_, atomicLoad(&shared_words[held_word(port, class_)]) - (x - from_headroom));
}

// After a packet of `class_` that came in by `port` left through `egress`: resumes the class at the peer of `port` if that is due.
fn resume_test_class(port: u32, egress: u32, class_: u32) {
    let i = port_queue_row(port, class_);
    if class_queues[i].pausing == 0u || class_queues[i].headroom_used != 0u {
        return;
    }
    let sw = switch_base + ports[port_base + port].switch_idx;
    let mine = u64(sub_sat_u32(atomicLoad(&shared_words[held_word(port, class_)]), exp_reserve));
    if mine == 0lu || mine + u64(exps[exp_row].resume_offset) <= threshold(sw, port) {
        switches[sw].congested_n -= 1u;
        class_queues[i].pausing = 0u;
        push_frame(port, META_RESUME | (class_ << META_CLASS_SHIFT));
        // If it is the egress itself, its transmitter is being loaded at this very moment: the frame goes next.
        if port != egress {
            resume_port = port;
        }
    }
}

// Number of rows that a switch with `port_n` ports may pause by themselves: its ports, or each class of each port.
fn pausable(port_n: u32) -> u32 {
    if !has_classes() {
        return port_n;
    }
    return port_n * exps[exp_row].class_n;
}
