//! The order of events (twin: `shaders/key.wgsl`). ARCHITECTURE.md, "Events and their order".

use super::math::sat;
use crate::columns::NEVER;

/// Event kinds, in their order at one instant.
pub const COMPLETION: u32 = 0;
pub const ARRIVAL: u32 = 1;
pub const TIMER: u32 = 2;
pub const CC_TIMER: u32 = 3;
pub const RTO: u32 = 4;
pub const START: u32 = 5;

/// An event: when, how it came about, what, where.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub t: u64,
    pub d: [u32; 4],
    pub kind: u32,
    pub entity: u32,
}

/// Later than everything.
pub const NO_EVENT: Key = Key { t: NEVER, d: [0; 4], kind: 9, entity: 0 };

/// Whether lineage `a` was scheduled earlier than `b`, both for the same instant: 1 yes, -1 no, 0 cannot tell.
#[inline]
pub fn older(a: &[u32; 4], b: &[u32; 4]) -> i32 {
    for i in 0..4 {
        if a[i] != b[i] {
            return if a[i] > b[i] { 1 } else { -1 };
        }
    }
    0
}

/// Whether `a` happens before `b`.
#[inline]
pub fn before(a: &Key, b: &Key) -> bool {
    if a.t != b.t {
        return a.t < b.t;
    }
    let o = older(&a.d, &b.d);
    if o != 0 {
        return o > 0;
    }
    if a.kind != b.kind {
        return a.kind < b.kind;
    }
    a.entity < b.entity
}

/// Lineage of an event scheduled `ahead` ps before it happens by an event with lineage `cause`.
#[inline]
pub fn lineage(ahead: u64, cause: &[u32; 4]) -> [u32; 4] {
    [sat(ahead), cause[0], cause[1], cause[2]]
}
