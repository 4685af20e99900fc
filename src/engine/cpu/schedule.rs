//! System `schedule`, a row an experiment: the signals of this step reach their gates (twin: `shaders/schedule.wgsl`).

use crate::columns::{NONE, NicIdx, SHARED_FLAGS, Tables, flag};

/// Counts signals; gates that everybody has reached are lined up for `analytical`, by time and number.
pub fn schedule(t: &mut Tables) {
    if t.shared[SHARED_FLAGS as usize] & flag::SIGNALS == 0 {
        return;
    }
    t.shared[SHARED_FLAGS as usize] &= !flag::SIGNALS;
    for n in NicIdx::all(t.exps[0].nic_len) {
        collect(t, n);
    }
}

/// Counts the signals that NIC `n` gave.
fn collect(t: &mut Tables, n: NicIdx) {
    collect_into(t, n, &mut add_fired);
}

/// Counts the signals that NIC `n` gave; `fired` takes every gate that everybody has reached.
pub fn collect_into(t: &mut Tables, n: NicIdx, fired: &mut impl FnMut(&mut Tables, u32)) {
    let mut s = t.nics[n].signals;
    t.nics[n].signals = NONE;
    while s != NONE {
        let signal = t.signals[s as usize];
        let gate = &mut t.gates[signal.gate as usize];
        gate.latest = gate.latest.max(signal.at);
        gate.waits -= 1;
        if gate.waits == 0 {
            fired(t, signal.gate);
        }
        s = signal.next;
    }
}

/// Puts gate `g` among those that fired.
fn add_fired(t: &mut Tables, g: u32) {
    let at = t.gates[g as usize].latest;
    let mut last = NONE;
    let mut next = t.exps[0].fired;
    while next != NONE {
        let other = t.gates[next as usize].latest;
        if other > at || (other == at && next > g) {
            break;
        }
        last = next;
        next = t.gates[next as usize].next;
    }
    t.gates[g as usize].next = next;
    if last == NONE {
        t.exps[0].fired = g;
    } else {
        t.gates[last as usize].next = g;
    }
}

/// [`schedule`] for its one row.
#[inline]
pub fn row(t: &mut Tables, _row: u32, _end: u64) {
    schedule(t);
}
