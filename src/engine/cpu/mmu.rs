//! The shared buffer of a switch, event by event; only `forward_joint` needs it (twin: `shaders/mmu.wgsl`). Pause and resume frames are
//! queued here; the caller sends them.

use crate::columns::{FRAME_BYTES, PacketIdx, PortIdx, SHARED_HEADER, Switch, Tables, flag, kind, meta, mode};

/// What port `i` occupies of the shared part of the buffer.
#[inline]
fn shared_of(t: &Tables, port: PortIdx) -> u32 {
    t.shared[(SHARED_HEADER + port.0) as usize].saturating_sub(t.exps[0].reserve)
}

/// Shared bytes in use at the switch.
///
/// Summed anew each time: a running total would be one more state to keep right in two languages, and joint steps are rare.
pub fn shared_used(t: &Tables, sw: &Switch) -> u64 {
    sw.ports().map(|p| shared_of(t, p) as u64).sum()
}

/// The dynamic threshold of port `i` with `used` shared bytes in use.
#[inline]
fn threshold(t: &Tables, sw: &Switch, port: PortIdx, used: u64) -> u64 {
    sw.shared_size.saturating_sub(used) >> t.ports[port].shift
}

/// Whether a packet of `x` bytes that came in by `port` may stay. Without PFC there is no headroom, and what would take it is dropped.
pub fn admit(t: &Tables, port: PortIdx, x: u32) -> bool {
    let row = &t.ports[port];
    if x + row.headroom_used <= row.headroom {
        return true;
    }
    let sw = &t.switches[row.switch_idx];
    let used = shared_used(t, sw);
    let most = threshold(t, sw, port, used);
    if t.exps[0].modes & mode::PFC == 0 {
        let held = t.shared[(SHARED_HEADER + port.0) as usize] + x;
        return held.saturating_sub(t.exps[0].reserve) as u64 <= most;
    }
    x as u64 + used <= most
}

/// Charges `x` bytes to ingress `port`. Returns whether a pause frame was queued there, for the caller to send.
#[must_use]
pub fn charge(t: &mut Tables, port: PortIdx, x: u32) -> bool {
    let sw = t.switches[t.ports[port].switch_idx];
    let reserve = t.exps[0].reserve;
    let used = shared_used(t, &sw);
    let word = (SHARED_HEADER + port.0) as usize;
    let n = t.shared[word] + x;
    if n > reserve && (n - reserve) as u64 > threshold(t, &sw, port, used) {
        if t.ports[port].headroom_used == 0 && t.ports[port].pausing == 0 {
            t.switches[t.ports[port].switch_idx].congested_n += 1;
        }
        t.ports[port].headroom_used += x;
    } else {
        t.shared[word] = n;
    }
    note_held(t, &sw, port);
    let row = &t.ports[port];
    if t.exps[0].modes & mode::PFC == 0 || row.pausing != 0 {
        return false;
    }
    let used = shared_used(t, &sw);
    if row.headroom_used > 0 || shared_of(t, port) as u64 >= threshold(t, &sw, port, used) {
        if row.headroom_used == 0 {
            t.switches[row.switch_idx].congested_n += 1;
        }
        t.ports[port].pausing = 1;
        push_frame(t, port, 0);
        return true;
    }
    false
}

/// Remembers the most the switch has held, and that it was too much.
fn note_held(t: &mut Tables, sw: &Switch, port: PortIdx) {
    let held: u64 =
        sw.ports().map(|p| t.shared[(SHARED_HEADER + p.0) as usize] as u64 + t.ports[p].headroom_used as u64).sum();
    let row = &mut t.switches[t.ports[port].switch_idx];
    if held > row.max_held {
        row.max_held = held;
    }
    if held > t.exps[0].buffer {
        t.raise(flag::OVER_BUFFER);
    }
}

/// Releases `x` bytes of ingress `port`.
pub fn release(t: &mut Tables, port: PortIdx, x: u32) {
    let row = &mut t.ports[port];
    let from_headroom = if x < row.headroom_used { x } else { row.headroom_used };
    let was = row.headroom_used;
    row.headroom_used -= from_headroom;
    if was > 0 && row.headroom_used == 0 && row.pausing == 0 {
        t.switches[row.switch_idx].congested_n -= 1;
    }
    t.shared[(SHARED_HEADER + port.0) as usize] -= x - from_headroom;
}

/// After a packet that came in by `port` left through `egress`: queues a resume frame at `port` if that is due. Returns whether the
/// caller must send it: not if `port` is `egress`, whose transmitter is being loaded at this moment, so that the frame goes next.
#[must_use]
pub fn resume_test(t: &mut Tables, port: PortIdx, egress: PortIdx) -> bool {
    let row = &t.ports[port];
    if row.pausing == 0 || row.headroom_used != 0 {
        return false;
    }
    let sw = &t.switches[row.switch_idx];
    let mine = shared_of(t, port) as u64;
    let used = shared_used(t, sw);
    if mine == 0 || mine + t.exps[0].resume_offset as u64 <= threshold(t, sw, port, used) {
        t.switches[row.switch_idx].congested_n -= 1;
        t.ports[port].pausing = 0;
        push_frame(t, port, meta::RESUME);
        return port != egress;
    }
    false
}

/// Takes a record from the switch's pool and makes it the last frame of `port`.
fn push_frame(t: &mut Tables, port: PortIdx, resume: u32) {
    let s = t.ports[port].switch_idx;
    let p = t.switches[s].free_head;
    if p.is_none() {
        t.raise(flag::POOL_EMPTY);
        return;
    }
    t.switches[s].free_head = t.packets[p].next;
    t.switches[s].free_n -= 1;
    let pk = &mut t.packets[p];
    pk.next = PacketIdx::NONE;
    pk.set_frame_switch(s);
    pk.path = 0;
    pk.set_records(PacketIdx::NONE);
    pk.in_port = PortIdx::NONE;
    pk.meta = FRAME_BYTES | (kind::FRAME << meta::KIND_SHIFT) | resume;
    let row = &mut t.ports[port];
    let tail = row.frame_tail;
    row.frame_tail = p;
    row.frames += 1;
    if tail.is_none() {
        row.frame_head = p;
    } else {
        t.packets[tail].next = p;
    }
}
