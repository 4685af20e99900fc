//! Adaptive routing: a switch sends each data packet to one of the egress ports that lead on with the shortest queues
//! (`docs/explanation/model-semantics.md`, "Adaptive routing"). Twin: `shaders/adaptive.wgsl`.

use super::class_port::port_queue_row;
use crate::cpu::classes::{has_classes, queue_class};
use crate::cpu::math::hash32;
use hyperfold_columns::{Exp, PacketIdx, PortIdx, REMOTE_DOWN, Tables, WEIGHED_CHOICE, flowlet, kind, meta, mode};

/// Whether switches choose the egress ports of data packets.
#[inline]
pub fn is_adaptive(e: &Exp) -> bool {
    e.modes & mode::ADAPTIVE != 0
}

/// Where data packet `p`, which has reached a switch, may go on: returns the first port of its choice. If that is the only one, the packet takes it; else
/// [`choose`] decides when the packet's turn comes.
#[inline]
pub fn first_choice(t: &mut Tables, p: PacketIdx) -> PortIdx {
    let place = t.packets[p].path as usize;
    let port = t.paths[place + 1];
    if t.paths[place].0 == 1 {
        t.packets[p].path = t.paths[place + 2].0;
    }
    port
}

/// Chooses the egress port of packet `p`, which arrives at `now` and was listed for port `first`. Gives the packet the way on from there. Only data at a
/// switch where several ports lead on has a choice; others leave by `first`.
pub fn choose(t: &mut Tables, first: PortIdx, p: PacketIdx, now: u64) -> PortIdx {
    let pk = &t.packets[p];
    let place = pk.path as usize;
    // A packet without a choice has gone on to the choice of another switch, which has other ports.
    if (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK != kind::DATA || t.paths[place + 1] != first {
        return first;
    }
    let (in_port, class) = (pk.in_port.0, queue_class(&t.exps[0], pk.meta));
    let word = t.paths[place].0;
    let n = (word & !WEIGHED_CHOICE) as usize;
    let weights = place + 1 + 2 * n;
    let has_flowlets = t.exps[0].flowlet_first != 0;
    let number = weights + if word & WEIGHED_CHOICE == 0 { 0 } else { n };
    if has_flowlets && let Some(pair) = flowlet_pair(t, place, n, t.paths[number].0, now) {
        t.packets[p].path = t.paths[pair + 1].0;
        return t.paths[pair];
    }
    let weight = if word & WEIGHED_CHOICE == 0 { ANY_WEIGHT } else { drawn_weight(t, place, n, class, in_port, now) };
    let (mut lowest, mut n_lowest) = (u32::MAX, 0);
    for k in 0..n {
        if weight != ANY_WEIGHT && t.paths[weights + k].0 != weight {
            continue;
        }
        let grade = grade(t, place + 1 + 2 * k, class);
        if grade < lowest {
            (lowest, n_lowest) = (grade, 0);
        }
        n_lowest += u32::from(grade == lowest);
    }
    let mut left = hash32(in_port, now as u32, (now >> 32) as u32, t.exps[0].routing_seed) % n_lowest;
    let mut k = 0;
    let pair = loop {
        let pair = place + 1 + 2 * k;
        let is_among = weight == ANY_WEIGHT || t.paths[weights + k].0 == weight;
        if is_among && grade(t, pair, class) == lowest {
            if left == 0 {
                break pair;
            }
            left -= 1;
        }
        k += 1;
    };
    t.packets[p].path = t.paths[pair + 1].0;
    if has_flowlets {
        let words = t.exps[0].flowlet_words(t.paths[number].0);
        t.shared[words + flowlet::PORT as usize] = t.paths[pair].0 + 1;
    }
    t.paths[pair]
}

/// Place of the port, of the `n` in the choice at `place`, by which flowlet `number` goes on with a packet that arrives at `now`; `None`: a flowlet begins. Notes the
/// packet's arrival.
#[inline(never)]
fn flowlet_pair(t: &mut Tables, place: usize, n: usize, number: u32, now: u64) -> Option<usize> {
    let words = t.exps[0].flowlet_words(number);
    let word = |offset: u32| t.shared[words + offset as usize];
    let last = u64::from(word(flowlet::LAST_HI)) << 32 | u64::from(word(flowlet::LAST_LO));
    let port = word(flowlet::PORT);
    t.shared[words + flowlet::LAST_LO as usize] = now as u32;
    t.shared[words + flowlet::LAST_HI as usize] = (now >> 32) as u32;
    if port == 0 || now - last > t.exps[0].flowlet_gap || t.ports[PortIdx(port - 1)].is_cut_off() {
        return None;
    }
    (0..n).map(|k| place + 1 + 2 * k).find(|&pair| t.paths[pair].0 == port - 1)
}

/// Weight of the ports among which a packet goes on, drawn in proportion to the weights of all that are neither paused nor cut off. If all are, those count that
/// are only paused. The choice at `place` is among `n` ports. The packet is of `class` and came in by `in_port`.
#[inline(never)]
fn drawn_weight(t: &Tables, place: usize, n: usize, class: u32, in_port: u32, now: u64) -> u32 {
    let weights = place + 1 + 2 * n;
    let (mut best, mut sum) = (u32::MAX, 0);
    for k in 0..n {
        let state = grade(t, place + 1 + 2 * k, class) / PAUSED_GRADE;
        if state < best {
            (best, sum) = (state, 0);
        }
        sum += if state == best { t.paths[weights + k].0 } else { 0 };
    }
    let seed = t.exps[0].routing_seed.wrapping_add(1);
    let mut left = hash32(in_port, now as u32, (now >> 32) as u32, seed) % sum;
    let mut k = 0;
    loop {
        let weight = t.paths[weights + k].0;
        if grade(t, place + 1 + 2 * k, class) / PAUSED_GRADE == best {
            if left < weight {
                return weight;
            }
            left -= weight;
        }
        k += 1;
    }
}

/// No port has this weight; ports of any weight may be chosen.
const ANY_WEIGHT: u32 = 0;

/// Grade for a packet of `class` of the egress port that the pair at `pair` names: the queue of that class, with what waits further on as far as that is known, in
/// whole grades, or more than that.
#[inline]
fn grade(t: &Tables, pair: usize, class: u32) -> u32 {
    let port = t.paths[pair];
    let (e, row) = (&t.exps[0], &t.ports[port]);
    let (mut q_bytes, mut is_paused) = (row.q_bytes, row.paused != 0);
    if has_classes(e) {
        let queue = &t.class_queues[port_queue_row(e, port, class)];
        (q_bytes, is_paused) = (queue.q_bytes, queue.paused != 0);
    }
    let paused = if is_paused { PAUSED_GRADE } else { 0 };
    let remote = if e.remote_first == 0 { 0 } else { remote_queue(t, t.paths[pair + 1].0 as usize, class) };
    q_bytes = q_bytes.saturating_add(remote & !REMOTE_DOWN);
    let cut_off = if row.is_cut_off() || remote & REMOTE_DOWN != 0 { CUT_OFF_GRADE } else { 0 };
    (q_bytes / e.adaptive_grade) | paused | cut_off
}

/// The shortest queue of `class` that was reported of the ports of the choice at `place`, which is that of the next switch, in bytes. A port whose link is down has
/// the longest, with [`REMOTE_DOWN`]. At the end of a path nothing waits.
#[inline(never)]
fn remote_queue(t: &Tables, place: usize, class: u32) -> u32 {
    let n = (t.paths[place].0 & !WEIGHED_CHOICE) as usize;
    let reported = |k: usize| t.shared[t.exps[0].remote_word(t.paths[place + 1 + 2 * k], class)];
    (0..n).map(reported).min().unwrap_or(0)
}

/// Grade of a paused port with an empty queue. Grades of queues stay below it, as a grade has more than four bytes.
const PAUSED_GRADE: u32 = 1 << 30;
/// Grade of a port whose link is down.
const CUT_OFF_GRADE: u32 = 1 << 31;
