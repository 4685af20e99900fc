//! Traffic classes at a switch port: its pauses, whose turn it is, and the shared buffer by class (`docs/explanation/model-semantics.md`, "Traffic classes"). Twin:
//! `shaders/class_port.wgsl`.
//!
//! The row of the port has the bytes of all its queues, and as `q_head` any packet that could be sent now. So what only asks whether the port has work, or how much
//! it holds, knows nothing of classes.

use super::mmu::{SharedBuffer, push_frame, shared_part};
use crate::cpu::classes::{choose_class, class_of, class_queue, has_classes};
use hyperfold_columns::{Exp, PacketIdx, PortIdx, SHARED_HEADER, SwitchIdx, Tables, meta};

/// Index of the shared word with the bytes of `class` that `port` has taken in and its switch still holds, without headroom.
#[inline]
pub fn held_word(e: &Exp, port: PortIdx, class: u32) -> usize {
    (SHARED_HEADER + e.port_len * (1 + e.mask_words) + port.0 * e.class_n + class) as usize
}

/// Index in `class_queues` of the row of `class` at `port`.
#[inline]
pub fn port_queue_row(e: &Exp, port: PortIdx, class: u32) -> usize {
    class_queue(e, port.end(e.nic_len), class)
}

/// The classes that `port` could send a packet of now, a bit each.
fn sendable_classes(t: &Tables, port: PortIdx) -> u32 {
    let e = &t.exps[0];
    let first = port_queue_row(e, port, 0);
    let mut classes = 0;
    for class in 0..e.class_n {
        let row = &t.class_queues[first + class as usize];
        classes |= u32::from(row.q_head.is_some() && row.paused == 0) << class;
    }
    classes
}

/// Sets `q_head` of `port` to a packet that could be sent now, after a queue or a pause has changed.
pub fn note_sendable(t: &mut Tables, port: PortIdx) {
    let classes = sendable_classes(t, port);
    let mut head = PacketIdx::NONE;
    if classes != 0 {
        head = t.class_queues[port_queue_row(&t.exps[0], port, classes.trailing_zeros())].q_head;
    }
    t.ports[port].q_head = head;
}

/// Charges packet `p`, which has arrived at a switch whose ports do not affect each other in this step, to its ingress.
#[inline]
pub fn charge_arrival(t: &mut Tables, p: PacketIdx) {
    let pk = &t.packets[p];
    let (wire, word) = (pk.meta & meta::WIRE_MASK, held_word(&t.exps[0], pk.in_port, class_of(pk.meta)));
    t.shared[word] = t.shared[word].wrapping_add(wire);
}

/// The class that `port` sends next. PRECONDITION: some class can send.
#[inline]
pub fn class_in_turn(t: &mut Tables, port: PortIdx) -> u32 {
    let candidates = sendable_classes(t, port);
    choose_class(t, port.end(t.exps[0].nic_len), candidates)
}

/// Notes a pause or resume of `class` by the peer of `port`.
pub fn pause_class(t: &mut Tables, port: PortIdx, class: u32, resume: bool) {
    let i = port_queue_row(&t.exps[0], port, class);
    debug_assert_eq!(t.class_queues[i].paused != 0, resume, "pause and resume frames take turns");
    t.class_queues[i].paused = u32::from(!resume);
    note_sendable(t, port);
}

/// What [`classify`](super::classify) needs to know of a switch with classes: all bytes that it may hold in this step, and whether every ingress stays below its
/// threshold in every class. It assumes that everything that arrives at a port is of each of its classes, and charged before anything is released.
pub fn bound_of_classes(t: &Tables, s: SwitchIdx) -> (u64, bool) {
    let sw = &t.switches[s];
    let e = &t.exps[0];
    let (mut held, mut shared) = (0u64, 0u64);
    for port in sw.ports() {
        let arriving = u64::from(t.ports[port].arr_bytes);
        held += arriving;
        shared += arriving;
        for class in 0..e.class_n {
            let bytes = t.shared[held_word(e, port, class)];
            held += u64::from(bytes);
            shared += u64::from(bytes.saturating_sub(e.reserve));
        }
    }
    let free = sw.shared_size.saturating_sub(shared);
    let mut below = true;
    for port in sw.ports() {
        let row = &t.ports[port];
        let threshold = free >> row.shift;
        for class in 0..e.class_n {
            let bound = t.shared[held_word(e, port, class)] + row.arr_bytes;
            below = below && u64::from(bound.saturating_sub(e.reserve)) < threshold;
            let queue = &t.class_queues[port_queue_row(e, port, class)];
            let admitted = queue.lossless == 0 || sw.max_wire <= queue.headroom;
            below = below && (admitted || u64::from(sw.max_wire) + shared <= threshold);
        }
    }
    (held, below)
}

impl SharedBuffer {
    /// Sums over ports and classes for a switch with these ports, as it is now.
    pub fn sum_classes(t: &Tables, ports: impl Iterator<Item = PortIdx>) -> SharedBuffer {
        let mut sums = SharedBuffer { used: 0, held: 0 };
        let e = &t.exps[0];
        for port in ports {
            for class in 0..e.class_n {
                let bytes = t.shared[held_word(e, port, class)];
                sums.used += u64::from(shared_part(t, bytes));
                sums.held += u64::from(bytes);
                sums.held += u64::from(t.class_queues[port_queue_row(e, port, class)].headroom_used);
            }
        }
        sums
    }

    /// Sets the bytes of `class` at ingress `port`, headroom not included.
    fn set_class(&mut self, t: &mut Tables, port: PortIdx, class: u32, bytes: u32) {
        let word = held_word(&t.exps[0], port, class);
        let was = std::mem::replace(&mut t.shared[word], bytes);
        self.used = self.used - u64::from(shared_part(t, was)) + u64::from(shared_part(t, bytes));
        self.held = self.held - u64::from(was) + u64::from(bytes);
    }

    /// Whether a packet of `class` with `x` bytes that came in by `port` is admitted.
    pub fn admit_class(&self, t: &Tables, port: PortIdx, class: u32, x: u32) -> bool {
        let queue = &t.class_queues[port_queue_row(&t.exps[0], port, class)];
        if x + queue.headroom_used <= queue.headroom {
            return true;
        }
        let wanted = match queue.lossless {
            0 => u64::from(shared_part(t, t.shared[held_word(&t.exps[0], port, class)] + x)),
            _ => u64::from(x) + self.used,
        };
        wanted <= self.threshold(t, port)
    }

    /// Charges `x` bytes of `class` to ingress `port`. Returns whether a pause frame was queued there, for the caller to send.
    #[must_use]
    pub fn charge_class(&mut self, t: &mut Tables, port: PortIdx, class: u32, x: u32) -> bool {
        let i = port_queue_row(&t.exps[0], port, class);
        let word = held_word(&t.exps[0], port, class);
        let s = t.ports[port].switch_idx;
        let bytes = t.shared[word] + x;
        if u64::from(shared_part(t, bytes)) > self.threshold(t, port) {
            let queue = &mut t.class_queues[i];
            t.switches[s].congested_n += u32::from(queue.headroom_used == 0 && queue.pausing == 0);
            queue.headroom_used += x;
            self.held += u64::from(x);
        } else {
            self.set_class(t, port, class, bytes);
        }
        self.note_held(t, port);
        let queue = &t.class_queues[i];
        if queue.lossless == 0 || queue.pausing != 0 {
            return false;
        }
        let mine = u64::from(shared_part(t, t.shared[word]));
        if queue.headroom_used > 0 || mine >= self.threshold(t, port) {
            t.switches[s].congested_n += u32::from(queue.headroom_used == 0);
            t.class_queues[i].pausing = 1;
            push_frame(t, port, class << meta::CLASS_SHIFT);
            return true;
        }
        false
    }

    /// Releases `x` bytes of `class` at ingress `port`; headroom first.
    pub(super) fn release_class(&mut self, t: &mut Tables, port: PortIdx, class: u32, x: u32) {
        let i = port_queue_row(&t.exps[0], port, class);
        let queue = &mut t.class_queues[i];
        let from_headroom = x.min(queue.headroom_used);
        if from_headroom > 0 {
            queue.headroom_used -= from_headroom;
            self.held -= u64::from(from_headroom);
            let ends = queue.headroom_used == 0 && queue.pausing == 0;
            t.switches[t.ports[port].switch_idx].congested_n -= u32::from(ends);
        }
        let left = t.shared[held_word(&t.exps[0], port, class)] - (x - from_headroom);
        self.set_class(t, port, class, left);
    }

    /// Queues a resume frame for `class` at `port` if it is due, after a packet of the class that came in by `port` has left. Returns whether it did.
    #[must_use]
    pub(super) fn resume_test_class(&self, t: &mut Tables, port: PortIdx, class: u32) -> bool {
        let i = port_queue_row(&t.exps[0], port, class);
        let queue = &t.class_queues[i];
        if queue.pausing == 0 || queue.headroom_used != 0 {
            return false;
        }
        let mine = u64::from(shared_part(t, t.shared[held_word(&t.exps[0], port, class)]));
        let due = mine == 0 || mine + u64::from(t.exps[0].resume_offset) <= self.threshold(t, port);
        if due {
            t.switches[t.ports[port].switch_idx].congested_n -= 1;
            t.class_queues[i].pausing = 0;
            push_frame(t, port, meta::RESUME | (class << meta::CLASS_SHIFT));
        }
        due
    }
}

/// Number of rows that a switch with `port_n` ports may pause by themselves: its ports, or each class of each port.
#[inline]
pub fn pausable(e: &Exp, port_n: u32) -> u32 {
    if has_classes(e) { port_n * e.class_n } else { port_n }
}
