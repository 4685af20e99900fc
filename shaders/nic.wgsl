// System `nic`, a row a NIC with all its queue pairs: arrivals, transmitter, pacing, timeouts and flow starts in time order
// (twin: `src/engine/cpu/nic.rs`). A NIC is one serial unit: what happens here at one instant depends on the order.
//
// Handlers of events return whether the NIC may have something to send now. `nic` then calls `kick`, the only place that sends, after
// `drain` has released tasks. So the code of both is in the kernel once.

// Processes NIC `n` up to `end`.
fn nic(n: u32, end: u64) {
    let row = nic_base + n;
    hold_nic(n);
    window_due = NONE;
    loop {
        let t = next_time(n);
        if t >= end {
            break;
        }
        let next = next_event(n, t);
        begin_chain();
        var may_send_now = true;
        switch next.kind {
            case EVENT_COMPLETION: {
                own.busy_until = NEVER;
            }
            case EVENT_ARRIVAL: {
                may_send_now = arrive(n, next);
            }
            case EVENT_TIMER: {
                own.timer = NEVER;
                if takes_credit() {
                    grant(n, next);
                }
            }
            case EVENT_RTO: {
                may_send_now = timeout(n, next);
            }
            case EVENT_START: {
                start_flow(n, next);
            }
            default: {
                if HAS_TASKS {
                    may_send_now = due(n, next.t);
                }
            }
        }
        set_window(n);
        if HAS_TASKS {
            drain(n, next.t);
        }
        if may_send_now {
            kick(n, next);
        }
    }
    clocks[clock_base + exp_end_len + n] = min(min(min(own.busy_until, own.timer), own.rto), min(own.next_start, nics[row].next_task));
    if own.free_n < nics[row].worst {
        set_flag(FLAG_NEEDS_PACKETS);
    }
    let_nic_go(n);
}

// When the next event of any kind comes at the NIC; `NEVER` if none does.
fn next_time(n: u32) -> u64 {
    let sends = min(min(own.busy_until, own.timer), own.rto);
    return min(min(sends, own.in_t), min(own.next_start, nics[nic_base + n].next_task));
}

// When the event of one kind comes next at the NIC; `NEVER` if none does.
fn event_time(n: u32, kind: u32) -> u64 {
    switch kind {
        case EVENT_COMPLETION: {
            return own.busy_until;
        }
        case EVENT_ARRIVAL: {
            return own.in_t;
        }
        case EVENT_TIMER: {
            return own.timer;
        }
        case EVENT_RTO: {
            return own.rto;
        }
        case EVENT_START: {
            return own.next_start;
        }
        case EVENT_TASK: {
            return nics[nic_base + n].next_task;
        }
        default: {
            return NEVER;
        }
    }
}

// The key of that event.
fn event_key(n: u32, kind: u32, t: u64) -> EventKey {
    let row = nic_base + n;
    switch kind {
        case EVENT_COMPLETION: {
            return EventKey(t, nics[row].busy_d, kind, n);
        }
        case EVENT_ARRIVAL: {
            return EventKey(t, restored(details[packet_base + own.in_head].d), kind, n);
        }
        case EVENT_TIMER: {
            return EventKey(t, nics[row].timer_d, kind, n);
        }
        case EVENT_RTO: {
            // Scheduled longer ago than anything.
            return EventKey(t, periodic(0xffffffffu, 0xffffffffu, 0u), kind, 0u);
        }
        case EVENT_TASK: {
            return task_key(nics[row].task_head);
        }
        default: {
            let f = flow_base + nics[nic_base + n].flow_first + nics[row].flow_next;
            return EventKey(t, periodic(0u, 0u, flow_tx[f].flow_id + 1u), kind, 0u);
        }
    }
}

// The first of what happens at a NIC at `t`, its earliest time. Only what happens then is read.
fn next_event(n: u32, t: u64) -> EventKey {
    var next = no_event();
    for (var kind = EVENT_COMPLETION; kind <= EVENT_TASK; kind++) {
        if event_time(n, kind) == t {
            let event = event_key(n, kind, t);
            if before(event, next) {
                next = event;
            }
        }
    }
    return next;
}

// A packet arrives.
fn arrive(n: u32, event: EventKey) -> bool {
    let p = take_arrival();
    if has_mode(MODE_CHANGES) && (own.peer & FLOWS_LEFT) != 0u && passes_on(n, p) {
        return false;
    }
    let meta_word = packets[packet_base + p].meta_;
    let what = packet_kind(meta_word);
    if what == KIND_DATA {
        return on_data(n, p, event);
    }
    let pulls = what == KIND_ACK && (meta_word & META_PULL) != 0u;
    if what != KIND_FRAME && !pulls {
        on_ack(n, p, event);
        return true;
    }
    let row = nic_base + n;
    packets[packet_base + p].next = nics[row].to_return;
    nics[row].to_return = p;
    set_flag(FLAG_TO_RETURN);
    if pulls {
        on_pull(p);
        return true;
    }
    let resume = (meta_word & META_RESUME) != 0u;
    if !resume {
        nics[row].pauses += 1u;
    }
    if has_classes() {
        class_queues[class_queue(n, class_of(meta_word))].paused = select(1u, 0u, resume);
    } else {
        own.paused = select(1u, 0u, resume);
    }
    pause_ps[wire_base + n] += select(0lu - event.t, event.t, resume);
    return resume;
}

// The next flow of the NIC starts: a queue pair is created.
fn start_flow(n: u32, event: EventKey) {
    let row = nic_base + n;
    let first = nics[nic_base + n].flow_first;
    let f = first + nics[row].flow_next;
    let flow_next = nics[row].flow_next + 1u;
    nics[row].flow_next = flow_next;
    if flow_next < nics[row].flow_n {
        own.next_start = flow_tx[flow_base + first + flow_next].start;
    } else {
        own.next_start = NEVER;
    }
    create(n, f, event.t);
    join_order(n, f);
}

// Retransmission: the due queue pair with the lowest flow number goes back to what is not acknowledged.
fn timeout(n: u32, event: EventKey) -> bool {
    let first = flow_base + nics[nic_base + n].flow_first;
    let qp_n = own.qp_n;
    var due = NONE;
    for (var k = 0u; k < qp_n; k++) {
        let f = order[first + k];
        if flow_tx[flow_base + f].rto_at <= event.t {
            if due == NONE {
                due = f;
            } else if flow_tx[flow_base + f].flow_id < flow_tx[flow_base + due].flow_id {
                due = f;
            }
        }
    }
    if due != NONE {
        let tx = flow_base + due;
        var retries = flow_tx[tx].retries + 1u;
        // Nothing is in flight after this, so that there is no deadline until the next packet is sent.
        flow_tx[tx].rto_at = NEVER;
        if is_uec() {
            if !uec_time_out(due, event.t) {
                retries -= 1u;
            }
        } else if takes_any_order() {
            time_out(due, event.t);
        } else {
            if !has_mode(MODE_NS3_LOSS) {
                halve_loss_window(tx, event.t);
            }
            step_back(tx);
        }
        flow_tx[tx].retries = retries;
        if retries > exps[exp_row].rto_retries {
            set_flag(FLAG_GAVE_UP);
        }
    }
    var earliest = NEVER;
    for (var k = 0u; k < qp_n; k++) {
        earliest = min(earliest, flow_tx[flow_base + order[first + k]].rto_at);
    }
    own.rto = earliest;
    return due != NONE;
}

// What a NIC sends next: a packet, or none, and the time that takes.
struct Sending {
    p: u32,
    x: u64,
}

// Gives the NIC the chance to send: an ACK first, else the next queue pair in turn that may, else a timer.
fn kick(n: u32, event: EventKey) {
    let row = nic_base + n;
    if own.busy_until != NEVER || own.paused == HOLDS {
        return;
    }
    var sending = Sending(NONE, 0lu);
    let paused = own.paused != 0u;
    if has_classes() {
        sending = kick_classes(n, event);
    } else if own.ack_head != NONE && (has_mode(MODE_ACK_HIGH_PRIO) || !paused) {
        sending = send_ack(n);
    } else {
        let f = next_queue_pair(n, paused, event);
        if f != NONE {
            sending = send_data(n, f, event);
        }
    }
    if sending.p != NONE {
        sending_transmit(n, sending.p, sending.x, event);
    }
}

// The queue pair whose turn it is, its timers run; if there is none, the timer is set.
fn next_queue_pair(n: u32, paused: bool, event: EventKey) -> u32 {
    let row = nic_base + n;
    let first = flow_base + nics[nic_base + n].flow_first;
    let count = own.qp_n;
    if count == 0u {
        return NONE;
    }
    // A variable window follows DCQCN's rate, which its timers move unseen: all who are asked run their timers. Otherwise only the
    // one who sends does.
    let dcqcn = exp_cc == CC_DCQCN;
    let ask_all = dcqcn && has_mode(MODE_WINDOW) && has_mode(MODE_VAR_WINDOW);
    var idx = own.rr % count;
    var found = NONE;
    var finished = NONE;
    var earliest = NEVER;
    for (var k = 0u; k < count; k++) {
        idx += 1u;
        if idx >= count {
            idx = 0u;
        }
        let f = order[first + idx];
        let tx = flow_base + f;
        let next_avail = flow_tx[tx].next_avail;
        var sendable = !ask_all && may_send(tx, paused);
        if ask_all || (dcqcn && sendable && next_avail <= event.t) {
            dcqcn_advance(f, event);
            set_window(n);
        }
        if ask_all {
            sendable = may_send(tx, paused);
        }
        if sendable && next_avail <= event.t {
            found = idx;
            break;
        }
        if !sendable && (flow_tx[tx].flags & QP_FINISHED) != 0u {
            finished = min(finished, idx);
        } else {
            earliest = min(earliest, next_avail);
        }
    }
    if finished != NONE {
        found = remove_finished(n, finished, found);
    }
    if found != NONE {
        own.rr = found;
        return order[first + found];
    }
    look_again(n, earliest, event);
    return NONE;
}

fn send_ack(n: u32) -> Sending {
    let p = own.ack_head;
    let next = packets[packet_base + p].next;
    own.ack_head = next;
    if next == NONE {
        nics[nic_base + n].ack_tail = NONE;
    }
    return Sending(p, nics[nic_base + n].tx_ack);
}

// `nic` for a row: where there is something to do.
fn nic_row(n: u32, end: u64) {
    if clocks[clock_base + n] < end || clocks[clock_base + exp_end_len + n] < end {
        nic(n, end);
    }
}
