// Which class, and which packet of it, a NIC sends next (twin: `src/engine/cpu/class_turns.rs`).

// Takes the packet that the NIC sends next: of the class whose turn it is an ACK first, else data of its next queue pair. If no class can send, it sets a timer.
fn kick_classes(n: u32, event: EventKey) -> Sending {
    let first = flow_base + nics[nic_base + n].flow_first;
    let count = own.qp_n;
    // A variable window follows DCQCN's rate, which its timers move unseen: all who are asked run their timers. Otherwise only the one who sends does.
    let dcqcn = exp_cc == CC_DCQCN;
    let ask_all = dcqcn && has_mode(MODE_WINDOW) && has_mode(MODE_VAR_WINDOW);
    let ack_prio = has_mode(MODE_ACK_HIGH_PRIO);
    let queues = class_queue(n, 0u);
    // Of each class the eligible queue pair that comes first after the one served last: its index in `order`, and how far it is.
    var found: array<u32, MAX_CLASSES>;
    var distances: array<u32, MAX_CLASSES>;
    for (var class_ = 0u; class_ < MAX_CLASSES; class_++) {
        found[class_] = NONE;
        distances[class_] = NONE;
    }
    var finished = NONE;
    var earliest = NEVER;
    for (var idx = 0u; idx < count; idx++) {
        let f = order[first + idx];
        let tx = flow_base + f;
        if ask_all {
            dcqcn_advance(f, event);
            set_window(n);
        }
        let class_ = flow_tx[tx].class_;
        let next_avail = flow_tx[tx].next_avail;
        let sendable = may_send(tx, class_queues[queues + class_].paused != 0u);
        if sendable && next_avail <= event.t {
            let distance = (idx + count - 1u - class_queues[queues + class_].rr % count) % count;
            if distance < distances[class_] {
                found[class_] = idx;
                distances[class_] = distance;
            }
        }
        if !sendable && (flow_tx[tx].flags & QP_FINISHED) != 0u {
            finished = min(finished, idx);
        } else {
            earliest = min(earliest, next_avail);
        }
    }
    var candidates = 0u;
    let n_classes = exps[exp_row].class_n;
    for (var class_ = 0u; class_ < n_classes; class_++) {
        let answers = class_queues[queues + class_].q_head != NONE && (ack_prio || class_queues[queues + class_].paused == 0u);
        candidates |= select(0u, 1u, answers || found[class_] != NONE) << class_;
    }
    if candidates == 0u {
        if finished != NONE {
            remove_finished(n, finished, NONE);
        }
        look_again(n, earliest, event);
        return Sending(NONE, 0lu);
    }
    let class_ = choose_class(n, candidates);
    let i = queues + class_;
    let p = class_queues[i].q_head;
    let answers = p != NONE && (ack_prio || class_queues[i].paused == 0u);
    var place = select(found[class_], NONE, answers);
    if finished != NONE {
        place = remove_finished(n, finished, place);
    }
    if answers {
        let next = packets[packet_base + p].next;
        class_queues[i].q_head = next;
        if next == NONE {
            class_queues[i].q_tail = NONE;
        }
        spend_allowance(n, class_, packets[packet_base + p].meta_ & META_WIRE_MASK);
        return Sending(p, nics[nic_base + n].tx_ack);
    }
    class_queues[i].rr = place;
    let f = order[first + place];
    if dcqcn && !ask_all {
        dcqcn_advance(f, event);
        set_window(n);
    }
    let sending = send_data(n, f, event);
    spend_allowance(n, class_, flow_tx[flow_base + f].last_wire);
    return sending;
}
