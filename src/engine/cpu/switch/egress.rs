//! A port's transmitter and queue, shared by `forward` and `forward_joint` (twin: `shaders/egress.wgsl`).

use super::averages::{average_now, averaged_queue};
use super::class_port::{class_in_turn, held_word, note_sendable, pause_class, port_queue_row};
use super::cut_through::time_on_wire;
use super::mmu::SharedBuffer;
use super::watchdog::{watch_pause, watchdog_drops};
use crate::cpu::classes::{class_of, class_queue, has_classes, queue_class, spend_allowance};
use crate::cpu::key::{ARRIVAL, COMPLETION, EventRef, lineages};
use crate::cpu::lists::{fetch_rest, wire_push};
use crate::cpu::loss::is_lost;
use crate::cpu::math::{hash32, tx_time};
use hyperfold_columns::{
    CONTROL_TURNS, FRAME_BYTES, INT_HOPS, INT_Q_UNIT, INT_TX_UNIT, LINK_DROPS, LINK_LOSES, LINK_TROUBLE, Lineage,
    LinkEndIdx, NEVER, PacketIdx, PortIdx, SHARED_HEADER, Tables, cc, flag, kind, meta, mode,
};

/// An event at a port.
#[derive(Clone, Copy, Debug)]
pub enum PortEvent {
    /// The transmission of the port ends.
    Completion(PortIdx),
    /// A packet for the port arrives.
    Arrival(PacketIdx),
    /// A pause frame from the peer of the port arrives.
    Frame(PortIdx, PacketIdx),
}

impl PortEvent {
    /// Lineage of the event. It is read from the row that holds it until the next transmission starts.
    #[inline]
    fn lineage<'t>(&self, t: &'t Tables) -> &'t Lineage {
        match *self {
            PortEvent::Completion(port) => &t.ports[port].busy_d,
            PortEvent::Arrival(p) | PortEvent::Frame(_, p) => &t.details[p].d,
        }
    }

    /// Key of the event at the time `at_ps`, for the order of events.
    #[inline]
    pub fn key<'t>(&self, t: &'t Tables, at_ps: u64) -> EventRef<'t> {
        let (kind, entity) = match *self {
            PortEvent::Completion(port) => (COMPLETION, port.0),
            PortEvent::Arrival(p) => (ARRIVAL, t.packets[p].in_port.0),
            PortEvent::Frame(port, _) => (ARRIVAL, port.0),
        };
        EventRef { t: at_ps, d: self.lineage(t), kind, entity }
    }
}

/// An event and its time.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent {
    /// Time, in ps.
    pub t: u64,
    /// The kind of event, and its row.
    pub kind: PortEvent,
}

/// Time at which the port's transmission ends, in ps, if another transmission would follow; otherwise `NEVER`. An end without a successor changes
/// nothing. Later events find out by [`idle`].
#[inline]
pub fn completion_time(t: &Tables, port: PortIdx) -> u64 {
    let row = &t.ports[port];
    let work = row.frame_head.is_some() || (row.q_head.is_some() && row.paused == 0);
    if row.busy == 0 || !work { NEVER } else { row.busy_until }
}

/// Whether the transmitter is free for `event`: it is idle, or its transmission has ended before the event.
#[inline(always)]
pub fn idle(t: &mut Tables, port: PortIdx, event: &TimedEvent) -> bool {
    let row = &t.ports[port];
    if row.busy == 0 {
        return true;
    }
    let end = row.busy_until;
    let ended =
        end < event.t || (end == event.t && PortEvent::Completion(port).key(t, end).is_before(&event.kind.key(t, end)));
    if ended {
        t.ports[port].busy = 0;
    }
    ended
}

/// Adds the queue's length times its duration up to `now` to the port's sum, before the length changes.
#[inline]
pub fn integrate(t: &mut Tables, port: PortIdx, now: u64) {
    if t.exps[0].modes & mode::LINKS == 0 {
        return;
    }
    let row = &mut t.ports[port];
    row.q_area += (row.q_bytes as u64 * (now - row.q_since)) >> 10;
    row.q_since = now;
}

/// Appends packet `p` to the queue of `port`.
#[inline(always)]
pub fn enqueue(t: &mut Tables, port: PortIdx, p: PacketIdx, now: u64) {
    integrate(t, port, now);
    t.packets[p].next = PacketIdx::NONE;
    let wire = t.packets[p].meta & meta::WIRE_MASK;
    let row = &mut t.ports[port];
    let tail = row.q_tail;
    row.q_tail = p;
    row.q_bytes += wire;
    if row.q_bytes > row.max_q {
        row.max_q = row.q_bytes;
    }
    if tail.is_none() {
        row.q_head = p;
    } else {
        t.packets[tail].next = p;
    }
}

/// Appends packet `p` to the queue of its class at `port`.
pub fn enqueue_class(t: &mut Tables, port: PortIdx, p: PacketIdx, now: u64) {
    integrate(t, port, now);
    let pk = &mut t.packets[p];
    pk.next = PacketIdx::NONE;
    let (wire, class) = (pk.meta & meta::WIRE_MASK, class_of(pk.meta));
    let i = port_queue_row(&t.exps[0], port, class);
    let queue = &mut t.class_queues[i];
    let tail = queue.q_tail;
    queue.q_tail = p;
    queue.q_bytes += wire;
    if tail.is_none() {
        queue.q_head = p;
    } else {
        t.packets[tail].next = p;
    }
    let row = &mut t.ports[port];
    row.q_bytes += wire;
    row.max_q = row.max_q.max(row.q_bytes);
    note_sendable(t, port);
}

/// Starts the next transmission of an idle port because of `event`: a pause frame, else the head of the queue, else nothing.
///
/// `joint`: the shared buffer, if the ports of the switch affect each other in this step. Returns the port at which a resume frame was queued, or
/// `NONE`.
///
/// Inlined into the loop of `forward`, so that the addresses of rows are computed once per port. Rare cases are separate functions.
#[inline(always)]
pub fn start_next(t: &mut Tables, port: PortIdx, event: &TimedEvent, joint: Option<&mut SharedBuffer>) -> PortIdx {
    let row = &t.ports[port];
    if row.frame_head.is_some() {
        // Control packets must not starve data. The count is below the limit where there are pauses.
        if row.pausing >= CONTROL_TURNS && row.q_head.is_some() {
            t.ports[port].pausing = 0;
            return start_head(t, port, event, joint);
        }
        start_frame(t, port, event);
    } else if row.q_head.is_some() && row.paused == 0 {
        if has_classes(&t.exps[0]) {
            let class = class_in_turn(t, port);
            return start_class(t, port, class, event, joint);
        }
        return start_head(t, port, event, joint);
    } else {
        t.ports[port].busy = 0;
    }
    PortIdx::NONE
}

/// Sends the pause frame that `event` has queued at `port`, if the transmitter is free.
pub fn send_frame_if_idle(t: &mut Tables, port: PortIdx, event: &TimedEvent) {
    if idle(t, port, event) && t.ports[port].frame_head.is_some() {
        start_frame(t, port, event);
    }
}

/// Sends the first waiting pause frame, or control packet.
#[inline(never)]
fn start_frame(t: &mut Tables, port: PortIdx, event: &TimedEvent) {
    let row = &mut t.ports[port];
    let p = row.frame_head;
    let pk = &t.packets[p];
    let (in_port, pk_meta) = (pk.in_port, pk.meta);
    row.frame_head = pk.next;
    if row.frame_head.is_none() {
        row.frame_tail = PacketIdx::NONE;
    }
    row.frames -= 1;
    let wire = pk_meta & meta::WIRE_MASK;
    if (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK != kind::FRAME {
        row.hops += 1;
        row.pausing = (row.pausing + 1).min(CONTROL_TURNS);
        let word = (SHARED_HEADER + in_port.0) as usize;
        t.shared[word] = t.shared[word].wrapping_sub(wire);
    }
    let x = duration(t, port, wire);
    transmit(t, port, p, wire, x, event);
}

/// Sends the head of the queue: counters, mark, resume test, telemetry, wire, in the order of ns-3's switch. Returns the same as [`start_next`].
#[inline(always)]
fn start_head(t: &mut Tables, port: PortIdx, event: &TimedEvent, mut joint: Option<&mut SharedBuffer>) -> PortIdx {
    integrate(t, port, event.t);
    let p = t.ports[port].q_head;
    let (next, in_port, pk_meta) = {
        let pk = &t.packets[p];
        (pk.next, pk.in_port, pk.meta)
    };
    t.packets.prefetch(next.0);
    fetch_rest(t, next);
    let wire = pk_meta & meta::WIRE_MASK;
    let data = (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
    let row = &mut t.ports[port];
    row.q_head = next;
    if next.is_none() {
        row.q_tail = PacketIdx::NONE;
    }
    row.q_bytes -= wire;
    let q = row.q_bytes;
    if let Some(buffer) = &mut joint {
        buffer.release(t, in_port, wire);
    } else {
        let word = (SHARED_HEADER + in_port.0) as usize;
        t.shared[word] = t.shared[word].wrapping_sub(wire);
    }
    draw_mark(t, port, p, q, data, event.t);
    let mut resumed = PortIdx::NONE;
    if joint.is_some_and(|buffer| buffer.resume_test(t, in_port)) {
        resumed = in_port;
        // If it is the port itself, its transmitter is being loaded right now, so the frame goes next.
        if in_port != port {
            send_frame_if_idle(t, in_port, event);
        }
    }
    if data && t.exps[0].cc == cc::HPCC {
        push_int(t, port, p, event.t);
    }
    take_turn(t, port, p, wire, event);
    resumed
}

/// Sends the head of the queue of `class`. The other arguments and the result are those of [`start_next`].
fn start_class(
    t: &mut Tables,
    port: PortIdx,
    class: u32,
    event: &TimedEvent,
    mut joint: Option<&mut SharedBuffer>,
) -> PortIdx {
    integrate(t, port, event.t);
    let end = port.end(t.exps[0].nic_len);
    let i = class_queue(&t.exps[0], end, class);
    let p = t.class_queues[i].q_head;
    let pk = &t.packets[p];
    let (next, in_port, pk_meta) = (pk.next, pk.in_port, pk.meta);
    let wire = pk_meta & meta::WIRE_MASK;
    let data = (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
    spend_allowance(t, end, class, wire);
    let queue = &mut t.class_queues[i];
    queue.q_head = next;
    if next.is_none() {
        queue.q_tail = PacketIdx::NONE;
    }
    queue.q_bytes -= wire;
    let q = queue.q_bytes;
    t.ports[port].q_bytes -= wire;
    note_sendable(t, port);
    if let Some(buffer) = &mut joint {
        buffer.release_class(t, in_port, class, wire);
    } else {
        let word = held_word(&t.exps[0], in_port, class);
        t.shared[word] = t.shared[word].wrapping_sub(wire);
    }
    draw_mark(t, port, p, q, data, event.t);
    let mut resumed = PortIdx::NONE;
    if joint.is_some_and(|buffer| buffer.resume_test_class(t, in_port, class)) {
        resumed = in_port;
        if in_port != port {
            send_frame_if_idle(t, in_port, event);
        }
    }
    if data && t.exps[0].cc == cc::HPCC {
        push_int(t, port, p, event.t);
    }
    t.class_queues[i].tx_bytes += u64::from(wire);
    take_turn(t, port, p, wire, event);
    resumed
}

/// Transmits packet `p` of `wire` bytes, which `port` has taken from its queue, and counts it.
#[inline(always)]
fn take_turn(t: &mut Tables, port: PortIdx, p: PacketIdx, wire: u32, event: &TimedEvent) {
    let x = duration(t, port, wire);
    t.ports[port].hops += 1;
    transmit(t, port, p, wire, x, event);
}

/// Time that `port` takes to send a packet of `wire` bytes, in ps.
#[inline]
pub fn duration(t: &Tables, port: PortIdx, wire: u32) -> u64 {
    let row = &t.ports[port];
    let e = &t.exps[0];
    if wire == e.payload + e.data_overhead {
        row.tx_full
    } else if wire == e.ack_bytes {
        row.tx_ack
    } else {
        tx_time(wire, row.rate, e.clock_ps as u64)
    }
}

/// Marks packet `p`, which has left a queue of `port` with `q` bytes in it at `now`, if it is `data` and the queue, or its average, is long enough.
#[inline(always)]
fn draw_mark(t: &mut Tables, port: PortIdx, p: PacketIdx, q: u32, data: bool, now: u64) {
    let (marks, averages) = (t.exps[0].modes & mode::ECN != 0, t.exps[0].average_first != 0);
    let mut q = q;
    if marks && averages {
        q = averaged_queue(t, port, p, q, now);
    }
    if !marks || q <= t.ports[port].kmin {
        return;
    }
    if t.exps[0].wred_drops != 0 && may_lose(t, port, t.packets[p].meta) {
        return;
    }
    if data && is_marked(t, port, q) {
        t.packets[p].meta |= meta::MARKED;
        t.ports[port].marks += 1;
    } else if !data {
        // Packets other than data consume a draw too, and are never marked.
        let row = &mut t.ports[port];
        row.draws += u64::from(q <= row.kmax);
    }
}

/// Whether WRED drops packet `p`, which is about to join the queue of its class at `port` at `now`: data that may be lost, and that marking would pick. The queue is
/// as long as it is before the packet joins it. PRECONDITION: the experiment drops data so.
#[inline(never)]
pub fn wred_drops(t: &mut Tables, port: PortIdx, p: PacketIdx, now: u64) -> bool {
    let pk_meta = t.packets[p].meta;
    if (pk_meta >> meta::KIND_SHIFT) & meta::KIND_MASK != kind::DATA || !may_lose(t, port, pk_meta) {
        return false;
    }
    let e = &t.exps[0];
    let class = queue_class(e, pk_meta);
    let q = if e.average_first != 0 {
        average_now(t, port, class, now)
    } else if has_classes(e) {
        t.class_queues[port_queue_row(e, port, class)].q_bytes
    } else {
        t.ports[port].q_bytes
    };
    q > t.ports[port].kmin && is_marked(t, port, q)
}

/// Whether packets with `pk_meta` may get lost at `port` for want of room. PRECONDITION: without classes, no port pauses its peer.
#[inline]
fn may_lose(t: &Tables, port: PortIdx, pk_meta: u32) -> bool {
    let e = &t.exps[0];
    !has_classes(e) || t.class_queues[port_queue_row(e, port, class_of(pk_meta))].lossless == 0
}

/// Whether to mark a packet at queue length `q > kmin`: certain above `kmax`, else a random draw.
#[inline]
fn is_marked(t: &mut Tables, port: PortIdx, q: u32) -> bool {
    let seed = t.exps[0].seed;
    let row = &mut t.ports[port];
    if q > row.kmax {
        return true;
    }
    let draw = hash32(port.0, row.draws as u32, (row.draws >> 32) as u32, seed);
    row.draws += 1;
    // draw < pmax * (q - kmin) / (kmax - kmin), rounded down; without the division.
    (u64::from(draw) + 1) * (row.kmax - row.kmin) as u64 <= row.pmax_q32 * (q - row.kmin) as u64
}

/// Adds this hop to the INT telemetry of packet `p`.
fn push_int(t: &mut Tables, port: PortIdx, p: PacketIdx, now: u64) {
    let n = (t.packets[p].meta >> meta::INT_SHIFT) & meta::INT_MASK;
    if n >= INT_HOPS {
        return;
    }
    let e = &t.exps[0];
    let row = &t.ports[port];
    let multi = e.int_multi as u64;
    let (from_ps, from_bytes) = t.fold_hints.counts_from(port);
    let time = ((now - from_ps) / 1000) & 0xff_ffff;
    // A class is told of its own packets.
    let (sent, queued) = if has_classes(e) {
        let queue = &t.class_queues[port_queue_row(e, port, class_of(t.packets[p].meta))];
        (queue.tx_bytes, queue.q_bytes)
    } else {
        (row.tx_bytes - from_bytes, row.q_bytes)
    };
    let (tx, queue) = (sent, u64::from(queued + FRAME_BYTES * row.frames));
    // Division by a constant takes a fraction of the time of a general division.
    let (tx, queue) = match e.int_multi {
        1 => (tx / INT_TX_UNIT as u64, queue / INT_Q_UNIT as u64),
        _ => (tx / (INT_TX_UNIT as u64 * multi), queue / (INT_Q_UNIT as u64 * multi)),
    };
    let (tx, queue) = (tx & 0xf_ffff, queue.min(0x1_ffff));
    let word = time | (tx << 24) | (queue << 44) | ((row.rate_idx as u64) << 61);
    t.ints[(e.flow_len + p.0) as usize].hop[n as usize] = word;
    t.packets[p].meta += 1 << meta::INT_SHIFT;
}

/// Puts packet `p` of `wire` bytes on the wire; its transmission takes `x` ps.
#[inline(always)]
fn transmit(t: &mut Tables, port: PortIdx, p: PacketIdx, wire: u32, x: u64, event: &TimedEvent) {
    let row = &t.ports[port];
    let delay = row.delay;
    let on_wire = if t.exps[0].cut_through == 0 { x } else { time_on_wire(t, row.peer, row.rate, p, x) };
    let cause = event.kind.lineage(t);
    let [ends, arrives] = lineages([x, on_wire + delay], cause);
    let row = &mut t.ports[port];
    row.busy = 1;
    row.busy_until = event.t + x;
    row.busy_d = ends;
    row.tx_bytes += wire as u64;
    let (peer, in_trouble) = (row.peer, row.has_trouble());
    t.packets[p].t = event.t + on_wire + delay;
    t.details[p].d = arrives;
    if in_trouble && !reaches_peer(t, port, p, event.t + x) {
        return drop_packet(t, port, p);
    }
    wire_push(t, LinkEndIdx(peer.0 & !LINK_TROUBLE), p);
}

/// Whether packet `p`, which `port` has sent by `done`, reaches the port's peer: the link may be down or lose it, or the watchdog may drop it.
#[inline(never)]
fn reaches_peer(t: &mut Tables, port: PortIdx, p: PacketIdx, done: u64) -> bool {
    let trouble = t.ports[port].peer.0 & LINK_TROUBLE;
    if t.ports[port].is_cut_off() || (trouble & LINK_DROPS != 0 && watchdog_drops(t, port, p)) {
        return false;
    }
    trouble & LINK_LOSES == 0 || !is_lost(t, port.end(t.exps[0].nic_len), p, done)
}

/// Drops packet `p`, which was on its way to egress `port`, or which `port` sends and which does not reach its peer. A pause frame only disappears.
#[inline(never)]
pub fn drop_packet(t: &mut Tables, port: PortIdx, p: PacketIdx) {
    let pk = &t.packets[p];
    let (packet_kind, payload) = ((pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK, pk.payload);
    let row = &mut t.ports[port];
    row.drops += u32::from(packet_kind != kind::FRAME);
    if packet_kind == kind::DATA {
        row.dropped_bytes += payload as u64;
    }
    return_later(t, port, p);
}

/// Handles a pause or resume frame from the port's peer. Returns whether the port must start its next transmission.
#[inline(never)]
#[must_use]
pub fn on_frame(t: &mut Tables, port: PortIdx, p: PacketIdx, event: &TimedEvent) -> bool {
    let pk_meta = t.packets[p].meta;
    let resume = pk_meta & meta::RESUME != 0;
    let by_class = has_classes(&t.exps[0]);
    let overruled = t.exps[0].watch_first != 0 && watch_pause(t, port, class_of(pk_meta), resume, event.t);
    let row = &mut t.ports[port];
    row.pauses += u32::from(!resume);
    if overruled {
        debug_assert!(!by_class || t.class_queues[port_queue_row(&t.exps[0], port, class_of(pk_meta))].paused == 0);
    } else if by_class {
        pause_class(t, port, class_of(pk_meta), resume);
    } else {
        debug_assert_eq!(row.paused != 0, resume, "pause and resume frames take turns");
        row.paused = u32::from(!resume);
    }
    t.count_pause(port.end(t.exps[0].nic_len), 1, resume, event.t);
    return_later(t, port, p);
    resume && idle(t, port, event)
}

/// Keeps a record until `advance` returns it to its owner.
pub fn return_later(t: &mut Tables, port: PortIdx, p: PacketIdx) {
    t.packets[p].next = t.ports[port].to_return;
    t.ports[port].to_return = p;
    t.raise(flag::TO_RETURN);
}
