//! The CPU engine: the twin of the WGSL kernels, one experiment at a time, only rows that have something to do.

pub mod advance;
pub mod analytical;
pub mod cc;
pub mod classify;
pub mod egress;
pub mod engine;
pub mod forward;
pub mod forward_joint;
pub mod key;
pub mod lists;
pub mod math;
pub mod mmu;
pub mod nic;
pub mod plan;
pub mod queue_pair;
pub mod rate;
pub mod receiver;
pub mod schedule;
pub mod sender;
pub mod task;

use crate::columns::{NONE, SHARED_FLAGS, Tables, flag, status};

/// Runs one experiment for at most `steps` steps, or until it stops.
///
/// PRECONDITION: `t` holds exactly one experiment.
pub fn run(t: &mut Tables, steps: u32) {
    for _ in 0..steps {
        if t.exps[0].status != status::RUNNING {
            return;
        }
        step(t);
    }
}

/// One step: the systems in their order.
pub fn step(t: &mut Tables) {
    let end = step_end(t);
    if t.exps[0].phase == 0 {
        plan_all(t, end);
    }
    classify_all(t, end);
    if t.shared[SHARED_FLAGS as usize] & flag::NEEDS_FRAMES == 0 {
        forward_all(t, end);
        nic_all(t, end);
        schedule::schedule(t);
        analytical::analytical(t);
    }
    advance::advance(t, end);
}

/// Where the step ends.
pub fn step_end(t: &Tables) -> u64 {
    let e = &t.exps[0];
    (e.now + e.step).min(e.time_limit)
}

/// `plan` over the ports that something reaches.
pub fn plan_all(t: &mut Tables, end: u64) {
    let nics = t.exps[0].nic_len;
    for port in 0..t.exps[0].port_len {
        if t.clocks[(nics + port) as usize] < end {
            plan::plan(t, port, end);
        }
    }
}

/// `classify` over all switches.
pub fn classify_all(t: &mut Tables, _end: u64) {
    for s in 0..t.exps[0].switch_len {
        classify::classify(t, s);
    }
}

/// `forward` over the ports of independent switches, `forward_joint` over the others, where there is something to do.
pub fn forward_all(t: &mut Tables, end: u64) {
    let own = t.exps[0].end_len + t.exps[0].nic_len;
    let words = t.exps[0].mask_words;
    for s in 0..t.exps[0].switch_len {
        let sw = &t.switches[s as usize];
        if sw.independent == 0 {
            forward_joint::forward_joint(t, s, end);
            continue;
        }
        for port in sw.port_first..sw.port_first + sw.port_n {
            let wanted = (0..words).any(|w| t.shared[plan::want_word(t, port, w * 32) as usize] != 0);
            let row = &t.ports[port as usize];
            if wanted || row.arr_n > 0 || row.in_frames != NONE || t.clocks[(own + port) as usize] < end {
                forward::forward(t, port, end);
            }
        }
    }
}

/// `nic` over the NICs that have something to do.
pub fn nic_all(t: &mut Tables, end: u64) {
    let own = t.exps[0].end_len;
    for n in 0..t.exps[0].nic_len {
        if t.clocks[n as usize] < end || t.clocks[(own + n) as usize] < end {
            nic::nic(t, n, end);
        }
    }
}
