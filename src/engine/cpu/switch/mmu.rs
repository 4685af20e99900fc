//! The shared buffer of a switch, event by event; only `forward_joint` needs it (twin: `shaders/mmu.wgsl`). It queues pause and resume frames; the
//! caller sends them.

use crate::cpu::lists::push_first;
use hyperfold_columns::{FRAME_BYTES, PacketIdx, PortIdx, SHARED_HEADER, Tables, flag, kind, meta, mode};

/// Buffer use of a switch, summed over its ports. It is computed when a joint step begins, and then kept up to date as charges and releases change
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBuffer {
    /// Shared bytes in use.
    pub(super) used: u64,
    /// All bytes in use: reserved, shared and headroom.
    pub(super) held: u64,
}

/// Number of shared bytes if an ingress holds `held` bytes without headroom.
#[inline]
pub(super) fn shared_part(t: &Tables, held: u32) -> u32 {
    held.saturating_sub(t.exps[0].reserve)
}

/// Bytes that `port` occupies in the shared part of the buffer.
#[inline]
fn shared_of(t: &Tables, port: PortIdx) -> u32 {
    shared_part(t, t.shared[(SHARED_HEADER + port.0) as usize])
}

impl SharedBuffer {
    /// Sums for a switch with these ports, as it is now.
    pub fn sum_ports(t: &Tables, ports: impl Iterator<Item = PortIdx>) -> SharedBuffer {
        let mut sums = SharedBuffer { used: 0, held: 0 };
        for port in ports {
            sums.used += u64::from(shared_of(t, port));
            sums.held +=
                u64::from(t.shared[(SHARED_HEADER + port.0) as usize]) + u64::from(t.ports[port].headroom_used);
        }
        sums
    }

    /// Sets the bytes of ingress `port`, headroom not included.
    #[inline]
    fn set_ingress(&mut self, t: &mut Tables, port: PortIdx, bytes: u32) {
        let word = (SHARED_HEADER + port.0) as usize;
        let was = std::mem::replace(&mut t.shared[word], bytes);
        self.used = self.used - u64::from(shared_part(t, was)) + u64::from(shared_part(t, bytes));
        self.held = self.held - u64::from(was) + u64::from(bytes);
    }

    /// The dynamic threshold of `port`, in bytes.
    #[inline]
    pub(super) fn threshold(&self, t: &Tables, port: PortIdx) -> u64 {
        let row = &t.ports[port];
        t.switches[row.switch_idx].shared_size.saturating_sub(self.used) >> row.shift
    }

    /// Whether a packet of `x` bytes that came in by `port` is admitted. Without PFC there is no headroom, and a packet that would need it is
    /// dropped.
    #[inline]
    pub fn admit(&self, t: &Tables, port: PortIdx, x: u32) -> bool {
        let row = &t.ports[port];
        if x + row.headroom_used <= row.headroom {
            return true;
        }
        let wanted = match t.exps[0].modes & mode::PFC {
            0 => u64::from(shared_part(t, t.shared[(SHARED_HEADER + port.0) as usize] + x)),
            _ => u64::from(x) + self.used,
        };
        wanted <= self.threshold(t, port)
    }

    /// Charges `x` bytes to ingress `port`. Returns whether a pause frame was queued there, for the caller to send.
    #[inline]
    #[must_use]
    pub fn charge(&mut self, t: &mut Tables, port: PortIdx, x: u32) -> bool {
        let n = t.shared[(SHARED_HEADER + port.0) as usize] + x;
        if u64::from(shared_part(t, n)) > self.threshold(t, port) {
            if t.ports[port].headroom_used == 0 && t.ports[port].pausing == 0 {
                t.switches[t.ports[port].switch_idx].congested_n += 1;
            }
            t.ports[port].headroom_used += x;
            self.held += u64::from(x);
        } else {
            self.set_ingress(t, port, n);
        }
        self.note_held(t, port);
        let row = &t.ports[port];
        if t.exps[0].modes & mode::PFC == 0 || row.pausing != 0 {
            return false;
        }
        if row.headroom_used > 0 || u64::from(shared_of(t, port)) >= self.threshold(t, port) {
            if row.headroom_used == 0 {
                t.switches[row.switch_idx].congested_n += 1;
            }
            t.ports[port].pausing = 1;
            push_frame(t, port, 0);
            return true;
        }
        false
    }

    /// Updates the maximum that the switch has held, and raises a flag if it holds more than its buffer.
    #[inline]
    pub(super) fn note_held(&self, t: &mut Tables, port: PortIdx) {
        let row = &mut t.switches[t.ports[port].switch_idx];
        if self.held > row.max_held {
            row.max_held = self.held;
        }
        if self.held > t.exps[0].buffer {
            t.raise(flag::OVER_BUFFER);
        }
    }

    /// Releases `x` bytes of ingress `port`; headroom first.
    #[inline]
    pub fn release(&mut self, t: &mut Tables, port: PortIdx, x: u32) {
        let row = &mut t.ports[port];
        let from_headroom = x.min(row.headroom_used);
        if from_headroom > 0 {
            row.headroom_used -= from_headroom;
            self.held -= u64::from(from_headroom);
            if row.headroom_used == 0 && row.pausing == 0 {
                t.switches[row.switch_idx].congested_n -= 1;
            }
        }
        let left = t.shared[(SHARED_HEADER + port.0) as usize] - (x - from_headroom);
        self.set_ingress(t, port, left);
    }

    /// Queues a resume frame at `port` if it is due, after a packet that came in by `port` has left. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn resume_test(&self, t: &mut Tables, port: PortIdx) -> bool {
        let row = &t.ports[port];
        if row.pausing == 0 || row.headroom_used != 0 {
            return false;
        }
        let mine = u64::from(shared_of(t, port));
        let due = mine == 0 || mine + u64::from(t.exps[0].resume_offset) <= self.threshold(t, port);
        if due {
            t.switches[row.switch_idx].congested_n -= 1;
            t.ports[port].pausing = 0;
            push_frame(t, port, meta::RESUME);
        }
        due
    }
}

/// Takes a record from the switch's pool and appends it to the frames of `port`. `bits` of its `meta` say whether it is a resume frame, and for which class.
pub(super) fn push_frame(t: &mut Tables, port: PortIdx, bits: u32) {
    let s = t.ports[port].switch_idx;
    let p = t.switches[s].free_head;
    if p.is_none() {
        t.raise(flag::POOL_EMPTY);
        return;
    }
    t.switches[s].free_head = t.packets[p].next;
    t.switches[s].free_n -= 1;
    let pk = &mut t.packets[p];
    pk.set_frame_switch(s);
    pk.path = 0;
    pk.set_records(PacketIdx::NONE);
    pk.in_port = PortIdx::NONE;
    pk.meta = FRAME_BYTES | (kind::FRAME << meta::KIND_SHIFT) | bits;
    push_first(t, port, p);
}
