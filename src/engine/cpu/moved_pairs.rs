//! Packets that arrive at a NIC that their queue pair has left (`docs/explanation/model-semantics.md`, "Links that fail"). They go on to the NIC where it is now.
//! Twin: `shaders/moved_pairs.wgsl`.

use super::key::{ARRIVAL, EventKey, before, lineages};
use hyperfold_columns::{HANDED_OVER, NicIdx, PacketIdx, Tables, flag, kind, meta};

/// The NIC where packet `p` is to arrive: where the end of its queue pair is now.
fn home(t: &Tables, p: PacketIdx) -> NicIdx {
    let pk = &t.packets[p];
    let is_data = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
    // Another thread may have the NIC where the queue pair is.
    if is_data { t.flow_rx.nic(pk.flow) } else { t.flow_tx.nic(pk.flow) }
}

/// Keeps packet `p`, which arrives at NIC `n`, for another NIC, if that is where its queue pair is now: [`hand_over`] brings it there. Returns whether it does.
#[inline(never)]
pub fn passes_on(t: &mut Tables, n: NicIdx, p: PacketIdx) -> bool {
    let is_frame = (t.packets[p].meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::FRAME;
    if is_frame || home(t, p) == n {
        return false;
    }
    let row = &mut t.nics[n];
    let pk = &mut t.packets[p];
    pk.path = HANDED_OVER;
    pk.next = row.to_return;
    row.to_return = p;
    t.raise(flag::TO_RETURN);
    true
}

/// Hands packet `p` over to the NIC where its queue pair is now. It arrives there after the delay of that NIC's link, which no step exceeds. Returns that time,
/// in ps.
pub fn hand_over(t: &mut Tables, p: PacketIdx) -> u64 {
    let to = home(t, p);
    let delay = t.nics[to].delay;
    let [d] = lineages([delay], &t.details[p].d);
    t.details[p].d = d;
    let time = t.packets[p].t + delay;
    t.packets[p].t = time;
    let mut previous = PacketIdx::NONE;
    let mut next = t.wires[to.end()].head;
    while next.is_some() && !comes_before(t, to, p, next) {
        (previous, next) = (next, t.packets[next].next);
    }
    t.packets[p].next = next;
    let wire = &mut t.wires[to.end()];
    wire.n += 1;
    if next.is_none() {
        wire.tail = p;
    }
    if previous.is_some() {
        t.packets[previous].next = p;
    } else {
        wire.head = p;
        t.clocks[to.usize()] = time;
    }
    time
}

/// Whether `p` arrives at NIC `n` before `q` does.
fn comes_before(t: &Tables, n: NicIdx, p: PacketIdx, q: PacketIdx) -> bool {
    let key = |p: PacketIdx| EventKey { t: t.packets[p].t, d: t.details[p].d, kind: ARRIVAL, entity: n.0 };
    before(&key(p), &key(q))
}
