//! Adaptive routing: a switch sends each data packet to one of the egress ports that lead on with the shortest queues
//! (`docs/explanation/model-semantics.md`, "Adaptive routing"). Twin: `shaders/adaptive.wgsl`.

use crate::cpu::math::hash32;
use hyperfold_columns::{Exp, PacketIdx, PortIdx, Tables, kind, meta, mode};

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
    let n = t.paths[place].0 as usize;
    let (mut lowest, mut n_lowest) = (u32::MAX, 0);
    for k in 0..n {
        let grade = grade(t, t.paths[place + 1 + 2 * k]);
        if grade < lowest {
            (lowest, n_lowest) = (grade, 0);
        }
        n_lowest += u32::from(grade == lowest);
    }
    let mut left = hash32(pk.in_port.0, now as u32, (now >> 32) as u32, t.exps[0].routing_seed) % n_lowest;
    let mut pair = place + 1;
    loop {
        if grade(t, t.paths[pair]) == lowest {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        pair += 2;
    }
    t.packets[p].path = t.paths[pair + 1].0;
    t.paths[pair]
}

/// Grade of egress `port`: its queue in whole grades, or more than that.
#[inline]
fn grade(t: &Tables, port: PortIdx) -> u32 {
    let row = &t.ports[port];
    let paused = if row.paused != 0 { PAUSED_GRADE } else { 0 };
    let cut_off = if row.is_cut_off() { CUT_OFF_GRADE } else { 0 };
    (row.q_bytes / t.exps[0].adaptive_grade) | paused | cut_off
}

/// Grade of a paused port with an empty queue. Grades of queues stay below it, as a grade has more than four bytes.
const PAUSED_GRADE: u32 = 1 << 30;
/// Grade of a port whose link is down.
const CUT_OFF_GRADE: u32 = 1 << 31;
