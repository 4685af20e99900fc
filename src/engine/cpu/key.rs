//! The order of events (twin: `shaders/key.wgsl`). ARCHITECTURE.md, "Events and their order".

use super::math::sat;
use crate::columns::{Lineage, NEVER};

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
    pub d: Lineage,
    pub kind: u32,
    pub entity: u32,
}

/// Later than everything.
pub const NO_EVENT: Key = Key { t: NEVER, d: [0; 6], kind: 9, entity: 0 };

/// Whether lineage `a` was scheduled earlier than `b`, both for the same instant: 1 yes, -1 no, 0 cannot tell.
#[inline]
pub fn older(a: &Lineage, b: &Lineage) -> i32 {
    if a[0] != b[0] {
        return if a[0] > b[0] { 1 } else { -1 };
    }
    if a[1] != b[1] {
        return if a[1] > b[1] { 1 } else { -1 };
    }
    older_by_pattern(a, b)
}

/// The rest of [`older`]: walks back over both patterns to the first difference.
fn older_by_pattern(a: &Lineage, b: &Lineage) -> i32 {
    let mut even = a[0];
    let mut odd = a[1];
    let mut index = 1u32;
    for k in 0..2u32 {
        let ra = (a[4] >> (16 * k)) & 0xffff;
        let rb = (b[4] >> (16 * k)) & 0xffff;
        if ra == 0 && rb == 0 {
            break;
        }
        // Where only one pattern changes, the other goes on as before.
        let both = ra == rb;
        let a_first = rb == 0 || (ra != 0 && ra < rb);
        index += if both || a_first { ra } else { rb };
        let expected = if index % 2 == 0 { even } else { odd };
        let va = if both || a_first { a[2 + k as usize] } else { expected };
        let vb = if both || !a_first { b[2 + k as usize] } else { expected };
        if va != vb {
            return if va > vb { 1 } else { -1 };
        }
        if !both {
            break;
        }
        if index % 2 == 0 {
            even = va;
        } else {
            odd = va;
        }
    }
    if a[5] != b[5] {
        return if a[5] < b[5] { 1 } else { -1 };
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
pub fn lineage(ahead: u64, cause: &Lineage) -> Lineage {
    let d = sat(ahead);
    let runs = cause[4];
    if d != cause[1] {
        return [d, cause[0], cause[1], cause[2], (runs << 16) | 1, cause[5]];
    }
    let first = runs & 0xffff;
    if first == 0 || first == 0xffff {
        // No change yet, or too long ago to tell: it has always been like this.
        return [d, cause[0], 0, 0, 0, cause[5]];
    }
    [d, cause[0], cause[2], cause[3], runs + 1, cause[5]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ages of an event's ancestors, newest first, as far as a lineage tells.
    fn decode(l: &Lineage, n: usize) -> Vec<u32> {
        let mut ages = vec![l[0], l[1]];
        let mut changes = Vec::new();
        let mut at = 1usize;
        for k in 0..2 {
            let r = (l[4] >> (16 * k)) & 0xffff;
            if r == 0 {
                break;
            }
            at += r as usize;
            changes.push((at, l[2 + k]));
        }
        for i in 2..n {
            let change = changes.iter().find(|(at, _)| *at == i).map(|(_, v)| *v);
            ages.push(change.unwrap_or(ages[i - 2]));
        }
        ages
    }

    #[test]
    fn a_lineage_keeps_two_changes_of_a_pattern_of_two() {
        let history = [9, 7, 5, 3, 5, 3, 8, 3, 8, 3];
        let mut l: Lineage = [0; 6];
        for &d in &history {
            l = lineage(d as u64, &l);
        }
        assert_eq!(decode(&l, 7), [3, 8, 3, 8, 3, 5, 3]);
    }

    #[test]
    fn the_order_is_that_of_the_decoded_histories() {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        let some: Vec<Lineage> = (0..300)
            .map(|_| {
                let mut l: Lineage = [0; 6];
                for _ in 0..next() % 12 {
                    l = lineage((next() % 3) as u64, &l);
                }
                l
            })
            .collect();
        for a in &some {
            for b in &some {
                let (da, db) = (decode(a, 40), decode(b, 40));
                let expected = match da.cmp(&db) {
                    std::cmp::Ordering::Greater => 1,
                    std::cmp::Ordering::Less => -1,
                    std::cmp::Ordering::Equal => 0,
                };
                assert_eq!(older(a, b), expected, "{a:?} {b:?}");
            }
        }
    }
}
