//! A queue pair's rate and the window that follows from it (twin: `shaders/rate.wgsl`).

use crate::cpu::math::mul_div;
use hyperfold_columns::{FlowIdx, Tables, mode};

/// Sets the rate of queue pair `f` (bps) and the window that follows from it; `line` is the line rate.
pub fn set_rate(t: &mut Tables, f: FlowIdx, rate: u64, line: u64) {
    let modes = t.exps[0].modes;
    let tx = &mut t.flow_tx[f];
    tx.rate = rate;
    if modes & mode::WINDOW == 0 {
        tx.win = 0;
    } else if modes & mode::VAR_WINDOW == 0 {
        tx.win = tx.window;
    } else {
        tx.win = mul_div(tx.window, rate, line).max(1);
    }
}
