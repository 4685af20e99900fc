// System `forward_joint`, a row a switch that is not independent (twin: `src/engine/cpu/switch/forward_joint.rs`). One invocation processes all
// ports in time order, because a departure at one port can release, pause, resume or drop at another at the same instant.

// Arrival time of packet `p`; `NEVER` where there is none.
fn arrival_time(p: u32) -> u64 {
    if p == NONE {
        return NEVER;
    }
    return packets[packet_base + p].t;
}

// Stores the time of the next event at `port` in the port's own clock.
fn note_next(port: u32) {
    let row = port_base + port;
    let arrival = min(arrival_time(ports[row].merged), arrival_time(ports[row].in_frames));
    clocks[own_clock(port)] = min(completion(port).t, arrival);
}

// An event at a port, and its kind.
struct JointEvent {
    event: EventKey,
    what: u32,
    port: u32,
}

// The first event before `end` at the ports from `first` up to but not `last`. Only ports whose clock says that they are the first are read.
fn next_joint_event(first: u32, last: u32, end: u64) -> JointEvent {
    var next = JointEvent(no_event(), AT_COMPLETION, first);
    var earliest = NEVER;
    for (var port = first; port < last; port++) {
        earliest = min(earliest, clocks[own_clock(port)]);
    }
    if earliest >= end {
        return next;
    }
    for (var port = first; port < last; port++) {
        if clocks[own_clock(port)] == earliest {
            for (var k = AT_COMPLETION; k <= AT_FRAME; k++) {
                let event = port_event(port, k, ports[port_base + port].merged);
                if before(event, next.event) {
                    next = JointEvent(event, k, port);
                }
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
        ports[port_base + port].merged = gather(port);
        ports[port_base + port].arr_bytes = 0u;
        ports[port_base + port].arr_n = 0u;
        note_next(port);
    }
    loop {
        let first = next_joint_event(port_first, port_end, end);
        let next = first.event;
        if next.t >= end {
            break;
        }
        let which = first.port;
        let row = port_base + which;
        var start = first.what == AT_COMPLETION;
        pause_port = NONE;
        resume_port = NONE;
        if first.what == AT_ARRIVAL {
            let p = ports[row].merged;
            ports[row].merged = packets[packet_base + p].next;
            let ingress = packets[packet_base + p].in_port;
            let wire = packets[packet_base + p].meta_ & META_WIRE_MASK;
            if !admit(ingress, wire) {
                drop_packet(which, p);
                note_next(which);
                continue;
            }
            charge(ingress, wire);
            enqueue(which, p, next.t);
        } else if first.what == AT_FRAME {
            let p = ports[row].in_frames;
            ports[row].in_frames = packets[packet_base + p].next;
            start = on_frame(which, p, next);
        }
        // The pause frame that the charge has queued, then the port itself, then the resume frame that its departure has queued.
        for (var turn = 0u; turn < 3u; turn++) {
            var port = which;
            if turn == 0u {
                port = pause_port;
            } else if turn == 2u {
                port = resume_port;
            }
            if port == NONE {
                continue;
            }
            if turn != 1u || first.what == AT_ARRIVAL {
                start = idle(port, next);
                if turn != 1u {
                    start = start && ports[port_base + port].frame_head != NONE;
                }
            }
            if start {
                start_next(port, next, true);
            }
            note_next(port);
        }
    }
    for (var port = port_first; port < port_end; port++) {
        clocks[own_clock(port)] = completion(port).t;
    }
}

// Drops `p` on its way to egress `port`.
fn drop_packet(port: u32, p: u32) {
    let row = port_base + port;
    let data = packet_kind(packets[packet_base + p].meta_) == KIND_DATA;
    ports[row].drops += 1u;
    if data {
        ports[row].dropped_bytes += u64(packets[packet_base + p].payload);
    }
    return_later(port, p);
}

// `forward_joint` for a row: at switches that are not independent.
fn forward_joint_row(s: u32, end: u64) {
    if switches[switch_base + s].independent == 0u {
        forward_joint(s, end);
    }
}
