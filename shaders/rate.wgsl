// A queue pair's rate and the window that follows from it (twin: `src/engine/cpu/transport/rate.rs`).

// The queue pair whose rate has changed and whose window is still to follow, before anything looks at it. The twin does it at
// once; here it is where rates may have changed, so that its code is in the kernel twice and not ten times.
var<private> window_due: u32;

// Sets the rate. The window follows.
fn set_rate(f: u32, rate: u64) {
    flow_tx[flow_base + f].rate = rate;
    window_due = f;
}

// Sets the window that is due, of a queue pair of NIC `n`.
fn set_window(n: u32) {
    if window_due == NONE {
        return;
    }
    let tx = flow_base + window_due;
    window_due = NONE;
    if !has_mode(MODE_WINDOW) {
        flow_tx[tx].win = 0lu;
    } else if !has_mode(MODE_VAR_WINDOW) {
        flow_tx[tx].win = flow_tx[tx].window;
    } else {
        flow_tx[tx].win = max(mul_div(flow_tx[tx].window, flow_tx[tx].rate, nics[nic_base + n].rate), 1lu);
    }
}
