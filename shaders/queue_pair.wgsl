// A queue pair at its NIC: creation, its first state, its place in the NIC's order (twin: `src/engine/cpu/transport/queue_pair.rs`).

// Queue pair `f` of NIC `n` comes into being: line rate, free to send.
fn create(n: u32, f: u32, now: u64) {
    let tx = flow_base + f;
    flow_tx[tx].credit = exps[exp_row].credit_burst;
    flow_tx[tx].next_avail = now;
    flow_tx[tx].rto_at = NEVER;
    flow_tx[tx].flags |= QP_CREATED;
    reset_cc(n, f);
}

// Congestion-control state as it is at first. DCTCP goes on counting its batch.
fn reset_cc(n: u32, f: u32) {
    let line = nics[nic_base + n].rate;
    let tx = flow_base + f;
    flow_tx[tx].flags &= ~(QP_STARTED | QP_A_SEEN | QP_D_SEEN | QP_CWR);
    flow_tx[tx].stage = 0u;
    flow_tx[tx].diff = 0li;
    if exp_cc != CC_DCTCP {
        flow_tx[tx].last_seq = 0lu;
    }
    flow_tx[tx].target_ = line;
    flow_tx[tx].rc = line;
    flow_tx[tx].alpha = ONE_Q32;
    flow_tx[tx].u = ONE_Q48;
    flow_tx[tx].t_alpha = NEVER;
    flow_tx[tx].t_dec = NEVER;
    flow_tx[tx].t_inc = NEVER;
    flow_tx[tx].rate = line;
    // The window at line rate, at once: one event may reset several queue pairs. A share of 1 needs no arithmetic.
    if !has_mode(MODE_WINDOW) {
        flow_tx[tx].win = 0lu;
    } else if !has_mode(MODE_VAR_WINDOW) {
        flow_tx[tx].win = flow_tx[tx].window;
    } else {
        flow_tx[tx].win = max(flow_tx[tx].window, 1lu);
    }
    if exp_cc == CC_NSCC {
        nscc_reset(n, f);
    }
    if exp_cc == CC_RCCC {
        // Credit alone limits it, and no path is kept to choose it again.
        flow_tx[tx].win = NEVER;
        flow_tx[tx].alpha = 0lu;
        flow_tx[tx].stage = 0u;
    }
}

// Puts queue pair `f` at the end of its NIC's turn.
fn join_order(n: u32, f: u32) {
    order[flow_base + nics[nic_base + n].flow_first + own.qp_n] = f;
    own.qp_n += 1u;
    flow_tx[flow_base + f].flags |= QP_QUEUED;
}

// Sending goes on from what is not acknowledged.
fn step_back(tx: u32) {
    flow_tx[tx].snd_nxt = flow_tx[tx].snd_una;
    flow_tx[tx].msg_send = flow_tx[tx].msg_ack;
    flow_tx[tx].send_end = flow_tx[tx].ack_end;
}

// A loss has shown: half of what was outstanding may be from now on. PRECONDITION: it has not stepped back yet.
fn halve_loss_window(tx: u32, now: u64) {
    let outstanding = sub_sat(flow_tx[tx].snd_nxt, flow_tx[tx].snd_una);
    flow_tx[tx].loss_window = max(outstanding / 2lu, LOSS_WINDOW_PACKETS * u64(exp_payload));
    flow_tx[tx].back_at = now;
    flow_tx[tx].window_at = now;
}

// Whether `outstanding` bytes of the queue pair in row `tx` are fewer than congestion control and the loss window allow.
fn is_within_windows(tx: u32, outstanding: u64) -> bool {
    let win = flow_tx[tx].win;
    let loss_window = flow_tx[tx].loss_window;
    return (win == 0lu || outstanding < win) && (loss_window == 0lu || outstanding < loss_window);
}
