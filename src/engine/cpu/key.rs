//! The order of events (twin: `shaders/key.wgsl`). docs/explanation/model-semantics.md, "Events and their order".

use super::math::sat;
use hyperfold_columns::{CHANGES, FARTHEST, LINEAGE_WORDS, Lineage, NEVER};

/// Kind of an event: a transmission ends. At one instant, events run in the order of their kinds.
pub const COMPLETION: u32 = 0;
/// Kind of an event: a packet arrives.
pub const ARRIVAL: u32 = 1;
/// Kind of an event: a NIC looks again for a queue pair that may send.
pub const TIMER: u32 = 2;
/// Kind of an event: a timer of a congestion control expires.
pub const CC_TIMER: u32 = 3;
/// Kind of an event: a retransmission timeout.
pub const RTO: u32 = 4;
/// Kind of an event: a flow starts.
pub const START: u32 = 5;
/// Kind of an event: a task is due.
pub const TASK: u32 = 6;

/// Key of an event: its time in ps, its lineage, its kind, and its entity. The lineage comes first, so that copies move it in the same pieces as
/// [`lineage`] stores it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventKey {
    /// Lineage, which orders events of one time.
    pub d: Lineage,
    /// Time, in ps.
    pub t: u64,
    /// Kind, such as [`ARRIVAL`]: decides where lineages are equal.
    pub kind: u32,
    /// Row that it happens at: decides where kinds are equal.
    pub entity: u32,
}

/// Key of an event whose lineage stays in its row.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'a> {
    /// Time, in ps.
    pub t: u64,
    /// Lineage, in its row.
    pub d: &'a Lineage,
    /// Kind, such as [`ARRIVAL`].
    pub kind: u32,
    /// Row that it happens at.
    pub entity: u32,
}

impl EventRef<'_> {
    /// A key that is later than every event.
    pub const NONE: EventRef<'static> = EventRef { t: NEVER, d: &[0; LINEAGE_WORDS], kind: 9, entity: 0 };

    /// Whether this event happens before `other`.
    #[inline]
    pub fn is_before(&self, other: &EventRef) -> bool {
        if self.t != other.t {
            return self.t < other.t;
        }
        let o = older(self.d, other.d);
        if o != 0 {
            return o > 0;
        }
        if self.kind != other.kind {
            return self.kind < other.kind;
        }
        self.entity < other.entity
    }
}

impl EventKey {
    #[inline]
    fn as_ref(&self) -> EventRef<'_> {
        EventRef { t: self.t, d: &self.d, kind: self.kind, entity: self.entity }
    }
}

/// A key that is later than every event.
pub const NO_EVENT: EventKey = EventKey { t: NEVER, d: [0; LINEAGE_WORDS], kind: 9, entity: 0 };

/// Which of two lineages for the same instant was scheduled earlier: 1 for `a`, -1 for `b`, 0 if it cannot be told.
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

/// Word index of the first distance, and of the root.
const RUNS: usize = 2 + CHANGES;
const ROOT: usize = LINEAGE_WORDS - 1;

/// Distance of change `k` from the change before it; 0 if there is no such change.
#[inline]
fn run(l: &Lineage, k: usize) -> u32 {
    (l[RUNS + k / 2] >> (16 * (k % 2))) & 0xffff
}

/// The slow part of [`older`]: walks back over both patterns to the first difference.
fn older_by_pattern(a: &Lineage, b: &Lineage) -> i32 {
    let mut even = a[0];
    let mut odd = a[1];
    let mut index = 1u32;
    for k in 0..CHANGES {
        let ra = run(a, k);
        let rb = run(b, k);
        if ra == 0 && rb == 0 {
            break;
        }
        // If only one pattern changes here, the other goes on as before.
        let both = ra == rb;
        let a_first = rb == 0 || (ra != 0 && ra < rb);
        index += if both || a_first { ra } else { rb };
        let expected = if index.is_multiple_of(2) { even } else { odd };
        let va = if both || a_first { a[2 + k] } else { expected };
        let vb = if both || !a_first { b[2 + k] } else { expected };
        if va != vb {
            return if va > vb { 1 } else { -1 };
        }
        if !both {
            break;
        }
        if index.is_multiple_of(2) {
            even = va;
        } else {
            odd = va;
        }
    }
    if a[ROOT] != b[ROOT] {
        return if a[ROOT] < b[ROOT] { 1 } else { -1 };
    }
    0
}

/// Whether event `a` happens before event `b`.
#[inline]
pub fn before(a: &EventKey, b: &EventKey) -> bool {
    a.as_ref().is_before(&b.as_ref())
}

/// Lineage of an event that an event with lineage `cause` schedules `ahead` ps before it happens.
#[inline(always)]
pub fn lineage(ahead: u64, cause: &Lineage) -> Lineage {
    lineages([ahead], cause)[0]
}

/// [`lineage`] for several events that have the same cause.
///
/// Both cases are common, so there are no branches. Loads and stores are 16 bytes wide: a load that is wider than the store before it waits for that
/// store. There is no closure and no call: a lineage that passes through memory on its way causes a wait.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline(always)]
pub fn lineages<const N: usize>(ahead: [u64; N], cause: &Lineage) -> [Lineage; N] {
    use std::arch::x86_64::*;
    let [c0, c1, c2]: [__m128i; 3] = bytemuck::cast(*cause);
    let mut made = [[0; LINEAGE_WORDS]; N];
    // SAFETY: SSE2 belongs to every x86-64 processor.
    unsafe {
        let one = _mm_cvtsi32_si128(1);
        let root = _mm_set_epi32(-1, 0, 0, 0);
        // The pattern goes on. If there was no change yet, or it was too long ago to tell, the pattern has always been like this.
        let first = _mm_and_si128(_mm_shuffle_epi32::<0>(c2), _mm_set1_epi32(0xffff));
        let none = _mm_cmpeq_epi32(first, _mm_setzero_si128());
        let forgets = _mm_or_si128(none, _mm_cmpeq_epi32(first, _mm_set1_epi32(FARTHEST as i32)));
        let same0 = _mm_unpacklo_epi64(_mm_slli_epi64::<32>(c0), _mm_andnot_si128(forgets, _mm_srli_si128::<8>(c0)));
        let same1 = _mm_andnot_si128(forgets, c1);
        let same2 = _mm_andnot_si128(_mm_andnot_si128(root, forgets), _mm_add_epi32(c2, one));
        // The pattern changes two places back: words move on by one and the oldest is forgotten; distances move on by half a word.
        let more0 = _mm_slli_si128::<4>(c0);
        let more1 = _mm_or_si128(_mm_slli_si128::<4>(c1), _mm_srli_si128::<12>(c0));
        let more2 = _mm_or_si128(_mm_slli_si128::<2>(c2), one);
        let change0 = _mm_xor_si128(same0, more0);
        let change1 = _mm_xor_si128(same1, more1);
        let change2 = _mm_andnot_si128(root, _mm_xor_si128(same2, more2));
        let expected = _mm_shuffle_epi32::<1>(c0);
        let mut k = 0;
        while k < N {
            let newest = _mm_cvtsi32_si128(sat(ahead[k]) as i32);
            let same = _mm_shuffle_epi32::<0>(_mm_cmpeq_epi32(newest, expected));
            let l0 = _mm_xor_si128(same0, _mm_andnot_si128(same, change0));
            let l1 = _mm_xor_si128(same1, _mm_andnot_si128(same, change1));
            let l2 = _mm_xor_si128(same2, _mm_andnot_si128(same, change2));
            made[k] = bytemuck::cast([_mm_or_si128(l0, newest), l1, l2]);
            k += 1;
        }
    }
    made
}

/// [`lineage`] for several events that have the same cause.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn lineages<const N: usize>(ahead: [u64; N], cause: &Lineage) -> [Lineage; N] {
    ahead.map(|ahead| word_by_word(ahead, cause))
}

/// [`lineage`], computed one word after another.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn word_by_word(ahead: u64, cause: &Lineage) -> Lineage {
    let d = sat(ahead);
    let mut l = *cause;
    l[0] = d;
    l[1] = cause[0];
    if d != cause[1] {
        // The pattern changes two places back: there is one more change, and the oldest is forgotten.
        l[2] = cause[1];
        l[3..2 + CHANGES].copy_from_slice(&cause[2..1 + CHANGES]);
        l[RUNS] = (cause[RUNS] << 16) | 1;
        for w in 1..CHANGES / 2 {
            l[RUNS + w] = (cause[RUNS + w] << 16) | (cause[RUNS + w - 1] >> 16);
        }
        return l;
    }
    let first = cause[RUNS] & 0xffff;
    if first == 0 || first == FARTHEST {
        // There was no change yet, or it was too long ago to tell: the pattern has always been like this.
        return periodic(d, cause[0], cause[ROOT]);
    }
    l[RUNS] = cause[RUNS] + 1;
    l
}

/// Lineage of an event whose history alternates between two ages, `newest` and `next` (ps), back to `root`.
#[inline]
pub fn periodic(newest: u32, next: u32, root: u32) -> Lineage {
    let mut l = [0; LINEAGE_WORDS];
    l[0] = newest;
    l[1] = next;
    l[ROOT] = root;
    l
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ages of an event's ancestors, newest first, as far as a lineage tells.
    fn decode(l: &Lineage, n: usize) -> Vec<u32> {
        let mut ages = vec![l[0], l[1]];
        let mut changes = Vec::new();
        let mut position = 1usize;
        for k in 0..CHANGES {
            let r = run(l, k);
            if r == 0 {
                break;
            }
            position += r as usize;
            changes.push((position, l[2 + k]));
        }
        for i in 2..n {
            let change = changes.iter().find(|(position, _)| *position == i).map(|(_, v)| *v);
            ages.push(change.unwrap_or(ages[i - 2]));
        }
        ages
    }

    #[test]
    fn a_lineage_keeps_the_last_changes_of_a_pattern_of_two() {
        let history = [9, 7, 5, 3, 5, 3, 8, 3, 8, 3];
        let mut l: Lineage = [0; LINEAGE_WORDS];
        for &d in &history {
            l = lineage(d as u64, &l);
        }
        assert_eq!(decode(&l, 10), [3, 8, 3, 8, 3, 5, 3, 5, 7, 9]);
    }

    #[test]
    fn in_pieces_as_word_by_word() {
        let mut seed = 5u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        for ages in [1, 2, 3, 5] {
            let mut l: Lineage = std::array::from_fn(|_| next());
            for step in 0..20_000 {
                // Long runs of one age too, up to the farthest that is seen.
                let age = if step % 5_000 < 3_000 { next() % ages } else { 7 };
                let new = lineage(age as u64, &l);
                assert_eq!(new, word_by_word(age as u64, &l), "{l:?}");
                l = new;
            }
        }
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
                let mut l: Lineage = [0; LINEAGE_WORDS];
                for _ in 0..next() % 30 {
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
