//! System `schedule`, one row per experiment: delivers the signals of this step to their gates (twin: `shaders/schedule.wgsl`).

use hyperfold_columns::{NONE, NicIdx, SHARED_FLAGS, Tables, flag};

/// Counts signals. Gates that all their signals have reached are queued for `analytical`, by time and number.
pub fn schedule(t: &mut Tables) {
    if t.shared[SHARED_FLAGS as usize] & flag::SIGNALS == 0 {
        return;
    }
    t.shared[SHARED_FLAGS as usize] &= !flag::SIGNALS;
    let mut fired = Vec::new();
    for n in NicIdx::all(t.exps[0].nic_len) {
        collect_into(t, n, &mut |t, g| fired.push((t.gates[g as usize].latest, g)));
    }
    line_up(t, fired);
}

/// Counts the signals that NIC `n` gave. `fired` is called for every gate that all its signals have reached.
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

/// Queues the gates that fired, each with the time of its last signal. The twin merges lists, as it has no memory to sort in. The order is the same:
/// no two gates have the same time and number.
fn line_up(t: &mut Tables, mut fired: Vec<(u64, u32)>) {
    fired.sort_unstable();
    let mut next = NONE;
    for &(_, g) in fired.iter().rev() {
        t.gates[g as usize].next = next;
        next = g;
    }
    t.exps[0].fired = next;
}

/// Runs [`schedule`] for its only row.
#[inline]
pub fn row(t: &mut Tables, _row: u32, _end: u64) {
    schedule(t);
}
