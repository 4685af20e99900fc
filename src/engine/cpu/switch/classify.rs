//! System `classify`, one row per switch: decides whether anything can pause, resume or drop there in this step (twin: `shaders/classify.wgsl`).
//!
//! It assumes the worst case: everything that arrives is charged before anything is released. A switch that stays below every
//! threshold even then is *independent*: its ports do not affect each other in this step, and `forward` processes them one by
//! one. A switch that chooses among ports for what arrives is not. `forward_joint` processes any other switch. Only the decision is written, so the system can be repeated.

use super::class_port::{bound_of_classes, pausable};
use super::port_queue::has_port_queues;
use crate::cpu::classes::has_classes;
use hyperfold_columns::{SHARED_HEADER, SwitchIdx, Tables, flag, mode};

/// Decides whether switch `s` is independent, and whether its pool of pause frames suffices if not.
pub fn classify(t: &mut Tables, s: SwitchIdx) {
    let sw = t.switches[s];
    let e = &t.exps[0];
    let reserve = e.reserve;
    let pfc = e.modes & mode::PFC != 0;
    let buffer = e.buffer;
    let by_class = has_classes(e);
    let mut arrivals = 0u32;
    let mut shared = 0u64;
    let mut held = 0u64;
    for p in sw.ports() {
        let row = &t.ports[p];
        let max_held = t.shared[(SHARED_HEADER + p.0) as usize] + row.arr_bytes;
        held += max_held as u64;
        shared += max_held.saturating_sub(reserve) as u64;
        arrivals += row.arr_n;
    }
    let mut independent = sw.congested_n == 0 && (sw.chooses == 0 || arrivals == 0);
    if by_class {
        let below;
        (held, below) = bound_of_classes(t, s);
        independent = independent && (arrivals == 0 || below);
    } else if independent && arrivals > 0 && !has_port_queues(e) {
        let free = sw.shared_size.saturating_sub(shared);
        for p in sw.ports() {
            let row = &t.ports[p];
            let max_held = t.shared[(SHARED_HEADER + p.0) as usize] + row.arr_bytes;
            let threshold = free >> row.shift;
            independent = independent && (max_held.saturating_sub(reserve) as u64) < threshold;
            // A packet within the headroom is admitted. Beyond the headroom, a small threshold can drop packets even if nothing is full. Without PFC,
            // a packet below the threshold is admitted.
            independent =
                independent && (!pfc || sw.max_wire <= row.headroom || sw.max_wire as u64 + shared <= threshold);
        }
    }
    let row = &mut t.switches[s];
    row.independent = independent as u32;
    if independent || has_port_queues(e) {
        if held > row.max_held {
            row.max_held = held;
        }
        if held > buffer {
            t.raise(flag::OVER_BUFFER);
        }
    } else if pfc {
        // Each frame follows a charge or a release, in alternation: at most two frames per arriving packet, and one resume for what was held.
        let need = 2 * arrivals + pausable(e, sw.port_n);
        row.need = need;
        if row.free_n < need {
            t.raise(flag::NEEDS_FRAMES);
        }
    }
}

/// Whether switch `s`, about which [`classify`] decided, needs more pause frames than its pool has.
#[inline]
pub fn lacks_frames(t: &Tables, s: SwitchIdx) -> bool {
    let row = &t.switches[s];
    row.independent == 0 && row.free_n < row.need && t.exps[0].modes & mode::PFC != 0
}

/// Runs [`classify`] for one row, at every switch.
#[inline]
pub fn row(t: &mut Tables, s: SwitchIdx, _end: u64) {
    classify(t, s);
}
