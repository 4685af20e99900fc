// System `forward_joint`, a row a switch that is not independent (twin: `src/engine/cpu/switch/forward_joint.rs`). One invocation processes all
// ports in time order, because a departure at one port can release, pause, resume or drop at another at the same instant, and because packets choose among
// ports.

// Stores the time of the next event at the held `port` in the port's own clock.
fn note_next(port: u32) {
    let arrival = min(arrival_time(ports[port_base + port].merged), arrival_time(held.in_frames));
    clocks[own_clock(port)] = min(completion_time(), arrival);
}

// An event at a port, and its kind.
struct JointEvent {
    event: EventKey,
    what: u32,
    port: u32,
}

// The first event before `end` at the ports from `port_first` up to but not `last`. Only ports whose clock says that they are the first are read.
fn forward_joint_next_event(port_first: u32, last: u32, end: u64) -> JointEvent {
    var next = JointEvent(no_event(), AT_COMPLETION, port_first);
    var earliest = NEVER;
    var tie_end = port_first;
    let first_clock = own_clock(port_first) - port_first;
    for (var port = port_first; port < last; port++) {
        let t = clocks[first_clock + port];
        if t < earliest {
            earliest = t;
            next.port = port;
        }
        // Behind this port none is at the earliest time.
        if t == earliest {
            tie_end = port + 1u;
        }
    }
    if earliest >= end {
        return next;
    }
    for (var port = next.port; port < tie_end; port++) {
        if clocks[first_clock + port] == earliest {
            hold(port);
            let list = ports[port_base + port].merged;
            let first = first_port_event(
                port,
                list,
                packet_row(list),
                completion_time(),
                arrival_time(held.in_frames)
            );
            if before(first.key, next.event) {
                next = JointEvent(first.key, first.what, port);
            }
        }
    }
    return next;
}

// Processes switch `s` up to `end`. While it runs, the own clock of a port holds the time of its next event of any kind.
fn forward_joint(s: u32, end: u64) {
    let sw = switch_base + s;
    let port_first = switches[sw].port_first;
    let port_end = port_first + switches[sw].port_n;
    for (var port = port_first; port < port_end; port++) {
        let row = port_base + port;
        if has_port_queues() {
            atomicAdd(&shared_words[ingress_word(port)], ports[row].arr_bytes);
        }
        let list = gather(port);
        ports[row].merged = list;
        ports[row].arr_bytes = 0u;
        ports[row].arr_n = 0u;
        let arrival = min(arrival_time(list), arrival_time(ports[row].in_frames));
        clocks[own_clock(port)] = min(completion_in_row(port), arrival);
    }
    if has_classes() {
        sum_classes(port_first, port_end);
    } else {
        sum_ports(port_first, port_end);
    }
    loop {
        let first = forward_joint_next_event(port_first, port_end, end);
        let next = first.event;
        if next.t >= end {
            break;
        }
        let is_arrival = first.what == AT_ARRIVAL;
        var which = first.port;
        // The port that an arrival was listed for, if the packet goes on by another.
        var not_taken = NONE;
        var p = NONE;
        if is_arrival {
            p = ports[port_base + which].merged;
            ports[port_base + which].merged = packets[packet_base + p].next;
            if is_adaptive() {
                which = choose(first.port, p, next.t);
                not_taken = select(NONE, first.port, which != first.port);
            }
        }
        pause_port = NONE;
        resume_port = NONE;
        hold(which);
        // Whether the port's transmitter is to be asked if it is free.
        var asks = true;
        if is_arrival {
            let ingress = packets[packet_base + p].in_port;
            let wire = packets[packet_base + p].meta_ & META_WIRE_MASK;
            var is_picked = false;
            if HAS_AVERAGES {
                is_picked = wred_drops(which, p, next.t);
            }
            if has_port_queues() {
                join(which, p, wire, next.t);
            } else if has_classes() {
                let class_ = class_of(packets[packet_base + p].meta_);
                asks = !is_picked && admit_class(ingress, class_, wire);
                if asks {
                    charge_class(ingress, class_, wire);
                    enqueue_class(which, p, wire, next.t);
                }
            } else {
                asks = !is_picked && admit(ingress, wire);
                if asks {
                    charge(ingress, wire);
                    enqueue(which, p, wire, next.t);
                }
            }
            if !asks {
                drop_packet(which, p);
            }
        } else if first.what == AT_FRAME {
            let frame = held.in_frames;
            held.in_frames = packets[packet_base + frame].next;
            asks = on_frame(which, frame, next);
        }
        // The pause frame that the charge has queued, then the port itself, then the resume frame that its departure has queued. Last comes the port that was
        // not taken, where nothing starts.
        for (var turn = 0u; turn < 4u; turn++) {
            var port = which;
            if turn == 0u {
                port = pause_port;
            } else if turn == 2u {
                port = resume_port;
            } else if turn == 3u {
                port = not_taken;
            }
            if port == NONE {
                continue;
            }
            hold(port);
            var start = turn == 1u && first.what == AT_COMPLETION;
            if !start && turn != 3u && (turn != 1u || asks) {
                start = idle(port, next) && (turn == 1u || held.frame_head != NONE);
            }
            if start {
                start_next(port, next, !has_port_queues());
            }
            note_next(port);
        }
    }
    let_go();
    for (var port = port_first; port < port_end; port++) {
        clocks[own_clock(port)] = completion_in_row(port);
    }
}

// `forward_joint` for a row: at switches that are not independent.
fn forward_joint_row(s: u32, end: u64) {
    if switches[switch_base + s].independent == 0u {
        forward_joint(s, end);
    }
}
