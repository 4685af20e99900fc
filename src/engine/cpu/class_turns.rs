//! Which class, and which packet of it, a NIC sends next (`docs/explanation/model-semantics.md`, "Traffic classes"). Twin: `shaders/class_turns.wgsl`.

use super::cc::dcqcn;
use super::classes::{choose_class, class_queue, spend_allowance};
use super::key::EventKey;
use super::sending::{look_again, may_send, remove_finished, send_data, transmit};
use hyperfold_columns::{FlowIdx, NEVER, NONE, NicIdx, PacketIdx, Tables, cc, meta, mode, qp};

/// Largest number of traffic classes: as many as a packet can name.
const MAX_CLASSES: usize = meta::CLASS_MASK as usize + 1;

/// Lets NIC `n` send one packet of the class whose turn it is: an ACK first, else data of its next queue pair. If no class can send, it sets a timer.
/// PRECONDITION: its transmitter is free, and its link is up.
pub fn kick_classes(t: &mut Tables, n: NicIdx, event: &EventKey) {
    let row = &t.nics[n];
    let (first, count) = (row.flow_first, row.qp_n);
    let e = &t.exps[0];
    let both = mode::WINDOW | mode::VAR_WINDOW;
    let timers = e.cc == cc::DCQCN && e.modes & both == both;
    let (ack_prio, classes) = (e.modes & mode::ACK_HIGH_PRIO != 0, e.class_n);
    let queues = class_queue(e, n.end(), 0);
    // Of each class the eligible queue pair that comes first after the one served last: its index in `order`, and how far it is.
    let mut found = [NONE; MAX_CLASSES];
    let mut distances = [NONE; MAX_CLASSES];
    let mut finished = NONE;
    let mut earliest = NEVER;
    for idx in 0..count {
        let f = t.order[(first + idx).usize()];
        if timers {
            dcqcn::advance(t, f, event);
        }
        let tx = &t.flow_tx[f];
        let class = tx.class as usize;
        let queue = &t.class_queues[queues + class];
        let sendable = may_send(&t.exps[0], tx, queue.paused != 0);
        if sendable && tx.next_avail <= event.t {
            let distance = (idx + count - 1 - queue.rr % count) % count;
            if distance < distances[class] {
                (found[class], distances[class]) = (idx, distance);
            }
        }
        if !sendable && tx.flags & qp::FINISHED != 0 {
            finished = finished.min(idx);
        } else {
            earliest = earliest.min(tx.next_avail);
        }
    }
    let mut candidates = 0u32;
    for class in 0..classes {
        let queue = &t.class_queues[queues + class as usize];
        let answers = queue.q_head.is_some() && (ack_prio || queue.paused == 0);
        candidates |= u32::from(answers || found[class as usize] != NONE) << class;
    }
    if candidates == 0 {
        if finished != NONE {
            remove_finished(t, n, finished, NONE);
        }
        look_again(t, n, earliest, event);
        return;
    }
    let class = choose_class(t, n.end(), candidates);
    let i = queues + class as usize;
    let p = t.class_queues[i].q_head;
    let answers = p.is_some() && (ack_prio || t.class_queues[i].paused == 0);
    let mut place = if answers { NONE } else { found[class as usize] };
    if finished != NONE {
        place = remove_finished(t, n, finished, place);
    }
    if answers {
        let next = t.packets[p].next;
        let queue = &mut t.class_queues[i];
        queue.q_head = next;
        if next.is_none() {
            queue.q_tail = PacketIdx::NONE;
        }
        let wire = t.packets[p].meta & meta::WIRE_MASK;
        spend_allowance(t, n.end(), class, wire);
        let x = t.nics[n].tx_ack;
        transmit(t, n, p, x, event);
    } else {
        t.class_queues[i].rr = place;
        let f: FlowIdx = t.order[(first + place).usize()];
        send_data(t, n, f, event);
        let wire = t.flow_tx[f].last_wire;
        spend_allowance(t, n.end(), class, wire);
    }
}
