//! System `analytical`, one row per experiment: computes what is not simulated as packets. It serves gates and releases the tasks behind them (twin:
//! `shaders/analytical.wgsl`).

use super::task::under_way;
use hyperfold_columns::{NONE, Tables, TaskIdx};

/// Serves the gates that fired, in their order. INVARIANT: a gate's latency is at least one step, so the tasks that it releases start after this
/// step. They wait for nothing else.
pub fn analytical(t: &mut Tables) {
    while t.exps[0].fired != NONE {
        let g = t.exps[0].fired;
        t.exps[0].fired = t.gates[g as usize].next;
        serve(t, g);
    }
}

/// Serves gate `g`: waits for its server, if it has one, adds its latency, and starts its tasks.
pub fn serve(t: &mut Tables, g: u32) {
    let gate = t.gates[g as usize];
    let mut free = gate.latest;
    if gate.server != NONE {
        free = free.max(t.servers[gate.server as usize]) + gate.serial;
        t.servers[gate.server as usize] = free;
    }
    let end = free + gate.latency;
    for k in gate.first..gate.first + gate.n {
        let i = TaskIdx(t.edges[k as usize]);
        let row = &mut t.tasks[i];
        row.waits -= 1;
        row.at = end + row.delay;
        let (n, start_ps) = (row.owner, row.at);
        under_way(t, n, i);
        let own = n.end().own_clock(t.exps[0].end_len);
        t.clocks[own] = t.clocks[own].min(start_ps);
    }
}

/// Runs [`analytical`] for its only row.
#[inline]
pub fn row(t: &mut Tables, _row: u32, _end: u64) {
    analytical(t);
}
