//! Traffic classes at a link end: where their queues are, and which class sends next (`docs/explanation/model-semantics.md`, "Traffic classes"). Twin:
//! `shaders/classes.wgsl`.

use hyperfold_columns::{Exp, LinkEndIdx, Tables, meta, mode};

/// Whether the experiment has several traffic classes.
#[inline]
pub fn has_classes(e: &Exp) -> bool {
    e.modes & mode::CLASSES != 0
}

/// Traffic class of a packet or pause frame whose `meta` is `pk_meta`.
#[inline]
pub fn class_of(pk_meta: u32) -> u32 {
    (pk_meta >> meta::CLASS_SHIFT) & meta::CLASS_MASK
}

/// Traffic class in whose queue a packet with `pk_meta` waits: 0 where there are no classes, as other bits may be in their place.
#[inline]
pub fn queue_class(e: &Exp, pk_meta: u32) -> u32 {
    if e.class_n > 0 { class_of(pk_meta) } else { 0 }
}

/// Index in `class_queues` of the row of `class` at `end`.
#[inline]
pub fn class_queue(e: &Exp, end: LinkEndIdx, class: u32) -> usize {
    (end.0 * e.class_n + class) as usize
}

/// Chooses the class that sends next at `end`. `candidates` has a bit for each class that can send now, and is not 0. If it is the turn of another class than
/// before, that class gets its allowance.
pub fn choose_class(t: &mut Tables, end: LinkEndIdx, candidates: u32) -> u32 {
    let first = class_queue(&t.exps[0], end, 0);
    let (mut level, mut members) = (u32::MAX, 0u32);
    let mut left = candidates;
    while left != 0 {
        let class = left.trailing_zeros();
        left &= left - 1;
        let own = t.class_queues[first + class as usize].level;
        if own < level {
            (level, members) = (own, 0);
        }
        members |= u32::from(own == level) << class;
    }
    let last = t.class_queues[first + level as usize].last;
    if (members >> last) & 1 != 0 && t.class_queues[first + last as usize].allowance > 0 {
        return last;
    }
    let later = members & !((2 << last) - 1);
    let class = if later != 0 { later.trailing_zeros() } else { members.trailing_zeros() };
    let row = &mut t.class_queues[first + class as usize];
    row.allowance = row.allowance.min(0) + i64::from(row.quantum);
    t.class_queues[first + level as usize].last = class;
    class
}

/// Takes a packet of `wire` bytes off the allowance of `class` at `end`.
#[inline]
pub fn spend_allowance(t: &mut Tables, end: LinkEndIdx, class: u32, wire: u32) {
    let i = class_queue(&t.exps[0], end, class);
    t.class_queues[i].allowance -= i64::from(wire);
}
