//! System `nic`, one row per NIC with all its queue pairs: arrivals, transmitter, pacing, timeouts and flow starts in time order (twin:
//! `shaders/nic.wgsl`). A NIC is one serial unit: what happens at one instant depends on the order.
//!
//! Event handlers return whether the NIC may have something to send now. [`nic`] then calls `kick`, the only place that sends.

use super::cc::dcqcn;
use super::class_turns::kick_classes;
use super::classes::{class_of, class_queue, has_classes};
use super::key::{ARRIVAL, COMPLETION, EventKey, NO_EVENT, RTO, START, TIMER, before, periodic};
use super::lists::{fetch, fetch_rest, wire_pop};
use super::moved_pairs::passes_on;
use super::sending::{look_again, may_send, remove_finished, send_data, transmit};
use super::task;
use super::transport::stream::{is_uec, takes_any_order, takes_credit};
use super::transport::{credit, queue_pair, receiver, selective, sender, uec};
use hyperfold_columns::{
    FLOWS_LEFT, FlowIdx, HOLDS, NEVER, NONE, NicIdx, PacketIdx, Tables, cc, flag, kind, meta, mode, qp,
};

/// Number of consecutive NICs whose arrivals are prefetched together.
pub const TOGETHER: u32 = 8;

/// Processes NIC `n` up to `end`, or up to the first post or start of a queue pair that folding holds back.
pub fn nic(t: &mut Tables, n: NicIdx, end: u64) {
    loop {
        let now = next_time(t, n);
        if now >= end {
            break;
        }
        let next = event_at(t, n, now);
        let may_send = match next.kind {
            COMPLETION => {
                t.nics[n].busy_until = NEVER;
                true
            }
            ARRIVAL => arrive(t, n, &next),
            TIMER => {
                t.nics[n].timer = NEVER;
                if takes_credit(&t.exps[0]) {
                    credit::grant(t, n, &next);
                }
                true
            }
            RTO => timeout(t, n, &next),
            START => {
                let row = &t.nics[n];
                if t.flow_tx[row.flow_first + row.flow_next].flags & qp::HELD != 0 {
                    break;
                }
                start_flow(t, n, &next);
                true
            }
            _ => {
                if task::is_held(t, n) {
                    break;
                }
                task::due(t, n, &next)
            }
        };
        if may_send {
            kick(t, n, &next);
        }
    }
    set_clock(t, n);
    let row = &t.nics[n];
    if row.free_n < row.worst {
        t.raise(flag::NEEDS_PACKETS);
    }
}

/// Sets the NIC's own clock to its earliest event that is not an arrival.
pub fn set_clock(t: &mut Tables, n: NicIdx) {
    let clock = own_time(t, n);
    let clock_idx = n.end().own_clock(t.exps[0].end_len);
    t.clocks[clock_idx] = clock;
}

/// Time of the NIC's earliest event that is not an arrival, in ps.
#[inline]
fn own_time(t: &Tables, n: NicIdx) -> u64 {
    let row = &t.nics[n];
    row.busy_until.min(row.timer).min(row.rto).min(row.next_start).min(row.next_task)
}

/// Time of the NIC's earliest event, arrivals included, in ps.
#[inline]
fn next_time(t: &Tables, n: NicIdx) -> u64 {
    own_time(t, n).min(t.clocks[n.usize()])
}

/// The NIC's earliest event.
pub fn next_event(t: &Tables, n: NicIdx) -> EventKey {
    let now = next_time(t, n);
    if now == NEVER { NO_EVENT } else { event_at(t, n, now) }
}

/// The NIC's earliest event, which happens at `now`. Lineages are compared only among events at the same time.
#[inline]
fn event_at(t: &Tables, n: NicIdx, now: u64) -> EventKey {
    let row = &t.nics[n];
    let arrives = t.clocks[n.usize()];
    let at_once = [row.busy_until, arrives, row.timer, row.rto, row.next_start, row.next_task];
    if at_once.iter().filter(|&&at| at == now).count() > 1 {
        return first_of_several(t, n, now);
    }
    // The key is written once, in place: a read soon after must have the same width as the write, or it waits.
    if row.busy_until == now {
        EventKey { d: row.busy_d, t: now, kind: COMPLETION, entity: n.0 }
    } else if arrives == now {
        EventKey { d: t.details[t.wires[n.end()].head].d, t: now, kind: ARRIVAL, entity: n.0 }
    } else {
        first_of_several(t, n, now)
    }
}

/// [`event_at`] where several events happen at `now`.
#[inline(never)]
fn first_of_several(t: &Tables, n: NicIdx, now: u64) -> EventKey {
    let row = &t.nics[n];
    let mut next = NO_EVENT;
    let mut take = |event: EventKey| {
        if before(&event, &next) {
            next = event;
        }
    };
    if row.busy_until == now {
        take(EventKey { t: now, d: row.busy_d, kind: COMPLETION, entity: n.0 });
    }
    if t.clocks[n.usize()] == now {
        take(EventKey { t: now, d: t.details[t.wires[n.end()].head].d, kind: ARRIVAL, entity: n.0 });
    }
    if row.timer == now {
        take(EventKey { t: now, d: row.timer_d, kind: TIMER, entity: n.0 });
    }
    if row.rto == now {
        take(EventKey { t: now, d: periodic(u32::MAX, u32::MAX, 0), kind: RTO, entity: 0 });
    }
    if row.next_start == now {
        let root = t.flow_tx[row.flow_first + row.flow_next].flow_id + 1;
        take(EventKey { t: now, d: periodic(0, 0, root), kind: START, entity: 0 });
    }
    if row.next_task == now {
        take(task::key(t, row.task_head));
    }
    next
}

/// Handles the arrival of a packet. Returns whether the NIC may have something to send now.
fn arrive(t: &mut Tables, n: NicIdx, event: &EventKey) -> bool {
    let p = wire_pop(t, n.end());
    if t.nics[n].peer.0 & FLOWS_LEFT != 0 && passes_on(t, n, p) {
        return false;
    }
    let pk_meta = t.packets[p].meta;
    match (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK {
        kind::DATA => receiver::on_data(t, n, p, event),
        kind::FRAME => {
            let resume = pk_meta & meta::RESUME != 0;
            let by_class = has_classes(&t.exps[0]);
            let row = &mut t.nics[n];
            t.packets[p].next = row.to_return;
            row.to_return = p;
            row.pauses += u32::from(!resume);
            if by_class {
                let i = class_queue(&t.exps[0], n.end(), class_of(pk_meta));
                debug_assert_eq!(t.class_queues[i].paused != 0, resume, "pause and resume frames take turns");
                t.class_queues[i].paused = u32::from(!resume);
            } else {
                debug_assert_eq!(row.paused != 0, resume, "pause and resume frames take turns");
                row.paused = u32::from(!resume);
            }
            t.count_pause(n.end(), 1, resume, event.t);
            t.raise(flag::TO_RETURN);
            resume
        }
        _ if pk_meta & meta::PULL != 0 => {
            credit::on_pull(t, n, p);
            true
        }
        _ => {
            sender::on_ack(t, n, p, event);
            true
        }
    }
}

/// Starts the next flow of the NIC: creates its queue pair.
fn start_flow(t: &mut Tables, n: NicIdx, event: &EventKey) {
    let row = &mut t.nics[n];
    let f = row.flow_first + row.flow_next;
    row.flow_next += 1;
    row.next_start = if row.flow_next < row.flow_n { t.flow_tx[row.flow_first + row.flow_next].start } else { NEVER };
    queue_pair::create(t, n, f, event.t);
    queue_pair::join_order(t, n, f);
}

/// Handles a retransmission timeout: of the queue pairs that are due, the one with the lowest flow number goes back to the first unacknowledged byte.
/// Returns whether one was due.
fn timeout(t: &mut Tables, n: NicIdx, event: &EventKey) -> bool {
    let row = &t.nics[n];
    let (first, qp_n) = (row.flow_first, row.qp_n);
    let mut due = FlowIdx::NONE;
    for k in 0..qp_n {
        let f = t.order[(first + k).usize()];
        let tx = &t.flow_tx[f];
        if tx.rto_at <= event.t && (due.is_none() || tx.flow_id < t.flow_tx[due].flow_id) {
            due = f;
        }
    }
    if due.is_some() {
        let e = &t.exps[0];
        let (max_retries, payload, adapter) = (e.rto_retries, e.payload, e.modes & mode::NS3_LOSS == 0);
        let mut counts = true;
        // Nothing is in flight after this, so that there is no deadline until the next packet is sent.
        t.flow_tx[due].rto_at = NEVER;
        if is_uec(e) {
            counts = uec::time_out(t, due, event.t);
        } else if takes_any_order(e) {
            selective::time_out(t, due, event.t);
        } else {
            let tx = &mut t.flow_tx[due];
            if adapter {
                queue_pair::halve_loss_window(tx, payload, event.t);
            }
            queue_pair::step_back(tx);
        }
        let tx = &mut t.flow_tx[due];
        tx.retries += u32::from(counts);
        if tx.retries > max_retries {
            t.raise(flag::GAVE_UP);
        }
    }
    let mut earliest = NEVER;
    for k in 0..qp_n {
        let f = t.order[(first + k).usize()];
        earliest = earliest.min(t.flow_tx[f].rto_at);
    }
    t.nics[n].rto = earliest;
    due.is_some()
}

/// Lets the NIC send one packet: an ACK first, else data of the next queue pair in turn that may send. If none may send, it sets a timer.
fn kick(t: &mut Tables, n: NicIdx, event: &EventKey) {
    let row = &t.nics[n];
    if row.busy_until != NEVER || row.paused == HOLDS {
        return;
    }
    if has_classes(&t.exps[0]) {
        return kick_classes(t, n, event);
    }
    let ack_prio = t.exps[0].modes & mode::ACK_HIGH_PRIO != 0;
    if row.ack_head.is_some() && (ack_prio || row.paused == 0) {
        send_ack(t, n, event);
        return;
    }
    let paused = row.paused != 0;
    let f = next_queue_pair(t, n, paused, event);
    if f.is_some() {
        send_data(t, n, f, event);
    }
}

/// The queue pair whose turn it is to send. If none may send now, `NONE`, and the NIC looks again when the first one may.
#[inline(always)]
fn next_queue_pair(t: &mut Tables, n: NicIdx, paused: bool, event: &EventKey) -> FlowIdx {
    let row = &t.nics[n];
    let (first, count) = (row.flow_first, row.qp_n);
    if count == 0 {
        return FlowIdx::NONE;
    }
    // A variable window follows DCQCN's rate, which timers change while nothing is sent.
    let e = &t.exps[0];
    let both = mode::WINDOW | mode::VAR_WINDOW;
    let timers = e.cc == cc::DCQCN && e.modes & both == both;
    let mut idx = row.rr % count;
    let mut found = NONE;
    let mut finished = NONE;
    let mut earliest = NEVER;
    for _ in 0..count {
        idx += 1;
        if idx >= count {
            idx = 0;
        }
        let f = t.order[(first + idx).usize()];
        if timers {
            dcqcn::advance(t, f, event);
        }
        let tx = &t.flow_tx[f];
        let sendable = may_send(&t.exps[0], tx, paused);
        if sendable && tx.next_avail <= event.t {
            found = idx;
            break;
        }
        if !sendable && tx.flags & qp::FINISHED != 0 {
            finished = finished.min(idx);
        } else {
            earliest = earliest.min(tx.next_avail);
        }
    }
    if finished != NONE {
        found = remove_finished(t, n, finished, found);
    }
    if found != NONE {
        t.nics[n].rr = found;
        return t.order[(first + found).usize()];
    }
    look_again(t, n, earliest, event);
    FlowIdx::NONE
}

fn send_ack(t: &mut Tables, n: NicIdx, event: &EventKey) {
    let row = &mut t.nics[n];
    let p = row.ack_head;
    row.ack_head = t.packets[p].next;
    if row.ack_head.is_none() {
        row.ack_tail = PacketIdx::NONE;
    }
    let x = row.tx_ack;
    transmit(t, n, p, x, event);
}

/// Runs [`nic`] for one row, if there is something to do.
#[inline]
pub fn row(t: &mut Tables, n: NicIdx, end: u64) {
    row_before(t, n, t.exps[0].nic_len, end);
}

/// [`row`] for a NIC with an index below `last`. At every [`TOGETHER`]th NIC it prefetches the arrivals of that NIC and of those after it.
#[inline]
pub fn row_before(t: &mut Tables, n: NicIdx, last: u32, end: u64) {
    if n.0.is_multiple_of(TOGETHER) {
        fetch_arrivals(t, (n.0..last.min(n.0 + TOGETHER)).map(NicIdx), end);
    }
    if t.clocks[n.usize()] < end || t.clocks[n.end().own_clock(t.exps[0].end_len)] < end {
        nic(t, n, end);
    }
}

/// Prefetches the packets that arrive at `nics` before `end`, and the queue pairs that they belong to.
pub fn fetch_arrivals(t: &Tables, nics: impl Iterator<Item = NicIdx>, end: u64) {
    let pools = |n: NicIdx| {
        let free = t.nics[n].free_head;
        t.packets.prefetch(free.0);
        fetch_rest(t, free);
    };
    fetch(t, nics.inspect(|&n| pools(n)).map(|n| n.end()), end, |_, row, _| {
        if (row.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA {
            t.flow_rx.prefetch(row.flow.0);
        } else {
            t.flow_tx.prefetch(row.flow.0);
        }
    });
}
