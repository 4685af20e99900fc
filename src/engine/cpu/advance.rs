//! System `advance`, one row per experiment (twin: `shaders/advance.wgsl`). It returns records to their owners, finds the time of the next event, and
//! decides whether the experiment goes on.

use super::moved_pairs::hand_over;
use hyperfold_columns::{
    HANDED_OVER, NEVER, NicIdx, PacketIdx, PortIdx, SHARED_FLAGS, Tables, flag, kind, meta, status,
};

/// Moves the experiment to its next event. `Exp::status` then says whether it goes on.
pub fn advance(t: &mut Tables, end: u64) {
    advance_to(t, end, next_clock);
}

/// [`advance`], with a function `next` that finds the minimum of all clocks, in ps.
pub fn advance_to(t: &mut Tables, end: u64, next: impl FnOnce(&Tables) -> u64) {
    let flags = t.shared[SHARED_FLAGS as usize];
    if flags & flag::NEEDS_FRAMES != 0 {
        t.exps[0].status = status::NEEDS_PACKETS;
        t.exps[0].phase = 1;
        return;
    }
    let mut handed_over = NEVER;
    if flags & flag::TO_RETURN != 0 {
        handed_over = reclaim(t);
        t.shared[SHARED_FLAGS as usize] &= !flag::TO_RETURN;
    }
    let next = next(t).min(handed_over);
    let e = &mut t.exps[0];
    e.phase = 0;
    e.steps += 1;
    e.now = if next > end && next != NEVER { next } else { end };
    if flags & (flag::OVER_BUFFER | flag::POOL_EMPTY) != 0 {
        e.status = status::VIOLATION;
    } else if flags & flag::GAVE_UP != 0 {
        e.status = status::GAVE_UP;
    } else if next == NEVER {
        e.status = status::DONE;
    } else if e.now >= e.time_limit {
        e.status = status::TIME_LIMIT;
    } else if flags & flag::NEEDS_PACKETS != 0 {
        e.status = status::NEEDS_PACKETS;
    }
}

/// The minimum of all clocks, in ps: arrivals at the heads of wires, and each row's own next event.
fn next_clock(t: &Tables) -> u64 {
    let mut earliest = NEVER;
    for &c in &t.clocks {
        earliest = earliest.min(c);
    }
    earliest
}

/// Returns dropped packets and used pause frames to the pools they came from, and hands packets over to other NICs. Returns the time in ps at which the first of
/// these arrives there.
fn reclaim(t: &mut Tables) -> u64 {
    let mut earliest = NEVER;
    for n in NicIdx::all(t.exps[0].nic_len) {
        let mut p = t.nics[n].to_return;
        t.nics[n].to_return = PacketIdx::NONE;
        while p.is_some() {
            let next = t.packets[p].next;
            if t.packets[p].path == HANDED_OVER {
                earliest = earliest.min(hand_over(t, p));
            } else {
                return_record(t, p);
            }
            p = next;
        }
    }
    for q in PortIdx::all(t.exps[0].port_len) {
        let mut p = t.ports[q].to_return;
        t.ports[q].to_return = PacketIdx::NONE;
        while p.is_some() {
            p = return_record(t, p);
        }
    }
    earliest
}

/// Returns record `p`, and the records that travel with it, to their owner. Returns the next record in the list.
pub fn return_record(t: &mut Tables, p: PacketIdx) -> PacketIdx {
    let pk = t.packets[p];
    let packet_kind = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK;
    if packet_kind == kind::FRAME {
        let sw = &mut t.switches[pk.frame_switch()];
        t.packets[p].next = sw.free_head;
        sw.free_head = p;
        sw.free_n += 1;
        return pk.next;
    }
    let pulls = packet_kind == kind::ACK && pk.meta & meta::PULL != 0;
    let owner = if pulls { t.flow_rx[pk.flow].nic } else { t.flow_tx[pk.flow].nic };
    if packet_kind != kind::DATA {
        let mut q = pk.records();
        while q.is_some() {
            let next = t.packets[q].next;
            return_to_pool(t, owner, q);
            q = next;
        }
    }
    return_to_pool(t, owner, p);
    pk.next
}

/// Puts record `p` into the pool of NIC `n`.
fn return_to_pool(t: &mut Tables, n: NicIdx, p: PacketIdx) {
    let row = &mut t.nics[n];
    t.packets[p].next = row.free_head;
    row.free_head = p;
    row.free_n += 1;
}

/// Runs [`advance`] for its only row.
#[inline]
pub fn row(t: &mut Tables, _row: u32, end: u64) {
    advance(t, end);
}
