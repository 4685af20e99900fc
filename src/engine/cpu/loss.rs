//! Packets that get lost at random on their way over a link (`docs/explanation/model-semantics.md`, "Links that lose packets"). Twin: `shaders/loss.wgsl`.

use super::math::hash32;
use hyperfold_columns::{LinkEndIdx, PacketIdx, Tables, flag, kind, loss, meta};

/// Whether packet `p` gets lost, which link end `end` has sent by `done`. Pause frames never do.
#[inline(never)]
pub fn is_lost(t: &Tables, end: LinkEndIdx, p: PacketIdx, done: u64) -> bool {
    let e = &t.exps[0];
    let words = e.loss_words(end);
    let (share, arc) = (t.shared[words + loss::SHARE as usize], t.shared[words + loss::ARC as usize]);
    let what = (t.packets[p].meta >> meta::KIND_SHIFT) & meta::KIND_MASK;
    what != kind::FRAME && hash32(!arc, done as u32, (done >> 32) as u32, e.seed) < share
}

/// Counts packet `p`, which NIC `end` has sent and which got lost, and keeps its record until `advance` returns it to its owner.
#[inline(never)]
pub fn lose_of_nic(t: &mut Tables, end: LinkEndIdx, p: PacketIdx) {
    let words = t.exps[0].loss_words(end);
    let place = |word: u32| words + word as usize;
    t.shared[place(loss::LOST)] += 1;
    let pk = &t.packets[p];
    let is_data = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::DATA;
    let payload = if is_data { pk.payload } else { 0 };
    let (low, carry) = t.shared[place(loss::BYTES_LO)].overflowing_add(payload);
    t.shared[place(loss::BYTES_LO)] = low;
    t.shared[place(loss::BYTES_HI)] += u32::from(carry);
    let row = &mut t.nics[end.usize()];
    t.packets[p].next = row.to_return;
    row.to_return = p;
    t.raise(flag::TO_RETURN);
}
